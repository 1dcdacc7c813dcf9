"""What the names in a log stand for."""

from __future__ import annotations

from dataclasses import dataclass, field

STRANGE = 1 << 40
"""Views from here on stand for entries that no line prepared."""


Moment = tuple[float, int, int]
"""A tick, a replica, and its view."""


@dataclass
class Names:
    """What names stand for in one group: checksums for views of entries, clients for numbers from 1."""

    entries: dict[int, tuple[int, int]] = field(default_factory=dict)
    clients: dict[int, int] = field(default_factory=dict)
    registers: dict[int, int] = field(default_factory=dict)
    journals: dict[tuple[int, int], int] = field(default_factory=dict)
    shows_journals: bool = False
    counted: dict[tuple[int, int, int, int], list[int]] = field(default_factory=dict)
    strange: dict[tuple[int, int], int] = field(default_factory=dict)
    begins: int = 0
    logs_out: bool = False
    killed: bool = False
    offers: set[tuple[int, int, int]] = field(default_factory=set)
    places: dict[tuple[int, int], int] = field(default_factory=dict)
    scheduled: dict[Moment, int] = field(default_factory=dict)
    frames: dict[Moment, dict[int, int]] = field(default_factory=dict)
    top: int = 0

    def entry(self, checksum: int | None, op: int, below: int | None = None) -> int | None:
        """The view that prepared the entry with that checksum at an op. One that no line of a whole log prepared is
        given a view of its own; None where the log begins late, or a server may have been killed before it could print,
        unless view `below` prepared another one there.
        """
        if checksum is None:
            return None
        found = self.entries.get(checksum)
        if found is not None and found[1] == op:
            return found[0]
        return (
            None
            if (self.begins > 1 or self.killed) and (below, op) not in self.places
            else STRANGE + self.strange.setdefault((checksum, op), len(self.strange))
        )

    def hole(self, replica: int) -> int | None:
        """The first op that a replica's journal lacks below one that it has, if journals are shown."""
        held = {op for node, op in self.journals if node == replica}
        return next((op for op in range(1, max(held, default=0)) if op not in held), None)

    def client(self, number: int) -> int:
        """A client, numbered in the order of appearance."""
        return self.clients.setdefault(number, len(self.clients) + 1)

    def frame(self, moment: Moment, to: int) -> bool:
        """A frame with a do_view_change is sent to a replica: were fewer scheduled in that tick?"""
        sent = self.frames.setdefault(moment, {})
        sent[to] = sent.get(to, 0) + 1
        return sent[to] > self.scheduled.get(moment, 0)
