"""Lowering of IR expressions to statements of the subset of Python that `machine` compiles, whatever their memory is.

Every expression becomes a *term*: a text without side effects, with the interval in which its value lies. What must
stay behind a condition (a branch of `where`, the later operands of a connective) is put behind it here too. A read or
range outside its sort becomes a jump to the error exit unless the intervals prove that it cannot happen, so memory
outside the row is never touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from viewproof.spec.lang.errors import Source, SpecError
from viewproof.spec.lang.expr import Binder, Const, Expr, Name, Op, Quant, Read, SortMax, Within
from viewproof.spec.lang.sorts import Instance, Sort

INT_MAX = 1 << 62
Line = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Term:
    """Text of a value and the interval it lies in (Booleans: 0..1)."""

    text: str
    lo: int
    hi: int

    @property
    def is_atom(self) -> bool:
        """Is the text a name or a literal, free to repeat?"""
        return self.text.isidentifier() or self.text.lstrip("-").isdigit()


TRUE = Term("True", 1, 1)
FALSE = Term("False", 0, 0)


@dataclass(frozen=True, slots=True)
class Site:
    """A place where a step can leave a declared range: who, where in the source, and what."""

    owner: str
    source: Source
    what: str


def bounded(instance: Instance, sort: Sort) -> tuple[int, int]:
    """First and last member of a sort; an unbounded one is refused by name."""
    top = instance.hi(sort)
    if top is None:
        raise SpecError(f"explicit: sort {sort.name} is unbounded; this engine needs finite instances")
    return sort.lo, top


class Lower:
    """Lowers the expressions of one function; `fail(site)` is the statement that leaves it with an error."""

    def __init__(self, instance: Instance, owner: str, sites: list[Site], fail: Callable[[int], str]) -> None:
        self.instance = instance
        self.owner = owner
        self.sites = sites
        self.fail = fail
        self.source = Source("", 0, "")
        self.lines: list[Line] = []
        self.depth = 0
        self.env: dict[str, Term] = {}
        self._fresh = 0

    def fresh(self, stem: str) -> str:
        """A new local name."""
        self._fresh += 1
        return f"{stem}{self._fresh}"

    def line(self, text: str) -> None:
        """Append a statement."""
        self.lines.append((self.depth, text))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """An indented block under `head`."""
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1

    def error(self, test: str, what: str) -> None:
        """Leave with an error where `test` is true."""
        self.sites.append(Site(self.owner, self.source, what))
        with self.block(f"if {test}:"):
            self.line(self.fail(len(self.sites)))

    def atom(self, term: Term) -> Term:
        """The term under a name, so that it can be repeated."""
        if term.is_atom:
            return term
        name = self.fresh("x")
        self.line(f"{name} = {term.text}")
        return Term(name, term.lo, term.hi)

    def captured(self, expr: Expr) -> tuple[list[Line], Term]:
        """Lower into a list of its own: the statements the term needs, and the term."""
        saved, self.lines = self.lines, []
        depth, self.depth = self.depth, 0
        term = self.lower(expr)
        mine, self.lines, self.depth = self.lines, saved, depth
        return mine, term

    def paste(self, lines: Sequence[Line]) -> None:
        """Put captured statements here."""
        self.lines.extend((self.depth + depth, text) for depth, text in lines)

    def lower(self, expr: Expr) -> Term:
        """The term of an expression; statements that it needs go before."""
        if isinstance(expr, Const):
            if expr.is_bool:
                return TRUE if expr.value else FALSE
            return Term(str(expr.value), expr.value, expr.value)
        if isinstance(expr, Name):
            return self.env[expr.name]
        if isinstance(expr, SortMax):
            top = self.span(expr.sort)[1]
            return Term(str(top), top, top)
        if isinstance(expr, Read):
            return self.read(expr)
        if isinstance(expr, Within):
            lo, hi = self.span(expr.sort)
            value = self.atom(self.lower(expr.value))
            return TRUE if lo <= value.lo and value.hi <= hi else Term(f"({lo} <= {value.text} <= {hi})", 0, 1)
        if isinstance(expr, Quant):
            return self.quantifier(expr)
        if isinstance(expr, Op):
            return self.operation(expr)
        raise SpecError(f"cannot lower {type(expr).__name__}", self.source)

    def read(self, expr: Read) -> Term:
        """Value of a cell."""
        raise NotImplementedError

    def span(self, sort: Sort) -> tuple[int, int]:
        """First and last member of a sort."""
        return bounded(self.instance, sort)

    def enter(self, binder: Binder) -> str:
        """Bind a fresh name and return the head of its loop; a range outside its sort is an error."""
        sort = binder.name.sort
        assert sort is not None
        first, last = self.span(sort)
        lo, hi = self.atom(self.lower(binder.lo)), self.atom(self.lower(binder.hi))
        if (lo.lo < first or hi.hi > last) and lo.lo <= hi.hi:
            test = f"{lo.text} <= {hi.text} and ({lo.text} < {first} or {hi.text} > {last})"
            self.error(test, f"range over {sort.name}")
        name = self.fresh("i")
        self.env = {**self.env, binder.name.name: Term(name, max(lo.lo, first), min(hi.hi, last))}
        end = str(int(hi.text) + 1) if hi.text.lstrip("-").isdigit() else f"{hi.text} + 1"
        return f"for {name} in range({lo.text}, {end}):"

    def quantifier(self, expr: Quant) -> Term:
        """A loop that stops as soon as the answer is known."""
        env = self.env
        head = self.enter(expr.binder)
        span = self.env[expr.binder.name.name]
        size = max(0, span.hi - span.lo + 1)
        result = self.fresh("q")
        start = {"forall": "True", "exists": "False", "count": "0", "max": str(expr.default)}[expr.kind]
        self.line(f"{result} = {start}")
        with self.block(head):
            body = self.lower(expr.body)
            if expr.kind in ("forall", "exists"):
                with self.block(f"if {'not ' if expr.kind == 'forall' else ''}{body.text}:"):
                    self.line(f"{result} = {expr.kind == 'exists'}")
                    self.line("break")
            elif expr.kind == "count":
                with self.block(f"if {body.text}:"):
                    self.line(f"{result} += 1")
            else:
                body = self.atom(body)
                with self.block(f"if {body.text} > {result}:"):
                    self.line(f"{result} = {body.text}")
        self.env = env
        if expr.kind == "count":
            return Term(result, 0, size)
        if expr.kind == "max":
            return Term(result, expr.default, max(expr.default, body.hi))
        return Term(result, 0, 1)

    def operation(self, expr: Op) -> Term:
        """Arithmetic, comparison, connectives, choice."""
        if expr.op in ("and", "or"):
            return self.junction(expr)
        if expr.op == "ite":
            return self.choice(expr)
        if expr.op == "not":
            inner = self.lower(expr.args[0])
            return FALSE if inner.lo == 1 else TRUE if inner.hi == 0 else Term(f"(not {inner.text})", 0, 1)
        a, b = (self.lower(arg) for arg in expr.args)
        if expr.op in ("eq", "ne", "lt", "le"):
            return self.comparison(expr, a, b)
        return self.arithmetic(expr, a, b)

    def arithmetic(self, expr: Op, a: Term, b: Term) -> Term:
        """add, sub, mod, max, min with their intervals."""
        if expr.op == "add":
            term = Term(f"({a.text} + {b.text})", a.lo + b.lo, a.hi + b.hi)
        elif expr.op == "sub":
            term = Term(f"({a.text} - {b.text})", a.lo - b.hi, a.hi - b.lo)
        elif expr.op == "mod":
            if a.lo >= 0 and a.hi < b.lo:
                return a
            term = Term(f"({a.text} % {b.text})", 0, b.hi - 1)
        else:
            a, b = self.atom(a), self.atom(b)
            pick = max if expr.op == "max" else min
            term = Term(f"{expr.op}({a.text}, {b.text})", pick(a.lo, b.lo), pick(a.hi, b.hi))
        if max(abs(term.lo), abs(term.hi)) > INT_MAX:
            raise SpecError("a number does not fit 64 bits", self.source)
        return Term(str(term.lo), term.lo, term.lo) if term.lo == term.hi else term

    def comparison(self, expr: Op, a: Term, b: Term) -> Term:
        """eq, ne, lt, le; decided here where the intervals decide it."""
        if expr.op in ("eq", "ne"):
            same = expr.op == "eq"
            if a.hi < b.lo or b.hi < a.lo:
                return FALSE if same else TRUE
            if a.lo == a.hi == b.lo == b.hi:
                return TRUE if same else FALSE
            return Term(f"({a.text} {'==' if same else '!='} {b.text})", 0, 1)
        strict = expr.op == "lt"
        if a.hi < b.lo or (not strict and a.hi <= b.lo):
            return TRUE
        if a.lo > b.hi or (strict and a.lo >= b.hi):
            return FALSE
        if expr.args[0].is_bool:
            a, b = Term(f"int64({a.text})", a.lo, a.hi), Term(f"int64({b.text})", b.lo, b.hi)
        return Term(f"({a.text} {'<' if strict else '<='} {b.text})", 0, 1)

    def junction(self, expr: Op) -> Term:
        """`and`, `or`: later operands are looked at only where they count."""
        stop, word = (FALSE, " and ") if expr.op == "and" else (TRUE, " or ")
        texts: list[str] = []
        result = ""
        for arg in expr.args:
            lines, term = self.captured(arg)
            if not result and not lines:
                if term == stop:
                    texts.append(term.text)
                    break
                if term not in (TRUE, FALSE):
                    texts.append(term.text)
                continue
            if not result:
                result = self.fresh("b")
                self.line(f"{result} = {word.join(texts) or str(expr.op == 'and')}")
            with self.block(f"if {result}:" if expr.op == "and" else f"if not {result}:"):
                self.paste(lines)
                self.line(f"{result} = {term.text}")
        if result:
            return Term(result, 0, 1)
        if not texts:
            return TRUE if expr.op == "and" else FALSE
        return stop if texts == [stop.text] else Term(f"({word.join(texts)})", 0, 1)

    def choice(self, expr: Op) -> Term:
        """`where`: only the branch that counts is looked at."""
        test = self.lower(expr.args[0])
        if test.lo == test.hi:
            return self.lower(expr.args[1] if test.lo else expr.args[2])
        lines_a, a = self.captured(expr.args[1])
        lines_b, b = self.captured(expr.args[2])
        lo, hi = min(a.lo, b.lo), max(a.hi, b.hi)
        if not lines_a and not lines_b:
            return Term(f"({a.text} if {test.text} else {b.text})", lo, hi)
        result = self.fresh("c")
        for head, lines, term in ((f"if {test.text}:", lines_a, a), ("else:", lines_b, b)):
            with self.block(head):
                self.paste(lines)
                self.line(f"{result} = {term.text}")
        return Term(result, lo, hi)
