"""How many rounds of a fixed order of action instances reach all reachable states?

A round takes the instances in the order given (one may occur at several places); at each place the step may happen or
not. The instance is searched once, with its edges; then each round is a pass over the edges, instance by instance. Only
where the search ended does the answer say anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewproof.spec.engines.explicit.build import build
from viewproof.spec.engines.explicit.emit import Program, emit
from viewproof.spec.engines.explicit.reach import Edges
from viewproof.spec.engines.explicit.rounds import Chunk
from viewproof.spec.engines.explicit.search import Options, Progress, Search
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import SpecError

EDGE_BYTES = 2
"""What the number of an edge's action instance takes, besides `reach.Edges`."""


@dataclass
class Cover:
    """`reached` holds how many states are reached in 0, 1, 2 … rounds; the last is all `states` if `complete`."""

    states: int
    edges: int = 0
    reached: list[int] = field(default_factory=list)
    reason: str = ""
    seconds: float = 0.0

    @property
    def complete(self) -> bool:
        """Do the rounds cover the instance?"""
        return bool(self.reached) and self.reached[-1] == self.states

    @property
    def rounds(self) -> int:
        """Fewest rounds that reach all states, if `complete`."""
        return len(self.reached) - 1

    def within(self, rounds: int) -> int:
        """States reached in that many rounds."""
        return self.reached[min(rounds, self.rounds)]


class LabelledEdges(Edges):
    """Edges with the numbers of their action instances."""

    def __init__(self, search: Search) -> None:
        super().__init__(search, 0)
        self.labels: list[NDArray[np.uint16]] = []

    def round(self, used: list[Chunk], rows: NDArray[np.int64], first: int, count: int) -> bool:
        """All edges and new states of a round; False if they do not fit into the memory bound."""
        edges = sum(int(chunk.ctl[0]) for chunk in used)
        if not self.search.memory.fits((EDGE_BYTES + 12) * edges + 9 * count):
            self.full = True
            return False
        self.labels += [chunk.out.wi[: int(chunk.ctl[0])].astype(np.uint16) for chunk in used]
        self.search.memory.add(EDGE_BYTES * edges)
        return super().round(used, rows, first, count)


def cover(
    spec: Spec,
    order: Sequence[tuple[str, Mapping[str, int]]],
    *,
    max_states: int | None = None,
    max_memory_bytes: int | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    notify: Callable[[str], None] = lambda text: None,
) -> Cover:
    """Search the instance, invariants left out, and count the rounds of this order that reach all of its states.

    A step that leaves a declared range raises `OutOfRangeError`.
    """
    plain = Spec(spec.name, spec.schema, spec.cfg, spec.actions, (), (), spec.instance)
    program = emit(plain)
    search = Search(
        program, build(program, notify), Options(max_states, max_memory_bytes, workers or os.cpu_count() or 1)
    )
    search.edges = edges = LabelledEdges(search)
    try:
        found = search.run(progress)
        if found.verdict != "holds":
            return Cover(found.distinct, reason=found.reason, seconds=search.seconds)
        answer = _count(program, edges, [_number(program, action, args) for action, args in order])
        answer.seconds = search.seconds
        return answer
    finally:
        search.close()


def _number(program: Program, action: str, args: Mapping[str, int]) -> int:
    """Number of an action instance."""
    family = next(f for f in program.families if f.ir.name == action)
    at = 0
    for param, (lo, hi) in zip(family.ir.params, family.sizes, strict=True):
        if not lo <= args[param.name] <= hi:
            raise SpecError(f"no instance of {action} has {param.name} = {args[param.name]}")
        at = at * (hi - lo + 1) + args[param.name] - lo
    return family.first + at


def _count(program: Program, edges: LabelledEdges, order: Sequence[int]) -> Cover:
    sources, targets, bits = edges.numbered()
    waiting = _by_instance(program, edges, sources, targets)
    states = int(bits.shape[0])
    reached: NDArray[np.bool_] = np.zeros(states, np.bool_)
    reached[0] = True
    counts = [1]
    while counts[-1] < states:
        for number in order:
            _pass(waiting, number, reached)
        counts.append(int(np.count_nonzero(reached)))
        if counts[-1] == counts[-2]:
            return Cover(states, len(sources), counts, "some action instance has no place in a round")
    return Cover(states, len(sources), counts)


def _by_instance(
    program: Program, edges: LabelledEdges, sources: NDArray[Any], targets: NDArray[Any]
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Sources and targets of the edges of each action instance."""
    empty: NDArray[np.uint16] = np.zeros(0, np.uint16)
    labels = np.concatenate([*edges.labels, empty])
    by_label = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[by_label], np.arange(program.instances + 1))
    places = [by_label[ends[n] : ends[n + 1]] for n in range(program.instances)]
    return [(sources[at], targets[at]) for at in places]


def _pass(waiting: list[tuple[NDArray[Any], NDArray[Any]]], number: int, reached: NDArray[np.bool_]) -> None:
    """Take an action instance in all states reached so far; its edges from them are done with then."""
    sources, targets = waiting[number]
    taken = reached[sources]
    if taken.any():
        reached[targets[taken]] = True
        waiting[number] = (sources[~taken], targets[~taken])
