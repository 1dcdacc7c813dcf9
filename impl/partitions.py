"""Partitions: append-only logs of messages, one per namespace, with the offsets of their consumers (protocol.md, I15).

A partition gives its messages the offsets 0, 1, 2 … in the order of execution, so they are unique and rising; an
operation that is executed twice shows: its messages are there twice, and the offsets after it are higher.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import msgspec

from impl.namespaces import NAMESPACE_MAX

POLL_MAX = 1024
"""Most messages that one poll returns."""


class AppendMessages(msgspec.Struct, frozen=True, tag="append_messages", array_like=True, gc=False):
    """Appends `messages`, at least one, to the partition of `namespace`."""

    namespace: int
    messages: tuple[bytes, ...]


class Poll(msgspec.Struct, frozen=True, tag="poll", array_like=True, gc=False):
    """Reads up to `count` messages of a partition from `offset` on."""

    namespace: int
    offset: int
    count: int


class StoreOffset(msgspec.Struct, frozen=True, tag="store_offset", array_like=True, gc=False):
    """A consumer has read everything below `offset`; refused (`Outcome(False)`) above the end of the partition."""

    namespace: int
    consumer: int
    offset: int


class ReadOffset(msgspec.Struct, frozen=True, tag="read_offset", array_like=True, gc=False):
    """Asks for the stored offset of a consumer."""

    namespace: int
    consumer: int


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


def _hash(person: bytes, namespace: int, number: int, data: bytes) -> int:
    packed = namespace.to_bytes(8, "little") + number.to_bytes(16, "little") + data
    return int.from_bytes(hashlib.blake2b(packed, digest_size=16, person=person).digest(), "little")


class Partitions:
    """Messages by namespace and stored offsets by (namespace, consumer).

    `digest` is the sum of the hashes of all messages, with their offsets, and of all stored offsets: the caller takes
    it modulo its own modulus.
    """

    __slots__ = ("digest", "messages", "offsets")

    def __init__(self) -> None:
        self.messages: dict[int, list[bytes]] = {}
        self.offsets: dict[tuple[int, int], int] = {}
        self.digest = 0

    def append(self, namespace: int, messages: tuple[bytes, ...]) -> int:
        """Appends and returns the offset of the first of them."""
        partition = self.messages.setdefault(namespace, [])
        first = len(partition)
        for offset, message in enumerate(messages, start=first):
            self.digest += _hash(b"message", namespace, offset, message)
        partition += messages
        return first

    def poll(self, namespace: int, offset: int, count: int) -> Polled:
        """The messages from `offset` on, at most `count` and `POLL_MAX`."""
        partition = self.messages.get(namespace, [])
        return Polled(offset, tuple(partition[offset : offset + min(count, POLL_MAX)]), len(partition))

    def store_offset(self, namespace: int, consumer: int, offset: int) -> bool:
        """Stores it and returns true, unless it is above the end of the partition."""
        if offset > len(self.messages.get(namespace, [])):
            return False
        before = self.offsets.get((namespace, consumer))
        if before is not None:
            self.digest -= self._offset_hash(namespace, consumer, before)
        self.offsets[namespace, consumer] = offset
        self.digest += self._offset_hash(namespace, consumer, offset)
        return True

    def _offset_hash(self, namespace: int, consumer: int, offset: int) -> int:
        return _hash(b"offset", namespace, offset, consumer.to_bytes(16, "little"))
