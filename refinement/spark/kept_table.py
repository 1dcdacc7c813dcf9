"""Verdicts so far as a table: a row per run with its state, from which an audit of more events goes on.

The states are rows before the events of their run, so that both come to one task by the same shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from viewproof.refinement.adapter import adapter as find_adapter
from viewproof.refinement.going_on.directory import StateError
from viewproof.refinement.going_on.in_value import InValue
from viewproof.refinement.going_on.runs import Run
from viewproof.refinement.going_on.subject import subject
from viewproof.refinement.judging import no_collector
from viewproof.refinement.packing import row_decoder
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.spark.balance import Plan
from viewproof.refinement.spark.frames import (
    BEFORE_ALL,
    EVENTS,
    VERDICTS,
    ColumnError,
    Event,
    check_columns,
    error_row,
    options_of,
    packed_events,
    rows_of_events,
    spark_schema,
    verdict_row,
)
from viewproof.refinement.spark.plans import in_order
from viewproof.refinement.verdict import AuditOptions

STATE = "state"
KEPT = VERDICTS.append(pa.field(STATE, pa.binary()))
"""The columns of `verdicts`: those of an audit, and the state of the run."""
_KEPT = BEFORE_ALL - 1
"""In place of the clock of a state."""


def verdicts(
    states: DataFrame | None,
    events: DataFrame,
    *,
    allow: Sequence[str] = (),
    without: Sequence[str] = (),
    configuration: Mapping[str, int] | None = None,
    tasks: int | None = None,
    plan: Plan | None = None,
) -> DataFrame:
    """See `viewproof.spark.audit_from`."""
    check_columns(events)
    options = options_of(allow, without, configuration)
    rows = packed_events(events, options)
    if states is not None:
        rows = rows.unionByName(_as_rows(states))
    judge = partial(_judged, options=options, subject=subject(options))
    return in_order(rows, tasks, plan).mapInArrow(judge, spark_schema(KEPT))


def _as_rows(states: DataFrame) -> DataFrame:
    kinds = dict(states.dtypes)
    for name, kind in (("run", "string"), (STATE, "binary")):
        if kinds.get(name) != kind:
            found = f"got a column of {kinds[name]}" if name in kinds else "the column is missing"
            raise ColumnError(f"{name}: expected a column of {kind} in the table of states, {found}")
    least = fn.lit(-1).cast("bigint")
    return states.where(fn.col(STATE).isNotNull()).select(
        "run", fn.lit(_KEPT).cast("bigint").alias("clock"), least.alias("node"), least.alias("seq"),
        fn.col(STATE).alias("row"), fn.lit(None).cast("string").alias("carried"),
    ).select(*EVENTS.names)  # fmt: skip


def _judged(batches: Iterator[pa.RecordBatch], options: AuditOptions, subject: str) -> Iterator[pa.RecordBatch]:
    for run, events in groupby(rows_of_events(batches), key=itemgetter(0)):
        with no_collector():
            row = _row(run or "", events, options, subject)
        yield pa.RecordBatch.from_pylist([row], schema=KEPT)


def _row(run: str, events: Iterator[Event], options: AuditOptions, subject: str) -> dict[str, Any]:
    """The row of a run with its new events."""
    states: list[bytes] = []
    malformed: list[str] = []
    for event in events:
        if event[1] == _KEPT:
            states.append(event[4])
        elif event[1] == BEFORE_ALL:
            malformed.append(event[4].decode())
        else:
            events = chain([event], events)
            break
    state = states[0] if states else b""
    try:
        if len(states) > 1:
            raise StateError(f"{len(states)} states of run {run}, expected one row per run")
        place = InValue(run, state, subject, options)
        return _gone_on(run, place, malformed, events, options)
    except StateError as error:
        return {**error_row(run, [str(error)]), STATE: state or None}


def _gone_on(
    run: str, place: InValue, malformed: list[str], events: Iterator[Event], options: AuditOptions
) -> dict[str, Any]:
    decode = row_decoder(find_adapter(options.adapter).system.table).decode
    new = []
    for _, _, node, seq, packed, own in events:
        new.append(decode(packed))
        if own is not None:
            place.own[node, seq] = own
    value, log = place.value, ProblemLog()
    value.problems += malformed
    said: tuple[str, ...] = ()
    if new and not value.problems:
        verdict, said = Run.load(run, place, options).go_on(new, log)
        value.problems += [*map(str, log.problems), *(said if verdict is None else ())]
    if value.problems or value.kept is None:
        return {**error_row(run, value.problems), STATE: place.bytes()}
    return {**verdict_row(value.kept.verdict, place.own, value.kept.errors), STATE: place.bytes()}
