"""A file that is looked at as if it could be changed: what is written stays in memory."""

from __future__ import annotations

from viewproof.impl.storage.file import File


class OverlayFile(File):
    """Reads come from `below`, except where something was written since. Nothing reaches `below` but `close`."""

    def __init__(self, below: File) -> None:
        self.path = below.path
        self._below = below
        self._size = below.size()
        self._written: list[tuple[int, bytes]] = []

    def size(self) -> int:
        return self._size

    def read_at(self, offset: int, length: int) -> bytes:
        length = max(0, min(length, self._size - offset))
        found = bytearray(self._below.read_at(offset, length).ljust(length, b"\0"))
        for begin, data in self._written:
            low, high = max(begin, offset), min(begin + len(data), offset + length)
            if low < high:
                found[low - offset : high - offset] = data[low - begin : high - begin]
        return bytes(found)

    def write_at(self, offset: int, data: bytes) -> None:
        self._written.append((offset, bytes(data)))
        self._size = max(self._size, offset + len(data))

    def sync(self) -> None:
        return

    def truncate(self, size: int) -> None:
        self._written = [(begin, data[: max(0, size - begin)]) for begin, data in self._written]
        self._size = size

    def close(self) -> None:
        self._below.close()

    def forget_cached(self) -> None:
        self._below.forget_cached()
