"""The same audit on Spark: one task per run; the runs of a plain file are found first, by the driver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import msgspec
import pyarrow as pa

from viewproof.refinement.spark import start_session
from viewproof.refinement.tigerbeetle.audit import find_segments, judge_segment
from viewproof.refinement.tigerbeetle.reading import Segment
from viewproof.refinement.verdict import AuditOptions, AuditReport, UnitResult

_RESULT = "result string"


def audit(
    files: list[str], options: AuditOptions, *, master: str, log: Callable[[str], None],
    conf: Mapping[str, str] | None = None,
) -> AuditReport:  # fmt: skip
    """Audit log files on Spark; the files must be reachable under the same paths on the executors."""
    session = start_session(master, log, conf)
    started = time.monotonic()
    parts = find_segments(files)
    rows = [(msgspec.json.encode(part).decode(),) for part in parts]
    if not rows:
        return AuditReport("spark", options)
    try:
        frame = session.createDataFrame(rows, "segment string").repartition(len(rows))
        judged = frame.mapInArrow(partial(_judge, options=options), _RESULT).collect()
    finally:
        session.stop()
    results = [msgspec.json.decode(row[0], type=UnitResult) for row in judged]
    return AuditReport.combine("spark", options, results, seconds=time.monotonic() - started)


def _judge(batches: Iterator[pa.RecordBatch], options: AuditOptions) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for text in batch.column(0).to_pylist():
            result = judge_segment(msgspec.json.decode(text, type=Segment), options)
            yield pa.RecordBatch.from_pydict({"result": [msgspec.json.encode(result).decode()]})
