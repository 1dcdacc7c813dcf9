"""One run of a log: its rows, and what is to be said of its lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Final

from viewproof.refinement.flat.dictionary import Dictionary, NotPlain, Words
from viewproof.refinement.schema import Row
from viewproof.refinement.text_lines import Segment
from viewproof.refinement.tigerbeetle.order import Doubts
from viewproof.refinement.tigerbeetle.parse import FIRST, UNKNOWN, Parser
from viewproof.refinement.tigerbeetle.parts import PASSED, Parts, blocks_after, parts_again
from viewproof.refinement.tigerbeetle.reading import Lines
from viewproof.refinement.tigerbeetle.records import Cluster, Records
from viewproof.refinement.tigerbeetle.word_headers import WordHeaders
from viewproof.refinement.tigerbeetle.words import WordRows

UNKNOWN_SHOWN: Final = 20
_PANIC = re.compile(r"(thread \d+ )?panic: (.*)")
_NO_PROGRESS: Final = ("unable to complete transitions_max before ticks_max", "no state convergence")
"""Panics of the simulator that say that it gave up waiting, not that something is wrong."""
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\ufffd]")
RECENT: Final = 400
"""Lines of which the text is kept, to tell what led to a violation."""


class LogRun:
    """One run of a file: its rows, gone through once, and what is to be said of its lines."""

    def __init__(
        self, segment: Segment, cluster: Cluster, columns: tuple[str, ...], parts: Parts, within: Segment
    ) -> None:
        """`within` is the part of the file that is read for it, from its beginning."""
        self.within = within
        self.columns = columns
        self.run_id, self.file = segment.run_id, segment.file
        self.adapter = cluster.family.adapter
        self.segment = segment
        self.cluster = cluster
        self.parser = Parser(cluster.family.table)
        self.records = Records(segment, cluster, columns, self.parser.texts)
        self.parts = parts
        self.line = segment.first_line - 1
        self.passed = False
        self.damaged: list[int] = []
        self.found: list[list[int]] = []
        self.before: list[list[int]] = []
        self.rows = self._rows()

    def _rows(self) -> Iterator[Row]:
        rows = chain.from_iterable(map(self.records_of, self.parts))
        row = next(rows, None)
        if row is not None:
            yield self.records.first(row)
            yield from rows

    def records_of(self, block: bytes) -> Iterator[Row]:
        """The rows of the next lines."""
        makers = self.records.makers
        for found, last in self.parser.rows(block, self.line + 1):
            self.found = found
            for values in found:
                pattern = values[0]
                if pattern >= 0:
                    self.line = values[1]
                    yield makers[pattern](values)
                elif (row := self._other(pattern, values[1], _line(block, values[2]))) is not None:
                    yield row
            self.before = [*self.before, *found][-RECENT:]
            self.line = last
        self._ends(block)

    @property
    def shown(self) -> dict[str, int]:
        """The columns that the first row shows of the configuration."""
        return self.cluster.shown

    def again(self) -> LogRun:
        """The run from its beginning."""
        parts = parts_again(self.within, self.segment.first_line)
        return LogRun(self.segment, self.cluster, self.columns, parts, self.within)

    def words(self, texts: Sequence[str], events: Mapping[str, int]) -> tuple[Dictionary, Iterator[Words]]:
        """The rows as words, some at a time, with their texts, of which those given have the first codes; in place of
        an event's name stands its number.
        """
        self.parser = Parser(self.cluster.family.table, texts)
        self.records.texts = self.parser.texts
        return self.parser.texts, self._words(events)

    def _words(self, events: Mapping[str, int]) -> Iterator[Words]:
        records, patterns = self.records, self.parser.patterns
        headers = WordHeaders(self.cluster.family.form, records.names, self.parser.texts)
        maker = WordRows(
            [list(records.fields(pattern)) for pattern in patterns],
            [events.get(pattern.event, -1) for pattern in patterns],
            self.parser.texts,
            records.width,
            records.begin,
            headers,
        )
        first = True
        for block in self.parts:
            for found, last in self.parser.words(block, self.line + 1):
                odd = found[:, 0] < 0
                for pattern, number, begin in found[odd, :FIRST].tolist():
                    if self._other(pattern, number, _line(block, begin)) is not None:
                        raise NotPlain(f"{self.segment.file}:{number}: the process stopped itself")
                if len(rows := maker.rows(found[~odd] if odd.any() else found)):
                    if first:
                        for name, value in self.shown.items():
                            rows[0, records.index[name]] = value
                    first = False
                    yield rows
                self.line = last
            self._ends(block)

    def _ends(self, block: bytes) -> None:
        self.passed = self.passed or block.startswith(PASSED, block.rfind(b"\n", 0, -1) + 1)

    def _other(self, pattern: int, number: int, line: str) -> Row | None:
        """A line without an event: one that no pattern explains; what the process says that ends; or damage."""
        if pattern == UNKNOWN:
            self.parser.note_unknown(line, number)
        elif panic := _PANIC.match(line):
            if not any(text in line for text in _NO_PROGRESS):
                self.line = number
                return self.records.panic(number, panic[2])
        elif _NO_TEXT.search(line):
            self.damaged.append(number)
        return None

    def _again(self) -> Iterator[tuple[int, bytes]]:
        """The lines up to the last that gave a row, read again, in blocks with the number of the first."""
        number = self.segment.first_line
        for block in blocks_after(self.within, Lines(self.within), number - self.within.first_line):
            lines = block.split(b"\n", self.line - number + 1)
            yield number, block[: len(block) - len(lines[-1])] if len(lines) > self.line - number + 1 else block
            number += len(lines) - 1
            if number > self.line:
                break

    @cached_property
    def _texts(self) -> dict[int, str]:
        """The last lines that gave a row."""
        wanted = {values[1] for values in (*self.before, *self.found)}
        lines = ((n, line) for first, block in self._again() for n, line in enumerate(block.split(b"\n"), first))
        return {n: line.decode("utf-8", "replace") for n, line in lines if n in wanted}

    def text(self, line: int) -> str:
        """What one of the last lines says; "" for others."""
        return self._texts.get(line, "")

    def _counts(self, *, violated: bool) -> list[int]:
        """Lines by pattern, up to a violation."""
        parser = self.parser
        if violated:
            parser = Parser(self.cluster.family.table)
            for number, block in self._again():
                for _ in parser.rows(block, number):
                    pass
        return parser.counts.tolist()

    def rest(self) -> None:
        """Go to the end of the run, whose lines are not looked at any more."""
        for _ in self.parts:
            pass

    def missing(self) -> tuple[str, ...]:
        """Evidence that is not there."""
        if not self.damaged:
            return ()
        return (f"{len(self.damaged)} damaged lines, first at line {self.damaged[0]}: what they said",)

    def doubt(self) -> str:
        """What shows that the lines are not as they were written, so that one that is refused may be right."""
        first = self.segment.first_line
        return Doubts(self.cluster.family).of(parts_again(self.within, first), first, self.line)

    def notes(self, *, violated: bool) -> tuple[str, ...]:
        """What became of the lines: how many there are of each role, and which no pattern explains."""
        parser, cluster = self.parser, self.cluster
        by_role: Counter[str] = Counter()
        for count, pattern in zip(self._counts(violated=violated), parser.patterns, strict=True):
            by_role[pattern.role] += count
        unknown = parser.unknown.total()
        standbys = f" and {cluster.nodes - cluster.replicas} standbys" * (cluster.nodes > cluster.replicas)
        summary = (
            f"{cluster.family.profile}, {cluster.replicas} replicas{standbys}"
            f": {self.line - self.segment.first_line + 1:,} lines, of the protocol's "
            f"{by_role.total() + unknown:,} lines {by_role['step']:,} are steps, {by_role['message']:,} are messages, "
            f"{by_role['check']:,} are compared, {by_role['change'] + by_role['note']:,} are counted only, "
            f"{unknown:,} are unexplained"
        )
        if changing := by_role["step"] + by_role["change"] + unknown:
            share = f"{by_role['step']:,} of {changing:,} ({100 * by_role['step'] / changing:.1f} %)"
            summary += f"; of the lines that change a replica's state {share} are checked"
        shapes = [
            f"unexplained, {count} times, first at line {parser.first_unknown[shape]}: {shape}"
            for shape, count in parser.unknown.most_common(UNKNOWN_SHOWN)
        ]
        if len(parser.unknown) > UNKNOWN_SHOWN:
            shapes.append(f"… and {len(parser.unknown) - UNKNOWN_SHOWN} more shapes of unexplained lines")
        if violated or self.passed:
            return (summary, *shapes)
        cut = self.parts.cut() or "it ends before the simulator says that it is done"
        return (summary, *shapes, f"the log is cut off: {cut}; judged up to there")


def _line(block: bytes, begin: int) -> str:
    """The line that begins there, without its end."""
    return block[begin : block.index(b"\n", begin)].decode("utf-8", "replace")
