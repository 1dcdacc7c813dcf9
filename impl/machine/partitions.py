"""Partitions: append-only logs of messages, one per namespace, with the offsets of their consumers (seed 003, I15).

A partition gives its messages the offsets 0, 1, 2 … in the order of execution, so they are unique and rising; an
operation that is executed twice shows: its messages are there twice, and the offsets after it are higher.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from viewproof.impl.machine.namespaces import NAMESPACE_MAX
from viewproof.impl.machine.partition_log import (
    SEGMENT_BYTES,
    NoSegments,
    PartitionLog,
    Segment,
    SegmentCache,
    SegmentRef,
    SegmentSource,
    record_hash,
)

POLL_MAX = 1024
"""Most messages that one poll returns."""

POLL_BYTES_MAX = 1 << 20
"""A poll ends with the message that brings it to so many bytes."""


class AppendMessages(
    msgspec.Struct, frozen=True, tag="append_messages", array_like=True, gc=False, forbid_unknown_fields=True
):
    """Appends `messages`, at least one, to the partition of `namespace`."""

    namespace: int
    messages: tuple[bytes, ...]


class Poll(msgspec.Struct, frozen=True, tag="poll", array_like=True, gc=False, forbid_unknown_fields=True):
    """Reads up to `count` messages of a partition from `offset` on."""

    namespace: int
    offset: int
    count: int


class StoreOffset(
    msgspec.Struct, frozen=True, tag="store_offset", array_like=True, gc=False, forbid_unknown_fields=True
):
    """A consumer has read everything below `offset`; refused (`Outcome(False)`) above the end of the partition.

    `group`: the number is that of a consumer group; groups and single consumers have offsets of their own.
    """

    namespace: int
    consumer: int
    offset: int
    group: bool = False


class ReadOffset(msgspec.Struct, frozen=True, tag="read_offset", array_like=True, gc=False, forbid_unknown_fields=True):
    """Asks for the stored offset of a consumer, or of a consumer group."""

    namespace: int
    consumer: int
    group: bool = False


PartitionOperation: TypeAlias = AppendMessages | Poll | StoreOffset | ReadOffset


class Appended(msgspec.Struct, frozen=True, tag="appended", array_like=True, gc=False):
    """The messages got the offsets `offset` .. `offset + count - 1`."""

    offset: int
    count: int


class Polled(msgspec.Struct, frozen=True, tag="polled", array_like=True, gc=False):
    """Messages from `offset` on; `end` is the offset that the partition's next message will get."""

    offset: int
    messages: tuple[bytes, ...]
    end: int


class Offset(msgspec.Struct, frozen=True, tag="offset", array_like=True, gc=False):
    """A consumer's stored offset; None if it stored none."""

    offset: int | None


def is_well_formed(operation: PartitionOperation) -> bool:
    """True if every number is in its range."""
    if not 0 <= operation.namespace <= NAMESPACE_MAX:
        return False
    if isinstance(operation, AppendMessages):
        return bool(operation.messages)
    if isinstance(operation, Poll):
        return operation.offset >= 0 and operation.count >= 0
    return operation.consumer >= 0 and (isinstance(operation, ReadOffset) or operation.offset >= 0)


Reader: TypeAlias = tuple[int, bool, int]
"""Whose offset is stored: namespace, whether it is a consumer group, and its number."""


class Partitions:
    """Messages by namespace and stored offsets by reader.

    `digest` is the sum of the hashes of all messages, with their offsets, and of all stored offsets: the caller takes
    it modulo its own modulus.
    """

    __slots__ = ("cache", "digest", "logs", "offsets", "segment_bytes", "source")

    def __init__(self, segment_bytes: int = SEGMENT_BYTES, source: SegmentSource | None = None) -> None:
        """`source`: where segments are read from that are not in memory any more."""
        self.source = source or NoSegments()
        self.cache = SegmentCache(self.source)
        self.logs: dict[int, PartitionLog] = {}
        self.offsets: dict[Reader, int] = {}
        self.digest = 0
        self.segment_bytes = segment_bytes

    def end(self, namespace: int) -> int:
        """Offset that the next message of a partition gets."""
        log = self.logs.get(namespace)
        return 0 if log is None else log.end

    def append(self, namespace: int, messages: tuple[bytes, ...]) -> int:
        """Appends and returns the offset of the first of them."""
        log = self.logs.get(namespace)
        if log is None:
            log = self.logs[namespace] = PartitionLog(namespace, self.segment_bytes, self.cache)
        first = log.end
        for message in messages:
            self.digest += log.append(message)
        return first

    def restore(self, namespace: int, refs: list[SegmentRef]) -> None:
        """Takes a partition that is not here yet. Raises `SegmentError`, `SegmentLostError`."""
        log = PartitionLog.of_refs(namespace, refs, self.source, self.cache, self.segment_bytes)
        self.logs[namespace] = log
        self.digest += log.hashes

    def held(self) -> tuple[Segment, ...]:
        """The segments in memory."""
        return tuple(segment for _, log in sorted(self.logs.items()) for segment in log.segments)

    def release(self, durable: list[tuple[int, list[SegmentRef]]]) -> None:
        """Gives up the memory of segments that a snapshot on the disk names whole."""
        for namespace, refs in durable:
            if namespace in self.logs:
                self.logs[namespace].release(refs)

    def read(self, namespace: int, offset: int, count: int) -> tuple[bytes, ...]:
        """Up to `count` messages from `offset` on, and at most so many bytes. Raises `SegmentLostError`."""
        log = self.logs.get(namespace)
        found: list[bytes] = []
        size = 0
        for message in () if log is None else log.messages(offset, offset + count):
            found.append(message)
            size += len(message)
            if size >= POLL_BYTES_MAX:
                break
        return tuple(found)

    def poll(self, namespace: int, offset: int, count: int) -> Polled:
        """The messages from `offset` on, at most `count` and `POLL_MAX`. Raises `SegmentLostError`."""
        return Polled(offset, self.read(namespace, offset, min(count, POLL_MAX)), self.end(namespace))

    def store_offset(self, reader: Reader, offset: int) -> bool:
        """Stores it and returns true, unless it is above the end of the partition."""
        if offset > self.end(reader[0]):
            return False
        before = self.offsets.get(reader)
        if before is not None:
            self.digest -= _offset_hash(reader, before)
        self.offsets[reader] = offset
        self.digest += _offset_hash(reader, offset)
        return True


def _offset_hash(reader: Reader, offset: int) -> int:
    namespace, group, consumer = reader
    return record_hash(b"group offset" if group else b"offset", namespace, offset, consumer.to_bytes(16, "little"))
