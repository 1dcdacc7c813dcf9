"""Parquet files of trace events; the only module of the replica's side that loads Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from viewproof.impl.trace.events import TraceEvent

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
