"""Message headers as rows of words, by compiled code (`heading`).

What a header of a name and command looks like is learned from the first one, which Python reads (`headers`); so are
headers that are not plain. Names have their numbers in dictionaries that both share.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np

from viewproof.refinement.flat.dictionary import Dictionary, NotPlain, Words
from viewproof.refinement.flat.terms import NULL
from viewproof.refinement.tigerbeetle.headers import COLUMNS, PLACE, Form, Headers, Names
from viewproof.refinement.tigerbeetle.heading import Tables
from viewproof.refinement.tigerbeetle.reading import PADDING, call
from viewproof.spec.engines.flat.lower import NUMBER_MAX

NAMED: Final = ("checksums", "contents", "clients", "nonces", "operations", "replies")
"""What has numbers by its name, in the order of the dictionaries."""
_PLACES: Final = (
    "message", "m_content", "m_command", "kind", "m_checksum", "m_client", "m_operation", "m_register", "m_headers",
    "m_rest", "m_reply", "m_unused",
)  # fmt: skip
_FIELDS: Final = ("checksum", "client", "operation", "size", "context", "request", "request_checksum")
_VALUE = re.compile(r"(?:\w+\{ |, )\.(\w+) ?= ?([^, ]+)")
_COMMANDS: Final = 64
_FIRST_STORE: Final = 3
_BUFFER: Final = 1 << 16
_FULL: Final = -1
_ROOM: Final = 1 << 12
_BYTES: Final = 1 << 20
"""So many more strings, and bytes, have place at least where a dictionary is full."""


class Shared:
    """Numbers of names, from `first` on, in a dictionary that compiled code uses, too; see `headers.Numbers`."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.texts = Dictionary(())

    def of(self, text: str, shown: str = "") -> int:
        """The number of the name; 0 if it is none."""
        if text.strip("0") in ("", "null"):
            return 0
        return self.first + int(self.texts.intern([text.encode()])[0])


class _Ordered:
    """The number of the next message: each header is read once."""

    def __init__(self) -> None:
        self.next = 0

    def of(self, text: str, shown: str = "") -> int:
        return self.next


class WordHeaders:
    """The headers of one run: `rows` of words, in the order in which they came."""

    def __init__(self, form: Form, names: Names, texts: Dictionary) -> None:
        shared = {name: Shared(2 if name == "checksums" else 1) for name in NAMED}
        self.messages = _Ordered()
        names.__dict__.update(shared, messages=self.messages)
        self.form, self.names, self.texts = form, names, texts
        self.headers = Headers(form, names)
        self.kinds, self.commands = Dictionary(()), Dictionary(())
        self.stores = [texts, self.kinds, self.commands, *(one.texts for one in shared.values())]
        self.rows = np.empty((1 << 12, len(COLUMNS)), np.int64)
        self.known = 0
        self.fields: list[tuple[str, ...]] = []
        self.shapes: list[int] = []
        self.spans: list[int] = []
        self.literals = b""
        self.plan_of: list[int] = []
        self.plans: list[int] = []
        self.entries: list[int] = []
        self.unused: list[int] = []
        self.codes: dict[str, int] = {}
        self._made: tuple[Tables, list[Words]] | None = None

    def read(self, codes: Words) -> None:
        """Read the headers with these texts: each gets the next row."""
        while self.known + len(codes) > len(self.rows):
            self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])
        done, spans = np.zeros(1, np.int64), np.zeros(256, np.int64)
        first, begin = 0, self.known
        while first < len(codes):
            stores = np.array([store.as_record().as_words() for store in self.stores], np.int64)
            found = call(
                "headers_of", codes, first, len(codes), self._tables(), spans, stores, self.rows, begin, len(COLUMNS),
                done,
            )  # fmt: skip
            first = int(done[0])
            if found == _FULL:
                self._grow()
            elif found:
                self._by_python(self.texts.text(int(codes[first])), begin + first)
                first += 1
        self.known += len(codes)

    def _grow(self) -> None:
        """Have more place in dictionaries that are nearly full."""
        for store in self.stores[1:]:
            used, room = int(store.used[0]), store.bytes.shape[0]
            if used >= store.starts.shape[0] - 1 or int(store.starts[used]) + _BUFFER > room:
                store.grow(max(used, _ROOM), max(room, _BYTES))

    def _by_python(self, text: str, row: int) -> None:
        """Read a header, and learn what others like it look like."""
        self.messages.next = row + 1
        values = self.headers.of(text)
        self.rows[row] = [NULL if value is None else self._word(value) for value in values]
        self._learn(text, values[PLACE["m_command"]])

    def _word(self, value: Any) -> int:
        return self.code(value) if isinstance(value, str) else checked(value)

    def code(self, text: str) -> int:
        """The code of a text."""
        found = self.codes.get(text)
        if found is None:
            found = self.codes[text] = int(self.texts.intern([text.encode()])[0])
        return found

    # what headers look like

    def _learn(self, text: str, command: str) -> None:
        name = text.partition("{")[0]
        shape = int(self.kinds.intern([name.encode()])[0])
        while shape >= len(self.fields):
            self._no_shape()
        if not self.fields[shape]:
            self._shape(shape, text)
        number = int(self.commands.intern([command.encode()])[0])
        if self.fields[shape] and number < _COMMANDS and not self.plan_of[_COMMANDS * shape + number]:
            self._plan(_COMMANDS * shape + number, self.fields[shape], command)
        self._made = None

    def _no_shape(self) -> None:
        self.fields.append(())
        self.shapes += [0, -1, 0]
        self.plan_of += [0] * _COMMANDS

    def _shape(self, shape: int, text: str) -> None:
        """The shape of headers like this one, if it is plain."""
        found = list(_VALUE.finditer(text))
        names = tuple(one[1] for one in found)
        ends = [0, *(one.end() for one in found)]
        follow = all(one.start() == end for one, end in zip(found, ends, strict=False))
        plain = follow and text[ends[-1] :] == " }" and text.isascii() and "command" in names
        if not plain or len(set(names)) < len(names) or len(names) > 100:
            return
        self.fields[shape] = names
        self.shapes[3 * shape : 3 * shape + 3] = [len(self.spans) // 2, len(names), names.index("command")]
        for one in found:
            literal = text[one.start() : one.start(2)].encode()
            self.spans += [len(self.literals), len(literal)]
            self.literals += literal

    def _plan(self, at: int, fields: tuple[str, ...], command: str) -> None:
        form, place = self.form, {name: k for k, name in enumerate(fields)}
        first, unused = len(self.entries) // 3, len(self.unused)
        for column, name, meaning in self.headers.plan(command):
            if name in place:
                store = 0
                if meaning is not None:
                    store = _FIRST_STORE + (NAMED.index("nonces") if column == "m_nonce" else 0)
                self.entries += [PLACE[column], place[name], store]
        self.unused += [place[name] for name in form.unused.get(command, ()) if name in place]
        self.plans += [
            first, len(self.entries) // 3, unused, len(self.unused), self.code(command),
            form.kinds.get(command, form.other), *(place.get(name, -1) for name in _FIELDS), int(command == "reply"),
            form.size, 0,
        ]  # fmt: skip
        self.plan_of[at] = len(self.plans) // 16

    def _tables(self) -> Tables:
        if self._made is None:
            places = [PLACE[name] for name in _PLACES]
            parts = (self.shapes, self.spans, self.plan_of, self.plans, self.entries, self.unused, places)
            arrays = [np.array(part or [0], np.int64) for part in parts]
            shapes, spans, plan_of, plans, entries, unused, found = arrays
            tables = Tables(
                shapes=shapes, fields=spans, literals=np.frombuffer(self.literals + PADDING, np.uint8), plan_of=plan_of,
                plans=plans, entries=entries, unused=unused, places=found, known=len(self.fields),
                buffer=np.zeros(_BUFFER, np.uint8),
            )  # fmt: skip
            self._made = tables, arrays
        return self._made[0]


def checked(value: int) -> int:
    """The number, which fits a word. Raises `NotPlain` if it does not."""
    if not 0 <= value <= NUMBER_MAX:
        raise NotPlain(f"a number that is too large: {value}")
    return int(value)
