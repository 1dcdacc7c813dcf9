"""Index sorts, value types and instances.

A *sort* is a set of indices `lo, lo+1, …`. An *instance* says how far each sort reaches: an int (bounded) or None
(unbounded, as in the audit of a trace). A *value type* is the declared range of a variable: a lower bound and an upper
bound that may follow a sort (`up_to(View, plus=1)` reads "0 .. largest view + 1").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from viewproof.spec.lang.errors import SpecError


@dataclass(frozen=True, slots=True)
class Sort:
    """A named index set; `lo` is its smallest member; it ends where the sort `ends_with` ends, if given."""

    name: str
    lo: int = 0
    ends_with: str = ""

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Values:
    """Declared range of a variable: lo .. hi, where hi is `sort`'s largest member + `plus`, or `hi` if no sort."""

    lo: int
    hi: int = 0
    sort: Sort | None = None
    plus: int = 0
    labels: tuple[str, ...] = ()
    is_bool: bool = False

    def upper(self, instance: Instance) -> int | None:
        """Largest allowed value in this instance; None if unbounded."""
        if self.sort is None:
            return self.hi
        top = instance.hi(self.sort)
        return None if top is None else top + self.plus

    def show(self, value: int) -> str:
        """The value as a reader wants to see it."""
        if self.is_bool:
            return "true" if value else "false"
        if self.labels and 0 <= value < len(self.labels):
            return self.labels[value]
        return str(value)


BOOL = Values(0, 1, is_bool=True)


def up_to(sort: Sort, *, lo: int = 0, plus: int = 0) -> Values:
    """Values lo .. (largest member of sort) + plus."""
    return Values(lo, sort=sort, plus=plus)


def enum(*labels: str) -> Values:
    """Values 0 .. len(labels)-1, shown by their labels."""
    return Values(0, len(labels) - 1, labels=labels)


@dataclass(frozen=True)
class Instance:
    """How far each sort reaches. A sort missing from `bounds` is unbounded."""

    bounds: Mapping[str, int] = field(default_factory=dict)

    def hi(self, sort: Sort) -> int | None:
        """Largest member, None if unbounded."""
        return self.bounds.get(sort.ends_with or sort.name)

    def members(self, sort: Sort) -> range:
        """All members; an error for an unbounded sort."""
        top = self.hi(sort)
        if top is None:
            raise SpecError(f"sort {sort.name} is unbounded here: give the quantifier a range with between(lo, hi)")
        return range(sort.lo, top + 1)

    def contains(self, sort: Sort, value: int) -> bool:
        """Is value a member of the sort in this instance?"""
        top = self.hi(sort)
        return value >= sort.lo and (top is None or value <= top)
