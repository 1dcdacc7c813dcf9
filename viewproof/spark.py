"""The audit on Spark's DataFrames, in a session of yours: a notebook, a job, Spark Connect (docs/spark.md).

    from viewproof import spark as vsr

    verdicts = vsr.audit(spark.table("traces")).cache()
    verdicts.groupBy("verdict").count().show()
    vsr.causes(verdicts).show(truncate=False)

Executors need this package as the driver has it. Each function gives a DataFrame, and nothing runs before it is asked
for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession

from viewproof.api.audit import audit_options, check_run
from viewproof.refinement.reports import fleet as _fleet_page
from viewproof.refinement.spark.balance import Plan
from viewproof.refinement.spark.balance import plan as _plan
from viewproof.refinement.spark.fleet import fleet as _fleet
from viewproof.refinement.spark.frames import (
    SCHEMA,
    ColumnError,
    causes,
    check_columns,
    coverage,
    obligations,
    violations,
)
from viewproof.refinement.spark.frames import read as _read
from viewproof.refinement.spark.frames import verdicts as _verdicts
from viewproof.refinement.spark.kept_table import verdicts as _kept_verdicts
from viewproof.refinement.spark.session import SparkStartError, start_session
from viewproof.refinement.spark.streams import verdicts as _stream_verdicts

__all__ = [
    "SCHEMA",
    "ColumnError",
    "Plan",
    "SparkStartError",
    "audit",
    "audit_from",
    "audit_stream",
    "causes",
    "coverage",
    "obligations",
    "page",
    "plan",
    "start_session",
    "violations",
]


def audit(
    source: DataFrame | str,
    *,
    allow: Sequence[str] = (),
    without: Sequence[str] = (),
    configuration: Mapping[str, int] | None = None,
    session: SparkSession | None = None,
    tasks: int | None = None,
    plan: Plan | None = None,
    interp: bool = False,
) -> DataFrame:
    """One row per run of `source`: a DataFrame with columns of traces/README.md, or a path of Parquet or JSON files.

    The columns of the answer: `run`; `verdict` (conforms, violates, inconclusive, or error: then `problems` say why);
    `events` accepted of those `recorded`; `violations` (see `violations`), `missing` evidence, `allowed` deviations,
    `notes`; `coverage` (steps per action of the specification) and `judged` (events by name).

    Integers are checked, not cast, and nulls are what was not shown; other columns are carried along to the violations.
    Options are those of `viewproof.audit`; `session` is for a path (default: the active one), `tasks` the number of
    partitions to judge in, `plan` deals the runs to them by size. Raises `ColumnError` for columns that are missing or
    of another type, and `viewproof.AuditOptionError`.
    """
    audit_options("native", "core", allow, without, "", configuration)
    return _verdicts(
        _events(source, session), allow=allow, without=without, configuration=configuration,
        check_run=check_run(interp=interp), tasks=tasks, plan=plan,
    )  # fmt: skip


def audit_from(
    states: DataFrame | None,
    source: DataFrame | str,
    *,
    allow: Sequence[str] = (),
    without: Sequence[str] = (),
    configuration: Mapping[str, int] | None = None,
    session: SparkSession | None = None,
    tasks: int | None = None,
    plan: Plan | None = None,
) -> DataFrame:
    """`audit` that goes on: `states` is what this function gave before (None for the first time), `source` new events
    of the same runs, or of others. The answer has the columns of `audit`, and `state`, a row for each run of both:
    what `audit` says of all events ever given. Keep it as a table for the next time.

        today = vsr.audit_from(spark.table("runs_monday"), spark.table("traces_tuesday"))
        today.write.saveAsTable("runs_tuesday")

    Only new events are replayed, unless some come late. A run with malformed events is an error from then on: go on
    from the table before, with events that are mended. So is a run whose state is of other options or of another
    version of the specification. Raises `ColumnError` and `viewproof.AuditOptionError`.
    """
    audit_options("native", "core", allow, without, "", configuration)
    return _kept_verdicts(
        states, _events(source, session), allow=allow, without=without, configuration=configuration, tasks=tasks,
        plan=plan,
    )  # fmt: skip


def _events(source: DataFrame | str, session: SparkSession | None) -> DataFrame:
    """The DataFrame, or that of a path."""
    if not isinstance(source, str):
        return source
    active = session or SparkSession.getActiveSession()
    if active is None:
        raise SparkStartError("there is no Spark session: give one, or make one with start_session()")
    return _read(active, source)


def plan(source: DataFrame, tasks: int) -> Plan:
    """Deal the runs of a DataFrame to tasks by their number of events, for `audit(source, plan=…)`: where few runs have
    most of the events. Printed, it says how many tasks, how even, and why it can be no better.

    It counts the events of each run: a query over the column `run`. Four tasks for each core are a good number.
    """
    check_columns(source)
    if tasks < 1:
        raise ValueError(f"tasks: expected a number from 1 on, got {tasks}")
    return _plan(source, tasks)


def audit_stream(
    source: DataFrame,
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
    """The verdicts on the runs of a stream (Structured Streaming), each once, with the columns of `audit`.

    Events may come in any order and in any pieces: each waits for those before it of its node (by `seq`), and is judged
    once every replica has shown an event above it (by `clock`). A run that violates is given at once, with its first
    violation; another when it ends: where `last` is true of an event of each replica, its last one, and all before are
    there; or when nothing came of it for `timeout`, and then what is missing is named. The timeout is by this machine's
    clock or, with `time` (a column of timestamps), by the time of the events, of which none comes more than `delay`
    late.

    `progress` also gives a row for each run that is still open (verdict `open`), with what it waits for, in each batch
    that has events of it: then the query's output mode is update, else append. What comes of a run after its end is
    passed over. Raises `ColumnError` and `viewproof.AuditOptionError`.
    """
    audit_options("native", "core", allow, without, "", configuration)
    return _stream_verdicts(
        source, last=last, timeout=timeout, time=time, delay=delay, progress=progress, allow=allow, without=without,
        configuration=configuration,
    )  # fmt: skip


def page(verdicts: DataFrame, file: str | Path, *, by: str | None = None) -> Path:
    """Write a page on all runs: verdicts, causes with a story each, missing evidence, what was exercised.

    With `by`, a column of `verdicts` that you joined (a day, a build), also the verdicts by its values.

    One HTML file without links to elsewhere. It takes a few queries over `verdicts`: keep them (`cache`) before.
    """
    path = Path(file)
    _fleet_page.write(_fleet(verdicts, by), path)
    return path
