"""How much of a log is really checked: single seeded corruptions of lines that matter, each judged like a log.

Classes: a changed op, view, commit, checksum, parent or sender (in a line or in the header it shows); a line of a step
removed, doubled, or swapped with the next one of the same replica. (What a standby acknowledges it tells nobody.)
"""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.refinement.tigerbeetle.by_regex import Parser, regex_of
from viewproof.refinement.checker.compile import compile_program
from viewproof.refinement.checker.whole import Whole
from viewproof.refinement.text_lines import Segment
from viewproof.refinement.tigerbeetle.parts import Parts
from viewproof.refinement.tigerbeetle.profile import COLUMNS_OF_ROWS, JULY, JUNE, SYSTEM_2022, SYSTEM_2026
from viewproof.refinement.tigerbeetle.reading import Lines
from viewproof.refinement.tigerbeetle.records import Cluster
from viewproof.refinement.tigerbeetle.runs import LogRun
from viewproof.refinement.tigerbeetle.source import Source
from viewproof.refinement.verdict import AuditOptions, Violation

CHANGES: Final = ("op", "view", "commit", "checksum", "parent", "sender")
MOVES: Final = ("removed", "doubled", "swapped")
CLASSES: Final = CHANGES + MOVES

_HEADER_NAMES: Final = {
    "op": ("op", "prepare_op"),
    "view": ("view",),
    "commit": ("commit", "commit_min", "commit_max"),
    "checksum": ("checksum", "prepare_checksum", "commit_checksum"),
    "parent": ("parent",),
    "sender": ("replica",),
}
_LINE_NAMES: Final = {name: (name,) for name in CHANGES} | {"commit": ("commit", "commit_min", "commit_max")}
_CLOCKS: Final = re.compile(r"\b(ping|pong|ping_client|pong_client)\b")
_CHECKSUM: Final = re.compile(r"checksum ?= ?([0-9a-f]{20,})")


@dataclass(frozen=True, slots=True)
class Corruption:
    """One change: at a line (number in the log), what was there and what is there now; `other` is the line swapped."""

    kind: str
    line: int
    before: str
    after: str
    other: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the audit said: the line at which it rejected, 0 if it accepted."""

    corruption: Corruption
    rejected_at: int
    reason: str


SOURCE: Final = Source((JUNE, JULY), COLUMNS_OF_ROWS)


class Judge:
    """The audit of one run; `feed` takes its lines in order."""

    def __init__(self, segment: Segment, cluster: Cluster, options: AuditOptions) -> None:
        system = SYSTEM_2022 if cluster.family is JUNE else SYSTEM_2026
        none = Parts(b"", iter(()), Lines(segment), 1)
        self.run = LogRun(segment, cluster, COLUMNS_OF_ROWS, none, segment)
        first = self.run.records.first((None,) * (len(COLUMNS_OF_ROWS) + 2))
        cfg = system.profile.configure(dict(zip(system.names, first, strict=False)), frozenset())
        self.whole = Whole(segment.run_id, compile_program(system, cfg, tuple(sorted(options.allow))), first)

    def feed(self, lines: list[str]) -> bool:
        """Judge lines; False once one is refused."""
        return self.whole.feed(self.run.records_of("".join(f"{line}\n" for line in lines).encode()))

    @property
    def violation(self) -> Violation | None:
        """Why a line was refused."""
        return self.whole.violation


class Bench:
    """A log in memory, and its lines that matter."""

    def __init__(self, file: str, options: AuditOptions) -> None:
        self.options = options
        self.segment = Segment(file)
        self.lines = [line for chunk in Lines(self.segment).chunks() for line in chunk]
        cluster = SOURCE.find_cluster("".join(f"{line}\n" for line in self.lines).encode())
        if cluster is None:
            raise ValueError(f"{file}: no log of a TigerBeetle simulator")
        self.cluster = cluster
        parser = Parser(cluster.family.table)
        self.steps: list[int] = []
        self.fields: dict[str, list[tuple[int, int, int]]] = {name: [] for name in CHANGES}
        self.checksums: list[str] = []
        for number, line in enumerate(self.lines):
            found = parser.match(line, number + 1)
            if found is None or not parser.patterns[found[0]].event:
                continue
            pattern = parser.patterns[found[0]]
            if _CLOCKS.search(line[:60]) or (pattern.role == "message" and _CLOCKS.search(line)):
                continue
            standby = pattern.event == "acknowledge" and int(_node(line)) >= cluster.replicas
            if pattern.role == "step" and not standby:
                self.steps.append(number)
            self._note_fields(number, line, regex_of(pattern), [name for name, _ in pattern.fields])
            self.checksums += _CHECKSUM.findall(line)[:1]

    def _note_fields(self, number: int, line: str, regex: str, names: list[str]) -> None:
        found = re.search(r"\): (" + regex + r")$", line)
        if found is None:
            return
        for position, name in enumerate(names, 2):
            if name == "message":
                self._note_header(number, line, found.start(position))
                continue
            for kind in CHANGES:
                if name in _LINE_NAMES[kind]:
                    self.fields[kind].append((number, found.start(position), found.end(position)))

    def _note_header(self, number: int, line: str, start: int) -> None:
        for kind, names in _HEADER_NAMES.items():
            for name in names:
                found = re.compile(rf"\.{name} ?= ?([0-9a-f]+)").search(line, start)
                if found:
                    self.fields[kind].append((number, found.start(1), found.end(1)))

    def corruptions(self, count: int, seed: int) -> Iterator[Corruption]:
        """`count` corruptions, the classes in turn."""
        rng = random.Random(seed)
        kinds = [kind for kind in CLASSES if kind in MOVES or self.fields[kind]]
        for index in range(count):
            yield self._corruption(kinds[index % len(kinds)], rng)

    def _corruption(self, kind: str, rng: random.Random) -> Corruption:
        if kind in CHANGES:
            number, start, end = rng.choice(self.fields[kind])
            line = self.lines[number]
            changed = line[:start] + self._other(kind, line[start:end], rng) + line[end:]
            return Corruption(kind, number, line, changed)
        position = rng.randrange(len(self.steps))
        number = self.steps[position]
        if kind != "swapped":
            return Corruption(kind, number, self.lines[number], "")
        node = _node(self.lines[number])
        other = next((n for n in self.steps[position + 1 :] if _node(self.lines[n]) == node), 0)
        if not other or self.lines[other] == self.lines[number]:
            return self._corruption(kind, rng)
        return Corruption(kind, number, self.lines[number], self.lines[other], other)

    def _other(self, kind: str, value: str, rng: random.Random) -> str:
        if kind in ("checksum", "parent"):
            return next(c for c in iter(lambda: rng.choice(self.checksums), None) if c != value)
        number = int(value) if value.isdigit() else 0
        if kind == "sender":
            return str((number + 1) % max(2, self.cluster.nodes))
        return str(number + 1 if number == 0 or rng.random() < 0.5 else number - 1)

    def corrupted(self, corruption: Corruption) -> list[str]:
        """The lines of the log with the corruption."""
        lines = list(self.lines)
        at = corruption.line
        if corruption.kind in CHANGES:
            lines[at] = corruption.after
        elif corruption.kind == "removed":
            del lines[at]
        elif corruption.kind == "doubled":
            lines.insert(at, lines[at])
        else:
            lines[at], lines[corruption.other] = lines[corruption.other], lines[at]
        return lines

    def try_all(self, count: int, seed: int) -> list[Outcome]:
        """Each corruption judged; the lines before it are judged once for all, the rest by a copy of the process."""
        judge = Judge(self.segment, self.cluster, self.options)
        judged = 0
        outcomes = []
        for corruption in sorted(self.corruptions(count, seed), key=lambda c: c.line):
            if not judge.feed(self.lines[judged : corruption.line]):
                raise ValueError(f"the log itself is rejected: {judge.violation}")
            judged = corruption.line
            lines = self.corrupted(corruption)[judged:]
            line, reason = _in_copy(judge, lines)
            outcomes.append(Outcome(corruption, line, reason))
        return outcomes


def _in_copy(judge: Judge, lines: list[str]) -> tuple[int, str]:
    """Where and why a copy of the judge rejects these lines; (0, "") if it does not."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            judge.feed(lines)
            found = judge.violation
            answer = [found.line, f"{found.rule_id}: {found.message}"] if found else [0, ""]
            os.write(writer, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer_text = stream.read()
    os.waitpid(child, 0)
    line, reason = json.loads(answer_text or b'[-1, "the audit failed"]')
    return line, reason


def _node(line: str) -> str:
    found = re.match(r"\[\w+\] \(\w+\): (?:crash replica=|restart replica=)?(\d+)", line)
    return found[1] if found else ""


def table(outcomes: list[Outcome]) -> list[tuple[str, int, int]]:
    """(class, tried, rejected), in the order of the classes."""
    tried = Counter(o.corruption.kind for o in outcomes)
    rejected = Counter(o.corruption.kind for o in outcomes if o.rejected_at)
    return [(kind, tried[kind], rejected[kind]) for kind in CLASSES if tried[kind]]
