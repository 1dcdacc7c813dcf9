"""A behaviour that somebody chose, step by step, in the reference interpreter; and what its states are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from viewproof.spec.engines import interp
from viewproof.spec.engines.explicit.replay import changes
from viewproof.spec.engines.explicit.result import Result, Step
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Spec, call_text
from viewproof.spec.lang.errors import SpecError


def take(spec: Spec, before: State, name: str, args: Mapping[str, int], *, number: int) -> Step:
    """The step `number` of a behaviour. Raises `SpecError` for an unknown action or argument, a value outside its
    sort, a guard that is false, and for a step that leaves a declared range.
    """
    action = spec.action(name)
    sorts = {p.name: p.sort for p in action.params}
    call = f"step {number}, {call_text(name, args)}"
    if args.keys() != sorts.keys():
        raise SpecError(f"{call}: {name} takes {', '.join(sorts) or 'no arguments'}")
    for key, value in args.items():
        if not isinstance(value, int) or not spec.instance.contains(sorts[key], value):
            members = spec.instance.members(sorts[key])
            raise SpecError(f"{call}: {key} is one of {members.start} … {members.stop - 1}")
    after = interp.step(spec, before, action, dict(args))
    if isinstance(after, interp.Blocked):
        guard = after.source(spec)
        raise SpecError(f"{call} is not enabled: {guard.text} is false ({guard})")
    return Step(name, dict(args), spec.ir(name).source, changes(spec, before, after), after)


def judged(spec: Spec, steps: Sequence[Step], start: State | None = None) -> Result:
    """The behaviour, from the state `start` (None: the initial one), as a result: up to the first state, or step, that
    breaks an invariant.
    """
    result = Result(spec.name, "holds", invariants=[p.id for p in spec.invariants], behaviour=list(steps))
    before = start or State.initial()
    for number, after in enumerate([before, *(step.state for step in steps)]):
        if (id := first_broken(spec, before, after)) is not None:
            predicate = next(p for p in spec.invariants if p.id == id)
            result.verdict, result.broken, result.title = "violated", id, predicate.title
            result.behaviour = list(steps[:number])
            return result
        before = after
    return result


def first_broken(spec: Spec, before: State, after: State) -> str | None:
    """The id of the first invariant that the state `after`, or the step to it, breaks."""
    transitions = {p.name for p in spec.invariant_irs if p.is_transition}
    for predicate in spec.invariants:
        states = (before, after) if predicate.id in transitions else (after,)
        if not interp.holds(spec, predicate, *states):
            return predicate.id
    return None
