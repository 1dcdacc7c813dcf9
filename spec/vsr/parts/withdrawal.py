"""Members may withdraw what they support: one that comes back without a feature that it had said yes to (seed 001).

So a primary asks anew before it proposes a feature, in a round of its own, and proposes on answers to that round only.
A member that withdraws after its answer may still meet the entry: it stops there, as at a boot with a feature enabled
that it does not support; nothing diverges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    exists,
    forall,
    invariant,
    message,
    not_,
    replaces,
    require,
    variable,
    watermark,
    within,
    witness,
)
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core.lemmas.words import each_view_entry
from viewproof.spec.vsr.core.normal import require_room
from viewproof.spec.vsr.core.state import NORMAL, Feature, Messages, Op, Replica, View, by_primary, primary
from viewproof.spec.vsr.options import Options, option
from viewproof.spec.vsr.parts import control
from viewproof.spec.vsr.parts.checkpoints.checkpoint import require_readable
from viewproof.spec.vsr.parts.control import Control
from viewproof.spec.vsr.stand_ins import Fault, instead_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@dataclass(frozen=True)
class WithdrawalOptions(Options):
    """The option of withdrawn features."""

    rounds: int = option(0, "how often a primary asks in a view what is supported (0: nobody withdraws)", least=0)


class Round(Index, lo=1):
    """Number of a round in which the primary of a view asks what is supported."""


def by_member_of(cfg: Config, view: View, k: Round, r: Replica, *_: Index) -> Replica:
    """the replica"""
    return r


class Rounds(Messages):
    """What primaries ask, and what members answer."""

    rounds_asked: Cells[View, Round] = watermark(
        by_primary, to="the backups", title="commit", doc="rounds of questions asked in a view; 0 = none"
    )
    said: Cells[tuple[View, Round, Replica, Feature], Bool] = message(
        by_member_of, to="the primary", title="supports", doc="the member answered that it supports it"
    )


class Supported(State):
    """What a member can do now."""

    supports: Cells[tuple[Replica, Feature], Bool] = variable("the member's process supports it")


class Withdrawals(Rounds, Supported, Control):
    """The state with withdrawn features."""

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> Withdrawals:
            """The messages that a replica has received."""


@action
def withdraw_feature(state: Withdrawals, r: Replica, f: Feature) -> None:
    """A member comes back without a feature; with one that its state has enabled it does not come back."""
    require(state.supports[r, f])
    require(state.enabled_at[r, f] == 0)
    state.supports[r, f] = False


@action
def ask_features(state: Withdrawals, r: Replica) -> None:
    """The primary asks all members what they support; answers to earlier rounds are void from now on."""
    v = state.view[r]
    require(state.status[r] == NORMAL)
    require(primary(state, v) == r)
    require(within(Round, state.rounds_asked[v] + 1))
    state.rounds_asked[v] = state.rounds_asked[v] + 1


@action
def say_feature(state: Withdrawals, r: Replica, k: Round, f: Feature) -> None:
    """A normal backup answers a round of its view: it supports the feature."""
    v = state.view[r]
    require(state.status[r] == NORMAL)
    require(primary(state, v) != r)
    require(k <= state.received(r).rounds_asked[v])
    require(state.supports[r, f])
    state.said[v, k, r, f] = True


def require_answers(state: Withdrawals, r: Replica, f: Feature) -> None:
    """The primary supports the feature, and all others said so in answer to the round that it asked last."""
    v, received = state.view[r], state.received(r)
    k = state.rounds_asked[v]
    require(state.supports[r, f])
    require(any_of(k != 0, state.cfg.replicas == 1))
    require(forall(Replica, lambda q: any_of(q == r, lambda: received.said[v, k, q, f])))


def require_supported_snapshot(state: Withdrawals, r: Replica, v: View, k: Op) -> None:
    """A replica takes no snapshot that has a feature enabled which it does not support."""
    enabled: Any = state.snapshot_enabled_at  # type: ignore[attr-defined]
    known = between(Feature, 1, state.cfg.features)
    require(forall(known, lambda f: any_of(enabled[v, k, f] == 0, state.supports[r, f])))


def supports_itself(s: Withdrawals, r: Replica, f: Feature) -> Bool:
    """A replica supports what it has enabled."""
    return s.supports[r, f]


@invariant("I14.asked", "asked_anew")
def asked_anew(s: Withdrawals) -> Bool:
    """A feature is proposed only if every other member said that it supports it in answer to the round asked last."""
    return each_view_entry(
        lambda v, o: forall(
            Feature,
            lambda f: any_of(
                s.after.prepare[v, o].feature != f,
                s.prepare[v, o].feature == f,
                lambda: forall(Replica, lambda q: any_of(q == primary(s, v), lambda: answered(s, v, q, f))),
            ),
        )
    )


def answered(s: Withdrawals, v: View, q: Replica, f: Feature) -> Bool:
    """Did q say so in answer to the round asked last in view v?"""
    return all_of(s.rounds_asked[v] != 0, lambda: s.said[v, s.rounds_asked[v], q, f])


@witness("I14.asked", "a feature was proposed although a member had withdrawn it")
def proposed_after_withdrawal(s: Withdrawals) -> Bool:
    """An entry enables a feature that a member said yes to, and does not support now."""
    return exists(
        View,
        lambda v: exists(
            Op,
            lambda o: exists(
                Feature,
                lambda f: all_of(
                    s.prepare[v, o].feature == f,
                    exists(Replica, lambda q: all_of(q != primary(s, v), not_(s.supports[q, f]))),
                ),
            ),
        ),
    )


@action
def propose_on_old_answers(state: Withdrawals, r: Replica, f: Feature) -> None:
    """The primary proposes on what members said in any round of any view."""
    received = state.received(r)
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(state.supports[r, f])
    require(
        forall(
            Replica,
            lambda q: any_of(
                q == r, lambda: exists(View, lambda w: exists(Round, lambda k: received.said[w, k, q, f]))
            ),
        )
    )
    control.require_missing(state, r, f)
    require_room(state, r, state.op[r] + 1)
    control.prepare_feature(state, r, f)


def _needs_rounds(cfg: Config) -> str:
    return "" if cfg.rounds else "shows only where members withdraw features"


FAULTS = (
    Fault(
        "control.stale_support",
        (instead_of(control.propose_feature, act=propose_on_old_answers),),
        refuses=_needs_rounds,
        drops=(
            "any_of(k != 0, state.cfg.replicas == 1)",
            "forall(Replica, lambda q: any_of(q == r, lambda: received.said[v, k, q, f]))",
        ),
    ),
)


WITHDRAWAL = Part(
    "withdrawal",
    lambda cfg: cfg.features > 0 and cfg.rounds > 0,
    state=lambda cfg: (Supported, Rounds),
    actions=lambda cfg: (withdraw_feature, ask_features, say_feature),
    changes=lambda cfg: (
        replaces(control.require_said, require_answers),
        replaces(control.is_supported, supports_itself),
        at(require_readable, require_supported_snapshot),
    ),
    invariants=lambda cfg: (asked_anew,),
    witnesses=lambda cfg: (proposed_after_withdrawal,),
    untrue=lambda cfg, crashes: (control.supported.id,),
    faults=FAULTS,
    ranges=lambda cfg, bounds: {"Round": cfg.rounds},
    models={"withdrawal": Model(Bounds(views=2, ops=1, requests=1), {"features": 1, "rounds": 2})},
)
