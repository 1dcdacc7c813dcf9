"""Control entries: the log enables features, at one op on every replica (seed 001, Oxia).

A member says once which features it supports; a primary proposes those that every member supports, in its own name,
without waiting. Feature 1 chains the database checksum over the executed entries: `chain_from` stands for its value,
as the entries themselves are compared by I1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    BLANK,
    NONE,
    Bool,
    Cells,
    Index,
    Part,
    Sent,
    Spec,
    State,
    action,
    all_of,
    any_of,
    as_index,
    at,
    between,
    exists,
    field,
    forall,
    implies,
    invariant,
    message,
    not_,
    point,
    require,
    some,
    value_of,
    variable,
    where,
    witness,
)
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core.lemmas.words import each_replica, each_view_entry
from viewproof.spec.vsr.core.normal import is_request, note_executed, prepare, require_committed, require_room
from viewproof.spec.vsr.core.progress import proposals
from viewproof.spec.vsr.core.state import (
    EXECUTED,
    NORMAL,
    Entry,
    Feature,
    Messages,
    Op,
    Prepare,
    Replica,
    View,
    parent_of,
    primary,
)
from viewproof.spec.vsr.options import Options, option
from viewproof.spec.vsr.parts.protocol import Protocol
from viewproof.spec.vsr.stand_ins import Fault, instead_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@dataclass(frozen=True)
class ControlOptions(Options):
    """The options of control entries."""

    features: int = option(0, "how many features control entries can enable", least=0)
    unsupported: frozenset[tuple[int, int]] = option(
        frozenset(), "the pairs (member, feature) of which the member never says that it supports the feature"
    )


CHAINED_CHECKSUM = 1
"""The feature `database_checksum`."""


class ControlPrepare(Prepare):
    """A prepare may be of a control entry."""

    feature: Feature = field("the feature that it enables; 0 = it is no control entry", marks=True, default=BLANK)


def by_member(cfg: Config, r: Replica, *_: Index) -> Replica:
    """the replica"""
    return r


class Handshakes(Messages):
    """What members said of their features, once and for ever."""

    supports: Cells[tuple[Replica, Feature], Bool] = message(
        by_member, to="the primary", title="handshake", doc="the member said that it supports it"
    )


class ControlMessages(Messages):
    """The control entries."""

    prepare: Sent[tuple[View, Op], ControlPrepare]


class Features(State):
    """The features of a replica."""

    enabled_at: Cells[tuple[Replica, Feature], Op] = variable(
        "op at which the feature became active; 0 = it is not", tags=(EXECUTED,)
    )
    chain_from: Cells[Replica, Op] = variable(
        "op from which the database checksum is chained; 0 = it is not", tags=(EXECUTED,)
    )


class Control(ControlMessages, Handshakes, Features, Protocol):
    """The state with control entries."""

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> Handshakes:
            """The messages that a replica has received."""


def states(cfg: Config) -> tuple[type[State], ...]:
    """Where members withdraw what they said, it is said in rounds (`parts.withdrawal`)."""
    return (Features, *(() if cfg.rounds else (Handshakes,)), ControlMessages)


def feature_of(s: Control, entry: Entry, op: Op) -> Feature:
    """The feature that the prepare which an entry names enables; 0 if it is no control entry."""
    return s.prepare[value_of(entry), op].feature


def enablings(s: Spec) -> int:
    """How many ops of a bounded instance control entries take: one a feature."""
    return len(s.instance.members(Feature))


def is_no_control(state: Control, entry: Entry, o: Op) -> Bool:
    """Does the entry enable no feature?"""
    return feature_of(state, entry, o) == 0


@action
def announce_feature(state: Control, r: Replica, f: Feature) -> None:
    """A member says that it supports a feature."""
    require(not_(state.supports[r, f]))
    for member, feature in sorted(state.cfg.unsupported):
        require(any_of(r != member, f != feature))
    state.supports[r, f] = True


@action
def propose_feature(state: Control, r: Replica, f: Feature) -> None:
    """The primary prepares a control entry for a feature that every member supports, and that is neither enabled here
    nor proposed in its log (seed 001: negotiation, fire and forget).
    """
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require_said(state, r, f)
    require_missing(state, r, f)
    require_room(state, r, state.op[r] + 1)
    prepare_feature(state, r, f)


@point
def require_said(state: Control, r: Replica, f: Feature) -> None:
    """Every member said to primary r that it supports the feature."""
    received = state.received(r)
    require(forall(Replica, lambda q: received.supports[q, f]))


def require_missing(state: Control, r: Replica, f: Feature) -> None:
    """The feature is not enabled on r, and no entry of r's log that r has not executed enables it."""
    require(state.enabled_at[r, f] == 0)
    suffix = between(Op, state.commit_min[r] + 1, state.op[r])
    require(forall(suffix, lambda p: feature_of(state, state.entry[r, p], p) != f))


def prepare_feature(state: Control, r: Replica, f: Feature) -> None:
    """Primary r takes a control entry into its log."""
    o = state.op[r] + 1
    message = ControlPrepare(parent=parent_of(state, r, o), client=BLANK, request=BLANK, feature=f)
    prepare(state, r, o, message)


def next_feature(state: Control, r: Replica) -> Feature:
    """The feature that r's next op enables; 0 if that is no control entry."""
    o = state.commit_min[r] + 1
    return feature_of(state, state.entry[r, o], o)


@action
def execute_control(state: Control, r: Replica) -> None:
    """A replica executes the next committed op, a control entry: the feature is active from here on, if it was not
    already. A replica that does not know the feature stops here (seed 001).
    """
    o = require_control(state, r)
    note_executed(state, r, o, state.entry[r, o])
    enable(state, r, next_feature(state, r), o)


def require_control(state: Control, r: Replica) -> Op:
    """Replica r may execute its next op, a control entry whose feature it knows; returns the op."""
    o = state.commit_min[r] + 1
    require_committed(state, r, o)
    require(next_feature(state, r) != 0)
    require(state.supports[r, next_feature(state, r)])
    return o


def enable(state: Control, r: Replica, f: Feature, o: Op) -> None:
    """The feature becomes active on r at op o, unless it is."""
    state.enabled_at[r, f] = where(state.enabled_at[r, f] == 0, o, state.enabled_at[r, f])
    starts = all_of(f == CHAINED_CHECKSUM, state.chain_from[r] == 0)
    state.chain_from[r] = where(starts, o, state.chain_from[r])


@invariant("I14", "same_digest")
def same_digest(s: Control) -> Bool:
    """Equal executed op means equal enabled features, enabled at the same ops, and an equal checksum chain; a chain
    begins where its feature was enabled; every member supports what a replica has enabled.
    """
    return forall(
        Replica,
        lambda r: all_of(
            s.chain_from[r] == s.enabled_at[r, as_index(Feature, CHAINED_CHECKSUM)],
            forall(Replica, lambda q: implies(s.commit_min[r] == s.commit_min[q], lambda: same_features(s, r, q))),
            forall(Feature, lambda f: any_of(s.enabled_at[r, f] == 0, is_supported(s, r, f))),
        ),
    )


@point
def is_supported(s: Control, r: Replica, f: Feature) -> Bool:
    """Is the feature, which r has enabled, supported by all who must?"""
    return forall(Replica, lambda q: s.supports[q, f])


def same_features(s: Control, r: Replica, q: Replica) -> Bool:
    """Do two replicas agree on the features and on the checksum chain?"""
    return all_of(
        s.chain_from[r] == s.chain_from[q], forall(Feature, lambda f: s.enabled_at[r, f] == s.enabled_at[q, f])
    )


@witness("I14", "a feature was enabled across a view change")
def enabled_across_views(s: Control) -> Bool:
    """Two replicas enabled a feature, and one of them is in a later view than the one that proposed it."""
    return exists(
        Replica,
        lambda r: exists(
            Feature,
            lambda f: all_of(
                s.enabled_at[r, f] != 0,
                exists(Replica, lambda q: all_of(q != r, s.enabled_at[q, f] != 0)),
                lambda: s.executed[r, s.enabled_at[r, f]] < some(s.log_view[r]),
            ),
        ),
    )


@invariant("control.prepare_kind", "a prepare is of one kind")
def prepare_kind(s: Control) -> Bool:
    """A prepare of a client enables no feature."""
    return each_view_entry(lambda v, o: any_of(s.prepare[v, o].client == 0, s.prepare[v, o].feature == 0))


@invariant("control.supported", "what is proposed is supported")
def supported(s: Control) -> Bool:
    """Every member said that it supports a feature that was proposed."""
    return each_view_entry(
        lambda v, o: forall(
            Feature, lambda f: any_of(s.prepare[v, o].feature != f, forall(Replica, lambda q: s.supports[q, f]))
        )
    )


def features_as_of(s: Control, r: Replica) -> Bool:
    """Are r's features those of the prefix that it executed: each enabled by the first of its entries, and the chain by
    the first entry of feature 1?
    """
    limit = s.commit_min[r]

    def of_entry(f: Feature, o: Op) -> Bool:
        executed = s.first_executed[o] != NONE
        return all_of(
            any_of(o > limit, s.enabled_at[r, f] != o, all_of(executed, lambda: feature_of_first(s, o) == f)),
            any_of(
                o > limit,
                not_(executed),
                lambda: feature_of_first(s, o) != f,
                all_of(s.enabled_at[r, f] != 0, s.enabled_at[r, f] <= o),
            ),
        )

    return all_of(
        forall(Feature, lambda f: all_of(s.enabled_at[r, f] <= limit, forall(Op, lambda o: of_entry(f, o)))),
        s.chain_from[r] == s.enabled_at[r, as_index(Feature, CHAINED_CHECKSUM)],
    )


def feature_of_first(s: Control, o: Op) -> Feature:
    """The feature that what was executed first at o enables."""
    return feature_of(s, s.first_executed[o], o)


@invariant("control.features", "features are those of the executed prefix")
def features(s: Control) -> Bool:
    """A replica's features, and where its checksum chain began, are those of what was executed up to its commit_min."""
    return each_replica(lambda r: features_as_of(s, r))


LEMMAS = (prepare_kind, supported, features)


@action
def execute_without_advance(state: Control, r: Replica) -> None:
    """Executing a control entry enables the feature and leaves commit_min where it was [seed 001]."""
    o = require_control(state, r)
    enable(state, r, next_feature(state, r), o)


@action
def propose_and_enable(state: Control, r: Replica, f: Feature) -> None:
    """The leader enables the feature when it proposes it [seed 001]."""
    propose_feature.fn(state, r, f)
    enable(state, r, f, state.op[r] + 1)


@action
def execute_nothing(state: Control, r: Replica) -> None:
    """Executing a control entry has no effect: the leader enabled the feature already [seed 001]."""
    o = require_control(state, r)
    note_executed(state, r, o, state.entry[r, o])


@action
def propose_own_feature(state: Control, r: Replica, f: Feature) -> None:
    """The leader proposes a feature that it supports itself, whatever the other members support [seed 001]."""
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(state.supports[r, f])
    require_missing(state, r, f)
    require_room(state, r, state.op[r] + 1)
    prepare_feature(state, r, f)


def _needs_features(cfg: Config) -> str:
    return "" if cfg.features else "shows only with control entries"


FAULTS = (
    Fault(
        "control.no_offset_advance",
        (instead_of(execute_control, act=execute_without_advance),),
        refuses=_needs_features,
    ),
    Fault(
        "control.applied_on_leader_only",
        (
            instead_of(propose_feature, act=propose_and_enable),
            instead_of(execute_control, act=execute_nothing),
        ),
        refuses=_needs_features,
    ),
    Fault(
        "control.unsupported_member",
        (instead_of(propose_feature, act=propose_own_feature),),
        refuses=_needs_features,
        drops=(
            "forall(Replica, lambda q: received.supports[q, f])",
            "any_of(k != 0, state.cfg.replicas == 1)",
            "forall(Replica, lambda q: any_of(q == r, lambda: received.said[v, k, q, f]))",
        ),
    ),
)


CONTROL = Part(
    "control",
    lambda cfg: cfg.features > 0,
    state=states,
    actions=lambda cfg: (announce_feature, propose_feature, execute_control),
    changes=lambda cfg: (at(is_request, is_no_control), at(proposals, enablings)),
    invariants=lambda cfg: (same_digest,),
    witnesses=lambda cfg: (enabled_across_views,),
    lemmas=lambda cfg: LEMMAS,
    faults=FAULTS,
    ranges=lambda cfg, bounds: {"Feature": cfg.features},
    models={"control": Model(Bounds(views=2, ops=2, requests=1), {"features": 2, "unsupported": frozenset({(1, 2)})})},
)
