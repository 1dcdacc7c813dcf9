"""Message headers as the logs print them: `Header{ .checksum = …, … }` (2022), `PrepareOk{ .checksum=…, … }` (2026).

What has a long name (a checksum, a client's id) gets a number, in order of appearance, which is shown by that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_FIELD = re.compile(r"\.(\w+) ?= ?([^,]+?)(?:,| \})")
DIGITS: Final = 39
"""The largest number of the logs has 128 bits."""


class Code(int):
    """The number of a long name; it is shown by that."""

    text: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


class Numbers:
    """Numbers of names, from `first` on; 0 is that of a name of zeros, which is none."""

    def __init__(self, first: int = 1) -> None:
        self.first = first
        self.known: dict[str, int] = {}

    def of(self, text: str, shown: str = "") -> int:
        """The number of the name, which is shown as `shown`, if that is given."""
        found = self.known.get(text)
        if found is None:
            found = 0
            if text.strip("0") not in ("", "null"):
                found = Code(self.first + len(self.known))
                found.text = shown or text
            self.known[text] = found
        return found


class Names:
    """The numbers of all names of one run. The root's checksum has one like others; 1 stands for the root itself."""

    def __init__(self) -> None:
        self.checksums = Numbers(first=2)
        self.messages = Numbers()
        self.contents = Numbers()
        self.replies = Numbers()
        self.clients = Numbers()
        self.nonces = Numbers()
        self.files = Numbers()
        self.operations = Numbers()
        self.digests = Numbers()


@dataclass(frozen=True)
class Form:
    """How a family prints headers: which field is which column, in all messages and in those of a command.

    `kinds` are the kinds that the specification tells apart, `other` that of all others; `size` are the bytes of a
    header; `unused` are the fields without a meaning in messages of a command.
    """

    kinds: Mapping[str, int]
    other: int
    size: int
    fields: Mapping[str, str]
    by_command: Mapping[str, Mapping[str, str]]
    unused: Mapping[str, tuple[str, ...]]


COLUMNS: Final = (
    "message", "m_content", "m_command", "kind", "m_from", "m_view", "m_op", "m_commit", "m_commit_min", "m_commit_max",
    "m_checkpoint", "m_log_view", "m_low", "m_high", "m_nacks", "m_copies", "m_time", "m_request", "m_session",
    "m_checksum", "m_parent", "m_prepare", "m_asked", "m_client", "m_nonce", "m_operation", "m_register", "m_headers",
    "m_rest", "m_reply", "m_unused",
)  # fmt: skip
"""The columns of a message, in the order of `Headers.of`."""
PLACE: Final = {name: place for place, name in enumerate(COLUMNS)}
_CHECKSUMS: Final = ("m_parent", "m_prepare", "m_asked")
_CONTEXT: Final = ("client", "request", "request_checksum")


class Headers:
    """Headers as columns."""

    def __init__(self, form: Form, names: Names) -> None:
        self.form = form
        self.names = names
        self.plans: dict[str, list[tuple[str, str, Callable[[str], int] | None]]] = {}

    def plan(self, command: str) -> list[tuple[str, str, Callable[[str], int] | None]]:
        """Columns that show a field of messages of this command: name, that of the field, what its text means (None:
        it is a number).
        """
        if command not in self.plans:
            form, names = self.form, self.names
            special = dict.fromkeys(_CHECKSUMS, names.checksums.of) | {"m_nonce": names.nonces.of}
            columns = {**form.fields, **form.by_command.get(command, {})}
            self.plans[command] = [(column, name, special.get(column)) for column, name in columns.items()]
        return self.plans[command]

    def of(self, text: str) -> tuple[Any, ...]:
        """The columns of the message with that header."""
        form, names = self.form, self.names
        fields = dict(_FIELD.findall(text))
        get = fields.get
        command = get("command", "").rpartition(".")[2]
        checksum, operation = get("checksum", ""), get("operation", "")
        content = text.replace(checksum, "", 1) if checksum else text
        unused = (get(name, "0") for name in form.unused.get(command, ()))
        whole, rest = divmod((_number(get("size", "")) or 0) - form.size, form.size)
        shown: dict[str, Any] = {
            "message": names.messages.of(text, f"{command} {checksum}"),
            "m_content": names.contents.of(content, f"header of a {command}"),
            "m_command": command,
            "kind": form.kinds.get(command, form.other),
            "m_checksum": names.checksums.of(checksum),
            "m_client": names.clients.of(get("client", "")),
            "m_operation": names.operations.of(operation),
            "m_register": int(operation.endswith(".register")),
            "m_unused": int(any(value.strip("0") for value in unused)),
            "m_headers": whole,
            "m_rest": rest,
        }
        if command == "reply":
            shown["m_reply"] = names.replies.of(_reply(text, fields), f"reply {checksum}")
        for column, name, meaning in self.plan(command):
            value = get(name)
            if value is not None:
                shown[column] = meaning(value) if meaning else _number(value)
        return tuple(map(shown.get, COLUMNS))


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= DIGITS else None


def _reply(text: str, fields: Mapping[str, str]) -> str:
    """What two copies of a reply share: in 2026 the view it is sent in is not part of it."""
    context = fields.get("context", "").strip("0")
    if not context:
        return text
    return " ".join((context, *(fields.get(name, "") for name in _CONTEXT)))
