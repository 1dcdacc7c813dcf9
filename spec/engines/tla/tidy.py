"""Rewriting of the IR for readers, before it is printed. Meaning and order of evaluation stay the same.

`implies` is an operation of this engine only: it is printed as `=>`.
"""

from __future__ import annotations

from dataclasses import replace

from viewproof.spec.lang.expr import Binder, Const, Expr, Op, Quant, Read, Within

OPPOSITE = {"eq": "ne", "ne": "eq"}


def tidy(expr: Expr) -> Expr:
    """The expression with implications, negated equations and Boolean conditionals in their usual form."""
    if isinstance(expr, Read):
        return Read(expr.var, tuple(tidy(i) for i in expr.index), None, expr.after)
    if isinstance(expr, Within):
        return Within(expr.sort, tidy(expr.value))
    if isinstance(expr, Quant):
        return replace(expr, binder=tidy_binder(expr.binder), body=tidy(expr.body))
    if isinstance(expr, Op):
        return _operation(expr)
    return expr


def tidy_binder(binder: Binder) -> Binder:
    """The same for the ends of a range."""
    return Binder(binder.name, tidy(binder.lo), tidy(binder.hi))


def _operation(expr: Op) -> Expr:
    first = expr.args[0]
    if expr.op == "or" and len(expr.args) == 2 and isinstance(first, Op) and first.op == "not":
        return Op("implies", (tidy(first.args[0]), tidy(expr.args[1])), True)
    args = tuple(tidy(a) for a in expr.args)
    if expr.op == "not":
        return negation(args[0])
    if expr.op == "ite" and expr.is_bool:
        return _conditional(*args)
    if expr.op in ("and", "or"):
        return _joined(expr.op, args)
    return Op(expr.op, args, expr.is_bool)


def negation(arg: Expr) -> Expr:
    """The opposite of a Boolean."""
    if isinstance(arg, Op) and arg.op in OPPOSITE:
        return Op(OPPOSITE[arg.op], arg.args, True)
    return Op("not", (arg,), True)


def _joined(op: str, args: tuple[Expr, ...]) -> Expr:
    """A conjunction or disjunction, with those of the same kind inside it taken up."""
    parts: list[Expr] = []
    for arg in args:
        parts += arg.args if isinstance(arg, Op) and arg.op == op else (arg,)
    return Op(op, tuple(parts), True)


def _conditional(test: Expr, then: Expr, otherwise: Expr) -> Expr:
    """IF over Booleans: with a constant branch it is a connective."""
    if isinstance(then, Const):
        return _joined("or", (test, otherwise)) if then.value else _joined("and", (negation(test), otherwise))
    if isinstance(otherwise, Const):
        return Op("implies", (test, then), True) if otherwise.value else _joined("and", (test, then))
    return Op("ite", (test, then, otherwise), True)
