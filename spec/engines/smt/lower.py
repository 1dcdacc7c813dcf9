"""From the recorded IR to terms over the cells of a bounded instance.

Arrays are unrolled: one cell per index. An expression becomes a value and the condition under which it has one (`ok`):
a read outside its sort, or a range that leaves it, has none. Order counts as in the interpreter: what stands behind a
false conjunct is not looked at.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from viewproof.spec.engines.smt.terms import Term, Terms
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import Binder, Const, Expr, Name, Op, Quant, Read, SortMax, Within
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.sorts import Sort

Env = Mapping[str, Term]
Place = tuple[str, tuple[int, ...]]
"""Variable and index: one cell."""


@dataclass(frozen=True, slots=True)
class Value:
    """A term, and the condition under which the expression has a value."""

    term: Term
    ok: Term


@dataclass(frozen=True, slots=True)
class Part:
    """One conjunct of a predicate: the values of the quantified names it was split by, and the Boolean.

    `premise` is true where only its last disjunct can make it true; `shape` is the same for conjuncts that differ only
    in the names' values.
    """

    names: tuple[tuple[str, int], ...]
    term: Term
    premise: Term
    shape: int


def strict(t: Terms, node: Op, args: list[Term]) -> Term:
    """An operation of which all arguments are looked at."""
    if node.op == "not":
        return t.not_(args[0])
    if node.op == "mod":
        divisor = node.args[1]
        assert isinstance(divisor, Const)
        return t.mod(args[0], divisor.value)
    a, b = args
    if node.op in ("max", "min"):
        return t.ite(t.le(a, b), b, a) if node.op == "max" else t.ite(t.le(a, b), a, b)
    if node.op == "ne":
        return t.not_(t.eq(a, b))
    if a.is_bool and node.op in ("lt", "le"):
        return t.and_((t.not_(a), b)) if node.op == "lt" else t.implies(a, b)
    return {"add": t.add, "sub": t.sub, "eq": t.eq, "lt": t.lt, "le": t.le}[node.op](a, b)


class Lowering:
    """The cells of an instance, and expressions over them."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.instance = spec.instance
        self.terms = Terms()
        self.number: dict[Place, int] = {}
        self.places: list[Place] = []
        self.after: dict[int, int] = {}
        for var in spec.schema.vars.values():
            for index in self.indices(var):
                self.number[var.name, index] = self._new(var, (var.name, index))
        for (name, index), number in list(self.number.items()):
            self.after[number] = self._new(spec.schema.vars[name], (name, index))

    def _new(self, var: Var, place: Place) -> int:
        top = var.values.upper(self.instance)
        if top is None:
            raise SpecError(f"{var.name} has no upper bound in this instance; a proof needs a bounded model")
        self.places.append(place)
        cell = self.terms.cell(var.values.lo, top, var.values.is_bool)
        return int(cell.args[0])

    def indices(self, var: Var) -> Iterator[tuple[int, ...]]:
        """All indices of a variable."""
        yield from itertools.product(*(self.instance.members(sort) for sort in var.index))

    def values_of(self, state: State, after: State | None = None) -> dict[int, int]:
        """Values of the cells in a state (and in the one after a step)."""
        found = {}
        for place, number in self.number.items():
            var = self.spec.schema.vars[place[0]]
            found[number] = int(state.get(var, place[1]))
            if after is not None:
                found[self.after[number]] = int(after.get(var, place[1]))
        return found

    def state_of(self, values: Mapping[int, int]) -> State:
        """The state with these values of its cells."""
        tables: dict[str, dict[tuple[int, ...], int]] = {}
        for (name, index), number in self.number.items():
            if values[number] != self.spec.schema.vars[name].init:
                tables.setdefault(name, {})[index] = values[number]
        return State(tables)

    def expr(self, node: Expr, env: Env) -> Value:
        """Value of an expression for given values of its names."""
        t = self.terms
        if isinstance(node, Const):
            return Value(t.const(node.value, node.is_bool), t.true)
        if isinstance(node, Name):
            return Value(env[node.name], t.true)
        if isinstance(node, SortMax):
            return Value(t.const(self._top(node.sort)), t.true)
        if isinstance(node, Read):
            return self._read(node, env)
        if isinstance(node, Within):
            value = self.expr(node.value, env)
            return Value(self.inside(node.sort, value.term), value.ok)
        if isinstance(node, Quant):
            return self._quantifier(node, env)
        assert isinstance(node, Op), node
        return self._operation(node, env)

    def _top(self, sort: Sort) -> int:
        return self.instance.members(sort).stop - 1

    def inside(self, sort: Sort, term: Term) -> Term:
        """Is the value a member of the sort?"""
        t = self.terms
        return t.and_((t.le(t.const(sort.lo), term), t.le(term, t.const(self._top(sort)))))

    def matches(self, var: Var, index: tuple[Term, ...]) -> Iterator[tuple[tuple[int, ...], Term]]:
        """The cells that an index may name, each with the condition that it does."""
        t = self.terms
        ranges = []
        for sort, term in zip(var.index, index, strict=True):
            members = self.instance.members(sort)
            ranges.append(range(max(members.start, term.lo), min(members.stop - 1, term.hi) + 1))
        for values in itertools.product(*ranges):
            cond = t.and_(t.eq(term, t.const(v)) for term, v in zip(index, values, strict=True))
            if cond is not t.false:
                yield values, cond

    def cell(self, var: Var, index: tuple[int, ...], after: bool = False) -> Term:
        """The cell of a variable."""
        number = self.number[var.name, index]
        return self.terms.cells[self.after[number] if after else number]

    def _read(self, node: Read, env: Env) -> Value:
        t = self.terms
        index = [self.expr(i, env) for i in node.index]
        ok = t.and_(i.ok for i in index)
        inside = t.and_(self.inside(s, i.term) for s, i in zip(node.var.index, index, strict=True))
        cases = [
            (cond, self.cell(node.var, values, node.after))
            for values, cond in self.matches(node.var, tuple(i.term for i in index))
        ]
        fallback = t.const(node.var.init, node.var.values.is_bool)
        return Value(t.choose(cases) if cases else fallback, t.and_((ok, inside)))

    def _operation(self, node: Op, env: Env) -> Value:
        t = self.terms
        if node.op in ("and", "or"):
            return self._in_order(node.op, (self.expr(a, env) for a in node.args))
        if node.op == "ite":
            cond, then, other = (self.expr(a, env) for a in node.args)
            return Value(
                t.ite(cond.term, then.term, other.term), t.and_((cond.ok, t.ite(cond.term, then.ok, other.ok)))
            )
        values = [self.expr(a, env) for a in node.args]
        return Value(strict(t, node, [v.term for v in values]), t.and_(v.ok for v in values))

    def _in_order(self, op: str, values: Iterator[Value]) -> Value:
        """Conjunction or disjunction from left to right, which stops at the first value that decides it."""
        t = self.terms
        terms: list[Term] = []
        oks: list[Term] = []
        for value in values:
            decided = t.not_(t.and_(terms)) if op == "and" else t.or_(terms)
            oks.append(t.or_((decided, value.ok)))
            terms.append(value.term)
            if value.term is (t.false if op == "and" else t.true):
                break
        return Value(t.and_(terms) if op == "and" else t.or_(terms), t.and_(oks))

    def members(self, binder: Binder, env: Env) -> tuple[list[tuple[int, Term]], Term]:
        """The members a binder may take, each with the condition that it is in range; and whether the range is one."""
        t = self.terms
        sort = binder.name.sort
        assert sort is not None
        lo, hi = self.expr(binder.lo, env), self.expr(binder.hi, env)
        fits = t.or_((t.lt(hi.term, lo.term), t.and_((self.inside(sort, lo.term), self.inside(sort, hi.term)))))
        found = []
        for m in self.instance.members(sort):
            cond = t.and_((t.le(lo.term, t.const(m)), t.le(t.const(m), hi.term)))
            if cond is not t.false:
                found.append((m, cond))
        return found, t.and_((lo.ok, hi.ok, fits))

    def _quantifier(self, node: Quant, env: Env) -> Value:
        t = self.terms
        members, ok = self.members(node.binder, env)
        name = node.binder.name.name
        bodies = ((cond, self.expr(node.body, {**env, name: t.const(m)})) for m, cond in members)
        if node.kind == "forall":
            result = self._in_order("and", (Value(t.implies(c, b.term), t.implies(c, b.ok)) for c, b in bodies))
            return Value(result.term, t.and_((ok, result.ok)))
        if node.kind == "exists":
            result = self._in_order("or", (Value(t.and_((c, b.term)), t.implies(c, b.ok)) for c, b in bodies))
            return Value(result.term, t.and_((ok, result.ok)))
        all_bodies = list(bodies)
        ok = t.and_((ok, *(t.implies(c, b.ok) for c, b in all_bodies)))
        if node.kind == "count":
            return Value(t.count(t.and_((c, b.term)) for c, b in all_bodies), ok)
        best = t.const(node.default)
        for cond, body in all_bodies:
            best = t.ite(t.and_((cond, t.lt(best, body.term))), body.term, best)
        return Value(best, ok)

    def split(self, node: Expr, env: Env | None = None) -> list[Part]:
        """The conjuncts of a predicate: leading foralls and conjunctions, also behind premises, are taken apart.

        A conjunct that has no value counts as false.
        """
        return [part for part in self._split(node, env or {}, (), ()) if part.term is not self.terms.true]

    def _split(self, node: Expr, env: Env, names: Any, premises: tuple[Value, ...]) -> Iterator[Part]:
        t = self.terms
        if isinstance(node, Quant) and node.kind == "forall":
            members, ok = self.members(node.binder, env)
            yield self._part(node, names, premises, Value(ok, t.true))
            label = node.binder.name.name
            for m, cond in members:
                inner = (*premises, Value(t.not_(cond), t.true))
                shown = (*names, (label.rpartition("_")[0], m))
                yield from self._split(node.body, {**env, label: t.const(m)}, shown, inner)
        elif isinstance(node, Op) and node.op == "and":
            for arg in node.args:
                yield from self._split(arg, env, names, premises)
        elif isinstance(node, Op) and node.op == "or":
            before = tuple(self.expr(a, env) for a in node.args[:-1])
            yield from self._split(node.args[-1], env, names, (*premises, *before))
        else:
            yield self._part(node, names, premises, self.expr(node, env))

    def _part(self, node: Expr, names: Any, premises: tuple[Value, ...], value: Value) -> Part:
        t = self.terms
        result = self._in_order("or", iter((*premises, value)))
        premise = t.not_(t.or_(p.term for p in premises))
        return Part(names, t.and_((result.term, result.ok)), premise, id(node))
