"""The same audit on Spark: one task per unit of files, which executors reach under the same paths."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec
import pyarrow as pa

from viewproof.refinement.logs.judge import judge_unit, units
from viewproof.refinement.logs.systems import system
from viewproof.refinement.spark import start_session
from viewproof.refinement.tigerbeetle.inputs import Logs
from viewproof.refinement.verdict import AuditOptions, AuditReport, UnitResult

_RESULT = "result string"


def audit(
    logs: Logs, options: AuditOptions, *, master: str, log: Callable[[str], None],
    conf: Mapping[str, str] | None = None,
) -> AuditReport:  # fmt: skip
    """Audit log files on Spark."""
    session = start_session(master, log, conf)
    started = time.monotonic()
    rows = [(msgspec.json.encode(files).decode(),) for files in units(system(options.adapter), logs.files)]
    results = [UnitResult("inputs", problems=logs.problems, empty=logs.empty)]
    try:
        if rows:
            frame = session.createDataFrame(rows, "files string").repartition(len(rows))
            judged = frame.mapInArrow(partial(_judge, name=options.adapter), _RESULT).collect()
            results += [msgspec.json.decode(row[0], type=UnitResult) for row in judged]
    finally:
        session.stop()
    return AuditReport.combine("spark", options, results, seconds=time.monotonic() - started)


def _judge(batches: Iterator[pa.RecordBatch], name: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for text in batch.column(0).to_pylist():
            result = judge_unit(tuple(msgspec.json.decode(text, type=list[str])), name)
            yield pa.RecordBatch.from_pydict({"result": [msgspec.json.encode(result).decode()]})
