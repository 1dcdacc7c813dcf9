"""Inputs as they come: own columns, other names, rotated files, standard input, and columns to judge without."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner

from tests.refinement import fakes
from viewproof.refinement.cli import cli
from viewproof.refinement.cli.audit import Dependencies
from viewproof.refinement.parquet import write_parquet

STEADY = Path("traces/recorded/steady")


def audit(*words: str, stdin: bytes | None = None, judge: bool = False) -> tuple[int, str]:
    """Exit code and output; by the real replay, if it is to `judge`."""
    obj = None if judge else Dependencies(fakes.check_run)
    result = CliRunner().invoke(cli, ["audit", *words], obj=obj, input=stdin)
    return result.exit_code, result.output


@pytest.mark.parametrize("name", ["t.jsonl", "t.ndjson.1", "t.jsonl.12"])
def test_other_names_of_trace_files(name: str, tmp_path: Path) -> None:
    file = fakes.write_lines(tmp_path / name, fakes.records("r"))
    assert audit(str(file))[0] == audit(str(tmp_path))[0] == 0


def test_a_rotated_trace_is_one_run(tmp_path: Path) -> None:
    records = fakes.records("r")
    fakes.write_lines(tmp_path / "t.ndjson.1", records[:9])
    fakes.write_lines(tmp_path / "t.ndjson", records[9:])
    code, output = audit(str(tmp_path))
    assert (code, "1 run: 1 conforms" in output) == (0, True)


@pytest.mark.parametrize("packed", [bytes, gzip.compress, zstandard.ZstdCompressor().compress])
def test_standard_input(packed: Callable[[bytes], bytes]) -> None:
    text = "".join(json.dumps(record) + "\n" for record in fakes.records("r"))
    code, output = audit("-", stdin=packed(text.encode()))
    assert (code, "1 run: 1 conforms" in output) == (0, True)


def test_own_columns_are_carried_along_and_shown_where_something_is_wrong(tmp_path: Path) -> None:
    records = [record | {"x_trace": f"id-{n}", "comit_min": 1} for n, record in enumerate(fakes.records("r"))]
    file = fakes.write_lines(tmp_path / "t.ndjson", records)
    code, output = audit(str(file))
    assert code == 0
    assert f"x_trace is no column of the format: carried along, not judged (first at {file}:1)" in output
    assert 'comit_min is no column of the format; did you mean "commit_min"?' in output
    records[7]["head"] = fakes.BAD_HEAD
    code, output = audit(str(fakes.write_lines(file, records)))
    assert (code, "x_trace: id-7" in output) == (1, True)


def test_own_columns_of_parquet_are_carried_along(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = [fakes.to_row(record) for record in fakes.records("r")]
    file = tmp_path / "t.parquet"
    write_parquet(rows, str(file))
    table = pq.read_table(file)
    pq.write_table(table.append_column("x_trace", pa.array(range(len(rows)))), file)
    code, output = audit(str(file))
    assert (code, "x_trace is no column of the format" in output) == (0, True)


def test_one_run_id_in_two_places_is_named(tmp_path: Path) -> None:
    for place in ("a", "b"):
        fakes.write_run(tmp_path / place, fakes.records("r"))
    code, output = audit(str(tmp_path))
    assert (code, "has it, too; two runs with one id?" in output) == (2, True)


def test_a_waived_column_is_said_and_not_looked_at(tmp_path: Path) -> None:
    code, output = audit(str(STEADY), "--without", "m_parent", judge=True)
    assert code == 4
    assert "m_parent of on_request at " in output
    assert "judged without m_parent, as if it were never shown" in output
    assert audit(str(STEADY), "--without", "m_reply", "--json", str(tmp_path / "j"), judge=True)[0] == 4
    assert json.loads((tmp_path / "j").read_text())["options"]["without"] == ["m_reply"]


def test_a_waived_column_is_said_in_every_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"json": "r.json", "junit": "r.xml", "sarif": "r.sarif", "html": "r.html"}
    options = [text for option, name in names.items() for text in (f"--{option}", str(tmp_path / name))]
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    file = fakes.write_lines(tmp_path / "t.ndjson", fakes.records("r"))
    code, output = audit(str(file), "--without", "head", *options)
    assert (code, "judged without head" in output) == (0, True)
    for name in names.values():
        assert "judged without head, as if it were never shown" in (tmp_path / name).read_text(), name
    assert "Judged without `head`" in (tmp_path / "summary.md").read_text()


SET = ("--set", "replicas=3", "--set", "quorum_replication=2", "--set", "quorum_view_change=2")


def middle(tmp_path: Path, **changed: int) -> Path:
    """A log kept by retention: its lines from the middle on; one of them may be changed."""
    for file in sorted(STEADY.glob("*.ndjson")):
        records = [json.loads(line) for line in file.read_text().splitlines()]
        left = [record for record in records if record["clock"] > 1500]
        if file.stem == "replica-0":
            left[100] |= changed
        fakes.write_lines(tmp_path / file.name, left)
    return tmp_path


def test_a_log_from_the_middle_is_judged_from_where_it_begins(tmp_path: Path) -> None:
    code, output = audit(str(middle(tmp_path)), judge=True)
    assert (code, "say it with --set replicas=" in output) == (4, True)
    code, output = audit(str(tmp_path), *SET, judge=True)
    assert (code, "of node 0: no such event in the input" in output) == (4, True)
    code, output = audit(str(middle(tmp_path, commit_max=100_000)), *SET, judge=True)
    assert (code, "observed.commit_max" in output) == (1, True)


@pytest.mark.parametrize("given", ["replicas", "replicas=x", "m_op=3", "replicas=0"])
def test_a_configuration_that_there_is_none_is_refused(given: str) -> None:
    assert audit(str(STEADY), "--set", given)[0] == 2


@pytest.mark.parametrize(("column", "text"), [("m_parnt", 'did you mean "m_parent"?'), ("seq", "without seq")])
def test_a_column_that_cannot_be_waived_is_refused(column: str, text: str) -> None:
    code, output = audit(str(STEADY), "--without", column)
    assert (code, text in output) == (2, True)
