"""Lines matched with a table by regular expressions: what the compiled code is compared with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from viewproof.refinement.tigerbeetle.table import FIELD, Pattern, Table

_REGEX = {
    "d": r"(\d{1,39})",
    "w": r"([\w.@|]+)",
    "c": r"([0-9a-f]+)",
    "x": r"([0-9a-f]+)",
    "k": r"([a-zA-Z]?)",
    "p": r" *(\d{1,39})",
    "e": r"(.)",
    "u": r"[ _]*(\d{1,39})",
    "t": r"(.*)",
    "m": r"(\w+\{ .*\})",
    "b": r"(true|false)",
}


def regex_of(pattern: Pattern) -> str:
    """The regular expression that a whole line's text must match."""
    parts, last = [], 0
    for found in FIELD.finditer(pattern.text):
        parts.append(re.escape(pattern.text[last : found.start()]))
        name, kind = found[1], found[2] or "d"
        parts.append(_REGEX[kind] if name else ".*?")
        last = found.end()
    return "".join(parts) + re.escape(pattern.text[last:])


LEVELS: Final = ("debug", "info", "warn", "err")
KEY: Final = 11
"""Characters of a line that tell its subsystem, as far as they can."""

_WORD = re.compile(r"[a-z_]+")
_NUMBER = re.compile(r"[0-9a-f]*\d[0-9a-f]*")

Match = Callable[[str], "re.Match[str] | None"]
Candidates = list[tuple[Match, int]]


@dataclass(slots=True)
class _Subsystem:
    prefix: str
    length: int
    protocol: bool
    by_word: dict[str, Candidates] = field(default_factory=dict)


@dataclass(slots=True)
class Counts:
    """What became of the lines: in all, by pattern, and shapes of protocol lines that no pattern explains."""

    lines: int = 0
    by_pattern: list[int] = field(default_factory=list)
    unknown: Counter[str] = field(default_factory=Counter)
    first_unknown: dict[str, int] = field(default_factory=dict)


class Parser:
    """Matches lines of one family; `match(line)` is (pattern number, groups), or None where nothing is to be done.

    Patterns with an event are tried before notes, whose open ends could hide them.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.patterns: tuple[Pattern, ...] = table.patterns
        self.counts = Counts(by_pattern=[0] * len(self.patterns))
        self._by_key: dict[str, list[_Subsystem]] = {}
        self._compile()

    def _compile(self) -> None:
        names = {p.subsystem for p in self.patterns} | set(self.table.subsystems)
        for name in sorted(names):
            by_word: dict[str, Candidates] = {}
            for number, pattern in sorted(enumerate(self.patterns), key=lambda entry: not entry[1].event):
                if pattern.subsystem == name:
                    by_word.setdefault(pattern.word, []).append((re.compile(regex_of(pattern)).fullmatch, number))
            for level in LEVELS:
                prefix = f"[{level}] ({name}): "
                subsystem = _Subsystem(prefix, len(prefix), name in self.table.subsystems, by_word)
                self._by_key.setdefault(prefix[:KEY], []).append(subsystem)

    def match(self, line: str, number: int) -> tuple[int, tuple[str, ...]] | None:
        """The pattern that explains a line, with the texts of its fields; a protocol line without one is noted."""
        found = self._by_key.get(line[:KEY])
        if found is None:
            return None
        for subsystem in found:
            if line.startswith(subsystem.prefix):
                break
        else:
            return None
        text = line[subsystem.length :]
        colon = text.find(": ")
        lead = colon >= 0 and (text[:1].isdigit() or text.startswith("null: "))
        word = _WORD.match(text, colon + 2 if lead else 0)
        candidates = subsystem.by_word.get(word[0] if word else "")
        if candidates is not None:
            for match, pattern in candidates:
                groups = match(text)
                if groups is not None:
                    self.counts.by_pattern[pattern] += 1
                    return pattern, groups.groups()
        if candidates := subsystem.by_word.get(""):
            for match, pattern in candidates:
                groups = match(text)
                if groups is not None:
                    self.counts.by_pattern[pattern] += 1
                    return pattern, groups.groups()
        if subsystem.protocol:
            self._note_unknown(line, number)
        return None

    def _note_unknown(self, line: str, number: int) -> None:
        shape = _NUMBER.sub("N", line)[:160]
        self.counts.unknown[shape] += 1
        self.counts.first_unknown.setdefault(shape, number)
