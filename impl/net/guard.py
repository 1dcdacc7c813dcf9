"""How far what a message carries may lie above what the replica knows (`impl.interface.ranges.Jump`).

Checked for every message before the replica sees it: a message with such a value is dropped, and counted by the reason.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple, Protocol

import msgspec

from viewproof.impl.interface.messages import DoViewChange, Message, Prepare, PrepareHeader, PrepareResponse, StartView
from viewproof.impl.interface.ranges import Jump

__all__ = ["Known", "TooFar", "jump_error"]


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


def jump_error(message: Message, known: Known) -> TooFar | None:
    """What no correct sender sends, because it is so far ahead of what is `known`, or None."""
    base = {"view": known.view, "op": max(known.op, known.commit_max), "clock": known.clock}
    for part in _parts(message):
        for name, jump in _jumps(type(part)):
            value = getattr(part, name)
            if value > base[jump.of] + jump.most:
                field, ahead = f"{type(message).__name__}.{name}", value - base[jump.of]
                return TooFar(field, f"{field} {value} is {ahead} ahead of what is known; at most {jump.most} may be")
    return None


def _parts(message: Message) -> Iterator[Message | PrepareHeader]:
    """The message, and the headers in it."""
    yield message
    if isinstance(message, Prepare):
        yield message.header
    elif isinstance(message, DoViewChange | StartView):
        yield from message.headers
    elif isinstance(message, PrepareResponse):
        yield from (prepare.header for prepare in message.prepares)


@functools.cache
def _jumps(kind: type[msgspec.Struct]) -> tuple[tuple[str, Jump], ...]:
    """The fields of a message that have such a bound."""
    fields = msgspec.structs.fields(kind)
    metas = [(field.name, meta) for field in fields for meta in getattr(field.type, "__metadata__", ())]
    return tuple((name, meta.extra["jump"]) for name, meta in metas if meta.extra is not None)
