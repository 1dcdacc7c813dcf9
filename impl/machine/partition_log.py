"""The messages of partitions as segments: append-only runs of records, the same bytes on every replica and on disk.

A segment starts with a header, then holds one record per message. Layout, big-endian: magic (8 bytes), format version
(16 bits), two zero bytes, the size at which segments roll (32 bits), namespace (64 bits), offset of the first message
(64 bits), checksum of these (16 bytes); a record is offset (64 bits), length (32 bits), checksum (16 bytes), message.
The checksum of a record is that of its namespace, offset and message, so a record is never taken for another's.

The next offset of a partition is what its messages say: one above the last, by the records themselves.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence

SEGMENT_MAGIC = b"VSRSEGMT"
FORMAT_VERSION = 1
SEGMENT_BYTES = 1 << 20
"""A segment that would grow above this, in bytes, is closed and another begun; the same on every replica."""

_HEAD = struct.Struct(">8sHxxIQQ")
_RECORD = struct.Struct(">QI16s")
CHECKSUM_SIZE = 16
HEAD_BYTES = _HEAD.size + CHECKSUM_SIZE
RECORD_BYTES = _RECORD.size


class SegmentError(ValueError):
    """Bytes are no segment, or not the one expected; the text says what and where."""


def record_hash(person: bytes, namespace: int, number: int, data: bytes) -> int:
    """blake2b-128 over namespace, number and data, as an integer."""
    packed = namespace.to_bytes(8, "little") + number.to_bytes(16, "little") + data
    return int.from_bytes(hashlib.blake2b(packed, digest_size=CHECKSUM_SIZE, person=person).digest(), "little")


def message_hash(namespace: int, offset: int, message: bytes) -> int:
    """What a message adds to the digest of the state; its record carries it as checksum."""
    return record_hash(b"message", namespace, offset, message)


class Segment:
    """One segment in memory: `content` as in its file, `positions` of its records, `hashes` their sum."""

    __slots__ = ("base", "content", "hashes", "namespace", "positions", "segment_bytes")

    def __init__(self, namespace: int, base: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.namespace = namespace
        self.base = base
        self.segment_bytes = segment_bytes
        self.content = bytearray(_encode_head(namespace, base, segment_bytes))
        self.positions: list[int] = []
        self.hashes = 0

    @property
    def end(self) -> int:
        """Offset that follows the last message."""
        return self.base + len(self.positions)

    def takes(self, length: int) -> bool:
        """True if a message of so many bytes belongs here, not into the next segment."""
        return not self.positions or len(self.content) + RECORD_BYTES + length <= self.segment_bytes

    def append(self, message: bytes) -> int:
        """Adds a message; returns its hash."""
        offset = self.end
        number = message_hash(self.namespace, offset, message)
        self.positions.append(len(self.content))
        self.content += _RECORD.pack(offset, len(message), number.to_bytes(CHECKSUM_SIZE, "little")) + message
        self.hashes += number
        return number

    def message(self, offset: int) -> bytes:
        """The message at an offset in base .. end - 1."""
        position = self.positions[offset - self.base]
        _, length, _ = _RECORD.unpack_from(self.content, position)
        return bytes(self.content[position + RECORD_BYTES : position + RECORD_BYTES + length])

    def cut(self, end: int) -> None:
        """Drops the messages from offset `end` on."""
        kept = max(0, end - self.base)
        for offset in range(self.base + kept, self.end):
            self.hashes -= message_hash(self.namespace, offset, self.message(offset))
        if kept < len(self.positions):
            del self.content[self.positions[kept] :]
            del self.positions[kept:]


def _encode_head(namespace: int, base: int, segment_bytes: int) -> bytes:
    head = _HEAD.pack(SEGMENT_MAGIC, FORMAT_VERSION, segment_bytes, namespace, base)
    return head + hashlib.blake2b(head, digest_size=CHECKSUM_SIZE, person=b"segment").digest()


def scan_segment(data: bytes, namespace: int, base: int) -> tuple[Segment, str]:
    """The segment in `data`: its messages up to the first that is not whole, and why they end there, or "".

    Raises `SegmentError` if the header is damaged or another segment's.
    """
    if len(data) < HEAD_BYTES:
        raise SegmentError(f"{len(data)} bytes are too few for the header of a segment ({HEAD_BYTES})")
    magic, version, segment_bytes, its_namespace, its_base = _HEAD.unpack_from(data)
    if magic != SEGMENT_MAGIC:
        raise SegmentError(f"not a segment (magic {magic!r})")
    if version != FORMAT_VERSION:
        raise SegmentError(f"segment of format version {version}; this program reads {FORMAT_VERSION}")
    if data[:HEAD_BYTES] != _encode_head(its_namespace, its_base, segment_bytes):
        raise SegmentError("the header's checksum is wrong")
    if (its_namespace, its_base) != (namespace, base):
        raise SegmentError(
            f"segment of namespace {its_namespace} from offset {its_base}, expected {namespace} from {base}"
        )
    segment = Segment(namespace, base, segment_bytes)
    at = HEAD_BYTES
    while at < len(data):
        reason = _scan_record(segment, data, at)
        if reason:
            return segment, f"byte {at}: {reason}"
        at = len(segment.content)
    return segment, ""


def segment_bytes_of(content: bytes) -> int:
    """The size at which segments roll, as a segment's header says."""
    return int(_HEAD.unpack_from(content)[2])


def segment_base_of(content: bytes) -> int:
    """The offset of its first message, as a segment's header says. Raises `SegmentError` if there is none."""
    if len(content) < HEAD_BYTES:
        raise SegmentError(f"{len(content)} bytes are too few for the header of a segment ({HEAD_BYTES})")
    return int(_HEAD.unpack_from(content)[4])


def record_positions(content: bytes, start: int = HEAD_BYTES) -> list[int]:
    """Where the records begin in a segment known to be good, from the one at `start` on."""
    positions: list[int] = []
    while start < len(content):
        positions.append(start)
        start += RECORD_BYTES + _RECORD.unpack_from(content, start)[1]
    return positions


def _scan_record(segment: Segment, data: bytes, at: int) -> str:
    """Takes the record at `at` into the segment, or says why it is none."""
    if len(data) - at < RECORD_BYTES:
        return f"{len(data) - at} bytes are too few for a record"
    offset, length, checksum = _RECORD.unpack_from(data, at)
    if offset != segment.end:
        return f"record of offset {offset}, expected {segment.end}"
    message = bytes(data[at + RECORD_BYTES : at + RECORD_BYTES + length])
    if len(message) < length:
        return f"message of offset {offset} has {len(message)} of {length} bytes"
    if message_hash(segment.namespace, offset, message).to_bytes(CHECKSUM_SIZE, "little") != checksum:
        return f"message of offset {offset}: its checksum is wrong"
    segment.append(message)
    return ""


class PartitionLog:
    """The segments of one partition, by offset; each but the last is closed."""

    __slots__ = ("namespace", "segment_bytes", "segments")

    def __init__(self, namespace: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.namespace = namespace
        self.segment_bytes = segment_bytes
        self.segments: list[Segment] = []

    @property
    def end(self) -> int:
        """Offset that the next message gets."""
        return self.segments[-1].end if self.segments else 0

    def segment(self, base: int) -> Segment | None:
        """The segment whose first offset is `base`."""
        at = bisect_left(self.segments, base, key=lambda segment: segment.base)
        return self.segments[at] if at < len(self.segments) and self.segments[at].base == base else None

    def append(self, message: bytes) -> int:
        """Adds a message at the end, in another segment if need be; returns its hash."""
        if not self.segments or not self.segments[-1].takes(len(message)):
            self.segments.append(Segment(self.namespace, self.end, self.segment_bytes))
        return self.segments[-1].append(message)

    def read(self, offset: int, count: int) -> tuple[bytes, ...]:
        """Up to `count` messages from `offset` on."""
        return tuple(self._messages(offset, min(self.end, offset + count)))

    def _messages(self, start: int, stop: int) -> Iterator[bytes]:
        for segment in self.segments:
            if segment.end > start:
                for offset in range(max(start, segment.base), min(stop, segment.end)):
                    yield segment.message(offset)
            if segment.end >= stop:
                return

    @classmethod
    def of_segments(cls, namespace: int, contents: Sequence[bytes], segment_bytes: int = SEGMENT_BYTES) -> PartitionLog:
        """The log in these segments, verified. Raises `SegmentError` unless they are what appending would have made."""
        log = cls(namespace, segment_bytes)
        for content in contents:
            segment, reason = scan_segment(content, namespace, log.end)
            if reason:
                raise SegmentError(f"segment of namespace {namespace} from offset {log.end}: {reason}")
            if segment.segment_bytes != segment_bytes:
                raise SegmentError(
                    f"segments of namespace {namespace} roll at {segment.segment_bytes} bytes, here at {segment_bytes}:"
                    " segment_bytes is the same on every replica, for ever"
                )
            if not segment.positions:
                raise SegmentError(f"segment of namespace {namespace} from offset {log.end}: it holds no message")
            if log.segments and log.segments[-1].takes(len(segment.message(segment.base))):
                raise SegmentError(f"segment of namespace {namespace} from offset {log.end} begins too early")
            log.segments.append(segment)
        return log
