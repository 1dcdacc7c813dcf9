"""Terms as z3 expressions: integers are bit-vectors of one width per proof, wide enough for every range that occurs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import z3

from viewproof.spec.engines.smt.terms import Term, Terms


class Encoder:
    """Hands terms to z3; one per solver process.

    A cell's bit-vector is as narrow as its range allows; `limits` says that it holds no value above the range.
    """

    def __init__(self, terms: Terms, width: int = 8) -> None:
        self.terms = terms
        self.width = width
        self._known: dict[int, Any] = {}

    def cell(self, number: int) -> Any:
        """The z3 constant of a cell."""
        term = self.terms.cells[number]
        if term.is_bool:
            return z3.Bool(f"c{number}")
        return z3.BitVec(f"c{number}", max(1, (term.hi - term.lo).bit_length()))

    def limits(self, number: int) -> Any | None:
        """The bound of a cell, None if its width says it all."""
        term = self.terms.cells[number]
        size = term.hi - term.lo
        if term.is_bool or (size > 0 and size & (size + 1) == 0):
            return None
        return z3.ULE(self.cell(number), z3.BitVecVal(size, max(1, size.bit_length())))

    def value(self, model: Any, number: int) -> int:
        """Value of a cell in a model; what the model leaves open is the smallest."""
        term = self.terms.cells[number]
        found = model.eval(self.cell(number), model_completion=True)
        return int(z3.is_true(found)) if term.is_bool else term.lo + int(found.as_long())

    def __call__(self, term: Term) -> Any:
        """The z3 expression of a term."""
        found = self._known.get(term.id)
        if found is None:
            found = self._known[term.id] = self._encode(term)
        return found

    def _encode(self, term: Term) -> Any:
        if not term.is_bool and not (-(1 << (self.width - 1)) <= term.lo and term.hi < 1 << (self.width - 1)):
            raise OverflowError(f"a value {term.lo}..{term.hi} does not fit {self.width} bits")
        kind = term.kind
        if kind == "const":
            return z3.BoolVal(bool(term.lo)) if term.is_bool else z3.BitVecVal(term.lo, self.width)
        if kind == "cell":
            return self._cell(term)
        if kind == "atleast":
            return z3.PbGe([(self(a), 1) for a in term.args[1:]], term.args[0])
        args = [self(a) for a in term.args]
        if kind == "count":
            one, zero = z3.BitVecVal(1, self.width), z3.BitVecVal(0, self.width)
            return sum((z3.If(a, one, zero) for a in args[1:]), z3.If(args[0], one, zero))
        return OPERATIONS[kind](*args)

    def _cell(self, term: Term) -> Any:
        cell = self.cell(term.args[0])
        if term.is_bool:
            return cell
        wide = z3.ZeroExt(self.width - cell.size(), cell)
        return wide + z3.BitVecVal(term.lo, self.width) if term.lo else wide


OPERATIONS: Mapping[str, Any] = {
    "not": z3.Not,
    "and": lambda *a: z3.And(*a),
    "or": lambda *a: z3.Or(*a),
    "eq": lambda a, b: a == b,
    "le": lambda a, b: a <= b,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "ite": z3.If,
}
