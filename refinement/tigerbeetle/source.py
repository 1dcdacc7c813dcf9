"""From log files to rows: the runs of a file, the family and cluster of each, its lines as typed records."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import Row
from viewproof.refinement.text_lines import Segment
from viewproof.refinement.tigerbeetle.headers import COLUMNS as MESSAGE
from viewproof.refinement.tigerbeetle.headers import Form, Headers, Names
from viewproof.refinement.tigerbeetle.parse import Parser
from viewproof.refinement.tigerbeetle.reading import Lines
from viewproof.refinement.tigerbeetle.table import Pattern, Table

SEARCH_LINES: Final = 200_000
"""So many lines are searched for a replica that starts."""
UNKNOWN_SHOWN: Final = 20
NODES_MAX: Final = 12
"""Replicas and standbys of the largest cluster."""

INIT: Final = re.compile(
    r"\[\w+\] \(replica\): \d+(?P<mark>[a-zA-Z]?): init: replica_count=(?P<n>\d+) "
    r"quorum_view_change=(?P<q_v>\d+) quorum_replication=(?P<q_r>\d+)(?P<release> release=\S+)?$"
)
"""The line of a replica that starts: the first that tells family and configuration."""
_STANDBYS = re.compile(r"\s+standbys=(\d+)$")
_PANIC = re.compile(r"(thread \d+ )?panic: (.*)")
_NO_PROGRESS: Final = ("unable to complete transitions_max before ticks_max", "no state convergence")
"""Panics of the simulator that say that it gave up waiting, not that something is wrong."""
_PASSED: Final = "          PASSED ("
_SEED: Final = "          SEED="
_SIMULATOR: Final = "[info] (simulator): "
_FIRST_2022: Final = "[debug] (journal): 0: slot_count="
_SECOND_2022 = re.compile(r"\[debug\] \(journal\): 1: slot_count=|\[debug\] \(vsr\): \d+: ping_timeout started$")
"""Where a replica crashes, its memory is set up anew, too: the next line about it says so."""
_BOUNDS: Final = (_PASSED, _SEED, _FIRST_2022)
"""The last line of a run, and the first ones of the next, where the one before was cut off."""
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\ufffd]")
_LETTERS: Final = {"n": "normal", "v": "view_change", "r": "recovering", "h": "recovering_head"}
RECENT: Final = 400
"""Lines of which the text is kept, to tell what led to a violation."""
NOBODY: Final = -1
"""The node of a line that is none's: a client's."""


@dataclass(frozen=True)
class Family:
    """What one month's logs are: the lines, the headers, the profile that judges them, and its adapter's name."""

    name: str
    profile: str
    adapter: str
    table: Table
    form: Form


@dataclass(frozen=True)
class Cluster:
    """Family and configuration of a run, as its first lines tell; `nodes` counts standbys, too."""

    family: Family
    replicas: int
    quorum_view_change: int
    quorum_replication: int
    nodes: int


Make = Callable[[int, tuple[str, ...]], Row]
_TEXTS: Final[Mapping[str, Callable[[str], Any]]] = {"w": str, "t": str, "e": str}


class Records:
    """Makes the rows of a run from matched lines; `columns` are those of a row, in order, without file and line."""

    def __init__(self, segment: Segment, cluster: Cluster, columns: tuple[str, ...]) -> None:
        self.names = Names()
        self.headers = Headers(cluster.family.form, self.names)
        self.index = {name: place for place, name in enumerate(columns)}
        self.width = len(columns)
        self.segment = segment
        self.cluster = cluster
        self.makers = [self._maker(pattern) if pattern.event else None for pattern in cluster.family.table.patterns]

    def _maker(self, pattern: Pattern) -> Make:
        """The function that makes the row of a line of that pattern."""
        fields: list[tuple[int, int, Callable[[str], Any]]] = []
        begin = -1
        for group, (name, kind) in enumerate(pattern.fields):
            if kind == "m":
                begin, message = self.index[MESSAGE[0]], group
            elif kind == "k":
                fields.append((self.index["mark_status"], group, lambda text: _LETTERS.get(text.lower(), text)))
                fields.append((self.index["mark_leads"], group, lambda text: int(text.isupper())))
            else:
                fields.append((self.index[name], group, self._converter(name, kind)))
        blank: list[Any] = [None] * (self.width + 2)
        blank[0], blank[1], blank[4], blank[-2] = self.segment.run_id, NOBODY, pattern.event, self.segment.file
        end = begin + len(MESSAGE)

        def make(number: int, groups: tuple[str, ...]) -> Row:
            row = blank.copy()
            row[2] = row[3] = row[-1] = number
            for place, group, convert in fields:
                row[place] = convert(groups[group])
            if begin >= 0:
                row[begin:end] = self.headers.of(groups[message])
            return tuple(row)

        return make

    def _converter(self, name: str, kind: str) -> Callable[[str], Any]:
        names = self.names
        if name in ("checksum", "parent", "head"):
            checksums = names.checksums
            return (lambda text: checksums.of(str(int(text, 16)))) if kind == "x" else checksums.of
        if name in ("state", "state_before"):
            return names.digests.of
        if kind == "c":
            return {"client": names.clients, "nonce": names.nonces, "id": names.files}[name].of
        if name == "bits":
            return lambda text: int(text, 2) if text.strip("01") == "" else 0
        if kind == "b":
            return lambda text: int(text == "true")
        if name == "from_status":
            return lambda text: text.removeprefix("vsr.replica.Status.")
        return _TEXTS.get(kind, int)

    def panic(self, number: int, text: str) -> Row:
        """The record of a process that stopped itself."""
        row: list[Any] = [None] * (self.width + 2)
        row[0], row[1], row[2], row[3], row[4] = self.segment.run_id, NOBODY, number, number, "panic"
        row[self.index["what"]], row[-2], row[-1] = text, self.segment.file, number
        return tuple(row)

    def first(self, row: Row) -> Row:
        """The first row of a run, with the configuration of the cluster."""
        cluster, found = self.cluster, list(row)
        for name in ("replicas", "quorum_replication", "quorum_view_change", "nodes"):
            found[self.index[name]] = getattr(cluster, name)
        return tuple(found)


class LogRun:
    """One run of a file: its rows, gone through once, and what is to be said of its lines."""

    def __init__(self, segment: Segment, cluster: Cluster, columns: tuple[str, ...], parts: Parts) -> None:
        self.run_id = segment.run_id
        self.adapter = cluster.family.adapter
        self.segment = segment
        self.cluster = cluster
        self.parser = Parser(cluster.family.table)
        self.records = Records(segment, cluster, columns)
        self.parts = parts
        self.line = segment.first_line - 1
        self.passed = False
        self.damaged: list[int] = []
        self.recent: deque[tuple[int, str]] = deque(maxlen=RECENT)
        self.rows = self._rows()

    def _rows(self) -> Iterator[Row]:
        rows = (row for lines in self.parts for row in self.records_of(lines))
        row = next(rows, None)
        if row is not None:
            yield self.records.first(row)
            yield from rows

    def records_of(self, lines: list[str]) -> Iterator[Row]:
        """The rows of the next lines."""
        match, makers, recent = self.parser.match, self.records.makers, self.recent
        number = self.line
        for line in lines:
            number += 1
            if line[:1] != "[":
                self.line = number
                if (panic := self._outside(line)) is not None:
                    recent.append((number, line))
                    yield self.records.panic(number, panic)
                continue
            found = match(line, number)
            if found is not None and (make := makers[found[0]]) is not None:
                self.line = number
                recent.append((number, line))
                yield make(number, found[1])
        self.line = number

    def _outside(self, line: str) -> str | None:
        """A line that no subsystem printed, the end of the run, or of the process (then: what it says)."""
        if line.startswith(_PASSED):
            self.passed = True
        elif (panic := _PANIC.match(line)) and not any(text in line for text in _NO_PROGRESS):
            return panic[2]
        elif _NO_TEXT.search(line):
            self.damaged.append(self.line)
        return None

    def text(self, line: int) -> str:
        """What one of the last lines says; "" for others."""
        return next((text for number, text in self.recent if number == line), "")

    def rest(self) -> None:
        """Go to the end of the run, whose lines are not looked at any more."""
        for _ in self.parts:
            pass

    def missing(self) -> tuple[str, ...]:
        """Evidence that is not there."""
        if not self.damaged:
            return ()
        return (f"{len(self.damaged)} damaged lines, first at line {self.damaged[0]}: what they said",)

    def notes(self, *, violated: bool) -> tuple[str, ...]:
        """What became of the lines: how many there are of each role, and which no pattern explains."""
        counts, cluster = self.parser.counts, self.cluster
        by_role: Counter[str] = Counter()
        for count, pattern in zip(counts.by_pattern, self.parser.patterns, strict=True):
            by_role[pattern.role] += count
        unknown = counts.unknown.total()
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
            f"unexplained, {count} times, first at line {counts.first_unknown[shape]}: {shape}"
            for shape, count in counts.unknown.most_common(UNKNOWN_SHOWN)
        ]
        if len(counts.unknown) > UNKNOWN_SHOWN:
            shapes.append(f"… and {len(counts.unknown) - UNKNOWN_SHOWN} more shapes of unexplained lines")
        if violated or self.passed:
            return (summary, *shapes)
        cut = self.parts.cut() or "it ends before the simulator says that it is done"
        return (summary, *shapes, f"the log is cut off: {cut}; judged up to there")


class Parts:
    """The lines of one run in lists; `beyond` are those at hand that follow its end, `number` is that of the first."""

    def __init__(self, head: list[str], source: Iterator[list[str]], lines: Lines, first: int) -> None:
        self.chunk: list[str] | None = head
        self.source = source
        self.lines = lines
        self.number = first
        self.begun = next((i for i, line in enumerate(head) if INIT.match(line)), 0)
        self.before = ""
        self.beyond: list[str] | None = None

    def __iter__(self) -> Parts:
        return self

    def __next__(self) -> list[str]:
        if self.chunk is None or self.beyond is not None:
            raise StopIteration
        own, self.beyond = _split_at_end(self.chunk, self.begun, self.before)
        self.begun, self.before = 0, self.chunk[-1]
        self.number += len(own)
        self.chunk = next(self.source, None) if self.beyond is None else None
        return own

    def cut(self) -> str:
        """What is missing at the end; "" if nothing is, or another run follows."""
        return self.lines.cut if self.beyond is None else ""


def _split_at_end(chunk: list[str], begun: int, before: str) -> tuple[list[str], list[str] | None]:
    """The lines up to the end of a run, and those beyond it (None: it does not end here).

    From line `begun` on another run may start; `before` is the line before the first.
    """
    for position, line in enumerate(chunk):
        if line.startswith(_BOUNDS):
            if line.startswith(_PASSED):
                return chunk[: position + 1], chunk[position + 1 :]
            starts = (
                any(_SECOND_2022.match(later) for later in chunk[position + 3 : position + 4])
                if line.startswith(_FIRST_2022)
                else (chunk[position - 1] if position else before) == _SIMULATOR
            )
            if starts and position >= begun:
                return chunk[:position], chunk[position:]
    return chunk, None


class Source:
    """The runs of files of these families, which lie in rows of these columns."""

    def __init__(self, families: tuple[Family, ...], columns: tuple[str, ...]) -> None:
        self.families = families
        self.columns = columns

    def runs(self, segment: Segment, profile: str, log: ProblemLog) -> Iterator[LogRun]:
        """The runs of a part of a file, one after the other; each must be gone through (`rest`) before the next.

        What is no such log, or not of the profile, goes to `log`. Raises `OSError`.
        """
        lines = Lines(segment)
        source = lines.chunks()
        pending: list[str] = []
        number, count = segment.first_line, 0
        while True:
            part = replace(
                segment, first_line=number, ordinal=segment.ordinal or (count + 1 if count else 0),
                part=count + 1 if count and segment.ordinal else 0,
            )  # fmt: skip
            head = list(pending)
            while (cluster := self.find_cluster(head)) is None and len(head) < SEARCH_LINES:
                if (more := next(source, None)) is None:
                    break
                head += more
            if cluster is None or not self._is_judged(part, cluster, profile, log):
                if cluster is None and (not count or pending):
                    self._no_log(part, head, log)
                return
            parts = Parts(head, source, lines, number)
            run = LogRun(part, cluster, self.columns, parts)
            count += 1
            yield run
            pending, number = parts.beyond or [], parts.number
            if not any(line.strip() for line in pending):
                return

    def find_cluster(self, lines: list[str]) -> Cluster | None:
        """Family and configuration, from the first replica that starts and the simulator's own settings."""
        standbys = 0
        for line in lines:
            if line[:1] != "[":
                if found := _STANDBYS.match(line):
                    standbys = int(found[1])
                continue
            if "init: replica_count=" in line and (init := INIT.match(line)):
                name = "2026" if init["release"] else "2022"
                family = next((f for f in self.families if f.name == name), None)
                if family is None:
                    return None
                n = int(init["n"])
                return Cluster(family, n, int(init["q_v"]), int(init["q_r"]), n + standbys)
        return None

    @staticmethod
    def _is_judged(segment: Segment, cluster: Cluster, profile: str, log: ProblemLog) -> bool:
        if profile not in ("core", cluster.family.profile):
            log.add(segment.file, 0, "", f"a log of profile {profile}", f"one of {cluster.family.profile}")
            return False
        if cluster.nodes > NODES_MAX:
            expected = f"a cluster of at most {NODES_MAX} replicas and standbys"
            log.add(segment.file, segment.first_line, "", expected, str(cluster.nodes))
            return False
        return True

    @staticmethod
    def _no_log(segment: Segment, head: list[str], log: ProblemLog) -> None:
        expected = (
            "the debug log of a TigerBeetle simulator (June 2022 or July 2026), with the line of a replica that starts"
        )
        first = next((line for line in head if line.strip()), "")
        got = f"no such line; it begins with: {first[:80]}" if first else "an empty file"
        log.add(segment.file, segment.first_line, "", expected, got)
