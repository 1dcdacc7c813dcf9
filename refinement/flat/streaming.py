"""A large run whose files are each in order, as columns: batch after batch, merged by the clock.

Files are read part by part, ahead of the replay and by other threads where there are some; of each only a few parts
are held. Whatever the run needs to remember is let go when it is old: of windows the first elements, of texts those
that did not come for long.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from viewproof.refinement.events.system import System
from viewproof.refinement.flat.ahead import Ahead
from viewproof.refinement.flat.columns import LARGE, Part, Reader, Table
from viewproof.refinement.flat.dictionary import PADDING, TEXTS_MIN, Generations, NotPlain, Words
from viewproof.refinement.flat.program import FlatRun
from viewproof.refinement.flat.shape import PART, vocabulary
from viewproof.refinement.flat.starting import conforms, started
from viewproof.refinement.flat.terms import NULL
from viewproof.refinement.partitions import path_columns
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import open_file
from viewproof.refinement.verdict import RunVerdict

PART_BYTES = 8 << 20
PART_ROWS = 1 << 15
AHEAD = 3
"""Parts of a file that are read, or being read, and not begun by the replay."""


@dataclass(frozen=True)
class Hands:
    """For one large run: how many threads read and replay it, and who is told how far it is: how many events plainly
    conform (`said`), or were read for the replay that goes row by row (`seen`).
    """

    threads: int = 1
    said: Callable[[int], None] = lambda events: None
    seen: Callable[[int], None] = lambda events: None


ONE = Hands()


@dataclass(eq=False)
class Begun:
    """A part whose events from `at` on are not yet taken."""

    part: Part
    clock: Words
    at: int = 0


class Stream:
    """One file's events, read part by part, some ahead."""

    def __init__(self, file: str, system: System, ahead: Ahead) -> None:
        self.file, self.system, self.ahead = file, system, ahead
        self.problems = ProblemLog()
        self.source = self._raw()
        self.reading = threading.Lock()
        self.read: dict[int, Part | None] = {}
        self.begun = self.given = self.taken = 0
        self.parts: deque[Begun] = deque()
        self.last = 0
        self.ended = False
        self.texts = TEXTS_MIN

    def order(self) -> None:
        """Have parts read ahead."""
        while not self.ended and self.given < self.taken + AHEAD:
            self.given += 1
            self.ahead.put(self._read_one)

    def _read_one(self) -> None:
        with self.reading:
            number, raw = self.begun, next(self.source, None)
            self.begun += 1
        self.read[number] = None if raw is None else self._part(raw)

    def _part(self, raw: Any) -> Part:
        reader = Reader(self.system, self.problems, self.texts)
        part = reader.of_text(raw, self.file) if isinstance(raw, bytes) else reader.of_table(raw, self.file)
        self.texts = int(part.texts.used[0]) * 5 // 4
        return part

    def fill(self, texts: Generations) -> None:
        """Read on until there is an event below the last clock read, or the end."""
        while not self.ended and not (self.parts and self.parts[0].clock[self.parts[0].at] < self.last):
            self.order()
            self.ahead.wait(lambda: self.taken in self.read)
            part = self.read.pop(self.taken)
            self.taken += 1
            if part is None:
                self.ended = True
                return
            self.order()
            part.recode(texts.adopt(part.texts))
            self._add(part)

    def _add(self, part: Part) -> None:
        clock = part.column("clock")
        if not len(clock) or clock[0] < self.last or (clock[1:] < clock[:-1]).any():
            raise NotPlain(f"{self.file}: events that are not in order")
        if int(part.column("node").max()) >= 1 << 7 or int(clock[-1]) >= 1 << 54:
            raise NotPlain(f"{self.file}: a clock or node out of all bounds")
        check_streamed(part)
        self.last = int(clock[-1])
        self.parts.append(Begun(part, clock))

    def take(self, below: int) -> Iterator[tuple[Part, int, int]]:
        """Parts with the first and the end of the events whose clock is below that; they are taken."""
        while self.parts:
            begun = self.parts[0]
            end = int(np.searchsorted(begun.clock, below))
            if end > begun.at:
                yield begun.part, begun.at, end
            begun.at = max(begun.at, end)
            if begun.at < len(begun.clock):
                return
            self.parts.popleft()

    def _raw(self) -> Iterator[Any]:
        """Whole lines, or batches of a table."""
        if self.file.endswith(".parquet"):
            reader = Reader(self.system, self.problems)
            with reader.opened(self.file, self.problems) as source:
                columns = reader.known(source.schema_arrow)
                for group in range(source.num_row_groups):  # over several it holds what it read until the last
                    some = source.iter_batches(PART_ROWS, row_groups=[group], columns=columns, use_threads=False)
                    for batch in some:
                        yield pa.Table.from_batches([batch])
            return
        with open_file(self.file) as stream:
            rest = b""
            while data := stream.read(PART_BYTES):
                whole, newline, after = data.rpartition(b"\n")
                if newline:
                    yield b"".join((rest, whole, newline, PADDING))
                    rest = after
                else:
                    rest += data
            if rest:
                yield rest + b"\n" + PADDING


def batches(
    files: Sequence[str], system: System, log: ProblemLog, texts: Generations, threads: int
) -> Iterator[tuple[Table, Words]]:
    """The run's events in batches, each after the one before, with the order of its rows. Raises `NotPlain`."""
    for file in files:
        if path_columns(file):
            raise NotPlain(f"{file}: columns in the path")
    with Ahead(threads - 1) as ahead:
        streams = [Stream(file, system, ahead) for file in files]
        for stream in streams:
            stream.order()
        for stream in streams:
            stream.fill(texts)
            if not stream.parts:
                raise NotPlain(f"{stream.file}: no events")
        while True:
            for stream in streams:
                stream.fill(texts)
            open_ends = [stream.last for stream in streams if not stream.ended]
            below = min(open_ends) if open_ends else 1 << 62
            taken = [some for stream in streams for some in stream.take(below)]
            if taken:
                yield _merged(taken, system, texts)
            elif not open_ends:
                break
    for stream in streams:
        for name, place in stream.problems.carried.items():
            log.carry(name, place)


def _merged(taken: list[tuple[Part, int, int]], system: System, texts: Generations) -> tuple[Table, Words]:
    """Events of several parts as one table, and the order of its rows."""
    keys = [part.column("clock")[first:end] << 7 | part.column("node")[first:end] for part, first, end in taken]
    rows = [np.arange(first, end) + PART * number for number, (_, first, end) in enumerate(taken)]
    order = np.argsort(np.concatenate(keys), kind="stable")
    return Table(system, [part for part, _, _ in taken], texts), np.concatenate(rows)[order]


def judge(
    files: Sequence[str],
    run_id: str,
    system: System,
    log: ProblemLog,
    spent: Callable[[str], None],
    *,
    large: bool,
    hands: Hands,
) -> RunVerdict:
    """The verdict on a run that plainly conforms; its kind is compiled if it is not, where the input is `large`.

    Raises `NotPlain`.
    """
    with Generations(list(vocabulary(system))) as texts:
        found = batches(files, system, log, texts, hands.threads)
        return judge_batches(run_id, system, texts, found, spent, large=large, said=hands.said)


def check_streamed(part: Part) -> None:
    """Numbered columns of a part hold numbers that need none. Raises `NotPlain`."""
    for name in (name for group in part.system.profile.numbered for name in group):
        cells = part.column(name)
        if (cells >= LARGE).any() or ((cells < 0) & (cells != NULL)).any():
            raise NotPlain(f"{name} is to be numbered, and the run is streamed")


def judge_batches(
    run_id: str,
    system: System,
    texts: Generations,
    found: Iterable[tuple[Table, Words]],
    spent: Callable[[str], None] = lambda phase: None,
    *,
    large: bool,
    said: Callable[[int], None] = lambda events: None,
) -> RunVerdict:
    """The same for events that are read: batches, each after the one before, with the order of their rows."""
    began = time.monotonic()
    run: FlatRun | None = None
    first: dict[str, Any] = {}
    code = 0
    with ExitStack() as stack:
        for table, order in found:
            spent("read")
            if run is None:
                first, code = table.record(int(order[0])), int(table.column("run")[0])
                if texts.text(code) != run_id:
                    raise NotPlain(f"more runs than {run_id}")
                run = stack.enter_context(started(system, first, large, streamed=True))
            if any((part.column("run") != code).any() for part in table.parts):
                raise NotPlain(f"more runs than {run_id}")
            if not run.take(table.addresses(), table.facts(), order, 0, len(order)):
                raise NotPlain(f"{run_id}: event {run.events + 1}: {run.place}")
            said(run.events)
            spent("check")
        if run is None:
            raise NotPlain(f"{run_id}: no events")
        if not texts.plain():
            raise NotPlain(f"{run_id}: a text that was let go has come again")
        return conforms(run, run_id, first, began)
