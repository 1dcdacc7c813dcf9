"""Named actions, invariants and witnesses, and the specification that collects them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from viewproof.spec.lang.errors import Source, SpecError, _short
from viewproof.spec.lang.expr import ActionIR, Param, PredicateIR
from viewproof.spec.lang.record import record_action, record_predicate
from viewproof.spec.lang.schema import Schema
from viewproof.spec.lang.sorts import Instance, Sort


def source_of(fn: Callable[..., Any]) -> Source:
    """File and line of a specification function."""
    code = fn.__code__
    return Source(_short(code.co_filename), code.co_firstlineno, fn.__name__)


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
class Predicate:
    """An invariant (`title` says what must hold) or a witness that its premise can be reached."""

    id: str
    title: str
    fn: Callable[..., Any]
    doc: str


def _doc(fn: Callable[..., Any]) -> str:
    doc = inspect.getdoc(fn)
    if not doc:
        raise SpecError(f"{fn.__name__} needs a sentence that says what it does", source_of(fn))
    return doc


def action(**params: Sort) -> Callable[[Callable[..., None]], Action]:
    """Declare an action; keywords give each parameter its sort. The parameter `r`, if any, is the acting replica."""

    def wrap(fn: Callable[..., None]) -> Action:
        expected = list(inspect.signature(fn).parameters)[1:]
        if expected != list(params):
            raise SpecError(f"{fn.__name__} takes {expected}, declared {list(params)}", source_of(fn))
        sorted_params = tuple(Param(name, sort) for name, sort in params.items())
        return Action(fn.__name__, fn, sorted_params, _doc(fn), "r" if "r" in params else None)

    return wrap


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
        """A variant: some actions replaced under their own name, some added."""
        for name in replaced:
            self.action(name)
        actions = tuple(replaced.get(a.name, a) for a in self.actions) + tuple(added)
        return Spec(self.name, self.schema, self.cfg, actions, self.invariants, self.witnesses, self.instance)
