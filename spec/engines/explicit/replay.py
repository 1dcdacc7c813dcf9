"""Rebuilding a behaviour from action instances in the reference interpreter, which thereby validates it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from viewproof.spec.engines import interp
from viewproof.spec.engines.explicit.emit import Family, Program
from viewproof.spec.engines.explicit.result import Change, EngineError, OutOfRangeError, Step
from viewproof.spec.engines.llvm.lower import Site
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import SpecError


def family_of(program: Program, instance: int) -> Family:
    """The action that an instance number belongs to."""
    for family in program.families:
        if family.first <= instance < family.first + family.count:
            return family
    raise EngineError(f"no action instance {instance}")


def changes(spec: Spec, before: State, after: State) -> tuple[Change, ...]:
    """Cells in which two states differ, in order of declaration."""
    found: list[Change] = []
    for name, var in spec.schema.vars.items():
        cells = {*before.tables.get(name, {}), *after.tables.get(name, {})}
        for index in sorted(cells):
            old, new = before.get(var, index), after.get(var, index)
            if old != new:
                found.append(Change(name, index, old, new))
    return tuple(found)


def take(program: Program, state: State, instance: int) -> Step:
    """One step in the interpreter; it must be enabled there too."""
    family = family_of(program, instance)
    args = family.args(instance)
    action = program.spec.action(family.ir.name)
    after = interp.step(program.spec, state, action, args)
    if isinstance(after, interp.Blocked):
        where = after.source(program.spec)
        raise EngineError(f"{action.name} {args} is a step here, but interp finds guard {where} ({where.text}) false")
    return Step(action.name, args, family.ir.source, changes(program.spec, state, after), after)


def behaviour(program: Program, instances: Iterable[int]) -> list[Step]:
    """The steps of these action instances from the initial state."""
    steps: list[Step] = []
    state = State.initial()
    for number in instances:
        steps.append(take(program, state, number))
        state = steps[-1].state
    return steps


def confirm_broken(program: Program, name: str, steps: list[Step]) -> None:
    """The interpreter must find the invariant broken at (or over) the last step too."""
    spec = program.spec
    predicate = next(p for p in spec.invariants if p.id == name)
    after = steps[-1].state if steps else State.initial()
    before = steps[-2].state if len(steps) > 1 else State.initial()
    is_step = any(p.name == name for p in program.step_invariants)
    sound = interp.holds(spec, predicate, before, after) if is_step else interp.holds(spec, predicate, after)
    if sound:
        raise EngineError(f"{name} is broken here, but holds in interp after the same {len(steps)} steps")


def raise_range_error(program: Program, path: list[int], instance: int, site: int, code: int | None) -> NoReturn:
    """Raise the interpreter's own error for a step that leaves a declared range, or for a predicate after the step.

    `site` is the place in the action; `code`, if not None, that in a predicate. Interp must find it too.
    """
    spec = program.spec
    steps = behaviour(program, path if code is None else [*path, instance])
    state = steps[-1].state if steps else State.initial()
    where, owner = _range_site(program, instance, site, code)
    try:
        if code is None:
            family = family_of(program, instance)
            interp.step(spec, state, spec.action(family.ir.name), family.args(instance))
        else:
            before = steps[-2].state if len(steps) > 1 else State.initial()
            for predicate in (*spec.witnesses, *spec.invariants):
                if predicate.id == where.owner:
                    is_step = any(p.name == predicate.id for p in program.step_invariants)
                    interp.holds(spec, predicate, *((before, state) if is_step else (state,)))
    except SpecError as problem:
        text = f"{owner}: {where.source} ({where.source.text[:80]}): {problem}"
        raise OutOfRangeError(text, steps) from problem
    raise EngineError(f"{owner} leaves its range at {where.source} ({where.what}), but not in interp")


def _range_site(program: Program, instance: int, site: int, code: int | None) -> tuple[Site, str]:
    """Where in the source, and whose it is in words."""
    if code is not None:
        where = program.site(code)
        return where, f"predicate {where.owner}"
    family = family_of(program, instance)
    text = ", ".join(f"{k}={v}" for k, v in family.args(instance).items())
    return family.sites[site - 1], f"action {family.ir.name}({text})"
