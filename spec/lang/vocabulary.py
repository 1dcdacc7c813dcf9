"""The words a specification is written in.

Each works on Python ints and bools (the concrete interpreter) and on symbolic expressions (recording) alike.
Arguments of the Boolean words and the branches of `where` may be thunks (`lambda: …`): these are evaluated only
where they count, so that a read which makes sense only under a condition can stand behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from viewproof.spec.lang.errors import SpecError, here
from viewproof.spec.lang.expr import Const, Expr, Op, lift
from viewproof.spec.lang.sorts import Sort


@dataclass(frozen=True, slots=True)
class Between:
    """The members of a sort from lo to hi, both included; empty if hi < lo."""

    sort: Sort
    lo: Any
    hi: Any


Domain = Sort | Between


class Context(Protocol):
    """What an engine provides while specification functions run."""

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


def between(sort: Sort, lo: Any, hi: Any) -> Between:
    """The range lo .. hi of a sort, for quantifiers and range updates."""
    return Between(sort, lo, hi)


def require(cond: Any) -> None:
    """A conjunct of the action's guard. Conjuncts are taken in order; a false one disables the action."""
    _context().require(_boolean(cond))


def within(sort: Sort, value: Any) -> Any:
    """Is `value` still inside the sort? True in unbounded instances; the bound of a finite model otherwise."""
    return _context().within(sort, value)


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


def all_of(*args: Any) -> Any:
    """Conjunction, left to right."""
    return _connective("and", False, args)


def any_of(*args: Any) -> Any:
    """Disjunction, left to right."""
    return _connective("or", True, args)


def not_(arg: Any) -> Any:
    """Negation."""
    value = _boolean(arg)
    return (not value) if isinstance(value, bool) else Op("not", (value,), True)


def implies(premise: Any, conclusion: Any) -> Any:
    """If premise then conclusion; the conclusion is looked at only where the premise holds."""
    return any_of(not_(premise), conclusion)


def where(cond: Any, then: Any, otherwise: Any) -> Any:
    """`then` where cond holds, else `otherwise`."""
    test = _boolean(cond)
    if isinstance(test, bool):
        return _force(then) if test else _force(otherwise)
    a, b = lift(_force(then)), lift(_force(otherwise))
    if a.is_bool != b.is_bool:
        raise SpecError("the branches of where differ in type", here())
    return Op("ite", (test, a, b), a.is_bool)


def _extreme(op: str, args: tuple[Any, ...]) -> Any:
    result = args[0]
    for arg in args[1:]:
        if isinstance(result, Expr) or isinstance(arg, Expr):
            result = Op(op, (lift(result), lift(arg)))
        else:
            result = max(result, arg) if op == "max" else min(result, arg)
    return result


def largest(*args: Any) -> Any:
    """The largest of the arguments."""
    return _extreme("max", args)


def smallest(*args: Any) -> Any:
    """The smallest of the arguments."""
    return _extreme("min", args)


def forall(domain: Domain, body: Callable[[Any], Any]) -> Any:
    """Does body hold for every member?"""
    return _context().quantify("forall", domain, body, 0)


def exists(domain: Domain, body: Callable[[Any], Any]) -> Any:
    """Does body hold for some member?"""
    return _context().quantify("exists", domain, body, 0)


def count(domain: Domain, body: Callable[[Any], Any]) -> Any:
    """For how many members does body hold?"""
    return _context().quantify("count", domain, body, 0)


def maximum(domain: Domain, body: Callable[[Any], Any], *, default: int = 0) -> Any:
    """The largest value of body over the members, at least `default`."""
    return _context().quantify("max", domain, body, default)
