"""Evaluate recorded expressions, and note the cells that were needed.

Order is the interpreter's: `and`, `or` and quantifiers go on only until they are decided, `ite` looks at one branch.
An open value (`Span`) stops nothing: what comes later may still decide.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from viewproof.spec.engines.guards.cells import (
    Cells,
    Span,
    Truth,
    Value,
    declared,
    ends,
    from_truth,
    span,
    to_truth,
)
from viewproof.spec.lang.errors import RangeError, SpecError
from viewproof.spec.lang.expr import ActionIR, Binder, Const, Expr, Name, Op, Quant, Read, SortMax, Update, Within
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.sorts import Instance

Show = Callable[[Var, int], str]
"""How a value of a variable is shown to a reader."""

Env = Mapping[str, Value]
"""Values of parameters and bound variables."""


@dataclass(frozen=True)
class Reading:
    """One cell that was looked at, and its value.

    `receiver` is set where it was read as a received message, `after` where it was read in the state after a step.
    """

    var: Var
    index: tuple[int, ...]
    value: Value
    receiver: int | None = None
    after: bool = False

    def text(self, show: Show) -> str:
        """`op[0] = 1`; in the state after a step, `op[0]′ = 1`; of a cell that is not known, `op[0] is not known`."""
        name = cell_name(self.var.name, self.index) + ("′" if self.after else "")
        return f"{name} is not known" if isinstance(self.value, Span) else f"{name} = {show(self.var, self.value)}"


def cell_name(var: str, index: Iterable[int]) -> str:
    """`entry[0, 1]`; a variable without indices by its name."""
    text = ", ".join(str(i) for i in index)
    return f"{var}[{text}]" if text else var


Closure = Callable[[Any, Env], Value]
"""Gives the value of one expression, for an evaluator and values of names."""
Maker = Callable[[type[Any], Any], Closure]
"""Makes it, for a class of evaluators; once for each expression, as most are evaluated again and again."""
_CLOSURES_MAX: Final = 1 << 16
OPEN: Final = Span(0, 1)


class Evaluator:
    """Values of expressions over some cells; `readings` grows with what was read (if not `keeps_known`: of the cells
    that are not known). `kinds` says how a kind of node is evaluated.
    """

    keeps_known: ClassVar[bool] = True
    kinds: ClassVar[Mapping[type[Expr], Maker]]
    closures: ClassVar[dict[Expr, Closure]] = {}

    def __init_subclass__(cls) -> None:
        cls.closures = {}

    def __init__(self, instance: Instance, cells: Cells) -> None:
        self.instance = instance
        self.cells = cells
        self.readings: list[Reading] = []

    @classmethod
    def closure(cls, expr: Expr) -> Closure:
        """What gives the value of an expression; the expression is kept, so that its place is no other's."""
        found = cls.closures.get(expr)
        if found is None:
            maker = cls.kinds.get(type(expr))
            if maker is None:
                raise SpecError(f"no value of {type(expr).__name__}")
            if len(cls.closures) >= _CLOSURES_MAX:
                cls.closures.clear()
            found = cls.closures[expr] = maker(cls, expr)
        return found

    def first_false(self, action: ActionIR, args: Env) -> tuple[int | None, bool]:
        """The first guard that is false (None: none is), and whether one before it (or any) is open."""
        opened = False
        for number, guard in enumerate(action.guards):
            truth = self.truth(guard.cond, args)
            if truth is False:
                return number, opened
            opened = opened or truth is None
        return None, opened

    def updates(self, action: ActionIR, args: Env) -> Iterator[tuple[Var, tuple[Value, ...], Value]]:
        """The cells that the action assigns, with their values."""
        for update in action.updates:
            for env in self._bound(update, update.binders, args):
                yield update.var, tuple(self.value(i, env) for i in update.index), self.value(update.value, env)

    def _bound(self, update: Update, binders: tuple[Binder, ...], env: Env) -> Iterator[Env]:
        if not binders:
            yield env
            return
        members = self.members(binders[0], env)
        if members is None:
            raise SpecError(f"the range of this update of {update.var.name} is not known", update.source)
        for member in members:
            yield from self._bound(update, binders[1:], {**env, binders[0].name.name: member})

    def truth(self, expr: Expr, env: Env) -> Truth:
        """Truth of a Boolean expression; None if it depends on cells that are not known."""
        return self.truth_of(self.closure(expr)(self, env))

    def truth_of(self, value: Value) -> Truth:
        """A value as a truth value."""
        return to_truth(value)

    def value(self, expr: Expr, env: Env) -> Value:
        """Value of an expression. Raises `RangeError` where the interpreter would."""
        return self.closure(expr)(self, env)

    def top(self, expr: SortMax) -> int:
        """Largest member of a sort; `SpecError` if it has none."""
        top = self.instance.hi(expr.sort)
        if top is None:
            raise SpecError(f"sort {expr.sort.name} is unbounded here: it has no largest member")
        return top

    def members(self, binder: Binder, env: Env) -> range | None:
        """What a bound variable ranges over; None if its ends are not known."""
        lo, hi = self.value(binder.lo, env), self.value(binder.hi, env)
        if isinstance(lo, Span) or isinstance(hi, Span):
            return None
        sort = binder.name.sort
        for end in (lo, hi) if lo <= hi and sort is not None else ():
            if not self.instance.contains(sort, end):  # type: ignore[arg-type]
                raise RangeError(f"range {lo}..{hi} leaves sort {sort.name}")  # type: ignore[union-attr]
        return range(lo, hi + 1)

    def read(self, var: Var, index: tuple[Any, ...], receiver: Value | None = None, after: bool = False) -> Value:
        """Value of a cell, which is noted; anything that it may be where it is not known which one is meant."""
        if type(receiver) is Span or Span in map(type, index):
            return declared(var, self.instance)
        value = self.cells.read(var, index, receiver, after)  # type: ignore[arg-type]
        if self.keeps_known or type(value) is Span:
            self.readings.append(Reading(var, index, value, receiver, after))  # type: ignore[arg-type]
        return value

    def either(self, left: Value, right: Value) -> Value:
        """One of two values, it is open which."""
        a, b = ends(left), ends(right)
        lo = None if a[0] is None or b[0] is None else min(a[0], b[0])
        return span(lo, None if a[1] is None or b[1] is None else max(a[1], b[1]))

    def open_op(self, op: str, left: Value, right: Value) -> Value:
        """Value of an operation on two values that are not both numbers."""
        if op in ("max", "min"):
            return extreme(op, left, right)
        a, b = ends(left), ends(right)
        match op:
            case "add":
                return span(_plus(a[0], b[0]), _plus(a[1], b[1]))
            case "sub":
                return span(_minus(a[0], b[1]), _minus(a[1], b[0]))
            case "mod":
                assert isinstance(right, int)
                return Span(0, right - 1) if isinstance(left, Span) else left % right
        return from_truth(compare(op, a, b))


def by(method: Callable[[Any, Any, Env], Value]) -> Maker:
    """Nodes that a method evaluates: (evaluator, node, values of names) → value."""
    return lambda cls, expr: lambda of, env: method(of, expr, env)


def _const(cls: type[Evaluator], expr: Const) -> Closure:
    value = expr.value
    return lambda of, env: value


def _name(cls: type[Evaluator], expr: Name) -> Closure:
    name = expr.name
    return lambda of, env: env[name]


def _read(cls: type[Evaluator], expr: Read) -> Closure:
    var, after = expr.var, expr.after
    parts = [cls.closure(part) for part in expr.index]
    receiver = None if expr.receiver is None else cls.closure(expr.receiver)
    if receiver is None:
        return lambda of, env: of.read(var, tuple([part(of, env) for part in parts]), None, after)
    return lambda of, env: of.read(var, tuple([part(of, env) for part in parts]), receiver(of, env), after)


def _within(of: Evaluator, expr: Within, env: Env) -> Value:
    lo, hi = ends(of.value(expr.value, env))
    top = of.instance.hi(expr.sort)
    above = compare("le", (expr.sort.lo, expr.sort.lo), (lo, hi))
    below = True if top is None else compare("le", (lo, hi), (top, top))
    return from_truth(decide((above, below), stop=False))


def _quant(cls: type[Evaluator], expr: Quant) -> Closure:
    body, binder, name = cls.closure(expr.body), expr.binder, expr.binder.name.name
    if expr.is_bool:
        stop = expr.kind == "exists"

        def decided(of: Any, env: Env) -> Value:
            members = of.members(binder, env)
            if members is None:
                return OPEN
            each = ({**env, name: member} for member in members)
            return from_truth(decide((of.truth_of(body(of, one)) for one in each), stop=stop))

        return decided

    def folded(of: Any, env: Env) -> Value:
        members = of.members(binder, env)
        if members is None:
            return Span(0 if expr.kind == "count" else expr.default, None)
        each = ({**env, name: member} for member in members)
        if expr.kind == "count":
            truths = [of.truth_of(body(of, one)) for one in each]
            return span(truths.count(True), len(truths) - truths.count(False))
        found: Value = expr.default
        for one in each:
            found = extreme("max", found, body(of, one))
        return found

    return folded


def _op(cls: type[Evaluator], expr: Op) -> Closure:
    op, args = expr.op, [cls.closure(arg) for arg in expr.args]
    if op in ("and", "or"):
        stop = op == "or"
        return lambda of, env: from_truth(decide((of.truth_of(arg(of, env)) for arg in args), stop=stop))
    if op == "ite":
        return _ite(*args)
    if op == "not":
        (negated,) = args

        def opposite(of: Any, env: Env) -> Value:
            truth = of.truth_of(negated(of, env))
            return OPEN if truth is None else int(not truth)

        return opposite
    first, second = args
    number = _NUMBERS.get(op)

    def binary(of: Any, env: Env) -> Value:
        left, right = first(of, env), second(of, env)
        if number is not None and type(left) is int and type(right) is int:
            return number(left, right)
        return of.open_op(op, left, right)  # type: ignore[no-any-return]

    return binary


def _ite(condition: Closure, then: Closure, other: Closure) -> Closure:
    def chosen(of: Any, env: Env) -> Value:
        truth = of.truth_of(condition(of, env))
        if truth is None:
            return of.either(then(of, env), other(of, env))  # type: ignore[no-any-return]
        return then(of, env) if truth else other(of, env)

    return chosen


Evaluator.kinds = {
    Const: _const,
    Name: _name,
    SortMax: by(lambda of, expr, env: of.top(expr)),
    Read: _read,
    Within: by(_within),
    Quant: _quant,
    Op: _op,
}

_NUMBERS: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mod": operator.mod,
    "max": max,
    "min": min,
    "eq": lambda a, b: int(a == b),
    "ne": lambda a, b: int(a != b),
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
}
"""Operations on two numbers."""

Ends = tuple[int | None, int | None]


def _plus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _minus(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a - b


def decide(truths: Iterable[Truth], *, stop: bool) -> Truth:
    """`or` (stop: True) or `and` (stop: False) of truth values, up to the first that decides."""
    opened = False
    for truth in truths:
        if truth is stop:
            return stop
        opened = opened or truth is None
    return None if opened else not stop


def compare(op: str, a: Ends, b: Ends) -> Truth:
    """eq, ne, lt or le between values that lie between these ends."""
    if op in ("eq", "ne"):
        apart = _below(a[1], b[0]) or _below(b[1], a[0])
        same = None not in (*a, *b) and a[0] == a[1] == b[0] == b[1]
        if not apart and not same:
            return None
        return same if op == "eq" else apart
    if op == "le":
        return compare_less(a, b, equal=True)
    if op == "lt":
        return compare_less(a, b, equal=False)
    raise SpecError(f"no value of the operation {op}")


def compare_less(a: Ends, b: Ends, *, equal: bool) -> Truth:
    """a < b, or a <= b."""
    if _below(a[1], b[0], equal):
        return True
    return False if _below(b[1], a[0], not equal) else None


def _below(hi: int | None, lo: int | None, equal: bool = False) -> bool:
    return hi is not None and lo is not None and (hi <= lo if equal else hi < lo)


def extreme(op: str, left: Value, right: Value) -> Value:
    """The larger or the smaller of two values."""
    a, b = ends(left), ends(right)
    known = [[end for end in pair if end is not None] for pair in zip(a, b, strict=True)]
    if op == "max":
        return span(max(known[0], default=None), max(known[1]) if len(known[1]) == 2 else None)
    return span(min(known[0]) if len(known[0]) == 2 else None, min(known[1], default=None))
