"""Random walks through an instance that is too large to search.

The verdict is never "holds": **violated** shows a walk that breaks an invariant, replayed in the reference interpreter
and not the shortest; **inconclusive** says how many walks found nothing. The same seed gives the same walks, whatever
the number of threads.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from viewproof.spec.engines.explicit import replay
from viewproof.spec.engines.explicit.build import Built, build
from viewproof.spec.engines.explicit.emit import Program, emit
from viewproof.spec.engines.explicit.result import Result, coverage
from viewproof.spec.engines.explicit.rounds import (
    BROKEN,
    DEADLOCKS,
    DETAIL,
    EVENT,
    INSTANCE,
    RANGE,
    SITE,
    Tables,
    successors,
    working,
)
from viewproof.spec.engines.explicit.search import Progress
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Spec

MIX = 0x9E3779B97F4A7C15


def _quiet(text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Found:
    """The walk that broke something: its number, the action instances, and the control words at its end."""

    number: int
    path: list[int]
    ctl: list[int]


class Walker:
    """Buffers of one thread."""

    def __init__(self, program: Program, tables: Tables, built: Built, depth: int) -> None:
        self.program, self.tables, self.built = program, tables, built
        self.start = program.layout.row(State.initial()).astype(np.uint8)
        self.work = working(program)
        self.out = successors(program.instances + 1, program.writes_max + 1, 1, 1)
        self.trail = np.zeros(max(1, depth), np.uint16)
        self.tally = tables.tally(len(program.witnesses))
        self.tally.wit[:] = -1
        self.depth, self.longest, self.deadlocks = depth, 0, 0

    def walk(self, number: int, seed: int) -> Found | None:
        """One walk; what it broke, if anything."""
        program = self.program
        self.work.s[:] = self.start
        state_invariants, witnesses = ((1 << len(p)) - 1 for p in (program.state_invariants, program.witnesses))
        mixed = ((seed * MIX) ^ ((number + 1) * 0xD1B54A32D192ED03)) % (1 << 64) or 1
        taken = self.built.functions["walk"](
            self.work, mixed - (1 << 64 if mixed >> 63 else 0), self.depth, state_invariants, witnesses,
            self.tables.asked, self.out, self.trail, self.tally,
        )  # fmt: skip
        ctl = self.tally.ctl
        self.longest = max(self.longest, taken)
        self.deadlocks += int(ctl[DEADLOCKS])
        if not ctl[EVENT]:
            return None
        return Found(number, [int(i) for i in self.trail[:taken]], [int(x) for x in ctl])


def simulate(
    spec: Spec,
    *,
    seed: int = 0,
    depth: int = 200,
    walks: int = 10_000,
    invariants: Iterable[str] | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    notify: Callable[[str], None] = _quiet,
) -> Result:
    """Take `walks` walks of at most `depth` steps, each enabled action instance as likely as any other.

    `Result.distinct` stays 0 (states are not remembered), `generated` counts the steps, `depth` is the longest walk.
    """
    program = emit(spec, invariants)
    built = build(program, notify)
    tables = Tables(program)
    started = time.perf_counter()
    walkers = [Walker(program, tables, built, depth) for _ in range(workers or os.cpu_count() or 1)]
    found, interrupted, done = _run(walkers, seed, walks, progress, started)
    result = Result(spec.name, row_bits=program.layout.bits, compile_seconds=built.seconds, workers=len(walkers))
    checked = {p.name for p in (*program.state_invariants, *program.step_invariants)}
    result.invariants = [p.id for p in spec.invariants if p.id in checked]
    result.generated = sum(int(w.tally.counts[:, 0].sum()) for w in walkers)
    result.depth = max(w.longest for w in walkers)
    result.deadlocks = sum(w.deadlocks for w in walkers)
    counts, blocked = sum(w.tally.counts for w in walkers), sum(w.tally.blk for w in walkers)
    result.coverage = coverage([f.ir for f in program.families], counts, blocked)
    for n, witness in enumerate(program.witnesses):
        met = [int(w.tally.wit[n]) for w in walkers if w.tally.wit[n] >= 0]
        if met:
            result.witnessed[witness.name] = min(met)
        else:
            result.unwitnessed[witness.name] = witness.title
    result.seconds = time.perf_counter() - started
    if found is not None:
        _judge(program, result, found)
    else:
        ended = "interrupted; " if interrupted else ""
        result.reason = f"{ended}no violation found in {done:,} walks of at most {depth} steps (seed {seed})"
    return result


def _run(
    walkers: list[Walker], seed: int, walks: int, progress: Callable[[Progress], None] | None, started: float
) -> tuple[Found | None, bool, int]:
    """All walks, over the threads; the lowest-numbered one that broke something, and how many were taken."""
    numbers, best, lock, stop = itertools.count(), [walks], threading.Lock(), threading.Event()
    found: dict[int, Found] = {}
    done = [0]

    def work(walker: Walker, report: bool) -> None:
        while (n := next(numbers)) < best[0] and not stop.is_set():
            event = walker.walk(n, seed)
            with lock:
                done[0] += 1
                if event is not None:
                    found[n] = event
                    best[0] = min(best[0], n)
            if report and progress is not None:
                steps = int(walker.tally.counts[:, 0].sum())
                progress(Progress(walker.longest, 0, steps, walks - n, time.perf_counter() - started))

    with ThreadPoolExecutor(max(1, len(walkers) - 1)) as pool:
        others = [pool.submit(work, walker, False) for walker in walkers[1:]]
        try:
            work(walkers[0], True)
        except KeyboardInterrupt:
            stop.set()
        for other in others:
            other.result()
    return (found[min(found)] if found else None), stop.is_set(), done[0]


def _judge(program: Program, result: Result, found: Found) -> None:
    """Replay the walk in the interpreter, which must find the same."""
    ctl: Any = found.ctl
    if ctl[EVENT] == RANGE:
        replay.raise_range_error(program, found.path, ctl[INSTANCE], ctl[SITE], None)
    if ctl[DETAIL] < 0:
        replay.raise_range_error(program, found.path[:-1], found.path[-1], 0, ctl[DETAIL])
    predicates = program.state_invariants if ctl[EVENT] == BROKEN else program.step_invariants
    predicate = predicates[ctl[DETAIL] - 1]
    result.verdict, result.broken, result.title = "violated", predicate.name, predicate.title
    result.reason = f"in walk {found.number}; a shorter behaviour may exist"
    result.behaviour = replay.behaviour(program, found.path)
    replay.confirm_broken(program, predicate.name, result.behaviour)
