"""Parquet files of trace events; the only module of the replica's side that loads Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from viewproof.impl.trace.events import TraceEvent

_REQUIRED = frozenset({"run", "node", "seq", "clock", "event"})


def _column_type(annotation: object) -> pa.DataType:
    """What a field's annotation, whatever else it may be than None, is in Arrow."""
    kinds: list[Any] = [kind for kind in (get_args(annotation) or (annotation,)) if kind is not type(None)]
    types: dict[Any, pa.DataType] = {str: pa.string(), int: pa.int64(), tuple[str, ...]: pa.list_(pa.string())}
    return types[kinds[0]]


PARQUET_SCHEMA = pa.schema(
    [
        pa.field(name, _column_type(annotation), nullable=name not in _REQUIRED)
        for name, annotation in get_type_hints(TraceEvent).items()
    ]
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
