"""A node that ran before begins another trace, as an operator does for other settings: what it did before is a hole."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refinement.traces import put, simulated, without
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.refinement.checker import check_run
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions

NODE, SEQ, EVENT = INDEX["node"], INDEX["seq"], INDEX["event"]


@pytest.fixture
def rows(tmp_path: Path) -> list[Row]:
    """A node alone that crashes and restarts, from its first restart on, numbered anew."""
    run = simulated(tmp_path, 3, replicas=1, requests=20, profile=NAMED_PROFILES["crashes"])
    at = next(n for n, row in enumerate(run) if row[EVENT] == "restart")
    before = run[at][SEQ] - 1
    sent = INDEX["m_seq"]
    return [
        put(row, seq=row[SEQ] - before, m_seq=None if row[sent] is None else row[sent] - before) for row in run[at:]
    ]


def without_its_past(run: list[Row], node: int, restart: int) -> list[Row]:
    """The run without what a node did before that restart of it, numbered anew: its trace went with its machine."""
    numbers = [row[SEQ] for row in run if row[NODE] == node and row[EVENT] in ("restart", "recover")]
    before = numbers[restart % len(numbers)] - 1
    left = [row for row in run if row[NODE] != node or row[SEQ] > before]

    def anew(row: Row) -> Row:
        own = put(row, seq=row[SEQ] - before) if row[NODE] == node else row
        sent = row[INDEX["m_seq"]]
        heard = row[INDEX["m_from"]] == node and sent is not None and sent > before
        return put(own, m_seq=sent - before) if heard else own

    return [anew(row) for row in left]


@pytest.mark.parametrize("profile", ["crashes", "late", "rot"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))])
def test_nobody_is_accused_for_what_a_lost_trace_showed(seed: int, profile: str, tmp_path: Path) -> None:
    """The others received messages of its events before, whose numbers are those of others now."""
    run = simulated(tmp_path, seed, replicas=3, requests=20, profile=NAMED_PROFILES[profile])
    restarted = {row[NODE] for row in run if row[EVENT] in ("restart", "recover")}
    for node in restarted:
        for restart in (0, -1):
            verdict = check_run("run", without_its_past(run, node, restart), AuditOptions())
            assert verdict.verdict == "inconclusive", (node, restart, verdict.violations)
            assert verdict.missing[0].startswith(f"what node {node} did before its trace, which begins with re")


@pytest.mark.parametrize("engine", ["replay", "interp"])
def test_a_trace_that_begins_with_a_restart_is_inconclusive_and_says_why(rows: list[Row], engine: str) -> None:
    verdict = check_run("run", rows, AuditOptions(), engine=engine)
    assert (verdict.verdict, verdict.violations) == ("inconclusive", ())
    assert verdict.missing[0].startswith("what node 0 did before its trace, which begins with restart (")


def test_what_it_shows_is_judged(rows: list[Row]) -> None:
    at = next(n for n, row in enumerate(rows) if row[EVENT] == "execute")
    verdict = check_run("run", [*rows[:at], put(rows[at], commit_min=99), *rows[at + 1 :]], AuditOptions())
    assert verdict.verdict == "violates"


def test_a_trace_that_begins_with_no_boot_is_refused(tmp_path: Path) -> None:
    run = simulated(tmp_path, 3, replicas=3, requests=4)
    at = next(n for n, row in enumerate(run) if row[NODE] == 1)
    assert run[at][EVENT] == "start"
    (found,) = check_run("run", without(run, at), AuditOptions()).violations
    assert (found.rule_id, found.node, found.seq) == ("event.event", 1, 1)
