"""Where the cells of a replay lie in flat memory: the replicas' own at fixed places, all others in windows.

Every index over a bounded sort (the replicas) has a fixed place; every index over an unbounded one a window, those of
several inside one another. What a receiver has received lies like the message itself, once for each receiver. Places
are words from the beginning of the run's memory; compiled code names them (`external`), so that configurations which
differ in places alone share it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.schema import Schema
from viewproof.spec.lang.sorts import Instance, Sort

FIRST = 16
"""Words of the memory itself (`memory`)."""
HEADER = 4
"""Words of a window's header."""
MEMBERS_MAX = 64
"""Most members of a bounded sort."""
COUNT = "count"
"""The number of members of the bounded sort, to compiled code."""


@dataclass(frozen=True, slots=True)
class Place:
    """A table: its name to compiled code, the sort of each index and whether it is bounded, and the first value."""

    name: str
    index: tuple[tuple[Sort, bool], ...]
    init: int

    @property
    def depth(self) -> int:
        """Windows inside one another."""
        return sum(not bounded for _, bounded in self.index)

    def words(self, members: int) -> int:
        """Words at its fixed place."""
        cells: int = members ** sum(bounded for _, bounded in self.index)
        return cells * (HEADER if self.depth else 1)


class FlatLayout:
    """The places of a schema's variables, of what was received, and of `given` numbers."""

    def __init__(self, schema: Schema, instance: Instance, given: Iterable[str]) -> None:
        bounded = {s.name: s for v in schema.vars.values() for s in v.index if instance.hi(s) is not None}
        if len(bounded) != 1:
            raise SpecError(f"flat replay expects one bounded sort, the replicas; here: {', '.join(sorted(bounded))}")
        (self.actors,) = bounded.values()
        self.members = len(instance.members(self.actors))
        if self.members > MEMBERS_MAX or self.actors.lo:
            raise SpecError(f"flat replay: {self.members} members of {self.actors.name}; at most {MEMBERS_MAX}, from 0")
        self.schema, self.instance = schema, instance
        self.given = tuple(given)
        self.words = FIRST
        self.at: dict[str, int] = {}
        self.places: dict[str, Place] = {}
        self.inboxes: dict[str, Place] = {}
        for name in self.given:
            self._take(f"g_{name}", 1)
        for var in schema.vars.values():
            self.places[var.name] = self.table(f"v_{var.name}", var.index, var.init)
            if var.is_message:
                self.inboxes[var.name] = self.table(f"in_{var.name}", (self.actors, *var.index), var.init)

    def _take(self, name: str, words: int) -> None:
        self.at[name] = self.words
        self.words += words

    def table(self, name: str, index: tuple[Sort, ...], init: int = 0) -> Place:
        """A further table with cells by these indices."""
        place = Place(name, tuple((sort, self.instance.hi(sort) is not None) for sort in index), int(init))
        self._take(name, place.words(self.members))
        return place

    def words_at(self, name: str, words: int) -> str:
        """A further area of so many words; its name to compiled code."""
        self._take(name, words)
        return name

    def symbols(self) -> dict[str, int]:
        """What compiled code names: the first byte of each place, and the number of members of the bounded sort."""
        return {**{f"o_{name}": 8 * at for name, at in self.at.items()}, f"o_{COUNT}": self.members}

    def first_values(self) -> list[tuple[int, int, int]]:
        """Cells at fixed places that are not 0 at first: place, how many, and value."""
        places = [p for p in (*self.places.values(), *self.inboxes.values()) if p.init and not p.depth]
        return [(self.at[place.name], place.words(self.members), place.init) for place in places]

    def to_state(self, words: NDArray[np.int64]) -> State:
        """The state as the reference interpreter holds it."""
        tables = {}
        received: dict[int, dict[str, dict[tuple[int, ...], int]]] = {}
        for var in self.schema.vars.values():
            if cells := dict(self.cells(words, self.places[var.name])):
                tables[var.name] = cells
            if var.is_message:
                for (receiver, *index), value in self.cells(words, self.inboxes[var.name]):
                    received.setdefault(receiver, {}).setdefault(var.name, {})[tuple(index)] = value
        return State(tables, received)

    def cells(self, words: NDArray[np.int64], place: Place) -> Iterator[tuple[tuple[int, ...], int]]:
        """The cells of a table that are not as at first."""
        fixed = [range(self.members) if bounded else range(1) for _, bounded in place.index]
        shape = tuple(len(r) for r in fixed)
        for number, some in enumerate(np.ndindex(shape)):
            if not place.depth:
                value = int(words[self.at[place.name] + number])
                if value != place.init:
                    yield tuple(some), value
                continue
            header = words[self.at[place.name] + HEADER * number :][:HEADER].tolist()
            for inner, value in window(header, place.depth, place.init):
                rest = iter(inner)
                yield tuple(i if b else next(rest) for i, (_, b) in zip(some, place.index, strict=True)), value


def window(header: list[int], depth: int, init: int) -> Iterator[tuple[tuple[int, ...], int]]:
    """The elements of a window, or of windows inside it, that are not as at first, by their places; `header` is its."""
    address, base, size, _ = header
    if not size:
        return
    width = HEADER if depth > 1 else 1
    words = list((ctypes.c_int64 * (size * width)).from_address(address))
    for k in range(size):
        if depth > 1:
            for index, value in window(words[k * width : (k + 1) * width], depth - 1, init):
                yield (base + k, *index), value
        elif words[k] != init:
            yield (base + k,), words[k]
