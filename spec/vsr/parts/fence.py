"""The fence that keeps old prepares out: dropped are those that the replica has executed (seed 000: by commit_min).

Dropping changes nothing; the action says when a replica may claim that a prepare is old.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import Part, action, require
from viewproof.spec.vsr.core.state import NORMAL, Op, Replica, is_prepared


@action(r=Replica, o=Op)
def drop_prepare(state: Any, r: Any, o: Any) -> None:
    """A normal replica drops a prepare of its view that it has executed: o is at or below commit_min."""
    require(state.status[r] == NORMAL)
    require(is_prepared(state, state.view[r], o, state.received(r)))
    require(o <= state.commit_min[r])


FENCE = Part("fence", lambda cfg: cfg.fence, actions=lambda cfg: (drop_prepare,))
