"""Control entries: the log enables features, at one offset on every server (Oxia's pull request 882)."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import (
    Index,
    Part,
    Schema,
    action,
    all_of,
    any_of,
    at,
    between,
    forall,
    implies,
    invariant,
    not_,
    require,
    up_to,
    where,
    witness,
)
from viewproof.spec.oxia.config import Config
from viewproof.spec.oxia.election import choose
from viewproof.spec.oxia.replication import come_back, execute
from viewproof.spec.oxia.state import LEADER, Offset, Replica, Term, append_own, leader_of, second


class Feature(Index, lo=1):
    """A feature that control entries enable."""


def declare(s: Schema, cfg: Config) -> None:
    """Declare the features of a server, what members said of theirs, and the control entries."""
    s.state("negotiated", (Term, Feature), doc="the coordinator told the term's leader that all members support it")
    s.state("enabled_at", (Replica, Feature), up_to(Offset), doc="offset where the feature became active; 0 = not")
    s.register("supports", (Replica, Feature), sender=lambda r, f: r, doc="handshake: the member supports it")
    s.register("feature_of", (Term, Replica, Offset), up_to(Feature), sender=second, doc="append: feature; 0 = a write")


@action
def announce_feature(state: Any, r: Replica, f: Feature) -> None:
    """A member tells the coordinator that it supports a feature."""
    require(not_(state.supports[r, f]))
    for member, feature in sorted(state.cfg.unsupported):
        require(any_of(r != member, f != feature))
    state.supports[r, f] = True


@action
def propose_feature(state: Any, r: Replica, f: Feature) -> None:
    """A leader proposes a feature that the coordinator negotiated for its term and that its database has not enabled;
    nobody waits for it.
    """
    require_to_propose(state, r, f)
    require(state.negotiated[state.term[r], f])
    propose_entry(state, r, f)


def require_to_propose(state: Any, r: Any, f: Any) -> None:
    """Server r leads, and f is neither enabled in its database nor by an entry that it has not applied."""
    require(state.status[r] == LEADER)
    require(state.enabled_at[r, f] == 0)
    pending = between(Offset, state.commit_min[r] + 1, state.head[r])
    require(forall(pending, lambda o: feature_at(state, r, o) != f))


def propose_entry(state: Any, r: Any, f: Any) -> None:
    """Leader r appends a control entry that enables f."""
    append_own(state, r)
    state.feature_of[state.term[r], r, state.head[r] + 1] = f


def feature_at(state: Any, r: Any, o: Any) -> Any:
    """The feature that the entry at o of r's log enables; 0 if it is a write."""
    entry = state.entry[r, o]
    return state.feature_of[entry, leader_of(state, entry), o]


def negotiate(state: Any, t: Any) -> None:
    """The coordinator tells the leader of term t which features every member supports."""
    state.negotiated.update((t, Feature), lambda f: forall(Replica, lambda q: state.supports[q, f]))


def enable_next(state: Any, r: Any, o: Any) -> None:
    """A control entry at o enables its feature on r."""
    enable(state, r, feature_at(state, r, o), o)


def forget_later(state: Any, r: Any, c: Any) -> None:
    """A database that is at c again has the features that were active there."""
    state.enabled_at.update((r, Feature), lambda f: where(state.enabled_at[r, f] <= c, state.enabled_at[r, f], 0))


def enable(state: Any, r: Any, f: Any, o: Any) -> None:
    """Feature f, if it is one, is active on r from offset o on, unless it was before."""
    state.enabled_at.update(
        (r, Feature),
        lambda g: where(all_of(g == f, state.enabled_at[r, g] == 0), o, state.enabled_at[r, g]),
    )


@invariant("I14", "same_features")
def same_features(s: Any) -> Any:
    """Servers that applied as much have the same features, enabled at the same offsets; every member supports them."""
    return forall(
        Replica,
        lambda r: forall(
            Feature,
            lambda f: all_of(
                implies(s.enabled_at[r, f] != 0, lambda: forall(Replica, lambda q: s.supports[q, f])),
                forall(
                    Replica,
                    lambda q: implies(s.commit_min[r] == s.commit_min[q], s.enabled_at[r, f] == s.enabled_at[q, f]),
                ),
            ),
        ),
    )


@witness("I14", "a feature is active at all members")
def enabled_everywhere(s: Any) -> Any:
    """Every server enabled feature 1."""
    return forall(Replica, lambda r: s.enabled_at[r, 1] != 0)


CONTROL = Part(
    "control",
    lambda cfg: cfg.features > 0,
    declare=declare,
    actions=lambda cfg: (announce_feature, propose_feature),
    changes=lambda cfg: (at(choose, negotiate), at(execute, enable_next), at(come_back, forget_later)),
    invariants=lambda cfg: (same_features,),
    witnesses=lambda cfg: (enabled_everywhere,),
)
