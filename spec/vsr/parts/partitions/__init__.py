"""Partitions of messages: appends, stored offsets, segments and indexes (docs/groups.md)."""

from __future__ import annotations

from viewproof.spec.lang import Change, Part, at
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core import normal, restart
from viewproof.spec.vsr.parts.checkpoints import checkpoint, snapshot
from viewproof.spec.vsr.parts.partitions import actions, invariants, lemmas, state


def changes(cfg: Config) -> tuple[Change, ...]:
    """An op is executed once it is known what it asks; messages survive a restart in their files."""
    files = (at(checkpoint.require_flushed, state.require_flushed), at(restart.require_restart, state.require_whole))
    return (
        at(normal.require_committed, state.require_known),
        at(normal.note_executed, state.apply),
        at(restart.load_state, state.load_partitions),
        at(snapshot.install_state, state.take_messages),
        *(files if cfg.partitions.files else ()),
    )


PARTITIONS = Part(
    "partitions",
    lambda cfg: cfg.partitions.count > 0,
    declare=state.declare,
    actions=actions.of,
    changes=changes,
    invariants=lambda cfg: (invariants.offsets,),
    witnesses=invariants.witnesses,
    lemmas=lambda cfg: lemmas.LEMMAS,
)
