"""Runs as slices of sorted batches: the verdicts of the local engine, compiled or row by row, in pieces of any size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import viewproof
from tests.refinement.test_spark_frames import records
from viewproof.refinement.checker import check_run
from viewproof.refinement.schema import ARROW_SCHEMA
from viewproof.refinement.spark import columns
from viewproof.refinement.spark.columns import CARRIED, judge_run, runs_in
from viewproof.refinement.spark.frames import error_row
from viewproof.refinement.verdict import AuditOptions, UnitResult

SCHEMA = ARROW_SCHEMA.append(pa.field(CARRIED, pa.string()))
Answer = tuple[UnitResult, Sequence[str], dict[tuple[int, int], str]]


def batches(rows: list[dict[str, Any]], size: int) -> Iterator[pa.RecordBatch]:
    """As Spark gives them: sorted, and each a message of its own."""
    order = [(name, "ascending") for name in ("run", "clock", "node", "seq")]
    table = pa.Table.from_pylist(rows, schema=SCHEMA).sort_by(order).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=size)
    with pa.ipc.open_stream(sink.getvalue()) as reader:
        yield from reader


def judged(rows: list[dict[str, Any]], size: int, options: AuditOptions | None = None) -> dict[str, Answer]:
    return {
        run or "": judge_run(run or "", slices, options or AuditOptions(), check_run, 0)
        for run, slices in runs_in(batches(rows, size))
    }


@pytest.mark.parametrize(
    ("size", "table", "held"), [(8192, 1 << 16, 4), (100, 150, 4), pytest.param(64, 64, 1, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("how", ["compiled", "python"])
def test_good_and_bad_runs_have_their_verdicts(
    size: int, table: int, held: int, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory as one table, streamed, and through a file."""
    monkeypatch.setattr(columns, "TABLE_ROWS", table)
    monkeypatch.setattr(columns, "HELD_TABLES", held)
    monkeypatch.setenv("VSR_REPLAY", how)
    bad = [row | {CARRIED: '{"pod": "p"}'} for row in records("bad", digest="x" * 16)]
    found = judged([*records("a"), *bad, *records("c")], size)
    expected = viewproof.audit(Path("traces/recorded/steady")).verdicts[0]
    for run in ("a", "c"):
        [verdict] = found[run][0].verdicts
        assert (verdict.verdict, verdict.events) == ("conforms", expected.events)
        assert dict(verdict.coverage) == dict(expected.coverage)
        assert found[run][1:] == ((), {})
    [violation] = found["bad"][0].verdicts[0].violations
    assert found["bad"][2] == {(violation.node, violation.seq): '{"pod": "p"}'}
    assert violation.file == f"node {violation.node}"


def test_malformed_events_are_said_by_place_and_their_run_is_not_judged() -> None:
    rows = records("a")
    wrong = [row | ({"view": -1} if n in (3, 400) else {}) for n, row in enumerate(records("b"))]
    found = judged([*rows, *wrong, wrong[0] | {"run": None}], 100)
    assert found["a"][0].verdicts[0].verdict == "conforms"
    result, problems, _ = found["b"]
    assert not result.verdicts
    assert len(problems) == 2
    assert all("view: expected" in text and text.startswith("node ") for text in problems)
    assert "run: expected" in found[""][1][0]


def test_columns_to_judge_without_are_left_out() -> None:
    found = judged(records("a"), 100, AuditOptions(without=("m_commit",)))
    assert found["a"][0].verdicts[0].verdict == "inconclusive"


def test_malformed_events_of_one_cause_are_one_problem_in_the_order_of_places() -> None:
    of_seq = [f"node 1, seq {-n}: seq: expected an integer ≥ 1, got {-n}" for n in (12, 3, 298)]
    row = error_row("r", [*of_seq, "node 0, seq 7: view: expected an integer ≥ 0, got -1"])
    assert row["problems"] == [
        "node 0, seq 7: view: expected an integer ≥ 0, got -1",
        "node 1, seq -3: seq: expected an integer ≥ 1, got -3 (and 2 more like it, the last node 1, seq -298)",
    ]
