"""NDJSON files of trace events."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

from viewproof.impl.trace.events import TraceEvent, decode_line, encode_line

LINE_MAX = 64 << 20
"""Bytes of a line, at most; the audit reads no longer ones."""

LINE_START = b'{"run":"'
"""How each line begins: what is cut off as a torn line is one of ours."""


class TraceError(ValueError):
    """A trace file that cannot be continued: says file and line."""


class TraceWriter:
    """Appends events to one NDJSON file, unbuffered: one write(2) for each call.

    The events then survive a kill of the process (not of the machine: no fsync). Opening a file that exists cuts a
    torn last line and continues `seq` and `clock`: pass `writer.seq` and `writer.clock` to the replica that boots.
    `node` and `run` are those of its last event, None if there is none.
    """

    def __init__(self, path: Path) -> None:
        """Opens or creates `path` (its directory too). Raises `TraceError` if it is no file, no trace, or in use."""
        if path.exists() and not path.is_file():
            raise TraceError(f"{path}: not a file; a trace is a file, which is continued where it ended")
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.seq = 0
        self.clock = 0
        self.node: int | None = None
        self.run: str | None = None
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._lock()
            self._recover()
        except (OSError, TraceError):
            self.close()
            raise
        self._size = os.fstat(self._descriptor).st_size

    def _lock(self) -> None:
        import fcntl  # not on every platform; only servers write traces that go on

        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TraceError(f"{self.path}: another process writes this trace; each replica has its own") from error

    def require_of(self, node: int, run: str) -> None:
        """Raises `TraceError` if its events are another replica's, or of another run."""
        if self.node is not None and (self.node, self.run) != (node, run):
            raise TraceError(
                f"{self.path}: its events are of node {self.node} in run {self.run}, not of node {node} in run {run}; "
                "begin another trace"
            )

    def _recover(self) -> None:
        with self.path.open("r+b") as file:
            end = 0
            for number, line in enumerate(iter(lambda: file.readline(LINE_MAX), b""), start=1):
                if not line.endswith(b"\n"):
                    if line[: len(LINE_START)] != LINE_START[: len(line)] or len(line) == LINE_MAX:
                        raise TraceError(f"{self.path}:{number}: not the begin of a trace event; nothing was changed")
                    break
                try:
                    event = decode_line(line)
                except msgspec.DecodeError as error:
                    raise TraceError(f"{self.path}:{number}: not a trace event: {error}") from error
                end += len(line)
                self.seq, self.node, self.run = event.seq, event.node, event.run
                self.clock = max(self.clock, event.clock)
            file.truncate(end)

    def require_whole(self) -> None:
        """Raises `TraceError` if the file was removed, replaced or cut while it was written."""
        found = os.fstat(self._descriptor)
        try:
            named = os.stat(self.path)
        except FileNotFoundError as error:
            raise TraceError(f"{self.path}: the trace was removed while the process ran") from error
        if (named.st_dev, named.st_ino) != (found.st_dev, found.st_ino):
            raise TraceError(f"{self.path}: another file took the name of the trace while the process ran")
        if found.st_size < self._size:
            raise TraceError(f"{self.path}: the trace was cut to {found.st_size} bytes while the process ran")

    def write(self, event: TraceEvent) -> None:
        """Writes the event; it is in the file (page cache) when this returns. Raises `OSError`."""
        self.write_all((event,))

    def write_all(self, events: Sequence[TraceEvent]) -> None:
        """Writes the events, at least one, in order; they are in the file when this returns. Raises `OSError`."""
        lines = b"".join([encode_line(event) for event in events])
        written = os.write(self._descriptor, lines)
        while written < len(lines):
            written += os.write(self._descriptor, lines[written:])
        self._size += len(lines)
        self.seq = events[-1].seq
        self.clock = events[-1].clock

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_ndjson(file: IO[bytes]) -> list[TraceEvent]:
    """All events of an NDJSON file. Raises `msgspec.DecodeError` on a line that is no event."""
    return [decode_line(line) for line in file if line.strip()]
