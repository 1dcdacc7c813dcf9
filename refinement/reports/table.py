"""The violations as a table, Parquet or NDJSON by the file's name, and the report as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from viewproof.refinement.reports.files import write_bytes
from viewproof.refinement.verdict import VIOLATION_COLUMNS, AuditReport

SUFFIXES = (".parquet", ".ndjson")

_INTS = ("seq", "line", "node")
_SCHEMA = pa.schema([(name, pa.int64() if name in _INTS else pa.string()) for name in VIOLATION_COLUMNS])


def write_violations(report: AuditReport, file: Path) -> None:
    """Write one row per violation with the columns `VIOLATION_COLUMNS`; also where there is none."""
    rows = [{name: getattr(violation, name) for name in VIOLATION_COLUMNS} for violation in report.violations]
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows, schema=_SCHEMA), str(file))
    else:
        file.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def write_json(result: dict[str, Any], file: Path) -> None:
    """Write any command's result as indented JSON."""
    write_bytes(file, msgspec.json.format(msgspec.json.encode(result, enc_hook=str), indent=2) + b"\n")
