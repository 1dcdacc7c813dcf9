"""A run of a stream: whatever the pieces and the order in which its events come, the verdict of the audit over all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.refinement.traces import change, simulated
from viewproof.refinement.checker import check_run
from viewproof.refinement.global_facts import merge_facts
from viewproof.refinement.going_on.open_runs import Ended, Event, OpenRun
from viewproof.refinement.judging import judge_run
from viewproof.refinement.ordering import order_key
from viewproof.refinement.packing import pack
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

NODE, SEQ, EVENT = INDEX["node"], INDEX["seq"], INDEX["event"]
RECORDED = Path("traces/recorded")


def placed(rows: Sequence[Row]) -> list[Row]:
    """The rows as a table has them: their place is their node and seq."""
    return [(*row[:-2], f"node {row[NODE]}", row[SEQ]) for row in sorted(rows, key=order_key)]


def recorded(name: str) -> list[Row]:
    files = sorted((RECORDED / name).iterdir())
    return placed([row for file in files for row in read_rows(str(file), ProblemLog())])


def batch(rows: list[Row]) -> RunVerdict | None:
    verdict, contradictions, errors = judge_run(rows[0][0], rows, AuditOptions(), check_run, ProblemLog())
    assert not errors
    return None if verdict is None else merge_facts(verdict, contradictions, AuditOptions())[0]


def streamed(rows: Sequence[Row], pieces: Sequence[Sequence[Row]]) -> tuple[Ended | None, int]:
    """How the run ended, with its state kept between all pieces; and how often it said so."""
    last = {node: max(row[SEQ] for row in rows if row[NODE] == node) for node in {row[NODE] for row in rows}}
    kept, ended, times = b"", None, 0
    for piece in pieces:
        run = OpenRun(rows[0][0], kept, AuditOptions())
        if run.done:
            continue
        events: list[Event] = [(pack(row), None) for row in piece]
        lasts = {row[NODE]: row[SEQ] for row in piece if row[SEQ] == last[row[NODE]]}
        answer = run.take(events, lasts)
        kept = run.keep()
        if answer is not None:
            ended, times = answer, times + 1
    return ended, times


def in_pieces(rng: random.Random, rows: Sequence[Row]) -> list[list[Row]]:
    """The rows in pieces of random sizes; out of order within some distance, or altogether."""
    spread = rng.choice([0, 5, 50, len(rows)])
    moved = sorted(rows, key=lambda row: order_key(row)[0] + rng.random() * spread)
    pieces, most = [], rng.choice([30, 100, len(rows)])
    while moved:
        count = rng.randint(1, most)
        pieces.append(moved[:count])
        moved = moved[count:]
    return pieces


def plain(verdict: RunVerdict) -> Any:
    return msgspec.to_builtins(replace(verdict, seconds=0.0, timeline=None))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Row]]:
    found = [placed(simulated(tmp_path_factory.mktemp("run"), seed, replicas=3, requests=6)) for seed in (3, 5)]
    return [*found, recorded("planes.metadata"), recorded("offsets.partition-0-1-2")]


@pytest.mark.parametrize("seed", [0, 1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_a_good_run_ends_once_with_the_verdict_of_the_audit(runs: list[list[Row]], seed: int) -> None:
    rng = random.Random(seed)
    rows = runs[seed % len(runs)]
    ended, times = streamed(rows, in_pieces(rng, rows))
    expected = batch(rows)
    assert ended is not None
    assert expected is not None
    assert ended.verdict is not None
    assert (times, plain(ended.verdict)) == (1, plain(expected))
    assert ended.verdict.verdict in ("conforms", "inconclusive")


@pytest.mark.parametrize("seed", range(5))
def test_a_bad_run_ends_once_with_its_first_violation(runs: list[list[Row]], seed: int) -> None:
    rng = random.Random(seed)
    rows = runs[seed % 2]
    bad, expected = rows, batch(rows)
    while expected is None or expected.verdict != "violates":
        bad = placed(change(rng, rows).rows)
        expected = batch(bad)
    ended, times = streamed(bad, in_pieces(rng, bad))
    assert times == 1
    assert ended is not None
    assert ended.verdict is not None
    first, wanted = ended.verdict.violations[0], expected.violations[0]
    assert (ended.verdict.verdict, ended.verdict.events) == ("violates", expected.events)
    assert (first.rule_id, first.node, first.seq, first.message) == (
        wanted.rule_id, wanted.node, wanted.seq, wanted.message,
    )  # fmt: skip
    assert (first.story, first.why_not) == (wanted.story, wanted.why_not)
