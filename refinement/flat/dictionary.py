"""Strings and their codes, and the compiled functions that make columns of words."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewproof.refinement.flat import arrow as arrow_source
from viewproof.refinement.flat import json_lines as json_source
from viewproof.refinement.flat import text as text_source
from viewproof.refinement.flat.text import Texts
from viewproof.spec.engines.llvm.objects import loaded, unit_of
from viewproof.spec.lang import SpecError

Words = NDArray[np.int64]
TEXTS_MIN = 1 << 12
TEXTS_KEPT = 1 << 17
"""Strings of a generation of a run that is streamed; those of the one before are known, too."""
HASHES_SORTED = 1 << 20
"""About so many hashes are sorted at a time."""
PADDING = bytes(8)


class NotPlain(Exception):  # noqa: N818 - the other reader looks at it
    """These files are for the reader of rows; the message says why."""


@cache
def _functions() -> tuple[dict[str, Any], Any]:
    """The compiled functions, and what keeps them; none, and why, where the cache cannot be written."""
    try:
        return loaded(unit_of("text to columns", text_source, json_source, arrow_source))
    except SpecError as error:
        return {}, error


def call(name: str, *given: Any) -> int:
    """What a compiled function returns."""
    functions, engine = _functions()
    if not functions:
        raise NotPlain(str(engine))
    result: int = functions[name](*given)
    return result


class Dictionary:
    """Strings and their codes, those of `known` first; there is place for so many, of some length."""

    def __init__(self, known: Sequence[str], most: int = TEXTS_MIN) -> None:
        self.used = np.zeros(1, np.int64)
        self.starts = np.zeros(1, np.int64)
        self.bytes = np.zeros(0, np.uint8)
        self.slots = np.zeros(0, np.int64)
        if most == TEXTS_MIN and known:
            self._copy(_dictionary_of(tuple(known)))
            return
        self.grow(most, 32 * most)
        self.intern([text.encode() for text in known])

    def _copy(self, other: Dictionary) -> None:
        self.used, self.starts = other.used.copy(), other.starts.copy()
        self.bytes, self.slots = other.bytes.copy(), other.slots.copy()

    def grow(self, most: int, room: int) -> None:
        """Have place for so many strings, and bytes, more."""
        used = int(self.used[0])
        most += used
        size = int(self.starts[used]) if used else 0
        starts, old = np.zeros(most + 1, np.int64), self.bytes
        starts[: used + 1] = self.starts[: used + 1]
        self.bytes = np.zeros(size + room, np.uint8)
        self.bytes[:size] = old[:size]
        self.slots = np.zeros(1 << (2 * most).bit_length(), np.int64)
        self.starts = np.zeros(most + 1, np.int64)
        text = self.bytes.copy()
        self.used[0] = 0
        self._all(text, starts, 0, used, np.zeros(max(used, 1), np.int64))

    def as_record(self) -> Texts:
        """For compiled functions."""
        most, mask = self.starts.shape[0] - 1, self.slots.shape[0] - 1
        return Texts(
            slots=self.slots,
            mask=mask,
            starts=self.starts,
            bytes=self.bytes,
            used=self.used,
            most=most,
            room=self.bytes.shape[0],
        )

    def _all(self, text: NDArray[np.uint8], offsets: Words, first: int, count: int, codes: Words) -> int:
        return call("intern_all", self.as_record(), text, offsets, first, count, codes)

    def intern(self, texts: Sequence[bytes]) -> Words:
        """The codes of strings."""
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return self.intern_at(np.frombuffer(b"".join(texts) + PADDING, np.uint8), offsets)

    def intern_at(self, text: NDArray[np.uint8], offsets: Words) -> Words:
        """The codes of strings that lie between offsets of a text, which goes on for some bytes after the last."""
        count, done = len(offsets) - 1, 0
        codes = np.zeros(max(count, 1), np.int64)
        while (done := self._all(text, offsets, done, count, codes)) < count:
            self.grow(max(count, int(self.used[0])), max(len(text), self.bytes.shape[0]))
        return codes[:count]

    def text(self, code: int) -> str:
        """The string of a code."""
        return self.bytes[self.starts[code] : self.starts[code + 1]].tobytes().decode("utf-8", "replace")


@lru_cache(maxsize=16)
def _dictionary_of(known: tuple[str, ...]) -> Dictionary:
    """A dictionary with these strings, to be copied."""
    found = Dictionary((), TEXTS_MIN)
    found.intern([text.encode() for text in known])
    return found


class Generations:
    """The codes of the strings of a run that is streamed; those that did not come for long are let go.

    Of each string's first coming its hash is kept in a temporary file: at the end `plain` says whether none came again
    after it was let go, which would have got another code. A context manager: the file is gone at its end.
    """

    def __init__(self, known: Sequence[str]) -> None:
        self.known = known
        self.new, self.codes = Dictionary(known), np.arange(len(known))
        self.old: Dictionary | None = None
        self.old_codes = self.codes
        self.count = len(known)
        self.turns = 0
        self.hashes = tempfile.TemporaryFile(prefix="viewproof-")  # noqa: SIM115 - closed at the end

    def __enter__(self) -> Generations:
        return self

    def __exit__(self, *_: object) -> None:
        self.hashes.close()

    def adopt(self, part: Dictionary) -> Words:
        """The codes of all strings of a dictionary of the same known ones, by their codes there."""
        first, used, had = len(self.known), int(part.used[0]), int(self.new.used[0])
        places = self.new.intern_at(part.bytes, part.starts[first : used + 1])
        if fresh := int(self.new.used[0]) - had:
            self._number(self.new.starts[had : had + fresh + 1], fresh)
        codes: Words = np.concatenate([np.arange(first), self.codes[places]])
        if int(self.new.used[0]) > TEXTS_KEPT:
            self.old, self.old_codes = self.new, self.codes
            self.new, self.codes = Dictionary(self.known, TEXTS_KEPT + used), np.arange(first)
            self.turns += 1
        return codes

    def _number(self, starts: Words, fresh: int) -> None:
        codes = np.full(fresh, -1)
        if self.old is not None:
            call("find_all", self.old.as_record(), self.new.bytes, starts, fresh, codes)
            codes = np.where(codes >= 0, self.old_codes[codes], -1)
        unknown = codes < 0
        codes[unknown] = self.count + np.arange(np.count_nonzero(unknown))
        self.count += int(np.count_nonzero(unknown))
        self.codes = np.concatenate([self.codes, codes])
        hashes = np.zeros(fresh, np.int64)
        call("hash_all", self.new.bytes, starts, fresh, hashes)
        self.hashes.write(hashes[unknown].tobytes())

    def text(self, code: int) -> str:
        """The string of a code that came lately."""
        for texts, codes in ((self.new, self.codes), (self.old, self.old_codes)):
            if texts is not None and len(found := np.flatnonzero(codes == code)):
                return texts.text(int(found[0]))
        raise NotPlain("a text that was let go")

    def plain(self) -> bool:
        """Did no string come again after it was let go?"""
        if self.turns < 2:
            return True
        parts = max(1, self.hashes.tell() // 8 // HASHES_SORTED)
        return all(self._differ(part, parts) for part in range(parts))

    def _differ(self, part: int, parts: int) -> bool:
        """Are the hashes all different that are in a part of the range?"""
        self.hashes.seek(0)
        some = []
        while data := self.hashes.read(8 * HASHES_SORTED):
            hashes = np.frombuffer(data, np.uint64)
            some.append(hashes[(hashes >> np.uint64(40)) % np.uint64(parts) == part])
        ordered = np.sort(np.concatenate(some))
        return not bool((ordered[1:] == ordered[:-1]).any())
