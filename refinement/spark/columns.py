"""Runs that a shuffle brought together, as columns: judged by compiled code, and row by row where that declines.

Spark sorts the events of a partition by run and in replay order (on disk where memory does not do), so a run comes as
slices of batches. A long one is streamed; its events are kept in a temporary file for the time that it is judged, as
the other replay begins at its beginning.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from viewproof.refinement.flat.judge import of_tables
from viewproof.refinement.parquet import batch_rows
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import FILE_INDEX, INDEX, Row
from viewproof.refinement.spark.plans import judge_rows
from viewproof.refinement.verdict import AuditOptions, CheckRun, UnitResult

TABLE_ROWS = 1 << 16
"""Events that compiled code gets at a time; a run of more is streamed."""
HELD_TABLES = 4
"""Tables of a run that are held in memory; more go to a file."""
EVENT_BYTES = 150
"""What an event is counted as, where it is asked whether the input is large."""
CARRIED = "viewproof carried columns"
"""The column with those that the format does not have, as JSON."""
_NODE, _SEQ = INDEX["node"], INDEX["seq"]

Slices = Iterator[pa.RecordBatch]


def runs_in(batches: Slices) -> Iterator[tuple[str | None, Slices]]:
    """Each run with its slices; all of one must be gone through before the next."""
    for run, pairs in groupby(_slices(batches), key=itemgetter(0)):
        yield run, (part for _, part in pairs)


def _slices(batches: Slices) -> Iterator[tuple[str | None, pa.RecordBatch]]:
    for batch in batches:
        if not batch.num_rows:
            continue
        ends = pc.run_end_encode(batch.column("run"))
        first = 0
        for run, end in zip(ends.values.to_pylist(), ends.run_ends.to_pylist(), strict=True):
            yield run, batch.slice(first, end - first)
            first = end


class Held:
    """The events of a run as tables, which can be gone through again once they have come."""

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._tables: list[pa.Table] = []
        self._file: Any = None
        self._writer: Any = None
        self.rows = 0

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        for _ in self._slices:
            pass
        if self._file is not None:
            self._file.close()

    def coming(self) -> Iterator[pa.Table]:
        """What has not come yet, table by table."""
        some: list[pa.RecordBatch] = []
        count = 0
        for part in self._slices:
            some.append(part)
            count += part.num_rows
            if count >= TABLE_ROWS:
                yield self._keep(some)
                some, count = [], 0
        if some:
            yield self._keep(some)

    def _keep(self, parts: list[pa.RecordBatch]) -> pa.Table:
        table = pa.Table.from_batches(parts)
        self.rows += table.num_rows
        if self._writer is None and len(self._tables) < HELD_TABLES:
            self._tables.append(table)
            return table
        if self._writer is None:
            self._file = tempfile.TemporaryFile(prefix="viewproof-run-")  # noqa: SIM115 - closed at the end
            packed = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer = pa.ipc.new_stream(self._file, table.schema, options=packed)
        self._writer.write_table(table)
        return table

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """All that came, from the beginning."""
        yield from chain.from_iterable(table.to_batches() for table in self._tables)
        if self._file is not None:
            if self._writer is not None:
                self._writer.close()
            self._file.seek(0)
            with pa.ipc.open_stream(self._file) as reader:
                yield from reader


class Rows:
    """The events of a run as rows. What is malformed is left out, and the first time said in `problems`."""

    def __init__(self, held: Held, options: AuditOptions) -> None:
        self.held = held
        self.problems: list[str] = []
        self._gone = {INDEX[name] for name in options.without}
        self._first = True

    def __iter__(self) -> Iterator[Row]:
        first, self._first = self._first, False
        for batch in self.held:
            seen = 0
            for row in batch_rows("", 0, batch, ProblemLog()):
                at = row[FILE_INDEX + 1]
                if first and at > seen:
                    self.problems += malformed(batch, range(seen, at))
                seen = at + 1
                values = row[:FILE_INDEX]
                if self._gone:
                    values = tuple(None if n in self._gone else value for n, value in enumerate(values))
                yield (*values, f"node {row[_NODE]}", row[_SEQ])
            if first and seen < batch.num_rows:
                self.problems += malformed(batch, range(seen, batch.num_rows))


def malformed(batch: pa.RecordBatch, places: range) -> list[str]:
    """What is wrong with each of the events that were refused."""
    found = []
    for at in places:
        node, seq = (batch.column(name)[at].as_py() for name in ("node", "seq"))
        log = ProblemLog()
        for _ in batch_rows("", 0, batch.slice(at, 1), log):
            pass
        texts = [f"{problem.field}: expected {problem.expected}, got {problem.got}" for problem in log.problems]
        found.append(f"node {node}, seq {seq}: {'; '.join(texts)}")
    return found


def judge_run(
    run_id: str, slices: Slices, options: AuditOptions, check_run: CheckRun, input_bytes: int
) -> tuple[UnitResult, Sequence[str], dict[tuple[int, int], str]]:
    """The result of a run (without a verdict where events are malformed: these are said), and the own columns of the
    events that violate. `input_bytes`: so large the input is, about.
    """
    with Held(slices) as held:
        verdict = of_tables(run_id, held.coming(), options, check_run, input_bytes)
        if verdict is not None:
            return UnitResult(run_id, (run_id,), (verdict,)), (), {}
        for _ in held.coming():
            pass
        rows = Rows(held, options)
        result = judge_rows(run_id, rows, options, check_run, with_facts=True)
        if rows.problems:
            return UnitResult(run_id, (run_id,)), rows.problems, {}
        wanted = {(v.node, v.seq) for verdict in result.verdicts for v in verdict.violations}
        return result, (), _own(held, wanted)


def _own(held: Held, wanted: set[tuple[int, int]]) -> dict[tuple[int, int], str]:
    found = {}
    for batch in held if wanted else ():
        if batch.schema.get_field_index(CARRIED) < 0:
            break
        numbers = pa.array([seq for _, seq in wanted], batch.column("seq").type)
        some = batch.filter(pc.is_in(batch.column("seq"), numbers))
        columns = (some.column(name).to_pylist() for name in ("node", "seq", CARRIED))
        for node, seq, own in zip(*columns, strict=True):
            if (node, seq) in wanted and own is not None:
                found[node, seq] = own
    return found
