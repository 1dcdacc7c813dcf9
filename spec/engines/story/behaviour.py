"""A behaviour told step by step: what each step did, on what grounds, with which messages, and what it could not do.

Pure data. Everything is derived from the specification's schema and its recorded actions: no engine and no protocol
is known here.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from viewproof.spec.engines.guards import Show, cell_name
from viewproof.spec.engines.story.attempt import attempt, grounds, judge
from viewproof.spec.engines.story.messages import Cell, Sent, Used, sent, used
from viewproof.spec.engines.story.why_not import Reason, why_not
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Action, Spec
from viewproof.spec.lang.errors import Source, SpecError
from viewproof.spec.lang.schema import Var


class Taken(Protocol):
    """A step of a behaviour, as every engine gives it."""

    @property
    def action(self) -> str:
        """Name of the action."""

    @property
    def args(self) -> dict[str, int]:
        """Its arguments."""

    @property
    def state(self) -> State:
        """The state that it leads to."""


@dataclass(frozen=True)
class Leaf:
    """A cell that a step changed, with its values as shown."""

    var: str
    index: tuple[int, ...]
    before: str
    after: str

    def text(self) -> str:
        """`op[0]: 0 → 1`."""
        return f"{cell_name(self.var, self.index)}: {self.before} → {self.after}"


@dataclass(frozen=True)
class GuardLine:
    """One conjunct of the guard of a step that was taken: its text, its place, and the values it stood on."""

    source: Source
    values: tuple[str, ...]


@dataclass(frozen=True)
class StoryStep:
    """One step. `actor` is the acting replica, if the action has one; `mark` says which mistake it shows."""

    number: int
    action: str
    args: dict[str, int]
    actor: int | None
    source: Source
    doc: str
    tags: frozenset[str]
    mark: str
    guards: tuple[GuardLine, ...]
    leaves: tuple[Leaf, ...]
    sends: tuple[Sent, ...]
    uses: tuple[Used, ...]

    def call(self, *, with_actor: bool = True, actor: str = "r") -> str:
        """`on_commit(r=1, k=2)`; the acting replica may be left out."""
        shown = [f"{k}={v}" for k, v in self.args.items() if with_actor or k != actor]
        return f"{self.action}({', '.join(shown)})"


@dataclass(frozen=True)
class Ending:
    """What the behaviour shows: a broken invariant (then for which members, and the cells looked at), or a goal."""

    id: str
    title: str
    doc: str = ""
    source: Source | None = None
    broken: bool = True
    members: tuple[tuple[str, int], ...] = ()
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Story:
    """A behaviour of a bounded instance, from the first of its states on."""

    spec: Spec
    show: Show
    about: str
    steps: tuple[StoryStep, ...]
    states: tuple[State, ...]
    ending: Ending | None = None
    lane_sort: str = ""
    lanes: tuple[int, ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[str, ...] = ()

    def why_not(self, step: int, action: str, given: dict[str, int] | None = None) -> list[Reason]:
        """Why the action is not enabled in the state after `step` steps (0: the initial state)."""
        self.require_step(step)
        return why_not(self.spec, self.states[step], self.spec.action(action), self.show, given)

    def require_step(self, step: int) -> None:
        """Raises `SpecError` unless the behaviour has so many steps."""
        if not 0 <= step < len(self.states):
            raise SpecError(f"there is no step {step}: the behaviour has steps 0 (initial state) … {len(self.steps)}")


def tell(
    spec: Spec,
    taken: Iterable[Taken],
    *,
    show: Show | None = None,
    about: str = "",
    ending: Ending | None = None,
    marks: Mapping[str, str] | None = None,
    faults: Iterable[str] = (),
    start: State | None = None,
) -> Story:
    """Tell the behaviour, from the state `start` (None: the initial one); every step is taken again in the interpreter.

    `faults` are the deliberate mistakes of this specification, in words; `marks`: action → the one that it shows.
    """
    shown = show or (lambda var, value: var.values.show(value))
    state = start or State.initial()
    states, steps = [state], list[StoryStep]()
    written_by: dict[Cell, int] = {}
    for number, step in enumerate(taken, start=1):
        told = _step(spec, number, state, step, written_by, shown, (marks or {}).get(step.action, ""))
        written_by.update({(leaf.var, leaf.index): number for leaf in told.leaves})
        steps.append(told)
        state = step.state
        states.append(state)
    sort, lanes = _lanes(spec)
    return Story(spec, shown, about, tuple(steps), tuple(states), ending, sort, lanes, dict(marks or {}), tuple(faults))


def broken(spec: Spec, id: str, states: Sequence[State], show: Show) -> Ending:
    """The ending of a behaviour whose last state, or last step, breaks that invariant."""
    predicate = next(p for p in spec.invariants if p.id == id)
    recorded = next(p for p in spec.invariant_irs if p.name == id)
    step = states[-2:] if recorded.is_transition and len(states) > 1 else states[-1:]
    found = judge(spec, recorded, show, *step)
    return Ending(id, predicate.title, predicate.doc, recorded.source, not found.holds, found.members, found.values)


def changed(spec: Spec, before: State, after: State) -> list[tuple[Var, tuple[int, ...]]]:
    """Cells in which two states differ, in order of declaration."""
    found: list[tuple[Var, tuple[int, ...]]] = []
    for name, var in spec.schema.vars.items():
        cells = {*before.tables.get(name, {}), *after.tables.get(name, {})}
        found += [(var, index) for index in sorted(cells) if before.get(var, index) != after.get(var, index)]
    return found


def all_cells(spec: Spec) -> list[tuple[Var, tuple[int, ...]]]:
    """Every cell of the bounded instance, in order of declaration."""
    return [
        (var, index)
        for var in spec.schema.vars.values()
        for index in itertools.product(*(spec.instance.members(sort) for sort in var.index))
    ]


def _step(
    spec: Spec, number: int, before: State, step: Taken, written_by: Mapping[Cell, int], show: Show, mark: str
) -> StoryStep:
    action, recorded = spec.action(step.action), spec.ir(step.action)
    tried = attempt(spec, before, action, dict(step.args))
    if not tried.enabled:
        raise SpecError(f"step {number}, {step.action} {step.args}, is not enabled in the interpreter")
    cells = changed(spec, before, step.state)
    return StoryStep(
        number,
        step.action,
        dict(step.args),
        None if action.actor is None else step.args[action.actor],
        recorded.source,
        action.doc,
        action.tags,
        mark,
        tuple(
            GuardLine(guard.source, values)
            for guard, values in zip(recorded.guards, grounds(spec, before, step.action, step.args, show), strict=True)
        ),
        tuple(Leaf(v.name, i, show(v, before.get(v, i)), show(v, step.state.get(v, i))) for v, i in cells),
        sent(cells),
        used(tried.readings, dict(written_by)),
    )


def _lanes(spec: Spec) -> tuple[str, tuple[int, ...]]:
    """The acting sort and its members: that of the first action that has an actor."""
    for action in spec.actions:
        sort = _acting_sort(action)
        if sort is not None:
            return sort.name, tuple(spec.instance.members(sort))
    return "", ()


def _acting_sort(action: Action) -> Any:
    return next((p.sort for p in action.params if p.name == action.actor), None)
