"""What an audit keeps in a directory: its own files and no others, all or nothing, and of each file what it is of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refinement.test_going_on import NODE, content, line, write
from tests.refinement.traces import simulated
from viewproof import audit, audit_from
from viewproof.api.audit import AuditOptionError
from viewproof.refinement.cli import cli
from viewproof.refinement.going_on import runs
from viewproof.refinement.going_on.inputs import classify
from viewproof.refinement.parquet import write_parquet
from viewproof.refinement.schema import Row


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return simulated(tmp_path_factory.mktemp("good"), 3, requests=10)


@pytest.mark.parametrize("name", ["run-1.ndjson", "run-2026-11-28.html", "run-7", "run-1.log-2.gz"])
def test_files_of_others_are_refused_and_stay(good: list[Row], name: str, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    write(tmp_path / "a", good)
    folder.mkdir()
    (folder / name).write_text("mine")
    with pytest.raises(AuditOptionError, match=f"expected an empty directory, or the state of an audit; found {name}"):
        audit_from(folder, tmp_path / "a")
    assert (folder / name).read_text() == "mine"


def test_what_others_put_beside_a_state_stays_and_what_a_killed_audit_left_goes(
    good: list[Row], tmp_path: Path
) -> None:
    state = tmp_path / "state"
    write(tmp_path / "a", good)
    state.mkdir()
    (state / "index.json.new").write_text("half")
    (state / "run-0.log-1").write_text("half")
    assert audit_from(state, tmp_path / "a").verdict == "conforms"
    (state / "run-9.log-9").write_text("half")
    (state / "run-7.json").write_text("mine")
    write(tmp_path / "b", good, "b")
    audit_from(state, tmp_path / "b")
    assert "run-9.log-9" not in content(state)
    assert (state / "run-7.json").read_text() == "mine"


def test_an_audit_that_could_not_judge_a_run_keeps_nothing(
    good: list[Row], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    state, said = tmp_path / "state", list[str]()
    write(tmp_path / "a", good)
    audit_from(state, tmp_path / "a")
    before = content(state)
    write(tmp_path / "b", good, "b")
    judge = runs.check_run

    def fails(run_id: str, *more: object, **options: object) -> object:
        if run_id == "b":
            raise MemoryError
        return judge(run_id, *more, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runs, "check_run", fails)
    report = audit_from(state, tmp_path / "b", log=said.append)
    assert report.exit_code == 2
    assert "run b: the checker failed: MemoryError" in report.tool_errors[0]
    assert said[-1].endswith("is as it was: a run was not judged")
    assert content(state) == before
    monkeypatch.undo()
    assert [one.run_id for one in audit_from(state, tmp_path / "b").verdicts] == ["b", "r"]


def by_node(folder: Path, rows: Sequence[Row], run: str) -> None:
    """The rows in directories that name their run and node, which their lines do not."""
    for node in sorted({row[NODE] for row in rows}):
        place = folder / f"run={run}" / f"node={node}"
        place.mkdir(parents=True)
        records = [json.loads(line(row, run)) for row in rows if row[NODE] == node]
        lines = ({k: v for k, v in record.items() if k not in ("run", "node")} for record in records)
        (place / "x.ndjson").write_text("".join(json.dumps(each) + "\n" for each in lines))


def test_equal_files_of_two_runs_are_two(good: list[Row], tmp_path: Path) -> None:
    for run in ("a", "b"):
        by_node(tmp_path / run, good, run)
    both = audit(tmp_path / "a", tmp_path / "b")
    audit_from(tmp_path / "state", tmp_path / "a")
    report = audit_from(tmp_path / "state", tmp_path / "b")
    assert [(v.run_id, v.verdict, v.events) for v in report.verdicts] == [
        (v.run_id, v.verdict, v.events) for v in both.verdicts
    ]
    assert {v.events for v in report.verdicts} == {len(good)}


def test_a_file_that_was_fetched_has_the_columns_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "fetched").write_text("{}")
    of_a, of_b = (classify(str(tmp_path / "fetched"), (), f"s3://b/run={run}/x.ndjson") for run in "ab")
    assert of_a.digest != of_b.digest


def test_a_file_without_events_is_named_until_it_has_some(good: list[Row], tmp_path: Path) -> None:
    state, files = tmp_path / "state", write(tmp_path / "a", good)
    (tmp_path / "a" / "z.ndjson").write_text("")
    assert audit_from(state, tmp_path / "a").empty == (f"{tmp_path / 'a' / 'z.ndjson'}: the file holds no event",)
    report = audit_from(state)
    assert (report.exit_code, len(report.empty)) == (4, 1)
    (tmp_path / "a" / "z.ndjson").write_text(files[0].read_text().replace('"run": "r"', '"run": "z"'))
    assert audit_from(state, tmp_path / "a").empty == ()


def test_a_part_without_rows_takes_nothing_away(good: list[Row], tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    write_parquet(good, str(tmp_path / "t" / "part-0.parquet"))
    write_parquet([], str(tmp_path / "t" / "part-1.parquet"))
    assert audit(tmp_path / "t").exit_code == 0
    for _ in range(2):
        assert audit_from(tmp_path / "state", tmp_path / "t").exit_code == 0


def test_by_the_command(good: list[Row], tmp_path: Path) -> None:
    write(tmp_path / "run-1", good)
    for file in sorted((tmp_path / "run-1").iterdir()):
        file.rename(file.with_name(f"run-{file.name}"))
    result = CliRunner().invoke(cli, ["audit", str(tmp_path / "run-1"), "--state", str(tmp_path / "run-1")])
    assert result.exit_code == 2
    assert (tmp_path / "run-1" / "run-r-0.ndjson").exists()
