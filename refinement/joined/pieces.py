"""Files that hold the same lines: packed copies beside plain files, and pieces of a rotated log that overlap; and files
that hold the lines of several processes, which do not say whose they are.

A process prints a line once. A file whose lines another one has is not read; of one that begins in the midst of another
and goes on with its lines, only what comes after them is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from viewproof.refinement.joined.order import SLACK
from viewproof.refinement.joined.source import Reading, lines_of
from viewproof.refinement.text_lines import TextLines

Place = tuple[str, int]
"""A file, and the number of a line in it."""


@dataclass
class OneProcess:
    """The lines of a file, of which none says who printed it: those of one process have times that do not fall by more
    than clocks differ, and the same names. `mixed` says why they are not; "": they are.
    """

    file: str
    latest: float = 0.0
    names: dict[str, str] = field(default_factory=dict)
    mixed: str = ""

    def sees(self, number: int, time: float, kind: str = "", name: str = "") -> None:
        """The line of that number has this time, and names its process so, if it has a name of that kind."""
        if not self.mixed and (time + SLACK < self.latest or (kind and self.names.setdefault(kind, name) != name)):
            what = "lines of several processes, or not in their order, and none says who printed it"
            self.mixed = f"whose lines are in {self.file}: it has {what} (noticed at line {number})"
        self.latest = max(time, self.latest)


def distinct(files: Sequence[str], reading: Reading) -> tuple[str, ...]:
    """The files to read, in their order; `reading` is told what is passed over of them. Raises `OSError`."""
    if len(files) < 2:
        return tuple(files)
    found = _beginnings(files)
    kept = list(files)
    for file, other, at in ((file, *place) for file, places in found.items() for place in places):
        if file in kept and other in kept:
            common, ends = _common(other, at, file)
            alike = at == 1 and not _goes_on(other, common)
            if ends and (not alike or files.index(other) < files.index(file)):
                kept.remove(file)
                reading.notes.append(f"{file} is not read: it is a copy of {other}, or of a part of it")
    for file in kept:
        common = max((_common(other, at, file)[0] for other, at in found[file] if other in kept), default=0)
        if common:
            reading.skips[file] = common
            reading.notes.append(f"{file} is read from line {common + 1}: another file has the lines before")
    return tuple(kept)


def _beginnings(files: Sequence[str]) -> dict[str, list[Place]]:
    """Where other files have the first line of each."""
    first: dict[str, list[str]] = defaultdict(list)
    for file in files:
        line = next(lines_of(file), None)
        if line is not None and line.text.strip():
            first[line.text].append(file)
    found: dict[str, list[Place]] = {file: [] for file in files}
    for other in files:
        number = 0
        for chunk in TextLines(other).chunks():
            if number == 0 and chunk:
                chunk[0] = chunk[0].removeprefix("\ufeff")
            if not first.keys().isdisjoint(chunk):
                for at, text in enumerate(chunk, number + 1):
                    for file in first.get(text, ()):
                        if file != other:
                            found[file].append((other, at))
            number += len(chunk)
    return found


def _common(other: str, at: int, file: str) -> tuple[int, bool]:
    """How many lines the file has in common with the other from line `at` on, if one of the two ends with them (else
    0); and whether the file does.
    """
    lines: Iterator[str] = (line.text for line in lines_of(other) if line.number >= at)
    common = 0
    for line in lines_of(file):
        text = next(lines, None)
        if text is None:
            return common, False
        if text != line.text:
            return 0, False
        common += 1
    return common, True


def _goes_on(file: str, count: int) -> bool:
    """Has the file more lines than so many?"""
    return any(line.number > count for line in lines_of(file))
