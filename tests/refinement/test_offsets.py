"""I15 in the audit: offsets of executed appends, stated by every replica, are given once and the same everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from impl.groups.plane import Plane
from impl.sim import SimProfile
from refinement.checker import check_run
from refinement.facts import facts_of, merge_facts
from refinement.reading import ProblemLog
from refinement.runs import judge_run
from refinement.schema import INDEX, Row
from refinement.verdict import AuditOptions, RunVerdict
from tests.refinement.traces import put, simulated

OFFSET = INDEX["m_offset"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    profile = SimProfile(plane=Plane.PARTITIONS, checkpoint_interval=10)
    return simulated(tmp_path_factory.mktemp("run"), 3, requests=60, profile=profile)


def judged(rows: list[Row]) -> tuple[RunVerdict, str | None]:
    named = [(*row[: len(INDEX)], "file", line) for line, row in enumerate(rows, 1)]
    verdict, broken, errors = judge_run(named[0][0], iter(named), AuditOptions(), check_run, ProblemLog())
    assert verdict is not None
    assert not errors
    return merge_facts(verdict, broken, AuditOptions())


def test_a_good_run_states_offsets_and_conforms(rows: list[Row]) -> None:
    stated = {key for row in rows for key, _ in facts_of(row) if key[0] == "I15"}
    assert len([key for key in stated if key[2] >= 0]) > 40
    verdict, error = judged(rows)
    assert (verdict.verdict, error) == ("conforms", None)


@pytest.mark.parametrize("change", [-1, 1000])
def test_a_changed_offset_is_a_violation(rows: list[Row], change: int) -> None:
    """One that was given before, and one that nobody has: either way the replicas disagree."""
    at = next(at for at, row in enumerate(rows) if row[OFFSET])
    changed = [*rows[:at], put(rows[at], m_offset=rows[at][OFFSET] + change), *rows[at + 1 :]]
    verdict, error = judged(changed)
    assert (verdict.verdict, error) == ("violates", None)
    assert {violation.rule_id for violation in verdict.violations} == {"I15"}


def test_the_fault_is_caught_by_name(tmp_path: Path) -> None:
    profile = SimProfile(plane=Plane.PARTITIONS, checkpoint_interval=10)
    faults = frozenset({"boot.offset_from_index"})
    verdict, _ = judged(simulated(tmp_path, 1, requests=120, profile=profile, faults=faults))
    assert {violation.rule_id for violation in verdict.violations} >= {"I14", "I15"}
