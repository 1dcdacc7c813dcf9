"""Simulated runs over disks that rot: those of a right build conform, those with faults of recovery or nacks do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from impl.sim import SimProfile, simulate
from refinement.checker import check_run
from refinement.verdict import AuditOptions, RunVerdict
from tests.refinement.traces import load

ROTTEN = SimProfile(
    loss=0.05,
    crash_interval_ticks=100,
    restart_ticks_mean=40,
    crash_all=0.1,
    crash_in_write=0.1,
    slow_write=0.1,
    pipeline_max=4,
    checkpoint_interval=10,
    journal_slots=20,
    snapshot_chunk_bytes=300,
    ring=True,
    rot=0.8,
    lost_write=0.05,
    misdirected_write=0.05,
)
"""Most crashes damage the journal, and some writes do not arrive."""

LATE = replace(
    ROTTEN,
    late=0.9,
    late_ticks_max=150,
    delay_ticks_mean=0.5,
    repeat=0.3,
    restart_ticks_mean=5,
    crash_interval_ticks=30,
    crash_all=0.0,
    crash_primary=0.0,
    normal_timeout_ticks=200,
    lost_write=0.0,
    misdirected_write=0.0,
    rot=1.0,
    checkpoint_interval=50,
    journal_slots=60,
)
"""One replica at a time, while views last, and old messages come late."""

CASES: dict[str, tuple[SimProfile, int, range]] = {
    "nack.clears_faulty": (ROTTEN, 3, range(4)),
    "recover.empty_journal_is_new": (ROTTEN, 3, range(7, 12)),
    "recover.head_from_old_start_view": (LATE, 3, range(6, 9)),
    "view.solo_keeps_view": (replace(ROTTEN, rot=0.0), 1, range(3)),
}
"""Fault → profile, replicas, seeds within which the audit must reject a run."""


def judged(directory: Path, seed: int, profile: SimProfile, replicas: int, fault: str = "") -> tuple[RunVerdict, bool]:
    """The audit's verdict on a run, and the simulator's."""
    faults = frozenset({fault} if fault else set())
    result = simulate(seed, replicas=replicas, profile=profile, requests=60, faults=faults, out=directory)
    assert result.trace is not None
    return check_run(result.run, load(result.trace), AuditOptions()), result.ok


@pytest.mark.parametrize("fault", CASES)
def test_the_audit_rejects_each_fault(fault: str, tmp_path: Path) -> None:
    profile, replicas, seeds = CASES[fault]
    for seed in seeds:
        verdict, _ = judged(tmp_path / fault, seed, profile, replicas, fault)
        if verdict.verdict == "violates":
            right, ok = judged(tmp_path / "right", seed, profile, replicas)
            assert (right.verdict, ok) == ("conforms", True)
            return
    pytest.fail(f"{fault} was not rejected in {len(seeds)} seeds")


def test_nacks_that_do_not_count_stop_two_replicas() -> None:
    profile = replace(ROTTEN, liveness_ticks_max=3_000)
    for seed in range(6, 12):
        result = simulate(
            seed, replicas=2, profile=profile, requests=60, faults=frozenset({"nack.not_nacked_is_present"})
        )
        if not result.ok:
            assert {failure.checker for failure in result.failures} == {"liveness"}
            assert simulate(seed, replicas=2, profile=profile, requests=60).ok
            return
    pytest.fail("nack.not_nacked_is_present was not caught")


@pytest.mark.parametrize("replicas", [2, 3, 5])
def test_runs_over_rotten_disks_conform(replicas: int, tmp_path: Path) -> None:
    met: Counter[str] = Counter()
    for seed in range(3):
        result = simulate(seed, replicas=replicas, profile=ROTTEN, requests=60, out=tmp_path)
        assert result.ok, result.failures
        assert result.trace is not None
        verdict = check_run(result.run, load(result.trace), AuditOptions())
        assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)
        met.update(result.statistics)
    for situation in ("boots_damaged", "decision_eql", "decision_fix", "decision_vsr", "decision_cut", "rot_prepare"):
        assert met[situation], situation
