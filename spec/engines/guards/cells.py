"""Cells as an evaluator reads them: a number, or a span of numbers where it is not known which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from viewproof.spec.lang.concrete import Index, State, outside
from viewproof.spec.lang.errors import RangeError, SpecError
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.sorts import Instance


@dataclass(frozen=True, slots=True)
class Span:
    """Some number from lo to hi (None: no bound). A Boolean that is not known is the span 0 .. 1."""

    lo: int | None = None
    hi: int | None = None


Value = int | Span
Truth = bool | None
"""True, False, or None: open."""


def ends(value: Value) -> tuple[int | None, int | None]:
    """Smallest and largest number that the value may be."""
    return (value.lo, value.hi) if isinstance(value, Span) else (int(value), int(value))


def span(lo: int | None, hi: int | None) -> Value:
    """The number, if there is only one in the span."""
    return lo if lo is not None and lo == hi else Span(lo, hi)


def from_truth(truth: Truth) -> Value:
    """A truth value as a number."""
    return Span(0, 1) if truth is None else int(truth)


def to_truth(value: Value) -> Truth:
    """A number as a truth value."""
    return None if isinstance(value, Span) else bool(value)


def declared(var: Var, instance: Instance) -> Span:
    """All that a variable may be."""
    return Span(var.values.lo, var.values.upper(instance))


class Cells(Protocol):
    """A reader of cells."""

    def read(self, var: Var, index: Index, receiver: int | None, after: bool) -> Value:
        """Value of a cell: of the state, as `receiver` has received it, or of the state after the step."""


class StateCells:
    """The cells of a concrete state, and for a step those of the state after: all are known."""

    def __init__(self, instance: Instance, state: State, after: State | None = None) -> None:
        self.instance = instance
        self.state = state
        self.after = after

    def read(self, var: Var, index: Index, receiver: int | None, after: bool) -> Value:
        """Raises `RangeError` for an index outside the declared sorts, as the interpreter does where it is needed."""
        problem = outside(var, index, self.instance)
        if problem is not None:
            raise RangeError(problem)
        state = self.after if after else self.state
        if state is None:
            raise SpecError("this predicate compares two states; it was asked about one")
        return state.get(var, index) if receiver is None else state.get_received(var, index, receiver)
