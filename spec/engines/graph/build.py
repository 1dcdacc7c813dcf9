"""Build the graph: nodes are states, numbered breadth-first from 0 (the initial state); edges are steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import networkx as nx

from viewproof.spec.engines import interp
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import SpecError

STATES_MAX = 20_000
"""Default bound."""


class TooLargeError(SpecError):
    """The model has more reachable states than the bound."""


@dataclass(frozen=True)
class StateGraph:
    """All reachable states. Edges carry `action` and `args`; there may be several between two states."""

    spec: Spec
    states: tuple[State, ...]
    graph: nx.MultiDiGraph[int]

    @property
    def components(self) -> list[set[int]]:
        """Strongly connected components, the largest first; among equals, by their smallest state."""
        return sorted((set(c) for c in nx.strongly_connected_components(self.graph)), key=lambda c: (-len(c), min(c)))

    @property
    def final_components(self) -> list[set[int]]:
        """Components that no step leaves: where every long behaviour ends up."""
        return [c for c in self.components if all(t in c for n in c for t in self.graph.successors(n))]


def build(
    spec: Spec, *, max_states: int = STATES_MAX, progress: Callable[[int, int], None] | None = None
) -> StateGraph:
    """All reachable states of the bounded instance, whether or not they break an invariant.

    `progress` is called with the numbers of states found and of states waiting. More states than `max_states` raise
    `TooLargeError`.
    """
    start = State.initial()
    numbers = {start.key(): 0}
    states = [start]
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph()
    graph.add_node(0)
    queue = deque([0])
    while queue:
        number = queue.popleft()
        if progress is not None:
            progress(len(states), len(queue))
        for action, args, after in interp.successors(spec, states[number]):
            key = after.key()
            if key not in numbers:
                if len(states) >= max_states:
                    raise TooLargeError(
                        f"{spec.name} has more than {max_states:,} reachable states in this instance: too large for "
                        f"a state graph; choose smaller sizes, or a larger --max-states"
                    )
                numbers[key] = len(states)
                states.append(after)
                queue.append(numbers[key])
            graph.add_edge(number, numbers[key], action=action.name, args=dict(args))
    return StateGraph(spec, tuple(states), graph)
