"""Traces as a DataFrame: verdicts as a DataFrame, from any source that the user's session reads.

The columns are those of traces/README.md by name; integers and strings are checked by their type before anything runs
(nothing is cast), nulls are what was not shown. Events are brought together by run, sorted by clock, node and seq, and
each run is replayed by one task. Nothing is collected: a verdict's row holds its violations and counts, and the other
functions unfold them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from viewproof.refinement import checker
from viewproof.refinement.ordering import order_key
from viewproof.refinement.packing import pack
from viewproof.refinement.parquet import batch_rows
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import BY_NAME, FILE_INDEX, INDEX, TABLE, Column, nearest
from viewproof.refinement.spark.balance import Plan
from viewproof.refinement.spark.columns import CARRIED, EVENT_BYTES, judge_run, malformed, runs_in
from viewproof.refinement.spark.guards import guards as guards_of
from viewproof.refinement.spark.plans import in_order
from viewproof.refinement.verdict import PROBLEM_LIMIT, AuditOptions, CheckRun, RunVerdict, natural

_KINDS = {"int": "bigint", "string": "string", "strings": "array<string>"}
SCHEMA: Final = ", ".join(f"{column.name} {_KINDS[column.kind]}" for column in TABLE)
"""The columns of the format with their types, as Spark takes them."""
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_ROWS_A_BATCH = 256
_NONE: Mapping[str, Any] = MappingProxyType({})
BEFORE_ALL = -1
"""In place of the clock of an event that is malformed."""

_TEXT, _NUMBER, _TEXTS = pa.string(), pa.int64(), pa.list_(pa.string())
EVENTS = pa.schema(
    [("run", _TEXT), ("clock", _NUMBER), ("node", _NUMBER), ("seq", _NUMBER), ("row", pa.binary()), ("carried", _TEXT)]
)
VIOLATION: Final = {
    **dict.fromkeys(("rule_id", "rule", "place", "action"), _TEXT),
    **dict.fromkeys(("node", "seq"), _NUMBER),
    **dict.fromkeys(("severity", "message", "expected", "observed", "rule_fingerprint"), _TEXT),
    "prefix_length": _NUMBER,
    **dict.fromkeys(("why_not", "changes", "story"), _TEXTS),
    "carried": pa.map_(_TEXT, _TEXT),
}
"""The fields of a violation, as in `viewproof.refinement.verdict.Violation`, and their types."""
_SAME = tuple(name for name in VIOLATION if name not in ("carried", "story"))
_COUNTS = pa.map_(_TEXT, _NUMBER)
VERDICTS = pa.schema({
    "run": _TEXT, "verdict": _TEXT, "events": _NUMBER, "recorded": _NUMBER,
    "violations": pa.list_(pa.struct(list(VIOLATION.items()))), "missing": _TEXTS, "allowed": _TEXTS, "notes": _TEXTS,
    "coverage": _COUNTS, "judged": _COUNTS, "problems": _TEXTS, "open_guards": _COUNTS, "configuration": _COUNTS,
})  # fmt: skip
"""The columns of `verdicts`. `verdict` is conforms, violates, inconclusive or error (then `problems` say why)."""

EMPTY: Final = {
    name: 0 if kind == _NUMBER else "" if kind == _TEXT else ()
    for name, kind in zip(VERDICTS.names, VERDICTS.types, strict=True)
}
"""The columns where there is nothing to say: no null."""


def spark_schema(schema: pa.Schema) -> StructType:
    found: StructType = from_arrow_schema(schema)
    return found


class ColumnError(ValueError):
    """The DataFrame cannot be audited: a column is missing, repeated, or of another type."""


def verdicts(
    events: DataFrame,
    *,
    allow: Sequence[str] = (),
    without: Sequence[str] = (),
    configuration: Mapping[str, int] | None = None,
    check_run: CheckRun = checker.check_run,
    tasks: int | None = None,
    plan: Plan | None = None,
) -> DataFrame:
    """One row per run of `events`, with the columns of `VERDICTS`; nothing runs before it is asked for.

    Columns of `events` that the format does not have are carried along to the violations. `tasks` is the number of
    partitions to judge in (default: the session's), `plan` says which run goes where. Raises `ColumnError`.
    """
    check_columns(events)
    options = options_of(allow, without, configuration)
    parts = plan.tasks if plan else tasks or int(events.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
    judge = partial(_judged, options=options, check_run=check_run, parts=parts)
    return in_order(events.select(*_columns_of(events)), tasks, plan).mapInArrow(judge, spark_schema(VERDICTS))


def options_of(
    allow: Sequence[str], without: Sequence[str], configuration: Mapping[str, int] | None
) -> AuditOptions:  # fmt: skip
    """The options of an audit of a DataFrame."""
    return AuditOptions("core", tuple(allow), tuple(without), "native", tuple((configuration or {}).items()))


def packed_events(
    events: DataFrame, options: AuditOptions, also: Mapping[str, tuple[Any, pa.DataType]] = _NONE
) -> DataFrame:
    """The events with the columns of `EVENTS`, and others by name: what they are in Spark, and their type.

    Malformed events have clock -1, and in place of the row what is wrong with them.
    """
    more = [column.alias(name) for name, (column, _) in also.items()]
    schema = pa.schema([*EVENTS, *((name, kind) for name, (_, kind) in also.items())])
    return events.select(*_columns_of(events), *more).mapInArrow(
        partial(_packed, options=options, also=tuple(also)), spark_schema(schema)
    )


def _columns_of(events: DataFrame) -> list[Any]:
    """The columns of the format under its names, and the others as JSON in one."""
    found = _by_name(events)
    own = [fn.col(_quoted(name)) for key, names in found.items() if key not in BY_NAME for name in names]
    carried = fn.to_json(fn.struct(*own)) if own else fn.lit(None).cast("string")
    known = [_sent(column, fn.col(_quoted(found[column.name][0]))) for column in TABLE if column.name in found]
    return [*known, carried.alias(CARRIED)]


def _sent(column: Column, value: Any) -> Any:
    """A column as it goes to Python: a list as JSON. Spark writes each null of a list by going through all rows of its
    batch before it, so that 10,000 events that show no log cost 50 million steps.
    """
    sent = fn.to_json(value.cast(_KINDS["strings"])) if column.kind == "strings" else value
    return sent.alias(column.name)


def _arrived(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches with lists again where `_sent` made them JSON."""
    for batch in batches:
        for name in (column.name for column in TABLE if column.kind == "strings"):
            at = batch.schema.get_field_index(name)
            if at >= 0:
                batch = batch.set_column(at, name, _lists(batch.column(at)))
        yield batch


def _lists(texts: pa.Array) -> pa.Array:
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), _TEXTS)
    found = [None if text is None else msgspec.json.decode(text, type=list[str | None]) for text in texts.to_pylist()]
    return pa.array(found, _TEXTS)


def _by_name(events: DataFrame) -> dict[str, list[str]]:
    """The columns by the name that the session knows them by: it does not tell VIEW from view, unless it is told to."""
    exact = str(events.sparkSession.conf.get("spark.sql.caseSensitive", "false")).lower() == "true"
    found: dict[str, list[str]] = {}
    for name in events.columns:
        found.setdefault(name if exact else name.lower(), []).append(name)
    return found


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def check_columns(events: DataFrame) -> None:
    """Refuse what cannot be audited, with every column that is wrong."""
    types, found = dict(events.dtypes), _by_name(events)
    hints: dict[str, int] = {}
    wrong = [
        f"{key}: there are {len(names)} columns of that name{_several(names)}"
        for key, names in found.items()
        if len(names) > 1
    ]
    for column in TABLE:
        names = found.get(column.name, [])
        if not names and column.required:
            wrong.append(f"{column.name}: the column is missing{_elsewhere(column.name, events, found)}")
        elif len(names) == 1 and not _fits(column, types[names[0]]):
            kind = types[names[0]]
            hints[_hint(column, kind)] = len(wrong)
            wrong.append(f"{column.name}: expected {column.expected}, got a column of {kind}")
    for hint, last in hints.items():
        wrong[last] += hint
    if wrong:
        raise ColumnError("; ".join(wrong))


def _several(names: Sequence[str]) -> str:
    """Names that differ by their case, which the session does not see."""
    return f" ({', '.join(names)})" if len(set(names)) > 1 else ""


def _elsewhere(name: str, events: DataFrame, found: Mapping[str, Any]) -> str:
    """Where a column may be that is missing: in a struct, or under a name that is like it."""
    for field in events.schema.fields:
        if isinstance(field.dataType, StructType) and name in field.dataType.names:
            return f'; there is {field.name}.{name}: select("{field.name}.*") first'
    return nearest(name, tuple(key for key in found if key not in BY_NAME))


def _fits(column: Column, kind: str) -> bool:
    if kind == "void":
        return not column.required
    wanted = {"int": _WHOLE, "string": ("string",), "strings": ("array<string>",)}[column.kind]
    return kind in wanted or (column.kind == "string" and kind.startswith(("varchar", "char")))


def _hint(column: Column, kind: str) -> str:
    if column.kind == "int" and kind in ("double", "float"):
        return " (pandas makes integers with nulls floats: make the DataFrame from Arrow, or cast it to bigint)"
    if column.kind == "int" and kind == "string":
        return " (CSV without a schema is text: read it with one, or cast it to bigint)"
    return ""


def _packed(batches: Iterator[pa.RecordBatch], options: AuditOptions, also: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Events with what to bring together and sort by. What is malformed is sorted before all events of its run."""
    gone = {INDEX[name] for name in options.without}
    for batch in _arrived(batches):
        carried = batch.column(CARRIED).to_pylist()
        packed: list[tuple[Any, ...]] = []
        seen = 0
        for row in batch_rows("", 0, batch, ProblemLog()):
            at = row[FILE_INDEX + 1]
            packed += _malformed(batch, range(seen, at))
            seen = at + 1
            clock, node, seq = order_key(row)
            values = tuple(None if n in gone else value for n, value in enumerate(row[:FILE_INDEX]))
            packed.append((row[0], clock, node, seq, pack((*values, f"node {node}", seq)), carried[at]))
        packed += _malformed(batch, range(seen, batch.num_rows))
        columns = list(zip(*packed, strict=True)) if packed else [()] * len(EVENTS)
        arrays = [pa.array(values, type=field.type) for values, field in zip(columns, EVENTS, strict=True)]
        arrays += [batch.column(name) for name in also]
        yield pa.RecordBatch.from_arrays(arrays, names=[*EVENTS.names, *also])


def _malformed(batch: pa.RecordBatch, places: range) -> list[tuple[Any, ...]]:
    """In place of each event that was refused: its run, and why."""
    runs = (batch.column("run")[at].as_py() or "" for at in places)
    texts = zip(runs, malformed(batch, places), strict=True)
    return [(run, BEFORE_ALL, -1, -1, text.encode(), None) for run, text in texts]


def _judged(
    batches: Iterator[pa.RecordBatch], options: AuditOptions, check_run: CheckRun, parts: int
) -> Iterator[pa.RecordBatch]:
    rows: list[dict[str, Any]] = []
    seen = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal seen
        for batch in _arrived(batches):
            seen += batch.num_rows
            yield batch

    for run, slices in runs_in(counted()):
        result, problems, own = judge_run(run or "", slices, options, check_run, seen * parts * EVENT_BYTES)
        problems = [*problems, *map(str, result.problems), *result.tool_errors]
        verdicts = result.verdicts
        rows.append(verdict_row(verdicts[0], own, problems) if verdicts else error_row(run or "", problems))
        if len(rows) == _ROWS_A_BATCH:
            yield pa.RecordBatch.from_pylist(rows, schema=VERDICTS)
            rows = []
    yield pa.RecordBatch.from_pylist(rows, schema=VERDICTS)


_GOT = re.compile(r", got [^;]*")

Event = tuple[str, int, int, int, bytes, str | None]
"""A row with the columns of `EVENTS`."""


def rows_of_events(batches: Iterator[pa.RecordBatch]) -> Iterator[Event]:
    """The rows of batches with the columns of `EVENTS`."""
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in EVENTS.names), strict=True)


def error_row(run: str, problems: Sequence[str]) -> dict[str, Any]:
    """The row of a run that is not judged, and why: each cause once, with its first place, in the order of places."""
    causes: dict[str, list[str]] = {}
    for text in sorted(problems, key=natural):
        causes.setdefault(_GOT.sub("", text.partition(": ")[2]) or text, []).append(text)
    problems = [f"{texts[0]}{_like_it(texts)}" for texts in causes.values()]
    more = [f"and {len(problems) - PROBLEM_LIMIT} more"] if len(problems) > PROBLEM_LIMIT else []
    shown = [*problems[:PROBLEM_LIMIT], *more]
    return {**EMPTY, "run": run, "verdict": "error", "problems": shown}


def _like_it(texts: Sequence[str]) -> str:
    """How many other events are malformed in the same way."""
    return f" (and {len(texts) - 1:,} more like it, the last {texts[-1].partition(':')[0]})" if len(texts) > 1 else ""


def verdict_row(
    verdict: RunVerdict, carried: Mapping[tuple[int, int], str], problems: Sequence[str]
) -> dict[str, Any]:  # fmt: skip
    """The row of a run; `carried` are the own columns of an event, as JSON, by node and seq."""
    return {
        "run": verdict.run_id,
        "verdict": verdict.verdict,
        "events": verdict.events,
        "recorded": verdict.recorded,
        "violations": [
            {
                **{name: getattr(v, name) for name in _SAME},
                "carried": texts_of(carried.get((v.node, v.seq))),
                "story": [str(step) for step in v.story],
            }
            for v in verdict.violations
        ],
        "missing": verdict.missing,
        "allowed": [f"{use.fault} at node {use.node}, seq {use.seq}" for use in verdict.allowed_uses],
        "notes": verdict.notes,
        "coverage": list(verdict.coverage.items()),
        "judged": list(verdict.events_by_name.items()),
        "problems": problems,
        "open_guards": list(verdict.open_guards.items()),
        "configuration": list(verdict.configuration.items()),
    }


def texts_of(carried: str | None) -> list[tuple[str, str]]:
    """Columns in JSON, each as text."""
    found = {} if carried is None else msgspec.json.decode(carried)
    return [(name, value if isinstance(value, str) else str(value)) for name, value in found.items()]


def check_verdicts(verdicts: DataFrame, *names: str) -> None:
    """Refuse a DataFrame that is not one of verdicts, or has lost one of the columns that are needed."""
    for name in names:
        if name not in verdicts.columns:
            raise ColumnError(f"{name}: the column is missing; expected verdicts, as audit gives them")


def violations(verdicts: DataFrame) -> DataFrame:
    """One row per violation: `run`, and the fields of `VIOLATION`. Raises `ColumnError`."""
    check_verdicts(verdicts, "run", "violations")
    return verdicts.select("run", fn.explode("violations").alias("v")).select("run", "v.*")


def causes(verdicts: DataFrame) -> DataFrame:
    """One row per cause, the most frequent first: the rule that was broken, in how many runs, and one of them."""
    return (
        violations(verdicts)
        .groupBy("rule_fingerprint")
        .agg(
            fn.first("rule_id").alias("rule_id"),
            fn.first("rule").alias("rule"),
            fn.first("action").alias("action"),
            fn.count_distinct("run").alias("runs"),
            fn.min("run").alias("run"),
            fn.min_by("message", "run").alias("message"),
        )
        .orderBy(fn.desc("runs"), "rule_fingerprint")
    )


def obligations(verdicts: DataFrame) -> DataFrame:
    """One row per run and kind of evidence that was missing: `run`, `missing`. Raises `ColumnError`."""
    check_verdicts(verdicts, "run", "missing")
    return verdicts.select("run", fn.explode("missing").alias("missing"))


def coverage(verdicts: DataFrame, *, guards: bool = False) -> DataFrame:
    """One row per action of the specification: `action`, `steps` taken over all runs, and in how many `runs`.

    With `guards` one per conjunct of the guard of each action, also of those that no run took: `action`, `guard` as
    written, its `place` in the specification; in how many steps it was known to hold (`held`), or was left `open` by
    missing evidence; how many runs it `refused`; and the number of `runs` that took the action. Raises `ColumnError`.
    """
    check_verdicts(verdicts, "run", "coverage", *(("violations", "open_guards", "configuration") if guards else ()))
    if guards:
        return guards_of(verdicts)
    counts = verdicts.select("run", fn.explode("coverage").alias("action", "steps")).where(fn.col("steps") > 0)
    by_action = counts.groupBy("action").agg(fn.sum("steps").alias("steps"), fn.count_distinct("run").alias("runs"))
    return by_action.orderBy("action")


def read(session: SparkSession, path: str) -> DataFrame:
    """The events of Parquet or JSON files (by the first file's name), or of a table format that the session knows.

    JSON is read by the columns of the format: what is no column is not carried.
    """
    if path.rstrip("/").endswith((".ndjson", ".jsonl", ".json")):
        return session.read.schema(SCHEMA).option("mode", "FAILFAST").json(path)
    return session.read.parquet(path)
