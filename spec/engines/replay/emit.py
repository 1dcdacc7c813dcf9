"""Python source for IR expressions over the sparse store of `store.py`.

Quantifiers over bounded sorts (the replicas) are unrolled; over ranges they become generator expressions, so that a
step costs what its range costs, whatever the log's length. A quantifier over an unbounded sort is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from viewproof.spec.engines.replay.given import Given
from viewproof.spec.engines.replay.store import Layout
from viewproof.spec.lang.errors import Source, SpecError
from viewproof.spec.lang.expr import Binder, Const, Expr, Name, Op, Quant, Read, SortMax, Within, lift
from viewproof.spec.lang.sorts import Instance

_INFIX = {"add": "+", "sub": "-", "mod": "%", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "and": "and", "or": "or"}
UNROLL_MAX = 16

Names = Mapping[str, str]


class Emitter:
    """Turns expressions into Python text; `names` maps parameters and bound variables to the text that stands for
    them.
    """

    def __init__(self, layout: Layout, instance: Instance) -> None:
        self.layout = layout
        self.instance = instance

    def text(self, expr: Expr, names: Names) -> str:
        """Source text of the expression."""
        match expr:
            case Const():
                return str(expr.value)
            case Name():
                return names[expr.name]
            case Given():
                return f"g_{expr.name}"
            case SortMax():
                return str(self._top(expr))
            case Read():
                return self.read(expr, names)
            case Within():
                return self._within(expr, names)
            case Quant():
                return self._quant(expr, names)
            case Op():
                return self._op(expr, names)
        raise SpecError(f"replay cannot lower {type(expr).__name__}")

    def _top(self, expr: SortMax) -> int:
        top = self.instance.hi(expr.sort)
        if top is None:
            raise SpecError(f"replay cannot run over all of the unbounded sort {expr.sort.name}; use between(lo, hi)")
        return top

    def _op(self, expr: Op, names: Names) -> str:
        args = [self.text(a, names) for a in expr.args]
        if expr.op in _INFIX:
            return "(" + f" {_INFIX[expr.op]} ".join(args) + ")"
        if expr.op == "not":
            return f"(not {args[0]})"
        if expr.op == "ite":
            return f"({args[1]} if {args[0]} else {args[2]})"
        return f"{expr.op}({', '.join(args)})"

    def _within(self, expr: Within, names: Names) -> str:
        value = self.text(expr.value, names)
        top = self.instance.hi(expr.sort)
        upper = "" if top is None else f" <= {top}"
        return f"({expr.sort.lo} <= {value}{upper})"

    def read(self, expr: Read, names: Names) -> str:
        """Read of a cell: of the state, or of what the receiver has received (its own messages it knows)."""
        if expr.after:
            raise SpecError("replay does not evaluate predicates over two states")
        index = [self.text(i, names) for i in expr.index]
        plain = self.layout.read(expr.var, index)
        if expr.receiver is None or expr.var.sender is None:
            return plain
        receiver = self.text(expr.receiver, names)
        sender = self.text(lift(expr.var.sender(*expr.index)), names)
        if sender == receiver:
            return plain
        received = self.layout.read_received(expr.var, index, receiver)
        return f"({plain} if {sender} == {receiver} else {received})"

    def bounds(self, binder: Binder, names: Names) -> tuple[str, str]:
        """Text of a binder's lower and upper end."""
        return self.text(binder.lo, names), self.text(binder.hi, names)

    def _quant(self, expr: Quant, names: Names) -> str:
        binder = expr.binder
        members = self._members(binder)
        if members is not None:
            parts = [self.text(expr.body, {**names, binder.name.name: str(m)}) for m in members]
            return self._unrolled(expr, parts)
        lo, hi = self.bounds(binder, names)
        variable = binder.name.name
        body = self.text(expr.body, {**names, variable: variable})
        loop = f"for {variable} in range({lo}, {hi} + 1)"
        if expr.kind == "forall":
            return f"all({body} {loop})"
        if expr.kind == "exists":
            return f"any({body} {loop})"
        if expr.kind == "count":
            return f"sum(1 {loop} if {body})"
        return f"max(({body} {loop}), default={expr.default})"

    def _members(self, binder: Binder) -> range | None:
        if not isinstance(binder.lo, Const) or not isinstance(binder.hi, SortMax):
            return None
        members = range(binder.lo.value, self._top(binder.hi) + 1)
        return members if len(members) <= UNROLL_MAX else None

    @staticmethod
    def _unrolled(expr: Quant, parts: list[str]) -> str:
        if expr.kind == "forall":
            return "(" + " and ".join(parts or ["True"]) + ")"
        if expr.kind == "exists":
            return "(" + " or ".join(parts or ["False"]) + ")"
        if expr.kind == "count":
            return "(" + " + ".join(f"(1 if {p} else 0)" for p in parts or ["False"]) + ")"
        return "max(" + ", ".join([str(expr.default), str(expr.default), *parts]) + ")"


def refuse(action: str, source: Source, error: SpecError) -> SpecError:
    """The same refusal, with the action and line at fault."""
    return SpecError(f"{action}: {error.message}", source)
