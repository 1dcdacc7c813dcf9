"""Segment files: the messages of partitions, beside the snapshot that names them (docs/groups.md, "Segments").

A snapshot with partitions is split: ``segment-NAMESPACE-BASE.log`` holds the bytes of a segment
(`impl.machine.partition_log`), only appended to, and the snapshot's file a manifest: all else, with size and checksum
of each segment. Segments are flushed before the manifest is written, and the superblock refers to it after that; what a
segment holds beyond the size in the manifest belongs to entries that are executed again.

``segment-NAMESPACE-BASE.index`` maps offsets to positions. It is flushed only when its segment is closed, so it may
lag; nothing is taken from it: at boot it is compared with the messages, and rebuilt from them.
"""

from __future__ import annotations

import errno
import hashlib
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from viewproof.impl.machine.partition_log import HEAD_BYTES, Segment, SegmentError, record_positions, scan_segment
from viewproof.impl.machine.snapshot import HEAD_SIZE, Contents, SnapshotError, decode_snapshot
from viewproof.impl.machine.state_machine import State, StateError, decode_state, encode_state
from viewproof.impl.storage.file import File, FileSystem, StorageError, write_atomically

__all__ = ["SEGMENT_PREFIX", "Manifest", "SegmentFileError", "SegmentRef", "SegmentStore", "decode_manifest"]

SEGMENT_PREFIX = "segment-"
MANIFEST_MAGIC = b"VSRSNAPM"
CHECKSUM_SIZE = 16
_ENTRY = struct.Struct(">QQ8s")
ENTRY_BYTES = _ENTRY.size

Key = tuple[int, int]


class SegmentFileError(StorageError):
    """A segment that the snapshot in use names is missing, short or damaged; the text names file and remedy."""


class SegmentRef(msgspec.Struct, frozen=True, array_like=True):
    """One segment as a manifest names it: offsets base .. end - 1, in `size` bytes."""

    namespace: int
    base: int
    end: int
    size: int
    checksum: bytes

    @property
    def key(self) -> Key:
        """Namespace and base: they name the file."""
        return self.namespace, self.base


class Manifest(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A snapshot without its segments: `head` as it is, `contents` with a state whose partitions are empty."""

    head: bytes
    contents: Contents
    segments: list[SegmentRef]


_DECODER: msgspec.msgpack.Decoder[Manifest] = msgspec.msgpack.Decoder(Manifest)


def _checksum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=CHECKSUM_SIZE, person=b"segmentfile").digest()


def _encode_manifest(manifest: Manifest) -> bytes:
    body = msgspec.msgpack.encode(manifest)
    return MANIFEST_MAGIC + _checksum(body) + body


def decode_manifest(content: bytes) -> Manifest | None:
    """The manifest in a snapshot's file; None if the file holds a snapshot as it is. Raises SegmentFileError."""
    if content[: len(MANIFEST_MAGIC)] != MANIFEST_MAGIC:
        return None
    start = len(MANIFEST_MAGIC) + CHECKSUM_SIZE
    if _checksum(content[start:]) != content[len(MANIFEST_MAGIC) : start]:
        raise SegmentFileError("the manifest's checksum is wrong: it is damaged")
    try:
        return _DECODER.decode(memoryview(content)[start:])
    except msgspec.DecodeError as error:
        raise SegmentFileError(f"the manifest does not decode: {error}") from error


@dataclass(frozen=True, slots=True)
class FoundSegment:
    """What a segment's file held. `problem`: why it is not what the manifest says, or "". `indexed`: entries of the
    index that are right, from the first; `index_problem`: what else is in it, or "".
    """

    ref: SegmentRef
    segment: Segment
    missing: bool
    problem: str
    indexed: int
    index_problem: str


class SegmentStore:
    """The segment files in one data directory.

    A file that vanished or was cut while the process runs is written again from memory, before anything is added to it;
    `mended` takes each by name.
    """

    def __init__(self, files: FileSystem, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._durable: dict[Key, SegmentRef] = {}
        self._lagging: list[FoundSegment] = []
        self.mended: list[str] = []

    def path(self, key: Key) -> str:
        """The file of a segment."""
        return os.path.join(self._directory, f"{SEGMENT_PREFIX}{key[0]:016x}-{key[1]:020d}.log")

    def index_path(self, key: Key) -> str:
        """The index of a segment."""
        return self.path(key).removesuffix(".log") + ".index"

    def store(self, data: bytes) -> bytes:
        """What the file of this snapshot is to hold; its segments are durable when this returns.

        Raises OSError: what is durable by then stays, and the next attempt writes the rest once more. Raises
        SegmentFileError if what is durable is not of the same log.
        """
        try:
            contents = decode_snapshot(data)
            state = decode_state(contents.state_machine)
        except (SnapshotError, StateError):
            return data
        refs: list[SegmentRef] = []
        for namespace, segments in state.partitions:
            base = 0
            for number, content in enumerate(segments, start=1):
                refs.append(self._write(namespace, base, content, closed=number < len(segments)))
                base = refs[-1].end
        if not refs:
            return data
        rest = State(state.pairs, [], state.offsets)
        kept = msgspec.structs.replace(contents, state_machine=encode_state(rest))
        return _encode_manifest(Manifest(data[:HEAD_SIZE], kept, refs))

    def _write(self, namespace: int, base: int, content: bytes, *, closed: bool) -> SegmentRef:
        """Writes what is not durable of a segment, or no longer there."""
        before = self._durable.get((namespace, base), SegmentRef(namespace, base, base, 0, b""))
        if before.size == len(content) and not self._lacks(before):
            return before
        if before.size and _checksum(content[: before.size]) != before.checksum:
            raise SegmentFileError(
                f"{self.path(before.key)}: its {before.size} durable bytes are not how the segment of the state begins:"
                " they are not of one log"
            )
        if before.size:
            self._keep(before, content)
        positions = record_positions(content, max(before.size, HEAD_BYTES))
        ref = SegmentRef(namespace, base, before.end + len(positions), len(content), _checksum(content))
        file = self.open_to_add(before)
        try:
            file.write_at(before.size, content[before.size :])
            if file.size() > len(content):
                file.truncate(len(content))
            self.sync(file)
        finally:
            file.close()
        self._write_index(ref, before.end, _index_entries(namespace, before.end, positions), synced=closed)
        self._durable[ref.key] = ref
        return ref

    def _lacks(self, ref: SegmentRef) -> bool:
        """True if the segment's file, or its index, is gone or shorter than it was written."""
        index = (ref.end - ref.base) * ENTRY_BYTES
        return self._is_short(self.path(ref.key), ref.size) or self._is_short(self.index_path(ref.key), index)

    def _is_short(self, path: str, size: int) -> bool:
        return (self._files.size_of(path) or 0) < size

    def _keep(self, ref: SegmentRef, content: bytes) -> None:
        """Writes the durable part of a segment again from memory, if its file is gone or was cut; its index as well."""
        path, index_path = self.path(ref.key), self.index_path(ref.key)
        found = self._files.size_of(path)
        if self.is_to_mend(found, ref.size):
            what = "is gone" if found is None else f"was cut to {found} bytes"
            write_atomically(self._files, path, content[: ref.size])
            self.mended.append(f"{path}: it {what} while the process ran: its {ref.size} bytes were written again")
        index_size = (ref.end - ref.base) * ENTRY_BYTES
        if self._is_short(index_path, index_size):
            positions = record_positions(content[: ref.size])
            write_atomically(self._files, index_path, _index_entries(ref.namespace, ref.base, positions))
            self.mended.append(f"{index_path}: it was gone or cut while the process ran: written again")

    def is_to_mend(self, found: int | None, size: int) -> bool:
        """True if a file of which `size` bytes are durable is not there, or has fewer (`found`)."""
        return found is None or found < size

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

    def find(self, manifest: Manifest) -> list[FoundSegment]:
        """What is there of each segment of a manifest. Raises OSError only for what is no missing file."""
        return [self._find(ref) for ref in manifest.segments]

    def _find(self, ref: SegmentRef) -> FoundSegment:
        path = self.path(ref.key)
        data = self._content(path)
        if data is None:
            return self._found(ref, Segment(*ref.key), f"{path} does not exist", missing=True)
        good = data[: ref.size]
        try:
            segment, reason = scan_segment(good, *ref.key)
        except SegmentError as error:
            return self._found(ref, Segment(*ref.key), f"{path}: {error}")
        if not reason and len(good) < ref.size:
            reason = f"{len(good)} bytes, the snapshot says {ref.size}: it was cut off after offset {segment.end - 1}"
        elif not reason and (_checksum(good) != ref.checksum or segment.end != ref.end):
            reason = "its checksum is not the one in the snapshot"
        return self._found(ref, segment, f"{path}: {reason}" if reason else "")

    def _found(self, ref: SegmentRef, segment: Segment, problem: str, *, missing: bool = False) -> FoundSegment:
        path = self.index_path(ref.key)
        entries = _index_entries(segment.namespace, segment.base, segment.positions)
        data = self._content(path)
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

    def _content(self, path: str) -> bytes | None:
        if not self._files.exists(path):
            return None
        file = self._files.open(path)
        try:
            return file.read_at(0, file.size())
        finally:
            file.close()

    def load(self, content: bytes) -> bytes:
        """The snapshot whose file holds `content`, with its segments. Raises SegmentFileError naming each bad file."""
        manifest = decode_manifest(content)
        if manifest is None:
            return content
        found = [self.trusted(item) for item in self.find(manifest)]
        self._durable = {item.ref.key: item.ref for item in _leading(found)}
        problems = [item.problem for item in found if item.problem and self.is_refused(item)]
        if problems:
            raise SegmentFileError("; ".join(problems))
        self._lagging = [item for item in found if item.index_problem and not item.problem]
        lowered: list[str] = []
        data = _joined(manifest, found, lowered)
        self.require_complete(lowered)
        return data

    def trusted(self, item: FoundSegment) -> FoundSegment:
        """What counts of a segment found: the messages, whatever the index says."""
        return item

    def is_refused(self, item: FoundSegment) -> bool:
        """True if a segment with a problem ends the loading: always."""
        return True

    def require_complete(self, lowered: Sequence[str]) -> None:
        """Raises SegmentFileError if stored offsets lie above the end of their partition."""
        if lowered:
            raise SegmentFileError("; ".join(lowered))

    def is_whole(self, found: str, expected: str) -> bool:
        """True if a snapshot read with its segments is that of the superblock, by its checksum."""
        return found == expected

    def held(self) -> dict[Key, bytes]:
        """What is whole of each segment file that is here, from its beginning, whatever a manifest says of it."""
        found: dict[Key, bytes] = {}
        for name in self._files.names(self._directory):
            namespace, _, base = name.removeprefix(SEGMENT_PREFIX).removesuffix(".log").partition("-")
            if not (name.startswith(SEGMENT_PREFIX) and name.endswith(".log") and base.isdigit()):
                continue
            try:
                key = int(namespace, 16), int(base)
                segment, _ = scan_segment(self._content(os.path.join(self._directory, name)) or b"", *key)
            except (ValueError, OSError):
                continue  # not a segment that can be read: its messages come from the others
            if segment.positions:
                found[key] = bytes(segment.content)
        return found

    def rebuild_indexes(self) -> list[str]:
        """Makes the indexes say what the segments just loaded hold; returns what was wrong, or cannot be mended."""
        problems: list[str] = []
        for item in self._lagging:
            segment = item.segment
            entries = _index_entries(segment.namespace, segment.base, segment.positions)
            try:
                self._write_index(item.ref, segment.base, entries, synced=True)
                problems.append(f"{item.index_problem}: rebuilt from the messages")
            except OSError as error:
                problems.append(f"{item.index_problem}; cannot rebuild it: {error.strerror or error}")
        self._lagging = []
        return problems

    def salvage(self, content: bytes) -> tuple[bytes, list[str]]:
        """The snapshot with what is left of its messages, and what is lost. Raises SegmentFileError for a bad manifest.

        A partition ends before its first message that is lost; stored offsets above are lowered to its end.
        """
        manifest = decode_manifest(content)
        if manifest is None:
            return content, []
        found = self.find(manifest)
        losses = [item.problem for item in found if item.problem]
        self._durable = {item.ref.key: item.ref for item in _leading(found)}
        data = _joined(manifest, found, losses)
        return data, losses


def _index_entries(namespace: int, start: int, positions: list[int]) -> bytes:
    return b"".join(
        _ENTRY.pack(offset, position, _checksum(struct.pack(">QQQ", namespace, offset, position))[:8])
        for offset, position in enumerate(positions, start=start)
    )


def _leading(found: list[FoundSegment]) -> list[FoundSegment]:
    """The segments that are whole, of each namespace up to the first that is not."""
    broken = {item.ref.namespace: item.ref.base for item in reversed(found) if item.problem}
    return [item for item in found if item.ref.base < broken.get(item.ref.namespace, item.ref.end)]


def _joined(manifest: Manifest, found: list[FoundSegment], lowered: list[str]) -> bytes:
    """The snapshot with these segments. A partition ends where messages are missing.

    Stored offsets above that are lowered to the end; `lowered` takes each by name.
    """
    partitions: dict[int, list[bytes]] = {}
    ends: dict[int, int] = {}
    for segment in (item.segment for item in found):
        contents = partitions.setdefault(segment.namespace, [])
        if segment.base == ends.get(segment.namespace, 0) and segment.positions:
            contents.append(bytes(segment.content))
            ends[segment.namespace] = segment.end
    state = decode_state(manifest.contents.state_machine)
    offsets = []
    for namespace, group, consumer, offset in state.offsets:
        end = ends.get(namespace, 0)
        if offset > end:
            reader = f"{'group' if group else 'consumer'} {consumer}"
            lowered.append(f"stored offset {offset} of {reader} is above the end {end} of namespace {namespace}")
        offsets.append((namespace, group, consumer, min(offset, end)))
    whole = State(state.pairs, sorted(partitions.items()), offsets)
    contents_whole = msgspec.structs.replace(manifest.contents, state_machine=encode_state(whole))
    return manifest.head + msgspec.msgpack.encode(contents_whole)
