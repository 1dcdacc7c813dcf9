"""What lines of view changes mean: offers, merges, views that start, heads that are adopted."""

from __future__ import annotations

import itertools
from typing import Any

from viewproof.refinement.iggy.events import EVENTS, SHOWN, entry_view, reaches, shows, told
from viewproof.refinement.logs.record import (
    each,
    hold,
    lose,
    one_of,
    receive,
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
    not_,
    where,
)
from viewproof.spec.vsr.core.state import (
    NORMAL,
    Length,
    Op,
    Replica,
    View,
    primary,
)
from viewproof.spec.vsr.parts.iggy import as_built, view_change
from viewproof.spec.vsr.parts.iggy.journal import on_prepare

event = EVENTS.event


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
    hold("I11", state.dvc[v, r].op == e.op, "the head that it offers is its own")
    hold("I11", state.dvc[v, r].commit == e.known, "the commit number that it offers is its own")


def offers(state: Any, r: Any, v: Any) -> None:
    """Replica r offers its log for view v, once; the message may be sent again."""
    each(between(Replica, 0, state.cfg.replicas - 1), lambda q: hears(state, r, v, q))
    when(not_(state.dvc[v, r].sent), lambda: step(view_change.do_view_change, r=r))
    receive(r, state.dvc[v, r].sent)


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
    receive(e.node, state.sv[e.view].sent)


ARRIVED = {f"arrived_{q}": int for q in range(7)}
"""Did the do_view_change of that replica arrive, as a simulator's network shows?"""


@event(node=Replica, view=View, op=Length, commit=Length, **ARRIVED)
def merged(state: Any, e: Any) -> None:
    """The new primary has a quorum of do_view_changes, and decides the log of its view."""
    r, v = e.node, e.view
    hold("I6", state.view[r] == v, "it merges for its own view")
    offers(state, r, v)
    sent = count(Replica, lambda q: state.dvc[v, q].sent)
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
            hold("quorum", all_of(state.dvc[v, index(q)].sent, came), "the do_view_change was sent, and came")
            receive(r, state.dvc[v, index(q)].sent)
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
            lambda o: any_of(state.first_executed[o] == NONE, state.first_executed[o] == state.sv[v].entry[o]),
        ),
        state.first_executed[n + 1] == NONE,
    )


@event(**SHOWN)
def elected(state: Any, e: Any) -> None:
    """The new primary starts its view: the merged log is in its journal."""
    r, v = e.node, e.view
    hold("I7", not_(state.sv[v].sent), "a view starts once")
    each(
        between(Op, state.commit_min[r] + 1, state.sv[v].op),
        lambda o: when(state.body[r, o] == NONE, lambda: settles(state, r, v, o)),
    )
    step(view_change.start_view, r=r)
    each(between(Op, state.commit_min[r] + 1, state.op[r]), lambda o: counts_own(state, r, v, o))
    shows(state, e)


def settles(state: Any, r: Any, v: Any, o: Any) -> None:
    """New primary r fetched the entry at o of the log that it merged."""
    step(as_built.fill_slot, r=r, o=o, w=entry_view(state.sv[v].entry[o]))


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
    when(v >= 1, lambda: receive(r, state.sv[v].sent))
    each(between(Op, state.sv[v].op + 1, e.op), lambda o: receive(r, state.prepare[v, o].client))
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
