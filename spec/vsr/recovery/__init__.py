"""How a replica comes back after a crash: by asking the others (`nonce`), or by its superblock (`superblock`)."""

from __future__ import annotations

from viewproof.spec.lang import Action
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.module import Module
from viewproof.spec.vsr.recovery import alone, invariants, nonce, superblock
from viewproof.spec.vsr.repair import invariants as repaired

BY_NONCE = (nonce.restart, nonce.replace_disk, nonce.answer_recovery, nonce.recover)
BY_SUPERBLOCK = (
    superblock.start_view_change,
    superblock.update_superblock,
    superblock.merge,
    superblock.send_start_view,
    superblock.start_view,
    superblock.on_start_view,
    superblock.answer_request_start_view,
    superblock.restart,
)


AFTER_RECOVERY = (invariants.recovered_later, invariants.unsure_of_head)
"""Witnesses that need a crash."""
AFTER_ROT = (repaired.ack_lost, invariants.unsure_of_head)
"""Witnesses that need a slot that goes bad."""


def of_nonce(cfg: Config) -> tuple[Action, ...]:
    """Crash and recovery by nonce; a cluster of one has nobody to ask."""
    return (alone.restart,) if cfg.replicas == 1 else BY_NONCE


def of_superblock(cfg: Config) -> tuple[Action, ...]:
    """View changes through the superblock, crash and recovery from it; a cluster of one changes its view by a crash."""
    return (alone.restart,) if cfg.replicas == 1 else BY_SUPERBLOCK


NONCE = Module(
    "nonce",
    lambda cfg: cfg.repair.recovery == "nonce",
    declare=nonce.declare,
    actions=of_nonce,
    invariants=lambda cfg: (invariants.promises_kept,),
    witnesses=lambda cfg: (invariants.recovered_later,) if cfg.replicas > 1 else (),
)
SUPERBLOCK = Module(
    "superblock",
    lambda cfg: cfg.repair.recovery == "superblock",
    declare=superblock.declare,
    actions=of_superblock,
    removes=lambda cfg: ("do_view_change", "nack", "discard", "drop_header"),
    invariants=lambda cfg: (invariants.superblock_leads, repaired.copy_known),
    witnesses=lambda cfg: (invariants.recovered_later, invariants.unsure_of_head) if cfg.replicas > 1 else (),
)
