"""From the recorded IR to clauses over functions: what an assumption says of any numbers, and what refutes a goal.

A *clause* is a Boolean term that holds however its holes are filled. A predicate that is assumed becomes clauses: what
it says of all members of a sort has a hole for the member; what it says of some member names it by a function of the
holes before. Sorts that the instance bounds (replicas) are unrolled. What an expression says where it has no value is
left open in assumptions (they say less), and is a goal of its own in what is to be shown (`defined`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from viewproof.spec.engines.smt.lower import strict
from viewproof.spec.engines.smt.terms import Term
from viewproof.spec.engines.smt.unbounded.terms import OpenTerms, holes
from viewproof.spec.lang.definitions import Spec, call_text
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import ActionIR, Binder, Const, Expr, Name, Op, Quant, Read, SortMax, Update, Within, walk
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.sorts import Sort

Env = Mapping[str, Term]
CLAUSES_MAX = 256
CASES_MAX = 16


@dataclass(frozen=True)
class Step:
    """An action with its arguments: those of bounded sorts are numbers, the others any."""

    ir: ActionIR
    env: dict[str, Term]
    args: dict[str, int]

    @property
    def label(self) -> str:
        """`on_prepare(r=1)`."""
        return call_text(self.ir.name, self.args)


@dataclass(frozen=True)
class Sight:
    """Which state an expression is read in: before a step, or `shifted` after it; `initial`: the first one.

    In a sight of a step that is not shifted only the reads that say so are of the state after.
    """

    step: Step | None = None
    shifted: bool = False
    initial: bool = False


BEFORE = Sight()


class Symbols:
    """Expressions as terms over functions."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.terms = OpenTerms()
        self.defined_here: dict[str, list[Term]] = {}
        self._numbers: dict[int, tuple[int, Any]] = {}

    def number(self, node: Any) -> int:
        """A number for a node, by which functions are named after it; the node is kept, so that no other gets it."""
        return self._numbers.setdefault(id(node), (len(self._numbers), node))[0]

    def is_bounded(self, sort: Sort) -> bool:
        """Does the instance bound the sort?"""
        return self.spec.instance.hi(sort) is not None

    def values(self, var: Var) -> Term:
        """The range of a variable."""
        return self.terms.range(var.values.lo, var.values.upper(self.spec.instance), var.values.is_bool)

    def member(self, function: str, sort: Sort, args: tuple[Term, ...] = (), families: tuple[str, ...] = ()) -> Term:
        """A member of an unbounded sort, named by a function."""
        return self.terms.app(function, args, families, self.terms.range(sort.lo, None))

    def expr(self, node: Expr, env: Env, sight: Sight) -> Term:
        """Value of an expression."""
        t = self.terms
        if isinstance(node, Const):
            return t.const(node.value, node.is_bool)
        if isinstance(node, Name):
            return env[node.name]
        if isinstance(node, SortMax):
            return self._top(node.sort)
        if isinstance(node, Read):
            index = tuple(self.expr(i, env, sight) for i in node.index)
            return self.read(node.var, index, sight, sight.shifted or node.after)
        if isinstance(node, Within):
            return self.inside(node.sort, self.expr(node.value, env, sight))
        if isinstance(node, Quant):
            return self._quantifier(node, env, sight)
        assert isinstance(node, Op), node
        if node.op in ("lt", "le") and isinstance(node.args[1], SortMax) and not self.is_bounded(node.args[1].sort):
            return t.true
        return self._operation(node, [self.expr(a, env, sight) for a in node.args])

    def _top(self, sort: Sort) -> Term:
        top = self.spec.instance.hi(sort)
        if top is None:
            raise SpecError(f"{sort.name} has no largest member, which the specification computes with")
        return self.terms.const(top)

    def inside(self, sort: Sort, term: Term) -> Term:
        """Is the value a member of the sort?"""
        t = self.terms
        lo = t.le(t.const(sort.lo), term)
        return t.and_((lo, t.le(term, self._top(sort)))) if self.is_bounded(sort) else lo

    def read(self, var: Var, index: tuple[Term, ...], sight: Sight, after: bool) -> Term:
        """Value of a variable."""
        if sight.initial:
            return self.terms.const(var.init, var.values.is_bool)
        found = self._before(var, index)
        if after and sight.step is not None:
            for update in sight.step.ir.updates:
                if update.var.name == var.name:
                    found = self._updated(update, sight.step, index, found)
        return found

    def _before(self, var: Var, index: tuple[Term, ...]) -> Term:
        t = self.terms
        rows = [self._row(sort, term) for sort, term in zip(var.index, index, strict=True) if self.is_bounded(sort)]
        args = tuple(term for sort, term in zip(var.index, index, strict=True) if not self.is_bounded(sort))
        families = tuple(family(sort) for sort in var.index if not self.is_bounded(sort))
        cases = []
        for row in itertools.product(*rows):
            name = var.name + "".join(f".{member}" for member, _ in row)
            if var.values.sort is not None and not var.values.plus:
                t.names_number[name] = family(var.values.sort)
            cases.append((t.and_(cond for _, cond in row), t.app(name, args, families, self.values(var))))
        return t.choose([case for case in cases if case[0] is not t.false] or cases[:1])

    def _row(self, sort: Sort, term: Term) -> list[tuple[int, Term]]:
        members = ((m, self.terms.eq(term, self.terms.const(m))) for m in self.spec.instance.members(sort))
        return [(m, cond) for m, cond in members if cond is not self.terms.false] or [(sort.lo, self.terms.false)]

    def _updated(self, update: Update, step: Step, index: tuple[Term, ...], before: Term) -> Term:
        t, env = self.terms, dict(step.env)
        bound = {b.name.name for b in update.binders}
        fixed = []
        for expr, term in zip(update.index, index, strict=True):
            if isinstance(expr, Name) and expr.name in bound and expr.name not in env:
                env[expr.name] = term
            else:
                fixed.append((expr, term))
        if not bound <= set(env):
            raise SpecError(f"an update of {update.var.name} does not say by its index which cell it is of")
        conds = [t.eq(self.expr(expr, env, BEFORE), term) for expr, term in fixed]
        conds += [self.in_range(b, env, BEFORE) for b in update.binders]
        return t.ite(t.and_(conds), self.expr(update.value, env, BEFORE), before)

    def in_range(self, binder: Binder, env: Env, sight: Sight) -> Term:
        """Is the bound name's value in its range?"""
        t, value = self.terms, env[binder.name.name]
        sort = binder.name.sort
        assert sort is not None
        conds = [self.inside(sort, value), t.le(self.expr(binder.lo, env, sight), value)]
        if not (isinstance(binder.hi, SortMax) and not self.is_bounded(binder.hi.sort)):
            conds.append(t.le(value, self.expr(binder.hi, env, sight)))
        return t.and_(conds)

    def _operation(self, node: Op, args: list[Term]) -> Term:
        t = self.terms
        if node.op in ("and", "or"):
            return t.and_(args) if node.op == "and" else t.or_(args)
        return t.ite(*args) if node.op == "ite" else strict(t, node, args)

    def members(self, binder: Binder, env: Env, sight: Sight) -> Iterator[tuple[Env, Term]]:
        """The members of a bounded sort, each with the condition that it is in the range."""
        assert binder.name.sort is not None
        for m in self.spec.instance.members(binder.name.sort):
            inner = {**env, binder.name.name: self.terms.const(m)}
            cond = self.in_range(binder, inner, sight)
            if cond is not self.terms.false:
                yield inner, cond

    def _quantifier(self, node: Quant, env: Env, sight: Sight) -> Term:
        t, sort = self.terms, node.binder.name.sort
        assert sort is not None
        if not self.is_bounded(sort):
            if node.kind == "max":
                return self._largest(node, env, sight)
            raise SpecError(f"a proof without sizes cannot do with {node.kind} over {sort.name} in this place")
        bodies = [(cond, self.expr(node.body, inner, sight)) for inner, cond in self.members(node.binder, env, sight)]
        if node.kind == "forall":
            return t.and_(t.implies(c, b) for c, b in bodies)
        if node.kind == "exists":
            return t.or_(t.and_((c, b)) for c, b in bodies)
        if node.kind == "count":
            return t.count(t.and_((c, b)) for c, b in bodies)
        default = t.const(node.default)
        return t.largest((default, *(t.ite(cond, body, default) for cond, body in bodies)))

    def _largest(self, node: Quant, env: Env, sight: Sight) -> Term:
        """The largest value over a range that ends: named by a function, and said what it is."""
        if isinstance(node.binder.hi, SortMax):
            raise SpecError(f"the largest value over all of {node.binder.name.sort} need not exist")
        t = self.terms
        names = [n for n in _free(node) if not env[n.name].is_const]
        for name in names:
            if name.sort is None:
                raise SpecError(f"{name.name} has no sort")
        families = tuple(family(n.sort) for n in names if n.sort is not None)
        fixed = {n.name: env[n.name] for n in _free(node) if env[n.name].is_const}
        state = " at first" if sight.initial else f" after {sight.step.label}" if sight.step and sight.shifted else ""
        label = f"largest {self.number(node)}{sorted((k, v.lo) for k, v in fixed.items())}{state}"
        value = t.range(node.default, None)
        if label not in self.defined_here:
            self.defined_here[label] = []
            generic = {n.name: t.hole(f"{label} {n.name}", family(n.sort)) for n in names if n.sort}
            named = t.app(label, tuple(generic[n.name] for n in names), families, value)
            inner = {**fixed, **generic}
            self.defined_here[label] = self._definition(node, named, inner, families, label, sight)
        return t.app(label, tuple(env[n.name] for n in names), families, value)

    def _definition(
        self, node: Quant, named: Term, env: Env, families: tuple[str, ...], label: str, sight: Sight
    ) -> list[Term]:
        t, name = self.terms, node.binder.name
        assert name.sort is not None
        hole = {**env, name.name: t.hole(f"{label} of", family(name.sort))}
        at = self.member(f"{label} at", name.sort, named.args[1:], families)
        there = {**env, name.name: at}
        return [
            t.implies(self.in_range(node.binder, hole, sight), t.le(self.expr(node.body, hole, sight), named)),
            t.le(t.const(node.default), named),
            t.or_((t.eq(named, t.const(node.default)), self.in_range(node.binder, there, sight))),
            t.or_((t.eq(named, t.const(node.default)), t.eq(self.expr(node.body, there, sight), named))),
        ]


def family(sort: Sort) -> str:
    """The kind of a sort's members: a length is an op."""
    return sort.ends_with or sort.name


def _free(node: Expr) -> list[Name]:
    bound = {n.binder.name.name for n in walk(node) if isinstance(n, Quant)}
    found = {n.name: n for n in walk(node) if isinstance(n, Name) and n.name not in bound}
    return [found[name] for name in sorted(found)]


class Clauses:
    """Predicates as clauses."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.terms = symbols.terms

    def of(self, node: Expr, positive: bool, env: Env, sight: Sight, owner: str) -> list[Term]:
        """Clauses that together say that the predicate is true (`positive`), or false. `owner` names its witnesses."""
        if isinstance(node, Op) and node.op == "not":
            return self.of(node.args[0], not positive, env, sight, owner)
        if isinstance(node, Op) and node.op in ("and", "or"):
            parts = [self.of(a, positive, env, sight, owner) for a in node.args]
            return self._all(parts) if (node.op == "and") == positive else self._any(parts)
        if isinstance(node, Op) and node.op in ("ite", "eq", "ne") and node.is_bool and self._speaks_of_all(node):
            return self._taken_apart(node, positive, env, sight, owner)
        if isinstance(node, Quant) and node.is_bool:
            return self._quantifier(node, positive, env, sight, owner)
        term = self.symbols.expr(node, env, sight)
        return [term if positive else self.terms.not_(term)]

    def _speaks_of_all(self, node: Expr) -> bool:
        quantifiers = (n for n in walk(node) if isinstance(n, Quant) and n.is_bool)
        return any(q.binder.name.sort and not self.symbols.is_bounded(q.binder.name.sort) for q in quantifiers)

    def _taken_apart(self, node: Op, positive: bool, env: Env, sight: Sight, owner: str) -> list[Term]:
        def of(part: Expr, sign: bool) -> list[Term]:
            return self.of(part, sign, env, sight, owner)

        if node.op == "ite":
            cond, then, other = node.args
            return self._all([
                self._any([of(cond, False), of(then, positive)]), self._any([of(cond, True), of(other, positive)])
            ])  # fmt: skip
        a, b = node.args
        same = positive == (node.op == "eq")
        return self._all([self._any([of(a, False), of(b, same)]), self._any([of(a, True), of(b, not same)])])

    def _all(self, parts: list[list[Term]]) -> list[Term]:
        found = list({c.id: c for part in parts for c in part if c is not self.terms.true}.values())
        return [self.terms.false] if self.terms.false in found else found

    def _any(self, parts: list[list[Term]]) -> list[Term]:
        chosen = [part for part in parts if part != [self.terms.false]]
        combined = list(itertools.islice(itertools.product(*chosen), CLAUSES_MAX + 1))
        if len(combined) > CLAUSES_MAX:
            raise SpecError("a disjunction of more conjunctions than a proof without sizes takes apart")
        return self._all([[self.terms.or_(literals)] for literals in combined])

    def _quantifier(self, node: Quant, positive: bool, env: Env, sight: Sight, owner: str) -> list[Term]:
        t, binder = self.terms, node.binder
        sort = binder.name.sort
        assert sort is not None
        for_all = (node.kind == "forall") == positive
        if self.symbols.is_bounded(sort):
            bodies = []
            for inner, cond in self.symbols.members(binder, env, sight):
                body = self.of(node.body, positive, inner, sight, owner)
                bodies.append(self._any([[t.not_(cond)], body]) if for_all else self._all([[cond], body]))
            return self._all(bodies) if for_all else self._any(bodies)
        name = f"{owner} {self.symbols.number(node)} {binder.name.name}"
        if for_all:
            inner = {**env, binder.name.name: t.hole(name, family(sort))}
            outside = t.not_(self.symbols.in_range(binder, inner, sight))
            return self._any([[outside], self.of(node.body, positive, inner, sight, owner)])
        before = [term for term in env.values() if term.kind == "hole"]
        families = tuple(t.holes[term.id] for term in before)
        inner = {**env, binder.name.name: self.symbols.member(f"{name} {_row(env)}", sort, tuple(before), families)}
        within = self.symbols.in_range(binder, inner, sight)
        return self._all([[within], self.of(node.body, positive, inner, sight, owner)])


def cases(terms: OpenTerms, goal: list[Term]) -> list[list[Term]]:
    """A goal taken apart: what it says one or the other of is said one at a time, in up to `CASES_MAX` cases."""
    found: list[list[Term]] = [[]]
    for term in goal:
        ways = alternatives(terms, term) if not holes(term) else [term]
        if len(ways) > 1 and len(found) * len(ways) <= CASES_MAX:
            found = [[*case, way] for case in found for way in ways]
        else:
            found = [[*case, term] for case in found]
    return [case for case in found if terms.false not in case]


def alternatives(terms: OpenTerms, term: Term) -> list[Term]:
    """The ways in which a term can be true; a comparison with a choice is a choice of comparisons."""
    if term.kind == "or":
        return [way for part in term.args for way in alternatives(terms, part)]
    if term.kind == "le":
        for position, side in enumerate(term.args):
            if side.kind == "ite":
                cond, then, other = side.args
                ways = []
                for chosen, value in ((cond, then), (terms.not_(cond), other)):
                    sides = (value, term.args[1]) if position == 0 else (term.args[0], value)
                    ways += [terms.and_((chosen, way)) for way in alternatives(terms, terms.le(*sides))]
                return ways
    return [term] if term is not terms.false else []


def _row(env: Env) -> str:
    """The numbers among the values of names: a witness is another one for each replica."""
    return ",".join(str(v.lo) for _, v in sorted(env.items()) if v.is_const)


class Goals:
    """What would refute a goal: for each of its conjuncts clauses that cannot all be true."""

    def __init__(self, clauses: Clauses) -> None:
        self.clauses = clauses
        self.symbols = clauses.symbols
        self.terms = clauses.terms

    def of(self, node: Expr, env: Env, sight: Sight) -> Iterator[list[Term]]:
        """Per conjunct of a predicate the clauses that say it is false."""
        if isinstance(node, Op) and node.op == "and":
            for arg in node.args:
                yield from self.of(arg, env, sight)
        elif isinstance(node, Quant) and node.kind == "forall":
            for inner, facts in self._each(node.binder, env, sight):
                for found in self.of(node.body, inner, sight):
                    yield [*facts, *found]
        elif isinstance(node, Op) and node.op == "or" and (split := self._splits(node)) is not None:
            others = [self.clauses.of(a, False, env, sight, "goal") for a in node.args if a is not split]
            for found in self.of(split, env, sight):
                yield [*itertools.chain(*others), *found]
        else:
            yield self.clauses.of(node, False, env, sight, "goal")

    def _splits(self, node: Op) -> Expr | None:
        def splits(a: Expr) -> bool:
            if isinstance(a, Op) and a.op == "or":
                return any(splits(b) for b in a.args)
            return (isinstance(a, Op) and a.op == "and") or (isinstance(a, Quant) and a.kind == "forall")

        return next((a for a in reversed(node.args) if splits(a)), None)

    def _each(self, binder: Binder, env: Env, sight: Sight) -> Iterator[tuple[Env, list[Term]]]:
        sort = binder.name.sort
        assert sort is not None
        if self.symbols.is_bounded(sort):
            for inner, cond in self.symbols.members(binder, env, sight):
                yield inner, [] if cond is self.terms.true else [cond]
            return
        inner = {**env, binder.name.name: self.symbols.member(f"goal {binder.name.name} of {sort.name}", sort)}
        cond = self.symbols.in_range(binder, inner, sight)
        yield inner, [] if cond is self.terms.true else [cond]

    def defined(self, node: Expr, env: Env, sight: Sight) -> Iterator[list[Term]]:
        """Per place of an expression that may have no value the clauses that say it has none, and is looked at."""
        if isinstance(node, Read):
            for part in node.index:
                yield from self.defined(part, env, sight)
            for sort, part in zip(node.var.index, node.index, strict=True):
                yield from self._unless(self.symbols.inside(sort, self.symbols.expr(part, env, sight)))
        elif isinstance(node, Op) and node.op in ("and", "or"):
            before: list[Term] = []
            for arg in node.args:
                for found in self.defined(arg, env, sight):
                    yield [*before, *found]
                before = [*before, *self.clauses.of(arg, node.op == "and", env, sight, "goal")]
        elif isinstance(node, Op) and node.op == "ite":
            yield from self.defined(node.args[0], env, sight)
            for positive, arg in ((True, node.args[1]), (False, node.args[2])):
                for found in self.defined(arg, env, sight):
                    yield [*self.clauses.of(node.args[0], positive, env, sight, "goal"), *found]
        elif isinstance(node, Quant):
            yield from self._range_defined(node.binder, env, sight)
            for inner, facts in self._each(node.binder, env, sight):
                for found in self.defined(node.body, inner, sight):
                    yield [*facts, *found]
        else:
            for child in node.children():
                yield from self.defined(child, env, sight)

    def _range_defined(self, binder: Binder, env: Env, sight: Sight) -> Iterator[list[Term]]:
        t, sort = self.terms, binder.name.sort
        assert sort is not None
        yield from self.defined(binder.lo, env, sight)
        lo = self.symbols.expr(binder.lo, env, sight)
        if isinstance(binder.hi, SortMax) and not self.symbols.is_bounded(sort):
            yield from self._unless(self.symbols.inside(sort, lo))
            return
        yield from self.defined(binder.hi, env, sight)
        hi = self.symbols.expr(binder.hi, env, sight)
        fits = t.and_((self.symbols.inside(sort, lo), self.symbols.inside(sort, hi)))
        yield from self._unless(t.or_((t.lt(hi, lo), fits)))

    def _unless(self, term: Term) -> Iterator[list[Term]]:
        if term is not self.terms.true:
            yield [self.terms.not_(term)]

    def kept_in_range(self, step: Step) -> Iterator[list[Term]]:
        """What would make a step leave a declared range, or look at what is not there."""
        before: list[Term] = []
        for guard in step.ir.guards:
            for found in self.defined(guard.cond, step.env, BEFORE):
                yield [*before, *found]
            before += self.clauses.of(guard.cond, True, step.env, BEFORE, "guard")
        for update in step.ir.updates:
            for found in self._update(update, update.binders, step.env):
                yield [*before, *found]

    def _update(self, update: Update, binders: tuple[Binder, ...], env: Env) -> Iterator[list[Term]]:
        if binders:
            yield from self._range_defined(binders[0], env, BEFORE)
            for inner, facts in self._each(binders[0], env, BEFORE):
                for found in self._update(update, binders[1:], inner):
                    yield [*facts, *found]
            return
        t, var = self.terms, update.var
        for expr in (*update.index, update.value):
            yield from self.defined(expr, env, BEFORE)
        for sort, expr in zip(var.index, update.index, strict=True):
            yield from self._unless(self.symbols.inside(sort, self.symbols.expr(expr, env, BEFORE)))
        if not var.values.is_bool:
            value, top = self.symbols.expr(update.value, env, BEFORE), var.values.upper(self.symbols.spec.instance)
            yield from self._unless(t.le(t.const(var.values.lo), value))
            if top is not None:
                yield from self._unless(t.le(value, t.const(top)))
