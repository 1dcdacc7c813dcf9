"""A stream of events: verdicts as they come, each run's state kept between batches (Structured Streaming).

Spark keeps the state of each run in its checkpoint, together with how far the source was read: after a restart each
event counts once. What a run's state is, and when a run ends, is `refinement.going_on.open_runs`: one value, so
`applyInPandasWithState` keeps it, in whatever state store the session has (`transformWithState` works in RocksDB only).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from viewproof.refinement.going_on.open_runs import Ended, Event, OpenRun
from viewproof.refinement.packing import row_decoder
from viewproof.refinement.schema import INDEX
from viewproof.refinement.spark.frames import (
    BEFORE_ALL,
    EMPTY,
    VERDICTS,
    ColumnError,
    check_columns,
    error_row,
    options_of,
    packed_events,
    spark_schema,
    verdict_row,
)
from viewproof.refinement.verdict import AuditOptions

if TYPE_CHECKING:
    from pyspark.sql.streaming.state import GroupState

_NODE, _SEQ = INDEX["node"], INDEX["seq"]
_LAST, _TIME = "viewproof last event", "viewproof time"
_SECOND = 1000


def verdicts(
    events: DataFrame,
    *,
    last: Column | str | None = None,
    timeout: timedelta | None = None,
    time: str | None = None,
    delay: timedelta = timedelta(0),
    progress: bool = False,
    allow: Sequence[str] = (),
    without: Sequence[str] = (),
    configuration: Mapping[str, int] | None = None,
) -> DataFrame:
    """See `viewproof.spark.audit_stream`."""
    if not events.isStreaming:
        raise ColumnError("the DataFrame is no stream: audit() is for one that is all there")
    check_columns(events)
    options = options_of(allow, without, configuration)
    also: dict[str, tuple[Any, pa.DataType]] = {}
    if last is not None:
        condition = fn.expr(last) if isinstance(last, str) else last
        also[_LAST] = (fn.coalesce(condition, fn.lit(False)), pa.bool_())
    if time is not None:
        _require_time(events, time, timeout)
        also[_TIME] = (fn.col(f"`{time}`"), pa.timestamp("us", "UTC"))
    rows = packed_events(events, options, also)
    waits = "NoTimeout"
    if timeout is not None:
        waits = "ProcessingTimeTimeout" if time is None else "EventTimeTimeout"
    if time is not None:
        rows = rows.withWatermark(f"`{_TIME}`", f"{int(delay.total_seconds() * _SECOND)} milliseconds")
    mode = "update" if progress else "append"
    judge = partial(_judge, options=options, wait=timeout, progress=progress)
    judged = rows.groupBy("run").applyInPandasWithState(judge, "verdict binary", "kept binary", mode, waits)
    return judged.mapInArrow(_unpacked, spark_schema(VERDICTS))


def _require_time(events: DataFrame, time: str, timeout: timedelta | None) -> None:
    kind = dict(events.dtypes).get(time)
    if kind != "timestamp":
        found = "there is no such column" if kind is None else f"got a column of {kind}"
        raise ColumnError(f"{time}: expected a column of timestamps for `time`, {found}")
    if timeout is None:
        raise ColumnError(f"{time}: `time` is what `timeout` is measured by, and there is none")


def _judge(
    key: tuple[str],
    frames: Iterable[pd.DataFrame],
    state: GroupState,
    *,
    options: AuditOptions,
    wait: timedelta | None,
    progress: bool,
) -> Iterator[pd.DataFrame]:
    """One run's new events, or the end of its time."""
    run = OpenRun(key[0] or "", state.get[0] if state.exists else b"", options)
    if state.hasTimedOut:
        answer = None if run.done else _row(run, run.end())
        state.remove()
    else:
        answer, until = _taken(run, frames)
        state.update((run.keep(),))
        _wait(state, wait, until)
        if answer is None and progress and not run.done:
            answer = _open(run)
    if answer is not None:
        yield pd.DataFrame({"verdict": [msgspec.msgpack.encode(answer)]})


def _taken(run: OpenRun, frames: Iterable[pd.DataFrame]) -> tuple[dict[str, Any] | None, int]:
    """The row of the run if it ends with these events; and the greatest of their times, in milliseconds."""
    events: list[Event] = []
    malformed: list[str] = []
    last: dict[int, int] = {}
    time = 0
    decode = row_decoder().decode
    for frame in frames:
        if _TIME in frame:
            time = max(time, int(frame[_TIME].max().timestamp() * _SECOND))
        if run.done:
            continue
        ends = frame[_LAST] if _LAST in frame else [False] * len(frame)
        for clock, row, own, is_last in zip(frame["clock"], frame["row"], frame["carried"], ends, strict=True):
            if clock == BEFORE_ALL:
                malformed.append(row.decode())
                continue
            events.append((row, own if isinstance(own, str) else None))
            if is_last:
                decoded = decode(row)
                last[decoded[_NODE]] = decoded[_SEQ]
    ended = None if run.done else run.take(events, last, malformed)
    return (None if ended is None else _row(run, ended)), time


def _wait(state: GroupState, wait: timedelta | None, time: int) -> None:
    """Let the run's time end so long after its last event."""
    if wait is None:
        return
    milliseconds = int(wait.total_seconds() * _SECOND)
    if time:
        state.setTimeoutTimestamp(max(time, state.getCurrentWatermarkMs()) + milliseconds)
    else:
        state.setTimeoutDuration(milliseconds)


def _row(run: OpenRun, ended: Ended) -> dict[str, Any]:
    if ended.verdict is None:
        return error_row(run.run_id, ended.problems)
    return verdict_row(ended.verdict, ended.carried, ended.problems)


def _open(run: OpenRun) -> dict[str, Any]:
    events, recorded = run.events
    waits_for = run.waits_for()
    return {
        **EMPTY, "run": run.run_id, "verdict": "open", "events": events, "recorded": recorded, "missing": waits_for
    }  # fmt: skip


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = [msgspec.msgpack.decode(row) for row in batch.column("verdict").to_pylist()]
        yield pa.RecordBatch.from_pylist([_with_pairs(row) for row in rows], schema=VERDICTS)


def _with_pairs(row: dict[str, Any]) -> dict[str, Any]:
    """Maps as Arrow takes them: pairs."""
    for name in ("coverage", "judged", "open_guards", "configuration"):
        if name in row:
            row[name] = [tuple(pair) for pair in row[name]]
    for violation in row.get("violations", ()):
        violation["carried"] = [tuple(pair) for pair in violation["carried"]]
    return row
