"""The models on which TLC has judged, and what it said. `docs/tla.md` shows the same table."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.spec.tla.shelf import shelf
from viewproof.spec.lang import Spec
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS

TLC_VERSION = "2026.04.29.164809 (rev: cc6b616cf)"


@dataclass(frozen=True)
class Judged:
    """A model and TLC's counts: distinct, generated, depth in steps (TLC's depth less 1)."""

    name: str
    sizes: dict[str, int] = field(default_factory=dict)
    counts: tuple[int, int, int] = (0, 0, 0)

    @property
    def title(self) -> str:
        """Name and sizes."""
        return ", ".join([self.name, *(f"{key} {value}" for key, value in self.sizes.items())])

    def spec(self) -> Spec:
        """Its specification."""
        return model(self.name, **self.sizes) if self.sizes else shelf()


@dataclass(frozen=True)
class Broken:
    """A fault and TLC's answer in the fault's own model: the operator it names, steps of its counterexample."""

    fault: str
    operator: str
    steps: int

    @property
    def title(self) -> str:
        """The fault."""
        return self.fault

    def spec(self) -> Spec:
        """The model of the fault."""
        return FAULT_MODELS[self.fault].spec(self.fault)


HOLDS = (
    Judged("shelf", {}, (262, 1_382, 6)),
    Judged("core", {"replicas": 2, "views": 2, "ops": 1, "requests": 1}, (208, 350, 14)),
    Judged("core", {"replicas": 2, "views": 2, "ops": 2, "requests": 2}, (968, 1_848, 20)),
    Judged("core", {"replicas": 1, "views": 2, "ops": 2, "clients": 2, "requests": 1}, (296, 380, 11)),
    Judged("core", {"replicas": 3, "views": 1, "ops": 2, "requests": 2}, (1_036, 4_535, 17)),
    Judged("core", {"replicas": 2, "views": 3, "ops": 1, "requests": 1}, (2_356, 3_961, 20)),
    Judged("core", {"replicas": 3, "views": 2, "ops": 1, "requests": 1}, (12_649, 34_390, 20)),
    Judged("core_restart", {"replicas": 2, "views": 2, "ops": 1, "requests": 1, "restarts": 1}, (770, 1_639, 16)),
    Judged(
        "core_restart",
        {"replicas": 1, "views": 2, "ops": 2, "clients": 2, "requests": 1, "restarts": 2},
        (2_412, 3_283, 17),
    ),
    Judged("core_restart", {"replicas": 2, "views": 2, "ops": 2, "requests": 2, "restarts": 1}, (5_381, 12_005, 23)),
    Judged("clients", {"replicas": 2, "views": 1, "ops": 2}, (229, 977, 13)),
    Judged("clients", {"replicas": 2, "views": 2, "ops": 2}, (6_941, 23_730, 21)),
    Judged("clients", {"replicas": 1, "views": 2, "ops": 2, "restarts": 1}, (1_589, 3_917, 16)),
    Judged("sessions", {"views": 1, "ops": 3}, (6_341, 54_385, 19)),
    Judged("iggy", {"views": 2, "ops": 2}, (6_957, 24_116, 21)),
    Judged("iggy", {"replicas": 1, "views": 2, "ops": 2, "requests": 1, "restarts": 1, "slots": 1}, (1_167, 2_745, 16)),
    Judged("control", {"replicas": 2, "views": 2, "ops": 1, "requests": 1}, (2_056, 6_151, 17)),
    Judged("control", {"replicas": 2, "views": 2, "ops": 2, "requests": 1}, (11_844, 32_415, 24)),
    Judged("checkpoint", {"replicas": 2, "views": 2, "ops": 1, "requests": 1, "restarts": 1}, (1_303, 2_899, 18)),
    Judged("checkpoint", {"replicas": 2, "views": 2, "ops": 2, "requests": 2, "restarts": 1}, (25_251, 62_822, 26)),
    Judged("ring", {"replicas": 2, "views": 2, "ops": 2, "requests": 2, "restarts": 1}, (5_732, 12_393, 27)),
    Judged(
        "control_checkpoint",
        {"replicas": 2, "views": 2, "ops": 1, "requests": 1, "restarts": 1},
        (6_477, 19_613, 20),
    ),
    Judged("pipeline", {"replicas": 2, "views": 2, "ops": 2, "clients": 2, "requests": 1}, (3_589, 7_642, 21)),
    Judged("drain", {"replicas": 2, "views": 2, "ops": 2, "requests": 2, "restarts": 1}, (8_891, 20_688, 31)),
    Judged("combined", {"replicas": 2, "views": 1, "ops": 2}, (5_102, 25_017, 18)),
    Judged("combined", {"replicas": 2, "views": 2, "ops": 1, "clients": 1}, (1_762, 5_442, 18)),
    Judged("partitions", {"replicas": 2, "ops": 1, "requests": 1}, (16_972, 42_524, 23)),
    Judged("partitions", {"replicas": 2, "views": 1, "messages": 1}, (19_709, 58_740, 26)),
    Judged("partitions", {"replicas": 1, "views": 1, "messages": 1, "partitions": 2, "rots": 0}, (527, 598, 15)),
    Judged("loss", {"replicas": 2}, (3_399, 7_933, 19)),
    Judged("repair", {"replicas": 2, "ops": 2, "requests": 2, "rots": 0}, (3_131, 6_103, 27)),
    Judged("recovery", {"views": 1, "rots": 0}, (5_810, 17_378, 17)),
    Judged("superblock", {"replicas": 2, "rots": 0}, (5_168, 11_480, 24)),
    Judged("alone", {"restarts": 2}, (5_167, 7_401, 15)),
)
BROKEN = (
    Broken("commit.apply_at_replicate", "I5_bounds", 2),
    Broken("view.even_quorum", "I2_durability", 8),
    Broken("boot.view_from_last_prepare", "Always_I6", 2),
    Broken("state.getstate_truncates", "I3_honest_ack", 8),
    Broken("table.evict_by_commit_max", "I9_table_is_function", 8),
    Broken("table.evict_forgets", "I8_exactly_once", 14),
    Broken("table.gap_accepted", "L2_requests_answered", 10),
    Broken("table.record_uncommitted", "I9_table_is_function", 1),
    Broken("table.replayed_register", "I8_exactly_once", 10),
    Broken("table.reply_from_current_view", "I8_exactly_once", 11),
    Broken("commit.out_of_order", "Always_I4", 5),
    Broken("commit.false_ack_after_start_view", "I3_honest_ack", 2),
    Broken("commit.checkpoint_at_commit_max", "I5_bounds", 5),
    Broken("control.applied_on_leader_only", "I14_same_digest", 3),
    Broken("control.unsupported_member", "I14_same_digest", 6),
    Broken("boot.replays_uncommitted", "Always_I13", 4),
    Broken("boot.replays_over_gap", "Always_I4", 11),
    Broken("boot.all_zero", "Always_I6", 2),
    Broken("boot.view_file_unreadable_is_new", "Always_I6", 2),
    Broken("boot.ring_evicts_live", "I3_honest_ack", 4),
    Broken("boot.offset_from_index", "I15_offsets", 9),
    Broken("boot.offset_clamp", "I15_offsets", 10),
    Broken("boot.recreates_missing_file", "I15_offsets", 10),
    Broken("view.log_view_at_merge", "I12_log_view_meaning", 8),
    Broken("view.acks_survive_view", "I2_durability", 11),
    Broken("view.scalar_dvc_truncates_hole", "I2_durability", 10),
    Broken("view.blind_start_view_head", "Always_I5", 2),
    Broken("view.solo_keeps_view", "Always_I7", 3),
    Broken("state.view_before_newstate", "I12_log_view_meaning", 10),
    Broken("nack.below_window", "Always_I11", 11),
    Broken("nack.clears_faulty", "I3_honest_ack", 8),
    Broken("nack.not_nacked_is_present", "L1_copy_copy_known", 10),
    Broken("recover.empty_journal_is_new", "Always_I6", 5),
    Broken("recover.any_primary", "Always_I6", 10),
    Broken("recover.head_from_old_start_view", "I3_honest_ack", 7),
    Broken("diskless.forgets_promise", "Always_I6", 7),
)
