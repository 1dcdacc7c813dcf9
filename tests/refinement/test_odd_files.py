"""Files that are cut, nested, no UTF-8, no files, or given twice: named with their place, by both engines alike."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from click.testing import CliRunner, Result

from tests.refinement import fakes
from tests.refinement.test_engines import same
from viewproof.refinement import local
from viewproof.refinement.cli import cli
from viewproof.refinement.cli.audit import Dependencies
from viewproof.refinement.discovery import discover, survey
from viewproof.refinement.parquet import write_parquet
from viewproof.refinement.schema import INT_MAX
from viewproof.refinement.verdict import AuditOptions

Damage = Callable[[Path], None]


def audit(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["audit", *map(str, arguments)], obj=Dependencies(fakes.check_run))


def text_of(run: str, ops: int = 5) -> bytes:
    return "".join(json.dumps(r) + "\n" for r in fakes.records(run, nodes=1, ops=ops)).encode()


def in_blocks(data: bytes) -> bytes:
    """Frames without size and checksum, each with many blocks, so that a cut at a block's end leaves whole lines."""
    packed = b""
    for half in (data[: len(data) // 2], data[len(data) // 2 :]):
        frame = zstandard.ZstdCompressor(write_content_size=False).compressobj()
        for line in half.splitlines(keepends=True):
            packed += frame.compress(line) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        packed += frame.flush()
    return packed


def cut(left: int) -> Damage:
    def damage(directory: Path) -> None:
        packed = in_blocks(text_of("bad", 40))
        (directory / "t.ndjson.zst").write_bytes(packed[:-left] if left else packed + b"tail")

    return damage


def line(old: bytes, new: bytes) -> Damage:
    def damage(directory: Path) -> None:
        data = text_of("bad")
        assert data.count(old) == 1
        (directory / "t.ndjson").write_bytes(data.replace(old, new))

    return damage


def no_utf8(column: str, kind: Any) -> Damage:
    def damage(directory: Path) -> None:
        file = directory / "t.parquet"
        write_parquet(map(fakes.to_row, fakes.records("bad", nodes=1)), str(file))
        table = pq.read_table(file)
        at, values = table.schema.get_field_index(column), table[column].to_pylist()
        if pa.types.is_list(kind):
            raw = pa.array([None if v is None else [b"\xff"] for v in values], pa.list_(pa.binary()))
            item = pa.Array.from_buffers(pa.string(), len(raw.values), raw.values.buffers())
            broken = pa.ListArray.from_arrays(raw.offsets, item, mask=raw.is_null())
        else:
            raw = pa.array([v.encode() if n != 3 else b"\xff\xfe" for n, v in enumerate(values)], pa.binary())
            broken = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
        pq.write_table(table.set_column(at, column, broken), file)

    return damage


def encoded(encoding: str) -> Damage:
    def damage(directory: Path) -> None:
        (directory / "t.ndjson").write_bytes(text_of("bad").decode().encode(encoding))

    return damage


def deep(count: int, closed: bool = True) -> bytes:
    return b"[" * count + (b"]" * count if closed else b"")


SEQ_3 = b'"seq": 3,'
TOO_LARGE = f"expected an integer ≥ 1 and ≤ {INT_MAX}, got "
ODD: dict[str, tuple[Damage, str]] = {
    "zst cut at a block": (cut(3), "t.ndjson.zst:83: expected intact compressed data"),
    "zst cut by one": (cut(1), "expected intact compressed data"),
    "zst cut in a block": (cut(40), "expected intact compressed data"),
    "zst with a tail": (cut(0), "t.ndjson.zst:83: expected intact compressed data"),
    "deep": (line(SEQ_3, b'"seq": ' + deep(1_000_000) + b","), "t.ndjson:3: seq: expected a number, a string or"),
    "deep, open": (line(SEQ_3, b'"seq": ' + deep(1_000_000, False) + b","), "t.ndjson:3: seq: expected a number"),
    "deep, unknown": (line(SEQ_3, b'"seq": 3, "x}": ' + deep(1_000_000) + b","), "t.ndjson:3: x}: expected a number"),
    "deep, less": (line(SEQ_3, b'"seq": ' + deep(800) + b","), "t.ndjson:3: seq: expected an"),
    "int of many digits": (line(SEQ_3, b'"seq": ' + b"9" * 5000 + b","), f"seq: {TOO_LARGE}an integer of 5000 digits"),
    "int above the maximum": (line(SEQ_3, b'"seq": 9223372036854775808,'), f"seq: {TOO_LARGE}integer 92233720368547"),
    "number beyond floats": (line(SEQ_3, b'"seq": 1e999,'), f"t.ndjson:3: seq: {TOO_LARGE}number inf"),
    "key twice": (line(SEQ_3, b'"seq":2,"seq" :3,'), "t.ndjson:3: seq: expected each field once"),
    "key twice, other space": (line(SEQ_3, b'"seq" :2,"seq":3,'), "t.ndjson:3: seq: expected each field once"),
    "key twice, escaped": (line(SEQ_3, b'"seq":2,"s\\u0065q":3,'), "t.ndjson:3: seq: expected each field once"),
    "a byte order mark": (encoded("utf-8-sig"), "t.ndjson:1: expected UTF-8 without a byte order mark, got UTF-8 with"),
    "UTF-16": (encoded("utf-16"), "t.ndjson:1: expected UTF-8 without a byte order mark, got UTF-16"),
    "UTF-16, no mark": (encoded("utf-16-le"), "t.ndjson:1: expected UTF-8 without a byte order mark, got UTF-16"),
    "no UTF-8": (no_utf8("run", pa.string()), "t.parquet:4: run: expected a string, got bytes that are no UTF-8"),
    "no UTF-8 in choices": (no_utf8("event", pa.string()), "t.parquet:4: event: expected a string, got bytes"),
    "no UTF-8 in lists": (no_utf8("m_log", pa.list_(pa.string())), "t.parquet:12: m_log: expected a string, got by"),
}


@pytest.fixture
def with_good(tmp_path: Path) -> Path:
    """A directory with one good run."""
    fakes.write_run(tmp_path / "t", fakes.records("good"))
    return tmp_path / "t"


def put(directory: Path, damage: Damage) -> None:
    (directory / "bad").mkdir()
    damage(directory / "bad")


@pytest.mark.parametrize(("damage", "text"), ODD.values(), ids=ODD)
def test_what_is_wrong_is_named_and_other_runs_are_judged(with_good: Path, damage: Damage, text: str) -> None:
    put(with_good, damage)
    result = audit(with_good)
    assert result.exit_code == 2, result.output
    assert text in result.stdout
    assert "conforms     good" in result.stdout
    assert "  bad  (" not in result.stdout


@pytest.mark.spark
def test_spark_says_the_same(tmp_path: Path, spark_session: Any, capfd: pytest.CaptureFixture[str]) -> None:
    from viewproof.refinement import spark

    for number, (damage, _) in enumerate(ODD.values()):
        fakes.write_run(tmp_path / str(number), fakes.records(f"good-{number}"))
        put(tmp_path / str(number), damage)
    fakes.write_run(tmp_path, fakes.records("beside"))
    (tmp_path / "dangling.ndjson").symlink_to(tmp_path / "nowhere")
    inputs, options = discover([str(tmp_path)]), AuditOptions()
    one = local.audit(inputs, options, fakes.check_run)
    two = spark.audit(inputs, options, fakes.check_run, session=spark_session)
    assert same(one) == same(two)
    assert (one.exit_code, one.count("conforms")) == (2, len(ODD) + 1)
    assert "Traceback" not in capfd.readouterr().err


def test_a_line_is_refused_at_any_depth(tmp_path: Path) -> None:
    """Around the depth at which decoders and `repr` give up."""
    data = text_of("r")
    for depth in range(300, 1100, 37):
        (tmp_path / "t.ndjson").write_bytes(data.replace(SEQ_3, b'"seq": ' + deep(depth) + b","))
        result = audit(tmp_path)
        assert result.exit_code == 2
        assert "t.ndjson:3: seq: expected" in result.stdout


def test_control_characters_are_escaped(tmp_path: Path) -> None:
    run = "a\x1b[31m\n\u202everdict: conforms"
    records = fakes.records("r", nodes=1)
    for record in records:
        record["run"] = run
    records[4]["head"] = fakes.BAD_HEAD
    file = fakes.write_lines(tmp_path / "a\nb" / "t.ndjson", records)
    (file.parent / "x\x1by").touch()
    result = audit(file.parent, "--html", tmp_path / "h.html", "--junit", tmp_path / "j.xml")
    assert result.exit_code == 1
    assert "violates     a\\x1b[31m\\n\\u202everdict: conforms  (" in result.stdout
    assert f"{tmp_path}/a\\nb/t.ndjson:5: fake.head" in result.stdout
    assert not {"\x1b", "\u202e"} & set(result.output)
    assert "x\\x1by" in result.stderr
    assert not {"\x1b", "\u202e"} & set((tmp_path / "h.html").read_text())


# --- no regular files -----------------------------------------------------------------------------------------------


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def bound(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the address of a socket is short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def device(path: Path) -> None:
    path.symlink_to("/dev/null")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (dangling, "a symbolic link to nowhere: No such file"),
        (loop, "a symbolic link to x.ndjson: Too many levels"),
        (pipe, "a named pipe"),
        (bound, "a socket"),
        (device, "a device"),
    ],
)
def test_what_is_no_file_is_named(with_good: Path, make: Callable[[Path], None], text: str) -> None:
    path = with_good / "x.ndjson"
    make(path)
    result = audit(path)
    assert result.exit_code == 2
    assert f"{path}: expected a " in result.stdout
    assert text in result.stdout
    result = audit(with_good)
    assert result.exit_code == 2
    assert text in result.stdout
    assert "conforms     good" in result.stdout


def test_a_directory_that_cannot_be_read_is_named(with_good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (with_good / "secret").mkdir()
    listed = os.listdir

    def refuse(path: str) -> list[str]:
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr("viewproof.refinement.discovery.os.listdir", refuse)
    result = audit(with_good)
    assert result.exit_code == 2
    assert f"{with_good}/secret: expected a readable directory, got Permission denied" in result.stdout
    assert "conforms     good" in result.stdout


def test_what_has_no_traces_name_is_only_noted(with_good: Path) -> None:
    dangling(with_good / ".#lock")
    pipe(with_good / "pipe")
    result = audit(with_good)
    assert result.exit_code == 0
    assert "2 files that are no traces are not read" in result.stderr


def test_a_name_that_is_no_utf8_is_refused(with_good: Path) -> None:
    with open(os.fsencode(with_good) + b"/\xff.ndjson", "wb"):
        pass
    result = audit(with_good, "--json", with_good / "r.json", "--html", with_good / "r.html")
    assert result.exit_code == 2
    assert "\\udcff.ndjson: expected a path in UTF-8" in result.stdout


# --- the same file again --------------------------------------------------------------------------------------------


def test_a_file_is_read_once_by_whatever_path(with_good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = with_good / "good" / "replica-0.ndjson"
    (with_good / "good" / "copy.ndjson").symlink_to(file.name)
    (with_good / "again").symlink_to("good")
    (with_good / "good" / "loop").symlink_to("..")
    (with_good / "other.ndjson").hardlink_to(file)
    monkeypatch.chdir(with_good)
    inputs = survey(["good", str(with_good), str(file), "./good/../other.ndjson"])
    assert sum(len(unit.files) for unit in inputs.units) == 3
    assert "good/replica-0.ndjson" in inputs.files
    assert "good/copy.ndjson" in inputs.repeated
    result = audit(with_good, file)
    assert result.exit_code == 0, result.output
    assert "lead to files that are read already" in result.stderr


def test_a_linked_directory_is_searched(with_good: Path, tmp_path: Path) -> None:
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "latest").symlink_to(with_good)
    assert audit(tmp_path / "u").exit_code == 0


def test_a_file_that_goes_away_stops_only_its_unit(with_good: Path) -> None:
    fakes.write_run(with_good, fakes.records("gone"))
    inputs = discover([str(with_good)])
    (with_good / "gone" / "replica-1.ndjson").unlink()
    report = local.audit(inputs, AuditOptions(), fakes.check_run)
    assert report.exit_code == 2
    assert [verdict.run_id for verdict in report.verdicts] == ["good"]
