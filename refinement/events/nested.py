"""Lines that hold lines, and those of systems that do much without a line: what `System(histories=True)` may say.

| line | meaning |
|---|---|
| `Branch` | some lines count where a condition holds, others where it does not |
| `Loop` | lines count for each member of a range, in order |
| `OneOf` | one of several histories happened |
| `Arrived` | a message has arrived, with all its fields |
| `Forget` | nothing is known of a node from here on, but what its lines show |
| `Departs` | the system did what is known not to be safe, by the name that it has |

They nest freely. Where it is not known which lines count, each way is taken by itself: one that is refused did not
happen, and cells in which the others differ are not known afterwards (`checker.histories`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from viewproof.refinement.events.lines import Line, Range
from viewproof.spec.lang.expr import Expr
from viewproof.spec.lang.schema import Var


@dataclass(frozen=True, eq=False)
class Branch(Line):
    """`then` counts where the condition holds, `other` where it does not."""

    cond: Expr
    then: tuple[Line, ...]
    other: tuple[Line, ...] = ()


@dataclass(frozen=True, eq=False)
class Loop(Line):
    """`body` counts for each member of the range, in order."""

    over: Range
    body: tuple[Line, ...]


@dataclass(frozen=True, eq=False)
class OneOf(Line):
    """One of the alternatives happened; those that are refused did not."""

    alternatives: tuple[tuple[Line, ...], ...]


@dataclass(frozen=True, eq=False)
class Arrived(Line):
    """The message with field `var[index]` was sent; `by` has it, with all its fields, from now on."""

    var: Var
    index: tuple[Expr, ...]
    by: Expr


@dataclass(frozen=True, eq=False)
class Forget(Line):
    """Nothing is known of the node from here on, but what its lines show; `cause` says why."""

    node: Expr
    cause: str


@dataclass(frozen=True, eq=False)
class Departs(Line):
    """The system did what is known not to be safe: `id` is its name among the system's departures."""

    id: str


def inner(line: Line) -> tuple[Line, ...]:
    """The lines that a line holds itself."""
    match line:
        case Branch():
            return (*line.then, *line.other)
        case Loop():
            return line.body
        case OneOf():
            return tuple(one for body in line.alternatives for one in body)
    return ()


def all_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines, and all that they hold."""
    for line in lines:
        yield line
        yield from all_lines(inner(line))
