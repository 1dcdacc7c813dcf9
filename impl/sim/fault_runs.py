"""Per fault of the replica the runs in which it shows, as `spec.vsr.fault_models` has a model per fault of the spec."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import SimProfile


@dataclass(frozen=True, slots=True)
class FaultRuns:
    """Runs of this profile ("": drawn from the seed) and size, from seed 0 on.

    `shows_in_trace`: the audit rejects the trace of a run. Else the replicas do nothing wrong, but stand still, and the
    simulator says so at the end of the run.
    """

    profile: str = ""
    replicas: int = 3
    requests: int = 80
    shows_in_trace: bool = True

    @property
    def sim_profile(self) -> SimProfile | None:
        """As `simulate` takes it."""
        return NAMED_PROFILES[self.profile] if self.profile else None

    def command(self, fault: str) -> str:
        """The command that makes these runs, but for their number and where the traces go."""
        words = ["vsr simulate --seed 0", f"--requests {self.requests}", f"--fault {fault}"]
        words += [f"--profile {self.profile}"] if self.profile else []
        words += [f"--replicas {self.replicas}"] if self.replicas != 3 else []
        return " ".join(words)


DRAWN = FaultRuns()
_STORM, _FAILING = FaultRuns("storm"), FaultRuns("failing-writes")
_SEGMENTS = FaultRuns("partitions")

FAULT_RUNS: dict[str, FaultRuns] = {
    "commit.apply_at_replicate": DRAWN,
    "commit.out_of_order": DRAWN,
    "commit.fence_on_commit_max": DRAWN,
    "commit.sequencer_before_append": _FAILING,
    "commit.checkpoint_at_commit_max": DRAWN,
    "commit.dvc_carries_commit_min_only": DRAWN,
    "commit.false_ack_after_start_view": DRAWN,
    "commit.stale_frontier": _STORM,
    "table.evict_by_commit_max": DRAWN,
    "table.evict_hash_order": DRAWN,
    "table.evict_forgets": DRAWN,
    "table.gap_accepted": DRAWN,
    "table.record_uncommitted": _STORM,
    "table.replayed_register": DRAWN,
    "table.reply_from_current_view": DRAWN,
    "view.even_quorum": FaultRuns(replicas=4),
    "view.scalar_dvc_truncates_hole": DRAWN,
    "view.blind_start_view_head": DRAWN,
    "view.log_view_at_merge": DRAWN,
    "view.pipeline_not_rebuilt": FaultRuns(shows_in_trace=False),
    "view.acks_survive_view": _STORM,
    "view.pipeline_after_repair": _STORM,
    "view.solo_keeps_view": FaultRuns("crashes", replicas=1),
    "nack.below_window": FaultRuns("rot"),
    "nack.clears_faulty": FaultRuns("rot"),
    "nack.not_nacked_is_present": FaultRuns("rot", replicas=2, shows_in_trace=False),
    "recover.empty_journal_is_new": FaultRuns("rot"),
    "recover.stale_nonce": FaultRuns("late"),
    "recover.head_from_old_start_view": FaultRuns("late"),
    "boot.replays_uncommitted": DRAWN,
    "boot.replays_over_gap": FaultRuns("crashes"),
    "boot.view_from_last_prepare": DRAWN,
    "boot.all_zero": DRAWN,
    "boot.offset_from_index": _SEGMENTS,
    "boot.offset_clamp": _SEGMENTS,
    "boot.recreates_missing_file": _SEGMENTS,
    "boot.swallows_sync_error": _FAILING,
    "boot.one_bad_entry_forever": FaultRuns("crashes", shows_in_trace=False),
    "boot.ring_evicts_live": FaultRuns("crashes"),
    "boot.slot_collision_panics": FaultRuns("crashes", shows_in_trace=False),
    "boot.checkpoint_before_drain": _FAILING,
    "boot.view_file_unreadable_is_new": FaultRuns("lost-superblocks"),
    "control.no_offset_advance": DRAWN,
    "control.applied_on_leader_only": DRAWN,
    "control.map_order_digest": DRAWN,
    "control.unsupported_member": DRAWN,
}
"""In the order of the catalogue."""
