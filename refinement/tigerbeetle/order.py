"""Are the lines of a log those that were written, in their order? Asked only where a log is refused.

A simulator's log has no times and no numbers. But a replica does nothing before it starts; the network delivers nothing
before it is sent, whatever is wrong with who sends it; a client goes on from request to request; and a line is whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from viewproof.refinement.tigerbeetle.headers import PLACE, Headers, Names
from viewproof.refinement.tigerbeetle.parse import FIRST, LEVELS, UNKNOWN, Parser
from viewproof.refinement.tigerbeetle.records import Family

BEYOND: Final = 200_000
"""So many lines beyond the one that is refused are looked at."""
PIECES: Final = 200
"""A line that was wrapped has no more."""
CUT: Final = 2
"""So many lines that end alike show that they are cut."""
_BEGINS: Final = tuple(f"[{level}] (".encode() for level in LEVELS)


class Doubts:
    """What lines show that were not written so."""

    def __init__(self, family: Family) -> None:
        self.table = table = family.table
        self.parser = Parser(table)
        self.headers = Headers(family.form, Names())
        self.requests: dict[int, tuple[int, int]] = {}
        self.started: set[int] = set()
        self.sent: set[tuple[int, int]] = set()
        self.early: dict[tuple[int, int], int] = {}
        self.cut: Counter[int] = Counter()
        self.longest = 0
        self.places = [
            {name: place for place, (name, _) in enumerate(pattern.fields, FIRST)} for pattern in table.patterns
        ]

    def of(self, blocks: Iterable[bytes], first: int, last: int) -> str:
        """Why the lines, of which the first has that number, are not what was written; "" if nothing shows that."""
        number = first
        for block in blocks:
            for found, _ in self.parser.rows(block, number):
                for values in found:
                    if why := self._unknown(block, values) if values[0] == UNKNOWN else self._moved(values):
                        return why
            lines = block.split(b"\n")
            self.longest = max(self.longest, *map(len, lines))
            number += len(lines) - 1
            if number > last + BEYOND:
                break
        if self.cut[self.longest] >= CUT:
            return f"the ends of lines: {self.cut[self.longest]} are cut at {self.longest} characters"
        return ""

    def _moved(self, values: list[int]) -> str:
        if values[0] < 0:
            return ""
        pattern, places, line = self.table.patterns[values[0]], self.places[values[0]], values[1]
        if pattern.subsystem == "replica" and "node" in places:
            node = values[places["node"]]
            if pattern.event == "init":
                self.started.add(node)
            elif node not in self.started:
                return (
                    f"the beginning of the log, or the order of its lines: replica {node} acts at line {line}, "
                    "and no line before says that it starts"
                )
        if pattern.event == "receive":
            key = values[places["node"]], values[places["message"]]
            if key not in self.sent:
                self.early.setdefault(key, line)
        elif "to" in places and "message" in places:
            key = values[places["to"]], values[places["message"]]
            self.sent.add(key)
            if before := self.early.pop(key, 0):
                return f"the order of the lines: line {before} receives what line {line} sends"
            if pattern.event == "client_send":
                return self._asked(values[places["message"]], line)
        return ""

    def _asked(self, message: int, line: int) -> str:
        shown = self.headers.of(self.parser.texts.text(-1 - message))
        client = shown[PLACE["m_client"]]
        number = shown[PLACE["m_request"]] if shown[PLACE["m_command"]] == "request" else None
        last, at = self.requests.get(client, (0, 0))
        if number is not None and number < last:
            return f"the order of the lines: a client asks at line {line} for what it had an answer to before line {at}"
        if number is not None and number > last:
            self.requests[client] = number, line
        return ""

    def _unknown(self, block: bytes, values: list[int]) -> str:
        line, *after = block[values[2] :].split(b"\n", PIECES + 1)
        self.cut[len(line)] += 1
        for piece in _pieces(after):
            line += piece
            if self._is_known(line):
                return f"whole lines: line {values[1]} goes on in the line after it"
        return ""

    def _is_known(self, line: bytes) -> bool:
        parser = Parser(self.table)
        return not any(row[0] < 0 for rows, _ in parser.rows(line + b"\n", 1) for row in rows)


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines up to the next that somebody printed."""
    for line in lines:
        if not line or line.startswith(_BEGINS):
            return
        yield line
