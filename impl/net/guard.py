"""How far what a message carries may lie above what the replica knows (`impl.interface.ranges.Jump`).

Checked for every message before the replica sees it: a message with such a value is dropped, and counted by the reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import msgspec

from viewproof.impl.interface.messages import DoViewChange, Message, Prepare, PrepareHeader, PrepareResponse, StartView
from viewproof.impl.interface.ranges import Jump

__all__ = ["Guard", "Known", "TooFar", "jump_error"]


class Known(Protocol):
    """What a replica knows."""

    @property
    def view(self) -> int:
        """Its view."""

    @property
    def op(self) -> int:
        """Its highest op."""

    @property
    def commit_max(self) -> int:
        """What it knows to be committed."""

    @property
    def clock(self) -> int:
        """Its Lamport clock."""


class TooFar(NamedTuple):
    """Message and field, and all of it in words."""

    field: str
    text: str


class Guard:
    """Looks at every message before the replica sees it."""

    def too_far(self, message: Message, known: Known) -> TooFar | None:
        """As `jump_error`."""
        return jump_error(message, known)


def jump_error(message: Message, known: Known) -> TooFar | None:
    """What no correct sender sends, because it is so far ahead of what is `known`, or None.

    What is known is never below 0, so a value that is not above the jump itself needs no further look.
    """
    for name, jump in _jumps(type(message)):
        if getattr(message, name) > jump.most and (found := _too_far(message, message, name, jump, known)) is not None:
            return found
    headers_of = _HEADERS.get(type(message))
    if headers_of is not None:
        for header in headers_of(message):
            for name, jump in _jumps(PrepareHeader):
                value = getattr(header, name)
                if value > jump.most and (found := _too_far(message, header, name, jump, known)) is not None:
                    return found
    return None


def _too_far(message: Message, part: Message | PrepareHeader, name: str, jump: Jump, known: Known) -> TooFar | None:
    base = max(known.op, known.commit_max) if jump.of == "op" else known.view if jump.of == "view" else known.clock
    value = getattr(part, name)
    if value <= base + jump.most:
        return None
    field, ahead = f"{type(message).__name__}.{name}", value - base
    return TooFar(field, f"{field} {value} is {ahead} ahead of what is known; at most {jump.most} may be")


_HEADERS: dict[type, Callable[[Any], Iterable[PrepareHeader]]] = {
    Prepare: lambda message: (message.header,),
    DoViewChange: lambda message: message.headers,
    StartView: lambda message: message.headers,
    PrepareResponse: lambda message: (prepare.header for prepare in message.prepares),
}
"""The headers in a message."""


@functools.cache
def _jumps(kind: type[msgspec.Struct]) -> tuple[tuple[str, Jump], ...]:
    """The fields of a message that have such a bound."""
    fields = msgspec.structs.fields(kind)
    metas = [(field.name, meta) for field in fields for meta in getattr(field.type, "__metadata__", ())]
    return tuple((name, meta.extra["jump"]) for name, meta in metas if meta.extra is not None)
