"""Parts: a specification put together from a core and optional parts, each of which owns all that is its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewproof.spec.lang.definitions import Action, Around, Predicate, Spec
from viewproof.spec.lang.errors import SpecError, source_of
from viewproof.spec.lang.points import Point, parameters, require_parameters
from viewproof.spec.lang.schema import Schema
from viewproof.spec.lang.sorts import Instance
from viewproof.spec.lang.state import State, declare, require_promised


@dataclass(frozen=True)
class Change:
    """What a part does to something that is not its own: made by `at`, `before`, `after` or `replaces`."""

    kind: str
    target: Any
    fn: Any


def at(target: Point[..., Any], more: Callable[..., Any]) -> Change:
    """Run `more` at a point, after its body."""
    require_parameters(more, parameters(target.fn), target.__name__)
    return Change("at", target, more)


def before(target: Action, guard: Callable[..., None]) -> Change:
    """Put guards before those of an action, and of whatever stands in for it."""
    return Change("before", target, guard)


def after(target: Action, effect: Callable[..., None]) -> Change:
    """Put effects after those of an action, and of whatever stands in for it."""
    return Change("after", target, effect)


def replaces(old: Any, new: Any) -> Change:
    """Put an action, an invariant or the body of a point in place of another one. What parts added to that stays."""
    if isinstance(old, Point):
        if parameters(new) != parameters(old.fn):
            raise SpecError(f"{old.__name__} takes {', '.join(parameters(old.fn))}", source_of(new))
    elif type(new) is not type(old) or _name(new) != _name(old):
        raise SpecError(f"{_name(new)} cannot stand in for {_name(old)}", source_of(new.fn))
    return Change("replaces", old, new)


def _name(declared: Action | Predicate) -> str:
    return declared.name if isinstance(declared, Action) else declared.id


def _nothing(cfg: Any) -> tuple[Any, ...]:
    return ()


@dataclass(frozen=True)
class Part:
    """One part of a specification. `is_on` reads the configuration, as all else that depends on it.

    `state` are the classes that declare its variables and messages; `declare` adds those that follow from what others
    declared. `changes` are made to other parts, `removes` names actions that make no sense with this one. `lemmas` are
    what a proof needs; `untrue` are the ids of those of other parts that do not hold with this one, in an instance with
    crashes or without. `needs` are witnesses that are out of reach without the actions of a tag.
    `faults` are known mistakes in what is the part's own.

    Of finite models: `models` by name, as the protocol has them; `sizes` are those sizes that are its own, each with
    what the configuration lacks for it ("" for nothing). With the part on, `fit` is the configuration at a size, and
    `ranges` are the indices that the part adds then.
    """

    name: str
    is_on: Callable[[Any], bool]
    state: Callable[[Any], tuple[type[State], ...]] = _nothing
    declare: Callable[[Schema, Any], None] = lambda schema, cfg: None
    actions: Callable[[Any], tuple[Action, ...]] = _nothing
    changes: Callable[[Any], tuple[Change, ...]] = _nothing
    removes: Callable[[Any], tuple[str, ...]] = _nothing
    invariants: Callable[[Any], tuple[Predicate, ...]] = _nothing
    witnesses: Callable[[Any], tuple[Predicate, ...]] = _nothing
    lemmas: Callable[[Any], tuple[Predicate, ...]] = _nothing
    untrue: Callable[[Any, bool], Collection[str]] = lambda cfg, crashes: ()
    needs: Mapping[str, Collection[Predicate]] = field(default_factory=dict)
    faults: tuple[Any, ...] = ()
    models: Mapping[str, Any] = field(default_factory=dict)
    sizes: Callable[[Any], Mapping[str, str]] = lambda cfg: {}
    fit: Callable[[Any, Any], Any] = lambda cfg, bounds: cfg
    ranges: Callable[[Any, Any], Mapping[str, int]] = lambda cfg, bounds: {}


@dataclass
class Composition:
    """What the parts make together; `around` says what to put around each action, by name."""

    schema: Schema = field(default_factory=Schema)
    actions: dict[str, Action] = field(default_factory=dict)
    invariants: dict[str, Predicate] = field(default_factory=dict)
    witnesses: list[Predicate] = field(default_factory=list)
    around: dict[str, Around] = field(default_factory=dict)
    needs: list[tuple[str, Predicate]] = field(default_factory=list)
    _removed: set[str] = field(default_factory=set)

    def add(self, part: Part, cfg: Any) -> None:
        """Add a part that is on; those that it changes come before it."""
        self.schema.part = part.name
        for body in part.state(cfg):
            declare(self.schema, body, cfg)
        part.declare(self.schema, cfg)
        for name in part.removes(cfg):
            self._removed.add(name)
            self.actions.pop(name, None)
        for change in part.changes(cfg):
            self._change(part, change)
        for act in part.actions(cfg):
            self._new(part, self.actions, act.name, act)
        for predicate in part.invariants(cfg):
            self._new(part, self.invariants, predicate.id, predicate)
        self.witnesses.extend(part.witnesses(cfg))
        self.needs += [(tag, witness) for tag, witnesses in part.needs.items() for witness in witnesses]

    def spec(
        self,
        name: str,
        cfg: Any,
        instance: Instance,
        *,
        without: Collection[str] = (),
    ) -> Spec:
        """The specification of an instance, without the actions that have one of these tags, and the witnesses that
        need them.
        """
        kept = [act for act in self.actions.values() if not act.tags & set(without)]
        actions = tuple(self.around[a.name].put(a) if a.name in self.around else a for a in kept)
        unreachable = [witness for tag, witness in self.needs if tag in without]
        witnesses = tuple(w for w in self.witnesses if w not in unreachable)
        invariants = tuple(self.invariants.values())
        return Spec(name, self.schema, cfg, actions, invariants, witnesses, instance, self.around)

    def _new(self, part: Part, known: dict[str, Any], name: str, declared: Any) -> None:
        if name in known:
            raise SpecError(f"{part.name}: there is a {name}; say that it is replaced", source_of(declared.fn))
        known[name] = declared

    def _change(self, part: Part, change: Change) -> None:
        target, fn = change.target, change.fn
        if isinstance(target, Point):
            self._at_point(part, change)
        elif change.kind == "replaces":
            known: dict[str, Any] = self.actions if isinstance(target, Action) else self.invariants
            name = _name(target)
            if name in self._removed and name not in known:
                return
            if known.get(name) is not target:
                raise SpecError(f"{part.name} replaces a {name} that is not there", source_of(fn.fn))
            known[name] = fn
        elif target.name in self.actions or target.name in self._removed:
            there = self.around.get(target.name, Around())
            more = (fn,)
            guards, effects = (more, ()) if change.kind == "before" else ((), more)
            self.around[target.name] = Around((*there.guards, *guards), (*there.effects, *effects))
        else:
            raise SpecError(f"{part.name} adds to {target.name}, which is not there", source_of(fn))

    def _at_point(self, part: Part, change: Change) -> None:
        if change.kind == "at":
            self.schema.added[change.target] = (*self.schema.added.get(change.target, ()), change.fn)
            return
        if change.target in self.schema.replaced:
            raise SpecError(
                f"{part.name} replaces {change.target.__name__}, as another part does", source_of(change.fn)
            )
        self.schema.replaced[change.target] = change.fn


def compose(parts: Iterable[Part], cfg: Any) -> Composition:
    """Put together the parts that are on, in the order given."""
    made = Composition()
    for part in parts:
        if part.is_on(cfg):
            made.add(part, cfg)
    require_promised(made.schema)
    return made
