"""Message headers as the logs print them: `Header{ .checksum = …, … }` (2022), `PrepareOk{ .checksum=…, … }` (2026).

A text that is seen again is parsed once: a message keeps its text as identity.
"""

from __future__ import annotations

import re
from typing import Final

_FIELD = re.compile(r"\.(\w+) ?= ?([^,]+?)(?:,| \})")
_TEXTS: Final = frozenset(
    (
        "checksum",
        "checksum_body",
        "parent",
        "context",
        "client",
        "command",
        "operation",
        "request_checksum",
        "prepare_checksum",
        "checkpoint_id",
        "commit_checksum",
        "reply_checksum",
        "release",
        "reason",
    )
)
"""Fields that stay texts; all others are numbers."""
DIGITS: Final = 39
"""The largest number of the logs has 128 bits."""


class Message:
    """A message header; attributes by the names of docs/tigerbeetle.md, a field it does not have is None."""

    __slots__ = ("checksum", "command", "commit", "fields", "op", "parent", "sender", "text", "view")

    def __init__(self, text: str) -> None:
        fields: dict[str, int | str] = {}
        for name, value in _FIELD.findall(text):
            if name in _TEXTS:
                fields[name] = value
            elif len(value) <= DIGITS and value.isdecimal():
                fields[name] = int(value)
        self.text = text
        self.fields = fields
        self.command = str(fields.get("command", "")).rpartition(".")[2]
        self.checksum = str(fields.get("checksum", ""))
        self.parent = str(fields.get("parent", ""))
        self.sender = self._number("replica")
        self.view = self._number("view")
        self.op = self._number("op")
        self.commit = self._number("commit")

    def _number(self, name: str) -> int:
        value = self.fields.get(name, -1)
        return value if isinstance(value, int) else -1

    def number(self, name: str) -> int:
        """A numeric field, -1 if the header has none of that name."""
        return self._number(name)

    def string(self, name: str) -> str:
        """A field that is a text, "" if the header has none of that name."""
        return str(self.fields.get(name, ""))


class Headers:
    """Parsed headers by their text."""

    LIMIT = 200_000

    def __init__(self) -> None:
        self.known: dict[str, Message] = {}

    def get(self, text: str) -> Message:
        """The message with that header."""
        found = self.known.get(text)
        if found is None:
            if len(self.known) > self.LIMIT:
                self.known.clear()
            found = self.known[text] = Message(text)
        return found
