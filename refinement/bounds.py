"""How much of a file is held in memory at once, whatever is in it: what goes beyond is refused by name."""

from __future__ import annotations

import io
from typing import Any, BinaryIO, Final

__all__ = ["LINE_MAX", "BoundedLines", "LineTooLongError", "rows_error"]

LINE_MAX: Final = 1 << 26
"""Longest line of a text file, bytes without its end, packed or not: a window of 2^18 headers takes about 10 MiB."""

ROWS_MIN: Final = 1 << 16
"""So many rows a Parquet file may have, however small it is."""


class LineTooLongError(ValueError):
    """A line is longer than `LINE_MAX`."""

    def __init__(self) -> None:
        super().__init__(f"a line of more than {LINE_MAX} bytes")


class BoundedLines(io.RawIOBase):
    """The content of a stream, as long as its lines are not longer than `LINE_MAX`; else LineTooLongError."""

    def __init__(self, source: BinaryIO | io.BufferedIOBase | io.RawIOBase) -> None:
        self._source = source
        self._unended = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as one read gives content; 0 is the end."""
        size: int = self._source.readinto(buffer) or 0  # type: ignore[union-attr]
        newline = bytes(memoryview(buffer)[:size]).rfind(b"\n")
        self._unended = self._unended + size if newline < 0 else size - newline - 1
        if self._unended > LINE_MAX:
            raise LineTooLongError
        return size

    def close(self) -> None:
        """Close the stream below."""
        self._source.close()
        super().close()


def rows_error(rows: int, size: int) -> str | None:
    """Why a Parquet file of `size` bytes does not hold so many events, or None: no two events are equal, so even packed
    each takes a byte and more, where equal rows take nothing.
    """
    most = max(ROWS_MIN, size)
    return f"{rows} rows in {size} bytes" if rows > most else None
