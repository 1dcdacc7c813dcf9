"""Per fault a small model in which breadth-first search meets it within seconds."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.spec.lang import Spec
from viewproof.spec.vsr.models import Bounds, model


@dataclass(frozen=True)
class FaultModel:
    """Size of the model, and the invariant or goal (L1, L2) that the shortest counterexample breaks there.

    `model` is the name of the model that it is a size of; in `rounds` rounds the bounded search of z3 finds a break.
    """

    replicas: int
    bounds: Bounds
    breaks: str
    model: str = "core"
    rounds: int = 2

    def spec(self, *faults: str) -> Spec:
        """The model with these faults switched on."""
        return model(self.model, replicas=self.replicas, faults=faults, bounds=self.bounds)

    @property
    def stops_progress(self) -> bool:
        """Does the fault break a goal (`progress`), and no invariant?"""
        return self.breaks not in {p.id for p in self.spec().invariants}


FAULT_MODELS = {
    "commit.apply_at_replicate": FaultModel(3, Bounds(views=2, ops=1, requests=1, restarts=0), "I4"),
    "view.even_quorum": FaultModel(4, Bounds(views=2, ops=1, requests=1, restarts=0), "I2"),
    "boot.view_from_last_prepare": FaultModel(3, Bounds(views=2, ops=1, requests=1, restarts=1), "I6"),
    "state.getstate_truncates": FaultModel(3, Bounds(views=3, ops=1, requests=1, restarts=0), "I3"),
    "table.evict_by_commit_max": FaultModel(
        3, Bounds(views=2, ops=2, clients=2, requests=1, incarnations=1), "I9", "clients"
    ),
    "table.evict_forgets": FaultModel(
        2, Bounds(views=2, ops=3, clients=2, requests=1, incarnations=1), "I8", "clients"
    ),
    "table.gap_accepted": FaultModel(
        2, Bounds(views=2, ops=3, clients=1, requests=2, incarnations=1), "L2", "sessions"
    ),
    "table.record_uncommitted": FaultModel(3, Bounds(views=2, ops=1, requests=1), "I9", "iggy"),
    "table.replayed_register": FaultModel(
        2, Bounds(views=2, ops=3, clients=2, requests=1, incarnations=1), "I8", "sessions"
    ),
    "table.reply_from_current_view": FaultModel(
        3, Bounds(views=2, ops=2, clients=2, requests=1, incarnations=1), "I8", "clients"
    ),
    "commit.out_of_order": FaultModel(3, Bounds(views=1, ops=2, clients=2, requests=1), "I4"),
    "commit.fence_on_commit_max": FaultModel(3, Bounds(views=1, ops=1, requests=1), "L2.catch_up"),
    "commit.false_ack_after_start_view": FaultModel(3, Bounds(views=2, ops=1, requests=1), "I3"),
    "commit.checkpoint_at_commit_max": FaultModel(3, Bounds(views=1, ops=1, requests=1), "I5", "checkpoint"),
    "commit.dvc_carries_commit_min_only": FaultModel(
        2, Bounds(views=2, ops=2, clients=2, requests=1), "L1", "pipeline"
    ),
    "control.no_offset_advance": FaultModel(2, Bounds(views=2, ops=2, requests=1), "L2.catch_up", "control"),
    "control.applied_on_leader_only": FaultModel(2, Bounds(views=1, ops=1, requests=1), "I14", "control"),
    "control.unsupported_member": FaultModel(2, Bounds(views=1, ops=1, requests=1), "I14", "control"),
    "boot.replays_uncommitted": FaultModel(3, Bounds(views=1, ops=1, requests=1, restarts=1), "I13", "checkpoint"),
    "boot.replays_over_gap": FaultModel(
        3, Bounds(views=1, ops=2, clients=2, requests=1, restarts=1), "I4", "checkpoint"
    ),
    "boot.all_zero": FaultModel(3, Bounds(views=2, ops=1, requests=1, restarts=1), "I6", "core_restart"),
    "boot.view_file_unreadable_is_new": FaultModel(
        3, Bounds(views=2, ops=1, requests=1, restarts=1), "I6", "core_restart"
    ),
    **dict.fromkeys(
        ("boot.offset_from_index", "boot.offset_clamp", "boot.recreates_missing_file"),
        FaultModel(
            2, Bounds(views=1, ops=2, requests=2, restarts=1, rots=1, partitions=1, messages=1), "I15", "partitions", 4
        ),
    ),
    "boot.ring_evicts_live": FaultModel(2, Bounds(views=1, ops=2, clients=2, requests=1), "I3", "ring"),
    "view.log_view_at_merge": FaultModel(3, Bounds(views=3, ops=1, requests=1), "I12"),
    "view.pipeline_not_rebuilt": FaultModel(2, Bounds(views=2, ops=1, requests=1), "L2"),
    "view.acks_survive_view": FaultModel(2, Bounds(views=3, ops=1, requests=1), "I2", "repair"),
    "view.scalar_dvc_truncates_hole": FaultModel(3, Bounds(views=2, ops=1, requests=1), "I2", "repair"),
    "view.blind_start_view_head": FaultModel(3, Bounds(views=2, ops=1, requests=1), "I5", "repair"),
    "view.pipeline_after_repair": FaultModel(2, Bounds(views=3, ops=2, clients=2, requests=1), "I10", "repair", 3),
    "view.solo_keeps_view": FaultModel(1, Bounds(views=1, ops=1, clients=2, requests=1, restarts=1), "I7", "alone"),
    "state.view_before_newstate": FaultModel(3, Bounds(views=3, ops=1, requests=1), "I12"),
    "nack.below_window": FaultModel(3, Bounds(views=2, ops=2, clients=2, requests=1), "I11", "headers"),
    "nack.clears_faulty": FaultModel(3, Bounds(views=2, ops=1, requests=1, restarts=1, rots=1), "I3", "recovery"),
    "nack.not_nacked_is_present": FaultModel(
        3, Bounds(views=2, ops=1, requests=1, restarts=1, rots=1), "L1_copy", "superblock"
    ),
    "recover.empty_journal_is_new": FaultModel(
        3, Bounds(views=2, ops=1, requests=1, restarts=1, rots=1), "I6", "recovery"
    ),
    "recover.needs_normal_quorum": FaultModel(2, Bounds(views=2, ops=1, requests=1, restarts=2), "L1", "superblock"),
    "recover.stale_nonce": FaultModel(3, Bounds(views=2, ops=1, requests=1, restarts=2), "I11", "recovery"),
    "recover.any_primary": FaultModel(3, Bounds(views=2, ops=1, requests=1, restarts=1), "I6", "recovery"),
    "recover.head_from_old_start_view": FaultModel(
        3, Bounds(views=1, ops=1, requests=1, restarts=1, rots=1), "I3", "superblock"
    ),
    "diskless.forgets_promise": FaultModel(4, Bounds(views=2, ops=1, requests=1, restarts=1), "I6", "diskless"),
}
"""Fault id → model."""
