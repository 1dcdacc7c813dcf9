"""One run whose events come as tables of Arrow, each after the one before, in replay order, as Spark gives them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from viewproof.refinement import parquet
from viewproof.refinement.events.system import System
from viewproof.refinement.flat.columns import Reader, Table
from viewproof.refinement.flat.dictionary import Generations, NotPlain, Words
from viewproof.refinement.flat.shape import vocabulary
from viewproof.refinement.flat.starting import conforms, started
from viewproof.refinement.flat.streaming import check_streamed, judge_batches
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.verdict import RunVerdict


def judge_tables(run_id: str, tables: Iterable[pa.Table], system: System, log: ProblemLog, large: bool) -> RunVerdict:
    """The verdict on a run that plainly conforms; its kind is compiled if it is not, where the input is `large`.

    Tables have the columns of a trace by their names; others are left alone. One table is taken as it is, several are
    streamed: what is old is let go. Raises `NotPlain`.
    """
    began, left = time.monotonic(), (_of_trace(table, run_id, system) for table in tables if table.num_rows)
    first, second = next(left, None), next(left, None)
    if first is None:
        raise NotPlain(f"{run_id}: no events")
    if second is not None:
        with Generations(list(vocabulary(system))) as texts:
            batches = _streamed(chain((first, second), left), run_id, system, log, texts)
            return judge_batches(run_id, system, texts, batches, large=large)
    reader = Reader(system, log)
    reader.parts.append(reader.of_table(first, run_id))
    table = reader.table()
    order = _in_order(table, run_id, -1)
    record = table.record(0)
    run_codes = table.column("run")
    if table.texts.text(int(run_codes[0])) != run_id or (run_codes != run_codes[0]).any():
        raise NotPlain(f"more runs than {run_id}")
    with started(system, record, large) as run:
        if not run.take(table.addresses(), table.facts(), order, 0, len(order)):
            raise NotPlain(f"{run_id}: event {run.events + 1} of {len(order)}: {run.place}")
        return conforms(run, run_id, record, began)


def _of_trace(rows: pa.Table, run_id: str, system: System) -> pa.Table:
    """The columns that are those of a trace. Raises `NotPlain` where one is missing, there twice or of another type."""
    problems = ProblemLog()
    if not parquet.check_columns(run_id, rows.schema, problems):
        raise NotPlain(str(problems.problems[0]))
    return rows.select([name for name in rows.column_names if name in system.index])


def _streamed(
    tables: Iterable[pa.Table], run_id: str, system: System, log: ProblemLog, texts: Generations
) -> Iterator[tuple[Table, Words]]:
    last = -1
    for rows in tables:
        part = Reader(system, log).of_table(rows, run_id)
        check_streamed(part)
        part.recode(texts.adopt(part.texts))
        table = Table(system, [part], texts)
        order = _in_order(table, run_id, last)
        last = _key(table)[-1]
        yield table, order


def _key(table: Table) -> Words:
    key: Words = table.column("clock") << 7 | table.column("node")
    return key


def _in_order(table: Table, run_id: str, last: int) -> Words:
    """The rows of a table in replay order, which they are in, and after an event with that key."""
    if int(table.column("node").max()) >= 1 << 7 or int(table.column("clock").max()) >= 1 << 54:
        raise NotPlain(f"{run_id}: a clock or node out of all bounds")
    key = _key(table)
    if key[0] < last or (key[1:] < key[:-1]).any():
        raise NotPlain(f"{run_id}: events that are not in order")
    return np.arange(table.rows)
