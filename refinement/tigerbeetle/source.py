"""From log files to rows: the runs of a file, the family and cluster of each, its lines as typed records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Final

from viewproof.refinement.flat.dictionary import Dictionary
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import Row
from viewproof.refinement.text_lines import Segment
from viewproof.refinement.tigerbeetle.headers import COLUMNS as MESSAGE
from viewproof.refinement.tigerbeetle.headers import Form, Headers, Names
from viewproof.refinement.tigerbeetle.parse import FIRST, UNKNOWN, Parser
from viewproof.refinement.tigerbeetle.reading import Lines, marked
from viewproof.refinement.tigerbeetle.table import Pattern, Table
from viewproof.spec.engines.replay.compile import code_of

SEARCH_LINES: Final = 200_000
"""So many lines are searched for a replica that starts."""
UNKNOWN_SHOWN: Final = 20
NODES_MAX: Final = 12
"""Replicas and standbys of the largest cluster."""

INIT: Final = re.compile(
    rb"\[\w+\] \(replica\): \d+[a-zA-Z]?: init: replica_count=(?P<n>\d+) "
    rb"quorum_view_change=(?P<q_v>\d+) quorum_replication=(?P<q_r>\d+)(?P<release> release=\S+)?$",
    re.MULTILINE,
)
"""The line of a replica that starts: the first that tells family and configuration."""
_INIT: Final = b": init: replica_count="
_STANDBYS = re.compile(rb"^[^\S\n]+standbys=(\d+)$", re.MULTILINE)
_PANIC = re.compile(r"(thread \d+ )?panic: (.*)")
_NO_PROGRESS: Final = ("unable to complete transitions_max before ticks_max", "no state convergence")
"""Panics of the simulator that say that it gave up waiting, not that something is wrong."""
_PASSED: Final = b"          PASSED ("
_SEED: Final = b"          SEED="
_SIMULATOR: Final = b"[info] (simulator): \n"
_FIRST_2022: Final = b"[debug] (journal): 0: slot_count="
_SECOND_2022 = re.compile(rb"\[debug\] \(journal\): 1: slot_count=|\[debug\] \(vsr\): \d+: ping_timeout started\n")
"""Where a replica crashes, its memory is set up anew, too: the next line about it says so."""
_BOUNDS: Final = (_PASSED, _SEED, _FIRST_2022)
"""The last line of a run, and the first ones of the next, where the one before was cut off."""
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\ufffd]")
_LETTERS: Final = {"n": "normal", "v": "view_change", "r": "recovering", "h": "recovering_head"}


def _letter(text: str) -> str:
    return _LETTERS.get(text.lower(), text)


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


class Memo(dict[int, Any]):
    """What the texts of one kind of field mean, by their codes as rows have them; each is looked at once."""

    def __init__(self, texts: Dictionary, convert: Callable[[str], Any]) -> None:
        super().__init__()
        self.texts = texts
        self.convert = convert

    def __missing__(self, code: int) -> Any:
        found = self[code] = self.convert(self.texts.text(-1 - code))
        return found


Make = Callable[[list[int]], Row]


class Records:
    """Makes the rows of a run from matched lines; `columns` are those of a row, in order, without file and line."""

    def __init__(self, segment: Segment, cluster: Cluster, columns: tuple[str, ...], texts: Dictionary) -> None:
        self.names = Names()
        self.headers = Headers(cluster.family.form, self.names)
        self.index = {name: place for place, name in enumerate(columns)}
        self.width = len(columns)
        self.begin = self.index[MESSAGE[0]]
        self.segment = segment
        self.cluster = cluster
        self.memos: dict[Any, Memo] = {}
        self.texts = texts
        self.makers = [self._maker(pattern) for pattern in cluster.family.table.patterns]

    def _memo(self, key: Any, convert: Callable[[str], Any]) -> Memo:
        return self.memos.setdefault(key, Memo(self.texts, convert))

    def _maker(self, pattern: Pattern) -> Make:
        """The function that makes the row of what the parser found in a line of that pattern; it is written out."""
        fields: list[tuple[int, int, Memo]] = []
        message, headers = 0, None
        for place, (name, kind) in enumerate(pattern.fields, FIRST):
            if kind == "m":
                message, headers = place, self._memo("m", self.headers.of)
            elif kind == "k":
                fields.append((self.index["mark_status"], place, self._memo("k", _letter)))
                fields.append((self.index["mark_leads"], place, self._memo("K", lambda text: int(text.isupper()))))
            else:
                fields.append((self.index[name], place, self._memo((name, kind), self._converter(name, kind))))
        blank: list[Any] = [None] * (self.width + 2)
        blank[0], blank[1], blank[4], blank[-2] = self.segment.run_id, NOBODY, pattern.event, self.segment.file
        scope: dict[str, Any] = {"blank": blank, "headers": headers}
        lines = ["def make(v):", "    row = blank.copy()", "    row[2] = row[3] = row[-1] = v[1]"]
        for number, (place, at, memo) in enumerate(fields):
            scope[f"m{number}"] = memo
            lines += [f"    x = v[{at}]", f"    row[{place}] = x if x >= 0 else m{number}[x]"]
        if headers is not None:
            lines.append(f"    row[{self.begin}:-2] = headers[v[{message}]]")
        exec(code_of("\n".join((*lines, "    return tuple(row)")), "<lines>"), scope)
        made: Make = scope["make"]
        return made

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
        if name == "from_status":
            return lambda text: text.removeprefix("vsr.replica.Status.")
        return str if kind in "wte" else int

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
        self.passed = self.passed or block.startswith(_PASSED, block.rfind(b"\n", 0, -1) + 1)

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
        for block in Lines(self.segment).blocks():
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


def _init(head: bytes) -> re.Match[bytes] | None:
    """The first line of a replica that starts."""
    at = head.find(_INIT)
    while at >= 0:
        if found := INIT.match(head, head.rfind(b"\n", 0, at) + 1):
            return found
        at = head.find(_INIT, at + 1)
    return None


def _line(block: bytes, begin: int) -> str:
    """The line that begins there, without its end."""
    return block[begin : block.index(b"\n", begin)].decode("utf-8", "replace")


class Parts:
    """The lines of one run in blocks; `beyond` are those at hand that follow its end, `number` is that of the first."""

    def __init__(self, head: bytes, source: Iterator[bytes], lines: Lines, first: int) -> None:
        self.block: bytes | None = head
        self.source = source
        self.lines = lines
        self.number = first
        found = _init(head)
        self.begun = found.start() if found else 0
        self.before = b""
        self.beyond: bytes | None = None

    def __iter__(self) -> Parts:
        return self

    def __next__(self) -> bytes:
        if self.block is None or self.beyond is not None:
            raise StopIteration
        end, lines = _end_of_run(self.block, self.begun, self.before)
        own, self.beyond = (self.block, None) if end is None else (self.block[:end], self.block[end:])
        self.begun, self.before = 0, self.block[-len(_SIMULATOR) - 1 :]
        self.number += lines
        self.block = next(self.source, None) if self.beyond is None else None
        return own

    def cut(self) -> str:
        """What is missing at the end; "" if nothing is, or another run follows."""
        return self.lines.cut if self.beyond is None else ""


def _end_of_run(block: bytes, begun: int, before: bytes) -> tuple[int | None, int]:
    """Where the lines of a run end (None: they do not end here), and how many they are.

    From `begun` on another run may start; `before` is what ends before the block.
    """
    lines, found = marked(block, _BOUNDS)
    for mark, at in found:
        end = at
        if _BOUNDS[mark] == _PASSED:
            end = block.index(b"\n", at) + 1
        elif _BOUNDS[mark] == _FIRST_2022:
            third = at
            for _ in range(3):
                third = block.find(b"\n", third) + 1 or len(block)
            if not _SECOND_2022.match(block, third) or at < begun:
                continue
        elif not (b"\n" + (block[:at] or before)).endswith(b"\n" + _SIMULATOR) or at < begun:
            continue
        return end, marked(block[:end], ())[0]
    return None, lines


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
        source = lines.blocks()
        pending = b""
        number, count = segment.first_line, 0
        while True:
            part = replace(
                segment, first_line=number, ordinal=segment.ordinal or (count + 1 if count else 0),
                part=count + 1 if count and segment.ordinal else 0,
            )  # fmt: skip
            head = pending
            while (cluster := self.find_cluster(head)) is None and marked(head, ())[0] < SEARCH_LINES:
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
            pending, number = parts.beyond or b"", parts.number
            if not pending.strip():
                return

    def find_cluster(self, head: bytes) -> Cluster | None:
        """Family and configuration, from the first replica that starts and the simulator's own settings."""
        init = _init(head)
        if init is None:
            return None
        name = "2026" if init["release"] else "2022"
        family = next((f for f in self.families if f.name == name), None)
        if family is None:
            return None
        n, standbys = int(init["n"]), _STANDBYS.findall(head, 0, init.start())
        return Cluster(family, n, int(init["q_v"]), int(init["q_r"]), n + (int(standbys[-1]) if standbys else 0))

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
    def _no_log(segment: Segment, head: bytes, log: ProblemLog) -> None:
        expected = (
            "the debug log of a TigerBeetle simulator (June 2022 or July 2026), with the line of a replica that starts"
        )
        first = next((line for line in head.decode("utf-8", "replace").split("\n") if line.strip()), "")
        got = f"no such line; it begins with: {first[:80]}" if first else "an empty file"
        log.add(segment.file, segment.first_line, "", expected, got)
