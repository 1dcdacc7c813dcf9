"""Numbers of a configuration that compiled code takes as data: one program serves all that differ in them alone.

A `Given` stands in for the number while a specification is recorded. It is an expression, so it goes where a number
that is written out goes; whatever would compute or decide with it in Python is refused, as with any other expression,
but for two questions: whether it is 0, which is a matter of the kind, and whether it is itself, which configurations
are asked when they are compared (field by field, since Python 3.13).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from viewproof.spec.lang.expr import Expr


@dataclass(frozen=True, eq=False, slots=True)
class Given(Expr):
    """A number above 0, known when the code runs; there is one object of each name (`given`)."""

    name: str

    def key(self) -> tuple[Any, ...]:
        return ("given", self.name)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> Any:
        return other is self or (False if _is_zero(other) else Expr.__eq__(self, other))

    def __ne__(self, other: object) -> Any:
        return other is not self and (True if _is_zero(other) else Expr.__ne__(self, other))

    def __gt__(self, other: Any) -> Any:
        return True if _is_zero(other) else Expr.__gt__(self, other)

    def __lt__(self, other: Any) -> Any:
        return False if _is_zero(other) else Expr.__lt__(self, other)

    __hash__ = Expr.__hash__


def _is_zero(other: object) -> bool:
    return isinstance(other, int) and other == 0


@lru_cache(maxsize=1 << 10)
def given(name: str) -> Given:
    """The number of that name."""
    return Given(name)
