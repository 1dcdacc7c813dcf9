"""Where each cell of a bounded instance lives: an element of the working row, and a bit field of the packed row.

A working row has one integer per cell (value minus the declared lower bound, at most a byte). A packed row has one
word for the state's fingerprint, then 64-bit words into which the cells are packed with as many bits as their declared
range needs; no field crosses a word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viewproof.spec.lang.concrete import Index, State
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.schema import Schema, Var
from viewproof.spec.lang.sorts import Instance

BYTE_MAX = 255
ZOBRIST_SEED = 0x56505246


@dataclass(frozen=True, slots=True)
class Place:
    """A variable's cells: first cell; per index its smallest and largest member and its stride; the value range."""

    var: Var
    base: int
    index: tuple[tuple[int, int, int], ...]
    lo: int
    hi: int
    cells: int


def value_range(var: Var, instance: Instance) -> tuple[int, int]:
    """Declared range of a variable in a bounded instance; refused if unbounded or wider than a byte."""
    hi = var.values.upper(instance)
    if hi is None:
        raise SpecError(f"explicit: the values of {var.name} are unbounded here; bound sort {var.values.sort}")
    if hi - var.values.lo > BYTE_MAX:
        raise SpecError(f"explicit: {var.name} has {hi - var.values.lo + 1} values, more than fit a byte")
    if not var.values.lo <= var.init <= hi:
        raise SpecError(f"explicit: {var.name} starts at {var.init}, outside {var.values.lo}..{hi}")
    return var.values.lo, hi


class Layout:
    """Places of all variables of a schema in a bounded instance, and the arrays that pack, unpack and hash rows."""

    def __init__(self, schema: Schema, instance: Instance) -> None:
        self.instance = instance
        self.places: dict[str, Place] = {}
        base = 0
        for var in schema.vars.values():
            place = self._place(var, base)
            self.places[var.name] = place
            base += place.cells
        self.cells = base
        if base >= 1 << 16:
            raise SpecError(f"explicit: {base} cells a state; at most {(1 << 16) - 1} are supported")
        self.word, self.shift, self.mask = self._fields()
        self.words = 1 + (int(self.word.max()) if base else 0)
        self.bits = sum(p.cells * (p.hi - p.lo).bit_length() for p in self.places.values())

    def _place(self, var: Var, base: int) -> Place:
        sizes = [len(self.instance.members(sort)) for sort in var.index]
        strides = [int(np.prod(sizes[i + 1 :], dtype=np.int64)) for i in range(len(sizes))]
        lo, hi = value_range(var, self.instance)
        index = tuple(
            (sort.lo, sort.lo + size - 1, stride) for sort, size, stride in zip(var.index, sizes, strides, strict=True)
        )
        return Place(var, base, index, lo, hi, int(np.prod(sizes, dtype=np.int64)))

    def _fields(self) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
        word = np.zeros(self.cells, np.int64)
        shift = np.zeros(self.cells, np.uint64)
        mask = np.zeros(self.cells, np.uint64)
        current, used = 1, 0
        for place in self.places.values():
            bits = (place.hi - place.lo).bit_length()
            for cell in range(place.base, place.base + place.cells):
                if used + bits > 64:
                    current, used = current + 1, 0
                word[cell], shift[cell], mask[cell] = current, min(used, 63), (1 << bits) - 1
                used += bits
        return word, shift, mask

    def zobrist(self) -> NDArray[np.uint64]:
        """Random 64-bit numbers per (cell, value): a state's fingerprint is the exclusive or of those of its cells.

        Two different states have equal fingerprints with probability 2^-64 over the choice of the table.
        """
        width = max((p.hi - p.lo + 1 for p in self.places.values()), default=1)
        rng = np.random.default_rng(ZOBRIST_SEED)
        return rng.integers(0, 1 << 64, size=(max(self.cells, 1), width), dtype=np.uint64)

    def row(self, state: State) -> NDArray[np.int64]:
        """The working row of a concrete state."""
        row = np.zeros(max(self.cells, 1), np.int64)
        for place in self.places.values():
            row[place.base : place.base + place.cells] = place.var.init - place.lo
            for index, value in state.tables.get(place.var.name, {}).items():
                row[self.cell(place.var.name, index)] = value - place.lo
        return row

    def cell(self, name: str, index: Index) -> int:
        """Offset of a cell."""
        place = self.places[name]
        return place.base + sum((i - lo) * stride for i, (lo, _, stride) in zip(index, place.index, strict=True))
