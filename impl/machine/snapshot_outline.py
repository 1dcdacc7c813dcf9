"""The outline of a snapshot: where in its bytes the segments of partitions lie, each with a checksum.

Segments only grow, so a replica that lacks a snapshot has most of them as they are, or how they begin. With the outline
it takes those, and fetches only the rest (`impl.replica.arrival`).
"""

from __future__ import annotations

import hashlib

import msgspec

from viewproof.impl.machine.partition_log import SegmentError, segment_base_of
from viewproof.impl.machine.snapshot import HEAD_SIZE, SnapshotError, decode_snapshot
from viewproof.impl.machine.state_machine import StateError, decode_state

CHECKSUM_SIZE = 16


class Part(msgspec.Struct, frozen=True, array_like=True):
    """One segment in the bytes of a snapshot: `size` bytes from byte `at` on."""

    namespace: int
    base: int
    at: int
    size: int
    checksum: bytes

    @property
    def end(self) -> int:
        """The byte after it."""
        return self.at + self.size


class Outline(msgspec.Struct, frozen=True, array_like=True):
    """`size` of the snapshot in bytes, and its segments by place."""

    size: int
    parts: list[Part]


_DECODER: msgspec.msgpack.Decoder[Outline] = msgspec.msgpack.Decoder(Outline)


def checksum_part(content: bytes | bytearray | memoryview) -> bytes:
    """blake2b-128 of a segment's bytes."""
    return hashlib.blake2b(content, digest_size=CHECKSUM_SIZE, person=b"part").digest()


def encode_outline(data: bytes) -> bytes:
    """The encoded outline of a snapshot's bytes. Raises `SnapshotError` if they are no snapshot."""
    try:
        state = decode_state(decode_snapshot(data).state_machine)
        parts: list[Part] = []
        at = HEAD_SIZE
        for namespace, segments in state.partitions:
            for content in segments:
                at = data.index(content, at)
                parts.append(Part(namespace, segment_base_of(content), at, len(content), checksum_part(content)))
                at += len(content)
    except (StateError, SegmentError) as error:
        raise SnapshotError(str(error)) from error
    return msgspec.msgpack.encode(Outline(len(data), parts))


def decode_outline(encoded: bytes) -> Outline:
    """Raises `SnapshotError` if it is none, or its parts do not follow one another in the bytes."""
    try:
        outline = _DECODER.decode(encoded)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"the outline of a snapshot does not decode: {error}") from error
    at = 0
    for part in outline.parts:
        if part.at < at or part.size < 1 or part.end > outline.size:
            raise SnapshotError(f"the outline of a snapshot has a part at {part.at} of {part.size} bytes, after {at}")
        at = part.end
    return outline
