"""The words a specification is written in.

Each works on Python ints and bools (the concrete interpreter) and on symbolic expressions (recording) alike.
Arguments of the Boolean words and the branches of `where` may be thunks (`lambda: …`): these are evaluated only
where they count, so that a read which makes sense only under a condition can stand behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, cast, overload

from viewproof.spec.lang.errors import SpecError, here
from viewproof.spec.lang.expr import Const, Expr, Op, denoting, expect, kind_of, lift, same_kind
from viewproof.spec.lang.kinds import ANY_OPTIONAL, INDEX, NUMBER, NUMERIC, OPTIONAL, optional_of, shown
from viewproof.spec.lang.sorts import Constant, Sort
from viewproof.spec.lang.terms import Bool, I, Number, Option, T, V

Truth = Bool | bool
"""A Boolean term, or a Boolean of the configuration."""
Condition = Truth | Callable[[], Truth]
"""What a Boolean word takes: it is looked at only where it counts if it is a thunk."""


@dataclass(frozen=True, slots=True)
class Between(Generic[I]):
    """The members of a sort from lo to hi, both included; empty if hi < lo."""

    sort: Sort
    lo: Any
    hi: Any


Domain = Sort | Between[Any]


class Context(Protocol):
    """What an engine provides while specification functions run."""

    records: bool
    """Does it record expressions, rather than work on ints?"""

    def require(self, cond: Any) -> None:
        """Take a guard conjunct."""

    def quantify(self, kind: str, domain: Domain, body: Callable[[Any], Any], default: int) -> Any:
        """Evaluate a quantifier."""

    def within(self, sort: Sort, value: Any) -> Any:
        """Is value a member of sort in this instance?"""


_active: list[Context] = []


class using:  # noqa: N801 - reads as a statement: `with using(context):`
    """Make a context the one that the words below speak to."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def __enter__(self) -> Context:
        _active.append(self.context)
        return self.context

    def __exit__(self, *_: object) -> None:
        _active.pop()


def _context() -> Context:
    if not _active:
        raise SpecError("specification functions run under an engine (interp, or recording), not on their own", here())
    return _active[-1]


def _force(value: Any) -> Any:
    return value() if callable(value) else value


def _boolean(value: Any) -> Any:
    forced = _force(value)
    if isinstance(forced, Expr):
        if not forced.is_bool:
            raise SpecError("expected a Boolean, got an integer expression", here())
        return forced
    if isinstance(forced, bool):
        return forced
    if hasattr(forced, "refuse"):
        return forced.refuse()
    raise SpecError(f"expected a Boolean, got {forced!r}", here())


def between(sort: type[I], lo: I | int, hi: I | int) -> Between[I]:
    """The range lo .. hi of a sort, for quantifiers and range updates."""
    return Between(cast(Sort, sort), lo, hi)


def require(cond: Truth) -> None:
    """A conjunct of the action's guard. Conjuncts are taken in order; a false one disables the action."""
    _context().require(_boolean(cond))


def within(sort: type[I], value: I | int) -> Bool:
    """Is `value` still inside the sort? True in unbounded instances; the bound of a finite model otherwise."""
    return cast(Bool, _context().within(cast(Sort, sort), value))


def some(value: I | int) -> Option[I]:
    """The optional that holds `value`."""
    term: Any = value
    if not isinstance(term, Expr):
        return cast(Option[I], Constant(term + 1, ANY_OPTIONAL) if _context().records else term + 1)
    kind = kind_of(term)
    if kind is not None and kind.role != INDEX:
        raise SpecError(f"an optional holds an index, not {shown(kind)}", here())
    return cast(Option[I], Op("add", (term, Const(1)), denotes=ANY_OPTIONAL if kind is None else optional_of(kind)))


def value_of(entry: Option[I]) -> I:
    """What the optional holds; it must hold something where the value counts."""
    term: Any = entry
    if not isinstance(term, Expr):
        return cast(I, term - 1)
    kind = kind_of(term)
    if kind is None or kind.role != OPTIONAL:
        raise SpecError(f"value_of takes an optional apart, not {shown(kind)}", here())
    return cast(I, Op("sub", (term, Const(1)), denotes=kind.of))


def number_of(index: I | int) -> Number:
    """The index as a Number, to count with."""
    term: Any = index
    if not isinstance(term, Expr):
        return cast(Number, term)
    kind = kind_of(term)
    if kind is not None and kind.role not in (INDEX, NUMERIC):
        raise SpecError(f"number_of takes an index, not {shown(kind)}", here())
    return cast(Number, denoting(term, NUMBER))


def as_index(sort: type[I], number: Number | int) -> I:
    """The Number as a member of the sort."""
    term: Any = number
    if not isinstance(term, Expr):
        return cast(I, term)
    expect(NUMBER, term, f"what becomes a member of {sort}")
    return cast(I, denoting(term, cast(Sort, sort).kind))


def _connective(op: str, stop: bool, args: tuple[Any, ...]) -> Any:
    exprs: list[Expr] = []
    for arg in args:
        value = _boolean(arg)
        if isinstance(value, bool):
            if value is stop:
                if not exprs:
                    return stop
                exprs.append(Const(int(stop), True))
                break
            continue
        exprs.append(value)
    if not exprs:
        return not stop
    return exprs[0] if len(exprs) == 1 else Op(op, tuple(exprs), True)


def all_of(*args: Condition) -> Bool:
    """Conjunction, left to right."""
    return cast(Bool, _connective("and", False, args))


def any_of(*args: Condition) -> Bool:
    """Disjunction, left to right."""
    return cast(Bool, _connective("or", True, args))


def not_(arg: Condition) -> Bool:
    """Negation."""
    value = _boolean(arg)
    return cast(Bool, (not value) if isinstance(value, bool) else Op("not", (value,), True))


def implies(premise: Condition, conclusion: Condition) -> Bool:
    """If premise then conclusion; the conclusion is looked at only where the premise holds."""
    return any_of(not_(premise), conclusion)


@overload
def where(  # type: ignore[overload-overlap]
    cond: Condition, then: Condition, otherwise: Condition
) -> Bool: ...
@overload
def where(cond: Condition, then: T | Callable[[], T], otherwise: T | Callable[[], T]) -> T: ...
@overload
def where(cond: Condition, then: T | Callable[[], T], otherwise: int | Callable[[], int]) -> T: ...
@overload
def where(cond: Condition, then: int | Callable[[], int], otherwise: T | Callable[[], T]) -> T: ...
@overload
def where(cond: Condition, then: int, otherwise: int) -> Number: ...
def where(cond: Condition, then: Any, otherwise: Any) -> Any:
    """`then` where cond holds, else `otherwise`."""
    test = _boolean(cond)
    if isinstance(test, bool):
        return _force(then) if test else _force(otherwise)
    a, b = lift(_force(then)), lift(_force(otherwise))
    if a.is_bool != b.is_bool:
        raise SpecError("the branches of where differ in type", here())
    kind = same_kind(a, b, "the branches of where are")
    return Op("ite", (test, a, b), a.is_bool, kind)


def _extreme(op: str, args: tuple[Any, ...]) -> Any:
    result = args[0]
    for arg in args[1:]:
        if isinstance(result, Expr) or isinstance(arg, Expr):
            a, b = lift(result), lift(arg)
            if a.is_bool or b.is_bool:
                raise SpecError(f"arithmetic ({op}) on a Boolean", here())
            result = Op(op, (a, b), denotes=same_kind(a, b, f"{op}imum"))
        else:
            result = max(result, arg) if op == "max" else min(result, arg)
    return result


def largest(*args: V | int) -> V:
    """The largest of the arguments."""
    return cast(V, _extreme("max", args))


def smallest(*args: V | int) -> V:
    """The smallest of the arguments."""
    return cast(V, _extreme("min", args))


def forall(domain: type[I] | Between[I], body: Callable[[I], Truth]) -> Bool:
    """Does body hold for every member?"""
    return cast(Bool, _context().quantify("forall", cast(Domain, domain), body, 0))


def exists(domain: type[I] | Between[I], body: Callable[[I], Truth]) -> Bool:
    """Does body hold for some member?"""
    return cast(Bool, _context().quantify("exists", cast(Domain, domain), body, 0))


def count(domain: type[I] | Between[I], body: Callable[[I], Truth]) -> Number:
    """For how many members does body hold?"""
    return cast(Number, _context().quantify("count", cast(Domain, domain), body, 0))


def maximum(domain: type[I] | Between[I], body: Callable[[I], V | int], *, default: int = 0) -> V:
    """The largest value of body over the members, at least `default`."""
    return cast(V, _context().quantify("max", cast(Domain, domain), body, default))
