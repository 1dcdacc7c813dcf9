"""A request that names no session is answered or dropped as any other: `vsr bench` begins so, as other clients may."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.refinement.traces import put, simulated
from viewproof.impl.interface.messages import Request
from viewproof.impl.machine.state_machine import Put, encode_operation
from viewproof.impl.sim.cluster import SimCluster
from viewproof.refinement.checker import check_run
from viewproof.refinement.schema import INDEX, OUTCOMES, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

EVERY_TICKS = 7
CLIENTS = 3
BODY = encode_operation(Put(b"k", b"v"))


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """A run in which requests of no session arrive at all replicas, of the clients that there are."""
    step = SimCluster.step

    def asked(self: SimCluster) -> None:
        step(self)
        if self.now % EVERY_TICKS == 0:
            client = 1 + self.now // EVERY_TICKS % CLIENTS
            request = Request(client=client, request=1 + self.now % 3, body=BODY, session=0)
            for node in range(len(self.replicas)):
                self.at(self.now + 1, partial(self.deliver, node, request))

    monkeypatch.setattr(SimCluster, "step", asked)
    for seed in range(20):
        found = simulated(tmp_path / str(seed), seed, clients=CLIENTS, requests=40, client_profile="evictions")
        if {outcome for outcome, _ in answered(found)} >= {"no_session", "fenced", "in_progress"}:
            return found
    raise AssertionError("no run has all outcomes")


def answered(rows: list[Row]) -> Iterator[tuple[str, int]]:
    """Outcome and place of each request of no session."""
    for number, row in enumerate(rows):
        named = dict(zip(INDEX, row, strict=False))
        if named["event"] in ("send_eviction", "drop_request") and named["m_session"] == 0 and named["m_request"]:
            yield str(named["m_outcome"]), number


def verdict(rows: list[Row]) -> RunVerdict:
    return check_run(str(rows[0][INDEX["run"]]), rows, AuditOptions())


def test_they_conform_and_no_other_outcome_does(rows: list[Row]) -> None:
    assert verdict(rows).verdict == "conforms"
    for right, number in dict(reversed([*answered(rows)])).items():
        for wrong in set(OUTCOMES) - {right}:
            found = verdict([*rows[:number], put(rows[number], m_outcome=wrong), *rows[number + 1 :]])
            assert found.verdict == "violates", (right, wrong)
            assert "this is not what becomes of a request of no session" in str(found.violations[0]), (right, wrong)


def test_without_the_column_they_are_not_accused(rows: list[Row]) -> None:
    places = {number for _, number in answered(rows)}
    hidden = [put(row, m_session=None) if number in places else row for number, row in enumerate(rows)]
    assert verdict(hidden).verdict != "violates"
