"""A violation is told: the rule in words, what was expected and observed, what changed, and what led there."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refinement.traces import change, put, simulated
from viewproof import audit
from viewproof.impl.sim.run import simulate
from viewproof.refinement.checker import check_run
from viewproof.refinement.checker.story import STEPS_SHOWN
from viewproof.refinement.cli import cli
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions, Violation


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return simulated(tmp_path_factory.mktemp("run"), 5, replicas=3, requests=12)


def violation(rows: list[Row]) -> Violation | None:
    return next(iter(check_run("run", rows, AuditOptions()).violations), None)


def test_nothing_that_a_reader_needs_is_blank(rows: list[Row]) -> None:
    rng, found = random.Random(3), 0
    for _ in range(60):
        made = change(rng, rows)
        told = violation(made.rows)
        if told is None:
            continue
        found += 1
        assert all((told.expected, told.observed, told.rule, told.message)), (made.event, made.column, told)
        assert any((step.file, step.line) == (told.file, told.line) for step in told.story), "it ends at the line"
        used = {step.used for step in told.story}
        for node in range(3):
            earlier = [step for step in told.story if step.node == node][:-STEPS_SHOWN]
            assert all(step.used or (node, step.seq) in used for step in earlier), "only who sent or received a message"
            assert [step.seq for step in earlier] == sorted(step.seq for step in earlier)
    assert found > 30


def test_what_fell_back_on_the_line_is_said(rows: list[Row]) -> None:
    at = next(i for i, row in enumerate(rows) if row[INDEX["event"]] == "execute" and row[INDEX["commit_min"]] > 4)
    told = violation([*rows[:at], put(rows[at], commit_min=1, commit_max=1), *rows[at + 1 :]])
    assert told is not None
    assert any(text.startswith("commit_min fell back from ") for text in told.changes)


def test_a_broken_chain_is_i10(rows: list[Row]) -> None:
    at = next(i for i, row in enumerate(rows) if row[INDEX["event"]] == "on_request" and row[INDEX["m_op"]] > 2)
    told = violation([*rows[:at], put(rows[at], m_parent=""), *rows[at + 1 :]])
    assert told is not None
    assert (told.rule_id, told.observed) == ("I10", '"" (no entry)')
    assert told.rule.startswith("each prepare's parent")


def test_why_prints_what_led_there(tmp_path: Path) -> None:
    for file in sorted(Path("traces/recorded/steady").glob("*.ndjson")):
        lines = file.read_text().splitlines()
        if file.stem == "replica-1":
            record = json.loads(lines[40]) | {"commit_max": 10_000}
            lines[40] = json.dumps(record)
        (tmp_path / file.name).write_text("\n".join(lines) + "\n")
    plain = CliRunner().invoke(cli, ["audit", str(tmp_path)])
    told = CliRunner().invoke(cli, ["audit", str(tmp_path), "--why"])
    assert plain.exit_code == told.exit_code == 1
    assert "what led there:" not in plain.output
    assert "what led there:" in told.output
    assert f"replica-1.ndjson:41: observed.commit_max: {record['event']} at node 1" in told.output
    assert "on this line: commit_max jumped from" in told.output


def test_a_condition_that_is_false_has_the_values_and_who_could_have_made_it_true(tmp_path: Path) -> None:
    """An acknowledgement of an entry that the journal does not hold: the append that would have allowed it is named."""
    simulate(5, requests=40, faults=frozenset({"commit.false_ack_after_start_view"}), out=tmp_path)
    report = audit(tmp_path)
    (found,) = [v for v in report.violations if v.rule_id == "event.m_op"]
    assert found.why_not[0].startswith("holds(ack != NONE, message, e.m_op) is false (ack[")
    assert any(text.startswith("append(r=") and "o <= state.op[r] is false (op[" in text for text in found.why_not)
