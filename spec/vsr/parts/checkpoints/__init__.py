"""Checkpoints: a snapshot, and a journal that is drained up to it, or a ring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import Change, Part, at, replaces
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import invariants, normal, progress, restart, state, view_change
from viewproof.spec.vsr.parts.checkpoints import checkpoint, faults, lemmas, snapshot

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def changes(cfg: Config) -> tuple[Change, ...]:
    """A snapshot is durable, sent and loaded; a journal that is a ring has slots."""
    ring = (
        at(normal.require_slot, checkpoint.require_drained),
        at(invariants.bounds_of, checkpoint.is_not_overwritten),
        replaces(progress.needs_no_later_view, checkpoint.needs_no_later_view),
    )
    return (
        replaces(state.durable, checkpoint.durable),
        replaces(state.snapshot_op, checkpoint.snapshot_op),
        replaces(restart.load_state, snapshot.load_state),
        replaces(invariants.starts_afresh, checkpoint.starts_afresh),
        at(restart.require_restart, checkpoint.require_snapshot),
        at(view_change.go_with_start_view, snapshot.send_snapshot),
        at(invariants.bounds_of, checkpoint.is_executed),
        *(ring if cfg.journal_slots else ()),
    )


SMALL = Bounds(views=2, ops=2, requests=2, restarts=1)
CHECKPOINTS = Part(
    "checkpoints",
    lambda cfg: cfg.checkpoints,
    state=snapshot.states,
    declare=snapshot.declare,
    actions=lambda cfg: (
        *(checkpoint.take_checkpoint, checkpoint.install_snapshot),
        *((checkpoint.drain_journal,) if cfg.drains_later else ()),
    ),
    changes=changes,
    invariants=lambda cfg: (checkpoint.replay_safe,),
    witnesses=checkpoint.witnesses,
    lemmas=lemmas.lemmas,
    needs={"crash": (checkpoint.executed_after_restart,)},
    faults=faults.FAULTS,
    models={
        "checkpoint": Model(SMALL, {"checkpoints": True}),
        "ring": Model(SMALL, {"checkpoints": True, "journal_slots": 1}),
        "drain": Model(SMALL, {"checkpoints": True, "journal_slots": 1, "drains_later": True}),
    },
)
