"""However the events of some runs are cut into files, directories, pieces and partitions, and whoever judges them: each
run has the verdict that it has when its events are judged alone and in order.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.refinement.traces import change, simulated
from viewproof import audit, audit_from
from viewproof.refinement import judging, local
from viewproof.refinement.checker import check_run
from viewproof.refinement.discovery import discover
from viewproof.refinement.going_on.open_runs import OpenRun
from viewproof.refinement.ordering import order_key
from viewproof.refinement.packing import pack
from viewproof.refinement.parquet import write_parquet
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import INDEX, TABLE, Row
from viewproof.refinement.verdict import AuditOptions, AuditReport, RunVerdict

RUN, NODE, SEQ = INDEX["run"], INDEX["node"], INDEX["seq"]
Runs = dict[str, list[Row]]
Answer = tuple[str, int, tuple[tuple[str, int, int], ...], frozenset[str]]


@dataclass(frozen=True)
class Layout:
    """How events are cut into files: by what, how many, in which order and form, and where the files lie."""

    cut: str
    files: int
    seed: int
    in_order: bool
    form: str
    folders: str

    def pieces(self, runs: Runs) -> list[list[Row]]:
        """The events of each file."""
        rng = random.Random(self.seed)
        rows = sorted((row for run in runs.values() for row in run), key=order_key)
        homes: dict[Any, int] = {}

        def home(at: int, row: Row) -> int:
            if self.cut == "anywhere":
                return rng.randrange(self.files)
            if self.cut == "time":
                return at * self.files // len(rows)
            key = {"run": row[RUN], "node": row[NODE], "run and node": (row[RUN], row[NODE])}[self.cut]
            return homes.setdefault(key, rng.randrange(self.files))

        found: list[list[Row]] = [[] for _ in range(self.files)]
        for at, row in enumerate(rows):
            found[home(at, row)].append(row)
        for piece in found:
            if not self.in_order:
                rng.shuffle(piece)
        return [piece for piece in found if piece]

    def write(self, runs: Runs, root: Path) -> list[Path]:
        """The files."""
        found = []
        for number, piece in enumerate(self.pieces(runs)):
            folder = {"one": root, "each": root / f"d{number}", "two": root / f"d{number % 2}"}[self.folders]
            folder.mkdir(parents=True, exist_ok=True)
            found.append(folder / f"part-{number:03}.{self.form}")
            if self.form == "parquet":
                write_parquet(piece, str(found[-1]))
            else:
                text = "".join(json.dumps(record(row)) + "\n" for row in piece).encode()
                found[-1].write_bytes(gzip.compress(text) if self.form.endswith("gz") else text)
        return found


LAYOUTS = st.builds(
    Layout,
    cut=st.sampled_from(["anywhere", "time", "run", "node", "run and node"]),
    files=st.integers(1, 7),
    seed=st.integers(0, 1 << 16),
    in_order=st.booleans(),
    form=st.sampled_from(["parquet", "ndjson", "ndjson.gz"]),
    folders=st.sampled_from(["one", "each", "two"]),
)


def record(row: Row) -> dict[str, Any]:
    return {column.name: value for column, value in zip(TABLE, row, strict=False) if value is not None}


def answer(verdict: RunVerdict, first_only: bool = False) -> Answer:
    """What a verdict says, without the places where events were read from."""
    found = tuple((v.rule_id, v.node, v.seq) for v in verdict.violations)
    missing = frozenset(re.sub(r" \(noticed at [^)]*\)|\S+:\d+", "", text) for text in verdict.missing)
    return verdict.verdict, verdict.events, found[:1] if first_only else found, missing


def answers(report: AuditReport) -> dict[str, Answer]:
    assert not report.problems, report.problems
    assert not report.tool_errors, report.tool_errors
    return {verdict.run_id: answer(verdict) for verdict in report.verdicts}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Three good runs, one with a change that no behaviour explains, one that has lost an event."""
    found: Runs = {}
    for seed in range(3):
        rows = simulated(tmp_path_factory.mktemp("run"), seed, replicas=3, requests=4)
        found[f"good {seed}"] = rows
    rng, bad = random.Random(2), found["good 1"]
    while check_run("bad", bad, AuditOptions()).verdict != "violates":
        bad = change(rng, found["good 1"]).rows
    lost = found["good 2"]
    found |= {"bad": bad, "lost": [*lost[:60], *lost[61:]]}
    return {name: [(name, *row[1:]) for row in sorted(rows, key=order_key)] for name, rows in found.items()}


@pytest.fixture(scope="module")
def expected(runs: Runs) -> dict[str, Answer]:
    found = {}
    for name, rows in runs.items():
        verdict, contradictions, errors = judging.judge_run(name, rows, AuditOptions(), check_run, ProblemLog())
        assert verdict is not None
        assert not errors
        found[name] = answer(judging.merge_facts(verdict, contradictions, AuditOptions())[0])
    assert [one[0] for one in found.values()] == ["conforms"] * 3 + ["violates", "inconclusive"]
    return found


def quickly(examples: int) -> Any:
    """No shrinking: an example is a line to read already."""
    slow = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    return settings(max_examples=examples, deadline=None, suppress_health_check=slow, phases=phases, derandomize=True)


@given(layout=LAYOUTS, streamed=st.booleans())
@quickly(12)
def test_files_of_any_layout_for_the_local_engine(
    runs: Runs, expected: dict[str, Answer], layout: Layout, streamed: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        layout.write(runs, Path(folder))
        with mock.patch.object(judging, "STREAM_BYTES", 0 if streamed else judging.STREAM_BYTES):
            assert answers(audit(folder)) == expected


@given(layout=LAYOUTS)
@quickly(4)
def test_files_that_come_one_after_the_other_for_an_audit_that_goes_on(
    runs: Runs, expected: dict[str, Answer], layout: Layout
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for file in layout.write(runs, Path(folder) / "in"):
            report = audit_from(Path(folder) / "state", file)
        assert answers(report) == expected


@given(layout=LAYOUTS)
@quickly(12)
def test_pieces_of_a_stream(runs: Runs, expected: dict[str, Answer], layout: Layout) -> None:
    """A run that ends with its first violation has only that; one whose lost event never comes is ended."""
    for name, rows in runs.items():
        last = {row[NODE]: row[SEQ] for row in rows}
        assert answer(ended(name, layout.pieces({name: rows}), last), True) == first(expected[name])


def first(whole: Answer) -> Answer:
    return whole[0], whole[1], whole[2][:1], whole[3]


def ended(name: str, pieces: Sequence[Sequence[Row]], last: dict[int, int]) -> RunVerdict:
    kept, found = b"", None
    for piece in pieces:
        run = OpenRun(name, kept, AuditOptions())
        lasts = {row[NODE]: row[SEQ] for row in piece if row[SEQ] == last[row[NODE]]}
        found = found or run.take([(pack(row), None) for row in piece], lasts)
        kept = run.keep()
        if found:
            break
    found = found or OpenRun(name, kept, AuditOptions()).end()
    assert found.verdict is not None
    return found.verdict


@pytest.mark.long
@given(layout=LAYOUTS)
@quickly(6)
def test_files_of_any_layout_for_two_workers(runs: Runs, expected: dict[str, Answer], layout: Layout) -> None:
    with tempfile.TemporaryDirectory() as folder:
        layout.write(runs, Path(folder))
        assert answers(local.audit(discover([folder]), AuditOptions(), check_run, workers=2)) == expected
