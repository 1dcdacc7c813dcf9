"""Output whose reader went away: the command goes on, and its exit code still says what it found.

`vsr audit … | head -1` closes the pipe after a line. click would end the command with exit code 1, which is a verdict
here: a violation.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, TextIO


class _Lasting(io.RawIOBase):
    """A file descriptor; what is written after its reader is gone is dropped."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._gone = False

    def writable(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Is it a terminal?"""
        return os.isatty(self._descriptor)

    def write(self, data: Any) -> int:
        """Write, or drop. Another problem (a full disk) is raised once, and what follows is dropped too."""
        if self._gone:
            return len(data)
        try:
            return os.write(self._descriptor, data)
        except OSError as problem:
            self._gone = True
            if isinstance(problem, BrokenPipeError):
                return len(data)
            raise OSError(problem.errno, os.strerror(problem.errno or 0), "standard output") from None


def _lasting(stream: TextIO) -> TextIO:
    stream.flush()
    raw: Any = io.BufferedWriter(_Lasting(stream.fileno()))
    # a sign that the terminal does not have is written as its number: the verdict comes out all the same
    errors = "backslashreplace" if stream.errors == "strict" else stream.errors
    return io.TextIOWrapper(raw, encoding=stream.encoding, errors=errors, line_buffering=os.isatty(stream.fileno()))


def outlive_readers() -> None:
    """Make standard output and error such streams, where they are the process's own; one that was closed before the
    process began takes all and keeps nothing, and standard input that was closed is empty.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - for the life of the process
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for the life of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        sys.stdout = _lasting(sys.stdout)
    if sys.stderr is sys.__stderr__ and sys.stderr is not None:
        sys.stderr = _lasting(sys.stderr)
        sys.stderr.reconfigure(line_buffering=True)  # type: ignore[attr-defined]
