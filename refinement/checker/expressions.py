"""Expressions of the mapping table: Python text over columns and `spec.<variable>[…]`, translated to the replay's
store.
"""

from __future__ import annotations

import ast

from viewproof.refinement.schema import INDEX
from viewproof.spec.engines.replay import Layout

HELPERS = frozenset({"first_clear", "replica_count", "q_r", "q_v", "min", "name_of", "outcome", "mask", "o", "x", "f"})
HELPERS |= {"partition_count", "reader", "operation"}


class MappingError(Exception):
    """The mapping table names something that neither the trace nor the specification has."""


def names_of(text: str) -> set[str]:
    """All names in an expression; none in an empty one."""
    return {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)} if text else set()


def columns_of(text: str) -> list[str]:
    """Trace columns that an expression uses, in order of first use."""
    names = [n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name) and n.id in INDEX]
    return list(dict.fromkeys(names))


def translate(text: str, layout: Layout) -> str:
    """The expression with spec reads turned into reads of the store `S`."""
    tree = _Spec(layout, text).visit(ast.parse(text, mode="eval"))
    return ast.unparse(tree)


class _Spec(ast.NodeTransformer):
    def __init__(self, layout: Layout, text: str) -> None:
        self.layout = layout
        self.text = text

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in INDEX and node.id not in HELPERS:
            raise MappingError(f"mapping: {self.text!r} names {node.id!r}, which is no column and no helper")
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`name_of(entry, op)` is the checksum that names the entry; other calls are helpers of the handlers' scope."""
        node.args = [self.visit(arg) for arg in node.args]
        if isinstance(node.func, ast.Name) and node.func.id == "name_of":
            return ast.parse(f"C.labels.get(({', '.join(map(ast.unparse, node.args))}))", mode="eval").body
        self.visit(node.func)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        target = node.value
        if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "spec"):
            raise MappingError(f"mapping: {self.text!r} may only index spec variables")
        var = self.layout.schema.vars.get(target.attr)
        if var is None:
            raise MappingError(f"mapping: {self.text!r} names spec variable {target.attr!r}, which is not declared")
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = [ast.unparse(self.visit(item)) for item in items]
        if self.layout.shape(var) == "rows" and len(index) == 1 and len(var.index) > 1:
            return ast.parse(f"S.v_{var.name}[{index[0]}]", mode="eval").body
        if len(index) != len(var.index):
            raise MappingError(f"mapping: {self.text!r}: {var.name} has {len(var.index)} indices")
        return ast.parse(self.layout.read(var, index), mode="eval").body
