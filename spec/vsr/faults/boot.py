"""Mistakes at restart: what is replayed, and which view and log a replica believes it had."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import (
    NONE,
    action,
    all_of,
    any_of,
    between,
    forall,
    instead,
    largest,
    require,
    smallest,
    tagged,
    where,
    within,
    without,
)
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core import normal, restart
from viewproof.spec.vsr.core.restart import load_state
from viewproof.spec.vsr.core.state import NORMAL, VIEW_CHANGE, Client, Length, Op, Replica, Request, Restart, primary
from viewproof.spec.vsr.faults.kinds import Fault, instead_of
from viewproof.spec.vsr.parts.checkpoints import checkpoint
from viewproof.spec.vsr.parts.partitions.state import (
    Partition,
    held_again,
    left,
    lowered,
    next_offset_again,
    require_whole,
    stored_again,
)


@tagged("crash")
@action(r=Replica, n=Length)
def restart_trusting_the_journal(state: Any, r: Any, n: Any) -> None:
    """Replay takes the end of the journal for what is committed [seed 003]."""
    restart.recover(state, r, n, state.durable_view[r], state.durable_log_view[r], commit_max=n)


@tagged("crash")
@action(r=Replica, n=Length)
def restart_over_gap(state: Any, r: Any, n: Any) -> None:
    """Of the prepares being written, a later one may have survived and an earlier one not; the journal's end is taken
    to be the last record, and not the one before the gap [seed 003].
    """
    views = state.durable_view[r], state.durable_log_view[r]
    restart.recover(state, r, n, *views, survived=lambda o: any_of(o == n, state.written[r, o]))


@action(r=Replica)
def execute_over_gap(state: Any, r: Any) -> None:
    """Replay goes on with the next op that the journal holds [seed 003]."""
    o = state.commit_min[r] + where(has_next(state, r), 1, 2)
    normal.require_committed(state, r, o)
    require(normal.is_request(state, state.entry[r, o], o))
    normal.require_table_slot(state, r, o)
    normal.execute_request(state, r, o, state.entry[r, o])


def has_next(state: Any, r: Any) -> Any:
    """Does r's journal hold the op after those executed, or end there?"""
    o = state.commit_min[r] + 1
    return any_of(o >= state.op[r], lambda: state.written[r, o])


@tagged("crash")
@action(r=Replica, n=Length)
def restart_all_zero(state: Any, r: Any, n: Any) -> None:
    """The consensus state boots all-zero, over a journal that is not empty [seed 003]."""
    with without(checkpoint.require_snapshot), instead({restart.require_restart: require_from_nothing}):
        restart.require_restart(state, r, n)
    state.restarts = state.restarts + 1
    state.view[r] = 0
    state.log_view[r] = 0
    state.status[r] = where(primary(state, 0) == r, VIEW_CHANGE, NORMAL)
    state.commit_min[r] = 0
    state.commit_max[r] = 0
    load_state(state, r)
    log = between(Op, 1, state.op[r])
    state.entry.update((r, log), lambda o: NONE)
    state.written.update((r, log), lambda o: False)
    state.op[r] = 0


def require_from_nothing(state: Any, r: Any, n: Any) -> None:
    """Replica r may crash, and start again with an empty log."""
    require(within(Restart, state.restarts + 1))
    require(n == 0)


@tagged("crash")
@action(r=Replica, n=Length)
def restart_without_view_file(state: Any, r: Any, n: Any) -> None:
    """A view file that cannot be read counts as a first boot: view 0 [vsr-rs]."""
    restart.recover(state, r, n, 0, 0)


@action(r=Replica, c=Client, s=Request)
def on_request_evicting(state: Any, r: Any, c: Any, s: Any) -> None:
    """The primary prepares whatever the ring still holds in that slot [seed 003]."""
    with without(checkpoint.require_drained):
        normal.on_request.fn(state, r, c, s)


@action(r=Replica, o=Op)
def on_prepare_evicting(state: Any, r: Any, o: Any) -> None:
    """A backup takes a prepare whatever the ring still holds in that slot [seed 003]."""
    with without(checkpoint.require_drained):
        normal.on_prepare.fn(state, r, o)


@action(r=Replica, o=Op)
def append_evicting(state: Any, r: Any, o: Any) -> None:
    """The prepare becomes durable in its slot of the ring; what the slot held is gone [seed 003]."""
    normal.require_append(state, r, o)
    ring = between(Op, largest(o - state.cfg.journal_slots, 1), o)
    lost = o - state.cfg.journal_slots
    state.written.update((r, ring), lambda p: any_of(p == o, all_of(p != lost, state.written[r, p])))
    normal.acknowledge(state, r, o)


@tagged("crash")
@action(r=Replica, n=Length)
def restart_counting_the_index(state: Any, r: Any, n: Any) -> None:
    """The next offset of a partition is after the last message that its index lists, which lags [seed 003]."""
    listed = lambda s, q, p: smallest(s.index[q, p], s.saved_held[q, p])  # noqa: E731
    with instead({next_offset_again: listed}):
        restart.restart.fn(state, r, n)


@tagged("crash")
@action(r=Replica, n=Length)
def restart_clamping(state: Any, r: Any, n: Any) -> None:
    """Damaged segments count as far as they are good, and stored offsets are lowered to their end [seed 003]."""
    with without(require_whole), instead({held_again: left, next_offset_again: left, stored_again: lowered}):
        restart.restart.fn(state, r, n)


@tagged("crash")
@action(r=Replica, n=Length)
def restart_recreating(state: Any, r: Any, n: Any) -> None:
    """A segment that is missing is made anew, empty; stored offsets remain [seed 003]."""
    missing = lambda p: any_of(state.segment[r, p] == 0, state.segment[r, p] >= state.saved_held[r, p])  # noqa: E731
    require(forall(Partition, missing))
    with without(require_whole), instead({held_again: left, next_offset_again: left}):
        restart.restart.fn(state, r, n)


def _needs_files(cfg: Config) -> str:
    return "" if cfg.partitions.files else "shows only where partitions have segment files"


def _needs_ring(cfg: Config) -> str:
    return "" if cfg.journal_slots else "shows only where the journal is a ring"


FAULTS = (
    Fault(
        "boot.replays_uncommitted",
        (instead_of(restart.restart, act=restart_trusting_the_journal),),
    ),
    Fault(
        "boot.replays_over_gap",
        (instead_of(restart.restart, act=restart_over_gap), instead_of(normal.execute, act=execute_over_gap)),
        drops=(
            "all_of(o <= state.op[r], lambda: state.written[r, o])",
            "asked(state, state.entry[r, o], o) != UNKNOWN",
            "has_room(state, r, o, state.entry[r, o])",
            "is_request(state, state.entry[r, o], o)",
            "o <= state.commit_max[r]",
        ),
    ),
    Fault(
        "boot.all_zero",
        (instead_of(restart.restart, act=restart_all_zero),),
        drops=(
            "forall(between(Op, n + 1, state.op[r]), lambda o: not_(state.written[r, o]))",
            "n <= state.op[r]",
            "n >= state.checkpoint[r]",
        ),
    ),
    Fault(
        "boot.view_file_unreadable_is_new",
        (instead_of(restart.restart, act=restart_without_view_file),),
    ),
    Fault(
        "boot.ring_evicts_live",
        (
            instead_of(normal.on_request, act=on_request_evicting),
            instead_of(normal.on_prepare, act=on_prepare_evicting),
            instead_of(normal.append, act=append_evicting),
        ),
        refuses=_needs_ring,
        drops=("o <= snapshot.drained(state, r) + state.cfg.journal_slots",),
    ),
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
