"""Mistakes in what a partition's files say after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import action, any_of, forall, instead, require, smallest, tagged, without
from viewproof.spec.vsr.core import restart
from viewproof.spec.vsr.core.state import Length, Replica
from viewproof.spec.vsr.parts.partitions.state import (
    Partition,
    Partitioned,
    held_again,
    left,
    lowered,
    next_offset_again,
    require_whole,
    stored_again,
)
from viewproof.spec.vsr.stand_ins import Fault, instead_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@tagged("crash")
@action
def restart_counting_the_index(state: Partitioned, r: Replica, n: Length) -> None:
    """The next offset of a partition is after the last message that its index lists, which lags [seed 003]."""
    listed = lambda s, q, p: smallest(s.index[q, p], s.saved_held[q, p])  # noqa: E731
    with instead({next_offset_again: listed}):
        restart.restart.fn(state, r, n)


@tagged("crash")
@action
def restart_clamping(state: Partitioned, r: Replica, n: Length) -> None:
    """Damaged segments count as far as they are good, and stored offsets are lowered to their end [seed 003]."""
    with without(require_whole), instead({held_again: left, next_offset_again: left, stored_again: lowered}):
        restart.restart.fn(state, r, n)


@tagged("crash")
@action
def restart_recreating(state: Partitioned, r: Replica, n: Length) -> None:
    """A segment that is missing is made anew, empty; stored offsets remain [seed 003]."""
    missing = lambda p: any_of(state.segment[r, p] == 0, state.segment[r, p] >= state.saved_held[r, p])  # noqa: E731
    require(forall(Partition, missing))
    with without(require_whole), instead({held_again: left, next_offset_again: left}):
        restart.restart.fn(state, r, n)


def _needs_files(cfg: Config) -> str:
    return "" if cfg.partitions.files else "shows only where partitions have segment files"


FAULTS = (
    Fault(
        "boot.offset_from_index",
        (instead_of(restart.restart, act=restart_counting_the_index),),
        refuses=_needs_files,
        unshown="segment files",
    ),
    Fault(
        "boot.offset_clamp",
        (instead_of(restart.restart, act=restart_clamping),),
        refuses=_needs_files,
        unshown="segment files",
        drops=("is_whole(state, r)",),
    ),
    Fault(
        "boot.recreates_missing_file",
        (instead_of(restart.restart, act=restart_recreating),),
        refuses=_needs_files,
        unshown="segment files",
        drops=("is_whole(state, r)",),
    ),
)
