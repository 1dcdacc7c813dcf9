"""Search of a specification whose steps are too fine to search one by one: by strides, each a run of its steps.

A stride takes its steps one after the other, and is taken whole or not at all: if a guard is false it is not enabled.
A guard that reads what only invariants read (`Model.history`) is no condition but a claim: where all other guards of
the step hold and it does not, the search stops, and names it. So what the specification refuses a log for is checked to
follow from the rest of it.

`Found.complete`: every state that the strides of the model reach from its start was met, each claim held in every one
of them, and `check` found nothing. It says nothing of steps in an order that no stride has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from viewproof.spec.engines.replay.compile import TAKEN, Replay, compile_spec
from viewproof.spec.engines.replay.store import Store
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import ActionIR, Read, walk
from viewproof.spec.lang.strides import Choice, Model, Stride


class Refused(Exception):  # noqa: N818 - a stride that is not enabled
    """A condition of the stride does not hold."""


class Broken(Exception):  # noqa: N818 - what a search looks for
    """A claim does not hold: which step made it, and its text."""

    def __init__(self, action: str, text: str) -> None:
        super().__init__(f"{action}: {text}")
        self.action = action
        self.text = text


@dataclass
class Found:
    """States, strides taken, depth; how often each stride was taken; what broke, and the strides to it."""

    states: int = 1
    taken: int = 0
    depth: int = 0
    complete: bool = True
    per_stride: dict[str, int] = field(default_factory=dict)
    broken: str = ""
    at: str = ""
    story: tuple[str, ...] = ()


class World:
    """A state that steps are taken of. Tables are shared with the state that it came from until they are written."""

    def __init__(self, program: Program, store: Store) -> None:
        self.program = program
        self.store = store
        self.owned: set[str] = set()

    def at(self, name: str, *index: int) -> int:
        """The value of a cell."""
        return self.program.readers[name](self.store, index)

    def need(self, condition: bool) -> None:
        """The stride is not enabled unless the condition holds."""
        if not condition:
            raise Refused

    def can(self, action: str, **args: int) -> bool:
        """Would that step be taken now?"""
        trial = World(self.program, self.program.share(self.store))
        try:
            trial.do(action, **args)
        except Refused:
            return False
        return True

    def claim(self, condition: bool, at: str, text: str) -> None:
        """Raises `Broken` if the condition does not hold."""
        if not condition:
            raise Broken(at, text)

    def count(self, name: str, most: int) -> None:
        """One more of what is counted. Raises `Refused` if that is more than `most`."""
        done = self.at(name)
        self.need(done < most)
        setattr(self.store, f"v_{name}", done + 1)
        self.owned.add(name)

    def do(self, action: str, **args: int) -> None:
        """Take a step. Raises `Refused`, or `Broken` if only claims are false."""
        program = self.program
        for name in program.writes[action] - self.owned:
            program.own(self.store, name)
            self.owned.add(name)
        values = [args[name] for name in program.params[action]]
        number = program.strict.functions[action](self.store, *values)
        if number == TAKEN:
            return
        text = program.claims.get((action, number))
        if text is None or program.loose.functions[action](self.store, *values) != TAKEN:
            raise Refused
        raise Broken(action, text)


class Program:
    """A model, compiled: with its claims, and without."""

    def __init__(self, model: Model) -> None:
        self.model = model
        other = {action.name: action for action in model.instead}
        spec = replace(model.spec, actions=tuple(other.get(action.name, action) for action in model.spec.actions))
        irs = tuple(map(self._as_modelled, spec.action_irs))
        self.strict: Replay = compile_spec(model.spec, irs)
        self.layout = self.strict.layout
        self.shapes = {var.name: self.layout.shape(var) for var in model.spec.schema.vars.values()}
        self.shapes |= dict.fromkeys(model.counters, "scalar")
        self.inits = {var.name: var.init for var in model.spec.schema.vars.values()}
        self.inits |= dict.fromkeys(model.counters, 0)
        self.params = {ir.name: tuple(p.name for p in ir.params) for ir in irs}
        self.writes = {ir.name: ir.writes() for ir in irs}
        self.claims = {
            (ir.name, number): guard.source.text
            for ir in irs
            for number, guard in enumerate(ir.guards)
            if ir.name not in model.conditions and self.is_claim(guard.cond)
        }
        self.loose: Replay = compile_spec(model.spec, tuple(self._without_claims(ir) for ir in irs))
        self.readers = {name: self._reader(name) for name in self.shapes}
        self.numbers: dict[tuple[str, Any], int] = {}
        self.fresh = self.first()

    def first(self) -> Store:
        """All variables at their initial values, nothing counted."""
        store = self.layout.new_store()
        store.__dict__.update((f"v_{name}", 0) for name in self.model.counters)
        return store

    def _as_modelled(self, ir: ActionIR) -> ActionIR:
        """The action without the guards that it lacks in the model. Raises `SpecError` if it has no such guard."""
        for text in (text for name, text in self.model.lacks if name == ir.name):
            kept = tuple(g for g in ir.guards if text not in g.source.text)
            if len(kept) == len(ir.guards):
                raise SpecError(f"{ir.name} has no guard with {text!r}")
            ir = replace(ir, guards=kept)
        return ir

    def is_claim(self, condition: Any) -> bool:
        """Does it read what only invariants read?"""
        return any(isinstance(n, Read) and n.var.name in self.model.history for n in walk(condition))

    def _without_claims(self, ir: ActionIR) -> ActionIR:
        return replace(ir, guards=tuple(g for g in ir.guards if not self.is_claim(g.cond)))

    def _reader(self, name: str) -> Callable[[Store, Choice], int]:
        """Reads a cell of a variable."""
        held, init, shape = f"v_{name}", self.inits[name], self.shapes[name]

        def row(value: Any, index: Choice) -> int:
            return int(value.get(index[0] if len(index) == 1 else index, init))

        if shape == "scalar":
            return lambda store, index: int(store.__dict__[held])
        if shape == "list":
            return lambda store, index: int(store.__dict__[held][index[0]])
        if shape == "rows":
            return lambda store, index: row(store.__dict__[held][index[0]], index[1:])
        return lambda store, index: row(store.__dict__[held], index)

    def share(self, store: Store) -> Store:
        """Another store with the same tables."""
        other = Store()
        other.__dict__.update(store.__dict__)
        return other

    def own(self, store: Store, name: str) -> None:
        """Give the store a table of its own."""
        value = getattr(store, f"v_{name}")
        shape = self.shapes[name]
        if shape == "list":
            value = list(value)
        elif shape == "rows":
            value = [dict(row) for row in value]
        elif shape == "table":
            value = dict(value)
        setattr(store, f"v_{name}", value)

    def frozen(self, store: Store, name: str) -> int:
        """A number for the value of a variable: equal values have equal numbers."""
        value, init = getattr(store, f"v_{name}"), self.inits[name]
        shape = self.shapes[name]
        held: Any = value
        if shape == "list":
            held = tuple(map(int, value))
        elif shape == "rows":
            held = tuple(frozenset((k, int(v)) for k, v in row.items() if v != init) for row in value)
        elif shape == "table":
            held = frozenset((k, int(v)) for k, v in value.items() if v != init)
        return self.numbers.setdefault((name, held), len(self.numbers))

    def rest(self, world: World) -> None:
        """Between strides what passes is at its initial value."""
        for name in self.model.passing:
            setattr(world.store, f"v_{name}", getattr(self.fresh, f"v_{name}"))
            world.owned.add(name)


Key = tuple[int, ...]


def search(
    model: Model, check: Callable[[State], str] | None = None, most: int = 1 << 30, lead: Sequence[str] = (),
    deepest: int = 1 << 30,
) -> Found:  # fmt: skip
    """All states up to `most`, breadth first; stops at the first that is broken, with a shortest run of strides.

    With `lead` only those after strides of these names were taken, of each the first that is enabled ("write:2": the
    first whose first argument is 2). `deepest`: no further than that many strides.
    """
    program, found = Program(model), Found()
    names = list(program.shapes)
    place = {name: at for at, name in enumerate(names)}
    world = World(program, program.first())
    model.start(world)
    program.rest(world)
    for name in lead:
        world = _led(program, world, name)
    first = tuple(program.frozen(world.store, name) for name in names)
    parents: dict[Key, tuple[Key, str] | None] = {first: None}
    queue: deque[tuple[Key, Store, int]] = deque([(first, world.store, 0)])

    def end(key: Key, more: str, what: str, at: str) -> Found:
        story: list[str] = [more] if more else []
        step = parents[key]
        while step is not None:
            story.append(step[1])
            step = parents[step[0]]
        found.broken, found.at, found.story, found.complete = what, at, tuple(reversed(story)), False
        found.depth = len(found.story)
        return found

    while queue:
        key, store, depth = queue.popleft()
        if check is not None and (wrong := check(program.layout.to_state(store))):
            return end(key, "", wrong, "")
        if depth == deepest:
            found.complete = False
            continue
        for stride, choice, then, broken in _next(program, store):
            text = f"{stride.name}({', '.join(map(str, choice))})"
            if broken is not None:
                return end(key, text, str(broken), broken.action)
            found.taken += 1
            found.per_stride[stride.name] = found.per_stride.get(stride.name, 0) + 1
            program.rest(then)
            values = list(key)
            for name in then.owned:
                values[place[name]] = program.frozen(then.store, name)
            after = tuple(values)
            if after in parents:
                continue
            parents[after] = (key, text)
            found.states, found.depth = found.states + 1, depth + 1
            if found.states >= most:
                found.complete = False
                return found
            queue.append((after, then.store, depth + 1))
    return found


def _led(program: Program, world: World, name: str) -> World:
    """The world after the first enabled stride that `name` names. Raises `SpecError` if there is none."""
    wanted, _, text = name.partition(":")
    choice = tuple(map(int, text.split(","))) if text else ()
    for stride, chosen, then, _ in _next(program, world.store):
        if stride.name == wanted and chosen[: len(choice)] == choice:
            program.rest(then)
            return then
    raise SpecError(f"{name} is not enabled")


def _next(program: Program, store: Store) -> Iterator[tuple[Stride, Choice, World, Broken | None]]:
    here = World(program, store)
    for stride in program.model.strides:
        for choice in stride.choices(here):
            then = World(program, program.share(store))
            try:
                stride.take(then, *choice)
            except Refused:
                continue
            except Broken as broken:
                yield stride, choice, then, broken
                continue
            yield stride, choice, then, None


__all__ = ["Broken", "Found", "Refused", "World", "search"]
