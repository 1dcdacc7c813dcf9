"""Each fault of the commit path and of boot is caught by the simulator's own checkers, and only with the fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewproof.impl.groups.plane import Plane
from viewproof.impl.machine.partitions import Partitions, Reader
from viewproof.impl.sim import SimProfile, simulate
from viewproof.impl.sim.named_profiles import CRASHES as HARD

PARTITIONS = replace(HARD, plane=Plane.PARTITIONS)
HASTY = replace(
    HARD,
    checkpoint_interval=0,
    normal_timeout_ticks=14,
    view_change_timeout_ticks=20,
    jitter_ticks=8,
    restart_ticks_mean=40,
)
"""Views often end while a replica is down."""

CASES: dict[str, tuple[SimProfile, int, str]] = {
    "commit.fence_on_commit_max": (replace(HARD, checkpoint_interval=0), 20, "liveness"),
    "commit.sequencer_before_append": (replace(HARD, append_failure=0.05), 10, ""),
    "commit.checkpoint_at_commit_max": (HARD, 5, "bounds"),
    "commit.dvc_carries_commit_min_only": (HARD, 10, "bounds"),
    "commit.false_ack_after_start_view": (HARD, 5, "promises"),
    "commit.apply_at_replicate": (HARD, 10, ""),
    "commit.out_of_order": (HARD, 10, ""),
    "boot.replays_uncommitted": (HARD, 10, ""),
    "boot.replays_over_gap": (HASTY, 40, ""),
    "boot.all_zero": (HARD, 10, ""),
    "boot.view_from_last_prepare": (HARD, 10, "views"),
    "boot.view_file_unreadable_is_new": (replace(HARD, superblock_damage=0.2), 10, "views"),
    "boot.ring_evicts_live": (replace(HARD, snapshot_failure=0.8), 20, ""),
    "boot.checkpoint_before_drain": (replace(HARD, drain_failure=0.3), 20, ""),
    "boot.slot_collision_panics": (HARD, 10, "replica"),
    "boot.one_bad_entry_forever": (HARD, 10, "replica"),
    "boot.swallows_sync_error": (replace(HARD, sync_failure=0.5), 20, ""),
    "boot.offset_from_index": (PARTITIONS, 5, "offsets"),
    "boot.offset_clamp": (replace(PARTITIONS, snapshot_damage=0.5), 10, "offsets"),
    "boot.recreates_missing_file": (replace(PARTITIONS, snapshot_damage=0.5), 30, "offsets"),
}
"""Fault → profile that brings it out, seeds within which it must be caught, the checker that must do so ("": any)."""


@pytest.mark.parametrize("fault", CASES)
def test_each_fault_is_caught(fault: str) -> None:
    profile, seeds, checker = CASES[fault]
    for seed in range(seeds):
        result = simulate(seed, profile=profile, requests=100, faults=frozenset({fault}))
        if not result.ok and (not checker or checker in {failure.checker for failure in result.failures}):
            right = simulate(seed, profile=profile, requests=100)
            assert right.ok, right.failures
            return
    pytest.fail(f"{fault} was not caught in {seeds} seeds")


def test_a_store_that_never_goes_back_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Partitions.store_offset

    def store_largest(partitions: Partitions, reader: Reader, offset: int) -> bool:
        return store(partitions, reader, max(offset, partitions.offsets.get(reader, 0)))

    monkeypatch.setattr(Partitions, "store_offset", store_largest)
    found = [failure for seed in range(3) for failure in simulate(seed, profile=PARTITIONS, requests=500).failures]
    assert {failure.checker for failure in found} == {"offsets"}


def test_the_situations_are_reached() -> None:
    profile = replace(
        HARD,
        append_failure=0.05,
        snapshot_failure=0.3,
        drain_failure=0.3,
        superblock_failure=0.02,
        sync_failure=0.2,
        snapshot_damage=0.1,
        disk_full_interval_ticks=150,
    )
    seen: dict[str, int] = {}
    for seed in range(6):
        result = simulate(seed, profile=profile, requests=100)
        assert result.ok, result.failures
        for name, count in result.statistics.items():
            seen[name] = seen.get(name, 0) + count
    wanted = (
        "append_failed", "boots_refused", "checkpoint", "crashes_in_checkpoint", "disks_full", "drains_failed",
        "journal_wrapped", "restarts_from_checkpoint", "restarts_in_checkpoint", "snapshots_failed",
        "snapshots_installed", "snapshots_installed_in_view", "snapshots_repaired", "superblock_writes_failed",
    )  # fmt: skip
    assert [name for name in wanted if not seen.get(name)] == []
