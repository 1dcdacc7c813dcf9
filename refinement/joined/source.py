"""Lines of log files, and what a system's reader makes of them: runs of typed records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from viewproof.refinement.joined.order import Record
from viewproof.refinement.text_lines import TextLines
from viewproof.refinement.verdict import InputProblem

SHAPES_SHOWN = 12
_NO_TEXT = re.compile("[\x00\ufffd]")


class Malformed(ValueError):  # noqa: N818 - a problem of the input
    """A line that has not what a line of its kind has: the field, what was expected, and what is there."""

    def __init__(self, name: str, expected: str, got: str) -> None:
        super().__init__(f"{name}: expected {expected}, got {got}")
        self.name = name
        self.expected = expected
        self.got = got


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, from 1."""

    file: str
    number: int
    text: str

    def problem(self, error: Malformed) -> InputProblem:
        """What is wrong with it, as a report says it."""
        return InputProblem(self.file, self.number, error.name, error.expected, error.got)


@dataclass(slots=True)
class Unknown:
    """Lines that no pattern knows, by their shape: how many, and where the first is."""

    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, shape: str, line: Line) -> None:
        """Count a line."""
        self.counts[shape] += 1
        self.first.setdefault(shape, f"{line.file}:{line.number}")

    def texts(self) -> tuple[str, ...]:
        """One text per shape, most frequent first; the rest is a number."""
        found = [
            f"not known, {n} times, first at {self.first[s]}: {s}" for s, n in self.counts.most_common(SHAPES_SHOWN)
        ]
        more = len(self.counts) - SHAPES_SHOWN
        return tuple([*found, f"and {more} more kinds of lines"] if more > 0 else found)


@dataclass(slots=True)
class LoggedRun:
    """One run as its lines show it: the records in their order, the configuration, what is not shown, what was odd.

    `configuration` are columns of the run's first event; without them there are no records, and `missing` says why.
    `late`: the log begins after the run did, so that nothing is known of its nodes at first; or only of `late_nodes`.
    """

    run_id: str
    configuration: Mapping[str, int]
    records: list[Record]
    missing: tuple[str, ...] = ()
    late: bool = False
    late_nodes: frozenset[int] = frozenset()
    notes: tuple[str, ...] = ()
    unknown: Unknown = field(default_factory=Unknown)
    lines: int = 0


@dataclass(slots=True)
class Reading:
    """What the files of a unit gave: runs, lines that are malformed, and where files are cut off or damaged.

    `skips` says how many lines of a file are passed over, as another has them, `notes` what a report says of that
    (`pieces.distinct`).
    """

    runs: list[LoggedRun] = field(default_factory=list)
    problems: list[InputProblem] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skips: dict[str, int] = field(default_factory=dict)


def lines_of(file: str, reading: Reading | None = None) -> Iterator[Line]:
    """The lines of a file, plain or packed, without a mark of the byte order; `reading` is told what is cut off or
    damaged of it. Raises `OSError`.
    """
    number = 0
    damaged: list[int] = []
    passed = 0 if reading is None else reading.skips.get(file, 0)
    lines = TextLines(file)
    for chunk in lines.chunks():
        for text in chunk:
            number += 1
            if number <= passed:
                continue
            text = text.removeprefix("\ufeff") if number == 1 else text
            if reading is not None and _NO_TEXT.search(text):
                damaged.append(number)
            yield Line(file, number, text)
    if reading is not None and lines.cut:
        reading.missing.append(f"the end of {file}: {lines.cut}")
    if reading is not None and damaged:
        reading.missing.append(f"what {len(damaged)} damaged lines said, the first at {file}:{damaged[0]}")


def judged_up_to(records: list[Record], why: Callable[[Record], str]) -> tuple[list[Record], list[str]]:
    """The records before the first of which `why` says that the run is judged up to it, and what is missing then."""
    for at, record in enumerate(records):
        if text := why(record):
            return records[:at], [f"{record.file}:{record.line}: {text}"]
    return records, []


def run_of(files: tuple[str, ...], part: str = "") -> str:
    """The name of a run: its file, or the directory of its files, and which part of what they say it is."""
    name = files[0] if len(files) == 1 else files[0].rpartition("/")[0] or "."
    return f"{name}#{part}" if part else name


def steady(records: Iterable[Record]) -> list[Record]:
    """Records in the order of their files, with times that do not fall along the lines of one process."""
    latest: dict[int, float] = {}
    found = []
    for record in records:
        latest[record.node] = record.time = max(record.time, latest.get(record.node, record.time))
        found.append(record)
    return found
