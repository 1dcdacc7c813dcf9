"""Named actions, invariants and witnesses, and the specification that collects them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any

from viewproof.spec.lang.errors import SpecError, evaluated, source_of
from viewproof.spec.lang.expr import ActionIR, Param, PredicateIR
from viewproof.spec.lang.points import parameters, require_parameters
from viewproof.spec.lang.record import record_action, record_predicate
from viewproof.spec.lang.schema import Schema
from viewproof.spec.lang.sorts import Instance, Sort


@dataclass(frozen=True)
class Action:
    """A named action: a function of a state and parameters. `actor` names the parameter that is the acting replica.

    `tags` say what kind of step it is to whoever draws a behaviour (`crash`); no engine looks at them.
    """

    name: str
    fn: Callable[..., None]
    params: tuple[Param, ...]
    doc: str
    actor: str | None
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Around:
    """What parts put around an action: guards before its own, effects after. Each names the parameters it needs."""

    guards: tuple[Callable[..., None], ...] = ()
    effects: tuple[Callable[..., None], ...] = ()

    def put(self, act: Action) -> Action:
        """The action with them. Raises `SpecError` if it lacks a parameter that one of them names."""
        for more in (*self.guards, *self.effects):
            require_parameters(more, parameters(act.fn), act.name)

        @wraps(act.fn)
        def composed(state: Any, **params: Any) -> None:
            def run(more: Callable[..., None]) -> None:
                more(state, **{name: params[name] for name in parameters(more)[1:]})

            for guard in self.guards:
                run(guard)
            act.fn(state, **params)
            for effect in self.effects:
                run(effect)

        return replace(act, fn=composed)


@dataclass(frozen=True)
class Predicate:
    """An invariant (`title` says what must hold) or a witness that its premise can be reached."""

    id: str
    title: str
    fn: Callable[..., Any]
    doc: str


@dataclass(frozen=True)
class Goal:
    """From every state in which `premise` holds, a state in which `good` holds can be reached."""

    id: str
    title: str
    premise: Predicate
    good: Predicate


def _doc(fn: Callable[..., Any]) -> str:
    doc = inspect.getdoc(fn)
    if not doc:
        raise SpecError(f"{fn.__name__} needs a sentence that says what it does", source_of(fn))
    return doc


def call_text(action: str, args: Mapping[str, object]) -> str:
    """`on_prepare(r=1, o=2)`."""
    return f"{action}({', '.join(f'{name}={value}' for name, value in args.items())})"


def action(fn: Callable[..., None]) -> Action:
    """Declare an action: a function of the state, whose other parameters are annotated with their sorts. The parameter
    `r`, if any, is the acting replica.
    """
    _, *names = inspect.signature(fn).parameters
    sorts = evaluated({name: fn.__annotations__.get(name) for name in names})
    for name, sort in sorts.items():
        if not isinstance(sort, Sort):
            raise SpecError(f"parameter {name} of {fn.__name__} has to be annotated with its sort", source_of(fn))
    params = tuple(Param(name, sort) for name, sort in sorts.items())
    return Action(fn.__name__, fn, params, _doc(fn), "r" if "r" in sorts else None)


def tagged(*tags: str) -> Callable[[Action], Action]:
    """Say what kind of step an action is, for those who draw behaviours: `crash`."""

    def wrap(act: Action) -> Action:
        return replace(act, tags=act.tags | set(tags))

    return wrap


def invariant(id: str, title: str) -> Callable[[Callable[..., Any]], Predicate]:
    """Declare an invariant under its id (I1 …) and name."""

    def wrap(fn: Callable[..., Any]) -> Predicate:
        return Predicate(id, title, fn, _doc(fn))

    return wrap


def witness(id: str, title: str) -> Callable[[Callable[..., Any]], Predicate]:
    """Declare a state that must be reachable, so that invariant `id` is not vacuous."""
    return invariant(id, title)


@dataclass(frozen=True)
class Spec:
    """A specification for one configuration: variables, actions, invariants, witnesses, and the instance to check."""

    name: str
    schema: Schema
    cfg: Any
    actions: tuple[Action, ...]
    invariants: tuple[Predicate, ...]
    witnesses: tuple[Predicate, ...] = ()
    instance: Instance = field(default_factory=Instance)
    around: Mapping[str, Around] = field(default_factory=dict)
    """Action name → what parts put around it, whatever stands under that name."""

    def __post_init__(self) -> None:
        for kind, names in (("action", [a.name for a in self.actions]), ("invariant", [i.id for i in self.invariants])):
            twice = {n for n in names if names.count(n) > 1}
            if twice:
                raise SpecError(f"{kind} {sorted(twice)} is defined twice")

    def action(self, name: str) -> Action:
        """The action of that name."""
        for candidate in self.actions:
            if candidate.name == name:
                return candidate
        raise SpecError(f"no action {name}; there are {', '.join(a.name for a in self.actions)}")

    @cached_property
    def action_irs(self) -> tuple[ActionIR, ...]:
        """All actions, recorded."""
        return tuple(record_action(a.name, a.fn, a.params, self.schema, self.cfg, a.doc) for a in self.actions)

    @cached_property
    def invariant_irs(self) -> tuple[PredicateIR, ...]:
        """All invariants, recorded."""
        return tuple(self._predicate(p) for p in self.invariants)

    @cached_property
    def witness_irs(self) -> tuple[PredicateIR, ...]:
        """All witnesses, recorded."""
        return tuple(self._predicate(p) for p in self.witnesses)

    def _predicate(self, p: Predicate) -> PredicateIR:
        return record_predicate(p.id, p.title, p.fn, self.schema, self.cfg, p.doc)

    def ir(self, name: str) -> ActionIR:
        """The recorded action of that name."""
        for candidate in self.action_irs:
            if candidate.name == name:
                return candidate
        raise SpecError(f"no action {name}")

    def with_actions(self, replaced: Mapping[str, Action], added: Iterable[Action] = ()) -> Spec:
        """A variant: some actions replaced under their own name, some added. What parts put around an action stays."""
        for name in replaced:
            self.action(name)
        changed = {name: self.in_place_of(name, act) for name, act in replaced.items()}
        return replace(self, actions=(*(changed.get(a.name, a) for a in self.actions), *added))

    def with_stand_ins(self, added: Iterable[tuple[str, Action]]) -> Spec:
        """A variant with actions beside those that they may stand in for, each with what parts put around that one."""
        return self.with_actions({}, [self.in_place_of(name, act) for name, act in added])

    def in_place_of(self, name: str, act: Action) -> Action:
        """An action that stands in for another one, with all that parts put around that."""
        return self.around[name].put(act) if name in self.around else act
