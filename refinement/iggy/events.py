"""What each line of Iggy's logs means: steps of the specification as it is built, and what must hold.

Silent, as no line shows them: that a backup appends and acknowledges (known by the primary's PrepareAcked, by what it
executes, by the head that it offers), that it learns a commit number (its lines show it), a repair, what is received.
"""

from __future__ import annotations

from typing import Any

from viewproof.refinement.logs.record import (
    Events,
    each,
    hold,
    known,
    receive,
    settle,
    step,
    when,
)
from viewproof.spec.lang import (
    NONE,
    all_of,
    any_of,
    between,
    count,
    not_,
    some,
    value_of,
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
from viewproof.spec.vsr.parts.clients import requests, sessions, table
from viewproof.spec.vsr.parts.clients.state import Incarnation
from viewproof.spec.vsr.parts.iggy import as_built
from viewproof.spec.vsr.parts.iggy.journal import append, on_prepare
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
    hold("I4", e.commit == state.commit_max[r], "a commit number does not fall")


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
    receive(q, state.prepare[v, o].client)
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
    **SHOWN, op=Op, entry=View, parent=View, parent_op=Op, named_before=int, client=Client, request=Request,
    register=Incarnation, clients=Client,
)  # fmt: skip
def queued(state: Any, e: Any) -> None:
    """The primary takes a request into its log."""
    r = e.node
    shows(state, e)
    hold("I7", e.named_before == 0, "a checksum names one entry")
    if state.cfg.replicas > 1:
        hold("I7", state.prepare[e.view, e.op].client == 0, "a view prepares an op once")
    hold("I5", state.op[r] + 1 == e.op, "ops have no gaps")
    if state.cfg.client_table.sessions:
        numbered = any_of(all_of(e.register >= 1, e.request == 0), all_of(e.register == 0, e.request >= 1))
        hold("I8", numbered, "a register has number 0, and a request another")
        when(
            e.register >= 1,
            lambda: step(sessions.on_register, r=r, c=e.client, n=e.register),
            lambda: step(sessions.on_request, r=r, c=e.client, x=state.table_session[r, e.client], s=e.request),
        )
    else:
        step(normal.on_request, r=r, c=e.client, s=e.request)
    follows = any_of(e.op == 1, not_(e.has("parent")), lambda: state.entry[r, e.op - 1] == some(e.parent))
    first = all_of(e.view >= 1, e.op == state.sv[e.view].op + 1, e.has("parent_op"), e.parent_op < e.op - 1)
    hold("I10", any_of(follows, first), "its parent is the entry below it")
    when(
        not_(follows),
        lambda: known(
            "the first prepare of a view names as its parent an entry further below than the one before it "
            "(iggy.stale_parent): the chain of checksums is broken there"
        ),
    )


COUNTED = {"count": int, "quorum": int, "reached": int, "journaled": int, "lines": int, "own_line": int, "again": int}
"""Of an acknowledgement: what its line says, and how many lines of that op there were."""


@event(**SHOWN, **COUNTED, op=Op, sender=Replica, entry=View, clients=Client)
def acked(state: Any, e: Any) -> None:
    """The primary counts an acknowledgement, its own included; enough of them commit the op."""
    r, q, v = e.node, e.sender, e.view
    hold("I6", all_of(state.view[r] == v, state.status[r] == NORMAL, primary(state, v) == r), "the primary counts")
    shows(state, e)
    hold("quorum", e.again == 0, "each replica is counted once")
    rebuilt = all_of(e.op <= state.sv[v].op, e.own_line == 0, e.count == e.lines + 1)
    hold(
        "quorum", any_of(e.count == e.lines, rebuilt), "what is counted has a line, but for a pipeline that was rebuilt"
    )
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


@event(**SHOWN, op=Op, client=Client, request=Request, clients=Client)
def committed(state: Any, e: Any) -> None:
    """The primary executes the next op, and replies; of a partition, the backups print it, too."""
    r = e.node
    hold("I4", e.op == state.commit_min[r] + 1, "ops are executed in order")
    when(
        primary(state, state.view[r]) == r,
        lambda: leads_execution(state, e, r),
        lambda: catches_up(state, r, e.op, e.clients),
    )
    v = value_of(state.executed[r, e.op])
    hold("I8", any_of(not_(e.has("client")), state.prepare[v, e.op].client == e.client), "whose request it is")
    hold("I8", any_of(not_(e.has("client")), state.prepare[v, e.op].request == e.request), "which request it is")
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
    parked = all_of(leading(state, r), o <= state.sv[state.view[r]].op, state.entry[r, o] == NONE)
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
