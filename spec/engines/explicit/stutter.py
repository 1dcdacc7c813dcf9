"""A transition invariant over a step that changes nothing it reads: the same formula over one state, simplified.

The search asks a transition invariant only about steps that write something it reads. That is right only if steps that
do not would satisfy it; this is what `stuttering` states, and the search checks it once per state.
"""

from __future__ import annotations

from dataclasses import replace

from viewproof.spec.lang.expr import Binder, Const, Expr, Name, Op, Quant, Read, SortMax, Within

_TRUE, _FALSE = Const(1, True), Const(0, True)


def stuttering(expr: Expr) -> Expr:
    """The formula with the state after read as the state before; parts that are then trivially true are dropped."""
    if isinstance(expr, Read):
        index = tuple(stuttering(i) for i in expr.index)
        return Read(expr.var, index, None if expr.receiver is None else stuttering(expr.receiver))
    if isinstance(expr, Within):
        return Within(expr.sort, stuttering(expr.value))
    if isinstance(expr, Quant):
        body = stuttering(expr.body)
        b = expr.binder
        if expr.kind == "forall" and _is(body, True) and _whole_sort(b):
            return _TRUE
        return replace(expr, binder=Binder(b.name, stuttering(b.lo), stuttering(b.hi)), body=body)
    if isinstance(expr, Op):
        return _operation(replace(expr, args=tuple(stuttering(arg) for arg in expr.args)))
    return expr


def _operation(expr: Op) -> Expr:
    if expr.op in ("eq", "le", "ne", "lt") and all(_total(arg) for arg in expr.args):
        if expr.args[0].key() == expr.args[1].key():
            return _TRUE if expr.op in ("eq", "le") else _FALSE
        return expr
    if expr.op in ("and", "or"):
        stop = expr.op == "or"
        kept: list[Expr] = []
        for arg in expr.args:
            if _is(arg, stop):
                kept.append(arg)
                break
            if not _is(arg, not stop):
                kept.append(arg)
        if not kept:
            return _FALSE if stop else _TRUE
        if len(kept) == 1 or _is(kept[0], stop):
            return kept[0]
        if _is(kept[-1], stop) and all(_total(arg) for arg in kept):
            return kept[-1]
        return replace(expr, args=tuple(kept))
    return expr


def _is(expr: Expr, value: bool) -> bool:
    return isinstance(expr, Const) and expr.is_bool and bool(expr.value) == value


def _whole_sort(binder: Binder) -> bool:
    sort = binder.name.sort
    lo, hi = binder.lo, binder.hi
    return sort is not None and isinstance(lo, Const) and lo.value == sort.lo and isinstance(hi, SortMax)


def _total(expr: Expr) -> bool:
    """Can it certainly be evaluated, whatever the state? (Reads at indices that range over the very sort.)"""
    if isinstance(expr, (Const, SortMax, Name)):
        return True
    if isinstance(expr, Read):
        pairs = zip(expr.index, expr.var.index, strict=True)
        return all(isinstance(i, Name) and i.sort is not None and i.sort.name == sort.name for i, sort in pairs)
    if isinstance(expr, (Op, Within)):
        return all(_total(child) for child in expr.children())
    return False
