"""Native trace events of a replica and their NDJSON and Parquet files (traces/README.md).

An event is encoded to one line with the columns of the README in their order; a column that is None is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TypedDict

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq


class TraceError(ValueError):
    """A trace file that cannot be continued: says file and line."""


class TraceEvent(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """One trace event; the fields are exactly the columns of `traces/README.md`."""

    run: str
    node: int
    seq: int
    clock: int
    event: str
    status: str | None = None
    view: int | None = None
    log_view: int | None = None
    durable_view: int | None = None
    durable_log_view: int | None = None
    op: int | None = None
    head: str | None = None
    commit_min: int | None = None
    commit_max: int | None = None
    digest: str | None = None
    table: str | None = None
    features: int | None = None
    checkpoint: int | None = None
    m_type: str | None = None
    m_from: int | None = None
    m_seq: int | None = None
    m_view: int | None = None
    m_op: int | None = None
    m_commit: int | None = None
    m_log_view: int | None = None
    m_checksum: str | None = None
    m_parent: str | None = None
    m_client: int | None = None
    m_session: int | None = None
    m_request: int | None = None
    m_incarnation: int | None = None
    m_feature: int | None = None
    m_features: int | None = None
    m_outcome: str | None = None
    m_evicted: int | None = None
    m_checkpoint: int | None = None
    m_reply: str | None = None
    m_operation: str | None = None
    m_namespace: int | None = None
    m_offset: int | None = None
    m_count: int | None = None
    m_consumer: int | None = None
    m_group: int | None = None
    m_log: tuple[str, ...] | None = None
    replicas: int | None = None
    quorum_replication: int | None = None
    quorum_view_change: int | None = None
    client_slots: int | None = None
    client_sessions: int | None = None
    client_gaps: int | None = None
    pipeline: int | None = None
    checkpoint_interval: int | None = None
    journal_slots: int | None = None
    supports: int | None = None
    ring: int | None = None
    partitions: int | None = None


class AskedColumns(TypedDict, total=False):
    """The columns of an executed op that say what it asked of a partition."""

    m_operation: str | None
    m_namespace: int | None
    m_offset: int | None
    m_count: int | None
    m_consumer: int | None
    m_group: int | None


class MessageColumns(AskedColumns, total=False):
    """The columns of the message, or the parameters, of an event."""

    m_type: str | None
    m_from: int | None
    m_seq: int | None
    m_view: int | None
    m_op: int | None
    m_commit: int | None
    m_log_view: int | None
    m_checksum: str | None
    m_parent: str | None
    m_client: int | None
    m_session: int | None
    m_request: int | None
    m_incarnation: int | None
    m_feature: int | None
    m_features: int | None
    m_outcome: str | None
    m_evicted: int | None
    m_checkpoint: int | None
    m_reply: str | None
    m_log: tuple[str, ...] | None


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(TraceEvent)

_STRINGS = frozenset(
    {
        "run",
        "event",
        "status",
        "head",
        "digest",
        "table",
        "m_type",
        "m_checksum",
        "m_parent",
        "m_outcome",
        "m_operation",
        "m_reply",
    }
)
_REQUIRED = frozenset({"run", "node", "seq", "clock", "event"})


def _column_type(name: str) -> pa.DataType:
    if name == "m_log":
        return pa.list_(pa.string())
    return pa.string() if name in _STRINGS else pa.int64()


PARQUET_SCHEMA = pa.schema(
    [pa.field(name, _column_type(name), nullable=name not in _REQUIRED) for name in TraceEvent.__struct_fields__]
)
"""Arrow schema of a trace file: the columns of the README in their order."""


def encode_line(event: TraceEvent) -> bytes:
    """The event as one NDJSON line, newline included; columns that are None are left out."""
    return _ENCODER.encode(event) + b"\n"


def decode_line(line: bytes) -> TraceEvent:
    """The event in one NDJSON line. Raises `msgspec.DecodeError` or `msgspec.ValidationError`."""
    return _DECODER.decode(line)


class TraceWriter:
    """Appends events to one NDJSON file, unbuffered: one write(2) for each call.

    The events then survive a kill of the process (not of the machine: no fsync). Opening a file that exists cuts a
    torn last line and continues `seq` and `clock`: pass `writer.seq` and `writer.clock` to the replica that boots.
    """

    def __init__(self, path: Path) -> None:
        """Opens or creates `path` (its directory too). Raises `TraceError` if a complete line is no event."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.seq = 0
        self.clock = 0
        if path.exists():
            self._recover()
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def _recover(self) -> None:
        with self.path.open("r+b") as file:
            end = 0
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break
                try:
                    event = decode_line(line)
                except msgspec.DecodeError as error:
                    raise TraceError(f"{self.path}:{number}: not a trace event: {error}") from error
                end += len(line)
                self.seq = event.seq
                self.clock = max(self.clock, event.clock)
            file.truncate(end)

    def write(self, event: TraceEvent) -> None:
        """Writes the event; it is in the file (page cache) when this returns. Raises `OSError`."""
        self.write_all((event,))

    def write_all(self, events: Sequence[TraceEvent]) -> None:
        """Writes the events, at least one, in order; they are in the file when this returns. Raises `OSError`."""
        lines = b"".join([encode_line(event) for event in events])
        written = os.write(self._descriptor, lines)
        while written < len(lines):
            written += os.write(self._descriptor, lines[written:])
        self.seq = events[-1].seq
        self.clock = events[-1].clock

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_ndjson(file: IO[bytes]) -> list[TraceEvent]:
    """All events of an NDJSON file. Raises `msgspec.DecodeError` on a line that is no event."""
    return [decode_line(line) for line in file if line.strip()]


def export_parquet(events: Iterable[TraceEvent], path: Path) -> int:
    """Writes the events as one Parquet file with the columns of the README; returns the number of rows."""
    rows: Sequence[TraceEvent] = list(events)
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [
        pa.array([_plain(getattr(event, field.name)) for event in rows], type=field.type) for field in PARQUET_SCHEMA
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=PARQUET_SCHEMA), path, compression="zstd")
    return len(rows)


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
