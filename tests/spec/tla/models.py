"""The models on which TLC has judged, and what it said. `docs/tla.md` shows the same table."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.spec.counts import FAULTS, Counts, counts_of, pinned
from tests.spec.tla.shelf import shelf
from viewproof.spec.lang import Spec
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS

TLC_VERSION = "2026.04.29.164809 (rev: cc6b616cf)"


@dataclass(frozen=True)
class Judged:
    """A model. `counts` are TLC's, too: distinct, generated, depth in steps (TLC's depth less 1)."""

    name: str
    sizes: dict[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """What is pinned of it."""
        return counts_of(self.name, **self.sizes)

    @property
    def title(self) -> str:
        """Name and sizes."""
        return ", ".join([self.name, *(f"{key} {value}" for key, value in self.sizes.items())])

    def spec(self) -> Spec:
        """Its specification."""
        return model(self.name, **self.sizes) if self.sizes else shelf()


@dataclass(frozen=True)
class Broken:
    """A fault and the operator that TLC names in the fault's own model; its counterexample has the pinned steps."""

    fault: str
    operator: str

    @property
    def steps(self) -> int:
        """Steps of a shortest counterexample."""
        return int(pinned()[FAULTS][self.fault])

    @property
    def title(self) -> str:
        """The fault."""
        return self.fault

    def spec(self) -> Spec:
        """The model of the fault."""
        return FAULT_MODELS[self.fault].spec(self.fault)


HOLDS = (
    Judged("shelf", {}),
    Judged("core", {"replicas": 2, "views": 2, "ops": 1, "requests": 1}),
    Judged("core", {"replicas": 2, "views": 2, "ops": 2, "requests": 2}),
    Judged("core", {"replicas": 1, "views": 2, "ops": 2, "clients": 2, "requests": 1}),
    Judged("core", {"replicas": 3, "views": 1, "ops": 2, "requests": 2}),
    Judged("core", {"replicas": 2, "views": 3, "ops": 1, "requests": 1}),
    Judged("core", {"replicas": 3, "views": 2, "ops": 1, "requests": 1}),
    Judged("core_restart", {"replicas": 2, "views": 2, "ops": 1, "requests": 1, "restarts": 1}),
    Judged(
        "core_restart",
        {"replicas": 1, "views": 2, "ops": 2, "clients": 2, "requests": 1, "restarts": 2},
    ),
    Judged("core_restart", {"replicas": 2, "views": 2, "ops": 2, "requests": 2, "restarts": 1}),
    Judged("clients", {"replicas": 2, "views": 1, "ops": 2}),
    Judged("clients", {"replicas": 2, "views": 2, "ops": 2}),
    Judged("clients", {"replicas": 1, "views": 2, "ops": 2, "restarts": 1}),
    Judged("sessions", {"views": 1, "ops": 3}),
    Judged("iggy", {"views": 2, "ops": 2}),
    Judged("iggy", {"replicas": 1, "views": 2, "ops": 2, "requests": 1, "restarts": 1, "slots": 1}),
    Judged("control", {"replicas": 2, "views": 2, "ops": 1, "requests": 1}),
    Judged("control", {"replicas": 2, "views": 2, "ops": 2, "requests": 1}),
    Judged("checkpoint", {"replicas": 2, "views": 2, "ops": 1, "requests": 1, "restarts": 1}),
    Judged("checkpoint", {"replicas": 2, "views": 2, "ops": 2, "requests": 2, "restarts": 1}),
    Judged("ring", {"replicas": 2, "views": 2, "ops": 2, "requests": 2, "restarts": 1}),
    Judged(
        "control_checkpoint",
        {"replicas": 2, "views": 2, "ops": 1, "requests": 1, "restarts": 1},
    ),
    Judged("pipeline", {"replicas": 2, "views": 2, "ops": 2, "clients": 2, "requests": 1}),
    Judged("drain", {"replicas": 2, "views": 2, "ops": 2, "requests": 2, "restarts": 1}),
    Judged("combined", {"replicas": 2, "views": 1, "ops": 2}),
    Judged("combined", {"replicas": 2, "views": 2, "ops": 1, "clients": 1}),
    Judged("partitions", {"replicas": 2, "ops": 1, "requests": 1}),
    Judged("partitions", {"replicas": 2, "views": 1, "messages": 1}),
    Judged("partitions", {"replicas": 1, "views": 1, "messages": 1, "partitions": 2, "rots": 0}),
    Judged("loss", {"replicas": 2}),
    Judged("repair", {"replicas": 2, "ops": 2, "requests": 2, "rots": 0}),
    Judged("recovery", {"views": 1, "rots": 0}),
    Judged("superblock", {"replicas": 2, "rots": 0}),
    Judged("alone", {"restarts": 2}),
)
BROKEN = (
    Broken("commit.apply_at_replicate", "I5_bounds"),
    Broken("view.even_quorum", "I2_durability"),
    Broken("boot.view_from_last_prepare", "Always_I6"),
    Broken("state.getstate_truncates", "I3_honest_ack"),
    Broken("table.evict_by_commit_max", "I9_table_is_function"),
    Broken("table.evict_forgets", "I8_exactly_once"),
    Broken("table.gap_accepted", "L2_requests_answered"),
    Broken("table.record_uncommitted", "I9_table_is_function"),
    Broken("table.replayed_register", "I8_exactly_once"),
    Broken("table.reply_from_current_view", "I8_exactly_once"),
    Broken("commit.out_of_order", "Always_I4"),
    Broken("commit.false_ack_after_start_view", "I3_honest_ack"),
    Broken("commit.checkpoint_at_commit_max", "I5_bounds"),
    Broken("control.applied_on_leader_only", "I14_same_digest"),
    Broken("control.unsupported_member", "I14_same_digest"),
    Broken("boot.replays_uncommitted", "Always_I13"),
    Broken("boot.replays_over_gap", "Always_I4"),
    Broken("boot.all_zero", "Always_I6"),
    Broken("boot.view_file_unreadable_is_new", "Always_I6"),
    Broken("boot.ring_evicts_live", "I3_honest_ack"),
    Broken("boot.offset_from_index", "I15_offsets"),
    Broken("boot.offset_clamp", "I15_offsets"),
    Broken("boot.recreates_missing_file", "I15_offsets"),
    Broken("view.log_view_at_merge", "I12_log_view_meaning"),
    Broken("view.acks_survive_view", "I2_durability"),
    Broken("view.scalar_dvc_truncates_hole", "I2_durability"),
    Broken("view.blind_start_view_head", "Always_I5"),
    Broken("view.solo_keeps_view", "Always_I7"),
    Broken("state.view_before_newstate", "I12_log_view_meaning"),
    Broken("nack.below_window", "Always_I11"),
    Broken("nack.clears_faulty", "I3_honest_ack"),
    Broken("nack.not_nacked_is_present", "L1_copy_copy_known"),
    Broken("recover.empty_journal_is_new", "Always_I6"),
    Broken("recover.any_primary", "Always_I6"),
    Broken("recover.head_from_old_start_view", "I3_honest_ack"),
    Broken("diskless.forgets_promise", "Always_I6"),
)
