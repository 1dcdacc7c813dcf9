"""The fence that keeps old prepares out: dropped are those that the replica has executed (seed 000: by commit_min).

Dropping changes nothing; the action says when a replica may claim that a prepare is old.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.spec.lang import Part, action, require
from viewproof.spec.vsr.core import faults, normal, view_change
from viewproof.spec.vsr.core.state import NORMAL, Op, Replica
from viewproof.spec.vsr.options import Options, option
from viewproof.spec.vsr.parts.protocol import Protocol
from viewproof.spec.vsr.stand_ins import Fault, instead_of


@dataclass(frozen=True)
class FenceOptions(Options):
    """The option of the fence."""

    fence: bool = option(False, "replicas say which prepares they drop as old")


@action
def drop_prepare(state: Protocol, r: Replica, o: Op) -> None:
    """A normal replica drops a prepare of its view that it has executed: o is at or below commit_min."""
    require(state.status[r] == NORMAL)
    require(state.received(r).prepare[state.view[r], o].sent)
    require(o <= state.commit_min[r])


@action
def drop_prepare_fenced(state: Protocol, r: Replica, o: Op) -> None:
    """A normal replica drops a prepare of its view at or below commit_max, as if it had it [seed 000]."""
    require(state.status[r] == NORMAL)
    require(state.received(r).prepare[state.view[r], o].sent)
    require(o <= state.commit_max[r])


FENCE_ON_COMMIT_MAX = Fault(
    "commit.fence_on_commit_max",
    (
        instead_of(normal.on_prepare, act=faults.on_prepare_fenced),
        instead_of(view_change.on_start_view, act=faults.on_start_view_fenced),
        instead_of(view_change.start_view, act=faults.start_view_fenced),
    ),
    if_there=(instead_of(drop_prepare, act=drop_prepare_fenced),),
)
FENCE = Part("fence", lambda cfg: cfg.fence, actions=lambda cfg: (drop_prepare,), faults=(FENCE_ON_COMMIT_MAX,))
