"""An audit that goes on from the directory of a state, spread over executors (`vsr audit --state DIR --engine spark`).

Tasks take what is new of each file, bring it together by run, and go on with each run from its files in the directory,
which all of them reach under its path. What they write counts once the driver says so, as in the local engine, and the
directory is the same: either engine goes on from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count, groupby
from operator import itemgetter
from pathlib import Path

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from viewproof.refinement import going_on
from viewproof.refinement.adapter import adapter as find_adapter
from viewproof.refinement.discovery import Inputs
from viewproof.refinement.going_on.audit import say_same, take
from viewproof.refinement.going_on.directory import Directory, Entry, Index, StateError, Taken
from viewproof.refinement.going_on.in_files import InFiles
from viewproof.refinement.going_on.inputs import New, classify
from viewproof.refinement.going_on.runs import Run
from viewproof.refinement.judging import no_collector
from viewproof.refinement.local import Progress
from viewproof.refinement.ordering import order_key
from viewproof.refinement.packing import pack, row_decoder
from viewproof.refinement.parquet import holds_nothing
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import FILE_INDEX, LINE_INDEX, Row
from viewproof.refinement.spark.plans import EVENTS, FILES, chunks, ddl, in_order, rows_in, to_batch
from viewproof.refinement.spark.plans import tasks_of as tasks_for
from viewproof.refinement.spark.remote import fetched, files_at
from viewproof.refinement.spark.session import Log, interruptibly, session_for
from viewproof.refinement.verdict import AuditOptions, AuditReport, UnitResult

_WENT = pa.schema([("went", pa.binary())])
_FILES = pa.schema([("unit", pa.string()), ("file", pa.string()), ("content", pa.binary())])


class Went(msgspec.Struct):
    """What a task says of a file (`taken`; or that it was taken before, `same`) or of a run (its `entry`).

    `refused` is why the state cannot be used.
    """

    result: UnitResult
    taken: Taken | None = None
    same: bool = False
    entry: Entry | None = None
    refused: str = ""


def audit_from(
    state: Path,
    inputs: Inputs,
    options: AuditOptions,
    *,
    master: str = "local[*]",
    session: SparkSession | None = None,
    log: Log | None = None,
    progress: Progress | None = None,
    conf: Mapping[str, str] | None = None,
) -> AuditReport:
    """`going_on.audit` on Spark. Raises `StateError` for a directory that cannot be used."""
    say = log or (lambda _: None)

    def judged(
        directory: Directory, inputs: Inputs, options: AuditOptions, progress: Progress | None, say: Log
    ) -> Iterator[UnitResult]:
        with session_for(session, master, log, conf) as spark:
            here = master.startswith("local")
            names = [file if here else str(Path(file).absolute()) for file in inputs.files]
            yield from _judged(spark, directory, inputs, names, options, tasks_for(master), say)
        if progress:
            progress(len(inputs.files), len(inputs.files), "all")

    return going_on.audit(inputs, options, state.absolute(), progress=progress, log=say, judged=judged, engine="spark")


def _judged(
    spark: SparkSession, directory: Directory, inputs: Inputs, names: list[str], options: AuditOptions, tasks: int,
    say: Log,
) -> Iterator[UnitResult]:  # fmt: skip
    files = spark.createDataFrame(pa.Table.from_pylist([{"unit": name, "file": name} for name in names], schema=_FILES))
    if inputs.remote:
        there, said = files_at(spark, inputs.remote, inputs.suffixes)
        yield UnitResult("addresses", problems=said.refused, empty=said.empty)
        if said.refused:
            return
        files = files.unionByName(there)
    how = f"{tasks} tasks, and each goes on from its state"
    say(f"{len(names) or 'remote'} files: what is new is brought together by run, to {how}")
    went = _went(files.repartition(tasks), directory, options, tasks)
    if refused := sorted(one.refused for one in went if one.refused):
        raise StateError(refused[0])
    say_same(sum(one.same for one in went), say)
    reading = [one for one in went if one.taken is not None]
    if any(one.result.problems for one in reading):
        yield from (one.result for one in reading)
        return
    for one in went:
        if one.entry is not None:
            [run] = one.result.runs
            directory.changed[run] = one.entry
    _require_written(directory)
    for one in sorted(reading, key=lambda one: one.result.unit):
        assert one.taken is not None
        take(directory.index, one.taken, "".join(one.result.empty))
        directory.index.carried = {**one.result.carried, **directory.index.carried}
        directory.index.unrecognised |= one.result.unrecognised
    yield from (replace(one.result, empty=()) for one in went)


def _require_written(directory: Directory) -> None:
    """Raise `StateError` unless what tasks wrote is there for all."""
    for entry in directory.changed.values():
        for file, size in ((directory.state(entry), entry.size), (directory.log(entry), entry.log)):
            if not file.exists() or file.stat().st_size < size:
                raise StateError(f"{file}: an executor wrote it and it is not here: {_shared(directory.path)}")


def _shared(path: Path) -> str:
    return f"expected {path} to be one directory for all executors and this machine"


def _went(files: DataFrame, directory: Directory, options: AuditOptions, tasks: int) -> list[Went]:
    """What became of the files of a table and of their runs."""
    taking = partial(_take, options=options, known=msgspec.msgpack.encode(directory.index.files))
    go_on = partial(
        _go_on, path=str(directory.path), index=msgspec.msgpack.encode(_small(directory.index)), options=options,
        least=directory.least, tasks=tasks,
    )  # fmt: skip
    events = files.mapInArrow(taking, ddl(EVENTS))
    answer = in_order(events, tasks).mapInArrow(go_on, ddl(_WENT))
    found = interruptibly(files.sparkSession, answer.toArrow).column("went").to_pylist()
    return [msgspec.msgpack.decode(one, type=Went) for one in found]


def _small(index: Index) -> Index:
    """What tasks need of it."""
    return Index(index.subject, index.generation, runs=index.runs)


def _take(batches: Iterator[pa.RecordBatch], options: AuditOptions, known: bytes) -> Iterator[pa.RecordBatch]:
    taken = msgspec.msgpack.decode(known, type=list[Taken])
    rows = (row for _, path, name in fetched(batches) for row in _new_rows(path, name, taken, options))
    for chunk in chunks(rows):
        yield to_batch(chunk, EVENTS)


def _new_rows(path: str, name: str, known: list[Taken], options: AuditOptions) -> Iterator[Row]:
    """What is new of a file, with what to bring together and sort by; then what is said of the file."""
    file = classify(path, known, name)
    if not isinstance(file, New):
        yield FILES, 0, 0, 0, pack(Went(UnitResult(name), same=True))
        return
    log, last = ProblemLog(), file.after_line
    for row in rows_in(path, name, log, options):
        if row[LINE_INDEX] > file.after_line:
            last = row[LINE_INDEX]
            yield row[0], *order_key(row), pack(row)
    empty = (f"{name}: the file holds no event",) if last == 0 and not log and not holds_nothing(path) else ()
    said = UnitResult(
        name, problems=tuple(log.problems), problems_more=log.more, empty=empty, carried=dict(log.carried),
        unrecognised=dict(log.unknown),
    )  # fmt: skip
    yield FILES, 0, 0, 0, pack(Went(said, Taken(name, file.size, file.digest, last)))


def _go_on(
    batches: Iterator[pa.RecordBatch], path: str, index: bytes, options: AuditOptions, least: int, tasks: int
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    directory = Directory(Path(path), msgspec.msgpack.decode(index, type=Index))
    directory.numbers = count(least + number, tasks)
    decode = row_decoder(find_adapter(options.adapter).system.table).decode
    events = (pair for batch in batches for pair in zip(*map(pa.Array.to_pylist, _run_and_row(batch)), strict=True))
    for run_id, pairs in groupby(events, key=itemgetter(0)):
        if run_id == FILES:
            yield _batch([packed for _, packed in pairs])
            continue
        with no_collector():
            yield _batch([pack(_run(run_id, [decode(packed) for _, packed in pairs], directory, options))])


def _run_and_row(batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array]:
    return batch.column("run"), batch.column("row")


def _run(run_id: str, rows: list[Row], directory: Directory, options: AuditOptions) -> Went:
    """Go on with one run."""
    log = ProblemLog()
    rows.sort(key=itemgetter(FILE_INDEX, LINE_INDEX))
    try:
        verdict, said = Run.load(run_id, InFiles(run_id, directory, options), options).go_on(rows, log)
    except StateError as error:
        return Went(UnitResult(run_id, (run_id,)), refused=str(error))
    except OSError as error:
        text = f"{error.filename}: {error.strerror or error}: {_shared(directory.path)}"
        return Went(UnitResult(run_id, (run_id,)), refused=text)
    verdicts = () if verdict is None else (verdict,)
    result = UnitResult(run_id, (run_id,), verdicts, tuple(log.problems), log.more, tool_errors=said)
    return Went(result, entry=directory.changed.get(run_id))


def _batch(went: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(went, pa.binary())], schema=_WENT)
