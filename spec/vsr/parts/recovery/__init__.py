"""How a replica comes back after a crash: by asking the others (`nonce`), or by its superblock (`superblock`)."""

from __future__ import annotations

from viewproof.spec.lang import Change, Part, replaces
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core import invariants as core
from viewproof.spec.vsr.core import restart
from viewproof.spec.vsr.core.lemmas.words import asks_first
from viewproof.spec.vsr.parts.recovery import alone, invariants, nonce, superblock
from viewproof.spec.vsr.parts.repair import invariants as repaired
from viewproof.spec.vsr.parts.repair import view_change

AFTER_RECOVERY = (invariants.recovered_later, invariants.unsure_of_head)
"""Witnesses that need a crash."""
AFTER_ROT = (repaired.ack_lost, invariants.unsure_of_head)
"""Witnesses that need a slot that goes bad."""


def of_nonce(cfg: Config) -> tuple[Change, ...]:
    """Crash and recovery by nonce; a cluster of one has nobody to ask."""
    return (
        replaces(restart.restart, alone.restart if cfg.replicas == 1 else nonce.restart),
        replaces(core.view_monotone, invariants.promises_kept),
    )


def of_superblock(cfg: Config) -> tuple[Change, ...]:
    """View changes through the superblock, crash and recovery from it; a cluster of one changes its view by a crash."""
    others = (
        replaces(view_change.start_view_change, superblock.start_view_change),
        replaces(view_change.merge, superblock.merge),
        replaces(view_change.start_view, superblock.start_view),
        replaces(view_change.on_start_view, superblock.on_start_view),
    )
    return (
        replaces(restart.restart, alone.restart if cfg.replicas == 1 else superblock.restart),
        *(others if cfg.replicas > 1 else ()),
        replaces(core.view_monotone, invariants.superblock_leads),
        replaces(asks_first, superblock.asks_first),
    )


NONCE = Part(
    "nonce",
    lambda cfg: cfg.repair.recovery == "nonce",
    declare=nonce.declare,
    actions=lambda cfg: (nonce.replace_disk, nonce.answer_recovery, nonce.recover) if cfg.replicas > 1 else (),
    changes=of_nonce,
    witnesses=lambda cfg: (invariants.recovered_later,) if cfg.replicas > 1 else (),
)
BY_SUPERBLOCK = (superblock.update_superblock, superblock.send_start_view, superblock.answer_request_start_view)
SUPERBLOCK = Part(
    "superblock",
    lambda cfg: cfg.repair.recovery == "superblock",
    declare=superblock.declare,
    actions=lambda cfg: BY_SUPERBLOCK if cfg.replicas > 1 else (),
    changes=of_superblock,
    removes=lambda cfg: ("do_view_change", "nack", "discard", "drop_header"),
    invariants=lambda cfg: (repaired.copy_known,),
    witnesses=lambda cfg: (invariants.recovered_later, invariants.unsure_of_head) if cfg.replicas > 1 else (),
)
