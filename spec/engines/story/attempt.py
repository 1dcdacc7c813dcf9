"""Try an action in a state, or ask an invariant of it, and say what the answer stands on.

Guards and invariants are the recorded ones, evaluated by `guards`; a step that is taken is the interpreter's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from viewproof.spec.engines import interp
from viewproof.spec.engines.guards import Evaluator, Reading, Show, StateCells, Words
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Action, Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import PredicateIR


@dataclass(frozen=True)
class Attempt:
    """An action tried in a state. `conjunct`: the first false guard (None: enabled). `error`: it leaves its ranges.

    `readings`: all cells read, by the effects too if it is enabled.
    """

    action: Action
    args: dict[str, int]
    conjunct: int | None
    readings: tuple[Reading, ...]
    error: str = ""

    @property
    def enabled(self) -> bool:
        """Can the step be taken?"""
        return self.conjunct is None and not self.error


@dataclass(frozen=True)
class Judgement:
    """An invariant asked of a state or step; where it fails, the members for which it does, and the values."""

    holds: bool
    members: tuple[tuple[str, int], ...] = ()
    values: tuple[str, ...] = ()


def attempt(spec: Spec, state: State, action: Action, args: dict[str, int]) -> Attempt:
    """Try the action with these arguments in the state."""
    evaluator = Evaluator(spec.instance, StateCells(spec.instance, state))
    ir = spec.ir(action.name)
    conjunct: int | None = None
    error = ""
    try:
        conjunct, _ = evaluator.first_false(ir, args)
        if conjunct is None:
            for _ in evaluator.updates(ir, args):
                pass
    except SpecError as problem:
        error = str(problem)
    if conjunct is None:
        error = _error(spec, state, action, args) or error
    return Attempt(action, args, conjunct, _once(evaluator.readings), error)


def grounds(spec: Spec, state: State, action: str, args: dict[str, int], show: Show) -> list[tuple[str, ...]]:
    """Per guard of an action that is enabled the values it stands on."""
    words = Words(spec.instance, StateCells(spec.instance, state), show)
    return [words.because(guard.cond, args) for guard in spec.ir(action).guards]


def judge(spec: Spec, predicate: PredicateIR, show: Show, state: State, after: State | None = None) -> Judgement:
    """Ask a recorded invariant of a state (or of the step to `after`), and where it fails, for what."""
    words = Words(spec.instance, StateCells(spec.instance, state, after), show)
    if words.truth(predicate.cond, {}):
        return Judgement(True)
    return Judgement(False, tuple(words.failing(predicate.cond, {})), words.because(predicate.cond, {}))


def _error(spec: Spec, state: State, action: Action, args: dict[str, int]) -> str:
    """The interpreter's own message for a step that leaves its ranges."""
    try:
        interp.step(spec, state, action, args)
    except SpecError as problem:
        return str(problem)
    return ""


def _once(readings: Iterable[Reading]) -> tuple[Reading, ...]:
    return tuple(dict.fromkeys(readings))
