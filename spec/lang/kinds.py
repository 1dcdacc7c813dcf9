"""Kinds: what the value of an expression stands for, so that a replica is not compared with a view.

A *kind* is `Boolean`, `Number`, a sort (`View`), a labelled sort (`Status`) or `optional(View)`. A number that is
written out (`0`, `1`, a quorum of the configuration) has none: it fits sorts and numbers, never a label or an optional.
Kinds are compared when a specification is recorded; engines do not look at them.
"""

from __future__ import annotations

from dataclasses import dataclass

INDEX, NUMERIC, LABELLED, OPTIONAL, TRUTH = "index", "number", "label", "optional", "truth"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its name as messages show it, its role, and, of an optional, what it may hold (None: anything)."""

    name: str
    role: str
    of: Kind | None = None

    def __str__(self) -> str:
        return self.name


BOOLEAN = Kind("Boolean", TRUTH)
NUMBER = Kind("Number", NUMERIC)
ANY_OPTIONAL = Kind("optional", OPTIONAL)
"""The kind of NONE."""


def optional_of(kind: Kind) -> Kind:
    """The kind of "one of these, or none"."""
    return Kind(f"optional({kind})", OPTIONAL, kind)


def agree(a: Kind | None, b: Kind | None) -> bool:
    """May values of the two kinds be compared, or one stand where the other is expected?"""
    if a == b:
        return True
    if a is None or b is None:
        return (a or b or NUMBER).role in (INDEX, NUMERIC)
    return a.role == b.role == OPTIONAL and (a.of is None or b.of is None)


def joined(a: Kind | None, b: Kind | None) -> Kind | None:
    """The kind of a value that is of one of two kinds that agree."""
    return b if a is None or (a == ANY_OPTIONAL and b is not None) else a


def shown(kind: Kind | None) -> str:
    """The kind in a message."""
    return "a number that is written out" if kind is None else str(kind)


def advice(a: Kind | None, b: Kind | None) -> str:
    """How what does not agree is made to, if there is a word for it."""
    roles = {None if k is None else k.role for k in (a, b)}
    if OPTIONAL in roles:
        return "; some(v) and NONE make an optional, value_of(e) takes it apart"
    if roles == {INDEX, NUMERIC}:
        return "; number_of(i) makes a Number of an index, as_index(Sort, n) an index of a Number"
    if LABELLED in roles and None in roles:
        return "; use its labels"
    return ""


def sum_of(op: str, a: Kind | None, b: Kind | None) -> tuple[bool, Kind | None]:
    """Is `a op b` arithmetic that means something, and of which kind is it?

    An index may be moved by a number; the distance of two of one sort is a Number.
    """
    if any(k is not None and k.role not in (INDEX, NUMERIC) for k in (a, b)):
        return False, None
    index_a, index_b = (k is not None and k.role == INDEX for k in (a, b))
    if op == "mod":
        return True, NUMBER
    if index_a and index_b:
        return op == "sub" and a == b, NUMBER
    if index_b:
        return op == "add", b
    return True, a if index_a or b is None else b
