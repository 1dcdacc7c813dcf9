"""Order within one run: rows sorted by (clock, node, seq), and the check that each node's sequence is whole."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row

_NODE, _SEQ, _CLOCK = INDEX["node"], INDEX["seq"], INDEX["clock"]

order_key = itemgetter(_CLOCK, _NODE, _SEQ)
"""The order in which an audit replays a run."""

GAPS_SHOWN = 5
_NOTHING = (0, 0)


class NotStreamableError(Exception):
    """Files assumed to be one ordered stream each are not; read them into memory and sort instead."""


def merge_sorted(streams: Iterable[Iterator[Row]], run_id: str) -> Iterator[Row]:
    """Merge streams, each in replay order and of the one run, without holding them in memory.

    Raises `NotStreamableError` at the first row that breaks one of these assumptions.
    """
    return heapq.merge(*(_ordered(stream, run_id) for stream in streams), key=order_key)


def _ordered(stream: Iterator[Row], run_id: str) -> Iterator[Row]:
    last = (0, 0, 0)
    for row in stream:
        key = order_key(row)
        if key < last or row[0] != run_id:
            raise NotStreamableError
        last = key
        yield row


Gap = tuple[int, int, int, str, int]
"""Numbers of a node that never occurred: node, first, last, and the file and line of the next one."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What a `SequenceGuard` remembers: of each node its last seq and clock, and its file; the gaps."""

    last: dict[int, tuple[int, int]] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)


@dataclass(slots=True)
class SequenceGuard:
    """Watches a run's rows in replay order: `seq` of each node must be 1, 2, 3 …, its clock must rise.

    A number that occurs twice, or a clock that does not rise, is malformed input and goes to `log`;
    numbers that never occur are missing evidence, see `missing`.
    """

    log: ProblemLog
    _last: dict[int, tuple[int, int]] = field(default_factory=dict)
    _places: dict[int, str] = field(default_factory=dict)
    _gaps: list[Gap] = field(default_factory=list)

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Pass rows through, checking each."""
        last, places = self._last, self._places
        for row in rows:
            node, seq, clock = row[_NODE], row[_SEQ], row[_CLOCK]
            before, clock_before = last.get(node, _NOTHING)
            if seq != before + 1 or clock <= clock_before:
                self._disorder(row, before, clock_before)
                seq = max(seq, before)
            last[node] = (seq, clock)
            places[node] = row[FILE_INDEX]
            yield row

    def kept(self) -> Watched:
        """What came by so far, as a value."""
        return Watched(dict(self._last), dict(self._places), list(self._gaps))

    def go_on(self, kept: Watched) -> None:
        """Go on from what came by before."""
        self._last, self._places, self._gaps = dict(kept.last), dict(kept.places), list(kept.gaps)

    def _disorder(self, row: Row, before: int, clock_before: int) -> None:
        node, seq, clock, file, line = row[_NODE], row[_SEQ], row[_CLOCK], row[FILE_INDEX], row[LINE_INDEX]
        where = f"of node {node} in run {row[0]}"
        if seq == before:
            other = self._places.get(node, file)
            got = f"{seq} a second time" + (f": {other} has it, too; two runs with one id?" if other != file else "")
            self.log.add(file, line, "seq", f"each number once {where}", got)
        elif seq < before:
            got = (
                f"{seq} after {before} (clock {clock} after {clock_before}): a duplicate, or a clock that does not rise"
            )
            self.log.add(file, line, "seq", f"numbers that rise with the clock {where}", got)
        elif clock <= clock_before:
            expected = f"a clock that rises with every event {where}"
            self.log.add(file, line, "clock", expected, f"{clock} at seq {seq} after {clock_before} at seq {before}")
        else:
            self._gaps.append((node, before + 1, seq - 1, file, line))

    def events(self) -> int:
        """How many events came by, if none of them was malformed."""
        return sum(seq for seq, _ in self._last.values()) - sum(last + 1 - first for _, first, last, _, _ in self._gaps)

    def missing(self) -> list[str]:
        """The sequence numbers that never occurred, in words, one text per gap up to a limit."""
        texts = []
        for node, first, last, file, line in self._gaps[:GAPS_SHOWN]:
            texts.append(gap_text(node, first, last, file, line))
        if len(self._gaps) > GAPS_SHOWN:
            texts.append(f"{len(self._gaps) - GAPS_SHOWN} more gaps in sequence numbers")
        return texts


def gap_text(node: int, first: int, last: int, file: str, line: int) -> str:
    """Sequence numbers of a node that never occurred, in words; the next one is at that line."""
    numbers = f"seq {first}" if first == last else f"seq {first} to {last}"
    return f"{numbers} of node {node}: no such event in the input (noticed at {file}:{line})"
