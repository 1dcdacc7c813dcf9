"""What connections may take of a process: how many of each kind, how many bytes, how long they may do nothing.

The memory that connections hold is bounded: unfinished frames of clients by `CLIENT_BYTES_MAX` in all, one of each
other replica by the largest frame, what waits to be sent by `CLIENT_SEND_BYTES_MAX` per client and `BUFFER_BYTES_MAX`
per replica; of `CLIENT_IDS_MAX` clients it is known where they are. The number of connections is bounded by the limit
of open files, with room kept for replicas and files.
"""

from __future__ import annotations

import resource
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

__all__ = [
    "BUFFER_BYTES_MAX",
    "CLIENT_BYTES_MAX",
    "CLIENT_IDS_MAX",
    "CLIENT_SEND_BYTES_MAX",
    "Limits",
    "LogBudget",
    "limits_of",
    "shown",
]

BUFFER_BYTES_MAX = 64 << 20
"""Bytes that may wait in the send buffer of a connection to a replica."""

CLIENT_SEND_BYTES_MAX = 8 << 20
"""Bytes that may wait in the send buffer of a client's connection when more is to be sent."""

CLIENT_BYTES_MAX = 64 << 20
"""Bytes of unfinished frames of all clients together."""

CLIENT_IDS_MAX = 1 << 17
"""Clients whose connection is known, for their replies; one that is forgotten asks again."""

CLIENTS_MAX = 1024
"""Connections of clients, unless set otherwise and if the limit of open files allows."""

PENDING_MAX = 32
"""Connections that have not said hello."""

LINE_MAX = 2048
"""Characters of a line in the log; others have written some of them."""

SAME_MAX = 5
"""Lines of one kind in a period of the log."""

FILES_OF_PROCESS = 24
FILES_OF_GROUP = 8
CONNECTIONS_OF_REPLICA = 4
"""One dialled, one accepted, and one of each that is being replaced."""


@dataclass(frozen=True, slots=True)
class Limits:
    """``clients`` and ``pending``: connections that have said hello as clients, and that have not said hello.

    A connection is closed that takes longer than ``hello_seconds`` to say hello, ``frame_seconds`` to end a frame that
    it began, ``slow_seconds`` to read what it was sent; a client that asks for nothing for ``idle_seconds`` is closed,
    and after ``yield_seconds`` if another wants its place.
    """

    clients: int = CLIENTS_MAX
    pending: int = PENDING_MAX
    hello_seconds: float = 10.0
    frame_seconds: float = 30.0
    slow_seconds: float = 30.0
    idle_seconds: float = 600.0
    yield_seconds: float = 1.0


def limits_of(replica_count: int, groups: int, clients: int | None = None) -> Limits | None:
    """The limits that the limit of open files leaves; None if it leaves no room for any client."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return Limits(clients=clients or CLIENTS_MAX)
    reserved = FILES_OF_PROCESS + FILES_OF_GROUP * groups + CONNECTIONS_OF_REPLICA * (replica_count - 1)
    left = files - reserved
    if left < 4:
        return None
    pending = min(PENDING_MAX, left // 4)
    return Limits(clients=min(clients or CLIENTS_MAX, left - pending), pending=pending)


def shown(text: str) -> str:
    """A text of others as one line without control characters."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


class LogBudget:
    """Lets so many lines a ``period`` (seconds) through, and says how many it held back.

    Of lines with the same ``what`` the first ``SAME_MAX`` of a period are let through.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        lines: int = 100,
        period: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._lines = lines
        self._period = period
        self._clock = clock
        self._since = clock()
        self._written = 0
        self._held = 0
        self._same: Counter[str] = Counter()

    def note(self, text: str, what: str | None = None) -> None:
        """A line for the log, whatever others have written into it."""
        text, what = shown(text[:LINE_MAX]), None if what is None else what[:LINE_MAX]
        self.release()
        seen = 0 if what is None else self._same[what]
        if self._written < self._lines and seen < SAME_MAX:
            self._written += 1
            if what is not None:
                self._same[what] += 1
            self._write(text)
        else:
            self._held += 1

    def release(self) -> None:
        """Begins the next period if this one is over."""
        now = self._clock()
        if now - self._since < self._period:
            return
        if self._held:
            self._write(f"{self._held} more lines like these in {now - self._since:.0f} s were left out")
        self._since, self._written, self._held = now, 0, 0
        self._same.clear()
