"""The trace file: one line per event, torn lines cut, sequence and clock continued, columns as documented."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from pyarrow import parquet

from viewproof.impl.trace.events import TraceEvent, decode_line, encode_line
from viewproof.impl.trace.files import TraceError, TraceWriter, read_ndjson
from viewproof.impl.trace.parquet import PARQUET_SCHEMA, export_parquet


def event(seq: int, clock: int) -> TraceEvent:
    return TraceEvent(run="r", node=1, seq=seq, clock=clock, event="append", op=3, head="ab", m_log=("a", "b"))


def test_the_columns_are_those_of_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "traces" / "README.md").read_text(encoding="utf-8")
    table = text.split("| column | type | meaning |")[1].split("\n\n")[0]
    documented = [
        name
        for line in table.splitlines()
        for name in re.findall(r"`(\w+)`", line.split("|")[1] if "|" in line else "")
    ]
    assert sorted(documented) == sorted(TraceEvent.__struct_fields__)


def test_a_column_that_is_not_observed_is_left_out() -> None:
    line = encode_line(event(1, 1))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert b"null" not in line
    assert b"digest" not in line
    assert decode_line(line) == event(1, 1)


def test_an_event_is_in_the_file_when_write_returns(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "run" / "replica-1.ndjson") as writer:
        writer.write(event(1, 4))
        assert writer.path.read_bytes() == encode_line(event(1, 4))


def test_a_torn_last_line_is_cut_and_seq_and_clock_go_on(tmp_path: Path) -> None:
    path = tmp_path / "replica-1.ndjson"
    whole = encode_line(event(1, 4)) + encode_line(event(2, 9))
    path.write_bytes(whole + encode_line(event(3, 12))[:-7])
    with TraceWriter(path) as writer:
        assert (writer.seq, writer.clock) == (2, 9)
        writer.write(event(3, 10))
    assert path.read_bytes() == whole + encode_line(event(3, 10))


def test_a_broken_line_before_the_end_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "replica-1.ndjson"
    path.write_bytes(encode_line(event(1, 4)) + b"{no json}\n" + encode_line(event(2, 9)))
    with pytest.raises(TraceError, match=r"replica-1\.ndjson:2: not a trace event"):
        TraceWriter(path)


def test_parquet_has_the_same_columns_and_values(tmp_path: Path) -> None:
    events = [event(1, 4), event(2, 9)]
    assert export_parquet(events, tmp_path / "t.parquet") == 2
    table = parquet.read_table(tmp_path / "t.parquet")
    assert table.schema.equals(PARQUET_SCHEMA)
    assert table.column("m_log").to_pylist() == [["a", "b"]] * 2
    assert table.column("digest").to_pylist() == [None, None]
    assert read_ndjson(io.BytesIO(b"".join(map(encode_line, events)))) == events


@pytest.mark.parametrize("content", [b"\xff\xfe" * 100, b"x" * 5000, b'{"run": "r", "other"', b'{"rum'])
def test_a_file_that_is_no_trace_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="notes:1: not the begin of a trace event; nothing was changed"):
        TraceWriter(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["/dev/full", "directory"])
def test_what_is_no_file_is_no_trace(tmp_path: Path, name: str) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(TraceError, match="not a file; a trace is a file"):
        TraceWriter(tmp_path / name)


def test_a_trace_has_one_writer_of_one_replica_and_run(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    with TraceWriter(path) as writer:
        writer.require_of(5, "any")
        writer.write(event(1, 1))
        with pytest.raises(TraceError, match="another process writes this trace"):
            TraceWriter(path)
    with TraceWriter(path) as writer:
        writer.require_of(1, "r")
        for node, run in ((2, "r"), (1, "other")):
            with pytest.raises(TraceError, match=f"are of node 1 in run r, not of node {node}"):
                writer.require_of(node, run)
