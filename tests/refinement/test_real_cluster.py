"""Three real processes over TCP with fsync: rounds of SIGKILL under load lose nothing; every round's traces conform."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refinement.traces import load
from viewproof.impl.net.record import RecordOptions, RoundResult, record, rounds
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions


def run_rounds(tmp_path: Path, count: int, requests: int, seed: int) -> list[RoundResult]:
    """Rounds of killing and restarting a random process; after each, the clients' history and all traces are judged."""
    seen: list[RoundResult] = []

    def audit(result: RoundResult) -> None:
        seen.append(result)
        assert result.check.ok, result
        verdict = check_run("rounds", load(tmp_path / "traces"), AuditOptions())
        assert verdict.verdict == "conforms", (result, verdict.violations, verdict.missing)

    result = rounds(
        tmp_path / "data", tmp_path / "traces", "rounds", count, RecordOptions(requests=requests, seed=seed), audit
    )
    assert result.ok
    return seen


def test_two_rounds_of_killing_a_process_lose_nothing_and_conform(tmp_path: Path) -> None:
    assert len(run_rounds(tmp_path, 2, requests=120, seed=11)) == 2


@pytest.mark.long
def test_twenty_rounds_of_killing_a_process_lose_nothing_and_conform(tmp_path: Path) -> None:
    seen = run_rounds(tmp_path, 20, requests=120, seed=12)
    assert len(seen) == 20
    assert len({r.killed for r in seen}) == 3, "every replica was killed at least once"


def test_a_mistake_in_the_real_replicas_is_rejected_by_the_audit(tmp_path: Path) -> None:
    options = RecordOptions(requests=150, seed=4, faults=("commit.apply_at_replicate",))
    record(tmp_path / "data", tmp_path / "traces", "faulty", options)
    verdict = check_run("faulty", load(tmp_path / "traces"), AuditOptions())
    assert verdict.verdict == "violates"
    assert verdict.violations[0].action == "execute"
