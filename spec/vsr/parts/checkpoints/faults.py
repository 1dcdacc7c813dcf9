"""Mistakes in checkpoints, in the ring of the journal, and in what a replica with a snapshot starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    action,
    all_of,
    any_of,
    as_index,
    between,
    instead,
    largest,
    require,
    tagged,
    where,
    within,
    without,
)
from viewproof.spec.vsr.core import normal, restart
from viewproof.spec.vsr.core.restart import load_state
from viewproof.spec.vsr.core.state import (
    NORMAL,
    VIEW_CHANGE,
    Client,
    Length,
    Op,
    Replica,
    Request,
    Restart,
    View,
    primary,
)
from viewproof.spec.vsr.parts.checkpoints import checkpoint, snapshot
from viewproof.spec.vsr.parts.checkpoints.snapshot import Checkpoints
from viewproof.spec.vsr.stand_ins import Fault, instead_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@tagged("crash")
@action
def restart_all_zero(state: Checkpoints, r: Replica, n: Length) -> None:
    """The consensus state boots all-zero, over a journal that is not empty [seed 003]."""
    with without(checkpoint.require_snapshot), instead({restart.require_restart: require_from_nothing}):
        restart.require_restart(state, r, n)
    state.restarts = state.restarts + 1
    state.view[r] = 0
    state.log_view[r] = 0
    state.status[r] = where(primary(state, as_index(View, 0)) == r, VIEW_CHANGE, NORMAL)
    state.commit_min[r] = 0
    state.commit_max[r] = 0
    load_state(state, r)
    log = between(Op, 1, state.op[r])
    state.entry.update((r, log), lambda o: NONE)
    state.written.update((r, log), lambda o: False)
    state.op[r] = 0


def require_from_nothing(state: Checkpoints, r: Replica, n: Op) -> None:
    """Replica r may crash, and start again with an empty log."""
    require(within(Restart, state.restarts + 1))
    require(n == 0)


@action
def on_request_evicting(state: Checkpoints, r: Replica, c: Client, s: Request) -> None:
    """The primary prepares whatever the ring still holds in that slot [seed 003]."""
    with without(checkpoint.require_drained):
        normal.on_request.fn(state, r, c, s)


@action
def on_prepare_evicting(state: Checkpoints, r: Replica, o: Op) -> None:
    """A backup takes a prepare whatever the ring still holds in that slot [seed 003]."""
    with without(checkpoint.require_drained):
        normal.on_prepare.fn(state, r, o)


@action
def append_evicting(state: Checkpoints, r: Replica, o: Op) -> None:
    """The prepare becomes durable in its slot of the ring; what the slot held is gone [seed 003]."""
    normal.require_append(state, r, o)
    ring = between(Op, largest(o - state.cfg.journal_slots, 1), o)
    lost = o - state.cfg.journal_slots
    state.written.update((r, ring), lambda p: any_of(p == o, all_of(p != lost, state.written[r, p])))
    normal.acknowledge(state, r, o)


def _needs_ring(cfg: Config) -> str:
    return "" if cfg.journal_slots else "shows only where the journal is a ring"


@action
def take_checkpoint_at_commit_max(state: Checkpoints, r: Replica) -> None:
    """The snapshot is tagged with commit_max, and the journal drained up to there [seed 000]."""
    o = state.commit_max[r]
    require(o > state.checkpoint[r])
    checkpoint.require_flushed(state, r)
    snapshot.save(state, r, o)
    snapshot.drain(state, r, o)


def _needs_checkpoints(cfg: Config) -> str:
    return "" if cfg.checkpoints else "shows only with checkpoints"


FAULTS = (
    Fault(
        "commit.checkpoint_at_commit_max",
        (instead_of(checkpoint.take_checkpoint, act=take_checkpoint_at_commit_max),),
        refuses=_needs_checkpoints,
        drops=("o > state.checkpoint[r]",),
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
        "boot.ring_evicts_live",
        (
            instead_of(normal.on_request, act=on_request_evicting),
            instead_of(normal.on_prepare, act=on_prepare_evicting),
            instead_of(normal.append, act=append_evicting),
        ),
        refuses=_needs_ring,
        drops=("o <= snapshot.drained(state, r) + state.cfg.journal_slots",),
    ),
)
