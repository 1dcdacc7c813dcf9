"""Lowering of expressions over flat memory (`layout`, `memory`).

A function is given the address `M` of the run's words. What cannot be said here and now (an index that the bounded sort
does not have, a number out of all bounds, a cell that was let go) ends the function with `FAILED`: who judges then
looks at the run by other means, so nothing needs to be undone.
"""

from __future__ import annotations

from collections.abc import Sequence

from viewproof.spec.engines.flat.layout import COUNT, HEADER, MEMBERS_MAX, FlatLayout, Place
from viewproof.spec.engines.llvm.lower import INT_MAX, Lower, Term
from viewproof.spec.engines.replay.given import Given
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import Expr, Name, Op, Read, SortMax, lift
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.sorts import Sort

NUMBER_MAX = 1 << 60
"""Numbers of sorts without a bound, and the columns that show them, stay below: what adds a few of them fits a word."""
CELL_MAX = NUMBER_MAX + (1 << 32)
FAILED = 1 << 20
"""What a function returns that could not say."""


def anything(text: str) -> Term:
    """A number of which nothing is known but that it was looked at where it came in."""
    return Term(text, -NUMBER_MAX, NUMBER_MAX)


class FlatLower(Lower):
    """Lowers the expressions of one function."""

    def __init__(self, layout: FlatLayout, owner: str) -> None:
        super().__init__(layout.instance, owner, [], lambda site: f"return {FAILED}")
        self.layout = layout

    def text(self, name: str, args: str) -> str:
        """The function's source."""
        body = "\n".join("    " * (depth + 1) + text for depth, text in self.lines)
        return f"def {name}({args}):\n{body}\n"

    def span(self, sort: Sort) -> tuple[int, int]:
        """The members of a sort, as far as it matters when code is compiled."""
        return sort.lo, NUMBER_MAX if self.instance.hi(sort) is None else MEMBERS_MAX - 1

    def lower(self, expr: Expr) -> Term:
        """The term of an expression."""
        if isinstance(expr, Given):
            return Term(f"load(M + external('o_g_{expr.name}'))", 0, NUMBER_MAX)
        if isinstance(expr, SortMax):
            if self.instance.hi(expr.sort) is None:
                raise SpecError(f"flat replay cannot run over all of the unbounded sort {expr.sort.name}", self.source)
            return Term(f"(external('o_{COUNT}') - 1)", 0, MEMBERS_MAX - 1)
        return super().lower(expr)

    def arithmetic(self, expr: Op, a: Term, b: Term) -> Term:
        """Sums of many numbers: what was added up so far is looked at before it may not fit a word."""
        if expr.op in ("add", "sub") and sum(max(abs(term.lo), abs(term.hi)) for term in (a, b)) > INT_MAX:
            a, b = self._small(a), self._small(b)
        return super().arithmetic(expr, a, b)

    def _small(self, term: Term) -> Term:
        if term.lo >= -CELL_MAX and term.hi <= CELL_MAX:
            return term
        term = self.atom(term)
        self.error(f"{term.text} < {-CELL_MAX} or {term.text} > {CELL_MAX}", "a number that is too large")
        return Term(term.text, max(term.lo, -CELL_MAX), min(term.hi, CELL_MAX))

    def indices(self, index: Sequence[Expr]) -> list[Term]:
        """The terms of indices, each under a name."""
        return [self.atom(self.lower(i)) for i in index]

    def known(self, text: str, lo: int, hi: int) -> Term:
        """The value under a name of its own."""
        name = self.fresh("x")
        self.line(f"{name} = {text}")
        return Term(name, lo, hi)

    def fixed(self, place: Place, terms: Sequence[Term]) -> str:
        """The address of the fixed cell, or header, of a table at these indices."""
        width = 8 * (HEADER if place.depth else 1)
        number = ""
        for term, (sort, bounded) in zip(terms, place.index, strict=True):
            if not bounded:
                continue
            if term.lo < 0 or term.hi > MEMBERS_MAX - 1:
                self.error(f"{term.text} < 0 or {term.text} >= external('o_{COUNT}')", f"{place.name}: {sort.name}")
            number = term.text if not number else f"({number}) * external('o_{COUNT}') + {term.text}"
        at = f"M + external('o_{place.name}')"
        return f"{at} + ({number}) * {width}" if number else at

    def header(self, place: Place, terms: Sequence[Term]) -> str:
        """The name of the address of the innermost window at these indices; 0 where there is none yet."""
        header = self.known(self.fixed(place, terms), 0, 0).text
        return self.inner(header, [t for t, (_, bounded) in zip(terms, place.index, strict=True) if not bounded][:-1])

    def inner(self, header: str, free: Sequence[Term]) -> str:
        """The window that lies in others at these indices."""
        for term in free:
            following = self.fresh("h")
            self.line(f"{following} = 0")
            with self.block(f"if {header} != 0:"):
                self.line(f"{following} = find(M, {header}, {term.text}, {HEADER})")
            header = following
        return header

    def cell(self, place: Place, terms: Sequence[Term]) -> str:
        """The name of the value of a cell."""
        value = self.fresh("x")
        if not place.depth:
            self.line(f"{value} = load({self.fixed(place, terms)})")
            return value
        header = self.header(place, terms)
        last = [t for t, (_, bounded) in zip(terms, place.index, strict=True) if not bounded][-1]
        self.line(f"{value} = {place.init}")
        with self.block(f"if {header} != 0:"):
            k = self.fresh("k")
            self.line(f"{k} = {last.text} - load({header} + 8)")
            with self.block(f"if {k} >= 0 and {k} < load({header} + 16):"):
                self.line(f"{value} = load(load({header}) + 8 * {k})")
            with self.block("else:"):
                self.line(f"missed(M, {header}, {last.text})")
        return value

    def values(self, var: Var) -> tuple[int, int]:
        """Least and largest value of a variable, as far as it matters when code is compiled."""
        values = var.values
        ends: tuple[object, ...] = (values.hi, values.plus)
        if any(isinstance(end, Expr) for end in ends):
            return values.lo, CELL_MAX
        if values.sort is None:
            return values.lo, values.hi
        if self.instance.hi(values.sort) is None:
            return values.lo, CELL_MAX
        return values.lo, MEMBERS_MAX - 1 + values.plus

    def read(self, expr: Read) -> Term:
        """Value of a cell: of the state, or of what the receiver has received (its own messages it knows)."""
        if expr.after:
            raise SpecError("flat replay does not evaluate predicates over two states", self.source)
        terms = self.indices(expr.index)
        return self.as_value(expr.var, self._read(expr, terms))

    def as_value(self, var: Var, text: str) -> Term:
        """A cell's word as a value of the variable."""
        lo, hi = self.values(var)
        return Term(f"({text} != 0)", 0, 1) if var.values.is_bool else Term(text, lo, hi)

    def _read(self, expr: Read, terms: Sequence[Term]) -> str:
        var = expr.var
        if expr.receiver is None or var.sender is None:
            return self.cell(self.layout.places[var.name], terms)
        receiver = self.atom(self.lower(expr.receiver))
        sender = self.atom(self.lower(lift(var.sender(*self._named(expr.index, terms)))))
        if sender.text == receiver.text:
            return self.cell(self.layout.places[var.name], terms)
        value = self.fresh("x")
        with self.block(f"if {sender.text} == {receiver.text}:"):
            self.line(f"{value} = {self.cell(self.layout.places[var.name], terms)}")
        with self.block("else:"):
            self.line(f"{value} = {self.cell(self.layout.inboxes[var.name], [receiver, *terms])}")
        return value

    def _named(self, index: Sequence[Expr], terms: Sequence[Term]) -> list[Expr]:
        """The indices as names that stand for their terms, so that none is looked at twice."""
        found: list[Expr] = []
        for position, (expr, term) in enumerate(zip(index, terms, strict=True)):
            name = f"index_{self.fresh('n')}_{position}"
            self.env = {**self.env, name: term}
            found.append(Name(name, getattr(expr, "sort", None), expr.denotes))
        return found

    def write(self, place: Place, terms: Sequence[Term], value: str) -> None:
        """Put a value into a cell."""
        if not place.depth:
            self.line(f"store({self.fixed(place, terms)}, {value})")
            return
        at = self.made(place, terms, 1, place.init)
        self.line(f"store({at}, {value})")

    def made(self, place: Place, terms: Sequence[Term], width: int, init: int, levels: int | None = None) -> str:
        """The name of the address of an element of the innermost window (or that `levels` deep), which holds it now."""
        free = [t for t, (_, bounded) in zip(terms, place.index, strict=False) if not bounded]
        free = free if levels is None else free[:levels]
        at = self.known(self.fixed_of(place, terms), 0, 0).text
        for number, term in enumerate(free, 1):
            last = number == place.depth
            size, first = (width, init) if last else (HEADER, 0)
            at = self.known(f"make(M, {at}, {term.text}, {size}, {first})", 0, 0).text
            with self.block(f"if {at} == 0:"):
                self.line(f"return {FAILED}")
        return at

    def fixed_of(self, place: Place, terms: Sequence[Term]) -> str:
        """`fixed`, where the last indices may be left out."""
        free = [Term("0", 0, 0)] * (len(place.index) - len(terms))
        return self.fixed(place, [*terms, *free])

    def word(self, term: Term, is_bool: bool) -> str:
        """A term as a word."""
        if not is_bool:
            return term.text
        return {"True": "1", "False": "0"}.get(term.text, f"int64({term.text})")
