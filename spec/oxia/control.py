"""Control entries: the log enables features, at one offset on every server (Oxia's pull request 882)."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import action, all_of, any_of, between, forall, not_, require, where
from viewproof.spec.oxia.state import LEADER, Feature, Offset, Replica, append_own, leader_of


@action(r=Replica, f=Feature)
def announce_feature(state: Any, r: Any, f: Any) -> None:
    """A member tells the coordinator that it supports a feature."""
    require(not_(state.supports[r, f]))
    for member, feature in sorted(state.cfg.unsupported):
        require(any_of(r != member, f != feature))
    state.supports[r, f] = True


@action(r=Replica, f=Feature)
def propose_feature(state: Any, r: Any, f: Any) -> None:
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


def enable(state: Any, r: Any, f: Any, o: Any) -> None:
    """Feature f, if it is one, is active on r from offset o on, unless it was before."""
    state.enabled_at.update(
        (r, Feature),
        lambda g: where(all_of(g == f, state.enabled_at[r, g] == 0), o, state.enabled_at[r, g]),
    )
