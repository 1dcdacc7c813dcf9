"""Expressions of the mapping table as recorded expressions, and their values over cells that are not all known.

A column that the trace does not show is a value that is not known. Strings are values, too: known, or not.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from viewproof.refinement.mapping.partitions import PARTITIONS, reader
from viewproof.refinement.schema import BY_NAME, INDEX
from viewproof.spec.engines.guards import Evaluator, Span
from viewproof.spec.engines.guards.cells import Cells
from viewproof.spec.engines.guards.evaluate import Env
from viewproof.spec.lang import Schema
from viewproof.spec.lang.expr import Const, Expr, Name, Op, Read
from viewproof.spec.lang.sorts import Instance
from viewproof.spec.vsr import Config
from viewproof.spec.vsr.parts.clients.table import Outcome
from viewproof.spec.vsr.parts.partitions.state import Asked

ANY = Span()
"""A value of which nothing is known."""


@dataclass(frozen=True, eq=False, slots=True)
class Column(Expr):
    """A column of the event."""

    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Text(Expr):
    """A string."""

    value: str


@dataclass(frozen=True, eq=False, slots=True)
class Shown(Expr):
    """Does the event show the column?"""

    name: str
    is_bool: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Apply(Expr):
    """A helper of the mapping: known if its arguments are."""

    name: str
    args: tuple[Expr, ...]

    def children(self) -> tuple[Expr, ...]:
        return self.args


@dataclass(frozen=True, eq=False, slots=True)
class Row(Expr):
    """All cells of a replica's variable, for helpers that look at a range of them."""

    var: str
    node: Expr


_OPS: Mapping[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mod: "mod"}
_APPLIED: Mapping[type, str] = {ast.Mult: "mul", ast.RShift: "shift", ast.BitAnd: "bits"}
_COMPARED: Mapping[type, tuple[str, bool]] = {
    ast.Eq: ("eq", False),
    ast.NotEq: ("ne", False),
    ast.Lt: ("lt", False),
    ast.LtE: ("le", False),
    ast.Gt: ("lt", True),
    ast.GtE: ("le", True),
}

HELPERS: Mapping[str, Callable[..., Any]] = {
    "mul": lambda a, b: a * b,
    "shift": lambda a, b: a >> b,
    "bits": lambda a, b: a & b,
    "modulo": lambda a, b: a % b,
    "min": min,
    "outcome": Outcome.labels.index,
    "operation": Asked.labels.__getitem__,
    "reader": reader,
}


class Terms:
    """Translates texts of the mapping table, each once."""

    def __init__(self, schema: Schema, cfg: Config) -> None:
        self.schema = schema
        self.constants = {
            "replica_count": cfg.replicas,
            "q_r": cfg.quorum_replication,
            "q_v": cfg.quorum_view_change,
            "partition_count": PARTITIONS,
        }
        self._made: dict[str, Expr] = {}

    def of(self, text: str) -> Expr:
        """The expression of a text."""
        if text not in self._made:
            self._made[text] = self._expr(ast.parse(text, mode="eval").body)
        return self._made[text]

    def _expr(self, node: ast.expr) -> Expr:
        match node:
            case ast.Constant(value=str(value)):
                return Text(value)
            case ast.Constant(value=int(value)):
                return Const(int(value), isinstance(value, bool))
            case ast.Name(id=name):
                if name in self.constants:
                    return Const(self.constants[name])
                return Column(name) if name in INDEX else Name(name)
            case ast.BoolOp(op=op, values=values):
                return Op("and" if isinstance(op, ast.And) else "or", tuple(map(self._expr, values)), True)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Op("not", (self._expr(operand),), True)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return Op("ite", (self._expr(test), self._expr(body), self._expr(orelse)))
            case ast.BinOp(left=left, op=op, right=right):
                args = self._expr(left), self._expr(right)
                if isinstance(op, ast.Mod) and not isinstance(args[1], Const):
                    return Apply("modulo", args)
                return Op(_OPS[type(op)], args) if type(op) in _OPS else Apply(_APPLIED[type(op)], args)
            case ast.Compare():
                return self._compare(node)
            case ast.Subscript(value=ast.Attribute(attr=var), slice=index):
                return self._read(var, index.elts if isinstance(index, ast.Tuple) else [index])
            case ast.Call(func=ast.Name(id=name), args=args):
                return Apply(name, tuple(map(self._expr, args)))
        raise TypeError(f"the mapping has no {ast.unparse(node)}")

    def _read(self, var: str, index: list[ast.expr]) -> Expr:
        declared = self.schema.vars[var]
        parts = tuple(map(self._expr, index))
        return Read(declared, parts) if len(parts) == len(declared.index) else Row(var, parts[0])

    def _compare(self, node: ast.Compare) -> Expr:
        operands = [node.left, *node.comparators]
        parts = []
        for left, op, right in zip(operands, node.ops, operands[1:], strict=False):
            if isinstance(op, (ast.Is, ast.IsNot)):
                assert isinstance(left, ast.Name)
                shown: Expr = Shown(left.id)
                parts.append(shown if isinstance(op, ast.IsNot) else Op("not", (shown,), True))
            elif isinstance(op, ast.In):
                assert isinstance(right, ast.Tuple)
                each = tuple(Op("eq", (self._expr(left), self._expr(x)), True) for x in right.elts)
                parts.append(Op("or", each, True))
            else:
                name, swapped = _COMPARED[type(op)]
                pair = self._expr(left), self._expr(right)
                parts.append(Op(name, pair[::-1] if swapped else pair, True))
        return parts[0] if len(parts) == 1 else Op("and", tuple(parts), True)


class TermEvaluator(Evaluator):
    """Values of a mapping's expressions at one event: `columns` are those it shows, `labels` the names of entries;
    `absent` grows with the columns that were needed and are not shown.
    """

    def __init__(
        self, instance: Instance, cells: Cells, schema: Schema, columns: Mapping[str, Any], labels: Mapping[Any, str]
    ) -> None:
        super().__init__(instance, cells)
        self.schema = schema
        self.columns = columns
        self.labels = labels
        self.absent: list[str] = []

    def value(self, expr: Expr, env: Env) -> Any:
        match expr:
            case Column():
                value = self.columns.get(expr.name)
                if value is None:
                    self.absent.append(expr.name)
                    return _unshown(expr.name)
                return value
            case Text():
                return expr.value
            case Shown():
                return int(self.columns.get(expr.name) is not None)
            case Apply():
                return self._apply(expr, env)
            case Op(op="eq" | "ne"):
                left, right = (self.value(a, env) for a in expr.args)
                if isinstance(left, str) or isinstance(right, str):
                    if isinstance(left, Span) or isinstance(right, Span):
                        return Span(0, 1)
                    return int((left == right) is (expr.op == "eq"))
            case Op(op="ite"):
                truth = self.truth(expr.args[0], env)
                if truth is not None:
                    return self.value(expr.args[1 if truth else 2], env)
                either = [self.value(arg, env) for arg in expr.args[1:]]
                if any(isinstance(one, str) for one in either):
                    return either[0] if either[0] == either[1] else ANY
        return super().value(expr, env)

    def truth(self, expr: Expr, env: Env) -> bool | None:
        value = self.value(expr, env)
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
        return HELPERS[expr.name](*args)

    def _row(self, row: Expr, member: int, env: Env) -> bool | None:
        assert isinstance(row, Row)
        return self.truth(Read(self.schema.vars[row.var], (row.node, Const(member))), env)

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
        var = self.schema.vars[row.var]
        total = 0
        for member in range(1, 64):
            value = self.value(Read(var, (row.node, Const(member))), env)
            truth = None if isinstance(value, Span) and not value.lo else bool(value)
            if truth is None:
                return ANY
            total |= int(truth) << member - 1
        return total


def _unshown(column: str) -> Span:
    declared = BY_NAME[column]
    return Span(declared.minimum, None) if declared.kind == "int" else ANY


__all__ = ["ANY", "Apply", "Column", "Row", "Shown", "TermEvaluator", "Terms", "Text"]
