"""The reference interpreter: calls the specification's own functions on concrete states. It defines what the spec
means.

"Holds" from `explore` means: no reachable state of the bounded instance breaks an invariant (every reachable state
was visited). It is slow and obvious; every other engine is tested against it.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from viewproof.spec.lang.concrete import Draft, State
from viewproof.spec.lang.definitions import Action, Predicate, Spec
from viewproof.spec.lang.errors import Disabled, Source
from viewproof.spec.lang.vocabulary import using


@dataclass(frozen=True)
class Blocked:
    """Why an action is not enabled: its first false conjunct (0-based, an index of the recorded guards)."""

    action: str
    conjunct: int

    def source(self, spec: Spec) -> Source:
        """Text, file and line of that conjunct."""
        return spec.ir(self.action).guards[self.conjunct].source


def step(spec: Spec, state: State, action: Action, args: dict[str, int]) -> State | Blocked:
    """Take the action with these arguments: the state after, or the guard that stands in the way."""
    draft = Draft(spec.schema, spec.cfg, spec.instance, state)
    try:
        with using(draft):
            action.fn(draft, **args)
    except Disabled as disabled:
        return Blocked(action.name, disabled.conjunct)
    return draft.result()


def holds(spec: Spec, predicate: Predicate, state: State, after: State | None = None) -> bool:
    """Does the predicate hold in the state (or, for a transition invariant, over the step to `after`)?"""
    draft = Draft(spec.schema, spec.cfg, spec.instance, state, after)
    with using(draft):
        return bool(predicate.fn(draft))


def instances(spec: Spec, action: Action) -> Iterator[dict[str, int]]:
    """All arguments of an action in a bounded instance, in the order of its parameters."""
    ranges = [spec.instance.members(p.sort) for p in action.params]
    for values in itertools.product(*ranges):
        yield {p.name: v for p, v in zip(action.params, values, strict=True)}


def successors(spec: Spec, state: State) -> Iterator[tuple[Action, dict[str, int], State]]:
    """All enabled steps."""
    for act in spec.actions:
        for args in instances(spec, act):
            after = step(spec, state, act, args)
            if isinstance(after, State):
                yield act, args, after


@dataclass(frozen=True)
class Step:
    """One step of a behaviour: action, arguments, and the state it leads to."""

    action: str
    args: dict[str, int]
    state: State


@dataclass
class Exploration:
    """Result of a search: counts, and the shortest behaviour to a broken invariant (if any)."""

    distinct: int = 0
    generated: int = 0
    depth: int = 0
    per_action: dict[str, int] = field(default_factory=dict)
    broken: str | None = None
    behaviour: list[Step] = field(default_factory=list)
    witnessed: dict[str, int] = field(default_factory=dict)
    complete: bool = True


def explore(spec: Spec, *, max_states: int | None = None) -> Exploration:
    """Breadth-first search of the bounded instance; stops at the first broken invariant or at `max_states`."""
    transition = {p.name for p in spec.invariant_irs if p.is_transition}
    state_invariants = [p for p in spec.invariants if p.id not in transition]
    step_invariants = [p for p in spec.invariants if p.id in transition]
    start = State.initial()
    result = Exploration(distinct=1, generated=1)
    parents: dict[State, tuple[State, Step] | None] = {start: None}
    queue: deque[tuple[State, int]] = deque([(start, 0)])
    result.broken = _visit(spec, state_invariants, start, result, 0)
    while queue and result.broken is None:
        state, depth = queue.popleft()
        for act, args, after in successors(spec, state):
            result.generated += 1
            result.per_action[act.name] = result.per_action.get(act.name, 0) + 1
            taken = Step(act.name, args, after)
            bad = next((p.id for p in step_invariants if not holds(spec, p, state, after)), None)
            if after not in parents:
                parents[after] = (state, taken)
                result.distinct += 1
                result.depth = max(result.depth, depth + 1)
                bad = bad or _visit(spec, state_invariants, after, result, depth + 1)
                queue.append((after, depth + 1))
            if bad is not None:
                result.broken = bad
                result.behaviour = [*_behaviour(parents, state), taken]
                break
        if max_states is not None and result.distinct >= max_states:
            result.complete = False
            break
    return result


def _visit(spec: Spec, invariants: list[Predicate], state: State, result: Exploration, depth: int) -> str | None:
    for w in spec.witnesses:
        if w.id not in result.witnessed and holds(spec, w, state):
            result.witnessed[w.id] = depth
    return next((p.id for p in invariants if not holds(spec, p, state)), None)


def _behaviour(parents: dict[State, tuple[State, Step] | None], state: State) -> list[Step]:
    steps: list[Step] = []
    entry = parents[state]
    while entry is not None:
        steps.append(entry[1])
        entry = parents[entry[0]]
    return steps[::-1]
