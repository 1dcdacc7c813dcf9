"""The messages of partitions as segments: append-only runs of records, the same bytes on every replica and on disk.

A segment starts with a header, then holds one record per message. Layout, big-endian: magic (8 bytes), format version
(16 bits), two zero bytes, the size at which segments roll (32 bits), namespace (64 bits), offset of the first message
(64 bits), checksum of these (16 bytes); a record is offset (64 bits), length (32 bits), checksum (16 bytes), message.
The checksum of a record is that of its namespace, offset and message, so a record is never taken for another's.

The next offset of a partition is what its messages say: one above the last, by the records themselves.

Only the last segments of a partition are in memory: those that no snapshot on the disk names whole. The others are
known by what they hold (`SegmentRef`), and read from the disk when their messages are asked for (`SegmentSource`).
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Annotated, Protocol

import msgspec
from msgspec import Meta

from viewproof.impl.interface.ranges import BODY_SIZE_MAX, Place

SEGMENT_MAGIC = b"VSRSEGMT"
FORMAT_VERSION = 1
SEGMENT_BYTES = 1 << 20
"""A segment that would grow above this, in bytes, is closed and another begun; the same on every replica."""

_HEAD = struct.Struct(">8sHxxIQQ")
_RECORD = struct.Struct(">QI16s")
CHECKSUM_SIZE = 16
HEAD_BYTES = _HEAD.size + CHECKSUM_SIZE
RECORD_BYTES = _RECORD.size


HASHES_MODULUS = 1 << 128

CACHE_BYTES = 32 << 20
"""Bytes of segments that were read from the disk and are kept for the next poll."""

Key = tuple[int, int]
"""Namespace and first offset: they name a segment, for ever."""

Sixteen = Annotated[bytes, Meta(min_length=CHECKSUM_SIZE, max_length=CHECKSUM_SIZE)]
Namespace = Annotated[int, Meta(ge=0)]


class SegmentError(ValueError):
    """Bytes are no segment, or not the one expected; the text says what and where."""


class SegmentRef(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A segment, or how one begins, by what it holds: offsets base .. end - 1 in `size` bytes.

    `checksum` is that of these bytes, `hashes` the sum of the hashes of its messages, big-endian.
    """

    namespace: Namespace
    base: Place
    end: Place
    size: Place
    checksum: Sixteen
    hashes: Sixteen

    @property
    def key(self) -> Key:
        """Which segment it is."""
        return self.namespace, self.base


class SegmentLostError(Exception):
    """Segments that a snapshot names cannot be read from this disk; the text names file and reason."""

    def __init__(self, refs: Sequence[SegmentRef], reason: str) -> None:
        super().__init__(reason)
        self.refs = tuple(refs)


class SegmentSource(Protocol):
    """Where segments are read from that are not in memory."""

    def read(self, ref: SegmentRef) -> bytes:
        """Its bytes, verified. Raises `SegmentLostError`."""


class NoSegments:
    """Nothing is on the disk."""

    def read(self, ref: SegmentRef) -> bytes:
        """Raises `SegmentLostError`."""
        raise SegmentLostError((ref,), f"there is no disk to read segment {ref.base} of namespace {ref.namespace} from")


class SegmentCache:
    """Segments from `source`, with where their records begin; the last ones read are kept, up to `size` bytes."""

    def __init__(self, source: SegmentSource, size: int = CACHE_BYTES) -> None:
        self._source = source
        self._size = size
        self._kept: OrderedDict[SegmentRef, tuple[bytes, list[int]]] = OrderedDict()
        self.held = 0

    def read(self, ref: SegmentRef) -> bytes:
        """As of the source."""
        return self.segment(ref)[0]

    def segment(self, ref: SegmentRef) -> tuple[bytes, list[int]]:
        """The bytes of a segment, and where its records begin. Raises `SegmentLostError`."""
        found = self._kept.get(ref)
        if found is None:
            content = self._source.read(ref)
            found = self._kept[ref] = content, record_positions(content)
            self.held += _cost(found)
            while self.held > self._size and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self.held -= _cost(oldest)
        self._kept.move_to_end(ref)
        return found


def _cost(kept: tuple[bytes, list[int]]) -> int:
    """Bytes of memory that a segment in the cache takes, about."""
    return len(kept[0]) + 40 * len(kept[1])


def checksum_segment(content: bytes) -> bytes:
    """blake2b-128 of a segment's bytes."""
    return hashlib.blake2b(content, digest_size=CHECKSUM_SIZE, person=b"segmentfile").digest()


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

    @property
    def ref(self) -> SegmentRef:
        """What it holds now."""
        content = bytes(self.content)
        hashes = (self.hashes % HASHES_MODULUS).to_bytes(CHECKSUM_SIZE, "big")
        return SegmentRef(self.namespace, self.base, self.end, len(content), checksum_segment(content), hashes)

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


def read_record(content: bytes, position: int) -> bytes:
    """The message of the record that begins there, in a segment known to be good."""
    length = _RECORD.unpack_from(content, position)[1]
    return content[position + RECORD_BYTES : position + RECORD_BYTES + length]


class PartitionLog:
    """The segments of one partition, by offset; each but the last is closed.

    `sealed` are on the disk alone; the `segments` that follow are in memory, the last one always. `durable` is what
    the snapshot on the disk names of those.
    """

    __slots__ = ("cache", "durable", "namespace", "sealed", "segment_bytes", "segments")

    def __init__(self, namespace: int, segment_bytes: int = SEGMENT_BYTES, cache: SegmentCache | None = None) -> None:
        self.namespace = namespace
        self.segment_bytes = segment_bytes
        self.cache = cache or SegmentCache(NoSegments())
        self.sealed: list[SegmentRef] = []
        self.durable: list[SegmentRef] = []
        self.segments: list[Segment] = []

    @property
    def end(self) -> int:
        """Offset that the next message gets."""
        return self.segments[-1].end if self.segments else 0

    @property
    def refs(self) -> list[SegmentRef]:
        """What each segment holds."""
        return [*self.sealed, *(segment.ref for segment in self.segments)]

    @property
    def hashes(self) -> int:
        """The sum of the hashes of all messages."""
        sealed = sum(int.from_bytes(ref.hashes, "big") for ref in self.sealed)
        return sealed + sum(segment.hashes for segment in self.segments)

    def held(self, base: int) -> Segment | None:
        """The segment in memory whose first offset is `base`."""
        at = bisect_left(self.segments, base, key=lambda segment: segment.base)
        return self.segments[at] if at < len(self.segments) and self.segments[at].base == base else None

    def is_sealed(self, ref: SegmentRef) -> bool:
        """True if this very segment is on the disk alone."""
        at = bisect_left(self.sealed, ref.base, key=lambda each: each.base)
        return at < len(self.sealed) and self.sealed[at] == ref

    def append(self, message: bytes) -> int:
        """Adds a message at the end, in another segment if need be; returns its hash."""
        if not self.segments or not self.segments[-1].takes(len(message)):
            self.segments.append(Segment(self.namespace, self.end, self.segment_bytes))
        return self.segments[-1].append(message)

    def release(self, durable: Sequence[SegmentRef]) -> None:
        """Gives up the memory of segments that are closed and durable as they are, from the first on."""
        for ref in durable:
            first = self.segments[0]
            if len(self.segments) > 1 and (first.base, first.end) == (ref.base, ref.end):
                self.sealed.append(ref)
                del self.segments[0]
        self.durable = [ref for ref in durable if ref.base >= self.segments[0].base]

    def messages(self, start: int, stop: int) -> Iterator[bytes]:
        """The messages of the offsets start .. stop - 1, as far as there are any. Raises `SegmentLostError`."""
        first = bisect_left(self.sealed, start + 1, key=lambda ref: ref.end)
        for ref in self.sealed[first:]:
            if ref.base >= stop:
                return
            content, positions = self.cache.segment(ref)
            for offset in range(max(start, ref.base), min(stop, ref.end)):
                yield read_record(content, positions[offset - ref.base])
        for segment in self.segments:
            for offset in range(max(start, segment.base), min(stop, segment.end)):
                yield segment.message(offset)

    @classmethod
    def of_refs(
        cls, namespace: int, refs: Sequence[SegmentRef], source: SegmentSource, cache: SegmentCache, segment_bytes: int
    ) -> PartitionLog:
        """The log of these segments; the last is read. Raises `SegmentLostError` if it cannot be.

        Raises `SegmentError` unless they are what appending would have made, as far as that can be told.
        """
        log = cls(namespace, segment_bytes, cache)
        end = 0
        for ref in refs:
            if (ref.namespace, ref.base) != (namespace, end) or ref.end <= ref.base:
                raise SegmentError(
                    f"segment of namespace {ref.namespace} with offsets {ref.base}..{ref.end - 1}, expected"
                    f" {namespace} from {end}"
                )
            if not HEAD_BYTES + RECORD_BYTES <= ref.size <= max(segment_bytes, SEGMENT_BYTES_LARGEST):
                raise SegmentError(f"segment of namespace {namespace} from offset {end}: {ref.size} bytes")
            end = ref.end
        if not refs:
            return log
        last = refs[-1]
        segment, reason = scan_segment(source.read(last), namespace, last.base)
        if reason or segment.ref != last:
            raise SegmentError(
                f"segment of namespace {namespace} from offset {last.base}: {reason or 'it holds other messages'}"
            )
        if segment.segment_bytes != segment_bytes:
            raise SegmentError(
                f"segments of namespace {namespace} roll at {segment.segment_bytes} bytes, here at {segment_bytes}:"
                " segment_bytes is the same on every replica, for ever"
            )
        begins_late = refs[-2].size + RECORD_BYTES + len(segment.message(last.base)) if len(refs) > 1 else 0
        if 0 < begins_late <= segment_bytes:
            raise SegmentError(f"segment of namespace {namespace} from offset {last.base} begins too early")
        log.sealed, log.durable, log.segments = list(refs[:-1]), [last], [segment]
        return log


SEGMENT_BYTES_LARGEST = HEAD_BYTES + RECORD_BYTES + BODY_SIZE_MAX
"""A segment of one message may be larger than the size at which segments roll."""
