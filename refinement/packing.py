"""Rows as bytes (MessagePack), for where they leave a process: Spark's shuffle, and files that a unit spills to."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from viewproof.refinement.schema import TABLE, Column, Row

pack = msgspec.msgpack.Encoder().encode

_FRAME_ROWS = 256
_LENGTH_BYTES = 4
_CHUNK_BYTES = 1 << 20
_HELD_BYTES = 64 << 20


Columns = tuple[Column, ...]
"""The columns of a row, in order; file and line follow them."""


def _row_type(columns: Columns) -> Any:
    """Lists of strings come back as tuples, as the readers give them."""
    kinds = [tuple[str, ...] | None if column.kind == "strings" else Any for column in columns]
    return tuple.__class_getitem__((*kinds, Any, Any))


@lru_cache(maxsize=8)
def row_decoder(columns: Columns = TABLE) -> msgspec.msgpack.Decoder[Row]:
    """Unpacks one row."""
    return msgspec.msgpack.Decoder(_row_type(columns))


@lru_cache(maxsize=8)
def _rows_decoder(columns: Columns) -> msgspec.msgpack.Decoder[list[Row]]:
    return msgspec.msgpack.Decoder(list[_row_type(columns)])  # type: ignore[misc]


class Packed:
    """Packed rows that can be gone through again: in memory, beyond a limit in a temporary file."""

    def __init__(self, rows: Iterable[bytes], columns: Columns = TABLE) -> None:
        self._decode = row_decoder(columns).decode
        self._file = tempfile.SpooledTemporaryFile(_HELD_BYTES, prefix="viewproof-run-")  # noqa: SIM115 - kept
        for row in rows:
            self._file.write(len(row).to_bytes(_LENGTH_BYTES, "big"))
            self._file.write(row)
        self._end = self._file.tell()

    def __iter__(self) -> Iterator[Row]:
        decode = self._decode
        at, rest = 0, b""
        while at < self._end:
            self._file.seek(at)
            chunk = rest + self._file.read(_CHUNK_BYTES)
            at = self._file.tell()
            begin = 0
            while len(chunk) - begin >= _LENGTH_BYTES:
                length = int.from_bytes(chunk[begin : begin + _LENGTH_BYTES], "big")
                end = begin + _LENGTH_BYTES + length
                if end > len(chunk):
                    break
                yield decode(chunk[begin + _LENGTH_BYTES : end])
                begin = end
            rest = chunk[begin:]


class Spill:
    """Rows dealt to temporary files by run, so that one file's share of them fits into memory.

    A context manager: the files are gone at its end.
    """

    def __init__(self, buckets: int, columns: Columns = TABLE) -> None:
        self._decode = _rows_decoder(columns).decode
        self._folder = tempfile.TemporaryDirectory(prefix="viewproof-spill-")
        self._paths = [Path(self._folder.name) / str(number) for number in range(buckets)]
        self._waiting: list[list[Row]] = [[] for _ in range(buckets)]

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def put(self, rows: Iterable[Row]) -> Iterator[str]:
        """Deal the rows out; gives the run of each."""
        waiting, count = self._waiting, len(self._waiting)
        for row in rows:
            run = row[0]
            bucket = zlib.crc32(run.encode()) % count
            waiting[bucket].append(row)
            if len(waiting[bucket]) == _FRAME_ROWS:
                self._write(bucket)
            yield run

    def _write(self, bucket: int) -> None:
        frame = pack(self._waiting[bucket])
        self._waiting[bucket].clear()
        with self._paths[bucket].open("ab") as file:
            file.write(len(frame).to_bytes(_LENGTH_BYTES, "big"))
            file.write(frame)

    def buckets(self) -> Iterator[Iterator[Row]]:
        """The rows of each file in turn: all of a run are in one, in the order they were put."""
        for bucket, path in enumerate(self._paths):
            self._write(bucket)
            yield self._read(path)

    def _read(self, path: Path) -> Iterator[Row]:
        decode = self._decode
        with path.open("rb") as file:
            while length := file.read(_LENGTH_BYTES):
                yield from decode(file.read(int.from_bytes(length, "big")))
