"""The typed IR: expressions, guards, updates, actions, predicates.

Expressions are immutable and form a graph. They overload arithmetic and comparison, and refuse to be used as a
Python truth value, index or iterable, so that an `if`, `and`, loop or comparison chain on a symbolic value is an
error with its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, cast

from viewproof.spec.lang.errors import Source, SpecError, here
from viewproof.spec.lang.kinds import BOOLEAN, Kind, advice, agree, joined, shown, sum_of
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.sorts import Constant, Sort


class Expr:
    """Base of all IR nodes. `is_bool` is the node's type: Boolean or integer.

    `denotes` is the kind of its value (`kinds`). It is known while recording, where it is checked; engines leave it out
    of the nodes that they make.
    """

    __slots__ = ()
    is_bool: bool = False
    denotes: Kind | None = None

    def _refuse(self, what: str) -> NoReturn:
        raise SpecError(
            f"Python {what} on a symbolic value; use where, all_of, any_of, not_, implies, forall, exists, count",
            here(),
        )

    def __bool__(self) -> bool:
        self._refuse("`if`, `and`, `or`, `not` or comparison chain")

    def __iter__(self) -> Iterator[Any]:
        self._refuse("loop")

    def __index__(self) -> int:
        self._refuse("range() or index")

    def __add__(self, other: Any) -> Expr:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Expr:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Expr:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return binary("sub", other, self)

    def __mod__(self, other: Any) -> Expr:
        if not isinstance(other, int) or other <= 0:
            raise SpecError("modulo needs a positive constant", here())
        return binary("mod", self, other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return binary("eq", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return binary("ne", self, other)

    def __lt__(self, other: Any) -> Expr:
        return binary("lt", self, other)

    def __le__(self, other: Any) -> Expr:
        return binary("le", self, other)

    def __gt__(self, other: Any) -> Expr:
        return binary("lt", other, self)

    def __ge__(self, other: Any) -> Expr:
        return binary("le", other, self)

    __hash__ = object.__hash__

    def key(self) -> tuple[Any, ...]:
        """Structural identity: equal keys mean the same expression."""
        raise SpecError(f"{type(self).__name__} has no structural key")

    def children(self) -> tuple[Expr, ...]:
        """Direct subexpressions."""
        return ()


@dataclass(frozen=True, eq=False, slots=True)
class Const(Expr):
    """A literal; bools are 0/1 with is_bool set."""

    value: int
    is_bool: bool = False
    denotes: Kind | None = None

    def key(self) -> tuple[Any, ...]:
        return ("const", self.value, self.is_bool)


@dataclass(frozen=True, eq=False, slots=True)
class Name(Expr):
    """A parameter of an action, or a variable bound by a quantifier or a range update."""

    name: str
    sort: Sort | None = None
    denotes: Kind | None = None

    def key(self) -> tuple[Any, ...]:
        return ("name", self.name)


@dataclass(frozen=True, eq=False, slots=True)
class SortMax(Expr):
    """The largest member of a sort in the instance at hand (unbounded sorts have none: engines refuse by name)."""

    sort: Sort
    denotes: Kind | None = None

    def key(self) -> tuple[Any, ...]:
        return ("max", self.sort.name)


@dataclass(frozen=True, eq=False, slots=True)
class Read(Expr):
    """Value of a state variable; `receiver` set means: as received by that replica; `after`: in the next state."""

    var: Var
    index: tuple[Expr, ...]
    receiver: Expr | None = None
    after: bool = False
    denotes: Kind | None = None

    @property
    def is_bool(self) -> bool:  # type: ignore[override]
        return self.var.values.is_bool

    def key(self) -> tuple[Any, ...]:
        receiver = None if self.receiver is None else self.receiver.key()
        return ("read", self.var.name, self.after, receiver, *(i.key() for i in self.index))

    def children(self) -> tuple[Expr, ...]:
        return self.index if self.receiver is None else (*self.index, self.receiver)


@dataclass(frozen=True, eq=False, slots=True)
class Op(Expr):
    """add sub mod max min (integer) · eq ne lt le (comparison) · and or not (Boolean) · ite (either type)."""

    op: str
    args: tuple[Expr, ...]
    is_bool: bool = False
    denotes: Kind | None = None

    def key(self) -> tuple[Any, ...]:
        return (self.op, *(a.key() for a in self.args))

    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, eq=False, slots=True)
class Within(Expr):
    """Is the value a member of the sort in this instance? Always true above `lo` where the sort is unbounded."""

    sort: Sort
    value: Expr
    is_bool: bool = True

    def key(self) -> tuple[Any, ...]:
        return ("within", self.sort.name, self.value.key())

    def children(self) -> tuple[Expr, ...]:
        return (self.value,)


@dataclass(frozen=True, eq=False, slots=True)
class Binder:
    """A bound variable with its inclusive range lo .. hi (empty if hi < lo)."""

    name: Name
    lo: Expr
    hi: Expr


@dataclass(frozen=True, eq=False, slots=True)
class Quant(Expr):
    """forall · exists · count · max over one binder. `max` of an empty range is `default`."""

    kind: str
    binder: Binder
    body: Expr
    default: int = 0
    denotes: Kind | None = None

    @property
    def is_bool(self) -> bool:  # type: ignore[override]
        return self.kind in ("forall", "exists")

    def key(self) -> tuple[Any, ...]:
        b = self.binder
        return (self.kind, self.default, b.name.name, b.lo.key(), b.hi.key(), self.body.key())

    def children(self) -> tuple[Expr, ...]:
        return (self.binder.lo, self.binder.hi, self.body)


_COMPARISONS = frozenset({"eq", "ne", "lt", "le"})


def lift(value: Any) -> Expr:
    """A Python int or bool as a literal; expressions unchanged; anything else is refused."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return Const(int(value), True)
    if isinstance(value, Constant):
        return Const(int(value), denotes=value.kind)
    if isinstance(value, int):
        return Const(value)
    raise SpecError(f"a specification works on integers and Booleans, not {type(value).__name__} ({value!r})", here())


def kind_of(expr: Expr) -> Kind | None:
    """What the value of a recorded expression stands for; None for a number that is written out."""
    return BOOLEAN if expr.is_bool else expr.denotes


def denoting(expr: Expr, kind: Kind) -> Expr:
    """The same expression, which stands for another kind of thing now."""
    node: Any = expr
    return cast(Expr, replace(node, denotes=kind))


def expect(kind: Kind | None, expr: Expr, where: str) -> None:
    """The expression is of the kind that its place asks for, or it is refused with both."""
    found = kind_of(expr)
    if not agree(kind, found):
        raise SpecError(f"{where} is {shown(kind)}, got {shown(found)}{advice(kind, found)}", here())


def same_kind(a: Expr, b: Expr, what: str) -> Kind | None:
    """The kind of two expressions that stand for the same sort of thing; others are refused with both."""
    left, right = kind_of(a), kind_of(b)
    if not agree(left, right):
        raise SpecError(f"{what} of {shown(left)} and {shown(right)}{advice(left, right)}", here())
    return joined(left, right)


_WORDS = {"eq": "comparison (==)", "ne": "comparison (!=)", "lt": "comparison (<)", "le": "comparison (<=)"}


def binary(op: str, left: Any, right: Any) -> Expr:
    """A typed binary operation; what does not go together is refused with both kinds."""
    a, b = lift(left), lift(right)
    if op in _COMPARISONS:
        if a.is_bool != b.is_bool:
            raise SpecError("comparison of a Boolean with an integer", here())
        same_kind(a, b, _WORDS[op])
        return Op(op, (a, b), True)
    if a.is_bool or b.is_bool:
        raise SpecError(f"arithmetic ({op}) on a Boolean", here())
    left_kind, right_kind = kind_of(a), kind_of(b)
    fits, kind = sum_of(op, left_kind, right_kind)
    if not fits:
        hint = advice(left_kind, right_kind)
        raise SpecError(f"arithmetic ({op}) on {shown(left_kind)} and {shown(right_kind)}{hint}", here())
    return Op(op, (a, b), denotes=kind)


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node, parents first."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(node.children())


@dataclass(frozen=True, slots=True)
class Guard:
    """One conjunct of an action's guard, with its source text."""

    cond: Expr
    source: Source


@dataclass(frozen=True, slots=True)
class Update:
    """`var[index] = value` for all values of the binders (none: a single cell). Reads are of the state before."""

    var: Var
    index: tuple[Expr, ...]
    binders: tuple[Binder, ...]
    value: Expr
    source: Source


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of an action: its name and the sort it ranges over."""

    name: str
    sort: Sort

    @property
    def term(self) -> Name:
        """The parameter as an expression."""
        return Name(self.name, self.sort, self.sort.kind)


@dataclass(frozen=True)
class ActionIR:
    """An action as recorded: enabled if all guards hold; then all updates happen at once; all else stays."""

    name: str
    params: tuple[Param, ...]
    guards: tuple[Guard, ...]
    updates: tuple[Update, ...]
    source: Source
    doc: str

    def reads(self) -> frozenset[str]:
        """Names of the variables that guards or updates read."""
        exprs = [g.cond for g in self.guards]
        for update in self.updates:
            exprs += [update.value, *update.index]
            for binder in update.binders:
                exprs += [binder.lo, binder.hi]
        return frozenset(n.var.name for e in exprs for n in walk(e) if isinstance(n, Read))

    def writes(self) -> frozenset[str]:
        """Names of the variables it may change: the frame is everything else."""
        return frozenset(u.var.name for u in self.updates)


@dataclass(frozen=True)
class PredicateIR:
    """An invariant or witness: a Boolean over one state, or over a step (`reads_after` not empty)."""

    name: str
    title: str
    cond: Expr
    source: Source
    doc: str
    parts: tuple[Guard, ...] = field(default=())

    @property
    def is_transition(self) -> bool:
        """Does it compare the states before and after a step?"""
        return any(isinstance(n, Read) and n.after for n in walk(self.cond))

    def reads(self) -> frozenset[str]:
        """Names of the variables it looks at."""
        return frozenset(n.var.name for n in walk(self.cond) if isinstance(n, Read))
