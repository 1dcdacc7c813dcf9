"""Malformed and missing input: a message with file, line and field, and the exit code of the contract."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from click.testing import CliRunner, Result

from tests.refinement import fakes
from viewproof.refinement.cli import cli
from viewproof.refinement.cli.audit import Dependencies
from viewproof.refinement.discovery import discover
from viewproof.refinement.parquet import write_parquet
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.schema import COLUMNS

Change = Callable[[list[dict[str, Any]]], None]


def audit(*arguments: str | Path) -> Result:
    """`vsr audit` with the stand-in replay."""
    words = ["audit", *map(str, arguments)]
    return CliRunner().invoke(cli, words, obj=Dependencies(fakes.check_run))


def set_field(position: int, name: str, value: Any) -> Change:
    def change(records: list[dict[str, Any]]) -> None:
        records[position][name] = value

    return change


def drop_field(position: int, name: str) -> Change:
    def change(records: list[dict[str, Any]]) -> None:
        del records[position][name]

    return change


MALFORMED: list[tuple[str, Change, int, str, str]] = [
    ("wrong type", set_field(2, "view", "three"), 3, "view", 'expected an integer ≥ 0, got string "three"'),
    ("bool for int", set_field(2, "op", True), 3, "op", "expected an integer ≥ 0, got true"),
    ("fraction", set_field(2, "op", 1.5), 3, "op", "expected an integer ≥ 0, got number 1.5"),
    ("negative", set_field(1, "commit_min", -1), 2, "commit_min", "expected an integer ≥ 0, got integer -1"),
    ("too large", set_field(1, "op", 2**63), 2, "op", "expected an integer ≥ 0"),
    ("too many replicas", set_field(0, "replicas", 257), 1, "replicas", "an integer ≥ 1 and ≤ 256, got integer 257"),
    ("too many messages", set_field(2, "m_count", 2**62), 3, "m_count", "an integer ≥ 1 and ≤ 4194304, got integer 46"),
    ("too large a number", set_field(2, "m_count", 2**64), 3, "m_count", "an integer ≥ 1 and ≤ 4194304, got integer 1"),
    ("unknown event", set_field(4, "event", "prepare_okay"), 5, "event", 'did you mean "prepare_ok"?'),
    ("unknown status", set_field(4, "status", "norml"), 5, "status", 'did you mean "normal"?'),
    ("missing field", drop_field(3, "clock"), 4, "clock", "the field is missing"),
    ("null where required", set_field(3, "node", None), 4, "node", "expected an integer ≥ 0, got null"),
    ("seq zero", set_field(0, "seq", 0), 1, "seq", "expected an integer ≥ 1"),
    ("empty run id", set_field(0, "run", ""), 1, "run", "expected a string"),
    ("empty digest", set_field(1, "digest", ""), 2, "digest", "expected a string that is not empty"),
    ("empty reply", set_field(1, "m_reply", ""), 2, "m_reply", "expected a string that is not empty"),
    ("log of ints", set_field(11, "m_log", [1, 2]), 12, "m_log", "expected a list of strings"),
    ("repeated seq", set_field(5, "seq", 5), 6, "seq", "each number once of node 0 in run r, got 5 a second time"),
    ("clock does not rise", set_field(5, "clock", 10), 6, "clock", "clock that rises with every event of node 0"),
    ("clock falls", set_field(6, "clock", 2), 6, "seq", "a clock that does not rise"),
]


@pytest.mark.parametrize(("change", "line", "field", "text"), [m[1:] for m in MALFORMED], ids=[m[0] for m in MALFORMED])
def test_a_malformed_event_is_exit_2_with_its_place(
    tmp_path: Path, change: Change, line: int, field: str, text: str
) -> None:
    records = fakes.records("r", nodes=1)
    change(records)
    file = fakes.write_lines(tmp_path / "r" / "t.ndjson", records)
    result = audit(file)
    assert result.exit_code == 2, result.output
    assert f"{file}:{line}: {field}: " in result.output
    assert text in result.output


@pytest.mark.parametrize(("change", "line", "field", "text"), [m[1:] for m in MALFORMED], ids=[m[0] for m in MALFORMED])
def test_gzip_says_the_same(tmp_path: Path, change: Change, line: int, field: str, text: str) -> None:
    records = fakes.records("r", nodes=1)
    change(records)
    file = tmp_path / "t.ndjson.gz"
    file.write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in records).encode()))
    result = audit(file)
    assert result.exit_code == 2
    assert f"{file}:{line}: {field}: " in result.output


def write_bytes(tmp_path: Path, change: Callable[[bytes], bytes], name: str = "t.ndjson") -> Path:
    file = fakes.write_lines(tmp_path / name, fakes.records("r", nodes=1))
    file.write_bytes(change(file.read_bytes()))
    return file


def test_truncated_last_line(tmp_path: Path) -> None:
    file = write_bytes(tmp_path, lambda data: data[:-25])
    result = audit(file)
    assert result.exit_code == 2
    assert (
        f"{file}:12: expected a complete last line, got a truncated one: the file ends inside an event" in result.output
    )


def test_broken_json(tmp_path: Path) -> None:
    file = write_bytes(tmp_path, lambda data: data.replace(b'"seq": 3', b'"seq" 3'))
    result = audit(file)
    assert result.exit_code == 2
    assert f"{file}:3: expected valid JSON, got JSON is malformed" in result.output


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"[1, 2]\n", "expected a JSON object, got list"),
        (b"\n", "expected an event, got a blank line"),
        (b"\xff\xfe\n", "expected UTF-8 without a byte order mark"),
        (b"\xff\n", "expected UTF-8, got the byte 0xff in column 1"),
        (b"{} {}\n", "expected valid JSON"),
    ],
)
def test_lines_that_are_no_events(tmp_path: Path, line: bytes, text: str) -> None:
    file = write_bytes(tmp_path, lambda data: line + data)
    result = audit(file)
    assert result.exit_code == 2
    assert f"{file}:1: " in result.output
    assert text in result.output


@pytest.mark.parametrize("packed", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_truncated_compressed_file(tmp_path: Path, packed: Callable[[bytes], bytes]) -> None:
    name = "t.ndjson.gz" if packed is gzip.compress else "t.ndjson.zst"
    whole = "".join(json.dumps(r) + "\n" for r in fakes.records("r", nodes=1, ops=400)).encode()
    file = tmp_path / name
    file.write_bytes(packed(whole))
    assert audit(file).exit_code == 0
    file.write_bytes(packed(whole)[:-40])
    result = audit(file)
    assert result.exit_code == 2, result.output
    assert str(file) in result.output


def test_a_field_given_twice_is_refused(tmp_path: Path) -> None:
    file = write_bytes(tmp_path, lambda data: data.replace(b'"seq": 3,', b'"seq": 2, "seq": 3,'))
    result = audit(file)
    assert result.exit_code == 2
    assert f"{file}:3: seq: expected each field once, got the field several times" in result.output


def test_nulls_spaces_and_escapes_are_fine(tmp_path: Path) -> None:
    def loosen(data: bytes) -> bytes:
        return data.replace(b'"seq": ', b'"view": null, "seq" : ', 1).replace(b'"r"', b'"r\\": null"')

    assert audit(write_bytes(tmp_path, loosen)).exit_code == 0


def test_each_cause_is_reported_up_to_a_limit_and_so_are_all_with_the_number_beyond(tmp_path: Path) -> None:
    records = fakes.records("r", nodes=1, ops=20)
    for record in records[:30]:
        record["view"] = -1
    records[30]["op"] = -1
    result = audit(fakes.write_lines(tmp_path / "t.ndjson", records))
    assert result.output.count("view: expected an integer ≥ 0") == 5
    assert "t.ndjson:31: op: expected" in result.output
    assert "… and 25 more places with malformed input" in result.output
    for record, name in zip(records, ("clock", "seq", "node", "view", "op", "commit_min", "commit_max"), strict=False):
        record[name] = "x"
    result = audit(fakes.write_lines(tmp_path / "t.ndjson", [{**one, "log_view": -1} for one in records]))
    assert len([line for line in result.output.splitlines() if "t.ndjson:" in line]) <= 20


def test_every_wrong_field_of_a_line_is_named() -> None:
    from viewproof.refinement.schema import check_record

    record = fakes.records("r", nodes=1)[0] | {"view": -1, "x": 1, "clock": None}
    assert [problem.field for problem in check_record(record)] == ["clock", "view"]


def test_a_gap_in_seq_is_inconclusive_and_named(tmp_path: Path) -> None:
    records = fakes.records("r", nodes=1)
    del records[4:6]
    file = fakes.write_lines(tmp_path / "t.ndjson", records)
    result = audit(file)
    assert result.exit_code == 4
    assert f"missing: seq 5 to 6 of node 0: no such event in the input (noticed at {file}:5)" in result.output


def test_an_empty_directory_is_exit_4(tmp_path: Path) -> None:
    result = audit(tmp_path)
    assert result.exit_code == 4
    assert f"{tmp_path}: no trace files" in result.output
    assert "nothing was checked" in result.output


def test_an_empty_file_is_exit_4_also_beside_good_ones(tmp_path: Path) -> None:
    fakes.write_run(tmp_path, fakes.records("r"))
    assert audit(tmp_path).exit_code == 0
    (tmp_path / "r" / "empty.ndjson").touch()
    result = audit(tmp_path)
    assert result.exit_code == 4
    assert "empty.ndjson: the file holds no event" in result.output
    assert "conforms     r" in result.output


@pytest.mark.parametrize("name", ["nowhere", "none-*.ndjson", "notes.txt"])
def test_a_path_without_a_trace_is_exit_2(tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    result = audit(tmp_path / name)
    assert result.exit_code == 2
    assert str(tmp_path / name) in result.output


def test_files_that_are_no_traces_are_mentioned(tmp_path: Path) -> None:
    fakes.write_run(tmp_path, fakes.records("r"))
    (tmp_path / "notes.txt").write_text("x")
    assert "1 files that are no traces are not read" in audit(tmp_path).output


# --- Parquet --------------------------------------------------------------------------------------------------------


def test_parquet_gives_the_same_rows_as_ndjson(tmp_path: Path) -> None:
    records = fakes.records("r")
    text = fakes.write_lines(tmp_path / "t.ndjson", records)
    write_parquet(map(fakes.to_row, records), str(tmp_path / "t.parquet"))
    log = ProblemLog()
    lines = [(*row[: len(COLUMNS)], row[-1]) for row in read_rows(str(text), log)]
    rows = [(*row[: len(COLUMNS)], row[-1]) for row in read_rows(str(tmp_path / "t.parquet"), log)]
    assert rows == lines
    assert not log


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda t: t.drop_columns(["seq"]), "seq: expected an integer ≥ 1, got nothing: the column is missing"),
        (
            lambda t: t.set_column(t.schema.get_field_index("view"), "view", pa.array(["x"] * len(t))),
            "view: expected an integer ≥ 0, got the Parquet type string",
        ),
    ],
)
def test_parquet_with_wrong_columns(tmp_path: Path, change: Callable[[pa.Table], pa.Table], text: str) -> None:
    file = tmp_path / "t.parquet"
    write_parquet(map(fakes.to_row, fakes.records("r")), str(file))
    pq.write_table(change(pq.read_table(file)), file)
    result = audit(file)
    assert result.exit_code == 2
    assert text in result.output


def test_parquet_with_wrong_values(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    records = fakes.records("r", nodes=1)
    records[3]["op"] = -5
    records[4]["event"] = "exekute"
    write_parquet(map(fakes.to_row, records), str(file))
    result = audit(file)
    assert result.exit_code == 2
    assert f"{file}:4: op: expected an integer ≥ 0, got integer -5" in result.output
    assert (
        f'{file}:5: event: expected a known event, got unknown event "exekute"; did you mean "execute"?'
        in result.output
    )


def test_parquet_that_is_truncated(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    write_parquet(map(fakes.to_row, fakes.records("r")), str(file))
    file.write_bytes(file.read_bytes()[:-30])
    result = audit(file)
    assert result.exit_code == 2
    assert f"{file}: expected a Parquet file, got a damaged or truncated one" in result.output


def test_a_file_given_twice_is_read_once(tmp_path: Path) -> None:
    file = fakes.write_lines(tmp_path / "t.ndjson", fakes.records("r"))
    inputs = discover([str(tmp_path), str(file), f"{tmp_path}/./t.ndjson", f"{tmp_path}/*.ndjson"])
    assert [unit.files for unit in inputs.units] == [(str(file),)]


def test_an_own_column_may_hold_a_number_of_any_length(tmp_path: Path) -> None:
    """It is carried along; as the value of a column of the format it is refused, with its field."""
    file = fakes.write_lines(tmp_path / "t.ndjson", fakes.records("r"))
    lines = file.read_text().splitlines(keepends=True)
    lines[3] = lines[3].replace("{", '{"own": ' + "9" * 10_000 + ", ", 1)
    file.write_text("".join(lines))
    result = audit(file)
    assert result.exit_code == 0, result.output
    assert f"own is no column of the format: carried along, not judged (first at {file}:4)" in result.output


def test_a_byte_of_another_encoding_is_named_with_its_column(tmp_path: Path) -> None:
    file = fakes.write_lines(tmp_path / "t.ndjson", fakes.records("r"))
    lines = file.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"r"', b'"r\xe9"', 1)
    file.write_bytes(b"".join(lines))
    result = audit(file)
    column = lines[2].index(b"\xe9") + 1
    assert (result.exit_code, f":3: expected UTF-8, got the byte 0xe9 in column {column}" in result.output) == (2, True)
