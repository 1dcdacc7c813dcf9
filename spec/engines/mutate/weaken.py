"""What can be done to an expression: weaken a guard in one place, exchange one read or branch of a value.

`weaker` looks at polarity: a part under `not` is made stronger, so that the guard as a whole lets more through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from viewproof.spec.engines.mutate.text import text
from viewproof.spec.lang.expr import Binder, Const, Expr, Op, Quant, Read, Within, walk
from viewproof.spec.lang.schema import Schema, Var

Change = tuple[str, str, Expr]
"""What is done, to which part (text), and the whole expression after it."""

_PART = "part left out"


def weaker(expr: Expr, up: bool = True) -> Iterator[Change]:
    """The expression weakened in one place (`up`), or strengthened."""
    if isinstance(expr, Quant) and expr.is_bool:
        yield from _quantified(expr, up)
    elif isinstance(expr, Op) and expr.op in ("and", "or"):
        yield from _connected(expr, up)
    elif isinstance(expr, Op) and expr.op == "not":
        for kind, part, new in weaker(expr.args[0], not up):
            yield kind, part, replace(expr, args=(new,))
    elif isinstance(expr, Op) and expr.op == "ite" and expr.is_bool:
        for n in (1, 2):
            yield from _inside(expr, n, up)
    elif isinstance(expr, Op) and expr.op in ("eq", "ne", "lt", "le"):
        yield from _compared(expr, up)


def _inside(expr: Op, n: int, up: bool) -> Iterator[Change]:
    for kind, part, new in weaker(expr.args[n], up):
        yield kind, part, replace(expr, args=(*expr.args[:n], new, *expr.args[n + 1 :]))


def _connected(expr: Op, up: bool) -> Iterator[Change]:
    swapped = minor_first(expr)
    if swapped is not None:
        yield "minor key first", text(expr), swapped
    for n, arg in enumerate(expr.args):
        if (expr.op == "and") is up and not isinstance(arg, Within):
            rest = expr.args[:n] + expr.args[n + 1 :]
            yield _PART, text(arg), rest[0] if len(rest) == 1 else replace(expr, args=rest)
        yield from _inside(expr, n, up)


def minor_first(expr: Op) -> Op | None:
    """`a < b or (a == b and c <= d)` with the two keys exchanged; None for anything else."""
    if expr.op != "or" or len(expr.args) != 2:
        return None
    first, second = expr.args
    if not (isinstance(first, Op) and first.op == "lt" and isinstance(second, Op) and second.op == "and"):
        return None
    if len(second.args) != 2:
        return None
    same, minor = second.args
    if not (isinstance(same, Op) and same.op == "eq" and isinstance(minor, Op) and minor.op in ("lt", "le")):
        return None
    if [a.key() for a in same.args] != [a.key() for a in first.args]:
        return None
    tied = replace(second, args=(replace(same, args=minor.args), replace(minor, args=first.args)))
    return replace(expr, args=(replace(first, args=minor.args), tied))


def _quantified(expr: Quant, up: bool) -> Iterator[Change]:
    for kind, part, new in weaker(expr.body, up):
        yield kind, part, replace(expr, body=new)
    b = expr.binder
    if (expr.kind == "forall") is up and not isinstance(b.lo, Const):
        yield "range begins one later", text(b.lo), replace(expr, binder=Binder(b.name, _more(b.lo), b.hi))


def _compared(expr: Op, up: bool) -> Iterator[Change]:
    counts = [n for n, arg in enumerate(expr.args) if isinstance(arg, Quant) and arg.kind == "count"]
    for n in counts:
        yield from _counted(expr, n, up)
    if counts or any(arg.is_bool or _is_name(arg) for arg in expr.args):
        return
    a, b = expr.args
    whole = text(expr)
    if expr.op == "lt":
        changed = replace(expr, op="le") if up else replace(expr, args=(_more(a), b))
        yield ("one more" if up else "one fewer"), whole, changed
    elif expr.op == "le":
        yield (
            ("one more", whole, replace(expr, args=(a, _more(b))))
            if up
            else (
                "one fewer",
                whole,
                replace(expr, op="lt"),
            )
        )
    elif expr.op == "eq" and up:
        yield "or less", whole, replace(expr, op="le")
        yield "or more", whole, replace(expr, op="le", args=(b, a))


def _counted(expr: Op, n: int, up: bool) -> Iterator[Change]:
    """A quorum: one smaller, and what is counted."""
    counted = expr.args[n]
    assert isinstance(counted, Quant)
    if expr.op in ("le", "lt"):
        grows = (n == 1) is up
        if grows:
            other = expr.args[1 - n]
            step = _more(other, -1 if n == 1 else 1)
            args = (step, counted) if n == 1 else (counted, step)
            yield "quorum one smaller" if n == 1 else "one more may be counted", "", replace(expr, args=args)
        for kind, part, new in weaker(counted.body, grows):
            changed = replace(counted, body=new)
            yield kind, part, replace(expr, args=(*expr.args[:n], changed, *expr.args[n + 1 :]))


def _more(expr: Expr, by: int = 1) -> Expr:
    """The value and one more, or one less."""
    if isinstance(expr, Const):
        return Const(expr.value + by)
    return Op("add" if by > 0 else "sub", (expr, Const(abs(by))))


def _is_name(expr: Expr) -> bool:
    """Is it one of a set without order: a label, or a remainder?"""
    labelled = isinstance(expr, Read) and bool(expr.var.values.labels)
    return labelled or any(isinstance(node, Op) and node.op == "mod" for node in walk(expr))


def branches(expr: Expr) -> Iterator[Change]:
    """A value with one of its `where` taken always, or never; of equal ones the first."""
    seen: set[tuple[str, str]] = set()
    for path, node in _places(expr, ()):
        for kind, part, new in _simpler(node):
            if (kind, part) not in seen:
                seen.add((kind, part))
                yield kind, part, _put(expr, path, new)


def _simpler(node: Expr) -> Iterator[Change]:
    if isinstance(node, Op) and node.op == "ite":
        yield "condition always true", text(node.args[0]), node.args[1]
        yield "condition never true", text(node.args[0]), node.args[2]
    elif isinstance(node, Op) and node.op in ("max", "min"):
        for arg in node.args:
            yield f"{node.op} is its one part", text(arg), arg


def other_reads(schema: Schema, value: Expr) -> Iterator[Change]:
    """A value that is a cell: the cell of another variable in its place, of the same indices and range."""
    if isinstance(value, Read) and value.var.kind == "state":
        for var in schema.vars.values():
            if var.name != value.var.name and _alike(var, value.var):
                yield f"{var.name} for it", text(value), replace(value, var=var)


def _alike(a: Var, b: Var) -> bool:
    return a.kind == b.kind and a.index == b.index and a.values == b.values and not a.values.is_bool


def _places(expr: Expr, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Expr]]:
    yield path, expr
    for n, child in enumerate(_parts(expr)):
        yield from _places(child, (*path, n))


def _parts(expr: Expr) -> tuple[Expr, ...]:
    """What can be exchanged inside: not the range of a quantifier, nor who receives."""
    if isinstance(expr, Quant):
        return (expr.body,)
    if isinstance(expr, Read):
        return expr.index
    return expr.children()


def _put(expr: Expr, path: tuple[int, ...], new: Expr) -> Expr:
    """The expression with another one at a place."""
    if not path:
        return new
    n, rest = path[0], path[1:]
    if isinstance(expr, Quant):
        return replace(expr, body=_put(expr.body, rest, new))
    if isinstance(expr, Within):
        return replace(expr, value=_put(expr.value, rest, new))
    if isinstance(expr, Read):
        return replace(expr, index=tuple(_put(i, rest, new) if k == n else i for k, i in enumerate(expr.index)))
    assert isinstance(expr, Op)
    return replace(expr, args=tuple(_put(arg, rest, new) if k == n else arg for k, arg in enumerate(expr.args)))
