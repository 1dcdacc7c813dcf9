"""Segment files: the messages of partitions, beside the snapshot that names them (docs/groups.md, "Segments").

``segment-NAMESPACE-BASE.log`` holds the bytes of a segment (`impl.machine.partition_log`), only appended to. A snapshot
names its segments, with size and checksum of each. They are flushed before its own file is written, and the superblock
refers to it after that; what a segment holds beyond the size in the snapshot belongs to entries that are executed
again.

``segment-NAMESPACE-BASE.index`` maps offsets to positions. It is flushed only when its segment is closed, so it may
lag; nothing is taken from it: it is compared with the messages when they are read, and rebuilt from them.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from viewproof.impl.machine.partition_log import (
    HEAD_BYTES,
    Key,
    Segment,
    SegmentError,
    SegmentLostError,
    SegmentRef,
    checksum_segment,
    record_positions,
    scan_segment,
)
from viewproof.impl.machine.snapshot import HEAD_SIZE, SnapshotError, decode_snapshot
from viewproof.impl.machine.state_machine import State, StateError, decode_state, encode_state
from viewproof.impl.storage.file import File, FileSystem, StorageError, is_unreadable, write_atomically

__all__ = ["SEGMENT_PREFIX", "FoundSegment", "Loaded", "SegmentFileError", "SegmentStore", "segments_named"]

SEGMENT_PREFIX = "segment-"
CHECKSUM_SIZE = 16
_ENTRY = struct.Struct(">QQ8s")
ENTRY_BYTES = _ENTRY.size


class SegmentFileError(StorageError):
    """Segments cannot be used as they are; the text names file and reason."""


@dataclass(frozen=True, slots=True)
class FoundSegment:
    """What a segment's file held. `segment`: None if nothing needs it. `problem`: why it is not what the snapshot says,
    or "". `indexed`: entries of the index that are right, from the first; `index_problem`: what else is in it, or "".
    """

    ref: SegmentRef
    segment: Segment | None
    missing: bool
    problem: str
    indexed: int
    index_problem: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A snapshot as it was read; of what it names, `lost` cannot be read, for these reasons."""

    data: bytes
    lost: tuple[SegmentRef, ...] = ()
    problems: tuple[str, ...] = ()


def segments_named(data: bytes) -> list[SegmentRef]:
    """The segments that a snapshot names, by namespace and offset. Raises SnapshotError, StateError."""
    return [ref for _, refs in decode_state(decode_snapshot(data).state_machine).partitions for ref in refs]


class SegmentStore:
    """The segment files in one data directory; `impl.machine.partition_log.SegmentSource` of its replica.

    A file that vanished, was cut or altered while the process runs is written again from memory, before anything is
    added to it; `mended` takes each by name. What is not in memory any more is lost, and comes from another replica.

    Thread use: one write at a time; `read` at any time.
    """

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._durable: dict[Key, SegmentRef] = {}
        self._lagging: list[FoundSegment] = []
        self._suspected: set[Key] = set()
        self.mended: list[str] = []

    def path(self, key: Key) -> str:
        """The file of a segment."""
        return os.path.join(self._directory, f"{SEGMENT_PREFIX}{key[0]:016x}-{key[1]:020d}.log")

    def index_path(self, key: Key) -> str:
        """The index of a segment."""
        return self.path(key).removesuffix(".log") + ".index"

    # Reading

    def read(self, ref: SegmentRef) -> bytes:
        """The bytes of a segment, verified. Raises SegmentLostError."""
        path = self.path(ref.key)
        try:
            content = self._content(path, ref.size)
        except OSError as error:
            raise SegmentLostError((ref,), f"{path}: {error.strerror or error}") from error
        if content is None:
            raise SegmentLostError((ref,), f"{path} does not exist")
        if not self.is_right(ref, content):
            raise SegmentLostError((ref,), f"{path}: {self._difference(ref, content)}")
        return content

    def verify(self, ref: SegmentRef) -> None:
        """Reads a segment from the medium. Raises SegmentLostError; what is in memory of it is written again then, by
        the next `store`.
        """
        try:
            self._forget_cached(self.path(ref.key))
            self.read(ref)
            self._forget_cached(self.path(ref.key))
        except SegmentLostError:
            self._suspected.add(ref.key)
            raise

    def _forget_cached(self, path: str) -> None:
        with contextlib.suppress(OSError):
            file = self._files.open(path)
            try:
                file.forget_cached()
            finally:
                file.close()

    def is_right(self, ref: SegmentRef, content: bytes) -> bool:
        """True if these are the bytes of the segment."""
        return len(content) == ref.size and checksum_segment(content) == ref.checksum

    def _difference(self, ref: SegmentRef, content: bytes) -> str:
        if len(content) < ref.size:
            return f"{len(content)} bytes, the snapshot says {ref.size}"
        return "its checksum is not the one in the snapshot"

    def _content(self, path: str, size: int | None = None) -> bytes | None:
        if not self._files.exists(path):
            return None
        file = self._files.open(path)
        try:
            return file.read_at(0, file.size() if size is None else size)
        finally:
            file.close()

    # Writing

    def store(self, data: bytes, held: Sequence[Segment] = ()) -> None:
        """The segments that a snapshot names are durable when this returns. `held`: those in memory.

        Raises OSError: what is durable by then stays, and the next attempt writes the rest once more; SegmentLostError
        if some are neither here nor in memory; SegmentFileError if what is durable is not of the same log.
        """
        try:
            refs = segments_named(data)
        except (SnapshotError, StateError):
            return
        memory = {(segment.namespace, segment.base): segment for segment in held}
        last = {ref.namespace: ref.base for ref in refs}
        lost: list[SegmentRef] = []
        for ref in refs:
            segment = memory.get(ref.key)
            if segment is not None:
                self._write(ref, segment, closed=ref.base != last[ref.namespace])
            elif not self._is_kept(ref):
                lost.append(ref)
        if lost:
            paths = ", ".join(self.path(ref.key) for ref in lost[:3])
            raise SegmentLostError(lost, f"{len(lost)} segments are gone or cut, {paths} first")

    def write(self, ref: SegmentRef, content: bytes) -> None:
        """A segment that came from another replica, in place of what is here of it; durable when this returns.

        Raises OSError.
        """
        entries = _index_entries(ref.namespace, ref.base, record_positions(content))
        write_atomically(self._files, self.path(ref.key), content)
        self._write_index(ref, ref.base, entries, synced=False)
        self._durable[ref.key] = ref
        self._suspected.discard(ref.key)

    def _write(self, ref: SegmentRef, segment: Segment, *, closed: bool) -> None:
        """Writes what is not durable of a segment, or no longer there."""
        nothing = SegmentRef(ref.namespace, ref.base, ref.base, 0, b"", b"")
        before = self._durable.get(ref.key, nothing)
        lacks = self._lacks(before) or ref.key in self._suspected
        if before.size == ref.size and before.checksum == ref.checksum and not lacks:
            return
        content = bytes(segment.content[: ref.size])
        differs = before.size <= ref.size and checksum_segment(content[: before.size]) != before.checksum
        if before.size > ref.size:  # as it came from a replica that had executed more
            if not lacks and content == self._content(self.path(ref.key), ref.size):
                return
            differs, before = not lacks, before if not lacks else nothing
        if before.size and differs:
            raise SegmentFileError(
                f"{self.path(before.key)}: its {before.size} durable bytes are not how the segment of the state begins:"
                " they are not of one log"
            )
        if before.size:
            self._keep(before, content)
        positions = record_positions(content, max(before.size, HEAD_BYTES))
        file = self.open_to_add(before)
        try:
            file.write_at(before.size, content[before.size :])
            if file.size() > len(content):
                file.truncate(len(content))
            self.sync(file)
        finally:
            file.close()
        self._write_index(ref, before.end, _index_entries(ref.namespace, before.end, positions), synced=closed)
        self._durable[ref.key] = ref
        self._suspected.discard(ref.key)

    def _lacks(self, ref: SegmentRef) -> bool:
        """True if the segment's file, or its index, is gone or shorter than it was written."""
        return self._is_short(self.path(ref.key), ref.size) or self._lacks_index(ref)

    def _lacks_index(self, ref: SegmentRef) -> bool:
        return self._is_short(self.index_path(ref.key), (ref.end - ref.base) * ENTRY_BYTES)

    def _is_short(self, path: str, size: int) -> bool:
        return (self._files.size_of(path) or 0) < size

    def _is_kept(self, ref: SegmentRef) -> bool:
        """True if a segment that is not in memory is on the disk; its index is made again if it is not."""
        if self._is_short(self.path(ref.key), ref.size):
            return False
        if self._lacks_index(ref):
            try:
                self._keep_index(ref, self.read(ref))
            except SegmentLostError:
                return False
        return True

    def _keep(self, ref: SegmentRef, content: bytes) -> None:
        """Writes the durable part of a segment again from memory, if its file is not that; its index as well."""
        path, durable = self.path(ref.key), content[: ref.size]
        what = self.to_mend(path, durable)
        if what:
            write_atomically(self._files, path, durable)
            self.mended.append(f"{path}: it {what} while the process ran: its {ref.size} bytes were written again")
        if self._lacks_index(ref):
            self._keep_index(ref, content[: ref.size])

    def _keep_index(self, ref: SegmentRef, content: bytes) -> None:
        path = self.index_path(ref.key)
        write_atomically(self._files, path, _index_entries(ref.namespace, ref.base, record_positions(content)))
        self.mended.append(f"{path}: it was gone or cut while the process ran: written again")

    def to_mend(self, path: str, durable: bytes) -> str:
        """What became of a file that begins with these bytes, or "" if it does."""
        try:
            found = self._content(path, len(durable))
        except OSError as error:
            return f"could not be read ({error.strerror or error})"
        if found is None:
            return "is gone"
        if len(found) < len(durable):
            return f"was cut to {len(found)} bytes"
        return "" if found == durable else "was altered"

    def open_to_add(self, durable: SegmentRef) -> File:
        """The segment's file, made anew only if nothing is durable in it. Raises OSError if it has less than that."""
        path = self.path(durable.key)
        if durable.size == 0:
            return self._open(path)
        file = self._files.open(path)
        found = file.size()
        if found < durable.size:
            file.close()
            raise OSError(errno.EIO, f"cut to {found} bytes, {durable.size} were durable", path)
        return file

    def lacking(self) -> bool:
        """True if a file that was written is gone, or shorter than it was."""
        return any(self._lacks(ref) for ref in self._durable.values())

    def _write_index(self, ref: SegmentRef, start: int, entries: bytes, *, synced: bool) -> None:
        """Entries for the messages from offset `start` to the end of the segment."""
        file = self._open(self.index_path(ref.key))
        try:
            file.write_at((start - ref.base) * ENTRY_BYTES, entries)
            size = (ref.end - ref.base) * ENTRY_BYTES
            if file.size() > size:
                file.truncate(size)
            if synced:
                self.sync(file)
        finally:
            file.close()

    def _open(self, path: str) -> File:
        return self._files.open(path) if self._files.exists(path) else self._files.create(path)

    def sync(self, file: File) -> None:
        """Flushes a file. Raises OSError that names it."""
        try:
            file.sync()
        except OSError as error:
            error.filename = file.path
            raise

    # Opening

    def find(self, refs: Sequence[SegmentRef], *, thorough: bool) -> Iterator[FoundSegment]:
        """What is there of each segment: of the last one of a namespace all of it is read, and `thorough` of each.

        Else its file is there, and long enough. Raises OSError but for a missing file, or the medium's fault.
        """
        last = {ref.namespace: ref.base for ref in refs}
        for ref in refs:
            is_last = ref.base == last[ref.namespace]
            if not (thorough or is_last or self._lacks(ref)):
                yield FoundSegment(ref, None, False, "", ref.end - ref.base, "")
                continue
            item = self._find(ref)
            yield item if is_last or item.problem or item.index_problem else replace(item, segment=None)

    def _find(self, ref: SegmentRef) -> FoundSegment:
        path = self.path(ref.key)
        try:
            content = self._content(path, ref.size)
        except OSError as error:
            if not is_unreadable(error):
                raise
            return self._found(ref, Segment(*ref.key), f"{path}: {error.strerror or error}")
        if content is None:
            return self._found(ref, Segment(*ref.key), f"{path} does not exist", missing=True)
        try:
            segment, reason = scan_segment(content, *ref.key)
        except SegmentError as error:
            return self._found(ref, Segment(*ref.key), f"{path}: {error}")
        if not reason and len(content) < ref.size:
            reason = (
                f"{len(content)} bytes, the snapshot says {ref.size}: it was cut off after offset {segment.end - 1}"
            )
        elif not reason and segment.ref != ref:
            reason = "its checksum is not the one in the snapshot"
        return self._found(ref, segment, f"{path}: {reason}" if reason else "")

    def _found(self, ref: SegmentRef, segment: Segment, problem: str, *, missing: bool = False) -> FoundSegment:
        path = self.index_path(ref.key)
        entries = _index_entries(segment.namespace, segment.base, segment.positions)
        try:
            data = self._content(path)
        except OSError as error:
            if not is_unreadable(error):
                raise
            return FoundSegment(ref, segment, missing, problem, 0, f"{path}: {error.strerror or error}")
        if data is None:
            return FoundSegment(ref, segment, missing, problem, 0, f"{path} does not exist")
        indexed = 0
        while entries[indexed : indexed + ENTRY_BYTES] and data.startswith(
            entries[indexed : indexed + ENTRY_BYTES], indexed
        ):
            indexed += ENTRY_BYTES
        right = indexed // ENTRY_BYTES
        reason = ""
        if right < len(segment.positions):
            lags = len(data) == indexed
            reason = f"{path}: " + (
                f"it lags {len(segment.positions) - right} messages behind" if lags else f"entry {right} is wrong"
            )
        return FoundSegment(ref, segment, missing, problem, right, reason)

    def load(self, data: bytes, *, thorough: bool = False) -> Loaded:
        """A snapshot whose checksum was verified, and which of its segments are not here.

        Raises SnapshotError, StateError if it is none; SegmentFileError if messages are missing that must not be.
        """
        found = [self.trusted(item) for item in self.find(segments_named(data), thorough=thorough)]
        self._durable = {item.ref.key: item.ref for item in found if not item.problem}
        refused = [item for item in found if item.problem and self.is_refused(item)]
        self._lagging = [item for item in found if item.index_problem and not item.problem]
        if refused:
            return Loaded(data, tuple(item.ref for item in refused), tuple(item.problem for item in refused))
        if all(not item.problem for item in found):
            return Loaded(data)
        lowered: list[str] = []
        data = _cut(data, found, lowered)
        self.require_complete(lowered)
        return Loaded(data)

    def trusted(self, item: FoundSegment) -> FoundSegment:
        """What counts of a segment found: the messages, whatever the index says."""
        return item

    def is_refused(self, item: FoundSegment) -> bool:
        """True if a segment with a problem counts as lost: always."""
        return True

    def require_complete(self, lowered: Sequence[str]) -> None:
        """Raises SegmentFileError if stored offsets lie above the end of their partition."""
        if lowered:
            raise SegmentFileError("; ".join(lowered))

    def is_whole(self, found: str, expected: str) -> bool:
        """True if a snapshot as it was loaded is that of the superblock, by its checksum."""
        return found == expected

    def rebuild_indexes(self) -> list[str]:
        """Makes the indexes say what the segments just read hold; returns what was wrong, or cannot be mended."""
        problems: list[str] = []
        for item in self._lagging:
            segment = item.segment
            if segment is None:
                continue
            entries = _index_entries(segment.namespace, segment.base, segment.positions)
            try:
                self._write_index(item.ref, segment.base, entries, synced=True)
                problems.append(f"{item.index_problem}: rebuilt from the messages")
            except OSError as error:
                problems.append(f"{item.index_problem}; cannot rebuild it: {error.strerror or error}")
        self._lagging = []
        return problems

    def salvage(self, data: bytes) -> tuple[bytes, list[str]]:
        """The snapshot with what is left of its messages, and what is lost. Raises SnapshotError, StateError.

        A partition ends before its first message that is lost; stored offsets above are lowered to its end.
        """
        found = list(self.find(segments_named(data), thorough=True))
        losses = [item.problem for item in found if item.problem]
        left = _cut(data, found, losses)
        self._durable = {ref.key: ref for ref in segments_named(left)}
        return left, losses


def _index_entries(namespace: int, start: int, positions: list[int]) -> bytes:
    return b"".join(
        _ENTRY.pack(offset, position, _entry_checksum(struct.pack(">QQQ", namespace, offset, position)))
        for offset, position in enumerate(positions, start=start)
    )


def _entry_checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=CHECKSUM_SIZE, person=b"segmentfile").digest()[:8]


def _cut(data: bytes, found: Sequence[FoundSegment], lowered: list[str]) -> bytes:
    """The snapshot with these segments. A partition ends where messages are missing.

    Stored offsets above that are lowered to the end; `lowered` takes each by name.
    """
    contents = decode_snapshot(data)
    state = decode_state(contents.state_machine)
    partitions: dict[int, list[SegmentRef]] = {namespace: [] for namespace, _ in state.partitions}
    ends: dict[int, int] = {}
    for item in found:
        namespace, base = item.ref.key
        if base != ends.get(namespace, 0):
            continue
        ref = item.ref if not item.problem or item.segment is None else item.segment.ref
        if ref.end > ref.base:
            partitions[namespace].append(ref)
            ends[namespace] = ref.end
    offsets = []
    for namespace, group, consumer, offset in state.offsets:
        end = ends.get(namespace, 0)
        if offset > end:
            reader = f"{'group' if group else 'consumer'} {consumer}"
            lowered.append(f"stored offset {offset} of {reader} is above the end {end} of namespace {namespace}")
        offsets.append((namespace, group, consumer, min(offset, end)))
    left = State(state.pairs, sorted(partitions.items()), offsets)
    return data[:HEAD_SIZE] + msgspec.msgpack.encode(
        msgspec.structs.replace(contents, state_machine=encode_state(left))
    )
