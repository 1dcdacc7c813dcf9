"""Terms without a size: integers have no end, and a variable is a function of its indices.

A *function* stands for a variable (or one row of it, for each replica), for a number that an action or a goal speaks
of, or for a witness. A *hole* is a number that a clause holds for whatever it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from viewproof.spec.engines.smt.terms import Term, Terms

END = 1 << 62
"""Stands for "no end" in the ranges of terms. Nothing is compared with it."""


REMAINDERS = "remainders"
"""The family of numbers whose remainder is taken: no clause has a hole for them."""


class OpenTerms(Terms):
    """Terms over functions. Arguments of a function are never choices: a choice is made outside.

    Beside the kinds of `Terms` there is max, of two or more integers: what is compared with it is compared with each.
    """

    def __init__(self) -> None:
        super().__init__(track=False)
        self.families: dict[str, tuple[str, ...]] = {}
        self.holes: dict[int, str] = {}
        self.names_number: dict[str, str] = {}
        """Variables of a replica whose value is a member of a sort: function → family of its value."""

    def app(self, function: str, args: tuple[Term, ...], families: tuple[str, ...], values: Term) -> Term:
        """Value of a function, in the range that `values` has; `families` are the kinds of its arguments."""
        for position, arg in enumerate(args):
            if arg.kind in ("ite", "max"):
                cond, then, other = self._as_choice(arg)
                before, rest = args[:position], args[position + 1 :]
                return self.ite(
                    cond,
                    self.app(function, (*before, then, *rest), families, values),
                    self.app(function, (*before, other, *rest), families, values),
                )
        self.families[function] = families
        return self._make("app", (function, *args), values.lo, values.hi, values.is_bool)

    def _as_choice(self, term: Term) -> tuple[Term, Term, Term]:
        if term.kind == "ite":
            cond, then, other = term.args
            return cond, then, other
        first: Term = term.args[0]
        rest = self.largest(term.args[1:])
        return self.le(rest, first), first, rest

    def ite(self, c: Term, a: Term, b: Term) -> Term:
        """a where c, else b; where the condition is that one is at least the other, the larger one of them."""
        if not a.is_bool and a is not b and c in (self.le(b, a), self.lt(b, a)):
            return self.largest((a, b))
        return super().ite(c, a, b)

    def largest(self, args: Iterable[Term]) -> Term:
        """The largest of some integers."""
        flat: dict[int, Term] = {p.id: p for a in args for p in (a.args if a.kind == "max" else (a,))}
        lowest = max(p.lo for p in flat.values())
        reach = [p for p in flat.values() if p.hi > lowest] or [p for p in flat.values() if p.hi == lowest][:1]
        if not any(p.lo == lowest for p in reach):
            reach.append(self.const(lowest))
        if len(reach) == 1:
            return reach[0]
        parts = tuple(sorted(reach, key=lambda p: p.id))
        return self._make("max", parts, lowest, max(p.hi for p in parts), False)

    def le(self, a: Term, b: Term) -> Term:
        """a ≤ b."""
        if a.kind == "max":
            return self.and_(self.le(part, b) for part in a.args)
        if b.kind == "max":
            return self.or_(self.le(a, part) for part in b.args)
        return super().le(a, b)

    def eq(self, a: Term, b: Term) -> Term:
        """Equality of two integers, or of two Booleans."""
        if a is not b and "max" in (a.kind, b.kind):
            return self.and_((self.le(a, b), self.le(b, a)))
        return super().eq(a, b)

    def _shift(self, a: Term, k: int) -> Term:
        if a.kind == "max":
            return self.largest(self._shift(part, k) for part in a.args)
        return super()._shift(a, k)

    def build(self, kind: str, args: Sequence[Any]) -> Term:
        """The term of that kind over new arguments, simplified."""
        return self.largest(args) if kind == "max" else super().build(kind, args)

    def range(self, lo: int, hi: int | None, is_bool: bool = False) -> Term:
        """A term of which only the range counts."""
        return self._make("range", (lo, hi), lo, END if hi is None else hi, is_bool)

    def hole(self, name: str, family: str) -> Term:
        """A number that a clause holds for whatever it is: also where it is no member of a sort of the family."""
        term = self._make("hole", (name, family), -END, END, False)
        self.holes[term.id] = family
        return term

    def mod(self, a: Term, k: int) -> Term:
        """a modulo the positive constant k: of numbers that are not known, some function with values below k.

        What is proved for any such function holds for this one; it keeps what is left within difference logic.
        """
        if a.is_const:
            return self.const(a.lo % k)
        if a.lo >= 0 and a.hi < k:
            return a
        return self.app(f"modulo {k}", (a,), (REMAINDERS,), self.range(0, k - 1))

    def fill(self, term: Term, values: Mapping[int, Term], memo: dict[int, Term]) -> Term:
        """The term with its holes filled; `memo` serves one filling."""
        found = memo.get(term.id)
        if found is None:
            args = tuple(self.fill(a, values, memo) if isinstance(a, Term) else a for a in term.args)
            if term.kind == "hole":
                found = values.get(term.id, term)
            elif term.is_const or args == term.args:
                found = term
            elif term.kind == "app":
                function = term.args[0]
                found = self.app(function, args[1:], self.families[function], term)
            else:
                found = self.build(term.kind, args)
            memo[term.id] = found
        return found


def holes(term: Term) -> list[Term]:
    """The holes of a term, in a fixed order."""
    return sorted((t for t in nodes([term]) if t.kind == "hole"), key=lambda t: t.id)


def nodes(roots: list[Term]) -> Iterator[Term]:
    """Every node below, each once, arguments first."""
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        term, left = stack.pop()
        if left:
            yield term
        elif term.id not in seen:
            seen.add(term.id)
            stack.append((term, True))
            stack.extend((part, False) for part in term.parts)


def numbers_of(terms: OpenTerms, clause: Term) -> Iterator[tuple[str, Term]]:
    """The numbers that a clause speaks of whatever fills its holes, each with its family."""
    for node in nodes([clause]):
        if node.kind == "app":
            for kind, arg in zip(terms.families[node.args[0]], node.args[1:], strict=True):
                if not holes(arg):
                    yield kind, arg
