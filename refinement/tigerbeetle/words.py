"""Matched lines as rows of words, for the compiled replay: texts are codes, what is not shown is `NULL`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from viewproof.refinement.flat.dictionary import Dictionary, Words
from viewproof.refinement.tigerbeetle.headers import COLUMNS as MESSAGE
from viewproof.refinement.tigerbeetle.reading import call
from viewproof.refinement.tigerbeetle.word_headers import WordHeaders, checked

_TEXTS: Final = 1 << 17
"""So many texts have place at first; memory that is not used is not taken."""


class WordRows:
    """Makes rows of words of matched lines. `fields` are those of each pattern: column (-1: a header), place among what
    the parser found, kind, and what a text of that kind means; `events` the number of each pattern's event.
    """

    def __init__(
        self,
        fields: Sequence[Iterable[tuple[int, int, Any, Callable[[str], Any]]]],
        events: Sequence[int],
        texts: Dictionary,
        columns: int,
        begin: int,
        headers: WordHeaders,
    ) -> None:
        plans: list[int] = []
        entries: list[int] = []
        kinds: dict[Any, int] = {}
        self.meaning: list[Callable[[str], Any]] = []
        for some in fields:
            first = len(entries) // 3
            for column, place, kind, meaning in some:
                if kind not in kinds:
                    kinds[kind] = len(kinds)
                    self.meaning.append(meaning)
                entries += [place, column, kinds[kind]]
            plans += [first, len(entries) // 3 - first]
        self.plans, self.entries, self.events = (np.array(part or [0], np.int64) for part in (plans, entries, events))
        self.longest = max(plans[1::2], default=0)
        self.texts = texts
        self.headers = headers
        self.columns = columns
        self.begin = begin
        self.meanings = np.zeros((len(kinds), _TEXTS), np.int64)
        self.header_kind = kinds.get("m", -1)

    def rows(self, found: Words) -> Words:
        """The rows of what the parser found. Raises `NotPlain` where a number is too large for a word."""
        count, width = found.shape
        if int(self.texts.used[0]) > self.meanings.shape[1]:
            self._grow(int(self.texts.used[0]))
        missing = np.empty((count * self.longest + 1, 2), np.int64)
        room = self.meanings.shape[1]
        given = found, width, count, self.plans, self.entries
        some = call("unknown_texts", *given, self.meanings, room, missing)
        of_headers = missing[:some, 0] == self.header_kind
        codes = np.ascontiguousarray(missing[:some][of_headers, 1])
        self.meanings[self.header_kind, codes] = 1 + self.headers.known + np.arange(len(codes))
        self.headers.read(codes)
        for kind, code in missing[:some][~of_headers].tolist():
            value = self.meaning[kind](self.texts.text(code))
            self.meanings[kind, code] = 1 + (self.headers.code(value) if isinstance(value, str) else checked(value))
        rows = np.empty((count, self.columns), np.int64)
        call(
            "rows_of_words", *given, self.meanings, room, self.events, self.headers.rows, len(MESSAGE), self.begin,
            rows, self.columns,
        )  # fmt: skip
        return rows

    def _grow(self, texts: int) -> None:
        larger = np.zeros((self.meanings.shape[0], 2 * texts), np.int64)
        larger[:, : self.meanings.shape[1]] = self.meanings
        self.meanings = larger
