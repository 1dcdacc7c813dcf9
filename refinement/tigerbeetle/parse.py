"""From lines to rows of numbers, by compiled code: the pattern that explains each line, and its fields."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np

from viewproof.refinement.flat.dictionary import Dictionary, Words
from viewproof.refinement.tigerbeetle.matching import Program
from viewproof.refinement.tigerbeetle.reading import PADDING, call
from viewproof.refinement.tigerbeetle.table import FIELD, Pattern, Table

LEVELS: Final = ("debug", "info", "warn", "err")
UNKNOWN, OUTSIDE = -1, -2
"""In place of a pattern's number: a line of the protocol that none explains; one that no subsystem printed, and that is
damaged or begins like the last words of a process.
"""
FIRST: Final = 3
"""Words of a row before its fields: pattern, number of the line, where it begins."""
NAME_MIN: Final = 6
"""Letters of a subsystem's name: two words of a line then tell it."""
_ROWS: Final = 1 << 13
_NUMBER = re.compile(r"[0-9a-f]*\d[0-9a-f]*")
_END, _LITERAL, _ANY = 0, 1, 6
_KINDS: Final = {"d": 2, "p": 2, "u": 2, "c": 3, "x": 3, "w": 4, "k": 5, "t": 7, "e": 8, "m": 9, "b": 10}
_SKIPS: Final = {"p": 1, "u": 2}
"""How fields of each kind are matched, and what stands before them (`matching.matches`)."""
_HEADS, _WORDS = 256, 1024
_MIX, _PRIME, _MASK = 7046029254386353131, 1099511628211, (1 << 64) - 1


@lru_cache(maxsize=8)
def program_of(table: Table) -> tuple[Program, int]:
    """The compiled form of a table, and the number of words in a row. Patterns with an event are tried before notes."""
    return _Compiled(table).program()


class _Compiled:
    """A table as arrays."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.literals = bytearray()
        self.ops: list[int] = []
        self.fields: list[int] = []
        self.starts: list[int] = []

    def program(self) -> tuple[Program, int]:
        table, patterns = self.table, self.table.patterns
        names = sorted({p.subsystem for p in patterns} | set(table.subsystems))
        for pattern in patterns:
            self._pattern(pattern)
        heads, prefixes = self._heads(names)
        candidates: list[int] = []
        words, others = [[0, 0, 0] for _ in range(_WORDS)], []
        for number, name in enumerate(names):
            by_word: dict[str, list[int]] = defaultdict(list)
            for at, pattern in sorted(enumerate(patterns), key=lambda entry: not entry[1].event):
                if pattern.subsystem == name:
                    by_word[pattern.word].append(at)
            others += [len(candidates), len(by_word[""]), int(name in table.subsystems)]
            candidates += by_word.pop("")
            for word, found in by_word.items():
                key = _key(number + 1, word)
                _insert(words, (key * _MIX & _MASK) >> 54, [_signed(key), len(candidates), len(found)])
                candidates += found
        program = Program(
            heads=_array(list(chain(*heads))), prefixes=_array(prefixes), words=_array(list(chain(*words))),
            others=_array(others), candidates=_array(candidates), patterns=_array(self.starts), ops=_array(self.ops),
            fields=_array(self.fields), literals=np.frombuffer(bytes(self.literals) + PADDING, np.uint8),
        )  # fmt: skip
        return program, FIRST + max(0, *self.starts[2::3])

    def _pattern(self, pattern: Pattern) -> None:
        text, begun, first, last = pattern.text, len(self.ops), len(self.fields), 0
        for found in FIELD.finditer(text):
            self._literal(text[last : found.start()])
            name, kind = found[1], found[2] or "d"
            if name:
                self.ops += [_KINDS[kind], len(self.fields) - first, _SKIPS.get(kind, 0)]
                self.fields.append(_KINDS[kind])
            else:
                self.ops += [_ANY, 0, 0]
            last = found.end()
        self._literal(text[last:])
        self.ops += [_END, 0, 0]
        self.starts += [begun, first, len(self.fields) - first if pattern.event else -1]

    def _literal(self, text: str) -> None:
        if text:
            self.ops += [_LITERAL, len(self.literals), len(text)]
            self.literals += text.encode()

    def _heads(self, names: Sequence[str]) -> tuple[list[list[int]], list[int]]:
        """By the first two words of a prefix where all those lie, and each prefix with its subsystem."""
        texts = sorted((f"[{level}] ({name}): ".encode(), n) for level in LEVELS for n, name in enumerate(names))
        if short := [name for name in names if len(name) < NAME_MIN]:
            raise ValueError(f"the subsystem {short[0]!r} has less than {NAME_MIN} letters")
        heads, prefixes = [[0, 0, 0, 0] for _ in range(_HEADS)], list[int]()
        for n, (text, number) in enumerate(texts):
            a, b = (int.from_bytes(text[at : at + 8], "little") for at in (0, 8))
            place = ((a ^ (b * _MIX & _MASK)) * _MIX & _MASK) >> 56
            known = next((one for one in heads if one[:2] == [_signed(a), _signed(b)] and one[3]), None)
            if known is None:
                _insert(heads, place, [_signed(a), _signed(b), n, 1])
            else:
                known[3] += 1
            prefixes += [len(self.literals), len(text), number]
            self.literals += text
        return heads, prefixes


def _key(key: int, word: str) -> int:
    for letter in word.encode():
        key = (key ^ letter) * _PRIME & _MASK
    return key


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _insert(table: list[list[int]], place: int, entry: list[int]) -> None:
    while table[place][-1]:
        place = (place + 1) % len(table)
    table[place] = entry


def _array(values: Sequence[int]) -> Words:
    return np.array(values or [0], np.int64)


class Parser:
    """Matches the lines of one run; `counts` are lines by pattern, `unknown` shapes of lines that none explains."""

    def __init__(self, table: Table, known: Sequence[str] = ()) -> None:
        """`known` are texts with the first codes."""
        self.patterns = table.patterns
        self.counts = np.zeros(len(table.patterns), np.int64)
        self.unknown: Counter[str] = Counter()
        self.first_unknown: dict[str, int] = {}
        self.texts = Dictionary(known)
        self._program, self._width = program_of(table)
        self._out = np.empty((_ROWS, self._width), np.int64)
        self._spans = np.zeros(2 * self._width, np.int64)

    def rows(self, block: bytes, number: int) -> Iterator[tuple[list[list[int]], int]]:
        """`words` as lists."""
        for some, last in self.words(block, number):
            yield some.tolist(), last

    def words(self, block: bytes, number: int) -> Iterator[tuple[Words, int]]:
        """Rows of the whole lines of a block, of which the first has that number, some at a time, with the number of
        the line that they go to: of those that an event's pattern explains, and of `UNKNOWN` and `OUTSIDE` ones.
        """
        text = np.frombuffer(block + PADDING, np.uint8)
        begin = text.ctypes.data
        done = np.array([begin, number, 0], np.int64)
        stopped = 1
        while stopped:
            stopped = call(
                "rows_of_lines", int(done[0]), begin + len(block), self._program, self.texts.as_record(), self._out,
                self._width, _ROWS, self.counts, self._spans, done,
            )  # fmt: skip
            some = self._out[: done[2]]
            some[:, 2] -= begin
            yield some, int(done[1]) - 1
            if stopped == 1:
                self.texts.grow(int(self.texts.used[0]), max(len(block), self.texts.bytes.shape[0]))

    def note_unknown(self, line: str, number: int) -> None:
        """A protocol line without a pattern."""
        shape = _NUMBER.sub("N", line)[:160]
        self.unknown[shape] += 1
        self.first_unknown.setdefault(shape, number)
