"""Steps over cells that are not all known, in Kleene's three-valued logic: the semantics of a replay with holes.

A guard that is false whatever the unknown cells hold refuses the step: then no completion of the evidence allows it. A
guard that is open is taken, as the question is whether *some* completion conforms, and in such a one it was true; what
it says about unknown cells is learnt, where that is cheap, and it is reported (`Open`). Right-hand sides are evaluated
before the first write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from viewproof.spec.engines.guards import Evaluator, Reading, Span, Value
from viewproof.spec.engines.guards.cells import ends, span
from viewproof.spec.engines.guards.evaluate import Env
from viewproof.spec.engines.replay.cells import PartialCells, hull
from viewproof.spec.engines.replay.compile import TAKEN
from viewproof.spec.lang.expr import ActionIR, Binder, Expr, Name, Op, Quant, Read, SortMax, Update, walk

RANGE_MAX = 4096
"""Members of a range whose ends are not known that are looked at one by one."""


@dataclass(frozen=True, slots=True)
class Open:
    """A guard that was taken although it was open: its number, the unknown cells that it read, and what evidence was
    missing for the first of them (before the step said more about it).
    """

    action: str
    conjunct: int
    readings: tuple[Reading, ...]
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """Cells to be written: `index` and `value` may be open; `maybe`: perhaps not written at all."""

    update: Update
    index: tuple[Value, ...]
    value: Value
    maybe: bool = False


class Steps:
    """Takes steps of actions on partial cells; `cause` names the evidence that is missing at the event at hand.

    `evaluator` makes an evaluator of the cells as they are; that of a mapping knows the columns of the event, too.
    """

    def __init__(self, cells: PartialCells, evaluator: Callable[[], Evaluator] | None = None) -> None:
        self.cells = cells
        self.evaluator = evaluator or (lambda: Evaluator(cells.instance, cells))
        self.cause = ""
        self.closing: list[tuple[Update, int]] = []

    def solve(self, ir: ActionIR, args: Mapping[str, Value]) -> dict[str, Value]:
        """The arguments, those that are not known as far as an equality of the guard gives them."""
        env = dict(args)
        for guard in ir.guards:
            cond = guard.cond
            if not isinstance(cond, Op) or cond.op != "eq":
                continue
            for one, other in (cond.args, cond.args[::-1]):
                if isinstance(one, Name) and isinstance(env.get(one.name), Span) and not _names(other, one.name):
                    env[one.name] = self.evaluator().value(other, env)
        return env

    def refused(self, ir: ActionIR, args: Env) -> int | None:
        """The first guard that is certainly false."""
        evaluator = self.evaluator()
        for number, guard in enumerate(ir.guards):
            if evaluator.truth(guard.cond, args) is False:
                return number
        return None

    def take(self, ir: ActionIR, args: Env) -> tuple[int, list[Open]]:
        """Take the step: TAKEN and the guards that were open, or the first guard that is certainly false."""
        opened: list[Open] = []
        for number, guard in enumerate(ir.guards):
            evaluator = self.evaluator()
            truth = evaluator.truth(guard.cond, args)
            if truth is False:
                return number, []
            if truth is None:
                unknown = tuple(r for r in evaluator.readings if isinstance(r.value, Span))
                causes = (self.cells.cause(r.var, r.index, r.receiver) for r in unknown)
                opened.append(Open(ir.name, number, unknown, next(filter(None, causes), "")))
        for one in opened:
            self.assume(ir.guards[one.conjunct].cond, True, args)
        if opened:
            refused = self.refused(ir, args)
            if refused is not None:
                return refused, []
        self.closing.clear()
        writes = [write for update in ir.updates for write in self._writes(update, update.binders, args, False)]
        while self.closing:
            update, owner = self.closing.pop()
            self.cells.close(update.var, owner)
        for write in writes:
            self._write(write)
        return TAKEN, opened

    # learning

    def assume(self, expr: Expr, want: bool, env: Env) -> None:
        """The expression is known to be true (or false): what follows for cells that are not known, where it is
        cheap.
        """
        match expr:
            case Op(op="not"):
                self.assume(expr.args[0], not want, env)
            case Op(op="and" | "or"):
                self._assume_parts(expr, want, env)
            case Op(op="eq") if want:
                left, right = (self._value(a, env) for a in expr.args)
                self.narrow(expr.args[0], right, env)
                self.narrow(expr.args[1], left, env)
            case Op(op="ne") if not want:
                self.assume(Op("eq", expr.args, True), True, env)
            case Op(op="lt" | "le"):
                self._assume_order(expr, want, env)
            case Op(op="ite") if (truth := self.evaluator().truth(expr.args[0], env)) is not None:
                self.assume(expr.args[1 if truth else 2], want, env)
            case Read() if expr.is_bool:
                self.narrow(expr, int(want), env)
            case Quant(kind="forall") if want:
                for member in self.evaluator().members(expr.binder, env) or ():
                    self.assume(expr.body, True, {**env, expr.binder.name.name: member})

    def _assume_parts(self, expr: Op, want: bool, env: Env) -> None:
        if (expr.op == "and") is want:
            for arg in expr.args:
                self.assume(arg, want, env)
            return
        left = [arg for arg in expr.args if self.evaluator().truth(arg, env) is not (not want)]
        if len(left) == 1:
            self.assume(left[0], want, env)

    def _assume_order(self, expr: Op, want: bool, env: Env) -> None:
        (left, right), strict = (expr.args if want else expr.args[::-1]), (expr.op == "lt") is want
        low, high = ends(self._value(left, env))[0], ends(self._value(right, env))[1]
        self.narrow(left, Span(None, None if high is None else high - strict), env)
        self.narrow(right, Span(None if low is None else low + strict, None), env)

    def narrow(self, expr: Expr, to: Value, env: Env) -> None:
        """The value of the expression is known to lie in `to`."""
        match expr:
            case Read():
                index = [self._value(i, env) for i in expr.index]
                receiver = None if expr.receiver is None else self._value(expr.receiver, env)
                known = tuple(i for i in index if not isinstance(i, Span))
                if len(known) == len(index) and not isinstance(receiver, Span):
                    self.cells.narrow(expr.var, known, receiver, to)
            case Op(op="add" | "sub"):
                lo, hi = ends(to)
                by = self._value(expr.args[1], env)
                if isinstance(by, Span):
                    return
                by = -by if expr.op == "add" else by
                self.narrow(expr.args[0], span(None if lo is None else lo + by, None if hi is None else hi + by), env)
            case Op(op="ite"):
                truth = self.evaluator().truth(expr.args[0], env)
                if truth is not None:
                    self.narrow(expr.args[1 if truth else 2], to, env)

    def _value(self, expr: Expr, env: Env) -> Value:
        return self.evaluator().value(expr, env)

    # writing

    def _writes(self, update: Update, binders: tuple[Binder, ...], env: Env, maybe: bool) -> Iterator[Write]:
        if not binders:
            index = tuple(self._value(i, env) for i in update.index)
            yield Write(update, index, self._value(update.value, env), maybe)
            return
        first, rest = binders[0], binders[1:]
        name = first.name.name
        if isinstance(first.hi, SortMax) and self.cells.instance.hi(first.hi.sort) is None:
            yield from self._unbounded(update, binders, env, maybe)
            return
        (lo_lo, lo_hi), (hi_lo, hi_hi) = (ends(self._value(end, env)) for end in (first.lo, first.hi))
        certain = range(0) if lo_hi is None or hi_lo is None else range(lo_hi, hi_lo + 1)
        if lo_lo is None or hi_hi is None or hi_hi - lo_lo > RANGE_MAX:
            yield from self._writes(update, rest, {**env, name: span(lo_lo, hi_hi)}, True)
            members: Iterator[int] = iter(certain)
        else:
            members = iter(range(lo_lo, hi_hi + 1))
        for member in members:
            yield from self._writes(update, rest, {**env, name: member}, maybe or member not in certain)

    def _unbounded(self, update: Update, binders: tuple[Binder, ...], env: Env, maybe: bool) -> Iterator[Write]:
        """A reset, or the copy of another variable's cells, over all members of a sort: those that occur anywhere, and
        one that does not, for all others.
        """
        sort, name = binders[0].hi.sort, binders[0].name.name  # type: ignore[attr-defined]
        occurring = {
            index[position]
            for var in {update.var, *(n.var for n in walk(update.value) if isinstance(n, Read))}
            for position, s in enumerate(var.index)
            if (s.ends_with or s.name) == (sort.ends_with or sort.name)
            for index in self.cells.known[var.name]
        }
        fresh = max([sort.lo - 1, *occurring]) + 1
        others = list(self._writes(update, binders[1:], {**env, name: fresh}, maybe))
        if all(not isinstance(w.value, Span) for w in others) and not maybe:
            self._close_row(update, env)
        elif others:
            yield from self._writes(update, binders[1:], {**env, name: Span(sort.lo, None)}, True)
        for member in sorted(occurring):
            yield from self._writes(update, binders[1:], {**env, name: member}, maybe)

    def _close_row(self, update: Update, env: Env) -> None:
        """All cells of a replica are written: none keeps what it was."""
        bound = {b.name.name for b in update.binders}
        rest = update.index[1:]
        owner = self._value(update.index[0], env) if update.index else Span()
        whole = all(isinstance(i, Name) and i.name in bound for i in rest) and len(update.binders) == len(rest)
        plain = update.var.sender is None and bool(update.var.index) and update.var.index[0].name == self.cells.actors
        if whole and plain and not isinstance(owner, Span) and self.cells.trail is None:
            self.closing.append((update, owner))

    def _write(self, write: Write) -> None:
        var = write.update.var
        known = tuple(i for i in write.index if not isinstance(i, Span))
        if len(known) < len(write.index):
            self.cells.lose(var, write.index, self.cause)
            return
        value = hull(self.cells.read(var, known), write.value) if write.maybe else write.value
        self.cells.write(var, known, value, self.cause or self._cause_of(write))

    def _cause_of(self, write: Write) -> str:
        """Why a value is not known: as that of the first unknown cell it was made from."""
        if not isinstance(write.value, Span):
            return ""
        for node in walk(write.update.value):
            if isinstance(node, Read):
                for (name, _), cause in self.cells.open.items():
                    if name == node.var.name:
                        return cause
        return next(iter(self.cells.open.values()), "")


def _names(expr: Expr, name: str) -> bool:
    return any(isinstance(n, Name) and n.name == name for n in walk(expr))
