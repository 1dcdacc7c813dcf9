"""What each line of Iggy's logs means: steps of the specification as it is built, and what must hold.

Silent, as no line shows them: that a backup appends and acknowledges (known by the primary's PrepareAcked, by what it
executes, by the head that it offers), that it learns a commit number (its lines show it), a repair, what is received.
"""

from __future__ import annotations

import itertools
from typing import Any

from viewproof.refinement.logs.record import (
    Events,
    each,
    hold,
    known,
    lose,
    one_of,
    receive,
    settle,
    silent,
    step,
    when,
)
from viewproof.spec.lang import (
    NONE,
    all_of,
    any_of,
    as_index,
    between,
    count,
    forall,
    largest,
    not_,
    number_of,
    some,
    value_of,
    where,
)
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import (
    NORMAL,
    RECOVERING,
    VIEW_CHANGE,
    Client,
    Length,
    Op,
    Replica,
    Request,
    View,
    primary,
)
from viewproof.spec.vsr.parts.clients import cache, requests, sessions, table
from viewproof.spec.vsr.parts.clients.sessions import Incarnation
from viewproof.spec.vsr.parts.iggy import as_built, view_change
from viewproof.spec.vsr.parts.iggy.journal import append, on_prepare, replay
from viewproof.spec.vsr.parts.repair.state import leading

EVENTS = Events()
event = EVENTS.event
SHOWN = {"node": Replica, "view": View, "log_view": View, "commit": Length, "status": int}
"""What each line of `iggy.sim` shows of its replica, after the step that it tells of."""
APPENDED = "an acknowledgement is for what is in the journal"


# what a line shows of its replica -----------------------------------------------------------------------------------


def shows(state: Any, e: Any) -> None:
    """The replica is where the line says: the commit number that it shows may have been learnt silently."""
    r = e.node
    hold("I6", state.view[r] == e.view, "a replica is in the view that its lines show")
    hold("I12", state.log_view[r] == e.log_view, "log_view is that of the last view whose log the replica took over")
    hold("status", status_is(state, e), "a replica has the status that its lines show")
    learns(state, r, e.view, e.commit)


def status_is(state: Any, e: Any) -> Any:
    """Is the status of e's replica the one that the line shows?"""
    r = e.node
    labels = enumerate((NORMAL, VIEW_CHANGE, RECOVERING))
    return any_of(*(all_of(e.status == number, state.status[r] == label) for number, label in labels))


def learns(state: Any, r: Any, v: Any, k: Any) -> None:
    """Replica r knows the commit number k: from its view's primary, or as it is that and counted."""
    when(
        all_of(k > state.commit_max[r], state.status[r] == NORMAL, primary(state, v) != r),
        lambda: told(state, r, v, k),
    )
    hold("I4", k <= state.commit_max[r], "a commit number is one that a quorum made, and its view's primary sent")


def told(state: Any, r: Any, v: Any, k: Any) -> None:
    """A backup hears the commit number k of its view."""
    receive(r, state.commit_sent[v], up_to=k)
    step(normal.on_commit, r=r, k=k)


def reaches(state: Any, q: Any, n: Any) -> None:
    """Backup q has the log of its view up to op n: it appended, and acknowledged, what it had not."""
    when(
        all_of(state.status[q] == NORMAL, primary(state, state.view[q]) != q),
        lambda: each(between(Op, state.op[q] + 1, n), lambda o: appends(state, q, o)),
    )


def appends(state: Any, q: Any, o: Any) -> None:
    """Backup q appends the next prepare of its view, at o."""
    v = state.view[q]
    hold(
        "I3",
        any_of(state.body[q, o] == NONE, state.body[q, o] == some(v)),
        "an append does not replace what a journal has",
    )
    receive(q, state.prepare_client[v, o])
    step(on_prepare, r=q, o=o)


def fetched(state: Any, q: Any, o: Any) -> None:
    """Replica q's journal has the entry of its log at o: what was missing was repaired, without a line that says so."""
    when(all_of(o <= state.op[q], not_(state.written[q, o])), lambda: fetches(state, q, o))


def fetches(state: Any, q: Any, o: Any) -> None:
    """Replica q fetches the entry at o; an entry of another view that is in the slot stays there."""
    hold(
        "I1",
        any_of(state.body[q, o] == NONE, state.body[q, o] == state.entry[q, o]),
        "the journal has another entry there, of an older view, which was not dropped: it is taken for that of the log",
    )
    step(as_built.fill_slot, r=q, o=o, w=entry_view(state.entry[q, o]))


def entry_view(entry: Any) -> Any:
    """The view of an entry."""
    return value_of(entry)


# normal operation ---------------------------------------------------------------------------------------------------


@event(
    **SHOWN, op=Op, entry=View, parent=View, parent_known=int, named_before=int, client=Client, request=Request,
    register=Incarnation, clients=Client,
)  # fmt: skip
def queued(state: Any, e: Any) -> None:
    """The primary takes a request into its log."""
    r = e.node
    shows(state, e)
    hold("I7", e.named_before == 0, "a checksum names one entry")
    hold("I7", state.prepare_client[e.view, e.op] == 0, "a view prepares an op once")
    hold("I5", state.op[r] + 1 == e.op, "ops have no gaps")
    if state.cfg.client_table.sessions:
        when(
            e.register >= 1,
            lambda: step(sessions.on_register, r=r, c=e.client, n=e.register),
            lambda: step(sessions.on_request, r=r, c=e.client, x=state.table_session[r, e.client], s=e.request),
        )
    else:
        step(normal.on_request, r=r, c=e.client, s=e.request)
    hold(
        "I10",
        any_of(e.op == 1, e.parent_known == 0, lambda: state.entry[r, e.op - 1] == some(e.parent)),
        "its parent is the entry below it",
    )


@event(**SHOWN, op=Op, sender=Replica, entry=View, count=int, quorum=int, reached=int, journaled=int, clients=Client)
def acked(state: Any, e: Any) -> None:
    """The primary counts an acknowledgement, its own included; enough of them commit the op."""
    r, q, v = e.node, e.sender, e.view
    hold("I6", all_of(state.view[r] == v, state.status[r] == NORMAL, primary(state, v) == r), "the primary counts")
    hold("quorum", e.quorum == state.cfg.quorum_replication, "the quorum is that of the cluster's size")
    hold("I3", any_of(e.has("journaled") == False, e.journaled == 1), APPENDED)  # noqa: E712
    hold("I10", state.entry[r, e.op] == some(e.entry), "what is acknowledged is the primary's entry at that op")
    when(
        q == r,
        lambda: when(not_(state.written[r, e.op]), lambda: step(append, r=r, o=e.op)),
        lambda: acknowledges(state, e, q),
    )
    receive(r, state.ack[v, q, e.op])
    counted = count(Replica, lambda p: state.received(r).ack[v, p, e.op] == state.entry[r, e.op])
    hold("quorum", e.count == counted, "each replica is counted once, and only if it acknowledged")
    hold("quorum", any_of(e.reached == 0, counted >= state.cfg.quorum_replication), "a quorum makes a commit")
    commits(state, r)


def acknowledges(state: Any, e: Any, q: Any) -> None:
    """Backup q, in the view of the line, has the entry in its journal."""
    hold("I3", all_of(state.view[q] >= e.view), "who acknowledges is in the view")
    when(state.view[q] == e.view, lambda: holds_entry(state, e, q))


def holds_entry(state: Any, e: Any, q: Any) -> None:
    """Backup q appended up to the op, or fetched what it lacked."""
    reaches(state, q, e.op)
    fetched(state, q, e.op)


def commits(state: Any, r: Any) -> None:
    """The primary commits what has a quorum, in order."""
    each(between(Op, state.commit_max[r] + 1, state.op[r]), lambda o: settle(normal.commit, r=r, o=o))


@event(**SHOWN, op=Op, clients=Client)
def committed(state: Any, e: Any) -> None:
    """The primary executes the next op, and replies; of a partition, the backups print it, too."""
    r = e.node
    hold("I4", e.op == state.commit_min[r] + 1, "ops are executed in order")
    when(
        primary(state, state.view[r]) == r,
        lambda: leads_execution(state, e, r),
        lambda: catches_up(state, r, e.op, e.clients),
    )
    shows(state, e)


def leads_execution(state: Any, e: Any, r: Any) -> None:
    """The primary executes what it committed."""
    hold("quorum", e.op <= state.commit_max[r], "what is executed has a quorum")
    executes(state, r, e.op, e.clients)


@event(node=Replica, op=Op, clients=Client)
def executed(state: Any, e: Any) -> None:
    """A backup executes the next op that it knows to be committed."""
    r = e.node
    hold("I4", e.op == state.commit_min[r] + 1, "ops are executed in order")
    catches_up(state, r, e.op, e.clients)


def catches_up(state: Any, r: Any, o: Any, clients: Any) -> None:
    """Backup r executes op o, which it had, or fetched, and knows to be committed."""
    reaches(state, r, o)
    parked = all_of(leading(state, r), o <= state.sv_op[state.view[r]], state.entry[r, o] == NONE)
    when(parked, lambda: step(as_built.take_header, r=r, o=o))
    when(all_of(o > state.commit_max[r], state.status[r] == NORMAL), lambda: told(state, r, state.view[r], o))
    hold("I4", o <= state.commit_max[r], "what is executed is committed")
    fetched(state, r, o)
    executes(state, r, o, clients)


def executes(state: Any, r: Any, o: Any, clients: Any) -> None:
    """Replica r executes its next op, o; a full client table gives the slot of the client with the oldest reply."""
    hold(
        "I1",
        any_of(state.first_executed[o] == NONE, state.first_executed[o] == state.body[r, o], state.body[r, o] == NONE),
        "an op is the same entry wherever it is executed",
    )
    if not state.cfg.client_table.slots:
        step(normal.execute, r=r)
        return
    entry = state.entry[r, o]
    full = all_of(state.slots_used[r] == state.cfg.client_table.slots, lambda: table.needs_slot(state, r, o, entry))
    when(full, lambda: evicts(state, r, o, clients), lambda: step(normal.execute, r=r))
    hold("I4", state.commit_min[r] == o, "the op is executed")


def evicts(state: Any, r: Any, o: Any, clients: Any) -> None:
    """The client with the oldest newest reply loses its slot to that of op o."""
    each(
        between(Client, 1, clients),
        lambda c: when(state.commit_min[r] < o, lambda: settle(requests.execute_evicting, r=r, c=c)),
    )


@event(**SHOWN, op=Length)
def progressed(state: Any, e: Any) -> None:
    """A replica of a partition shows its head."""
    reaches(state, e.node, e.op)
    shows(state, e)


# view changes -------------------------------------------------------------------------------------------------------


@event(**SHOWN, old=View, op=Length, known=Length, perhaps=Length)
def view_changed(state: Any, e: Any) -> None:
    """A replica enters a later view, durably; what it offers later tells how far its log went."""
    r = e.node
    hold("I6", state.view[r] == e.old, "a replica leaves the view that it was in")
    when(e.has("op"), lambda: reaches(state, r, e.op))
    each(between(Op, state.op[r] + 1, where(e.has("perhaps"), e.perhaps, 0)), lambda o: silent(on_prepare, r=r, o=o))
    when(all_of(state.status[r] == NORMAL, primary(state, e.old) != r), lambda: learns_before(state, e, r))
    step(view_change.start_view_change, r=r, v=e.view)
    shows(state, e)


def learns_before(state: Any, e: Any, r: Any) -> None:
    """The commit number that r shows was learnt in the view before."""
    when(e.commit > state.commit_max[r], lambda: told(state, r, e.old, e.commit))


@event(**SHOWN, op=Length, known=Length)
def offered(state: Any, e: Any) -> None:
    """A replica offers its log for the view: log_view, head and commit number are its own."""
    r, v = e.node, e.view
    shows(state, e)
    offers(state, r, v)
    hold("I11", state.dvc_op[v, r] == e.op, "the head that it offers is its own")
    hold("I11", state.dvc_commit[v, r] == e.known, "the commit number that it offers is its own")


def offers(state: Any, r: Any, v: Any) -> None:
    """Replica r offers its log for view v, once; the message may be sent again."""
    each(between(Replica, 0, state.cfg.replicas - 1), lambda q: hears(state, r, v, q))
    when(not_(state.dvc[v, r]), lambda: step(view_change.do_view_change, r=r))
    receive(r, state.dvc[v, r])


def hears(state: Any, r: Any, v: Any, q: Any) -> None:
    """Replica r may have received q's start_view_change."""
    when(state.svc[v, q], lambda: receive(r, state.svc[v, q]))


@event(node=Replica, view=View, sender=Replica)
def got_request(state: Any, e: Any) -> None:
    """A start_view_change is received."""
    receive(e.node, state.svc[e.view, e.sender])


@event(node=Replica, view=View, sender=Replica)
def got_start(state: Any, e: Any) -> None:
    """A start_view is received."""
    receive(e.node, state.sv[e.view])


ARRIVED = {f"arrived_{q}": int for q in range(7)}
"""Did the do_view_change of that replica arrive, as a simulator's network shows?"""


@event(node=Replica, view=View, op=Length, commit=Length, **ARRIVED)
def merged(state: Any, e: Any) -> None:
    """The new primary has a quorum of do_view_changes, and decides the log of its view."""
    r, v = e.node, e.view
    hold("I6", state.view[r] == v, "it merges for its own view")
    offers(state, r, v)
    sent = count(Replica, lambda q: state.dvc[v, q])
    hold("quorum", sent >= state.cfg.quorum_view_change, "a view is merged from a quorum of do_view_changes")
    replicas = range(state.cfg.replicas)
    sizes = range(state.cfg.quorum_view_change, len(replicas) + 1)
    one_of(*(among(state, e, senders) for k in sizes for senders in itertools.combinations(replicas, k)))
    hold("I2", keeps_executed(state, v, e.op), "what was executed anywhere is in the merged log")
    when(state.commit_max[r] < e.commit, lambda: lose(state.commit_max[r], e.commit, e.commit))


def among(state: Any, e: Any, senders: tuple[int, ...]) -> Any:
    """The merge of exactly these do_view_changes, each of which was sent, and may have arrived."""
    r, v = e.node, e.view

    def happened() -> None:
        for q in senders:
            arrived = f"arrived_{q}"
            came = any_of(r == index(q), not_(e.has(arrived)), getattr(e, arrived) == 1)
            hold("quorum", all_of(state.dvc[v, index(q)], came), "the do_view_change was sent, and came")
            receive(r, state.dvc[v, index(q)])
        hold("quorum", any_of(*(r == index(q) for q in senders)), "its own is among them")
        one_of(*(taken_from(r, b, e.op) for b in senders))
        hold(
            "I4", state.commit_max[r] <= e.commit, "the commit number of the merged log is the largest of those offered"
        )

    return happened


def index(q: int) -> Any:
    """A replica by its number."""
    return as_index(Replica, q)


def taken_from(r: Any, b: int, n: Any) -> Any:
    """The merge with b's log_view: its log, up to n, is that of the view."""
    return lambda: step(view_change.merge, r=r, b=index(b), n=n)


def keeps_executed(state: Any, v: Any, n: Any) -> Any:
    """Does the merged log of view v, up to n, have all that was executed anywhere? What is behind n was not."""
    return all_of(
        forall(
            between(Op, 1, n),
            lambda o: any_of(state.first_executed[o] == NONE, state.first_executed[o] == state.sv_entry[v, o]),
        ),
        state.first_executed[n + 1] == NONE,
    )


@event(**SHOWN)
def elected(state: Any, e: Any) -> None:
    """The new primary starts its view: the merged log is in its journal."""
    r, v = e.node, e.view
    hold("I7", not_(state.sv[v]), "a view starts once")
    each(
        between(Op, state.commit_min[r] + 1, state.sv_op[v]),
        lambda o: when(state.body[r, o] == NONE, lambda: settles(state, r, v, o)),
    )
    step(view_change.start_view, r=r)
    each(between(Op, state.commit_min[r] + 1, state.op[r]), lambda o: counts_own(state, r, v, o))
    shows(state, e)


def settles(state: Any, r: Any, v: Any, o: Any) -> None:
    """New primary r fetched the entry at o of the log that it merged."""
    step(as_built.fill_slot, r=r, o=o, w=entry_view(state.sv_entry[v, o]))


def counts_own(state: Any, r: Any, v: Any, o: Any) -> None:
    """The pipeline of a view that starts has an acknowledgement of the primary's own for each op."""
    when(state.ack[v, r, o] != NONE, lambda: receive(r, state.ack[v, r, o]))


@event(**SHOWN, op=Length, known=Length)
def announced(state: Any, e: Any) -> None:
    """The primary sends start_view: with its head, and its commit number."""
    hold("I11", state.op[e.node] == e.op, "the head that it sends is its own")
    shows(state, e)


@event(node=Replica, view=View, op=Length, commit=Length)
def adopted(state: Any, e: Any) -> None:
    """A backup adopts the head of a view that has started; what its journal has below may be anything."""
    r, v = e.node, e.view
    hold("I6", v >= state.view[r], "views do not fall")
    when(v >= 1, lambda: receive(r, state.sv[v]))
    each(between(Op, state.sv_op[v] + 1, e.op), lambda o: receive(r, state.prepare_client[v, o]))
    step(as_built.on_start_view, r=r, v=v, n=e.op)
    when(e.commit > state.commit_max[r], lambda: told(state, r, v, e.commit))


@event(node=Replica, op=Op, last=Op)
def dropped(state: Any, e: Any) -> None:
    """Entries that the view's log does not have are gone from the journal."""
    r = e.node
    hold("I5", e.op > state.commit_min[r], "what is executed is not dropped")
    step(as_built.drop_entries, r=r, o=e.op, n=e.last)


@event(node=Replica, op=Op)
def repaired(state: Any, e: Any) -> None:
    """A missing entry arrives: it is taken where the slot is empty."""
    r, o = e.node, e.op
    when(
        all_of(state.status[r] == NORMAL, o <= state.op[r], state.body[r, o] == NONE),
        lambda: step(as_built.fill_slot, r=r, o=o, w=entry_view(state.entry[r, o])),
    )


# restarts -----------------------------------------------------------------------------------------------------------


BACK = {"node": Replica, "top": Length, "op": Length, "done": Length, "clients": Client, "hole": Op}
"""Of a restart: the largest op of the run; and, as later lines tell, its head and what it executed when it was back."""


@event(**BACK)
def restarted(state: Any, e: Any) -> None:
    """A replica starts again: mute, with what its journal holds, of which it executes what that proves committed."""
    r = e.node
    reaches(state, r, largest(where(e.has("op"), e.op, 0), where(e.has("done"), e.done, 0)))
    if state.cfg.client_table.sessions:
        when(e.has("done"), lambda: comes_back(state, e, r), lambda: comes_back_somehow(state, e, r))
    else:
        step(as_built.restart_empty, r=r, n=where(e.has("done"), e.done, state.commit_min[r]))


@event(**BACK)
def probing(state: Any, e: Any) -> None:
    """A replica probes: it starts again, as far as lines tell."""
    EVENTS.by_name["restarted"].fn(state, e)


def head_of(state: Any, e: Any, r: Any) -> Any:
    """The last op of r's journal."""
    return where(e.has("op"), e.op, as_built.last_in_journal(state, r, e.top))


def comes_back(state: Any, e: Any, r: Any) -> None:
    """It executes up to an op that later lines tell; what is there it knew, or its journal says."""
    each(between(Op, state.commit_min[r] + 1, e.done), lambda o: fetched(state, r, o))
    step(as_built.restart, r=r, k=e.done, n=largest(head_of(state, e, r), e.done))
    each(between(Op, 1, e.done), lambda o: replays(state, r, o))
    when(all_of(e.has("hole"), e.hole <= e.done), lambda: over_hole(state, e, r))


def comes_back_somehow(state: Any, e: Any, r: Any) -> None:
    """No line tells how far it executed."""
    step(as_built.restart, r=r, k=e.done, n=head_of(state, e, r))
    lose(state.commit_min[r], 0)
    lose(state.commit_max[r], 0)
    each(between(Client, 1, e.clients), lambda c: forgets(state, r, c))
    lose(state.slots_used[r], 0)


def over_hole(state: Any, e: Any, r: Any) -> None:
    """What its journal lacks it passes over: it says that it executed ops that it did not."""
    known(
        "a replica comes back with a commit number above a hole in its journal, and passes over the ops that are "
        "missing (iggy.replays_over_hole): it says that it executed them, and its tables lack them"
    )
    each(between(Client, 1, e.clients), lambda c: forgets(state, r, c))
    lose(state.slots_used[r], 0)


def forgets(state: Any, r: Any, c: Any) -> None:
    """What r's table has of client c is not known."""
    for cell in (state.table, state.table_session, state.table_op, state.table_incarnation):
        lose(cell[r, c], 0)
    for k in cache.older(state.cfg):
        lose(getattr(state, f"cached_{k}")[r, c], 0)


def replays(state: Any, r: Any, o: Any) -> None:
    """Replica r executes again what its journal proves."""
    if state.cfg.replicas > 1:
        step(replay, r=r)
    else:
        step(normal.execute, r=r)


# what only a simulator shows ----------------------------------------------------------------------------------------


@event(**SHOWN)
def shown(state: Any, e: Any) -> None:
    """A line that changes nothing shows its replica."""
    r = e.node
    when(
        state.view[r] == e.view, lambda: when(all_of(e.status == 0, state.status[r] == NORMAL), lambda: shows(state, e))
    )


@event(node=Replica, view=View, log_view=View, status=int, op=Length, commit_min=Length, commit_max=Length)
def state(state: Any, e: Any) -> None:
    """The state of a replica at the end of a tick."""
    r = e.node
    reaches(state, r, e.op)
    hold("I6", state.view[r] == e.view, "a replica is in the view that it shows")
    hold("I12", state.log_view[r] == e.log_view, "log_view is that of the last view whose log the replica took over")
    hold("I5", any_of(leading(state, r), state.op[r] == e.op), "its head is the end of its log")
    hold("I4", state.commit_min[r] == e.commit_min, "it executed what its lines say")


@event(node=Replica, op=Op, entry=View)
def journal(state: Any, e: Any) -> None:
    """The journal has an entry now."""
    r, o = e.node, e.op
    when(e.has("entry"), lambda: has_now(state, e, r, o))


def has_now(state: Any, e: Any, r: Any, o: Any) -> None:
    """Replica r's journal has that entry: it is the next of its view, or it was fetched."""
    when(all_of(e.entry == state.view[r], o == state.op[r] + 1), lambda: reaches(state, r, o))
    when(state.body[r, o] != some(e.entry), lambda: step(as_built.fill_slot, r=r, o=o, w=e.entry))


@event(node=Replica, op=Op, entry=View)
def executed_entry(state: Any, e: Any) -> None:
    """The entry that a replica executed."""
    when(e.has("entry"), lambda: was_executed(state, e))


def was_executed(state: Any, e: Any) -> None:
    """It is the one that the specification executed there."""
    r = e.node
    hold(
        "I1",
        any_of(state.first_executed[e.op] == NONE, state.first_executed[e.op] == some(e.entry)),
        "an op is the same entry wherever it is executed",
    )
    hold(
        "I1",
        any_of(state.executed[r, e.op] == NONE, state.executed[r, e.op] == some(e.entry)),
        "it executed the entry of its log",
    )


@event(node=Replica, commit_min=Length, client=Client, epoch=Length, mark=int)
def slot(state: Any, e: Any) -> None:
    """A slot of a client table: a function of what was executed."""
    r, c = e.node, e.client
    if not state.cfg.client_table.sessions:
        return
    when(
        state.commit_min[r] == e.commit_min,
        lambda: hold(
            "I9",
            all_of(state.table_session[r, c] == e.epoch, as_number(state.table[r, c]) == e.mark),
            "the client table follows from what was executed",
        ),
    )


def as_number(request: Any) -> Any:
    """A request number, compared with a number that a line shows."""
    return number_of(request)
