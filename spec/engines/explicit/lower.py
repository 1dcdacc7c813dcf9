"""Lowering of expressions over the working row of a bounded instance (`layout`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from viewproof.spec.engines.explicit.layout import Layout, Place
from viewproof.spec.engines.llvm.lower import Lower, Site, Term
from viewproof.spec.lang.expr import Expr, Read


class RowLower(Lower):
    """Lowers the expressions of one function over rows `s` and, after the step, `t`."""

    def __init__(self, layout: Layout, owner: str, sites: list[Site], fail: Callable[[int], str]) -> None:
        super().__init__(layout.instance, owner, sites, fail)
        self.layout = layout

    def offset(self, place: Place, index: Sequence[Expr]) -> str:
        """Offset of a cell, with the checks that the intervals do not make needless."""
        constant, parts = place.base, []
        for expr, (lo, hi, stride), sort in zip(index, place.index, place.var.index, strict=True):
            term = self.lower(expr)
            if term.lo < lo or term.hi > hi:
                term = self.atom(term)
                self.error(f"{term.text} < {lo} or {term.text} > {hi}", f"index of {place.var.name}: {sort.name}")
            constant -= lo * stride
            if term.lo == term.hi:
                constant += term.lo * stride
            else:
                parts.append(term.text if stride == 1 else f"{term.text} * {stride}")
        if not parts:
            return str(constant)
        return " + ".join(parts) + (f" + {constant}" if constant > 0 else f" - {-constant}" if constant < 0 else "")

    def read(self, expr: Read) -> Term:
        """Value of a cell; what was received is what was sent."""
        place = self.layout.places[expr.var.name]
        if expr.receiver is not None:
            self.lower(expr.receiver)
        cell = f"{'t' if expr.after else 's'}[{self.offset(place, expr.index)}]"
        if expr.is_bool:
            return Term(f"({cell} != 0)", 0, 1)
        text = cell if place.lo == 0 else f"({cell} + {place.lo})"
        return Term(text, place.lo, place.hi)
