"""The replica under faults of network, disks and processes conforms to the spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refinement.traces import load
from viewproof.impl.sim.run import simulate
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions, RunVerdict


def judged(out: Path, seed: int, replicas: int, requests: int) -> RunVerdict:
    """Simulate one run, which must pass the simulator's own checkers, and audit it."""
    result = simulate(seed, replicas=replicas, requests=requests, out=out)
    assert result.ok, f"vsr simulate --seed {seed} --replicas {replicas}: {result.failures}"
    return check_run(result.run, load(out / result.run), AuditOptions())


def all_conform(out: Path, seeds: range, replicas: int, requests: int) -> None:
    """Every run conforms; a failure names the command that replays it."""
    for seed in seeds:
        verdict = judged(out, seed, replicas, requests)
        replay = f"vsr simulate --seed {seed} --replicas {replicas} --requests {requests} --out X && vsr audit X"
        assert verdict.verdict == "conforms", f"{replay}: {verdict.violations} {verdict.missing}"
        assert verdict.events > requests


@pytest.mark.parametrize("replicas", [1, 2, 3, 5, *(pytest.param(n, marks=pytest.mark.long) for n in (4, 6))])
def test_faulted_runs_conform(replicas: int, tmp_path: Path) -> None:
    all_conform(tmp_path, range(1000, 1006), replicas, requests=120)


@pytest.mark.long
@pytest.mark.parametrize(("replicas", "first"), [(3 if n % 2 else 5, 250 * n) for n in range(8)])
def test_two_thousand_faulted_runs_conform(replicas: int, first: int, tmp_path: Path) -> None:
    all_conform(tmp_path, range(first, first + 250), replicas, requests=300)
