"""Recorded expressions as text, near to how they were written: parts of a guard have no source of their own."""

from __future__ import annotations

from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import Const, Expr, Name, Op, Quant, Read, SortMax, Within

_INFIX = {"add": "+", "sub": "-", "mod": "%", "eq": "==", "ne": "!=", "lt": "<", "le": "<="}


def text(expr: Expr) -> str:
    """`received(r).ack[v, q, o] == entry[r, o]`."""
    match expr:
        case Const():
            return str(bool(expr.value)) if expr.is_bool else str(expr.value)
        case Name():
            return expr.name.partition("_")[0] or expr.name
        case SortMax():
            return f"last {expr.sort.name}"
        case Read():
            return _read(expr)
        case Within():
            return f"within({expr.sort.name}, {text(expr.value)})"
        case Quant():
            b = expr.binder
            whole = isinstance(b.hi, SortMax) and b.name.sort is not None
            domain = b.name.sort.name if whole and b.name.sort else f"{text(b.lo)} .. {text(b.hi)}"
            return f"{expr.kind}({domain}, {text(b.name)}: {text(expr.body)})"
        case Op():
            return _operation(expr)
    raise SpecError(f"no text of {type(expr).__name__}")


def _read(expr: Read) -> str:
    index = f"[{', '.join(text(i) for i in expr.index)}]" if expr.index else ""
    where = "" if expr.receiver is None else f"received({text(expr.receiver)})."
    return f"{where}{expr.var.name}{'′' if expr.after else ''}{index}"


def _operation(expr: Op) -> str:
    parts = [text(arg) for arg in expr.args]
    if any(isinstance(arg, Quant) and arg.kind == "count" for arg in expr.args):
        parts = ["quorum" if isinstance(arg, Const) else part for part, arg in zip(parts, expr.args, strict=True)]
    if expr.op == "mod":
        parts[1] = "n"  # how many there are: the size of the model, not its text
    if expr.op in _INFIX:
        a, b = (
            f"({p})" if isinstance(arg, Op) and arg.op in _INFIX else p for p, arg in zip(parts, expr.args, strict=True)
        )
        return f"{a} {_INFIX[expr.op]} {b}"
    name = {"and": "all_of", "or": "any_of", "not": "not", "ite": "where"}.get(expr.op, expr.op)
    return f"{name}({', '.join(parts)})"
