"""Files of frames: pieces of MessagePack, packed, each with its length and checksum."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import xxhash
import zstandard

_HEAD = 4 + 8
_encode = msgspec.msgpack.Encoder().encode


class DamagedError(ValueError):
    """A file of the state is not as it was written: which, and what is wrong."""


def write(path: Path, pieces: Iterable[Any], *, at: int = 0) -> int:
    """Write the pieces from that length of the file on, and sync; returns its length then."""
    packer = zstandard.ZstdCompressor(level=1)
    with path.open("r+b" if at else "wb") as file:
        file.truncate(at)
        file.seek(at)
        for piece in pieces:
            content = packer.compress(_encode(piece))
            file.write(len(content).to_bytes(4, "big") + xxhash.xxh3_64_digest(content) + content)
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def read(path: Path, length: int) -> Iterator[bytes]:
    """The pieces in the first `length` bytes of a file. Raises `DamagedError`."""
    unpacker = zstandard.ZstdDecompressor()
    try:
        with path.open("rb") as file:
            while file.tell() < length:
                head = file.read(_HEAD)
                content = file.read(int.from_bytes(head[:4], "big"))
                if len(head) < _HEAD or file.tell() > length or xxhash.xxh3_64_digest(content) != head[4:]:
                    raise DamagedError(f"{path}: expected {length} bytes of frames with their checksums")
                yield unpacker.decompress(content)
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror or error}") from None
