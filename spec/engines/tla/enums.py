"""Which enumerated variables can be written as strings: those that are only compared with, and assigned, their own
labels. An enumeration that is computed with stays a number.
"""

from __future__ import annotations

from collections.abc import Iterable

from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.expr import Const, Expr, Op, Read, walk
from viewproof.spec.lang.schema import Var

Labels = tuple[str, ...]


class Enums:
    """The labels of expressions, given the variables that have to stay numbers."""

    def __init__(self, numeric: frozenset[str] = frozenset()) -> None:
        self.numeric = numeric

    def declared(self, var: Var) -> Labels:
        """Labels of a variable's values, if it is written with them."""
        return () if var.name in self.numeric else var.values.labels

    def of(self, expr: Expr) -> Labels:
        """Labels of the values of an expression; empty for numbers, Booleans and literals."""
        if isinstance(expr, Read):
            return self.declared(expr.var)
        if isinstance(expr, Op) and expr.op == "ite":
            return self.of(expr.args[1]) or self.of(expr.args[2])
        return ()

    def fits(self, expr: Expr, labels: Labels) -> bool:
        """Can the expression be written as one of these labels?"""
        if isinstance(expr, Const):
            return not expr.is_bool and 0 <= expr.value < len(labels)
        if isinstance(expr, Op) and expr.op == "ite":
            return self.fits(expr.args[1], labels) and self.fits(expr.args[2], labels)
        return self.of(expr) == labels


def numeric_enums(spec: Spec) -> frozenset[str]:
    """Names of the enumerated variables that are used as numbers somewhere."""
    known: frozenset[str] = frozenset()
    while True:
        enums = Enums(known)
        found = known | {name for expr in _all(spec) for name in _misused(enums, expr)}
        for action in spec.action_irs:
            for update in action.updates:
                labels = enums.declared(update.var)
                if labels and not enums.fits(update.value, labels):
                    found |= {update.var.name, *_labelled(enums, update.value)}
                elif not labels:
                    found |= _labelled(enums, update.value)
        if found == known:
            return known
        known = found


def _all(spec: Spec) -> Iterable[Expr]:
    for action in spec.action_irs:
        yield from (g.cond for g in action.guards)
        for update in action.updates:
            yield from (update.value, *update.index)
            for binder in update.binders:
                yield from (binder.lo, binder.hi)
    for predicate in (*spec.invariant_irs, *spec.witness_irs):
        yield predicate.cond


def _labelled(enums: Enums, expr: Expr) -> frozenset[str]:
    """Variables whose labels the value of the expression may be."""
    if isinstance(expr, Read) and enums.of(expr):
        return frozenset([expr.var.name])
    if isinstance(expr, Op) and expr.op == "ite":
        return _labelled(enums, expr.args[1]) | _labelled(enums, expr.args[2])
    return frozenset()


def _misused(enums: Enums, root: Expr) -> Iterable[str]:
    """Enumerated variables that an expression needs as numbers."""
    for node in walk(root):
        if isinstance(node, Op) and node.op in ("eq", "ne"):
            left, right = node.args
            labels = enums.of(left) or enums.of(right)
            if labels and not (enums.fits(left, labels) and enums.fits(right, labels)):
                yield from _labelled(enums, left) | _labelled(enums, right)
        elif isinstance(node, Op) and node.op != "ite":
            for arg in node.args:
                yield from _labelled(enums, arg)
        elif not isinstance(node, Op):
            yield from (n for part in node.children() for n in _labelled(enums, part))
