"""Why not: for a named action in a state, the first false conjunct of its guard, nearest first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from viewproof.spec.engines import interp
from viewproof.spec.engines.story.watch import Attempt, Show, attempt, guard_text
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Action, Spec
from viewproof.spec.lang.errors import SpecError

VALUES_MAX = 12
"""Cells shown for one guard."""

_QUESTION = re.compile(r"(?P<action>\w+)(?::(?P<args>[^@]*))?@(?P<step>\d+)")


@dataclass(frozen=True)
class Question:
    """An action, the arguments that are given (the others range over all), and after how many steps it is asked."""

    action: str
    args: dict[str, int]
    step: int


@dataclass(frozen=True)
class Reason:
    """Why one instance of an action cannot be taken: guard text, its values and place; or that it can."""

    action: str
    args: dict[str, int]
    conjunct: int | None
    remaining: int
    guard: str
    values: tuple[str, ...]
    place: str
    error: str = ""

    @property
    def enabled(self) -> bool:
        """Can the step be taken?"""
        return self.conjunct is None and not self.error

    def text(self) -> str:
        """One line for a reader."""
        call = f"{self.action}({', '.join(f'{k}={v}' for k, v in self.args.items())})"
        if self.error:
            return f"{call}: its guard holds, but it leaves the bounds: {self.error}"
        if self.enabled:
            return f"{call}: enabled"
        values = f" ({', '.join(self.values)})" if self.values else ""
        return f"{call}: {self.guard} is false{values} [{self.place}]"

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        answer: dict[str, Any] = {"action": self.action, "args": self.args, "enabled": self.enabled}
        if self.error:
            return {**answer, "error": self.error}
        if self.enabled:
            return answer
        return {
            **answer,
            "conjunct": self.conjunct,
            "guard": self.guard,
            "values": list(self.values),
            "source": self.place,
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
        reason(spec, attempt(spec, state, action, args), show)
        for args in interp.instances(spec, action)
        if all(args[name] == value for name, value in fixed.items())
    ]
    return sorted(found, key=lambda r: r.remaining)


def reason(spec: Spec, tried: Attempt, show: Show) -> Reason:
    """An attempt in words."""
    conjuncts = spec.ir(tried.action.name).guards
    if tried.conjunct is None:
        return Reason(tried.action.name, tried.args, None, 0, "", (), "", tried.error)
    guard = conjuncts[tried.conjunct]
    readings = tried.guards[tried.conjunct]
    values = [reading.text(show) for reading in readings[:VALUES_MAX]]
    if len(readings) > VALUES_MAX:
        values.append(f"and {len(readings) - VALUES_MAX} more")
    return Reason(
        tried.action.name,
        tried.args,
        tried.conjunct,
        len(conjuncts) - tried.conjunct,
        guard_text(guard.source),
        tuple(values),
        str(guard.source),
    )
