"""The range of every number and the size of every text that a message carries, declared once, as the field's type.

`msgspec` checks them when a frame is decoded, so nothing out of range gets in; what a superblock keeps has the same
types, and is checked when it is opened and before it is written (`impl.storage.superblock`). A type may also say how
far a value may lie above what the receiver knows (`Jump`; `impl.net.guard`): a counter at the end of its range could
not go on, and a correct replica never sends one that is so far ahead.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, get_type_hints

import msgspec
from msgspec import Meta

COUNTER_MAX = (1 << 62) - 1
"""Largest view, op and clock. The integer columns of traces hold them, with room for what is added."""

CLIENT_CLOCK_MAX = (1 << 61) - 1
"""Largest clock of a client's request: whatever clients send, the replicas' own clocks can go on."""

NUMBER_MAX = (1 << 63) - 1
"""Largest client, session, request number, incarnation and nonce: what the trace's integer columns hold."""

BODY_SIZE_MAX = 1 << 20
"""Largest body of a client's request, bytes: a message that carries several still fits a frame."""

HEADERS_MAX = 1 << 18
"""Most headers in one message: a window over the longest log that a journal keeps."""

LIST_MAX = 1 << 12
"""Most entries that one message asks for or brings."""

REPLICAS_MAX = 1 << 16
"""Replicas have indices of 16 bits."""

CHUNK_SIZE_MAX = 1 << 25
"""Largest part of a snapshot or segment in one message, bytes."""


class Jump(msgspec.Struct, frozen=True):
    """A value lies at most `most` above what the receiver knows: its `view`, `op` or `clock`."""

    of: str
    most: int

    def meta(self, most: int = COUNTER_MAX) -> Meta:
        """The range 0..`most`, with this bound."""
        return Meta(ge=0, le=most, extra={"jump": self})


View: TypeAlias = Annotated[int, Jump("view", 1 << 32).meta()]
"""A view: one a second for 136 years lie between two that a correct replica can be apart."""

Op: TypeAlias = Annotated[int, Jump("op", 1 << 44).meta()]
"""An op or commit number, 0 for none."""

Clock: TypeAlias = Annotated[int, Jump("clock", 1 << 48).meta()]
"""Lamport clock of a replica."""

ClientClock: TypeAlias = Annotated[int, Jump("clock", 1 << 32).meta(CLIENT_CLOCK_MAX)]
"""Lamport clock that a client carries from one replica to another."""

Place: TypeAlias = Annotated[int, Meta(ge=0, le=COUNTER_MAX)]
"""An op or size in bytes that is only compared."""

PlaceOrNone: TypeAlias = Annotated[int, Meta(ge=-1, le=COUNTER_MAX)]
"""The same, or -1."""

Number: TypeAlias = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
Index: TypeAlias = Annotated[int, Meta(ge=0, le=REPLICAS_MAX - 1)]
Feature: TypeAlias = Annotated[int, Meta(ge=0, le=63)]
Features: TypeAlias = Annotated[int, Meta(ge=0, le=NUMBER_MAX)]
"""A set of features, bit f-1 is feature f."""

BodySize: TypeAlias = Annotated[int, Meta(ge=0, le=BODY_SIZE_MAX)]
Body: TypeAlias = Annotated[bytes, Meta(max_length=BODY_SIZE_MAX)]
Checksum: TypeAlias = Annotated[str, Meta(max_length=32, pattern=r"\A(?:[0-9a-f]{32})?\Z")]
"""32 hexadecimal digits in lower case, or empty."""

REASON_SIZE_MAX = 1 << 10

Reason: TypeAlias = Annotated[str, Meta(max_length=REASON_SIZE_MAX)]
"""A short text."""


def range_error(value: Any) -> str | None:
    """Which field of a dataclass or struct is out of its range, and why, or None."""
    for name, least, most in _integers(type(value)):
        found = getattr(value, name)
        if not least <= found <= most:
            return f"{name} is {found}; {least} to {most} are allowed"
    return None


def _integers(kind: type) -> tuple[tuple[str, int, int], ...]:
    """(field, least, most) of each integer field that has a range."""
    hints = get_type_hints(kind, include_extras=True)
    metas = [(name, meta) for name, hint in hints.items() for meta in getattr(hint, "__metadata__", ())]
    return tuple((name, meta.ge, meta.le) for name, meta in metas if meta.ge is not None and meta.le is not None)
