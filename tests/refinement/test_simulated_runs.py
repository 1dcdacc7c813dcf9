"""The replica under faults conforms to the spec, and its known mistakes are found by the audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from impl.sim.run import simulate
from refinement.checker import check_run
from refinement.verdict import AuditOptions, RunVerdict
from tests.refinement.traces import load

FAULT_REPLICAS = {
    "commit.apply_at_replicate": 3,
    "view.even_quorum": 4,
    "boot.view_from_last_prepare": 3,
    "commit.out_of_order": 3,
    "commit.false_ack_after_start_view": 3,
    "commit.fence_on_commit_max": 3,
    "commit.checkpoint_at_commit_max": 3,
    "commit.sequencer_before_append": 3,
    "commit.dvc_carries_commit_min_only": 3,
    "commit.stale_frontier": 3,
    "view.blind_start_view_head": 3,
    "view.log_view_at_merge": 3,
    "boot.all_zero": 3,
    "boot.replays_uncommitted": 3,
    "table.evict_by_commit_max": 3,
    "table.evict_hash_order": 3,
    "table.evict_forgets": 3,
    "table.gap_accepted": 3,
    "table.record_uncommitted": 3,
    "table.replayed_register": 3,
    "table.reply_from_current_view": 3,
    "control.no_offset_advance": 3,
    "control.applied_on_leader_only": 3,
    "control.map_order_digest": 3,
    "control.unsupported_member": 3,
}
"""Faults that the audit finds in runs drawn as usual; those of the storage: `tests/impl/test_storage_faults.py`."""
RUNS_MAX = 100


def judged(out: Path, seed: int, replicas: int, requests: int, faults: frozenset[str] = frozenset()) -> RunVerdict:
    """Simulate one run and audit it; a run without a fault must also pass the simulator's own checkers."""
    result = simulate(seed, replicas=replicas, requests=requests, faults=faults, out=out)
    if not faults:
        assert result.ok, f"vsr simulate --seed {seed} --replicas {replicas}: {result.failures}"
    return check_run(result.run, load(out / result.run), AuditOptions())


def all_conform(out: Path, seeds: range, replicas: int, requests: int) -> None:
    """Every run conforms; a failure names the command that replays it."""
    for seed in seeds:
        verdict = judged(out, seed, replicas, requests)
        replay = f"vsr simulate --seed {seed} --replicas {replicas} --requests {requests} --out X && vsr audit X"
        assert verdict.verdict == "conforms", f"{replay}: {verdict.violations} {verdict.missing}"
        assert verdict.events > requests


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 5, 6])
def test_faulted_runs_conform(replicas: int, tmp_path: Path) -> None:
    all_conform(tmp_path, range(1000, 1015), replicas, requests=120)


@pytest.mark.long
@pytest.mark.parametrize(("replicas", "first"), [(3 if n % 2 else 5, 250 * n) for n in range(8)])
def test_two_thousand_faulted_runs_conform(replicas: int, first: int, tmp_path: Path) -> None:
    all_conform(tmp_path, range(first, first + 250), replicas, requests=300)


@pytest.mark.parametrize(("fault", "replicas"), FAULT_REPLICAS.items())
def test_a_mistake_of_the_replica_is_found_in_at_most_100_runs(fault: str, replicas: int, tmp_path: Path) -> None:
    for seed in range(RUNS_MAX):
        verdict = judged(tmp_path, seed, replicas, requests=80, faults=frozenset({fault}))
        if verdict.verdict == "violates":
            violation = verdict.violations[0]
            assert violation.line
            assert violation.message
            return
        assert verdict.verdict == "conforms", verdict.missing
    raise AssertionError(f"{fault} was not found in {RUNS_MAX} runs")
