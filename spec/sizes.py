"""The size of a bounded model: replicas, and the numbers of its other indices. Protocols list the sizes to search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

STATES_MAX = 12_000_000
"""States after which a search of a shape stops, where nothing else is said: a few seconds."""
NARROWS = {"narrows": True}
"""Metadata of a number of `bounds` that leaves behaviours out: a model with a larger one is not larger."""


@dataclass(frozen=True)
class Size:
    """Replicas and bounds (a protocol's record of numbers), and after how many states a search stops."""

    replicas: int
    bounds: Any
    max_states: int = STATES_MAX

    @property
    def name(self) -> str:
        """In words: `3 replicas, 2 views, 1 op, 1 client, 1 request`; what there is none of is left out."""
        sizes = {"replicas": self.replicas, **vars(self.bounds)}
        return ", ".join(_in_words(name, n) for name, n in sizes.items() if n)

    @property
    def volume(self) -> int:
        """How large it is, roughly: the product of its numbers, the replicas twice."""
        volume = self.replicas
        for number in (self.replicas, *(getattr(self.bounds, name) for name in _growing(self.bounds))):
            volume *= number + 1
        return volume

    def larger(self) -> list[Size]:
        """The sizes one step larger, searched to their end: one number that the model has, by one."""
        grown = [
            replace(self.bounds, **{name: getattr(self.bounds, name) + 1})
            for name in _growing(self.bounds)
            if getattr(self.bounds, name)
        ]
        sizes = [Size(self.replicas, bounds) for bounds in grown] + [Size(self.replicas + 1, self.bounds)]
        return [size.to_the_end() for size in sizes]

    def to_the_end(self) -> Size:
        """The same without a bound of states."""
        return replace(self, max_states=1 << 32)


def _growing(bounds: Any) -> list[str]:
    """The numbers that make a model larger."""
    return [f.name for f in fields(bounds) if not f.name.startswith("quorum") and "narrows" not in f.metadata]


def _in_words(name: str, number: int) -> str:
    """`1 view`, `2 views`, `quorum replication 3`: sizes are named in the plural, but for those of quorums."""
    if name.startswith("quorum"):
        return f"{name.replace('_', ' ')} {number}"
    return f"{number} {name.removesuffix('s') if number == 1 else name}"


@dataclass(frozen=True)
class Portfolio:
    """The sizes that a check of a model searches, the cheapest first.

    `table`: the model under which its table of mutants is kept (models that differ by size only share it). `beside`:
    models whose tables have the places that this one has from them; its own table is of the rest. `unmet`: witnesses
    and actions that these sizes do not meet → why.
    """

    table: str
    sizes: tuple[Size, ...]
    beside: tuple[str, ...] = ()
    unmet: Mapping[str, str] = field(default_factory=dict)
