"""Trace files in, rows out: discovery of inputs and streaming, checked decoding of NDJSON and Parquet.

Decoding is typed by `refinement.schema`; a line that the fast decoder refuses is looked at again by
`schema.check_record`, which names every wrong field. Errors are collected, not raised, so that one
audit reports all of them (up to a limit, with the number beyond it); no line is passed over in silence.
"""

from __future__ import annotations

import glob
import gzip
import io
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from refinement.schema import (
    ARROW_SCHEMA,
    BY_NAME,
    COLUMNS,
    INDEX,
    INT_MAX,
    TABLE,
    Column,
    Row,
    check_record,
    nearest,
)
from refinement.verdict import PROBLEM_LIMIT, InputProblem

SUFFIXES: Final = (".ndjson", ".ndjson.gz", ".ndjson.zst", ".parquet")
_PATTERNS: Final = ", ".join("*" + suffix for suffix in SUFFIXES)
_BUFFER = 1 << 20
_PACKED = 12
_WIDTH = len(COLUMNS)
_BATCH_ROWS = 8192
_CHUNK = 1 << 16
_COLON = ord(":")


class TraceInputError(Exception):
    """Malformed or unusable input, as an exception: for what stops a command at once (a path that does not exist)."""

    def __init__(self, file: str, line: int, field: str, expected: str, got: str) -> None:
        self.problem = InputProblem(file, line, field, expected, got)
        super().__init__(str(self.problem))


@dataclass(slots=True)
class ProblemLog:
    """Collects what is wrong with the input: the first `limit` in full, the rest as a number."""

    limit: int = PROBLEM_LIMIT
    problems: list[InputProblem] = field(default_factory=list)
    more: int = 0

    def add(self, file: str, line: int, name: str, expected: str, got: str) -> None:
        """Record one problem."""
        if len(self.problems) < self.limit:
            self.problems.append(InputProblem(file, line, name, expected, got))
        else:
            self.more += 1

    def __bool__(self) -> bool:
        return bool(self.problems)


@dataclass(frozen=True, slots=True)
class Unit:
    """Files that are read together because one directory holds them: normally those of one run."""

    name: str
    files: tuple[str, ...]

    @property
    def size(self) -> int:
        """About how many bytes of NDJSON the files hold; a packed byte counts as `_PACKED`."""
        sizes = ((file, Path(file).stat().st_size) for file in self.files)
        return sum(size if file.endswith(".ndjson") else size * _PACKED for file, size in sizes)


@dataclass(frozen=True, slots=True)
class Inputs:
    """What an audit was given: units in order of name, empty directories, and how many other files lay beside."""

    units: tuple[Unit, ...]
    empty: tuple[str, ...]
    ignored: tuple[str, ...]


def is_trace(path: str) -> bool:
    """Whether the file's name says that it holds a trace."""
    return path.endswith(SUFFIXES)


def discover(paths: Iterable[str]) -> Inputs:
    """Find the trace files that the given files, directories and globs name.

    Raises `TraceInputError` for a path that does not exist, or a file whose name is not that of a trace.
    """
    files: dict[str, None] = {}
    empty: list[str] = []
    ignored: list[str] = []
    for given in paths:
        for path in _expand(os.path.normpath(given)):
            if path.is_dir():
                inside = sorted(str(file) for file in path.rglob("*") if file.is_file())
                traces = [file for file in inside if is_trace(file)]
                ignored += [file for file in inside if not is_trace(file)]
                files.update(dict.fromkeys(traces))
                if not traces:
                    empty.append(f"{given}: no trace files ({_PATTERNS}) in this directory")
            elif is_trace(str(path)):
                files[str(path)] = None
            else:
                raise TraceInputError(
                    str(path), 0, "", "a trace file: " + ", ".join("*" + s for s in SUFFIXES), path.name
                )
    by_directory: dict[str, list[str]] = {}
    for file in files:
        by_directory.setdefault(str(Path(file).parent), []).append(file)
    units = tuple(Unit(name, tuple(sorted(found))) for name, found in sorted(by_directory.items()))
    return Inputs(units, tuple(empty), tuple(ignored))


def _expand(given: str) -> list[Path]:
    path = Path(given)
    if path.exists():
        return [path]
    if glob.has_magic(given):
        found = sorted(glob.glob(given, recursive=True))
        if found:
            return [Path(name) for name in found]
        raise TraceInputError(given, 0, "", "a pattern that matches files", "no match")
    raise TraceInputError(given, 0, "", "a file, directory or pattern", "nothing: the path does not exist")


def _annotation(column: Column) -> Any:
    if column.kind == "int":
        kind: Any = Annotated[int, msgspec.Meta(ge=column.minimum, le=INT_MAX)]
    elif column.kind == "strings":
        kind = tuple[str, ...]
    elif column.choices:
        kind = Literal[column.choices]
    else:
        kind = Annotated[str, msgspec.Meta(min_length=1)] if column.required else str
    return kind if column.required else kind | None


_Record = msgspec.defstruct(
    "_Record",
    [
        (column.name, _annotation(column)) if column.required else (column.name, _annotation(column), None)
        for column in TABLE
    ],
    forbid_unknown_fields=True,
    gc=False,
)
_decode: Final = msgspec.json.Decoder(_Record).decode
_decode_any: Final = msgspec.json.Decoder().decode
_as_row: Final = msgspec.structs.astuple


def read_rows(file: str, log: ProblemLog) -> Iterator[Row]:
    """Stream the events of one file as rows followed by (file, line); what is malformed goes to `log`.

    For Parquet, `line` is the row's number from 1.
    """
    try:
        if file.endswith(".parquet"):
            yield from _read_parquet(file, log)
        else:
            yield from _read_ndjson(file, log)
    except OSError as error:
        log.add(file, 0, "", "a readable file", error.strerror or str(error))


def _open(file: str) -> BinaryIO:
    if file.endswith(".gz"):
        return io.BufferedReader(gzip.open(file, "rb"), _BUFFER)
    if file.endswith(".zst"):
        source = open(file, "rb")  # noqa: SIM115 - closed by the reader
        reader = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True, closefd=True)
        return io.BufferedReader(reader, _BUFFER)
    return open(file, "rb", buffering=_BUFFER)


def _read_ndjson(file: str, log: ProblemLog) -> Iterator[Row]:
    number = 0
    for lines in _chunks_of_lines(file, log):
        rows = _decode_plain(lines)
        if rows is not None:
            for number, row in enumerate(rows, number + 1):  # noqa: B020 - goes on from the last chunk
                yield (*row, file, number)
            continue
        for number, line in enumerate(lines, number + 1):  # noqa: B020
            checked = _decode_line(file, number, line, log)
            if checked is not None:
                yield (*checked, file, number)


def _chunks_of_lines(file: str, log: ProblemLog) -> Iterator[list[bytes]]:
    """The lines of a file: the first alone, as some want no more; then in chunks, or alone where they are packed."""
    number, plain = 0, file.endswith(".ndjson")
    with _open(file) as stream:
        while True:
            try:
                lines = stream.readlines(_CHUNK if plain and number else 1)
            except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
                log.add(file, number + 1, "", "intact compressed data", f"a damaged or truncated file ({error})")
                return
            if not lines:
                return
            yield lines
            number += len(lines)


def _decode_plain(lines: list[bytes]) -> list[Row] | None:
    """The rows of plain lines; None where one of them needs a closer look.

    The decoder keeps the last of two equal keys without a word. Every key brings a colon, so where there are just as
    many colons as values none is repeated.
    """
    try:
        rows = [_as_row(_decode(line)) for line in lines]
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    colons = np.count_nonzero(np.frombuffer(b"".join(lines), np.uint8) == _COLON)
    return rows if colons == len(rows) * _WIDTH - sum([row.count(None) for row in rows]) else None


def _decode_line(file: str, number: int, line: bytes, log: ProblemLog) -> Row | None:
    """One row, with every check; None where the line is wrong, which is said to `log`."""
    try:
        row = _as_row(_decode(line))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        _explain(file, number, line, error, log)
        return None
    if line.count(b":") != _WIDTH - row.count(None) and (repeated := _repeated_keys(line)):
        for name in repeated:
            log.add(file, number, name, "each field once", "the field several times")
        return None
    return row


def _repeated_keys(line: bytes) -> list[str]:
    names = Counter(name for name, _ in json.loads(line, object_pairs_hook=list))
    return [name for name, count in names.items() if count > 1]


def _explain(file: str, number: int, line: bytes, error: Exception, log: ProblemLog) -> None:
    """Say what is wrong with a line that the typed decoder refused."""
    if not line.strip():
        log.add(file, number, "", "an event", "a blank line")
        return
    try:
        record = _decode_any(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as broken:
        if not line.endswith(b"\n"):
            log.add(
                file, number, "", "a complete last line", f"a truncated one: the file ends inside an event ({broken})"
            )
        else:
            log.add(file, number, "", "valid JSON", str(broken))
        return
    problems = check_record(record)
    for problem in problems:
        log.add(file, number, problem.field, problem.expected, problem.got)
    if not problems:
        log.add(file, number, "", "a valid event", str(error))


def _read_parquet(file: str, log: ProblemLog) -> Iterator[Row]:
    try:
        parquet = pq.ParquetFile(file)
    except pa.ArrowException as error:
        log.add(file, 0, "", "a Parquet file", f"a damaged or truncated one ({_first_line(error)})")
        return
    with parquet:
        if not _check_columns(file, parquet.schema_arrow, log):
            return
        number = 1
        try:
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
                yield from _batch_rows(file, number, batch, log)
                number += batch.num_rows
        except pa.ArrowException as error:
            log.add(file, number, "", "intact Parquet data", f"a damaged file ({_first_line(error)})")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _check_columns(file: str, schema: pa.Schema, log: ProblemLog) -> bool:
    good = True
    for name in schema.names:
        if name not in BY_NAME:
            log.add(file, 0, name, "a column of the trace format", "an unknown column" + nearest(name, COLUMNS))
            good = False
    for column in TABLE:
        if schema.names.count(column.name) > 1:
            log.add(file, 0, column.name, "one column of that name", "several")
            good = False
        elif column.name not in schema.names:
            if column.required:
                log.add(file, 0, column.name, column.expected, "nothing: the column is missing")
                good = False
        elif not _type_fits(column, schema.field(column.name).type):
            log.add(file, 0, column.name, column.expected, f"the Parquet type {schema.field(column.name).type}")
            good = False
    return good


def _type_fits(column: Column, found: pa.DataType) -> bool:
    if pa.types.is_null(found):
        return not column.required
    if pa.types.is_dictionary(found):
        found = found.value_type
    if column.kind == "int":
        return bool(pa.types.is_integer(found))
    if column.kind == "string":
        return bool(pa.types.is_string(found) or pa.types.is_large_string(found))
    is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
    return bool(is_list and (pa.types.is_string(found.value_type) or pa.types.is_large_string(found.value_type)))


def _batch_rows(file: str, first: int, batch: pa.RecordBatch, log: ProblemLog) -> Iterator[Row]:
    columns: list[list[Any]] = []
    valid = True
    for column in TABLE:
        if column.name not in batch.schema.names:
            columns.append([None] * batch.num_rows)
            continue
        array = batch.column(column.name)
        valid = valid and _column_valid(column, array)
        values = array.to_pylist()
        if column.kind == "strings":
            values = [None if value is None else tuple(value) for value in values]
        columns.append(values)
    for number, values in enumerate(zip(*columns, strict=True), first):
        if not valid:
            problems = check_record(dict(zip(COLUMNS, values, strict=True)))
            for problem in problems:
                log.add(file, number, problem.field, problem.expected, problem.got)
            if problems:
                continue
        yield (*values, file, number)


def _column_valid(column: Column, array: pa.Array) -> bool:
    """Whether every value of a Parquet column is allowed; checked on the column as a whole."""
    if column.required and array.null_count:
        return False
    if array.null_count == len(array):
        return True
    if column.kind == "int":
        return bool(pc.min(array).as_py() >= column.minimum and pc.max(array).as_py() <= INT_MAX)
    if column.kind == "strings":
        return not pc.list_flatten(array).null_count
    if column.choices:
        return set(pc.unique(array).to_pylist()) <= {*column.choices, None}
    return not (column.required and "" in pc.unique(array).to_pylist())


def first_run(file: str) -> str | None:
    """The run id of a file's first event, or None where it has none or is malformed."""
    if file.endswith(".parquet"):
        try:
            with pq.ParquetFile(file) as parquet:
                for batch in parquet.iter_batches(batch_size=1, columns=["run"]):
                    return str(batch.column(0)[0].as_py()) if batch.num_rows else None
        except (OSError, pa.ArrowException, KeyError, IndexError):
            pass
        return None
    row = next(read_rows(file, ProblemLog()), None)
    return None if row is None else str(row[INDEX["run"]])


def write_parquet(rows: Iterable[Row], file: str) -> None:
    """Write rows (values in `COLUMNS` order; what follows is ignored) as a Parquet trace."""
    with pq.ParquetWriter(file, ARROW_SCHEMA, compression="zstd") as writer:
        chunk: list[Row] = []
        for row in rows:
            chunk.append(row)
            if len(chunk) == _BATCH_ROWS:
                writer.write_batch(_to_batch(chunk))
                chunk = []
        writer.write_batch(_to_batch(chunk))


def _to_batch(rows: list[Row]) -> pa.RecordBatch:
    arrays = [pa.array([row[position] for row in rows], type=field.type) for position, field in enumerate(ARROW_SCHEMA)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


__all__ = [
    "SUFFIXES",
    "Inputs",
    "ProblemLog",
    "TraceInputError",
    "Unit",
    "discover",
    "first_run",
    "is_trace",
    "read_rows",
    "write_parquet",
]
