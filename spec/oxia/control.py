"""Control entries: the log enables features, at one offset on every server (Oxia's pull request 882)."""

from __future__ import annotations

from viewproof.spec.lang import (
    Bool,
    Cells,
    Index,
    Part,
    action,
    all_of,
    any_of,
    as_index,
    at,
    between,
    forall,
    implies,
    invariant,
    message,
    not_,
    require,
    variable,
    where,
    witness,
)
from viewproof.spec.oxia.config import Config
from viewproof.spec.oxia.election import choose
from viewproof.spec.oxia.replication import execute, start_fenced
from viewproof.spec.oxia.state import LEADER, Offset, Replica, Shard, Term, append_own, by_server, leader_of


class Feature(Index, lo=1):
    """A feature that control entries enable."""


def by_member(cfg: Config, r: Replica, *_: Index) -> Replica:
    """the server"""
    return r


class Features(Shard):
    """The features of a server, what members said of theirs, and the control entries."""

    negotiated: Cells[tuple[Term, Feature], Bool] = variable(
        "the coordinator told the term's leader that all members support it"
    )
    enabled_at: Cells[tuple[Replica, Feature], Offset] = variable("offset where the feature became active; 0 = not")
    supports: Cells[tuple[Replica, Feature], Bool] = message(
        by_member, to="the coordinator", title="handshake", doc="the member supports it"
    )
    feature_of: Cells[tuple[Term, Replica, Offset], Feature] = message(
        by_server, to="its followers", title="append", doc="feature; 0 = a write"
    )


@action
def announce_feature(state: Features, r: Replica, f: Feature) -> None:
    """A member tells the coordinator that it supports a feature."""
    require(not_(state.supports[r, f]))
    for member, feature in sorted(state.cfg.unsupported):
        require(any_of(r != member, f != feature))
    state.supports[r, f] = True


@action
def propose_feature(state: Features, r: Replica, f: Feature) -> None:
    """A leader proposes a feature that the coordinator negotiated for its term and that its database has not enabled;
    nobody waits for it.
    """
    require_to_propose(state, r, f)
    require(state.negotiated[state.term[r], f])
    propose_entry(state, r, f)


def require_to_propose(state: Features, r: Replica, f: Feature) -> None:
    """Server r leads, and f is neither enabled in its database nor by an entry that it has not applied."""
    require(state.status[r] == LEADER)
    require(state.enabled_at[r, f] == 0)
    pending = between(Offset, state.commit_min[r] + 1, state.head[r])
    require(forall(pending, lambda o: feature_at(state, r, o) != f))


def propose_entry(state: Features, r: Replica, f: Feature) -> None:
    """Leader r appends a control entry that enables f."""
    append_own(state, r)
    state.feature_of[state.term[r], r, state.head[r] + 1] = f


def feature_at(state: Features, r: Replica, o: Offset) -> Feature:
    """The feature that the entry at o of r's log enables; 0 if it is a write."""
    entry = state.entry[r, o]
    return state.feature_of[entry, leader_of(state, entry), o]


def negotiate(state: Features, t: Term) -> None:
    """The coordinator tells the leader of term t which features every member supports."""
    state.negotiated.update((t, Feature), lambda f: forall(Replica, lambda q: state.supports[q, f]))


def enable_next(state: Features, r: Replica, o: Offset) -> None:
    """A control entry at o enables its feature on r."""
    enable(state, r, feature_at(state, r, o), o)


def forget_later(state: Features, r: Replica, c: Offset) -> None:
    """A database that is at c again has the features that were active there."""
    state.enabled_at.update((r, Feature), lambda f: where(state.enabled_at[r, f] <= c, state.enabled_at[r, f], 0))


def enable(state: Features, r: Replica, f: Feature, o: Offset) -> None:
    """Feature f, if it is one, is active on r from offset o on, unless it was before."""
    state.enabled_at.update(
        (r, Feature),
        lambda g: where(all_of(g == f, state.enabled_at[r, g] == 0), o, state.enabled_at[r, g]),
    )


@invariant("I14", "same_features")
def same_features(s: Features) -> Bool:
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
def enabled_everywhere(s: Features) -> Bool:
    """Every server enabled feature 1."""
    return forall(Replica, lambda r: s.enabled_at[r, as_index(Feature, 1)] != 0)


CONTROL = Part(
    "control",
    lambda cfg: cfg.features > 0,
    state=lambda cfg: (Features,),
    actions=lambda cfg: (announce_feature, propose_feature),
    changes=lambda cfg: (at(choose, negotiate), at(execute, enable_next), at(start_fenced, forget_later)),
    invariants=lambda cfg: (same_features,),
    witnesses=lambda cfg: (enabled_everywhere,),
)
