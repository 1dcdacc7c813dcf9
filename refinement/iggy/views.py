"""What lines of view changes mean: offers, merges, views that start, heads that are adopted."""

from __future__ import annotations

import itertools
from typing import Any

from viewproof.refinement.events import arrived, each, event, havoc, holds, may_step, one_of, shown, step, when
from viewproof.refinement.iggy.events import reaches, several, shows, told
from viewproof.spec.lang import NONE, all_of, any_of, as_index, between, count, forall, not_, value_of, where
from viewproof.spec.vsr.core.state import NORMAL, Op, Replica, primary
from viewproof.spec.vsr.parts.iggy import as_built, view_change
from viewproof.spec.vsr.parts.iggy.journal import on_prepare
from viewproof.spec.vsr.parts.repair.state import leading


@event(only=several, needs="replicas")
def view_changed(state: Any, e: Any) -> None:
    """A replica enters a later view, durably; what it offers later tells how far its log went."""
    r = e.node
    holds(state.view[r] == e.old, "a replica leaves the view that it was in", rule="I6")
    with when(shown(e.op)):
        reaches(state, r, e.op)
    with each(between(Op, state.op[r] + 1, where(shown(e.perhaps), e.perhaps, 0))) as o:
        may_step(on_prepare, r=r, o=o)
    with when(all_of(state.status[r] == NORMAL, primary(state, e.old) != r)), when(e.commit > state.commit_max[r]):
        told(state, r, e.old, e.commit)
    step(view_change.start_view_change, r=r, v=e.view)
    shows(state, e)


@event(only=several, needs="replicas")
def offered(state: Any, e: Any) -> None:
    """A replica offers its log for the view: log_view, head and commit number are its own."""
    r, v = e.node, e.view
    shows(state, e)
    holds(not_(leading(state, r)), "what was merged is not offered for the same view", rule="I12")
    sent = any_of(not_(shown(e.frames)), e.nth <= e.frames)
    holds(sent, "what is scheduled is sent, once", rule="step")
    offers(state, r, v)
    holds(state.dvc[v, r].op == e.op, "the head that it offers is its own", rule="I11")
    holds(state.dvc[v, r].commit == e.known, "the commit number that it offers is its own", rule="I11")


def offers(state: Any, r: Any, v: Any) -> None:
    """Replica r, which may have received every start_view_change, offers its log for view v; the message may be sent
    again.
    """
    with each(between(Replica, 0, state.cfg.replicas - 1)) as q, when(state.svc[v, q]):
        arrived(state.svc[v, q], by=r)
    with when(not_(state.dvc[v, r].sent)):
        step(view_change.do_view_change, r=r)
    arrived(state.dvc[v, r].sent, by=r)


@event(only=several, needs="replicas")
def unscheduled(state: Any, e: Any) -> None:
    """A do_view_change is sent that nobody scheduled in that tick."""
    holds(e.sender != e.node, "what is sent was scheduled", rule="step")


@event(only=several, needs="replicas")
def got_request(state: Any, e: Any) -> None:
    """A start_view_change is received."""
    arrived(state.svc[e.view, e.sender])


@event(only=several, needs="replicas")
def got_start(state: Any, e: Any) -> None:
    """A start_view is received."""
    arrived(state.sv[e.view].sent)


@event(only=several, needs="replicas")
def merged(state: Any, e: Any) -> None:
    """The new primary has a quorum of do_view_changes, and decides the log of its view."""
    r, v, quorum = e.node, e.view, state.cfg.quorum_view_change
    holds(state.view[r] == v, "it merges for its own view", rule="I6")
    offers(state, r, v)
    enough = count(Replica, lambda q: state.dvc[v, q].sent) >= quorum
    holds(enough, "a view is merged from a quorum of do_view_changes", rule="quorum")
    replicas = range(state.cfg.replicas)
    sizes = range(quorum, len(replicas) + 1)
    one_of(*(among(state, e, senders) for k in sizes for senders in itertools.combinations(replicas, k)))
    holds(keeps_executed(state, v, e.op), "what was executed anywhere is in the merged log", rule="I2")
    with when(state.commit_max[r] < e.commit):
        havoc(state.commit_max[r], least=e.commit, most=e.commit)


def among(state: Any, e: Any, senders: tuple[int, ...]) -> Any:
    """The merge of exactly these do_view_changes, each of which was sent, and may have arrived."""
    r, v = e.node, e.view

    def happened() -> None:
        for sender in senders:
            q, seen = as_index(Replica, sender), getattr(e, f"arrived_{sender}")
            came = any_of(r == q, not_(shown(seen)), seen == 1)
            holds(all_of(state.dvc[v, q].sent, came), "the do_view_change was sent, and came", rule="quorum")
            arrived(state.dvc[v, q].sent, by=r)
        holds(any_of(*(r == as_index(Replica, q) for q in senders)), "its own is among them", rule="quorum")
        one_of(*(lambda b=b: step(view_change.merge, r=r, b=as_index(Replica, b), n=e.op) for b in senders))
        largest = "the commit number of the merged log is the largest of those offered"
        holds(state.commit_max[r] <= e.commit, largest, rule="I4")

    return happened


def keeps_executed(state: Any, v: Any, n: Any) -> Any:
    """Does the merged log of view v, up to n, have all that was executed anywhere? What is behind n was not."""

    def kept(o: Any) -> Any:
        return any_of(state.first_executed[o] == NONE, state.first_executed[o] == state.sv[v].entry[o])

    return all_of(forall(between(Op, 1, n), kept), state.first_executed[n + 1] == NONE)


@event(only=several, needs="replicas")
def elected(state: Any, e: Any) -> None:
    """The new primary starts its view: the merged log is in its journal, what it lacked was fetched; its pipeline has
    an acknowledgement of its own for each op.
    """
    r, v = e.node, e.view
    holds(not_(state.sv[v].sent), "a view starts once", rule="I7")
    with each(between(Op, state.commit_min[r] + 1, state.sv[v].op)) as o, when(state.body[r, o] == NONE):
        step(as_built.fill_slot, r=r, o=o, w=value_of(state.sv[v].entry[o]))
    step(view_change.start_view, r=r)
    with each(between(Op, state.commit_min[r] + 1, state.op[r])) as o, when(state.ack[v, r, o] != NONE):
        arrived(state.ack[v, r, o])
    shows(state, e)


@event(only=several, needs="replicas")
def announced(state: Any, e: Any) -> None:
    """The primary sends start_view: with its head, and its commit number."""
    holds(state.op[e.node] == e.op, "the head that it sends is its own", rule="I11")
    shows(state, e)


@event(only=several, needs="replicas")
def adopted(state: Any, e: Any) -> None:
    """A backup adopts the head of a view that has started; what its journal has below may be anything."""
    r, v = e.node, e.view
    holds(v >= state.view[r], "views do not fall", rule="I6")
    left = any_of(not_(shown(e.old)), state.view[r] == e.old)
    holds(left, "a replica leaves the view that it was in", rule="I6")
    with when(v >= 1):
        arrived(state.sv[v].sent)
    with each(between(Op, where(v == 0, 1, state.sv[v].op + 1), e.op)) as o:
        arrived(state.prepare[v, o].client)
    step(as_built.on_start_view, r=r, v=v, n=e.op)
    with when(e.commit > state.commit_max[r]):
        told(state, r, v, e.commit)


@event(only=several, needs="replicas")
def dropped(state: Any, e: Any) -> None:
    """Entries that the view's log does not have are gone from the journal."""
    holds(e.op > state.commit_min[e.node], "what is executed is not dropped", rule="I5")
    step(as_built.drop_entries, r=e.node, o=e.op, n=e.last)


@event(only=several, needs="replicas")
def repaired(state: Any, e: Any) -> None:
    """A missing entry arrives: it is taken where the slot is empty."""
    r, o = e.node, e.op
    with when(all_of(state.status[r] == NORMAL, o <= state.op[r], state.body[r, o] == NONE)):
        step(as_built.fill_slot, r=r, o=o, w=value_of(state.entry[r, o]))
