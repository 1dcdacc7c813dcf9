"""One pipeline for several namespaces, with a commit frontier for each (seed 000; docs/groups.md).

A primary does not look at acknowledgements when it commits. It keeps a frontier per namespace: how many of the entries
of its view, counted from where the view began, a quorum acknowledged, in their order. An op is committed if its place
among the entries of its namespace lies below the frontier, and all before it are. Places and frontiers begin anew with
every view.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from viewproof.spec.lang import (
    Bool,
    Cells,
    Index,
    Number,
    Part,
    SpecError,
    State,
    action,
    all_of,
    as_index,
    at,
    between,
    count,
    exists,
    forall,
    implies,
    invariant,
    not_,
    number_of,
    replaces,
    require,
    variable,
    without,
    witness,
)
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import normal, restart, view_change
from viewproof.spec.vsr.core.state import NORMAL, Entry, Log, Op, Replica, View, client_of, primary
from viewproof.spec.vsr.options import Options, option
from viewproof.spec.vsr.parts.protocol import Protocol
from viewproof.spec.vsr.stand_ins import Fault, instead_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@dataclass(frozen=True)
class FrontierOptions(Options):
    """The option of namespaces."""

    namespaces: int = option(0, "namespaces with a commit frontier each (0: acknowledgements count by op)", least=0)

    def go_together(self: Any) -> None:
        """Logs with gaps have rules of their own for what a view starts with."""
        if self.namespaces and self.repair.recovery:
            raise SpecError("repair does not go together with commit frontiers yet")


class Namespace(Index):
    """What entries belong to, a partition say."""


class Frontiers(State):
    """What a primary knows of the acknowledgements of its view."""

    frontier: Cells[tuple[Replica, Namespace], Op] = variable(
        "how many entries of the namespace, from where the view began, a quorum acknowledged"
    )
    began: Cells[Replica, Op] = variable("commit number with which the view began that the replica leads")


class Namespaced(Frontiers, Protocol):
    """The state with commit frontiers."""


def namespace_of(s: Namespaced, entry: Entry, o: Op) -> Namespace:
    """The namespace of an entry: in a bounded model each client writes to one."""
    return as_index(Namespace, client_of(s, entry, o) % s.cfg.namespaces)


def place_of(s: Namespaced, r: Replica, o: Op) -> Number:
    """How many entries of its namespace lie before op o in r's log, from where the view began."""
    n = namespace_of(s, s.entry[r, o], o)
    return count(between(Op, s.began[r] + 1, o - 1), lambda p: namespace_of(s, s.entry[r, p], p) == n)


def is_below_frontier(s: Namespaced, r: Replica, o: Op) -> Bool:
    """Does r take it that a quorum acknowledged op o, and all of its namespace before it?"""
    return place_of(s, r, o) < number_of(s.frontier[r, namespace_of(s, s.entry[r, o], o)])


@action
def raise_frontier(state: Namespaced, r: Replica, o: Op) -> None:
    """The primary learns that a quorum acknowledged op o: the frontier of its namespace rises over it, if it is next
    there.
    """
    n = namespace_of(state, state.entry[r, o], o)
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(o > state.commit_max[r])
    require(o <= state.op[r])
    require(place_of(state, r, o) == number_of(state.frontier[r, n]))
    require_quorum(state, r, o)
    state.frontier[r, n] = state.frontier[r, n] + 1


def require_quorum(state: Namespaced, r: Replica, o: Op) -> None:
    """A quorum acknowledged the entry at op o to r, the primary of its view."""
    v, received = state.view[r], state.received(r)
    require(count(Replica, lambda q: received.ack[v, q, o] == state.entry[r, o]) >= state.cfg.quorum_replication)


def require_below_frontier(state: Namespaced, r: Replica, o: Op) -> None:
    """Op o lies below the frontier of its namespace."""
    require(is_below_frontier(state, r, o))


def begin_pipeline(state: Namespaced, v: View, n: Op, entry: Log, known: Op) -> None:
    """Places count from what is known to be committed where view v begins."""
    state.began[primary(state, v)] = known


def begin_frontiers(state: Namespaced, v: View, n: Op, entry: Log, known: Op) -> None:
    """Nothing is acknowledged in view v where it begins."""
    state.frontier.update((primary(state, v), Namespace), lambda k: 0)


def forget_frontiers(state: Namespaced, r: Replica) -> None:
    """A process that starts again knows of no acknowledgement."""
    state.frontier.update((r, Namespace), lambda k: 0)
    state.began[r] = 0


@invariant("I4.frontier", "frontiers_backed")
def frontiers_backed(s: Namespaced) -> Bool:
    """What a normal primary may commit by its frontiers a quorum acknowledged in its view."""
    return forall(
        Replica,
        lambda r: implies(
            all_of(s.status[r] == NORMAL, primary(s, s.view[r]) == r),
            lambda: forall(
                between(Op, s.commit_max[r] + 1, s.op[r]),
                lambda o: implies(is_below_frontier(s, r, o), lambda: is_acknowledged(s, r, o)),
            ),
        ),
    )


@invariant("frontiers.within", "a frontier counts entries of the log")
def frontiers_within(s: Namespaced) -> Bool:
    """Where a normal primary's view began is committed, and the log has as many entries of a namespace above it as the
    frontier says.
    """
    return forall(
        Replica,
        lambda r: implies(
            all_of(s.status[r] == NORMAL, primary(s, s.view[r]) == r),
            lambda: all_of(
                s.began[r] <= s.commit_max[r],
                forall(Namespace, lambda n: number_of(s.frontier[r, n]) <= entries_of(s, r, n)),
            ),
        ),
    )


def entries_of(s: Namespaced, r: Replica, n: Namespace) -> Number:
    """How many entries of a namespace r's log has, from where the view began."""
    return count(between(Op, s.began[r] + 1, s.op[r]), lambda p: namespace_of(s, s.entry[r, p], p) == n)


LEMMAS = (frontiers_within,)


def is_acknowledged(s: Namespaced, r: Replica, o: Op) -> Bool:
    """Did a quorum acknowledge r's entry at op o in r's view?"""
    return count(Replica, lambda q: s.ack[s.view[r], q, o] == s.entry[r, o]) >= s.cfg.quorum_replication


@witness("I4.frontier", "an op lies below the frontier of its namespace, and waits for one of another namespace")
def frontier_ahead(s: Namespaced) -> Bool:
    """A primary's frontier ran ahead in one namespace."""
    return exists(
        Replica,
        lambda r: all_of(
            s.status[r] == NORMAL,
            primary(s, s.view[r]) == r,
            exists(
                between(Op, s.commit_max[r] + 2, s.op[r]),
                lambda o: all_of(
                    is_below_frontier(s, r, o),
                    not_(is_below_frontier(s, r, s.commit_max[r] + 1)),
                ),
            ),
        ),
    )


@action
def start_view_with_old_frontiers(state: Namespaced, r: Replica, b: Replica) -> None:
    """The frontiers of an older view that the new primary led go on: so many entries of the new one count as
    acknowledged [seed 000].
    """
    with without(begin_frontiers):
        view_change.start_view.fn(state, r, b)


def _needs_namespaces(cfg: Config) -> str:
    return "" if cfg.namespaces else "shows only where namespaces have commit frontiers"


FAULTS = (
    Fault(
        "commit.stale_frontier",
        (instead_of(view_change.start_view, act=start_view_with_old_frontiers),),
        refuses=_needs_namespaces,
    ),
)


FRONTIERS = Part(
    "frontiers",
    lambda cfg: cfg.namespaces > 0,
    state=lambda cfg: (Frontiers,),
    actions=lambda cfg: (raise_frontier,),
    changes=lambda cfg: (
        replaces(normal.require_acknowledged, require_below_frontier),
        at(view_change.send_start_view, begin_pipeline),
        at(view_change.send_start_view, begin_frontiers),
        at(restart.load_state, forget_frontiers),
    ),
    invariants=lambda cfg: (frontiers_backed,),
    witnesses=lambda cfg: (frontier_ahead,),
    lemmas=lambda cfg: LEMMAS,
    faults=FAULTS,
    ranges=lambda cfg, bounds: {"Namespace": cfg.namespaces - 1},
    models={
        "frontiers": Model(Bounds(views=3, ops=2, clients=2, requests=2), {"namespaces": 2}, replicas=2),
    },
)
