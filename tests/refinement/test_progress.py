"""What is said while an audit goes on: how many runs and events it judged, on a terminal and in plain lines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn

from tests.refinement.traces import simulated
from viewproof.api.audit import check_run
from viewproof.refinement import judging, local
from viewproof.refinement.cli import output
from viewproof.refinement.discovery import discover
from viewproof.refinement.verdict import AuditOptions

OPTIONS = AuditOptions()


def said_of(folder: Path) -> tuple[list[str], int]:
    """What progress says of an audit of these traces, and how many events the report has."""
    said: list[str] = []
    report = local.audit(
        discover([str(folder)]),
        OPTIONS,
        check_run(),
        progress=lambda done, total, name: said.append(f"{done}/{total} {name}"),
    )
    assert report.verdict == "conforms"
    return said, report.events


def test_runs_and_events_are_counted_run_by_run(tmp_path: Path) -> None:
    for seed in (1, 2):
        simulated(tmp_path, seed, requests=5)
    said, events = said_of(tmp_path)
    assert [line.partition(", ")[0] for line in said] == ["1/2 1 run", "2/2 2 runs"]
    assert f"2 runs, {events:,} events; " in said[-1]


def test_a_run_whose_files_lie_in_several_directories_is_one(tmp_path: Path) -> None:
    simulated(tmp_path / "run", 1, requests=5)
    for file in sorted(tmp_path.rglob("*.ndjson")):
        (tmp_path / "hive" / file.stem).mkdir(parents=True)
        file.rename(tmp_path / "hive" / file.stem / file.name)
    said, events = said_of(tmp_path / "hive")
    assert [line.partition(", ")[0] for line in said] == ["1/3 1 run", "2/3 1 run", "3/3 1 run"]
    assert f"1 run, {events:,} events; " in said[-1]


def test_events_of_one_large_run_are_counted_while_it_is_judged_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulated(tmp_path, 4, requests=10)
    monkeypatch.setattr(judging, "STREAM_BYTES", 0)
    monkeypatch.setattr(judging, "TOLD_EVENTS", 50)
    monkeypatch.setenv("VSR_REPLAY", "python")
    said, events = said_of(tmp_path)
    assert [line.partition(";")[0] for line in said[:2]] == ["0/1 0 runs, 50 events", "0/1 0 runs, 100 events"]
    assert len(said) == events // 50 + 1
    assert said[-1].startswith(f"1/1 1 run, {events:,} events; ")


def test_it_is_shown_in_plain_lines_and_beside_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "3 runs, 12,345,678 events; a/run/with/a/long/name/that/no/terminal/has/room/for"
    monkeypatch.setattr(output, "PLAIN_SECONDS", 0.0)
    output.Steps("audit", None)(3, 9, name)
    assert capsys.readouterr().err == f"audit: 3 of 9 ({name})\n"
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    with Progress(TextColumn("{task.description}"), console=console) as bar:
        output.Steps("audit", bar)(3, 9, name)
        bar.refresh()
    assert isinstance(console.file, io.StringIO)
    assert "audit: 3 runs, 12,345,678 events; a/run" in console.file.getvalue()
