"""Why not: for a named action in a state, the first false conjunct of its guard, nearest first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from viewproof.spec.engines import interp
from viewproof.spec.engines.guards import Refusal, Show, StateCells, refusal
from viewproof.spec.engines.story.attempt import Attempt, attempt
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Action, Spec, call_text
from viewproof.spec.lang.errors import SpecError

_QUESTION = re.compile(r"(?P<action>\w+)(?::(?P<args>[^@]*))?@(?P<step>\d+)")


@dataclass(frozen=True)
class Question:
    """An action, the arguments that are given (the others range over all), and after how many steps it is asked."""

    action: str
    args: dict[str, int]
    step: int


@dataclass(frozen=True)
class Reason:
    """Why one instance of an action cannot be taken (`remaining`: guards from the false one on); or that it can."""

    action: str
    args: dict[str, int]
    conjunct: int | None
    remaining: int
    refusal: Refusal | None = None
    error: str = ""

    @property
    def enabled(self) -> bool:
        """Can the step be taken?"""
        return self.conjunct is None and not self.error

    @property
    def values(self) -> tuple[str, ...]:
        """The values on which the false guard stands."""
        return () if self.refusal is None else self.refusal.values

    def text(self) -> str:
        """One line for a reader."""
        if self.refusal is not None:
            return self.refusal.text()
        call = call_text(self.action, self.args)
        if self.error:
            return f"{call}: its guard holds, but it leaves the bounds: {self.error}"
        return f"{call}: enabled"

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        answer: dict[str, Any] = {"action": self.action, "args": self.args, "enabled": self.enabled}
        if self.error:
            return {**answer, "error": self.error}
        if self.refusal is None:
            return answer
        return {
            **answer,
            "conjunct": self.conjunct,
            "guard": self.refusal.guard,
            "values": list(self.refusal.values),
            "source": self.refusal.place,
        }


def parse_question(spec: Spec, text: str) -> Question:
    """`ACTION[:name=value,…]@STEP`; an unknown action or parameter, or a value outside its sort, is an error."""
    match = _QUESTION.fullmatch(text.strip())
    if match is None:
        raise SpecError(f"why-not: {text!r} is not ACTION[:name=value,…]@STEP, such as on_commit:r=1@3")
    action = spec.action(match["action"])
    sorts = {p.name: p.sort for p in action.params}
    args: dict[str, int] = {}
    for part in filter(None, (match["args"] or "").split(",")):
        name, _, value = (x.strip() for x in part.partition("="))
        if name not in sorts:
            raise SpecError(f"why-not: {action.name} has no parameter {name}; it has {', '.join(sorts) or 'none'}")
        if not value.isdecimal() or not spec.instance.contains(sorts[name], int(value)):
            members = spec.instance.members(sorts[name])
            raise SpecError(f"why-not: {name}={value} is not one of {members.start} … {members.stop - 1}")
        args[name] = int(value)
    return Question(action.name, args, int(match["step"]))


def why_not(spec: Spec, state: State, action: Action, show: Show, given: dict[str, int] | None = None) -> list[Reason]:
    """All instances of the action that agree with the given arguments: the nearest to being enabled first."""
    fixed = given or {}
    found = [
        reason(spec, state, attempt(spec, state, action, args), show)
        for args in interp.instances(spec, action)
        if all(args[name] == value for name, value in fixed.items())
    ]
    return sorted(found, key=lambda r: r.remaining)


def reason(spec: Spec, state: State, tried: Attempt, show: Show) -> Reason:
    """An attempt in words."""
    if tried.conjunct is None:
        return Reason(tried.action.name, tried.args, None, 0, None, tried.error)
    found = refusal(spec, StateCells(spec.instance, state), tried.action.name, tried.conjunct, tried.args, show)
    remaining = len(spec.ir(tried.action.name).guards) - tried.conjunct
    return Reason(tried.action.name, tried.args, tried.conjunct, remaining, found)
