"""The fence that keeps old prepares out: dropped are those that the replica has executed (seed 000: by commit_min).

Dropping changes nothing; the action says when a replica may claim that a prepare is old.
"""

from __future__ import annotations

from viewproof.spec.lang import Part, action, require
from viewproof.spec.vsr.core.state import NORMAL, Core, Op, Replica


@action
def drop_prepare(state: Core, r: Replica, o: Op) -> None:
    """A normal replica drops a prepare of its view that it has executed: o is at or below commit_min."""
    require(state.status[r] == NORMAL)
    require(state.received(r).prepare[state.view[r], o].sent)
    require(o <= state.commit_min[r])


FENCE = Part("fence", lambda cfg: cfg.fence, actions=lambda cfg: (drop_prepare,))
