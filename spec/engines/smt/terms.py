"""Terms over the cells of a bounded instance: hash-consed, with value ranges, simplified as they are built.

Two terms that are one object mean the same; so "this step does not touch that lemma" is an identity test. Integers
carry the range lo..hi of their possible values (Booleans 0..1). No solver is needed here; `encode` hands terms to one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_BUILDERS = {"not": "not_", "eq": "eq", "le": "le", "ite": "ite", "add": "add", "sub": "sub"}


@dataclass(eq=False, slots=True)
class Term:
    """A node: `kind` is const, cell, not, and, or, eq, le, atleast (Boolean), add, sub, ite, count (integer).

    `support` is the set of the cells it reads, as bits.
    """

    kind: str
    args: tuple[Any, ...]
    lo: int
    hi: int
    is_bool: bool
    id: int
    support: int = field(repr=False)

    @property
    def is_const(self) -> bool:
        """Is it a literal?"""
        return self.kind == "const"

    @property
    def parts(self) -> tuple[Term, ...]:
        """Direct subterms."""
        return tuple(a for a in self.args if isinstance(a, Term))


class Terms:
    """Builds terms. One table per proof; terms of different tables must not meet.

    Without `track`, no supports are kept: for long chains of cells, where nothing is replaced.
    """

    def __init__(self, *, track: bool = True) -> None:
        self.track = track
        self._table: dict[tuple[Any, ...], Term] = {}
        self._memo: dict[tuple[Any, ...], Term] = {}
        self.cells: list[Term] = []
        self.true = self._make("const", (1,), 1, 1, True)
        self.false = self._make("const", (0,), 0, 0, True)

    def _make(self, kind: str, args: tuple[Any, ...], lo: int, hi: int, is_bool: bool) -> Term:
        key = (kind, is_bool, *(a.id if isinstance(a, Term) else ("k", a) for a in args))
        found = self._table.get(key)
        if found is None:
            support = 0
            for a in args if self.track else ():
                if isinstance(a, Term):
                    support |= a.support
            found = self._table[key] = Term(kind, args, lo, hi, is_bool, len(self._table), support)
        return found

    def cell(self, lo: int, hi: int, is_bool: bool) -> Term:
        """A new unknown with values lo..hi."""
        number = len(self.cells)
        term = self._make("cell", (number,), lo, hi, is_bool)
        term.support = 1 << number if self.track else 0
        self.cells.append(term)
        return term

    def const(self, value: int, is_bool: bool = False) -> Term:
        """A literal."""
        if is_bool:
            return self.true if value else self.false
        return self._make("const", (value,), value, value, False)

    def not_(self, a: Term) -> Term:
        """Negation."""
        if a.is_const:
            return self.false if a.lo else self.true
        if a.kind == "not":
            inner: Term = a.args[0]
            return inner
        return self._make("not", (a,), 0, 1, True)

    def and_(self, args: Iterable[Term]) -> Term:
        """Conjunction."""
        return self._junction("and", self.true, self.false, args)

    def or_(self, args: Iterable[Term]) -> Term:
        """Disjunction."""
        return self._junction("or", self.false, self.true, args)

    def _junction(self, kind: str, unit: Term, zero: Term, args: Iterable[Term]) -> Term:
        seen: dict[int, Term] = {}
        stack = list(args)[::-1]
        while stack:
            a = stack.pop()
            if a is zero:
                return zero
            if a is unit:
                continue
            if a.kind == kind:
                stack.extend(reversed(a.args))
            else:
                seen[a.id] = a
        for a in seen.values():
            if a.kind == "not" and a.args[0].id in seen:
                return zero
        self._absorb(kind, seen)
        if not seen:
            return unit
        if len(seen) == 1:
            return next(iter(seen.values()))
        return self._make(kind, tuple(seen[i] for i in sorted(seen)), 0, 1, True)

    def _absorb(self, kind: str, seen: dict[int, Term]) -> None:
        """Drop x ∨ y where x stands beside it in a conjunction, and dually."""
        dual = "or" if kind == "and" else "and"
        for i, a in list(seen.items()):
            if a.kind == dual and any(p.id in seen and p.id != i for p in a.args):
                del seen[i]

    def implies(self, a: Term, b: Term) -> Term:
        """If a then b."""
        return self.or_((self.not_(a), b))

    def ite(self, c: Term, a: Term, b: Term) -> Term:
        """a where c, else b."""
        if c.is_const:
            return a if c.lo else b
        if a is b:
            return a
        if a.is_bool:
            return self.or_((self.and_((c, a)), self.and_((self.not_(c), b))))
        if c.kind == "not":
            c, a, b = c.args[0], b, a
        return self._make("ite", (c, a, b), min(a.lo, b.lo), max(a.hi, b.hi), False)

    def _known(self, op: str, a: Term, b: Term) -> Term | None:
        return self._memo.get((op, a.id, b.id))

    def eq(self, a: Term, b: Term) -> Term:
        """Equality of two integers, or of two Booleans."""
        if a is b:
            return self.true
        if a.is_bool:
            if a.is_const or b.is_const:
                constant, other = (a, b) if a.is_const else (b, a)
                return other if constant.lo else self.not_(other)
            return self.or_((self.and_((a, b)), self.and_((self.not_(a), self.not_(b)))))
        if a.hi < b.lo or b.hi < a.lo:
            return self.false
        if b.is_const:
            a, b = b, a
        if a.is_const:
            return self.true if b.is_const else self._compare_constant("eq", a, b, True)
        a, b = (a, b) if a.id < b.id else (b, a)
        return self._make("eq", (a, b), 0, 1, True)

    def le(self, a: Term, b: Term) -> Term:
        """a ≤ b."""
        if a is b or a.hi <= b.lo:
            return self.true
        if a.lo > b.hi:
            return self.false
        if a.is_const:
            return self._compare_constant("le", a, b, True)
        if b.is_const:
            return self._compare_constant("le", b, a, False)
        return self._make("le", (a, b), 0, 1, True)

    def lt(self, a: Term, b: Term) -> Term:
        """a < b."""
        return self.not_(self.le(b, a))

    def _compare_constant(self, op: str, constant: Term, other: Term, left: bool) -> Term:
        """Constant against an integer; the comparison moves into the branches of a choice."""
        key = (op, left, constant.id, other.id)
        found = self._memo.get(key)
        if found is not None:
            return found
        k = constant.lo
        compare = self.eq if op == "eq" else self.le
        if other.kind == "ite":
            c, x, y = other.args
            left_x, left_y = ((constant, x), (constant, y)) if left else ((x, constant), (y, constant))
            result = self.ite(c, compare(*left_x), compare(*left_y))
        elif other.kind == "add" and other.args[1].is_const:
            shifted = self.const(k - other.args[1].lo)
            result = compare(shifted, other.args[0]) if left else compare(other.args[0], shifted)
        elif other.kind == "count":
            result = self._count_against(op, k, other, left)
        elif op == "le":
            result = self._bound(k, other, left)
        else:
            result = self._make("eq", (constant, other), 0, 1, True)
        self._memo[key] = result
        return result

    def _bound(self, k: int, other: Term, left: bool) -> Term:
        """k ≤ other, or other ≤ k, in one normal form: other ≤ k."""
        if left:
            return self.not_(self._bound(k - 1, other, False))
        if k == other.lo:
            return self.eq(self.const(k), other)
        if k == other.hi - 1:
            return self.not_(self.eq(self.const(other.hi), other))
        return self._make("le", (other, self.const(k)), 0, 1, True)

    def _count_against(self, op: str, k: int, count: Term, left: bool) -> Term:
        if op == "eq":
            return self.and_((self.atleast(k, count.args), self.not_(self.atleast(k + 1, count.args))))
        return self.atleast(k, count.args) if left else self.not_(self.atleast(k + 1, count.args))

    def atleast(self, k: int, args: Iterable[Term]) -> Term:
        """Are at least k of the Booleans true?"""
        open_args = [a for a in args if a is not self.false]
        k -= sum(1 for a in open_args if a is self.true)
        open_args = [a for a in open_args if a is not self.true]
        if k <= 0:
            return self.true
        if k > len(open_args):
            return self.false
        if k == 1:
            return self.or_(open_args)
        if k == len(open_args):
            return self.and_(open_args)
        return self._make("atleast", (k, *sorted(open_args, key=lambda a: a.id)), 0, 1, True)

    def count(self, args: Iterable[Term]) -> Term:
        """How many of the Booleans are true?"""
        known, open_args = 0, []
        for a in args:
            if a is self.true:
                known += 1
            elif a is not self.false:
                open_args.append(a)
        if not open_args:
            return self.const(known)
        total = self._make("count", tuple(sorted(open_args, key=lambda a: a.id)), 0, len(open_args), False)
        return self.add(total, self.const(known))

    def add(self, a: Term, b: Term) -> Term:
        """a + b."""
        if a.is_const:
            a, b = b, a
        if a.is_const:
            return self.const(a.lo + b.lo)
        if b.is_const:
            return self._shift(a, b.lo)
        return self._make("add", (a, b), a.lo + b.lo, a.hi + b.hi, False)

    def _shift(self, a: Term, k: int) -> Term:
        if k == 0:
            return a
        if a.is_const:
            return self.const(a.lo + k)
        key = ("shift", a.id, k)
        found = self._memo.get(key)
        if found is None:
            if a.kind == "ite":
                found = self.ite(a.args[0], self._shift(a.args[1], k), self._shift(a.args[2], k))
            elif a.kind == "add" and a.args[1].is_const:
                found = self._shift(a.args[0], a.args[1].lo + k)
            else:
                found = self._make("add", (a, self.const(k)), a.lo + k, a.hi + k, False)
            self._memo[key] = found
        return found

    def sub(self, a: Term, b: Term) -> Term:
        """a - b."""
        if b.is_const:
            return self.add(a, self.const(-b.lo))
        return self._make("sub", (a, b), a.lo - b.hi, a.hi - b.lo, False)

    def choose(self, cases: Sequence[tuple[Term, Term]]) -> Term:
        """The value of the first case whose condition holds; the last one's is taken to hold."""
        result = cases[-1][1]
        for cond, value in reversed(cases[:-1]):
            result = self.ite(cond, value, result)
        return result

    def mod(self, a: Term, k: int) -> Term:
        """a modulo the positive constant k."""
        if a.lo >= 0 and a.hi < k:
            return a
        values = range(a.lo, a.hi + 1)
        return self.choose([(self.eq(a, self.const(v)), self.const(v % k)) for v in values])

    def build(self, kind: str, args: Sequence[Any]) -> Term:
        """The term of that kind over new arguments, simplified."""
        if kind in ("and", "or", "count"):
            return {"and": self.and_, "or": self.or_, "count": self.count}[kind](args)
        if kind == "atleast":
            return self.atleast(args[0], args[1:])
        make: Callable[..., Term] = getattr(self, _BUILDERS[kind])
        return make(*args)

    def substitute(self, term: Term, new: Mapping[int, Term], mask: int, memo: dict[int, Term]) -> Term:
        """The term with cells replaced; `mask` has the bits of the replaced cells, `memo` serves one replacement."""
        if not term.support & mask:
            return term
        found = memo.get(term.id)
        if found is None:
            if term.kind == "cell":
                found = new[term.args[0]]
            else:
                args = [self.substitute(a, new, mask, memo) if isinstance(a, Term) else a for a in term.args]
                found = self.build(term.kind, args)
            memo[term.id] = found
        return found


def rebuild(target: Terms, term: Term, new: Mapping[int, Term], memo: dict[int, Term]) -> Term:
    """The term in another table, with its cells replaced by terms of that table; `memo` serves one replacement."""
    found = memo.get(term.id)
    if found is None:
        if term.kind == "cell":
            found = new[term.args[0]]
        elif term.is_const:
            found = target.const(term.lo, term.is_bool)
        else:
            found = target.build(
                term.kind, [rebuild(target, a, new, memo) if isinstance(a, Term) else a for a in term.args]
            )
        memo[term.id] = found
    return found


def evaluate(term: Term, values: Mapping[int, int], memo: dict[int, int] | None = None) -> int:
    """Value of a term for given values of its cells (by number)."""
    memo = {} if memo is None else memo
    found = memo.get(term.id)
    if found is None:
        kind, args = term.kind, term.args
        if kind in ("const", "cell"):
            found = args[0] if kind == "const" else values[args[0]]
        elif kind == "ite":
            found = evaluate(args[1] if evaluate(args[0], values, memo) else args[2], values, memo)
        elif kind == "and":
            found = int(all(evaluate(a, values, memo) for a in args))
        elif kind == "or":
            found = int(any(evaluate(a, values, memo) for a in args))
        else:
            found = _apply(kind, args, [evaluate(a, values, memo) for a in term.parts])
        memo[term.id] = found
    return found


def _apply(kind: str, args: tuple[Any, ...], values: list[int]) -> int:
    if kind == "count":
        return sum(values)
    if kind == "atleast":
        return int(sum(values) >= args[0])
    if kind == "not":
        return 1 - values[0]
    a, b = values
    return {"eq": int(a == b), "le": int(a <= b), "add": a + b, "sub": a - b}[kind]
