"""Files that hold the same lines: packed copies beside plain files, and pieces of a rotated log that overlap; and files
that hold the lines of several processes, which do not say whose they are.

A process prints a line once. A file whose lines another one has is not read; of one that begins in the midst of another
and goes on with its lines, only what comes after them is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from viewproof.refinement.joined.order import SLACK
from viewproof.refinement.joined.source import Reading, lines_of
from viewproof.refinement.text_lines import TextLines

Place = tuple[str, int]
"""A file, and the number of a line in it."""
OFTEN = 3
"""What a single line that is wrong does not show so often."""
MANY = 20
"""So many lines of a process that are as the one before show, if they are 40 % of all, that each is there twice."""


@dataclass
class OneProcess:
    """The lines of a file, of which none says who printed it: those of one process have times that do not fall by more
    than clocks differ, and the same names; it does not lead and follow in turns, and what it does once it does once.
    `mixed` says why they are not; "": they are. `twice` says why they may not be, where others of the cluster have no
    lines. Of lines that say who printed them only times are looked at: `name` is who.
    """

    file: str
    name: str = ""
    latest: float = 0.0
    names: dict[str, str] = field(default_factory=dict)
    mixed: str = ""
    twice: str = ""
    roles: dict[Hashable, bool] = field(default_factory=dict)
    done: dict[Hashable, set[Hashable]] = field(default_factory=lambda: defaultdict(set))
    turns: int = 0
    repeated: int = 0
    last: str = ""
    lines: int = 0
    copies: int = 0

    def sees(self, number: int, time: float, text: str, kind: str = "", name: str = "") -> None:
        """The line of that number has this time, and names its process so, if it has a name of that kind."""
        self.lines, self.copies, self.last = self.lines + 1, self.copies + (text == self.last), text
        if self.copies >= MANY and 5 * self.copies >= 2 * self.lines:
            self.mixed = self.mixed or f"lines that are there once: in {self.file} they are there twice (line {number})"
        if time + SLACK < self.latest or (kind and self.names.setdefault(kind, name) != name):
            self.mixed = self.mixed or self._text(number)
        self.latest = max(time, self.latest)

    def leads(self, number: int, group: Hashable, *, leads: bool) -> None:
        """By that line its process leads a group, or follows in it."""
        self.turns += self.roles.get(group, False) and not leads
        self.roles[group] = leads
        if self.turns >= OFTEN:
            self.mixed = self.mixed or self._text(number)

    def does(self, number: int, group: Hashable, what: Hashable) -> None:
        """By that line its process does what it does once, until it begins anew."""
        self.repeated += what in self.done[group]
        self.done[group].add(what)
        if self.repeated >= OFTEN:
            self.twice = self.twice or self._text(number)

    def begins(self, group: Hashable = None) -> None:
        """It takes another role in a group (None: in all), and may do again what it did."""
        for known in [group] if group is not None else list(self.roles.keys() | self.done.keys()):
            self.roles.pop(known, None)
            self.done.pop(known, None)

    def _text(self, number: int) -> str:
        if self.name:
            return f"the order of the lines in {self.file}: times of {self.name} fall (noticed at line {number})"
        what = "lines of several processes, or not in their order, and none says who printed it"
        return f"whose lines are in {self.file}: it has {what} (noticed at line {number})"


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
