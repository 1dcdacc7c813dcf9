"""Trace files in, rows out: streaming, checked decoding of NDJSON and Parquet.

Decoding is typed by `refinement.schema`; a line that the fast decoder refuses is looked at again by
`schema.check_record`, which names every wrong field. Errors are collected, not raised, so that one
audit reports all of them (up to a limit, with the number beyond it); no line is passed over in silence.
"""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, BinaryIO, Final, Literal

import msgspec
import numpy as np
import zstandard

from viewproof.refinement import parquet
from viewproof.refinement.bounds import LINE_MAX, BoundedLines, LineTooLongError
from viewproof.refinement.partitions import agreeing, as_json, path_columns
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import (
    BY_NAME,
    COLUMNS,
    INDEX,
    INT_MAX,
    TABLE,
    Column,
    Problem,
    Row,
    check_record,
)

_BUFFER = 1 << 20
_WIDTH = len(COLUMNS)
_BATCH_ROWS = 8192
_CHUNK = 1 << 16
_COLON = ord(":")
_PACKED_CHUNK = 1 << 12
"""Packed bytes given to the Zstandard decoder at once: what comes out of them is held in memory."""

_DEPTH = 64
"""A value nested deeper than this is nested too deeply to say more about it."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}:,]')
_LONGEST_INT = 20
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def _annotation(column: Column) -> Any:
    if column.kind == "int":
        kind: Any = Annotated[int, msgspec.Meta(ge=column.minimum, le=column.maximum)]
    elif column.kind == "strings":
        kind = tuple[str, ...]
    elif column.choices:
        kind = Literal[column.choices]
    else:
        kind = Annotated[str, msgspec.Meta(min_length=1)] if column.never_empty else str
    return kind if column.required else kind | None


_Record = msgspec.defstruct(
    "_Record",
    [
        (column.name, _annotation(column)) if column.required else (column.name, _annotation(column), None)
        for column in TABLE
    ],
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
        rows = parquet.read(file, log) if file.endswith(".parquet") else _read_ndjson(file, log)
        yield from agreeing(file, rows, log)
    except OSError as error:
        log.add(file, 0, "", "a readable file", error.strerror or str(error))
    except Exception as error:
        if os.environ.get("VSR_DEBUG"):
            raise
        log.add(file, 0, "", "a file that the reader can read", f"{type(error).__name__}: {parquet.first_line(error)}")


class _Zstandard(io.RawIOBase):
    """The content of a file of Zstandard frames; a file that ends inside a frame is an `EOFError`."""

    def __init__(self, file: str) -> None:
        self._source = open(file, "rb")  # noqa: SIM115 - closed with this stream
        self._context = zstandard.ZstdDecompressor()
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._packed = b""
        self._content = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one read gives content; 0 is the end."""
        while not self._content:
            packed = self._packed or self._source.read(_PACKED_CHUNK)
            if not packed:
                if self._frame is not None:
                    raise EOFError("the file ended before the end of its last frame was reached")
                return 0
            frame = self._frame or self._context.decompressobj()
            self._content = memoryview(frame.decompress(packed))
            self._frame, self._packed = (None, frame.unused_data) if frame.eof else (frame, b"")
        size = min(len(buffer), len(self._content))
        buffer[:size], self._content = self._content[:size], self._content[size:]
        return size

    def close(self) -> None:
        """Close the file."""
        self._source.close()
        super().close()


def open_file(file: str) -> BinaryIO:
    """The content of a file; LineTooLongError when a line of it gets too long."""
    if file.endswith(".gz"):
        raw: BinaryIO | io.BufferedIOBase | io.RawIOBase = gzip.open(file, "rb")  # noqa: SIM115 - closed with the stream
    else:
        raw = _Zstandard(file) if file.endswith(".zst") else open(file, "rb", buffering=0)  # noqa: SIM115
    return io.BufferedReader(BoundedLines(raw), _BUFFER)


def _read_ndjson(file: str, log: ProblemLog) -> Iterator[Row]:
    number = 0
    in_path = path_columns(file)
    for lines in _chunks_of_lines(file, log):
        if in_path:
            if not number:
                in_path = _lacked(lines[0], in_path, file, log)
            lines = [_with_columns(line, in_path) for line in lines]
        rows = _decode_plain(lines)
        if rows is not None:
            for number, row in enumerate(rows, number + 1):  # noqa: B020 - goes on from the last chunk
                yield (*row, file, number)
            continue
        for number, line in enumerate(lines, number + 1):  # noqa: B020
            checked = _decode_line(file, number, line, log)
            if checked is not None:
                yield (*checked, file, number)


def _lacked(line: bytes, columns: dict[str, Any], file: str, log: ProblemLog) -> dict[str, Any]:
    """Those of the path's columns that the file's first event does not have itself; others than ours are carried."""
    try:
        record = _decode_any(line)
    except (*_UNREADABLE, ValueError):
        return {}
    has = record.keys() if isinstance(record, dict) else columns.keys()
    for name in columns.keys() - BY_NAME.keys() - has:
        log.carry(name, file)
    return {name: value for name, value in columns.items() if name in BY_NAME and name not in has and value is not None}


def _with_columns(line: bytes, columns: dict[str, Any]) -> bytes:
    """The line of an event with further columns; what is no object stays as it is."""
    rest = line.lstrip()
    if not columns or not rest.startswith(b"{") or rest[1:].lstrip().startswith(b"}"):
        return line
    return as_json(columns) + b"," + rest[1:]


def _chunks_of_lines(file: str, log: ProblemLog) -> Iterator[list[bytes]]:
    """The lines of a file: the first alone, as some want no more; then in chunks, or alone where they are packed."""
    number, plain = 0, not file.endswith((".gz", ".zst"))
    with open_file(file) as stream:
        while True:
            try:
                lines = stream.readlines(_CHUNK if plain and number else 1)
            except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
                log.add(file, number + 1, "", "intact compressed data", f"a damaged or truncated file ({error})")
                return
            except LineTooLongError as error:
                log.add(file, number + 1, "", f"lines of at most {LINE_MAX} bytes", f"{error}, here or below")
                return
            if not lines:
                return
            if not number and (encoding := _other_encoding(lines[0])):
                log.add(file, 1, "", "UTF-8 without a byte order mark", encoding)
                return
            yield lines
            number += len(lines)


def _other_encoding(line: bytes) -> str:
    """How a file is encoded that begins so and is no plain UTF-8; "" if nothing says so."""
    if line.startswith(codecs.BOM_UTF8):
        return "UTF-8 with one"
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or line[:2] in (b"{\0", b"\0{"):
        return "UTF-16"
    return ""


def _decode_plain(lines: list[bytes]) -> list[Row] | None:
    """The rows of plain lines; None where one of them needs a closer look.

    The decoder keeps the last of two equal keys without a word. Every key brings a colon, so where there are just as
    many colons as values none is repeated.
    """
    try:
        rows = [_as_row(_decode(line)) for line in lines]
    except _UNREADABLE:
        return None
    colons = np.count_nonzero(np.frombuffer(b"".join(lines), np.uint8) == _COLON)
    return rows if colons == len(rows) * _WIDTH - sum([row.count(None) for row in rows]) else None


def _decode_line(file: str, number: int, line: bytes, log: ProblemLog) -> Row | None:
    """One row, with every check; None where the line is wrong, which is said to `log`."""
    try:
        row = _as_row(_decode(line))
    except _UNREADABLE as error:
        _explain(file, number, line, error, log)
        return None
    if line.count(b":") == _WIDTH - row.count(None):
        return row
    names = Counter(name for name, _ in json.loads(line, object_pairs_hook=list, parse_int=_integer))
    repeated = [name for name, count in names.items() if count > 1]
    for name in repeated:
        log.add(file, number, name, "each field once", "the field several times")
    for name in names.keys() - BY_NAME.keys():
        log.carry(name, f"{file}:{number}")
    return None if repeated else row


def _explain(file: str, number: int, line: bytes, error: Exception, log: ProblemLog) -> None:
    """Say what is wrong with a line that the typed decoder refused."""
    if not line.strip():
        log.add(file, number, "", "an event", "a blank line")
        return
    try:
        record = _decode_any(line)
        problems = check_record(record)
    except RecursionError:
        log.add(file, number, _deep_field(line), "a number, a string or a list of strings", "a value nested too deeply")
        return
    except (msgspec.DecodeError, UnicodeDecodeError) as broken:
        huge = _huge_numbers(line)
        for problem in huge:
            log.add(file, number, problem.field, problem.expected, problem.got)
        if not huge and not line.endswith(b"\n"):
            log.add(
                file, number, "", "a complete last line", f"a truncated one: the file ends inside an event ({broken})"
            )
        elif not huge:
            foreign = _foreign_byte(line)
            log.add(file, number, "", *(("UTF-8", foreign) if foreign else ("valid JSON", str(broken))))
        return
    for problem in problems:
        log.add(file, number, problem.field, _with_maximum(problem, record), problem.got)
    if not problems:
        log.add(file, number, "", "a valid event", str(error))


def _foreign_byte(line: bytes) -> str:
    """The first byte that is not UTF-8, and where it stands; "" if there is none."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return f"the byte 0x{line[error.start]:02x} in column {error.start + 1}"
    return ""


def _with_maximum(problem: Problem, record: Any) -> str:
    """What was expected, with the largest allowed integer where a larger one was there."""
    value = record.get(problem.field) if isinstance(record, dict) else None
    too_large = isinstance(value, (int, float)) and value > INT_MAX and problem.field in BY_NAME
    return f"{problem.expected} and ≤ {INT_MAX}" if too_large and " ≤ " not in problem.expected else problem.expected


def _deep_field(line: bytes) -> str:
    """The field of a line whose value is nested too deeply, or "" where the line does not get that far."""
    depth, word, name = 0, b"", b""
    for match in _TOKEN.finditer(line):
        token = match.group()
        if token in b"[{":
            depth += 1
            if depth > _DEPTH:
                return name.decode(errors="replace").strip('"')
        elif token in b"]}":
            depth -= 1
        elif token == b":" and depth == 1:
            name = word
        word = token
    return ""


class _Huge(int):
    """An integer with too many digits for the decoder, shown by their number."""

    digits: int

    def __repr__(self) -> str:
        return f"an integer of {self.digits} digits"


def _integer(text: str) -> int:
    if len(text) <= _LONGEST_INT:
        return int(text)
    value = _Huge(-1 if text.startswith("-") else INT_MAX + 1)
    value.digits = len(text.removeprefix("-"))
    return value


def _huge_numbers(line: bytes) -> list[Problem]:
    """Numbers that the decoder refuses for their size, by field; empty where that is not what is wrong."""
    try:
        record = json.loads(line, parse_int=_integer)
        problems = check_record(record)
    except (ValueError, RecursionError):
        return []
    return [
        Problem(problem.field, _with_maximum(problem, record), problem.got)
        for problem in problems
        if isinstance(record, dict) and isinstance(record.get(problem.field), (_Huge, float))
    ]


def carried_at(file: str, line: int) -> dict[str, Any]:
    """The columns of one event that the format does not have, with their values; none where it cannot be read again."""
    try:
        if file.endswith(".parquet"):
            return parquet.carried_at(file, line)
        with open_file(file) as stream:
            record = json.loads(next(islice(stream, line - 1, None)), parse_int=_integer)
            if not isinstance(record, dict):  # a line of a log that an adapter reads
                return {}
            return {name: value for name, value in record.items() if name not in BY_NAME}
    except (OSError, EOFError, zlib.error, zstandard.ZstdError, ValueError, StopIteration, IndexError, RecursionError):
        return {}


def first_run(file: str) -> str | None:
    """The run id of a file's first event, or None where it has none or is malformed."""
    if file.endswith(".parquet"):
        return parquet.first_run(file)
    row = next(read_rows(file, ProblemLog()), None)
    return None if row is None else str(row[INDEX["run"]])
