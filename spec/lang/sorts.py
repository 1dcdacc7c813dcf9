"""Index sorts, value types and instances.

A *sort* is a set of indices `lo, lo+1, …`, declared as a class that also types its members for mypy and editors
(`terms`). An *instance* says how far each sort reaches: an int (bounded) or None (unbounded, as in the audit of a
trace). A *value type* is the declared range of a variable: a lower bound and an upper bound that may follow a sort
(`optional(View)` reads "0 .. largest view + 1").
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.kinds import BOOLEAN, INDEX, LABELLED, NUMBER, Kind, optional_of


class Constant(int):
    """A number that is written out and has a kind: a label, or NONE."""

    kind: Kind

    def __new__(cls, value: int, kind: Kind) -> Constant:
        self = super().__new__(cls, value)
        self.kind = kind
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Constant, (int(self), self.kind)


class Sort(type):
    """A named index set; `lo` is its smallest member; it ends where the sort `ends_with` ends, if given.

    `class Op(Index, lo=1)` declares one, `Sort("Op", lo=1)` makes one without types. A sort that ends with another is
    of its kind: a Length is an op, or 0. Upper-case annotations in the body are its labels, numbered from 0.
    """

    lo: int
    ends_with: str
    name: str
    labels: tuple[str, ...]
    kind: Kind

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...] = (),
        namespace: Mapping[str, Any] | None = None,
        *,
        lo: int = 0,
        ends_with: str = "",
    ) -> Sort:
        return super().__new__(mcs, name, bases, dict(namespace or {}))

    def __init__(
        cls,
        name: str,
        bases: tuple[type, ...] = (),
        namespace: Mapping[str, Any] | None = None,
        *,
        lo: int = 0,
        ends_with: str = "",
    ) -> None:
        super().__init__(name, bases, dict(namespace or {}))
        cls.name, cls.lo, cls.ends_with = name, lo, ends_with
        written = [label for label in inspect.get_annotations(cls) if label.isupper()]
        cls.labels = tuple(label.lower() for label in written)
        cls.kind = Kind(ends_with or name, LABELLED if written else INDEX)
        for number, label in enumerate(written):
            setattr(cls, label, Constant(number, cls.kind))

    def text(cls, label: Any) -> str:
        """How a label is shown."""
        return cls.labels[int(label)]

    def __eq__(cls, other: object) -> bool:
        return cls is other or (
            isinstance(other, Sort) and (cls.name, cls.lo, cls.ends_with) == (other.name, other.lo, other.ends_with)
        )

    def __hash__(cls) -> int:
        return hash((cls.name, cls.lo, cls.ends_with))

    def __repr__(cls) -> str:
        return cls.name


@dataclass(frozen=True, slots=True)
class Values:
    """Declared range of a variable: lo .. hi, where hi is `sort`'s largest member + `plus`, or `hi` if no sort."""

    lo: int
    hi: int = 0
    sort: Sort | None = None
    plus: int = 0
    labels: tuple[str, ...] = ()
    is_bool: bool = False
    kind: Kind = NUMBER

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


BOOL = Values(0, 1, is_bool=True, kind=BOOLEAN)


def up_to(sort: type, *, lo: int = 0) -> Values:
    """Values lo .. largest member of sort."""
    of = cast(Sort, sort)
    return Values(lo, sort=of, kind=of.kind)


def optional(sort: type) -> Values:
    """A member of the sort, or none: 0 is none, 1 + v is v (`some`, `NONE`, `value_of`)."""
    of = cast(Sort, sort)
    return Values(0, sort=of, plus=1, kind=optional_of(of.kind))


def number_to(sort: type, *, lo: int = 0, plus: int = 0) -> Values:
    """Numbers lo .. largest member of sort + plus."""
    return Values(lo, sort=cast(Sort, sort), plus=plus)


def one_of(sort: type) -> Values:
    """The labels of a sort."""
    of = cast(Sort, sort)
    return Values(0, len(of.labels) - 1, labels=of.labels, kind=of.kind)


@dataclass(frozen=True)
class Instance:
    """How far each sort reaches: its largest member. A sort missing from `bounds` is unbounded."""

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
