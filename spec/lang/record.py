"""Recording: run an action once on symbolic values and keep what it does as IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewproof.spec.lang.errors import SpecError, here, source_of
from viewproof.spec.lang.expr import (
    ActionIR,
    Binder,
    Const,
    Expr,
    Guard,
    Name,
    Op,
    Param,
    PredicateIR,
    Quant,
    Read,
    SortMax,
    Update,
    Within,
    expect,
    kind_of,
    lift,
)
from viewproof.spec.lang.kinds import NUMBER
from viewproof.spec.lang.messages import named
from viewproof.spec.lang.schema import Schema, Var
from viewproof.spec.lang.sorts import Sort
from viewproof.spec.lang.vocabulary import Between, Domain, using


def _index(var: Var, position: int, item: Any) -> Expr:
    """One index of a variable, of the sort that is declared for it."""
    expr = lift(item)
    expect(var.index[position].kind, expr, f"index {position + 1} of {var.name}")
    return expr


class RecordedCells:
    """`s.view` while recording: reads become IR nodes, writes become updates."""

    __slots__ = ("after", "receiver", "recorder", "var")

    def __init__(self, recorder: Recorder, var: Var, receiver: Expr | None = None, after: bool = False) -> None:
        self.recorder = recorder
        self.var = var
        self.receiver = receiver
        self.after = after

    def _index(self, raw: Any) -> tuple[Expr, ...]:
        index = raw if isinstance(raw, tuple) else (raw,)
        if len(index) != len(self.var.index):
            raise SpecError(f"{self.var.name} has {len(self.var.index)} indices, got {len(index)}", here())
        return tuple(_index(self.var, position, item) for position, item in enumerate(index))

    def __getitem__(self, raw: Any) -> Read:
        return Read(self.var, self._index(raw), self.receiver, self.after, self.var.values.kind)

    def __setitem__(self, raw: Any, value: Any) -> None:
        if self.receiver is not None or self.after:
            raise SpecError("what was received cannot be assigned; assign the sender's own variable", here())
        self.recorder.assign(self.var, self._index(raw), (), value)

    def update(self, index: tuple[Any, ...], value: Callable[..., Any]) -> None:
        """Assign a whole range (see `concrete.Cells.update`)."""
        self.recorder.assign_range(self.var, index, value)


class RecordedView:
    """Symbolic name space: what a replica has received, or the state after."""

    def __init__(self, recorder: Recorder, receiver: Expr | None, after: bool) -> None:
        self._recorder = recorder
        self._args = (receiver, after)

    def cells(self, name: str) -> Any:
        """The cells of a variable, or the read of one without indices."""
        return self._recorder.cells(name, *self._args)

    def __getattr__(self, name: str) -> Any:
        return named(self._recorder.schema, name, self.cells)


class Recorder:
    """The `s` of a symbolic run, and the context that the vocabulary speaks to."""

    records = True
    _OWN = frozenset({"schema", "cfg", "guards", "updates", "depth"})

    def __init__(self, schema: Schema, cfg: Any) -> None:
        self.schema = schema
        self.cfg = cfg
        self.guards: list[Guard] = []
        self.updates: list[Update] = []
        self.depth = 0

    def cells(self, name: str, receiver: Expr | None = None, after: bool = False) -> Any:
        """The cells of a variable, or the read of one without indices."""
        var = self.schema.vars.get(name)
        if var is None:
            raise SpecError(f"no variable {name} is declared", here())
        if receiver is not None and not var.is_message:
            raise SpecError(f"{name} is not a message: a replica cannot receive it", here())
        if receiver is not None and var.sender is not None:
            sender = lift(var.sender(*(Name("", sort, sort.kind) for sort in var.index)))
            expect(kind_of(sender), receiver, f"who receives {name}")
        if var.index:
            return RecordedCells(self, var, receiver, after)
        return Read(var, (), receiver, after, var.values.kind)

    def __getattr__(self, name: str) -> Any:
        return named(self.schema, name, self.cells)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._OWN:
            object.__setattr__(self, name, value)
            return
        var = self.schema.vars.get(name)
        if var is None or var.index:
            raise SpecError(f"{name} is not a variable without indices", here())
        self.assign(var, (), (), value)

    def received(self, receiver: Any) -> RecordedView:
        """The messages that a replica has received."""
        return RecordedView(self, lift(receiver), False)

    @property
    def after(self) -> RecordedView:
        """The state after the step."""
        return RecordedView(self, None, True)

    def require(self, cond: Any) -> None:
        """Record a guard conjunct."""
        if self.updates:
            raise SpecError("a guard must stand before the first assignment", here())
        self.guards.append(Guard(lift(cond), here()))

    def _binder(self, domain: Domain, body: Callable[..., Any], position: int = 0) -> Binder:
        names = body.__code__.co_varnames
        label = names[position] if position < body.__code__.co_argcount else "i"
        sort = domain if isinstance(domain, Sort) else domain.sort
        name = Name(f"{label}_{self.depth}", sort, sort.kind)
        self.depth += 1
        if not isinstance(domain, Between):
            return Binder(name, Const(sort.lo), SortMax(sort, sort.kind))
        lo, hi = lift(domain.lo), lift(domain.hi)
        expect(sort.kind, lo, f"the lower end of a range of {sort}")
        expect(sort.kind, hi, f"the upper end of a range of {sort}")
        return Binder(name, lo, hi)

    def quantify(self, kind: str, domain: Domain, body: Callable[[Any], Any], default: int) -> Any:
        """Record a quantifier."""
        before = self.depth
        binder = self._binder(domain, body)
        value = lift(body(binder.name))
        self.depth = before
        if (kind == "max") == value.is_bool:
            raise SpecError(f"the body of {kind} has the wrong type", here())
        of = NUMBER if kind == "count" else kind_of(value)
        return Quant(kind, binder, value, default, None if value.is_bool and kind != "count" else of)

    def within(self, sort: Sort, value: Any) -> Expr:
        """Record a bound check."""
        expr = lift(value)
        expect(sort.kind, expr, f"what is within {sort}")
        return Within(sort, expr)

    def assign(self, var: Var, index: tuple[Expr, ...], binders: tuple[Binder, ...], value: Any) -> None:
        """Record an update; one that may hit the same cell as an earlier one is refused."""
        expr = lift(value)
        if expr.is_bool != var.values.is_bool:
            wanted, word = (
                ("Boolean", "True, False or a condition") if var.values.is_bool else ("an integer", "a number")
            )
            shown = value if isinstance(value, int) else "a condition" if expr.is_bool else "a number"
            raise SpecError(f"{var.name} is {wanted}: it takes {word}, and got {shown}", here())
        expect(var.values.kind, expr, var.name)
        update = Update(var, index, binders, expr, here())
        for earlier in self.updates:
            if earlier.var is var and not _apart(earlier, update, self._told_apart()):
                raise SpecError(f"{var.name} is assigned twice (first at {earlier.source})", here())
        self.updates.append(update)

    def _told_apart(self) -> set[frozenset[Any]]:
        """Pairs of expressions that a guard says are different."""
        conds = [guard.cond for guard in self.guards]
        return {frozenset(a.key() for a in c.args) for c in conds if isinstance(c, Op) and c.op == "ne"}

    def assign_range(self, var: Var, index: tuple[Any, ...], value: Callable[..., Any]) -> None:
        """Record a range update."""
        if len(index) != len(var.index):
            raise SpecError(f"{var.name} has {len(var.index)} indices, got {len(index)}", here())
        before = self.depth
        binders: list[Binder] = []
        full: list[Expr] = []
        for item in index:
            if isinstance(item, (Sort, Between)):
                binders.append(self._binder(item, value, len(binders)))
                item = binders[-1].name
            full.append(_index(var, len(full), item))
        result = value(*(b.name for b in binders))
        self.depth = before
        self.assign(var, tuple(full), tuple(binders), result)


def _apart(a: Update, b: Update, different: set[frozenset[Any]]) -> bool:
    """Are two updates of one variable certainly about different cells? (Some index differs by a constant, or by a
    guard.)
    """
    for left, right in zip(a.index, b.index, strict=True):
        if frozenset((left.key(), right.key())) in different:
            return True
        if isinstance(left, Const) and isinstance(right, Const) and left.value != right.value:
            return True
        base_l, off_l = _offset(left)
        base_r, off_r = _offset(right)
        bound = {x.name.name for x in (*a.binders, *b.binders)}
        if base_l == base_r and off_l != off_r and not (isinstance(left, Name) and left.name in bound):
            return True
    return False


def _offset(expr: Expr) -> tuple[Any, int]:
    if isinstance(expr, Op) and expr.op in ("add", "sub") and isinstance(expr.args[1], Const):
        base, off = _offset(expr.args[0])
        return base, off + (expr.args[1].value if expr.op == "add" else -expr.args[1].value)
    return expr.key(), 0


def record_action(
    name: str, fn: Callable[..., None], params: tuple[Param, ...], schema: Schema, cfg: Any, doc: str
) -> ActionIR:
    """Run `fn` once on symbols and return what it does."""
    recorder = Recorder(schema, cfg)
    with using(recorder):
        fn(recorder, **{p.name: p.term for p in params})
    return ActionIR(name, params, tuple(recorder.guards), tuple(recorder.updates), source_of(fn), doc)


def record_predicate(name: str, title: str, fn: Callable[..., Any], schema: Schema, cfg: Any, doc: str) -> PredicateIR:
    """Record an invariant or witness."""
    recorder = Recorder(schema, cfg)
    with using(recorder):
        cond = lift(fn(recorder))
    if recorder.guards or recorder.updates:
        raise SpecError(f"predicate {name} must not guard or assign")
    if not cond.is_bool:
        raise SpecError(f"predicate {name} is not Boolean")
    return PredicateIR(name, title, cond, source_of(fn), doc)
