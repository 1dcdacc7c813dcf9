"""The local and the Spark engine give the same report, whatever the layout of the files."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.refinement import fakes
from viewproof.impl.sim.run import simulate
from viewproof.refinement import judging, local
from viewproof.refinement.checker import check_run
from viewproof.refinement.discovery import discover
from viewproof.refinement.parquet import write_parquet
from viewproof.refinement.verdict import AuditOptions, AuditReport

Layout = Callable[[Path, list[list[dict[str, Any]]]], None]


def by_run(directory: Path, traces: list[list[dict[str, Any]]]) -> None:
    for trace in traces:
        fakes.write_run(directory, trace)


def one_file(directory: Path, traces: list[list[dict[str, Any]]]) -> None:
    mixed = [record for trace in traces for record in trace]
    random.Random(1).shuffle(mixed)
    fakes.write_lines(directory / "all.ndjson", mixed)


def parquet(directory: Path, traces: list[list[dict[str, Any]]]) -> None:
    directory.mkdir()
    rows = [fakes.to_row(record) for trace in traces for record in trace]
    write_parquet(rows[::2], str(directory / "even.parquet"))
    write_parquet(rows[1::2], str(directory / "odd.parquet"))


def by_node(directory: Path, traces: list[list[dict[str, Any]]]) -> None:
    for trace in traces:
        for node in (0, 1, 2):
            own = [record for record in trace if record["node"] == node]
            fakes.write_lines(directory / f"node-{node}" / f"{own[0]['run']}.ndjson", own)


def split_later(directory: Path, traces: list[list[dict[str, Any]]]) -> None:
    """Looks like a directory per run, but the first directory's file ends with a piece of the last run."""
    first, *middle, last = traces
    by_run(directory, middle)
    fakes.write_lines(directory / "a" / "x.ndjson", first + last[:4])
    fakes.write_lines(directory / "z" / "x.ndjson", last[4:])


LAYOUTS: list[Layout] = [by_run, one_file, parquet, by_node, split_later]


def broken_traces() -> list[list[dict[str, Any]]]:
    """Six runs: good, bad head, gap, two prepares (the facts), digests that differ, and good again."""
    traces = [fakes.records(f"run-{number}", ops=3 + number) for number in range(6)]
    traces[1][7]["head"] = fakes.BAD_HEAD
    del traces[2][9]
    next(r for r in traces[3] if r["node"] == 2 and r["event"] == "on_prepare")["m_checksum"] = "other"
    next(r for r in traces[4] if r["node"] == 1 and r["event"] == "execute")["digest"] = "other"
    return traces


def same(report: AuditReport) -> AuditReport:
    """A report without what may differ between engines."""
    return replace(report, engine="", seconds=0.0, spent={})


@pytest.mark.spark
@pytest.mark.parametrize(
    "layout",
    [by_run, parquet, split_later, *(pytest.param(each, marks=pytest.mark.long) for each in (one_file, by_node))],
)
@pytest.mark.parametrize("make", [broken_traces, lambda: [fakes.records(f"r{n}") for n in range(5)]])
def test_engines_agree(tmp_path: Path, layout: Layout, make: Any, spark_session: Any) -> None:
    from viewproof.refinement import spark

    layout(tmp_path / "t", make())
    inputs, options = discover([str(tmp_path / "t")]), AuditOptions(allow=("x",))
    one = local.audit(inputs, options, fakes.check_run)
    two = spark.audit(inputs, options, fakes.check_run, session=spark_session)
    assert same(one) == same(two)
    assert len(one.verdicts) == len(make())


def test_verdicts_of_the_broken_runs(tmp_path: Path) -> None:
    by_run(tmp_path / "t", broken_traces())
    report = local.audit(discover([str(tmp_path / "t")]), AuditOptions(allow=("x",)), fakes.check_run)
    found = {verdict.run_id: verdict for verdict in report.verdicts}
    assert [found[f"run-{n}"].verdict for n in range(6)] == [
        "conforms", "violates", "inconclusive", "violates", "violates", "conforms",
    ]  # fmt: skip
    assert [violation.rule_id for violation in report.violations] == ["fake.head", "I7", "I14"]
    assert found["run-1"].violations[0].line == 8
    assert "seq 10 of node 0" in found["run-2"].missing[0]
    assert report.exit_code == 1


def test_a_replay_that_accepts_what_the_facts_refute_is_a_tool_error(tmp_path: Path) -> None:
    by_run(tmp_path / "t", broken_traces()[3:4])
    report = local.audit(discover([str(tmp_path / "t")]), AuditOptions(), fakes.check_run)
    assert report.exit_code == 2
    assert "the replay says conforms but the facts I7 are broken" in report.tool_errors[0]


def test_a_failing_checker_is_a_tool_error_not_a_traceback(tmp_path: Path) -> None:
    by_run(tmp_path / "t", [fakes.records("r")])
    report = local.audit(discover([str(tmp_path / "t")]), AuditOptions(), fakes.failing_check_run)
    assert report.exit_code == 2
    assert report.tool_errors == ("run r: the checker failed: ZeroDivisionError: the stand-in is broken",)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_large_units_are_streamed_or_spilled_with_the_same_result(
    tmp_path: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout(tmp_path / "t", broken_traces())
    inputs, options = discover([str(tmp_path / "t")]), AuditOptions(allow=("x",))
    sorted_in_memory = local.audit(inputs, options, fakes.check_run)
    monkeypatch.setattr(judging, "STREAM_BYTES", 0)
    assert same(local.audit(inputs, options, fakes.check_run)) == same(sorted_in_memory)


def test_workers_give_the_same_report(tmp_path: Path) -> None:
    by_run(tmp_path / "t", broken_traces())
    inputs, options = discover([str(tmp_path / "t")]), AuditOptions(allow=("x",))
    alone = local.audit(inputs, options, fakes.check_run)
    assert same(local.audit(inputs, options, fakes.check_run, workers=2)) == same(alone)


@pytest.mark.spark
def test_engines_agree_on_malformed_input(tmp_path: Path, spark_session: Any) -> None:
    from viewproof.refinement import spark

    traces = broken_traces()
    traces[0][3]["view"] = -1
    traces[5][4]["clock"] = 1
    for layout in (by_run, one_file):
        layout(tmp_path / layout.__name__, traces)
        inputs = discover([str(tmp_path / layout.__name__)])
        one = local.audit(inputs, AuditOptions(allow=("x",)), fakes.check_run)
        two = spark.audit(inputs, AuditOptions(allow=("x",)), fakes.check_run, session=spark_session)
        assert one.exit_code == 2
        assert one.verdicts == two.verdicts
        assert set(one.problems) <= set(two.problems)


def real_traces(directory: Path) -> None:
    """Simulated runs: good ones of 3 and 5 replicas, faulty ones, and a good one with a digest changed."""
    faults: list[tuple[str, ...]] = [(), (), ("commit.apply_at_replicate",), ("boot.view_from_last_prepare",)]
    for seed in range(12):
        mistakes = frozenset(faults[seed % len(faults)])
        simulate(seed, replicas=(3, 5)[seed % 2], requests=40, faults=mistakes, out=directory)
    changed = directory / "seed-0" / "replica-1.ndjson"
    lines = changed.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if '"event":"execute"' in line)
    record = json.loads(lines[at]) | {"digest": "ab" * 16}
    changed.write_text("".join([*lines[:at], json.dumps(record) + "\n", *lines[at + 1 :]]))


def merged(directory: Path, target: Path) -> None:
    """The same events in one file, file after file."""
    target.mkdir()
    with (target / "all.ndjson").open("wb") as out:
        for file in sorted(directory.rglob("*.ndjson")):
            out.write(file.read_bytes())


def without_places(report: AuditReport) -> list[tuple[Any, ...]]:
    """Verdicts and messages, for layouts whose files and lines differ."""
    return [
        (v.run_id, v.verdict, v.events, v.coverage, [(x.seq, x.node, x.rule_id, x.expected) for x in v.violations])
        for v in report.verdicts
    ]


@pytest.mark.spark
def test_engines_agree_on_real_verdicts_and_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_session: Any
) -> None:
    from viewproof.refinement import spark

    real_traces(tmp_path / "runs")
    merged(tmp_path / "runs", tmp_path / "merged")
    reports = []
    for folder in ("runs", "merged"):
        inputs = discover([str(tmp_path / folder)])
        one = local.audit(inputs, AuditOptions(), check_run)
        assert same(spark.audit(inputs, AuditOptions(), check_run, session=spark_session)) == same(one)
        assert same(local.audit(inputs, AuditOptions(), check_run, workers=2)) == same(one)
        with monkeypatch.context() as small:
            small.setattr(judging, "STREAM_BYTES", 1 << 18)
            assert same(local.audit(inputs, AuditOptions(), check_run)) == same(one)
        reports.append(one)
    assert without_places(reports[0]) == without_places(reports[1])
    verdicts = {verdict.verdict for verdict in reports[0].verdicts}
    assert verdicts >= {"conforms", "violates"}
    assert {"seed-0"} < {violation.run_id for violation in reports[0].violations}
    assert all(violation.message for violation in reports[0].violations)
