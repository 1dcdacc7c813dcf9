"""Terms of event functions beyond those of the specification: columns of the record, texts, and functions of values.

They are expressions of the specification's language, so the same sorts check them: a column has the kind of its sort.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from viewproof.spec.lang.expr import Expr, binary, lift
from viewproof.spec.lang.kinds import LABELLED, NUMBER, Kind

TEXT = Kind("Text", LABELLED)
"""The kind of a string: it can only be compared."""
TEXTS = Kind("Texts", LABELLED)


def lifted(value: Any) -> Expr:
    """A value as an expression; strings, too."""
    return Text(value) if isinstance(value, str) else lift(value)


class Textual(Expr):
    """A term that may be a string: it can be compared with one."""

    __slots__ = ()

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return binary("eq", self, lifted(other))

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return binary("ne", self, lifted(other))

    __hash__ = Expr.__hash__


@dataclass(frozen=True, eq=False, slots=True)
class Column(Textual):
    """A column of the event."""

    name: str
    denotes: Kind | None = NUMBER

    def key(self) -> tuple[Any, ...]:
        return ("column", self.name)


@dataclass(frozen=True, eq=False, slots=True)
class Text(Textual):
    """A string."""

    value: str
    denotes: Kind | None = TEXT

    def key(self) -> tuple[Any, ...]:
        return ("text", self.value)


@dataclass(frozen=True, eq=False, slots=True)
class Shown(Expr):
    """Does the event show the column?"""

    name: str
    is_bool: bool = True

    def key(self) -> tuple[Any, ...]:
        return ("shown", self.name)


@dataclass(frozen=True, eq=False, slots=True)
class Row(Expr):
    """All cells of a replica's variable, for functions that look at a range of them."""

    var: str
    node: Expr

    def key(self) -> tuple[Any, ...]:
        return ("row", self.var, self.node.key())

    def children(self) -> tuple[Expr, ...]:
        return (self.node,)


@dataclass(frozen=True, eq=False, slots=True)
class Apply(Textual):
    """A function of values: known if its arguments are. `fn` is None for those that the replays know by name."""

    name: str
    args: tuple[Expr, ...]
    fn: Callable[..., Any] | None = None
    denotes: Kind | None = NUMBER
    is_bool: bool = False

    def key(self) -> tuple[Any, ...]:
        return (self.name, *(arg.key() for arg in self.args))

    def children(self) -> tuple[Expr, ...]:
        return self.args


def first_clear(row: Mapping[int, int], top: int, base: int = 0) -> int:
    """The smallest op o in base+1 .. top+1 such that no op from o to top is set in the row (filled from below)."""
    while top > base and not row.get(top):
        top -= 1
    return top + 1


def mask(row: Mapping[int, int]) -> int:
    """Bit f-1 for each f whose cell is not 0."""
    return sum(1 << f - 1 for f, value in row.items() if value)
