"""A large run whose files are each in order, as columns: batch after batch, merged by the clock.

Of the files it holds a part each. What the run needs to remember grows with its ops; what was sent is let go.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from viewproof.refinement.events.system import System
from viewproof.refinement.flat.columns import LARGE, NotPlain, Reader, Table, Words
from viewproof.refinement.flat.program import FlatRun
from viewproof.refinement.flat.shape import FACTS
from viewproof.refinement.flat.starting import conforms, started
from viewproof.refinement.flat.terms import NULL
from viewproof.refinement.partitions import path_columns
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import open_file
from viewproof.refinement.verdict import RunVerdict

PART_BYTES = 8 << 20
PART_ROWS = 1 << 15


@dataclass(eq=False)
class Part:
    """Some events of a file, those from `at` on not yet taken."""

    words: Words
    items: Words
    clock: Words
    at: int = 0


class Stream:
    """One file's events, read part by part."""

    def __init__(self, file: str, reader: Reader) -> None:
        self.file, self.reader = file, reader
        self.source = self._parts()
        self.parts: deque[Part] = deque()
        self.last = 0
        self.ended = False

    def fill(self) -> None:
        """Read on until there is an event below the last clock read, or the end."""
        while not self.ended and not (self.parts and self.parts[0].clock[self.parts[0].at] < self.last):
            words = next(self.source, None)
            if words is None:
                self.ended = True
                return
            self._add(words)

    def _add(self, words: Words) -> None:
        clock = words[self.reader.system.index["clock"]]
        if not len(clock) or clock[0] < self.last or (clock[1:] < clock[:-1]).any():
            raise NotPlain(f"{self.file}: events that are not in order")
        self.last = int(clock[-1])
        items, self.reader.items, self.reader.item_count = self.reader.items, np.zeros(1 << 12, np.int64), 0
        self.parts.append(Part(words, items, clock))

    def take(self, below: int) -> Iterator[tuple[Words, Words]]:
        """Words and items of the events whose clock is below that; they are taken."""
        while self.parts:
            part = self.parts[0]
            end = int(np.searchsorted(part.clock, below))
            if end > part.at:
                yield part.words[:, part.at : end], part.items
            part.at = max(part.at, end)
            if part.at < len(part.clock):
                return
            self.parts.popleft()

    def _parts(self) -> Iterator[Words]:
        if self.file.endswith(".parquet"):
            with self.reader.opened(self.file, problems := ProblemLog()) as source:
                for name, place in problems.carried.items():
                    self.reader.log.carry(name, place)
                columns = self.reader.known(source.schema_arrow)
                for batch in source.iter_batches(batch_size=PART_ROWS, columns=columns, use_threads=False):
                    yield self.reader.of_table(pa.Table.from_batches([batch]), self.file)
            return
        with open_file(self.file) as stream:
            rest = b""
            while data := stream.read(PART_BYTES):
                whole, newline, after = data.rpartition(b"\n")
                if newline:
                    yield self.reader.of_text(rest + whole + newline, self.file)
                    rest = after
                else:
                    rest += data
            if rest:
                yield self.reader.of_text(rest, self.file)


def batches(files: Sequence[str], system: System, log: ProblemLog) -> Iterator[Table]:
    """The run's events in batches, each after the one before. Raises `NotPlain`."""
    reader = Reader(system, log)
    for file in files:
        if path_columns(file):
            raise NotPlain(f"{file}: columns in the path")
    streams = [Stream(file, reader) for file in files]
    for stream in streams:
        stream.fill()
        if not stream.parts:
            raise NotPlain(f"{stream.file}: no events")
    lists = [at for at, column in enumerate(system.table) if column.kind == "strings"]
    while True:
        for stream in streams:
            stream.fill()
        open_ends = [stream.last for stream in streams if not stream.ended]
        below = min(open_ends) if open_ends else 1 << 62
        taken = [pair for stream in streams for pair in stream.take(below)]
        if taken:
            yield _joined(taken, lists, system, reader)
        elif not open_ends:
            return


def _joined(taken: list[tuple[Words, Words]], lists: list[int], system: System, reader: Reader) -> Table:
    words = np.concatenate([some for some, _ in taken], axis=1)
    offset = row = 0
    for some, items in taken:
        end = row + some.shape[1]
        for number, at in enumerate(lists):
            for place in (at, len(system.table) + number):
                cells = words[place, row:end]
                cells[cells != NULL] += offset
        offset, row = offset + len(items), end
    for group in system.profile.numbered:
        for name in group:
            cells = words[system.index[name]]
            if (cells >= LARGE).any() or ((cells < 0) & (cells != NULL)).any():
                raise NotPlain(f"{name} is to be numbered, and the run is streamed")
    return Table(system, words, np.concatenate([items for _, items in taken]), reader.texts)


def judge(
    files: Sequence[str], run_id: str, system: System, log: ProblemLog, spent: Callable[[str], None], *, large: bool
) -> RunVerdict:
    """The verdict on a run that plainly conforms; its kind is compiled if it is not, where the input is `large`.

    Raises `NotPlain`.
    """
    began = time.monotonic()
    run: FlatRun | None = None
    first = {}
    try:
        for table in batches(files, system, log):
            order = np.argsort(table.column("clock") << 7 | table.column("node"), kind="stable")
            if int(table.column("node").max()) >= 1 << 7 or int(table.column("clock").max()) >= 1 << 54:
                raise NotPlain("a clock or node out of all bounds")
            spent("read")
            if run is None:
                first = table.record(int(order[0]))
                run = started(system, first, large)
            ids = table.column("run")
            if (ids != ids[0]).any() or table.texts.text(int(ids[0])) != run_id:
                raise NotPlain(f"more runs than {run_id}")
            if not run.take(table.addresses(), table.facts(FACTS), np.ascontiguousarray(order), 0, len(order)):
                raise NotPlain(f"{run_id}: event {run.events + 1}: {run.place}")
            run.forget_sent()
            spent("check")
        if run is None:
            raise NotPlain(f"{run_id}: no events")
        return conforms(run, run_id, first, began)
    finally:
        if run is not None:
            run.__exit__()
