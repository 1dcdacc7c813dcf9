"""Actions of a specification as functions over flat memory: `f(M, parameters)`.

A function returns `TAKEN`, or the number of the first false guard conjunct with the memory as it was, or `FAILED`. All
that updates read is read before the first is made: where an update over a range reads what the action changes, its
values wait in the memory's scratch row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from viewproof.spec.engines.flat.layout import COUNT, HEADER, MEMBERS_MAX, FlatLayout, Place
from viewproof.spec.engines.flat.lower import FAILED, FlatLower, anything
from viewproof.spec.engines.llvm.lower import TRUE, Term
from viewproof.spec.engines.llvm.objects import NAME, Unit, unit
from viewproof.spec.engines.replay.compile import TAKEN
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import ActionIR, Const, Expr, Name, Op, Read, SortMax, Update, walk

SCRATCH = "scratch"
"""Name of the row in which values wait."""


def action_units(spec: Spec, layout: FlatLayout) -> Mapping[str, Unit]:
    """The function of each action. Raises `SpecError` naming the action for what cannot be lowered."""
    layout.words_at(SCRATCH, HEADER)
    found = {}
    for ir in spec.action_irs:
        try:
            found[ir.name] = unit(f"action {ir.name}", _Action(ir, layout).source())
        except SpecError as error:
            raise SpecError(f"{ir.name}: {error.message}", error.source) from error
    return found


class _Action:
    """Writes the function of one action."""

    def __init__(self, ir: ActionIR, layout: FlatLayout) -> None:
        self.ir = ir
        self.layout = layout
        self.out = FlatLower(layout, ir.name)
        self.writes = ir.writes()
        self.waiting = 0

    def source(self) -> str:
        out = self.out
        out.env = {p.name: anything(f"p_{p.name}") for p in self.ir.params}
        for number, guard in enumerate(self.ir.guards):
            out.source = guard.source
            self._guard(number, guard.cond)
        ready = [self._prepared(update) for update in self.ir.updates]
        for update, prepared in zip(self.ir.updates, ready, strict=True):
            out.source = update.source
            self._write(update, prepared)
        out.line(f"return {TAKEN}")
        return out.text(NAME, ", ".join(["M: I64", *(f"p_{p.name}: I64" for p in self.ir.params)]))

    def _guard(self, number: int, cond: Expr) -> None:
        if isinstance(cond, Op) and cond.op == "and":
            for part in cond.args:
                self._guard(number, part)
            return
        term = self.out.lower(cond)
        if term != TRUE:
            with self.out.block(f"if not {term.text}:"):
                self.out.line(f"return {number}")

    # before the first write

    def _prepared(self, update: Update) -> _Prepared:
        """All that an update reads before the first write, under names."""
        out = self.out
        out.source = update.source
        if self._clears(update):
            index = [None if _names(i, _bound(update)) else self._named(out.lower(i)) for i in update.index]
            return _Prepared(index, clears=True)
        bound = _bound(update)
        index = [None if _names(i, bound) else self._named(out.lower(i)) for i in update.index]
        if not update.binders:
            return _Prepared(index, value=self._value(update))
        row = self._is_row(update)
        ends = [self._named(out.lower(end)) for b in update.binders[: -1 if row else None] for end in (b.lo, b.hi)]
        moving = [n for i, term in zip(update.index, index, strict=True) if term is None for n in walk(i)]
        if any(isinstance(n, Read) for n in moving):
            raise SpecError("the cells of a range are found by reading others", update.source)
        if row:
            return _Prepared(index, ends, row=True)
        if not any(isinstance(n, Read) and n.var.name in self.writes for n in walk(update.value)):
            return _Prepared(index, ends)
        if not self.waiting:
            out.line("w_next = 0")
        self.waiting += 1
        first = self._named(Term("w_next", 0, 1 << 30))
        with self._loops(update, ends):
            value = self._value(update)
            at = out.known(f"make(M, M + external('o_{SCRATCH}'), w_next, 1, 0)", 0, 0).text
            with out.block(f"if {at} == 0:"):
                out.line(f"return {FAILED}")
            out.line(f"store({at}, {value.text})")
            out.line("w_next += 1")
        return _Prepared(index, ends, waits_at=first)

    def _named(self, term: Term) -> Term:
        return self.out.known(term.text, term.lo, term.hi)

    def _value(self, update: Update) -> Term:
        """The value as a word under a name of its own, in the variable's range."""
        out = self.out
        term = out.lower(update.value)
        word = out.known(out.word(term, update.value.is_bool), term.lo, term.hi)
        lo, hi = out.values(update.var)
        if word.lo < lo or word.hi > hi:
            out.error(f"{word.text} < {lo} or {word.text} > {hi}", f"value of {update.var.name}")
        return word

    @contextmanager
    def _loops(self, update: Update, ends: list[Term]) -> Iterator[None]:
        """Loops over the ranges of an update."""
        out = self.out
        before = out.env, out.depth
        for binder, lo, hi in zip(update.binders, ends[::2], ends[1::2], strict=False):
            name = out.fresh("i")
            out.line(f"for {name} in range({lo.text}, {hi.text} + 1):")
            out.depth += 1
            out.env = {**out.env, binder.name.name: Term(name, lo.lo, hi.hi)}
        yield
        out.env, out.depth = before

    # writing

    def _write(self, update: Update, prepared: _Prepared) -> None:
        out, place = self.out, self.layout.places[update.var.name]
        if prepared.value is not None:
            out.write(place, [t for t in prepared.index if t is not None], prepared.value.text)
            return
        if prepared.clears:
            self._clear(update, place, prepared.index)
            return
        if prepared.row:
            with self._loops(update, prepared.ends):
                pairs = list(zip(update.index, prepared.index, strict=True))[:-1]
                self._row(update, place, [t or out.atom(out.lower(i)) for i, t in pairs])
            return
        if prepared.waits_at is not None:
            out.line(f"w_at = {prepared.waits_at.text}")
        with self._loops(update, prepared.ends):
            if prepared.waits_at is not None:
                value = out.known(f"load(load(M + external('o_{SCRATCH}')) + 8 * w_at)", 0, 0)
                out.line("w_at += 1")
            else:
                value = self._value(update)
            terms = [t or out.atom(out.lower(i)) for i, t in zip(update.index, prepared.index, strict=True)]
            out.write(place, terms, value.text)

    # whole rows over an unbounded sort

    def _clears(self, update: Update) -> bool:
        """Does the update set all cells to what they were at first that lie below some indices: over an unbounded sort,
        and over all sorts whose indices come after it?
        """
        value, free = update.value, 0
        if not isinstance(value, Const) or value.value != update.var.init:
            return False
        binders = {b.name.name: b for b in update.binders}
        for i in update.index:
            binder = binders.pop(i.name, None) if isinstance(i, Name) else None
            if binder is None:
                if free or _names(i, _bound(update)):
                    return False
                continue
            sort = binder.name.sort
            whole = sort is not None and isinstance(binder.hi, SortMax) and isinstance(binder.lo, Const)
            if not whole or sort is None or binder.lo.key() != Const(sort.lo).key():
                return False
            free += self.layout.instance.hi(sort) is None
        return bool(free) and not binders

    def _clear(self, update: Update, place: Place, index: Sequence[Term | None]) -> None:
        out = self.out
        before = out.env, out.depth
        terms: list[Term] = []
        for term, (sort, bounded) in zip(index, place.index, strict=True):
            if term is None and bounded:
                name = out.fresh("i")
                out.line(f"for {name} in range({sort.lo}, external('o_{COUNT}')):")
                out.depth += 1
                term = Term(name, sort.lo, MEMBERS_MAX - 1)
            terms.append(term or Term("0", 0, 0))
        given = [
            t for i, t, (_, bounded) in zip(index, terms, place.index, strict=True) if i is not None and not bounded
        ]
        header = out.inner(out.known(out.fixed(place, terms), 0, 0).text, given)
        with out.block(f"if {header} != 0:"):
            out.line(f"clear(M, {header}, {place.init}, {place.depth - len(given)})")
        out.env, out.depth = before

    def _is_row(self, update: Update) -> bool:
        """Does the update set all cells of a row over an unbounded sort: to what they were at first, or to another
        row's?
        """
        last = update.binders[-1]
        if not isinstance(last.hi, SortMax) or self.layout.instance.hi(last.hi.sort) is not None:
            return False
        end = update.index[-1]
        if not (isinstance(end, Name) and end.name == last.name.name):
            raise SpecError("flat replay sets all cells of a row by its last index", update.source)
        return True

    def _row(self, update: Update, place: Place, rest: list[Term]) -> None:
        out, value = self.out, update.value
        to = out.made(place, [*rest, Term("0", 0, 0)], 1, place.init, place.depth - 1)
        last = update.binders[-1].name.name
        out.line("pass")
        is_copy = isinstance(value, Read) and value.receiver is None and not value.after
        if not isinstance(value, Read) or not is_copy or any(_names(i, {last}) for i in value.index[:-1]):
            raise SpecError("all cells of a row are set to their first value, or to another row's", update.source)
        of = self.layout.places[value.var.name]
        end = value.index[-1]
        if not (isinstance(end, Name) and end.name == last) or of.init != place.init or value.var.name in self.writes:
            raise SpecError("a row is copied from one of a variable that stays", update.source)
        terms = [*out.indices(value.index[:-1]), Term("0", 0, 0)]
        done = out.known(f"copy(M, {to}, {out.header(of, terms)}, {place.init})", 0, 1).text
        with out.block(f"if {done} == 0:"):
            out.line(f"return {FAILED}")


@dataclass(frozen=True)
class _Prepared:
    """What an update read before the first write: the indices that no range moves; the value, or the ends of the
    ranges, and where in the scratch row their values wait; or that it sets all cells of a `row`, or
    `clears` all below some indices.
    """

    index: list[Term | None]
    ends: list[Term] = field(default_factory=list)
    value: Term | None = None
    row: bool = False
    clears: bool = False
    waits_at: Term | None = None


def _bound(update: Update) -> set[str]:
    return {b.name.name for b in update.binders}


def _names(expr: Expr, names: set[str]) -> bool:
    return any(isinstance(n, Name) and n.name in names for n in walk(expr))
