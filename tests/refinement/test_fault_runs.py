"""Every fault that the replica has a switch for is caught in runs that a user can repeat, and only with the fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fault_runs import FAULT_RUNS
from tests.refinement.traces import load
from viewproof.impl.faults import FAULTS
from viewproof.impl.sim import SimResult, simulate
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions, RunVerdict

RUNS_MAX = 20


def judged(out: Path, seed: int, fault: str, faults: frozenset[str]) -> tuple[SimResult, RunVerdict]:
    """What simulator and audit say of one of the runs of a fault, with it or without."""
    runs = FAULT_RUNS[fault]
    result = simulate(
        seed, replicas=runs.replicas, requests=runs.requests, profile=runs.sim_profile, faults=faults, out=out
    )
    assert result.trace is not None
    return result, check_run(result.run, load(result.trace), AuditOptions())


def is_caught(fault: str, result: SimResult, verdict: RunVerdict) -> bool:
    """By the audit; or by the simulator, if the replicas only stand still, or the trace does not show it."""
    if FAULT_RUNS[fault].shows_in_trace:
        return verdict.verdict == "violates"
    assert is_right(fault, verdict), verdict.violations
    return bool({failure.checker for failure in result.failures} & {"liveness", "later_views", "replica", "features"})


def is_right(fault: str, verdict: RunVerdict) -> bool:
    """All conforms; of a replica that is shut out there is no trace, and nothing else is missing."""
    if not FAULT_RUNS[fault].outsider or verdict.verdict == "conforms":
        return verdict.verdict == "conforms"
    nodes = {what.split(" has no event in the input")[0] for what in verdict.missing}
    return verdict.verdict == "inconclusive" and len(nodes) == 1 and nodes < {f"node {node}" for node in range(9)}


def test_every_fault_has_its_runs() -> None:
    assert FAULT_RUNS.keys() == FAULTS.keys()


@pytest.mark.parametrize("fault", FAULT_RUNS)
def test_a_fault_is_caught_and_the_same_run_without_it_conforms(fault: str, tmp_path: Path) -> None:
    for seed in range(RUNS_MAX):
        if is_caught(fault, *judged(tmp_path / "fault", seed, fault, frozenset({fault}))):
            result, verdict = judged(tmp_path / "right", seed, fault, frozenset())
            assert result.ok, result.failures
            assert is_right(fault, verdict), (verdict.missing, verdict.violations)
            return
    pytest.fail(f"{FAULT_RUNS[fault].command(fault)} was not caught in {RUNS_MAX} seeds")
