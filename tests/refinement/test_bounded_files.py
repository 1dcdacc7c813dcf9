"""Files that would fill the memory: refused by name, with the memory that was taken on the way."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from viewproof.refinement.bounds import LINE_MAX, ROWS_MIN
from viewproof.refinement.reading import carried_at
from viewproof.refinement.schema import ARROW_SCHEMA
from viewproof.refinement.text_lines import TextLines
from viewproof.refinement.tigerbeetle.reading import segments

MEMORY_MAX_MIB = 700
SIZE = 1 << 30
MIB = b"a" * (1 << 20)

READ = """
import sys
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
log = ProblemLog()
print(sum(1 for _ in read_rows(sys.argv[1], log)))
print(next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith("VmHWM")))
print(*log.problems, sep="\\n")
"""


def zst(path: Path) -> None:
    with open(path, "wb") as raw, zstandard.ZstdCompressor().stream_writer(raw) as packed:
        packed.write(b'{"run": "')
        for _ in range(SIZE >> 20):
            packed.write(MIB)


def gz(path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as packed:
        for _ in range(SIZE >> 22):
            packed.write(MIB)


def sparse(path: Path) -> None:
    with open(path, "wb") as raw:
        raw.truncate(16 * SIZE)


def equal_rows(path: Path) -> None:
    first = {field.name: [None] for field in ARROW_SCHEMA}
    first |= {"run": ["r"], "node": [0], "seq": [1], "clock": [1], "event": ["start"]}
    table = pa.table(first, ARROW_SCHEMA)
    pq.write_table(table.take(pa.array([0] * 300_000)), path)


BIG: dict[str, tuple[Callable[[Path], None], str]] = {
    "t.ndjson.zst": (zst, f"t.ndjson.zst:1: expected lines of at most {LINE_MAX} bytes, got a line of more"),
    "t.ndjson.gz": (gz, f"t.ndjson.gz:1: expected lines of at most {LINE_MAX} bytes, got a line of more"),
    "t.ndjson": (sparse, f"t.ndjson:1: expected lines of at most {LINE_MAX} bytes, got a line of more"),
    "t.parquet": (equal_rows, "t.parquet: expected a Parquet file whose rows differ, as events do, got 300000 rows"),
}


@pytest.mark.parametrize("name", BIG)
def test_what_would_fill_the_memory_is_refused(tmp_path: Path, name: str) -> None:
    make, text = BIG[name]
    make(tmp_path / name)
    read = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path / name)], capture_output=True, text=True, timeout=120, check=True
    )
    rows, mebibytes, *problems = read.stdout.splitlines()
    assert rows == "0"
    assert int(mebibytes) < MEMORY_MAX_MIB
    assert [text in problem for problem in problems] == [True]


def test_a_small_parquet_file_may_have_many_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"run": ["r"] * ROWS_MIN}), tmp_path / "t.parquet")
    read = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path / "t.parquet")], capture_output=True, text=True, check=True
    )
    assert "the column is missing" in read.stdout
    assert "rows differ" not in read.stdout


def test_a_line_of_a_log_has_the_same_bound(tmp_path: Path) -> None:
    with open(tmp_path / "x.log", "wb") as raw:
        raw.write(b"first\n")
        raw.truncate(SIZE)
    lines = TextLines(str(tmp_path / "x.log"))
    assert list(lines.chunks()) == [["first"]]
    assert lines.cut == f"it has a line of more than {LINE_MAX} bytes, and is not read from there on"


def test_a_log_is_not_held_as_a_whole_while_its_runs_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    with open(path, "wb") as raw:
        raw.write(b"first\n")
        raw.truncate(4 * LINE_MAX)
    tracemalloc.start()
    try:
        (segment,) = segments(str(path))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (segment.start, segment.end) == (0, 4 * LINE_MAX)
    assert most < 3 * LINE_MAX


def test_of_a_line_that_is_no_object_nothing_is_carried(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('["12:00:01", "commit", 7]\n' + "[" * 100_000 + "\n")
    assert [carried_at(str(tmp_path / "x"), number) for number in (1, 2, 3)] == [{}, {}, {}]
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"{}\n" * 1000)[:-12])
    assert carried_at(str(tmp_path / "x.gz"), 2000) == {}
