"""What each line of Iggy's logs means: steps of the specification as it is built, and what must hold.

Silent, as no line shows them: that a backup appends and acknowledges (known by the primary's PrepareAcked, by what it
executes, by the head that it offers), that it learns a commit number (its lines show it), a repair, what is received.
"""

from __future__ import annotations

from typing import Any

from viewproof.refinement.events import (
    arrived,
    departs,
    each,
    event,
    holds,
    otherwise,
    received,
    settle,
    shown,
    step,
    when,
)
from viewproof.spec.lang import NONE, all_of, any_of, between, count, not_, some, value_of
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import NORMAL, RECOVERING, VIEW_CHANGE, Client, Op, Replica, primary
from viewproof.spec.vsr.parts.clients import requests, sessions, table
from viewproof.spec.vsr.parts.iggy import as_built
from viewproof.spec.vsr.parts.iggy.journal import append, on_prepare
from viewproof.spec.vsr.parts.repair.state import leading

STALE_PARENT = "iggy.stale_parent"
"""The first prepare of a view names an entry further below as its parent."""

STALE = "the journal has another entry there, of an older view, which was not dropped: it is taken for that of the log"
"""Why no entry can be fetched."""

# what a line shows of its replica -----------------------------------------------------------------------------------


def several(cfg: Config) -> bool:
    """Are there other replicas?"""
    return cfg.replicas > 1


def shows(state: Any, e: Any) -> None:
    """The replica is where the line says: the commit number that it shows may have been learnt silently."""
    r = e.node
    holds(state.view[r] == e.view, "a replica is in the view that its lines show", rule="I6")
    taken_over = "log_view is that of the last view whose log the replica took over"
    holds(state.log_view[r] == e.log_view, taken_over, rule="I12")
    labels = enumerate((NORMAL, VIEW_CHANGE, RECOVERING))
    is_so = any_of(*(all_of(e.status == number, state.status[r] == label) for number, label in labels))
    holds(is_so, "a replica has the status that its lines show", rule="status")
    with when(all_of(e.commit > state.commit_max[r], state.status[r] == NORMAL, primary(state, e.view) != r)):
        told(state, r, e.view, e.commit)
    made = "a commit number is one that a quorum made, and its view's primary sent"
    holds(e.commit <= state.commit_max[r], made, rule="I4")
    holds(e.commit == state.commit_max[r], "a commit number does not fall", rule="I4")


def told(state: Any, r: Any, v: Any, k: Any) -> None:
    """A backup hears the commit number k of its view."""
    if not several(state.cfg):
        return
    received(state.commit_sent[v], k, by=r)
    step(normal.on_commit, r=r, k=k)


def reaches(state: Any, q: Any, n: Any) -> None:
    """Backup q has the log of its view up to op n: it appended, and acknowledged, what it had not."""
    if not several(state.cfg):
        return
    v = state.view[q]
    with when(all_of(state.status[q] == NORMAL, primary(state, v) != q)), each(between(Op, state.op[q] + 1, n)) as o:
        free = any_of(state.body[q, o] == NONE, state.body[q, o] == some(v))
        holds(free, "an append does not replace what a journal has", rule="I3")
        arrived(state.prepare[v, o].client, by=q)
        step(on_prepare, r=q, o=o)


def fetched(state: Any, q: Any, o: Any) -> None:
    """Replica q's journal has the entry of its log at o: what was missing was repaired, without a line that says so; an
    entry of another view that is in the slot stays there.
    """
    with when(all_of(o <= state.op[q], not_(state.written[q, o]))):
        free = any_of(state.body[q, o] == NONE, state.body[q, o] == state.entry[q, o])
        holds(free, STALE, rule="I1")
        step(as_built.fill_slot, r=q, o=o, w=value_of(state.entry[q, o]))


# normal operation ---------------------------------------------------------------------------------------------------


@event()
def queued(state: Any, e: Any) -> None:
    """The primary takes a request into its log."""
    r = e.node
    shows(state, e)
    holds(e.named_before == 0, "a checksum names one entry", rule="I7")
    if several(state.cfg):
        holds(state.prepare[e.view, e.op].client == 0, "a view prepares an op once", rule="I7")
    holds(state.op[r] + 1 == e.op, "ops have no gaps", rule="I5")
    if state.cfg.client_table.sessions:
        numbered = any_of(all_of(e.register >= 1, e.request == 0), all_of(e.register == 0, e.request >= 1))
        holds(numbered, "a register has number 0, and a request another", rule="I8")
        with when(e.register >= 1):
            step(sessions.on_register, r=r, c=e.client, n=e.register)
        with otherwise():
            step(sessions.on_request, r=r, c=e.client, x=state.table_session[r, e.client], s=e.request)
    else:
        step(normal.on_request, r=r, c=e.client, s=e.request)
    follows = any_of(e.op == 1, not_(shown(e.parent)), lambda: state.entry[r, e.op - 1] == some(e.parent))
    first = all_of(e.view >= 1, e.op == state.sv[e.view].op + 1, shown(e.parent_op), e.parent_op < e.op - 1)
    holds(any_of(follows, first), "its parent is the entry below it", rule="I10")
    with when(not_(follows)):
        departs(STALE_PARENT)


@event()
def acked(state: Any, e: Any) -> None:
    """The primary counts an acknowledgement, its own included; enough of them commit the op."""
    r, q, v = e.node, e.sender, e.view
    leads = all_of(state.view[r] == v, state.status[r] == NORMAL, primary(state, v) == r)
    holds(leads, "the primary counts", rule="I6")
    shows(state, e)
    holds(e.again == 0, "each replica is counted once", rule="quorum")
    rebuilt = all_of(e.op <= state.sv[v].op, e.own_line == 0, e.count == e.lines + 1)
    has_line = "what is counted has a line, but for a pipeline that was rebuilt"
    holds(any_of(e.count == e.lines, rebuilt), has_line, rule="quorum")
    holds(e.quorum == state.cfg.quorum_replication, "the quorum is that of the cluster's size", rule="quorum")
    in_journal = any_of(not_(shown(e.journaled)), e.journaled == 1)
    holds(in_journal, "an acknowledgement is for what is in the journal", rule="I3")
    holds(state.entry[r, e.op] == some(e.entry), "what is acknowledged is the primary's entry at that op", rule="I10")
    with when(q == r), when(not_(state.written[r, e.op])):
        step(append, r=r, o=e.op)
    with otherwise():
        holds(state.view[q] >= v, "who acknowledges is in the view", rule="I3")
        with when(state.view[q] == v):
            reaches(state, q, e.op)
            fetched(state, q, e.op)
    arrived(state.ack[v, q, e.op])
    counted = count(Replica, lambda p: state.received(r).ack[v, p, e.op] == state.entry[r, e.op])
    holds(e.count == counted, "each replica is counted once, and only if it acknowledged", rule="quorum")
    enough = any_of(e.reached == 0, counted >= state.cfg.quorum_replication)
    holds(enough, "a quorum makes a commit", rule="quorum")
    with each(between(Op, state.commit_max[r] + 1, state.op[r])) as o:
        settle(normal.commit, r=r, o=o)


@event()
def committed(state: Any, e: Any) -> None:
    """The primary executes the next op, and replies; of a partition, the backups print it, too."""
    r = e.node
    holds(e.op == state.commit_min[r] + 1, "ops are executed in order", rule="I4")
    with when(primary(state, state.view[r]) == r):
        holds(e.op <= state.commit_max[r], "what is executed has a quorum", rule="quorum")
        executes(state, r, e.op, e.clients)
    with otherwise():
        catches_up(state, r, e.op, e.clients)
    v = value_of(state.executed[r, e.op])
    unshown = not_(shown(e.client))
    holds(any_of(unshown, state.prepare[v, e.op].client == e.client), "whose request it is", rule="I8")
    holds(any_of(unshown, state.prepare[v, e.op].request == e.request), "which request it is", rule="I8")
    shows(state, e)


@event()
def executed(state: Any, e: Any) -> None:
    """A backup executes the next op that it knows to be committed."""
    holds(e.op == state.commit_min[e.node] + 1, "ops are executed in order", rule="I4")
    catches_up(state, e.node, e.op, e.clients)


def catches_up(state: Any, r: Any, o: Any, clients: Any) -> None:
    """Backup r executes op o, which it had, or fetched, and knows to be committed."""
    reaches(state, r, o)
    with when(all_of(leading(state, r), o <= state.sv[state.view[r]].op, state.entry[r, o] == NONE)):
        step(as_built.take_header, r=r, o=o)
    with when(all_of(o > state.commit_max[r], state.status[r] == NORMAL)):
        told(state, r, state.view[r], o)
    holds(o <= state.commit_max[r], "what is executed is committed", rule="I4")
    fetched(state, r, o)
    executes(state, r, o, clients)


def executes(state: Any, r: Any, o: Any, clients: Any) -> None:
    """Replica r executes its next op, o; a full client table gives the slot of the client with the oldest reply."""
    first, body = state.first_executed[o], state.body[r, o]
    same = any_of(first == NONE, first == body, body == NONE)
    holds(same, "an op is the same entry wherever it is executed", rule="I1")
    if not state.cfg.client_table.slots:
        step(normal.execute, r=r)
        return
    entry = state.entry[r, o]
    full = all_of(state.slots_used[r] == state.cfg.client_table.slots, lambda: table.needs_slot(state, r, o, entry))
    with when(full), each(between(Client, 1, clients)) as c, when(state.commit_min[r] < o):
        settle(requests.execute_evicting, r=r, c=c)
    with otherwise():
        step(normal.execute, r=r)
    holds(state.commit_min[r] == o, "the op is executed", rule="I4")


@event()
def progressed(state: Any, e: Any) -> None:
    """A replica of a partition shows its head."""
    reaches(state, e.node, e.op)
    shows(state, e)


@event(name="shown")
def plain(state: Any, e: Any) -> None:
    """A line that changes nothing shows its replica."""
    with when(all_of(state.view[e.node] == e.view, e.status == 0, state.status[e.node] == NORMAL)):
        shows(state, e)
