"""Breadth-first search over packed rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec.engines import interp
from spec.engines.explicit import kernel, replay
from spec.engines.explicit.build import Built, Stopwatch, build
from spec.engines.explicit.emit import Program, emit
from spec.engines.explicit.memory import Store, available_bytes
from spec.engines.explicit.result import ActionCoverage, OutOfRangeError, Result
from spec.lang.concrete import State
from spec.lang.definitions import Spec
from spec.lang.expr import PredicateIR

GENERATED, DISTINCT, WAITING, POSITION, MOST, CAPACITY, DEADLOCKS, DEPTH, BAD, INSTANCE = range(10)
DONE, GROW, LIMIT, BROKEN, RANGE = range(5)
BLOCK_STATES = 8192
"""States expanded between two looks at the clock and for an interrupt."""


@dataclass(frozen=True)
class Progress:
    """Where the search stands."""

    level: int
    distinct: int
    generated: int
    queue: int
    seconds: float

    @property
    def states_per_second(self) -> float:
        """Distinct states a second so far."""
        return self.distinct / self.seconds if self.seconds else 0.0


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
    python: bool = False,
) -> Result:
    """Search the bounded instance of `spec` breadth first; stop at the first broken invariant or bound.

    `invariants` limits the ids that are checked; `max_memory_bytes` (default: 60 % of what is available) bounds the
    search's own arrays; `python` runs the emitted source without numba. A step that leaves a declared range raises
    `OutOfRangeError`; a disagreement with the interpreter raises `EngineError`. Neither is a verdict.
    """
    program = emit(spec, invariants)
    built = build(program, python=python)
    bound = max_memory_bytes if max_memory_bytes is not None else int(available_bytes() * 0.6)
    search = Search(program, built, bound, max_states)
    if built.cold:
        notify(f"compiling {spec.name}: {len(spec.actions)} actions, {len(spec.invariants)} invariants …")
    search.warm_up()
    if built.cold:
        notify(f"compiled in {search.result.compile_seconds:.1f} s")
    return search.run(progress)


class Search:
    """State of one search."""

    def __init__(self, program: Program, built: Built, bound: int, max_states: int | None) -> None:
        self.program = program
        self.built = built
        layout = program.layout
        self.store = Store(layout.words + 1, program.instances, bound)
        self.most = max_states if max_states is not None else (1 << 32) - 1
        self.st = np.zeros(10, np.int64)
        self.counts = np.zeros((max(1, len(program.families)), 2), np.int64)
        self.blocked = np.zeros(sum(len(f.ir.guards) for f in program.families) or 1, np.int64)
        self.witnessed = np.full(max(1, len(program.witnesses)), -1, np.int64)
        self.zobrist = layout.zobrist()
        self.fixed = self._fixed_arrays()
        self.result = Result(program.spec.name, row_bits=layout.bits)
        checked = {p.name for p in (*program.state_invariants, *program.step_invariants)}
        self.result.invariants = [p.id for p in program.spec.invariants if p.id in checked]
        self.watch = Stopwatch()

    def _relevance(self, predicates: list[PredicateIR]) -> NDArray[np.int64]:
        """Per action the bit set of the predicates that read something the action writes."""
        masks = [
            sum(1 << n for n, p in enumerate(predicates) if p.reads() & family.ir.writes())
            for family in self.program.families
        ]
        return np.array(masks or [0], np.int64)

    def _fixed_arrays(self) -> tuple[Any, ...]:
        program, layout = self.program, self.program.layout
        act_of = np.zeros(max(1, program.instances), np.int32)
        for number, family in enumerate(program.families):
            act_of[family.first : family.first + family.count] = number
        return (
            self.zobrist, layout.word, layout.shift, layout.mask, act_of,
            self._relevance(program.step_invariants),
            self._relevance(program.state_invariants),
            self._relevance(program.witnesses),
            self.st, self.counts, self.blocked, self.witnessed,
            np.zeros(max(1, layout.cells), np.int64), np.zeros(max(1, layout.cells), np.int64),
            np.zeros(program.writes_max + 1, np.int64), np.zeros(program.writes_max + 1, np.int64),
            np.zeros(program.instances + 1, np.int64), np.zeros(program.instances + 1, np.int64),
            np.zeros(program.instances + 1, np.uint64), np.zeros(4, np.int64),
        )  # fmt: skip

    def _block(self, begin: int, end: int, first: int, depth: int) -> int:
        s = self.store
        return int(
            self.built.block(
                s.level, begin, end, first, depth, s.following, s.table, s.parents, s.insts, *self.fixed
            )
        )

    def warm_up(self) -> None:
        """Compile (or load) by expanding nothing."""
        watch = Stopwatch()
        self._block(0, 0, 0, 0)
        self.result.compile_seconds = watch.seconds

    def run(self, progress: Callable[[Progress], None] | None = None) -> Result:
        """Search until a verdict."""
        self.watch = Stopwatch()
        st, store = self.st, self.store
        if self._start():
            level, size, first = 0, 1, 0
            try:
                while size and self._level(level, size, first, progress):
                    self.result.levels.append(size)
                    first += size
                    size = int(st[WAITING])
                    st[WAITING] = 0
                    store.swap()
                    level += 1
                else:
                    if not size:
                        self.result.verdict = "holds"
            except KeyboardInterrupt:
                self._stop("interrupted; --max-states and smaller bounds give a search that ends", level, size)
        self._finish()
        return self.result

    def _start(self) -> bool:
        """Take the initial state, judged by the interpreter; False if it breaks an invariant."""
        spec, state = self.program.spec, State.initial()
        self.st[MOST] = self.most
        self.st[GENERATED] = self.st[DISTINCT] = 1
        layout = self.program.layout
        kernel.pack(layout.row(state), self.store.level, 0, layout.word, layout.shift, self.zobrist)
        kernel.insert(self.store.table, self.store.level[0, 0])
        for n, witness in enumerate(self.program.witnesses):
            if interp.holds(spec, next(w for w in spec.witnesses if w.id == witness.name), state):
                self.witnessed[n] = 0
        for predicate in self.program.state_invariants:
            invariant = next(i for i in spec.invariants if i.id == predicate.name)
            if not interp.holds(spec, invariant, state):
                self._violated(predicate, [])
                return False
        return True

    def _level(self, level: int, size: int, first: int, progress: Callable[[Progress], None] | None) -> bool:
        """Expand one level; False when the search is over."""
        st, at = self.st, 0
        while at < size:
            st[CAPACITY] = self.store.capacity
            code = self._block(at, min(size, at + BLOCK_STATES), first, level + 1)
            at = int(st[POSITION])
            if progress is not None:
                waiting = size - at + int(st[WAITING])
                progress(Progress(level, int(st[DISTINCT]), int(st[GENERATED]), waiting, self.watch.seconds))
            if code == GROW:
                if not self.store.grow(int(st[DISTINCT]), int(st[WAITING]), self.program.instances):
                    return self._stop(f"memory bound of {self.store.bound / 1e6:.0f} MB reached", level, size - at)
            elif code == LIMIT:
                return self._stop(f"bound of {self.most} states reached", level, size - at)
            elif code == BROKEN and st[BAD] > 0:
                self._broken(first + at)
                return False
            elif code != DONE:
                self._range(first + at, code)
        return True

    def _stop(self, reason: str, level: int, left: int) -> bool:
        self.result.reason = f"{reason}: {level} levels searched completely"
        self.result.queue = left + int(self.st[WAITING])
        return False

    def path(self, state: int) -> list[int]:
        """Action instances from the initial state to a state, by its number."""
        found: list[int] = []
        while state:
            found.append(int(self.store.insts[state]))
            state = int(self.store.parents[state])
        return found[::-1]

    def _broken(self, parent: int) -> None:
        bad = int(self.st[BAD])
        kind = self.program.step_invariants if bad > 1000 else self.program.state_invariants
        self._violated(kind[(bad - 1) % 1000], [*self.path(parent), int(self.st[INSTANCE])])

    def _violated(self, predicate: PredicateIR, instances: list[int]) -> None:
        self.result.verdict = "violated"
        self.result.broken, self.result.title = predicate.name, predicate.title
        self.result.behaviour = replay.behaviour(self.program, instances)
        replay.confirm_broken(self.program, predicate.name, self.result.behaviour)

    def _range(self, parent: int, code: int) -> None:
        """Raise the range error that a step (code RANGE) or a predicate met."""
        instance = int(self.st[INSTANCE])
        instances = self.path(parent) if code == RANGE else [*self.path(parent), instance]
        steps = replay.behaviour(self.program, instances)
        message = replay.range_error(self.program, steps, instance if code == RANGE else None, -int(self.st[BAD]))
        raise OutOfRangeError(message, steps)

    def _finish(self) -> None:
        result, st = self.result, self.st
        result.seconds = self.watch.seconds
        result.distinct, result.generated = int(st[DISTINCT]), int(st[GENERATED])
        result.depth, result.deadlocks = int(st[DEPTH]), int(st[DEADLOCKS])
        result.memory_bytes = self.store.peak
        for n, witness in enumerate(self.program.witnesses):
            if self.witnessed[n] >= 0:
                result.witnessed[witness.name] = int(self.witnessed[n])
            else:
                result.unwitnessed[witness.name] = witness.title
        at = 0
        for n, family in enumerate(self.program.families):
            texts = [(g.source.text, int(self.blocked[at + k])) for k, g in enumerate(family.ir.guards)]
            at += len(texts)
            generated, distinct = int(self.counts[n, 0]), int(self.counts[n, 1])
            result.coverage.append(ActionCoverage(family.ir.name, family.ir.source, generated, distinct, texts))
