"""A round of the search: chunks of the frontier expanded, inserted and kept, each pass over several threads at once.

Whatever the number of threads, the result is that of taking the states one after the other: fingerprints of a region
of the table are inserted by one thread in the order of the states, and new states are numbered in that order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewproof.spec.engines.explicit.build import Built
from viewproof.spec.engines.explicit.emit import Program
from viewproof.spec.engines.explicit.kernel import Asked, Hashes, Packing, Part, Room, Successors, Tally, Work
from viewproof.spec.engines.explicit.memory import REGIONS
from viewproof.spec.engines.explicit.result import EngineError
from viewproof.spec.engines.explicit.symmetry import permuted, sort_of
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import PredicateIR

CHUNK_STATES = 1024
SUCCESSORS_MEAN = 16
"""Successors a state for which a chunk has room; where there are more, it ends early."""
M, N, SITE, INSTANCE, DEADLOCKS, STEP, STEP_AT, EXPANDED, MADE, EVENT, DETAIL, EVENT_AT, DEADLOCK_AT = range(13)
CONTROL_WORDS = 13
LIMIT, BROKEN, PREDICATE_RANGE, STEP_BROKEN, RANGE = 1, 2, 3, 4, 5


class Tables:
    """Arrays that all chunks read: layout, hashes, which predicates an action can change."""

    def __init__(self, program: Program, symmetry: Iterable[str] = ()) -> None:
        layout = program.layout
        if program.instances >= 1 << 16:
            raise SpecError(f"explicit: {program.instances} action instances; at most {(1 << 16) - 1} are supported")
        self.zobrist = _hashes(program, tuple(symmetry)).view(np.int64)
        self.orders = self.zobrist.shape[0]
        self.packing = Packing(
            word=layout.word.astype(np.int64), shift=layout.shift.astype(np.int64), mask=layout.mask.astype(np.int64)
        )
        act_of = np.zeros(max(1, program.instances), np.uint32)
        for number, family in enumerate(program.families):
            act_of[family.first : family.first + family.count] = number
        self.asked = Asked(
            act_of=act_of,
            step_rel=_relevance(program, program.step_invariants),
            inv_rel=_relevance(program, program.state_invariants),
            wit_rel=_relevance(program, program.witnesses),
            all_steps=(1 << len(program.step_invariants)) - 1,
        )
        self.guards = sum(len(f.ir.guards) for f in program.families) or 1
        self.actions = max(1, len(program.families))

    def hashes(self) -> Hashes:
        """The hash tables, with room for the fingerprints of one state."""
        bases = np.zeros(self.orders, np.int64)
        return Hashes(zobrist=self.zobrist, width=self.zobrist.shape[2], orders=self.orders, bases=bases)

    def tally(self, witnesses: int) -> Tally:
        """Counts at zero."""
        return Tally(
            counts=np.zeros((self.actions, 2), np.int64),
            wit=np.zeros(max(1, witnesses), np.int64),
            blk=np.zeros(self.guards, np.int64),
            ctl=np.zeros(CONTROL_WORDS, np.int64),
        )


def working(program: Program) -> Work:
    """Two working rows."""
    cells = program.layout.cells
    return Work(s=np.zeros(max(1, cells), np.uint8), t=np.zeros(max(1, cells), np.uint8), cells=cells)


def successors(size: int, writes: int, of: int, tested: int) -> Successors:
    """Buffers for so many successors and writes; of these `of` know their row and `tested` their fingerprint."""
    return Successors(
        wo=np.empty(writes, np.uint16),
        wv=np.empty(writes, np.uint8),
        we=np.empty(size, np.uint32),
        wi=np.empty(size, np.uint32),
        of=np.empty(of, np.uint32),
        fps=np.empty(tested, np.int64),
        fresh=np.empty(tested, np.uint8),
    )


def _hashes(program: Program, symmetry: tuple[str, ...]) -> NDArray[np.uint64]:
    """The layout's hash table, and one more per permutation under which states are one."""
    if not symmetry:
        return program.layout.zobrist()[np.newaxis]
    if len(symmetry) > 1:
        raise SpecError(f"symmetry over one sort at a time, not over {', '.join(symmetry)}")
    return np.ascontiguousarray(permuted(program.layout, program.spec, sort_of(program.spec, symmetry[0])))


def _relevance(program: Program, predicates: list[PredicateIR]) -> NDArray[np.int64]:
    """Per action the bit set of the predicates that read something the action writes."""
    masks = [
        sum(1 << n for n, p in enumerate(predicates) if p.reads() & family.ir.writes()) for family in program.families
    ]
    return np.array(masks or [0], np.int64)


class Chunk:
    """Buffers for the successors of some states, and what is counted over them."""

    def __init__(self, program: Program, tables: Tables, built: Built) -> None:
        self.tables = tables
        self.functions = built.functions
        room = SUCCESSORS_MEAN * CHUNK_STATES
        mean = program.writes_max // max(1, program.instances) + 1
        self.limits = (room, room * mean)
        size, writes = room + program.instances + 1, room * mean + program.writes_max + 1
        self.out = successors(size, writes, size, size)
        self.work, self.hashes = working(program), tables.hashes()
        self.tally = tables.tally(len(program.witnesses))
        words = program.layout.words + 1
        self.part = Part(rows=np.zeros((1, words), np.int64), words=words, begin=0, first=0)
        self.end = 0

    @property
    def ctl(self) -> NDArray[np.int64]:
        """The control words."""
        words: NDArray[np.int64] = self.tally.ctl
        return words

    @property
    def begin(self) -> int:
        """First row of the part."""
        return int(self.part.begin)

    def take(self, rows: NDArray[np.int64], begin: int, end: int) -> None:
        """Work on these rows next."""
        self.part.rows, self.part.begin, self.end = rows, begin, end

    def expand(self, end: int | None = None) -> None:
        """List the successors; with `end`, only those of the states before it."""
        self.tally.blk[:] = 0
        last = self.end if end is None else end
        self.functions["expand_chunk"](
            self.part, last, self.work, self.hashes, self.tables.asked, *self.limits, self.out, self.tally
        )

    def insert(self, slots: NDArray[np.int64], first: int, last: int) -> int:
        """Insert the fingerprints of some regions; how many are new."""
        region = slots.shape[0] // REGIONS
        count = int(self.ctl[M])
        return self.functions["insert_chunk"](slots, region, self.out.fps, count, first, last, self.out.fresh)

    def keep(self, goal: Room, first: int) -> None:
        """Store the new states at their places and ask the invariants; the rows read are numbered from `first`."""
        self.tally.counts[:] = 0
        self.part.first = first
        self.functions["keep_chunk"](
            self.part, self.work, self.out, self.tables.asked, self.tables.packing, goal, self.tally
        )
        if self.ctl[EVENT] in (LIMIT, BROKEN, PREDICATE_RANGE):
            kept = self.ctl[MADE : EVENT_AT + 1].copy()
            self.expand(self.begin + int(self.out.of[self.ctl[EVENT_AT]]) + 1)
            self.ctl[MADE : EVENT_AT + 1] = kept
        elif self.ctl[EVENT] == 0 and self.ctl[SITE]:
            self.ctl[EVENT] = RANGE


class Rounds:
    """The chunks, and the threads that work on them."""

    def __init__(self, program: Program, built: Built, workers: int, symmetry: Iterable[str] = ()) -> None:
        self.workers = max(1, min(workers, REGIONS))
        self.tables = Tables(program, symmetry)
        many = 1 if self.workers == 1 else 8 * self.workers
        self.chunks = [Chunk(program, self.tables, built) for _ in range(many)]
        self.states = CHUNK_STATES
        self._pool = ThreadPoolExecutor(self.workers - 1) if self.workers > 1 else None

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def each(self, jobs: list[Callable[[], Any]]) -> None:
        """Run the jobs, over the threads if there are several."""
        if self._pool is None or len(jobs) < 2:
            for job in jobs:
                job()
            return
        numbers = itertools.count()

        def work() -> None:
            while (n := next(numbers)) < len(jobs):
                jobs[n]()

        waiting = [self._pool.submit(work) for _ in range(min(self.workers, len(jobs)) - 1)]
        work()
        for other in waiting:
            other.result()

    def expand(self, rows: NDArray[np.int64], at: int, end: int) -> list[Chunk]:
        """Expand the next rows; the chunks that count, in order: the last may have stopped before its end."""
        used: list[Chunk] = []
        for chunk in self.chunks:
            if at >= end:
                break
            chunk.take(rows, at, min(end, at + self.states))
            at = chunk.end
            used.append(chunk)
        self.each([chunk.expand for chunk in used])
        for n, chunk in enumerate(used):
            if chunk.ctl[EXPANDED] < chunk.end - chunk.begin or chunk.ctl[STEP] or chunk.ctl[SITE]:
                if not chunk.ctl[STEP] and not chunk.ctl[SITE]:
                    self.states = max(16, self.states // 2)
                return used[: n + 1]
        return used

    def insert(self, used: list[Chunk], slots: NDArray[np.int64]) -> list[int]:
        """Insert all fingerprints; per chunk how many are new."""
        total = sum(int(c.ctl[M]) for c in used)
        owners = self.workers if total > 2 * CHUNK_STATES else 1
        cuts = [REGIONS * n // owners for n in range(owners + 1)]
        found = np.zeros((owners, len(used)), np.int64)

        def own(n: int) -> None:
            for c, chunk in enumerate(used):
                found[n, c] = chunk.insert(slots, cuts[n], cuts[n + 1] - 1)

        self.each([lambda n=n: own(n) for n in range(owners)])  # type: ignore[misc]
        if found.min() < 0:
            raise EngineError("a region of the fingerprint table is full")
        return [int(x) for x in found.sum(axis=0)]
