"""Values of event functions' expressions over cells that are not all known.

A column that the trace does not show is a value that is not known. Strings are values, too: known, or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewproof.refinement.events.terms import Apply, Column, Row, Shown, Text
from viewproof.refinement.schema import Column as Declared
from viewproof.spec.engines.guards import Evaluator, Span
from viewproof.spec.engines.guards.cells import Cells
from viewproof.spec.engines.guards.evaluate import Closure, Env, by
from viewproof.spec.engines.replay.cells import PartialCells
from viewproof.spec.lang import Schema
from viewproof.spec.lang.expr import Expr
from viewproof.spec.lang.sorts import Instance

ANY = Span()
"""A value of which nothing is known."""


class TermEvaluator(Evaluator):
    """Values of expressions at one event: `columns` are those it shows, `labels` the names of entries; `absent` grows
    with the columns that were needed and are not shown. `declared` are the columns of the record.
    """

    keeps_known = False

    def __init__(
        self,
        instance: Instance,
        cells: Cells,
        schema: Schema,
        declared: Mapping[str, Declared],
        columns: Mapping[str, Any],
        labels: Mapping[Any, str],
    ) -> None:
        self.instance = instance  # in place of super(): one is made for each expression
        self.cells = cells
        self.readings = []
        self.schema = schema
        self.declared = declared
        self.columns = columns
        self.labels = labels
        self.absent: list[str] = []

    def either(self, left: Any, right: Any) -> Any:
        if isinstance(left, str) or isinstance(right, str):
            return left if left == right else ANY
        return super().either(left, right)

    def open_op(self, op: str, left: Any, right: Any) -> Any:
        if isinstance(left, str) or isinstance(right, str):
            if isinstance(left, Span) or isinstance(right, Span):
                return Span(0, 1)
            return int((left == right) is (op == "eq"))
        return super().open_op(op, left, right)

    def truth_of(self, value: Any) -> bool | None:
        if isinstance(value, Span):
            outside = (value.lo is not None and value.lo > 0) or (value.hi is not None and value.hi < 0)
            return True if outside else None
        return bool(value)

    def _apply(self, expr: Apply, env: Env) -> Any:
        if expr.name == "first_clear":
            return self._first_clear(expr, env)
        if expr.name == "mask":
            return self._mask(expr, env)
        args = [self.value(a, env) for a in expr.args]
        if any(isinstance(a, Span) for a in args):
            return ANY
        if expr.name == "name_of":
            return self.labels.get(tuple(args), ANY)
        assert expr.fn is not None
        value = expr.fn(*args)
        return int(value) if isinstance(value, bool) else value

    def _row(self, row: Expr, member: int, env: Env) -> bool | None:
        assert isinstance(row, Row)
        return self.truth_of(self.read(self.schema.vars[row.var], (self.value(row.node, env), member)))

    def _cells_set(self, expr: Row, env: Env) -> Any:
        """All cells of the node's row that are set, where all are known."""
        node = self.value(expr.node, env)
        assert isinstance(self.cells, PartialCells)
        known = None if isinstance(node, Span) else self.cells.row(self.schema.vars[expr.var], node)
        return ANY if known is None else known

    def _first_clear(self, expr: Apply, env: Env) -> Any:
        """`state.first_clear` where cells may be open: the last op that is certainly set, and the last that may be."""
        row, top = expr.args[0], self.value(expr.args[1], env)
        base = self.value(expr.args[2], env) if len(expr.args) > 2 else 0
        if isinstance(top, Span) or isinstance(base, Span):
            return Span(1, None)
        highest = None
        while top > base:
            truth = self._row(row, top, env)
            if truth is not False and highest is None:
                highest = top + 1
            if truth is True:
                break
            top -= 1
        return top + 1 if highest in (None, top + 1) else Span(top + 1, highest)

    def _mask(self, expr: Apply, env: Env) -> Any:
        row = expr.args[0]
        assert isinstance(row, Row)
        known: Any = self.value(row, env)
        if isinstance(known, dict) and not self.schema.vars[row.var].init:
            return sum(1 << member - 1 for member, value in known.items() if value and 0 < member < 64)
        total = 0
        for member in range(1, 64):
            value = self.read(self.schema.vars[row.var], (self.value(row.node, env), member))
            truth = None if isinstance(value, Span) and not value.lo else bool(value)
            if truth is None:
                return ANY
            total |= int(truth) << member - 1
        return total


def _column(_: type[TermEvaluator], expr: Column) -> Closure:
    name = expr.name

    def shown(of: TermEvaluator, env: Env) -> Any:
        value = of.columns.get(name)
        if value is not None:
            return value
        of.absent.append(name)
        return _unshown(of.declared[name])

    return shown


TermEvaluator.kinds = {
    **Evaluator.kinds,
    Column: _column,
    Text: by(lambda _, expr, env: expr.value),
    Shown: by(lambda of, expr, env: int(of.columns.get(expr.name) is not None)),
    Apply: by(TermEvaluator._apply),
    Row: by(TermEvaluator._cells_set),
}


def _unshown(declared: Declared) -> Span:
    return Span(declared.minimum, None) if declared.kind == "int" else ANY
