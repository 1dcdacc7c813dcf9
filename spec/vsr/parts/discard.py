"""A log that is damaged on disk: nacks, and the prepare that no other replica ever had (docs/recovery-and-repair.md).

A replica whose journal lost a prepare is down until it has it again, so there is no step for that. If enough others say
that they never had it, it was committed in no view up to the replica's log_view and never will be: it leaves the log,
with all that follows it. It says so nowhere but in its next do_view_change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    Bool,
    Cells,
    Index,
    Part,
    State,
    action,
    all_of,
    any_of,
    at,
    between,
    cases,
    count,
    exists,
    forall,
    ghost,
    implies,
    invariant,
    not_,
    replaces,
    require,
    some,
    tagged,
    value_of,
    watermark,
    within,
    witness,
)
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import invariants
from viewproof.spec.vsr.core.invariants import carries
from viewproof.spec.vsr.core.restart import start_again
from viewproof.spec.vsr.core.state import (
    VIEW_CHANGE,
    Entry,
    Messages,
    Op,
    Replica,
    Restart,
    View,
    entry_of_view,
    snapshot_op,
)
from viewproof.spec.vsr.options import Options, option
from viewproof.spec.vsr.parts.protocol import Protocol
from viewproof.spec.vsr.parts.repair.nacks import quorum_nack

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@dataclass(frozen=True)
class DiscardOptions(Options):
    """The option of discards."""

    discards: bool = option(False, "a replica discards a prepare that its journal lost and enough others never had")


def by_first(cfg: Config, r: Replica, *_: Index) -> Replica:
    """the replica"""
    return r


class Nacks(Messages):
    """Nacks."""

    nack: Cells[tuple[Replica, View, Op], View] = watermark(
        by_first,
        to="the primary of a later view",
        title="nack",
        doc="nack: view in which it says that it lacks the prepare (view, op); 0 = none",
    )


class Gone(State):
    """The history of what was discarded."""

    gone: Cells[tuple[Replica, View, Op], Bool] = ghost("it discarded the prepare (view, op)")


class Discards(Nacks, Gone, Protocol):
    """The state with discards."""

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> Nacks:
            """The messages that a replica has received."""


@action
def nack(state: Discards, r: Replica, o: Op, w: View) -> None:
    """A replica in a view change, which acknowledges nothing in an earlier view any more, does not have the prepare
    (w, o) in its log (seed 002; in normal status it might still come).
    """
    v = state.view[r]
    require(state.status[r] == VIEW_CHANGE)
    require(w < v)
    require(state.prepare[w, o].sent)
    require(state.entry[r, o] != some(w))
    require(state.nack[r, w, o] < v)
    state.nack[r, w, o] = v


@tagged("crash")
@action
def discard(state: Discards, r: Replica, o: Op) -> None:
    """A replica restarts without the prepare at o, which its journal lost, and without what follows it: q_n others,
    all of them beyond the views in which it may have acknowledged it, never had it (seed 002, nack arithmetic;
    its own copy is faulty and does not count).
    """
    require(within(Restart, state.restarts + 1))
    require(o <= state.op[r])
    base = snapshot_op(state, r)
    require(o > base)
    require(nacked(state, state.received(r), r, state.entry[r, o], o, state.durable_log_view[r]))
    lost = between(Op, o, state.op[r])
    state.gone.update(
        (r, between(View, 0, state.view[r]), lost),
        lambda w, p: any_of(state.gone[r, w, p], state.entry[r, p] == some(w)),
    )
    start_again(state, r, o - 1, state.durable_view[r], state.durable_log_view[r], base, cut=True)


def nacked(state: Discards, messages: Nacks, r: Replica, entry: Entry, o: Op, log_view: View) -> Bool:
    """Did q_n others say, in views above `log_view`, that they lack this entry at o?"""
    others = count(Replica, lambda q: all_of(q != r, messages.nack[q, value_of(entry), o] > log_view))
    return others >= quorum_nack(state.cfg)


def was_discarded(s: Discards, v: View, r: Replica, o: Op) -> Bool:
    """Did r discard what it acknowledged in view v at op o?"""
    return s.gone[r, value_of(s.ack[v, r, o]), o]


@invariant("I11", "honest_nack")
def honest_nack(s: Discards) -> Bool:
    """Who nacked an entry acknowledges it in no view below that of the nack, or a later view had overruled it by then;
    nothing that was discarded has a quorum of acknowledgements in a view.
    """
    return all_of(
        forall(
            Replica,
            lambda q: forall(
                View,
                lambda w: forall(
                    Op,
                    lambda o: forall(
                        View,
                        lambda v: implies(
                            all_of(v < s.nack[q, w, o], s.ack[v, q, o] == some(w)),
                            lambda: any_of(*void(s, q, w, o, v)),
                        ),
                    ),
                ),
            ),
        ),
        forall(
            Replica,
            lambda r: forall(
                View, lambda w: forall(Op, lambda o: implies(s.gone[r, w, o], lambda: is_dead(s, r, w, o)))
            ),
        ),
    )


@cases
def void(s: Discards, q: Replica, w: View, o: Op, v: View) -> tuple[Bool, ...]:
    """Why q's acknowledgement in view v of the prepare (w, o), which it nacked later, binds nobody: q discarded it, or
    a later view started without it.
    """
    return (s.gone[q, w, o], exists(View, lambda u: all_of(u > v, s.sv[u].sent, not_(carries(s, u, o, some(w))))))


def is_dead(s: Discards, r: Replica, w: View, o: Op) -> Bool:
    """No view in which r acknowledged the prepare (w, o) that it discarded has a quorum of acknowledgements for it."""
    return forall(
        View,
        lambda v: any_of(
            s.ack[v, r, o] != some(w),
            count(Replica, lambda q: s.ack[v, q, o] == some(w)) < s.cfg.quorum_replication,
            all_of(s.op[r] >= o, s.entry[r, o] == some(w)),
        ),
    )


def reaches_start_or_discarded(s: Discards, v: View, r: Replica) -> Bool:
    """Did r discard what its do_view_change of view v lacks of the log that its log_view x started with?"""
    x = s.dvc[v, r].log_view
    return forall(
        between(Op, s.dvc[v, r].op + 1, s.sv[x].op),
        lambda o: s.gone[r, value_of(entry_of_view(s, x, o)), o],
    )


@witness("I11", "a prepare was discarded")
def prepare_discarded(s: Discards) -> Bool:
    """A replica acknowledged a prepare, lost it, and discarded it."""
    return exists(
        Replica,
        lambda r: exists(
            View, lambda w: exists(Op, lambda o: all_of(s.gone[r, w, o], s.ack[w, r, o] == some(w), s.op[r] < o))
        ),
    )


DISCARDS = Part(
    "discard",
    lambda cfg: cfg.discards,
    state=lambda cfg: (Nacks, Gone),
    actions=lambda cfg: (nack, discard),
    changes=lambda cfg: (
        at(invariants.excused, was_discarded),
        replaces(invariants.reaches_start, reaches_start_or_discarded),
    ),
    invariants=lambda cfg: (honest_nack,),
    witnesses=lambda cfg: (prepare_discarded,),
    models={"discard": Model(Bounds(views=2, ops=1, requests=1, restarts=1), {"discards": True})},
)
