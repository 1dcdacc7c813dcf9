"""Can a good state always be reached again? Over a complete search: its edges, walked backwards from the good states.

**Holds** means: from every reachable state in which the premise is true, some behaviour of the instance leads to a
good state. It does not say that every behaviour does (that would need fairness). **Violated** shows the shortest
behaviour to a state with the premise from which no good state can be reached. The edges are kept in memory, twelve
bytes each and eight more a state, inside the memory bound of the search.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewproof.spec.engines import interp
from viewproof.spec.engines.explicit import replay
from viewproof.spec.engines.explicit.build import build
from viewproof.spec.engines.explicit.emit import emit
from viewproof.spec.engines.explicit.kernel import Part
from viewproof.spec.engines.explicit.result import EngineError, Result
from viewproof.spec.engines.explicit.rounds import Chunk
from viewproof.spec.engines.explicit.search import Options, Progress, Search
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Goal, Spec
from viewproof.spec.lang.errors import SpecError

CONFIRM_STATES = 3_000
"""So many successors of a stuck state are searched by the interpreter for a good one, to confirm the verdict."""


@dataclass
class Answer:
    """What was found for one goal; `behaviour` of the result leads to a state from which it is out of reach."""

    goal: Goal
    good: int
    premises: int
    stuck: int
    result: Result


class Edges:
    """Records states, goals and edges while a search runs."""

    def __init__(self, search: Search, goals: int) -> None:
        self.search = search
        self.predicates = 2 * goals
        self.fingerprints: list[NDArray[np.int64]] = []
        self.bits: list[NDArray[np.uint8]] = []
        self.sources: list[NDArray[np.uint32]] = []
        self.targets: list[NDArray[np.int64]] = []
        self.full = False

    def states(self, rows: NDArray[np.int64], first: int, count: int) -> None:
        """New states: rows first .. first+count-1."""
        chunk, words = self.search.rounds.chunks[0], self.search.now.words
        bits, wit = np.zeros(count, np.uint8), np.zeros(self.predicates, np.int64)
        part = Part(rows=rows, words=words, begin=first, first=0)
        code = self.search.built.functions["goals_chunk"](part, count, chunk.work, wit, self.predicates, bits)
        if code < 0:
            site = self.search.program.site(code)
            raise SpecError(f"a goal leaves its range: {site.what}", site.source)
        self.fingerprints.append(rows[first : first + count, 0].copy())
        self.bits.append(bits)
        self.search.memory.add(9 * count)

    def round(self, used: list[Chunk], rows: NDArray[np.int64], first: int, count: int) -> bool:
        """All edges and new states of a round; False if they do not fit into the memory bound."""
        edges = sum(int(chunk.ctl[0]) for chunk in used)
        if not self.search.memory.fits(12 * edges + 9 * count):
            self.full = True
            return False
        for chunk in used:
            m = int(chunk.ctl[0])
            self.sources.append(chunk.out.of[:m] + np.uint32(self.search.first + chunk.begin))
            self.targets.append(chunk.out.fps[:m].copy())
        self.search.memory.add(12 * edges)
        self.states(rows, first, count)
        return True

    def numbered(self) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint8]]:
        """Edges as numbers of states, and the goal bits by state."""
        fingerprints = np.concatenate(self.fingerprints)
        order = np.argsort(fingerprints, kind="stable").astype(np.uint32)
        ordered = fingerprints[order]
        targets = [order[np.searchsorted(ordered, part)] for part in self.targets]
        empty: NDArray[np.uint32] = np.zeros(0, np.uint32)
        return np.concatenate([*self.sources, empty]), np.concatenate([*targets, empty]), np.concatenate(self.bits)


def always_reaches(
    spec: Spec,
    goals: Iterable[Goal],
    *,
    max_states: int | None = None,
    max_memory_bytes: int | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    notify: Callable[[str], None] = lambda text: None,
) -> list[Answer]:
    """Search the instance, invariants left out, and judge each goal; inconclusive if the search did not end."""
    wanted = list(goals)
    if not 0 < len(wanted) <= 4:
        raise SpecError("one to four goals can be asked about at once")
    watched = [
        replace(p, id=f"{g.id}.{kind}") for g in wanted for kind, p in (("premise", g.premise), ("good", g.good))
    ]
    plain = Spec(spec.name, spec.schema, spec.cfg, spec.actions, (), tuple(watched), spec.instance)
    program = emit(plain)
    built = build(program, notify)
    search = Search(program, built, Options(max_states, max_memory_bytes, workers or os.cpu_count() or 1))
    search.edges = edges = Edges(search, len(wanted))
    try:
        found = search.run(progress)
        if found.verdict != "holds":
            return [Answer(goal, 0, 0, 0, found) for goal in wanted]
        sources, targets, bits = edges.numbered()
        return [_judge(search, found, goal, n, (sources, targets, bits)) for n, goal in enumerate(wanted)]
    finally:
        search.close()


def _judge(search: Search, found: Result, goal: Goal, number: int, graph: tuple[Any, Any, Any]) -> Answer:
    sources, targets, bits = graph
    premise = (bits >> (2 * number)) & 1
    good = np.ascontiguousarray((bits >> (2 * number + 1)) & 1)
    goods = int(good.sum())
    while search.built.functions["backward"](sources, targets, sources.shape[0], good):
        pass
    stuck = np.flatnonzero((premise != 0) & (good == 0))
    result = replace(found, behaviour=[], title=goal.title, invariants=[goal.id])
    if stuck.size:
        result.verdict, result.broken = "violated", goal.id
        result.behaviour = replay.behaviour(search.program, search.log.path(int(stuck[0])))
        _confirm(search, goal, result)
    elif not premise.any():
        result.verdict, result.reason = "inconclusive", "its premise is never true in this instance"
    return Answer(goal, goods, int(premise.sum()), int(stuck.size), result)


def _confirm(search: Search, goal: Goal, result: Result) -> None:
    """The interpreter must find the premise true and, as far as it looks, no good state."""
    spec = search.program.spec
    start = result.behaviour[-1].state if result.behaviour else State.initial()
    if not interp.holds(spec, goal.premise, start):
        raise EngineError(f"the premise of {goal.id} holds here, but not in interp")
    seen, waiting = {start}, [start]
    while waiting and len(seen) < CONFIRM_STATES:
        state = waiting.pop()
        if interp.holds(spec, goal.good, state):
            raise EngineError(f"{goal.id} is out of reach here, but interp reaches it")
        for _, _, after in interp.successors(spec, state):
            if after not in seen:
                seen.add(after)
                waiting.append(after)
