"""Breadth-first search over packed rows."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from viewproof.spec.engines import interp
from viewproof.spec.engines.explicit import replay
from viewproof.spec.engines.explicit.build import Built, build
from viewproof.spec.engines.explicit.checkpoint import Checkpoint
from viewproof.spec.engines.explicit.emit import Program, emit
from viewproof.spec.engines.explicit.kernel import Part, Room
from viewproof.spec.engines.explicit.memory import Frontier, Log, Memory, Table, available_bytes
from viewproof.spec.engines.explicit.result import Result, coverage
from viewproof.spec.engines.explicit.rounds import (
    BROKEN,
    DEADLOCK_AT,
    DEADLOCKS,
    DETAIL,
    EVENT,
    EVENT_AT,
    EXPANDED,
    INSTANCE,
    LIMIT,
    MADE,
    PREDICATE_RANGE,
    RANGE,
    SITE,
    Chunk,
    M,
    Rounds,
    working,
)
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.expr import PredicateIR

if TYPE_CHECKING:
    from viewproof.spec.engines.explicit.reach import Edges

STATES_MAX = (1 << 32) - 1
NUMBERS = ("level", "at", "first", "first_of_level", "distinct", "depth", "deadlocks", "deadlock")
"""Numbers of a search that are saved as they are."""


@dataclass(frozen=True)
class Progress:
    """Where the search stands."""

    level: int
    distinct: int
    generated: int
    queue: int
    seconds: float
    shrinking: float = 1.0
    """Size of the last whole level over that of the one before."""

    @property
    def states_per_second(self) -> float:
        """Distinct states a second so far."""
        return self.distinct / self.seconds if self.seconds else 0.0

    @property
    def to_come(self) -> int | None:
        """Guess of the states still to be expanded, if levels go on shrinking as the last did. None while they grow."""
        return int(self.queue / (1.0 - self.shrinking)) if self.shrinking < 1.0 else None


@dataclass(frozen=True)
class Options:
    """How to search: bounds, threads, and where and how often (seconds) to save what was reached."""

    max_states: int | None = None
    max_memory_bytes: int | None = None
    workers: int = 1
    checkpoint: Path | None = None
    checkpoint_seconds: float = 600.0
    resume: Path | None = None
    symmetry: tuple[str, ...] = ()


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def explore(
    spec: Spec,
    *,
    max_states: int | None = None,
    max_memory_bytes: int | None = None,
    invariants: Iterable[str] | None = None,
    progress: Callable[[Progress], None] | None = None,
    notify: Callable[[str], None] = _say,
    workers: int | None = None,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 600.0,
    resume: Path | None = None,
    symmetry: Iterable[str] = (),
    reduce: bool = False,
) -> Result:
    """Search the bounded instance of `spec` breadth first; stop at the first broken invariant or bound.

    `invariants` limits the ids that are checked; `max_memory_bytes` (default: 60 % of what is available) bounds the
    search's own arrays, and rows and parents go to files ($VSR_SPILL, else the system's directory for such) when it
    is near; `workers` (default: the cores) never changes the result. With `checkpoint` the search is saved there
    every `checkpoint_seconds` and on an interrupt; `resume` goes on from such a directory, and saves to it.
    `symmetry` names a sort whose members are exchangeable; `reduce` turns partial-order reduction on. A step that
    leaves a declared range raises `OutOfRangeError`; a disagreement with the interpreter raises `EngineError`. Neither
    is a verdict.
    """
    if checkpoint is not None and resume is None:
        Checkpoint(checkpoint).try_writing()
    program = emit(spec, invariants, reduce=reduce)
    built = build(program, notify)
    if built.compiled > 1:
        notify(f"compiled in {built.seconds:.1f} s")
    options = Options(
        max_states, max_memory_bytes, workers or os.cpu_count() or 1, checkpoint or resume, checkpoint_seconds, resume,
        tuple(symmetry),
    )  # fmt: skip
    search = Search(program, built, options)
    try:
        return search.run(progress)
    finally:
        search.close()


class Search:
    """State of one search."""

    def __init__(self, program: Program, built: Built, options: Options) -> None:
        self.program = program
        self.built = built
        self.options = options
        words = program.layout.words + 1
        bound = options.max_memory_bytes
        self.memory = Memory(int(available_bytes() * 0.6) if bound is None else bound)
        self.table = Table(self.memory, built.functions)
        self.log = Log(self.memory)
        self.now, self.following = Frontier(self.memory, words), Frontier(self.memory, words)
        self.memory.spillers = [lambda: self.following.spill(), self.log.spill, lambda: self.now.spill()]
        self.rounds = Rounds(program, built, options.workers, options.symmetry)
        self.most = STATES_MAX if options.max_states is None else options.max_states
        self.level, self.at, self.first, self.distinct, self.depth, self.deadlocks = 0, 0, 0, 0, 0, 0
        self.counts = np.zeros((self.rounds.tables.actions, 2), np.int64)
        self.blocked = np.zeros(self.rounds.tables.guards, np.int64)
        self.witnessed = np.full(max(1, len(program.witnesses)), -1, np.int64)
        self.result = Result(program.spec.name, row_bits=program.layout.bits, compile_seconds=built.seconds)
        checked = {p.name for p in (*program.state_invariants, *program.step_invariants)}
        self.result.invariants = [p.id for p in program.spec.invariants if p.id in checked]
        self.result.orders = self.rounds.tables.orders
        self.result.free = program.free
        self.result.symmetry = list(options.symmetry)
        self.result.workers = self.rounds.workers
        self.started = self.saved = time.monotonic()
        self.before = 0.0
        self.interrupted = False
        self.between = True
        self.edges: Edges | None = None
        self.deadlock = -1

    def close(self) -> None:
        """Release threads and files."""
        self.rounds.close()
        self.memory.close()

    @property
    def seconds(self) -> float:
        """Time spent searching, earlier runs included."""
        return self.before + time.monotonic() - self.started

    @property
    def generated(self) -> int:
        """States generated, the initial one included."""
        return 1 + int(self.counts[:, 0].sum())

    def run(self, progress: Callable[[Progress], None] | None = None) -> Result:
        """Search until a verdict."""
        if self.options.resume is not None:
            self._restore(*Checkpoint(self.options.resume).load(self._key()))
        elif not self._start():
            return self._finish()
        self.started = self.saved = time.monotonic()
        with _signals(self):
            try:
                while self.now.segments and self._level(progress):
                    self._next_level()
                if not self.now.segments:
                    self.result.verdict = "holds"
            except KeyboardInterrupt:
                self._interrupt()
        return self._finish()

    def _next_level(self) -> None:
        self.result.levels.append(self.distinct - self.following.count - self.first_of_level)
        self.first_of_level = self.first = self.distinct - self.following.count
        self.now, self.following = self.following, self.now
        self.following.count = 0
        self.level += 1
        self.at = 0

    first_of_level = 0

    def _start(self) -> bool:
        """Take the initial state, judged by the interpreter; False if it breaks an invariant."""
        spec, state = self.program.spec, State.initial()
        self.distinct = 1
        layout, k = self.program.layout, self.rounds.tables
        rows, _ = self.now.room(1)
        parents, insts, _ = self.log.room(1)
        parents[0] = insts[0] = 0
        work, hashes = working(self.program), k.hashes()
        work.s[:] = layout.row(state)
        part = Part(rows=rows, words=layout.words + 1, begin=0, first=0)
        self.built.functions["pack"](work, part, k.packing, hashes)
        if k.orders > 1:
            rows[0, 0] = self.built.functions["canonical"](work, hashes)
        self.table.fill(rows[0, :1].copy())
        if self.edges is not None:
            self.edges.states(rows, 0, 1)
        for n, witness in enumerate(self.program.witnesses):
            if interp.holds(spec, next(w for w in spec.witnesses if w.id == witness.name), state):
                self.witnessed[n] = 0
        for predicate in self.program.state_invariants:
            invariant = next(i for i in spec.invariants if i.id == predicate.name)
            if not interp.holds(spec, invariant, state):
                self._violated(predicate, [])
                return False
        return True

    def _level(self, progress: Callable[[Progress], None] | None) -> bool:
        """Expand one level; False when the search is over."""
        while self.now.segments:
            rows, count = self.now.first()
            while self.at < count:
                if not self._round(rows, count):
                    return False
                if progress is not None:
                    progress(self._standing())
                if self.interrupted:
                    raise KeyboardInterrupt
                self._save_if_due()
            self.now.drop()
            self.first += count
            self.at = 0
        return True

    def _standing(self) -> Progress:
        levels = self.result.levels[-2:]
        shrinking = levels[1] / levels[0] if len(levels) == 2 else 1.0
        return Progress(self.level, self.distinct, self.generated, self.queue, self.seconds, shrinking)

    @property
    def queue(self) -> int:
        """States not expanded yet."""
        return sum(s.count for s in self.now.segments) - self.at + self.following.count

    def _round(self, rows: Any, count: int) -> bool:
        """Expand, insert and keep the next states; False when the search is over."""
        self.between = False
        used = self.rounds.expand(rows, self.at, count)
        total = sum(int(c.ctl[M]) for c in used)
        roomy = self.table.reserve(self.distinct + total)
        roomy = roomy and self.memory.fits(total * (8 * self.now.words + 6) + self.memory.bound // 8)
        if not roomy or self.distinct + total > STATES_MAX:
            return self._stop(f"memory bound of {self.memory.bound / 1e6:.0f} MB reached")
        new = self.rounds.insert(used, self.table.slots)
        kept = min(sum(new), self.most - self.distinct)
        following, row = self.following.room(kept)
        parents, insts, log = self.log.room(kept)
        jobs, before = [], 0
        for chunk, fresh in zip(used, new, strict=True):
            chunk.tally.wit[:] = self.witnessed
            at = min(before, kept)
            goal = Room(
                following=following, row=row + at, parents=parents, insts=insts, log=log + at, allowed=kept - at,
                depth=self.level + 1,
            )  # fmt: skip
            jobs.append(lambda chunk=chunk, goal=goal: chunk.keep(goal, self.first))
            before += fresh
        self.rounds.each(jobs)  # type: ignore[arg-type]
        if self.edges is not None and not self.edges.round(used, following, row, kept):
            return self._stop(f"memory bound of {self.memory.bound / 1e6:.0f} MB reached by the edges")
        return self._merge(used)

    def _merge(self, used: list[Chunk]) -> bool:
        """Count what the chunks did, in order, up to the first event."""
        for chunk in used:
            ctl = chunk.ctl
            self.counts += chunk.tally.counts
            self.blocked += chunk.tally.blk
            self.deadlocks += int(ctl[DEADLOCKS])
            if ctl[DEADLOCKS] and self.deadlock < 0:
                self.deadlock = self.first + chunk.begin + int(ctl[DEADLOCK_AT])
            self.distinct += int(ctl[MADE])
            fresh = (self.witnessed < 0) & (chunk.tally.wit >= 0)
            self.witnessed[fresh] = chunk.tally.wit[fresh]
            if ctl[MADE]:
                self.depth = self.level + 1
            if ctl[EVENT]:
                return self._event(chunk)
            self.at += int(ctl[EXPANDED])
        self.between = True
        return True

    def _event(self, chunk: Chunk) -> bool:
        ctl, kind = chunk.ctl, int(chunk.ctl[EVENT])
        if kind == LIMIT:
            self.at = chunk.begin + int(chunk.out.of[ctl[EVENT_AT]])
            return self._stop(f"bound of {self.most} states reached")
        if kind == RANGE:
            parent, instance = self.first + chunk.begin + int(ctl[EXPANDED]) - 1, int(ctl[INSTANCE])
            replay.raise_range_error(self.program, self.log.path(parent), instance, int(ctl[SITE]), None)
        code, at = int(ctl[DETAIL]), int(ctl[EVENT_AT])
        parent, instance = self.first + chunk.begin + int(chunk.out.of[at]), int(chunk.out.wi[at])
        if code < 0:
            replay.raise_range_error(self.program, self.log.path(parent), instance, 0, code)
        assert kind != PREDICATE_RANGE
        predicates = self.program.state_invariants if kind == BROKEN else self.program.step_invariants
        self._violated(predicates[code - 1], [*self.log.path(parent), instance])
        return False

    def _violated(self, predicate: PredicateIR, instances: list[int]) -> None:
        self.result.verdict = "violated"
        self.result.broken, self.result.title = predicate.name, predicate.title
        self.result.behaviour = replay.behaviour(self.program, instances)
        replay.confirm_broken(self.program, predicate.name, self.result.behaviour)

    def _stop(self, reason: str) -> bool:
        self.result.reason = f"{reason}: {self.level} levels searched completely"
        self.result.queue = self.queue
        return False

    def _interrupt(self) -> None:
        """Say where the search stands, and save it if a directory was given."""
        folder = self.options.checkpoint
        if folder is None or not self.between:
            self._stop("interrupted, not saved; with a directory for checkpoints a search can go on later")
            return
        self._save(folder)
        self._stop(f"interrupted; resume from {folder}")

    def _save_if_due(self) -> None:
        folder = self.options.checkpoint
        if folder is not None and time.monotonic() - self.saved >= self.options.checkpoint_seconds:
            self._save(folder)
            self.saved = time.monotonic()

    def _key(self) -> str:
        """What a saved search must agree on."""
        return "+".join((self.program.key, *self.options.symmetry))

    def _save(self, folder: Path) -> None:
        """Write all that the search needs to go on."""
        slots = self.table.slots
        frontiers = {name: getattr(self, name) for name in ("now", "following")}
        numbers: dict[str, Any] = {
            "model": self.program.spec.name, "seconds": self.seconds, "levels": self.result.levels,
            "rows": {name: [s.count for s in frontier.segments] for name, frontier in frontiers.items()},
            "counts": self.counts.tolist(), "blocked": self.blocked.tolist(), "witnessed": self.witnessed.tolist(),
            **{name: getattr(self, name) for name in NUMBERS},
        }  # fmt: skip
        parents, insts = self.log.filled_parts(0), self.log.filled_parts(1)
        rows = {name: frontier.filled_rows() for name, frontier in frontiers.items()}
        Checkpoint(folder).save(
            self._key(), numbers, {"table": [slots[slots != 0]], "parents": parents, "insts": insts, **rows}
        )

    def _restore(self, numbers: dict[str, Any], arrays: dict[str, Any]) -> None:
        """Put a search that has not begun where the saved one stopped."""
        self.table.fill(arrays["table"].view(np.int64))
        distinct = int(numbers["distinct"])
        parents, insts, first = self.log.room(distinct)
        assert first == 0
        parents[:distinct] = arrays["parents"].view(np.uint32)
        insts[:distinct] = arrays["insts"].view(np.uint16)
        for name in ("now", "following"):
            frontier: Frontier = getattr(self, name)
            frontier.fill(arrays[name].view(np.int64).reshape(-1, frontier.words), numbers["rows"][name])
        for name in NUMBERS:
            setattr(self, name, numbers[name])
        self.counts[:] = numbers["counts"]
        self.blocked[:] = numbers["blocked"]
        self.witnessed[:] = numbers["witnessed"]
        self.result.levels = list(numbers["levels"])
        self.before = float(numbers["seconds"])

    def _finish(self) -> Result:
        result = self.result
        result.seconds = self.seconds
        result.distinct, result.generated = self.distinct, self.generated
        result.depth, result.deadlocks = self.depth, self.deadlocks
        if self.deadlock >= 0:
            result.deadlock = replay.behaviour(self.program, self.log.path(self.deadlock))
        result.memory_bytes, result.spilled_bytes = self.memory.peak, self.memory.spilled
        for n, witness in enumerate(self.program.witnesses):
            if self.witnessed[n] >= 0:
                result.witnessed[witness.name] = int(self.witnessed[n])
            else:
                result.unwitnessed[witness.name] = witness.title
        result.coverage = coverage([f.ir for f in self.program.families], self.counts, self.blocked)
        return result


@contextmanager
def _signals(search: Search) -> Iterator[None]:
    """The first Ctrl-C ends the search after its round; the second ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(*_: Any) -> None:
        if search.interrupted:
            raise KeyboardInterrupt
        search.interrupted = True

    previous = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
