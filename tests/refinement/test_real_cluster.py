"""Three real processes over TCP with fsync: rounds of SIGKILL under load lose nothing; every round's traces conform."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.impl.net.waiting import measured
from tests.refinement.traces import load
from viewproof.impl.interface.durable import CLIENTS_PAPER, CLIENTS_SESSIONS
from viewproof.impl.net.cluster import Cluster
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


@pytest.mark.parametrize("sessions", [True, False])
def test_a_measured_cluster_conforms(tmp_path: Path, sessions: bool) -> None:
    """The clients of a measurement do not know whether there are sessions, and ask without one first."""
    with Cluster(tmp_path, run="measured", clients=CLIENTS_SESSIONS if sessions else CLIENTS_PAPER) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        measured(cluster, clients=8, connections=2, at_least=50)
        cluster.kill(asyncio.run(cluster.wait_ready()))
        measured(cluster, clients=8, connections=1, at_least=50)
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        measured(cluster, clients=3, connections=1, at_least=10)
        cluster.stop_all()
        verdict = check_run("measured", load(cluster.trace_path(0).parent), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.violations, verdict.missing)
    assert verdict.coverage.get("send_eviction", 0) == 0, "of no session there is no step"
    assert bool(verdict.events_by_name.get("send_eviction")) is sessions
