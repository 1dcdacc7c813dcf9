"""The Spark engine: the same readers, replay and facts as the local engine, spread over executors.

DataFrame API only, so any master works; executors need this package installed and the trace files reachable under
the same paths. Two plans:

- **whole**: where a directory holds exactly one run's files, a task judges whole directories; no shuffle.
- **shuffled**: otherwise events are decoded wherever their file is, brought together by run, sorted within partitions,
  and each run is streamed through the replay; global facts are checked by aggregations over a DataFrame.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from viewproof.refinement.adapter import NATIVE, first_run_of, has_facts, rows_of
from viewproof.refinement.adapter import adapter as find_adapter
from viewproof.refinement.discovery import Inputs, Unit
from viewproof.refinement.flat.streaming import Hands
from viewproof.refinement.global_facts import Contradiction, facts_of, merge_facts
from viewproof.refinement.judging import Spent, judge_run, judge_unit, no_collector, result_of
from viewproof.refinement.local import Progress, result_of_inputs, split_groups, until_interrupted
from viewproof.refinement.ordering import order_key
from viewproof.refinement.packing import Packed, pack
from viewproof.refinement.parquet import holds_nothing
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.refinement.spark.balance import Cores, Plan, ahead, cores_of, dealt, why
from viewproof.refinement.spark.remote import fetched, files_at
from viewproof.refinement.spark.session import BATCH_ROWS, Log, interruptibly, session_for
from viewproof.refinement.spark.told import Told, telling
from viewproof.refinement.verdict import AuditOptions, AuditReport, CheckRun, UnitResult

_RESULTS_A_BATCH = 64
_FACTS_HELD = 200_000
"""Facts that a task holds before it hands them on."""

FILES = ""
"""In place of a run id: what is said of a file. No run has this id."""

_READING = "reading "
"""Prefix of the unit's name in what is said of a file."""

_RESULT = pa.schema([("result", pa.string())])
EVENTS = pa.schema(
    [("run", pa.string()), ("clock", pa.int64()), ("node", pa.int64()), ("seq", pa.int64()), ("row", pa.binary())]
)
_FACTS = pa.schema(
    [
        ("run", pa.string()),
        ("rule", pa.string()),
        ("first", pa.int64()),
        ("second", pa.int64()),
        ("value", pa.string()),
        ("clock", pa.int64()),
        ("node", pa.int64()),
        ("seq", pa.int64()),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("event", pa.string()),
    ]
)
_DDL = {pa.string(): "string", pa.int64(): "bigint", pa.binary(): "binary"}


def audit(
    inputs: Inputs,
    options: AuditOptions,
    check_run: CheckRun,
    *,
    master: str = "local[*]",
    session: SparkSession | None = None,
    log: Log | None = None,
    progress: Progress | None = None,
    conf: Mapping[str, str] | None = None,
) -> AuditReport:
    """Audit all inputs on Spark and report: the same verdicts as the local engine's. Its seconds leave the start out.

    Interrupted, it reports what was judged where files are; of runs that are brought together by a shuffle nothing, and
    on a cluster only if that plan was through.

    `check_run` must be importable by name on the executors. A session that is passed in is left open.
    """
    started = time.monotonic()
    say = log or (lambda _: None)
    results, stopped = [result_of_inputs(inputs)], ""
    units = inputs.units if master.startswith("local") else tuple(_absolute(unit) for unit in inputs.units)
    if units or inputs.remote:
        try:
            with session_for(session, master, log, conf) as spark:
                say(f"session ready after {time.monotonic() - started:.1f} s")
                started = time.monotonic()
                here = str(spark.conf.get("spark.master", "")).startswith("local")
                with telling(here, len(units), progress) as told, told.kept(results):
                    for found in _audit_units(spark, units, options, check_run, tasks_of(master), say, told):
                        results += found
                    if inputs.remote:
                        results += judge_remote(spark, inputs, options, check_run, tasks_of(master), say)
        except KeyboardInterrupt:
            results, stopped = until_interrupted(replace(inputs, units=units), results)
    if progress and not stopped:
        progress(len(inputs.units), len(inputs.units), "all")
    return AuditReport.combine("spark", options, results, seconds=time.monotonic() - started, stopped=stopped)


def tasks_of(master: str) -> int:
    """How many tasks to cut the work into: several per core here, many where the cluster's size is unknown."""
    return 4 * (os.cpu_count() or 1) if master.startswith("local") else 256


def _audit_units(
    spark: SparkSession, units: tuple[Unit, ...], options: AuditOptions, check_run: CheckRun, tasks: int, say: Log,
    told: Told,
) -> Iterator[list[UnitResult]]:  # fmt: skip
    """The results of each plan."""
    whole, mixed = divide(units, options.adapter)
    if whole:
        hands = dealt(whole, tasks, size_of)
        cores = cores_of(spark)
        even = why([unit.size for unit in whole], [sum(map(size_of, hand)) for hand in hands], "bytes")
        even += ahead(max(unit.size for unit in whole), sum(unit.size for unit in whole), cores)
        say(f"{len(whole)} directories with runs of their own: judged where they are, without a shuffle; {even}")
        results = judge_whole(spark, whole, options, check_run, tasks, told, cores)
        by_name = {unit.name: unit for unit in whole}
        split = {name for group in split_groups(results) for name in group}
        results = [result for result in results if result.unit not in split]
        mixed += [by_name[name] for name in sorted(split)]
        yield results
    if mixed:
        files = sum(len(unit.files) for unit in mixed)
        say(f"{files} files, of which several hold events of one run: brought together by run, to {tasks} tasks")
        yield judge_shuffled(spark, mixed, options, check_run, tasks)


def divide(units: Iterable[Unit], adapter: str = NATIVE) -> tuple[list[Unit], list[Unit]]:
    """Units whose files all start with one run that no other unit starts with, or are read together, and the rest."""
    if find_adapter(adapter).by_files:
        return list(units), []
    runs = {unit: {run for file in unit.files if (run := first_run_of(file, adapter)) is not None} for unit in units}
    owners: dict[str, int] = {}
    for found in runs.values():
        for run in found:
            owners[run] = owners.get(run, 0) + 1
    whole = [unit for unit, found in runs.items() if len(found) == 1 and all(owners[run] == 1 for run in found)]
    chosen = set(whole)
    return whole, [unit for unit in runs if unit not in chosen]


# --- plan "whole" ---------------------------------------------------------------------------------------------------


def judge_whole(
    spark: SparkSession, units: list[Unit], options: AuditOptions, check_run: CheckRun, tasks: int, told: Told,
    cores: Cores,
) -> list[UnitResult]:  # fmt: skip
    """Judge units, each within one task. They are dealt to the tasks by their bytes, the largest first; one that is
    much of all is read ahead by the cores that others leave.
    """
    hands, total = dealt(units, tasks, size_of), sum(unit.size for unit in units)
    folder = told.folder
    names = msgspec.json.encode(hands)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        dealt_units = msgspec.json.decode(names, type=list[list[Unit]])
        for batch in batches:
            for hand in batch.column("id").to_pylist():
                results = (
                    judge_unit(unit, options, check_run, total, Hands(cores.threads(unit.size, total)))
                    for unit in dealt_units[hand]
                )
                results = (Told(folder).passed(hand, result) for result in results)
                while some := list(islice(results, _RESULTS_A_BATCH)):
                    yield _result_batch(some)

    return _collect(spark.range(0, len(hands), 1, len(hands)).mapInArrow(judge, ddl(_RESULT)))


size_of = attrgetter("size")


def _absolute(unit: Unit) -> Unit:
    return replace(unit, files=tuple(str(Path(file).absolute()) for file in unit.files))


def ddl(schema: pa.Schema) -> str:
    """A schema in Spark's words."""
    return ", ".join(f"{field.name} {_DDL[field.type]}" for field in schema)


def _result_batch(results: Iterable[UnitResult]) -> pa.RecordBatch:
    texts = [msgspec.json.encode(result).decode() for result in results]
    return pa.RecordBatch.from_arrays([pa.array(texts, type=pa.string())], schema=_RESULT)


def _collect(answers: DataFrame) -> list[UnitResult]:
    texts = interruptibly(answers.sparkSession, answers.toArrow).column("result").to_pylist()
    return [msgspec.json.decode(text, type=UnitResult) for text in texts]


# --- plan "shuffled" ------------------------------------------------------------------------------------------------


def judge_shuffled(
    spark: SparkSession, units: list[Unit], options: AuditOptions, check_run: CheckRun, tasks: int
) -> list[UnitResult]:
    """Judge units that mix runs or share them: decode by file, bring together by run, sort, stream."""
    pairs = [(unit.name, file) for unit in units for file in unit.files]
    table = pa.table({"unit": [unit for unit, _ in pairs], "file": [file for _, file in pairs]})
    files = spark.createDataFrame(table).repartition(min(tasks, len(pairs)))
    return _judge_files(files, named, options, check_run, tasks)


def judge_remote(
    spark: SparkSession, inputs: Inputs, options: AuditOptions, check_run: CheckRun, tasks: int, say: Log
) -> list[UnitResult]:
    """Judge the files at addresses of other file systems: like files that mix runs, fetched by the tasks."""
    files, said = files_at(spark, inputs.remote, inputs.suffixes)
    if said.ignored:
        say(f"{len(said.ignored)} files that are no traces are not read, the first: {said.ignored[0]}")
    if said.refused or len(said.empty) == len(inputs.remote):
        return [result_of_inputs(said)]
    return [result_of_inputs(said), *_judge_files(files, fetched, options, check_run, tasks)]


def _judge_files(
    files: DataFrame, opened: Opened, options: AuditOptions, check_run: CheckRun, tasks: int
) -> list[UnitResult]:
    """Judge what is in a table of files, of which `opened` gives those of a batch."""
    decode = partial(_decode, opened=opened, options=options)
    judge = partial(_replay, options=options, check_run=check_run, with_facts=False)
    events = files.mapInArrow(decode, ddl(EVENTS))
    results = _collect(in_order(events, tasks).mapInArrow(judge, ddl(_RESULT)))
    state = partial(_state_facts, opened=opened, options=options)
    facts = files.mapInArrow(state, ddl(_FACTS))
    broken = interruptibly(files.sparkSession, partial(contradictions, facts)) if has_facts(options.adapter) else []
    return _without_malformed(results, broken, options)


def in_order(events: DataFrame, tasks: int | None = None, plan: Plan | None = None) -> DataFrame:
    """Events brought together by run, each run in replay order; placed by a plan or by the runs' names."""
    if plan is not None:
        together = events.repartitionById(plan.tasks, plan.task_of())
    else:
        together = events.repartition("run") if tasks is None else events.repartition(tasks, "run")
    return together.sortWithinPartitions("run", "clock", "node", "seq")


def _replay(
    batches: Iterator[pa.RecordBatch], options: AuditOptions, check_run: CheckRun, *, with_facts: bool
) -> Iterator[pa.RecordBatch]:
    """Judge run after run; what was said of files is handed on."""
    for run_id, pairs in groupby(_packed_of(batches), key=itemgetter(0)):
        if run_id == FILES:
            yield _result_batch(msgspec.msgpack.decode(packed, type=UnitResult) for _, packed in pairs)
            continue
        yield _result_batch([judge_packed(run_id, (packed for _, packed in pairs), options, check_run, with_facts)])


def judge_packed(
    run_id: str, packed: Iterable[bytes], options: AuditOptions, check_run: CheckRun, with_facts: bool
) -> UnitResult:
    """Judge one run whose rows come packed, in replay order; `with_facts`, if nobody else looks at its facts."""
    return judge_rows(
        run_id, Packed(packed, find_adapter(options.adapter).system.table), options, check_run, with_facts
    )


def judge_rows(
    run_id: str, rows: Iterable[Row], options: AuditOptions, check_run: CheckRun, with_facts: bool
) -> UnitResult:
    """The same of one whose rows come in replay order, and can be gone through again."""
    log, spent = ProblemLog(), Spent()
    with no_collector():
        judged = judge_run(run_id, rows, options, check_run, log, with_facts=with_facts)
    spent.until_now("check")
    if with_facts:
        return result_of(run_id, (run_id,), (judged,), options, log, (), spent.seconds)
    verdicts = () if judged[0] is None else (judged[0],)
    return UnitResult(run_id, (run_id,), verdicts, tuple(log.problems), log.more, (), tuple(judged[2]), spent.seconds)


def _without_malformed(
    results: list[UnitResult], broken: list[Contradiction], options: AuditOptions
) -> list[UnitResult]:
    """Join what the passes found; runs of a unit with malformed input get no verdict, as in the local engine."""
    reading = [result for result in results if result.unit.startswith(_READING)]
    judged = [result for result in results if not result.unit.startswith(_READING)]
    malformed = {result.unit for result in reading if result.problems}
    spoilt = {run for result in reading if result.unit in malformed for run in result.runs}
    by_run: dict[str, list[Contradiction]] = {}
    for contradiction in broken:
        by_run.setdefault(contradiction.run_id, []).append(contradiction)
    results = list(reading)
    for result in judged:
        if result.unit in spoilt:
            continue
        merged = [merge_facts(verdict, by_run.get(verdict.run_id, ()), options) for verdict in result.verdicts]
        errors = (*result.tool_errors, *(error for _, error in merged if error))
        results.append(replace(result, verdicts=tuple(verdict for verdict, _ in merged), tool_errors=errors))
    return results


Opened = Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[str, str, str]]]
"""Per file of a batch: its unit, the path under which it can be read for the moment, and its name in reports."""


def named(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, str, str]]:
    """Files that every executor reaches under their own path."""
    for batch in batches:
        for unit, file in zip(batch.column("unit").to_pylist(), batch.column("file").to_pylist(), strict=True):
            yield unit, file, file


def rows_in(path: str, name: str, log: ProblemLog, options: AuditOptions) -> Iterator[Row]:
    """The rows of a file; they, and what is wrong with it, have its name."""
    if path == name:
        yield from rows_of(path, log, options)
        return
    own = ProblemLog(log.limit)
    for row in rows_of(path, own, options):
        yield (*row[:-2], name, row[-1])
    for problem in own.problems:
        log.add(name, problem.line, problem.field, problem.expected, problem.got)
    log.more += own.more
    for column, place in own.carried.items():
        log.carry(column, place.replace(path, name))
    for count, first in own.unknown.values():
        log.unknown[name] = (count, first)


def _decode(batches: Iterator[pa.RecordBatch], opened: Opened, options: AuditOptions) -> Iterator[pa.RecordBatch]:
    """Per event: the columns to bring together and sort by, and the whole row, packed.

    Per file, under the run `FILES`: the runs in it, and what is malformed or empty.
    """
    for chunk in chunks(_packed(opened(batches), options)):
        yield to_batch(chunk, EVENTS)


def _packed(files: Iterator[tuple[str, str, str]], options: AuditOptions) -> Iterator[Row]:
    for unit, path, name in files:
        log, spent = ProblemLog(), Spent()
        runs: set[str] = set()
        for row in rows_in(path, name, log, options):
            clock, node, seq = order_key(row)
            runs.add(row[0])
            yield row[0], clock, node, seq, pack(row)
        problems = tuple(log.problems)
        empty = () if runs or log or holds_nothing(path) else (f"{name}: the file holds no event",)
        spent.until_now("read")
        result = UnitResult(
            _READING + unit,
            tuple(sorted(runs)),
            (),
            problems,
            log.more,
            empty,
            (),
            spent.seconds,
            dict(log.carried),
            dict(log.unknown),
        )
        yield FILES, 0, 0, 0, pack(result)


def _state_facts(batches: Iterator[pa.RecordBatch], opened: Opened, options: AuditOptions) -> Iterator[pa.RecordBatch]:
    """Per fact that is stated: its key, its value and where it stands first, each once per file (or part of a file)."""
    for chunk in chunks(chain.from_iterable(_facts_in(path, name, options) for _, path, name in opened(batches))):
        yield to_batch(chunk, _FACTS)


def _facts_in(path: str, name: str, options: AuditOptions) -> Iterator[Row]:
    first: dict[tuple[Any, ...], Row] = {}
    for row in rows_in(path, name, ProblemLog(), options):
        for key, value in facts_of(row):
            stated = (row[0], *key, value)
            order = order_key(row)
            known = first.get(stated)
            if known is None or order < known[:3]:
                first[stated] = (*order, row[FILE_INDEX], row[LINE_INDEX], row[INDEX["event"]])
        if len(first) > _FACTS_HELD:
            yield from (stated + place for stated, place in first.items())
            first = {}
    yield from (stated + place for stated, place in first.items())


def chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """So many rows at a time as a batch has."""
    chunk: list[Row] = []
    for row in rows:
        chunk.append(row)
        if len(chunk) == BATCH_ROWS:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def to_batch(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    """Rows as columns."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _packed_of(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, bytes]]:
    """(run, packed row); what `_decode` says of files as (`FILES`, packed result)."""
    for batch in batches:
        yield from zip(batch.column("run").to_pylist(), batch.column("row").to_pylist(), strict=True)


def contradictions(facts: DataFrame) -> list[Contradiction]:
    """Every key of a run with two values, with the first event that states another value than the earliest does.

    `facts` has the columns of `_FACTS`. A second query looks for the places, and only where there is something to find.
    """
    key = ["run", "rule", "first", "second"]
    place = ["clock", "node", "seq", "file", "line", "value"]
    # "earliest" is each key's first statement in replay order.
    per_key = facts.groupBy(*key).agg(
        fn.min(fn.struct(*place)).alias("earliest"), fn.min("value").alias("low"), fn.max("value").alias("high")
    )
    broken = per_key.where(fn.col("low") != fn.col("high")).select(*key, "earliest")
    if broken.isEmpty():
        return []
    others = facts.join(broken, key).where(fn.col("value") != fn.col("earliest.value"))
    second = others.groupBy(*key, "earliest").agg(fn.min(fn.struct(*place, "event")).alias("other"))
    found = []
    for row in second.toArrow().to_pylist():
        earliest, other = row["earliest"], row["other"]
        found.append(
            Contradiction(
                run_id=row["run"],
                key=(row["rule"], row["first"], row["second"]),
                value=other["value"],
                before=earliest["value"],
                before_at=f"{earliest['file']}:{earliest['line']}",
                order=(other["clock"], other["node"], other["seq"]),
                file=other["file"],
                line=other["line"],
                event=other["event"],
            )
        )
    return sorted(found, key=lambda c: (c.run_id, c.order, c.key))
