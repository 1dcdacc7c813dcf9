"""The language of the mapping tables: what an event of the log means, as lines over its fields and the spec state.

Expressions are Python text. A name followed by an index is a variable of the specification (`entry[node, op]`), a bare
name a field of the event or a value bound by `Let`; helpers are the public methods of `Bookkeeping`. Lines
are taken in order:

| line | meaning |
|---|---|
| `Eq` | the field must equal an expression |
| `Ok` | a condition must hold |
| `Do` | a step of the specification is taken; `r` is `node` unless given |
| `Let` | a name for a value |
| `If` | lines under a condition |
| `Expect` | the replica's next line that matters must be this one |
| `Took` | this line must be one that was expected; binds what was expected of it |
| `Note` | bookkeeping: a method of `Bookkeeping` is called |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Eq:
    """`field` must equal `expected`."""

    field: str
    expected: str


@dataclass(frozen=True)
class Ok:
    """`cond` must hold; `message` says what it means."""

    cond: str
    message: str


class Do:
    """Take `action`; arguments by parameter name, `r` is `node` unless given."""

    def __init__(self, action: str, /, **args: str) -> None:
        self.action = action
        self.args: Mapping[str, str] = args


@dataclass(frozen=True)
class Let:
    """`name` stands for the value of `value` in the lines that follow."""

    name: str
    value: str


class If:
    """`lines` where `cond` holds."""

    def __init__(self, cond: str, *lines: Line, otherwise: tuple[Line, ...] = ()) -> None:
        self.cond = cond
        self.lines = lines
        self.otherwise = otherwise


@dataclass(frozen=True)
class Expect:
    """A line with one of these events must come next from the replica; `value` is handed on to its `Took`."""

    events: tuple[str, ...]
    value: str = "0"


@dataclass(frozen=True)
class Took:
    """The line must have been expected: `name` is bound to the value handed on; `optional`: else to -1."""

    name: str
    optional: bool = False


@dataclass(frozen=True)
class Note:
    """Bookkeeping: the call is made on the run, `call` being a method with its arguments."""

    call: str


Line = Eq | Ok | Do | Let | If | Expect | Took | Note


class Rule:
    """What the event means."""

    def __init__(self, event: str, *lines: Line) -> None:
        self.event = event
        self.lines = lines

    @property
    def actions(self) -> tuple[str, ...]:
        """Spec actions that the event may stand for, in order."""
        return tuple(dict.fromkeys(_actions(self.lines)))


def _actions(lines: tuple[Line, ...]) -> list[str]:
    found: list[str] = []
    for line in lines:
        if isinstance(line, Do):
            found.append(line.action)
        elif isinstance(line, If):
            found += _actions(line.lines) + _actions(line.otherwise)
    return found
