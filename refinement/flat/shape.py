"""What a compiled audit of one kind of configuration looks like from outside: places, counts, and why it stops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from viewproof.refinement.events.system import System

PREPARING = ("on_request", "on_prepare")
FACTS = ("m_view", "m_op", "m_checksum", "commit_min", "digest", "m_namespace", "m_offset", "m_count")
"""Columns that the global facts look at, as `books.facts` takes them."""

PART_BITS = 40
PART = 1 << PART_BITS
"""A row is its part's number times this, and its place in the part."""

NO_NODE, NO_ORDER, NO_BOOT, NO_EVENT, NO_FACT, NO_CELL = range(-6, 0)
STOPPED = {
    NO_NODE: "a node that is no replica",
    NO_ORDER: "sequence numbers and clocks that do not rise",
    NO_BOOT: "a first event that is no boot",
    NO_EVENT: "an event that there is not under this configuration",
    NO_FACT: "a global fact is contradicted, or one that is not compiled",
    NO_CELL: "a cell that was let go, or no memory",
}
"""Why `drive` stops, but for the places in an event's function (above 0)."""


@lru_cache(maxsize=8)
def vocabulary(system: System) -> Mapping[str, int]:
    """Codes of the texts that columns are declared to have; "" is 0, any other text comes after them."""
    known = sorted({text for column in system.table for text in column.choices} - {""})
    return {text: code for code, text in enumerate(("", *known))}


@dataclass(frozen=True)
class Shape:
    """The memory of a kind: words, places of all areas (in words), what compiled code names, cells that are not 0 at
    first (place, words, value); actions and events by number; places of the configuration's columns; why each event's
    function stops; and the names of the functions.
    """

    words: int
    members: int
    at: dict[str, int]
    symbols: dict[str, int]
    first: list[tuple[int, int, int]]
    coverage: dict[str, int]
    judged: dict[str, int]
    configured: dict[str, str]
    sites: dict[str, list[str]]
    keys: list[str]

    def place(self, stopped: int, code: int) -> str:
        """Why `drive` stopped at an event with that number: in words, for whoever wants to know why a run was not
        judged here.
        """
        if stopped in STOPPED:
            return STOPPED[stopped]
        event = list(self.judged)[code]
        sites = self.sites[event]
        return f"{event}: {sites[stopped - 1]}" if stopped <= len(sites) else event
