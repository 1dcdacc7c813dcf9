"""Snapshot files of one replica: ``snapshot-OP`` in its data directory, each written once and atomically.

A snapshot is written to a temporary name, synced, renamed, and the directory synced, so a file of that name is whole.
The superblock says which one counts, by op and checksum; the others are in no one's way and removed by ``prune``.
The messages of partitions lie in segment files beside it (`impl.storage.segments`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from viewproof.impl.machine.partition_log import Segment, SegmentLostError, SegmentRef
from viewproof.impl.machine.snapshot import (
    Snapshot,
    SnapshotError,
    SnapshotFormatError,
    checksum_snapshot,
    decode_snapshot,
    is_manifest_of_version_1,
)
from viewproof.impl.machine.state_machine import StateError
from viewproof.impl.storage.file import (
    TEMPORARY_SUFFIX,
    FileSystem,
    StorageError,
    WriteRefusedError,
    write_atomically,
)
from viewproof.impl.storage.segments import SEGMENT_PREFIX, SegmentFileError, SegmentStore

__all__ = ["SNAPSHOT_PREFIX", "SegmentsGoneError", "SnapshotFileError", "Snapshots"]

SNAPSHOT_PREFIX = "snapshot-"
BESIDE_SUFFIX = ".salvaged"
"""Of what is left of a snapshot, until the superblock names it."""


_REMEDY = "Another replica's snapshot of the same op can take its place (it is the same there, byte for byte)"


class SnapshotFileError(StorageError):
    """The snapshot that the superblock refers to cannot be read; the text names file and remedy."""


class SegmentsGoneError(WriteRefusedError):
    """A snapshot cannot be written, or the journal not be drained: `refs`, which it names, are gone from the disk."""

    def __init__(self, message: str, refs: Sequence[SegmentRef]) -> None:
        super().__init__(message)
        self.refs = tuple(refs)


class Snapshots:
    """The snapshots in one data directory, their messages in `segments`."""

    def __init__(self, files: FileSystem, directory: str, segments: type[SegmentStore] = SegmentStore) -> None:
        self._files = files
        self._directory = directory
        self.segments = segments(files, directory)
        self._newest: tuple[int, bytes, Sequence[Segment]] = (0, b"", ())
        """Op and bytes of the last snapshot that was written or read, and the segments that were in memory then."""

    def path(self, op: int) -> str:
        """The file of the snapshot at ``op``."""
        return os.path.join(self._directory, f"{SNAPSHOT_PREFIX}{op}")

    def write(self, op: int, data: bytes, held: Sequence[Segment] = ()) -> None:
        """Durable when it returns. `held`: segments in memory. Raises WriteRefusedError; the snapshots before are then
        as they were.
        """
        self._write(self.path(op), op, data, held)
        self._newest = op, data, held

    def write_beside(self, op: int, data: bytes) -> None:
        """Another snapshot at ``op``, beside the one in use; durable when it returns. Raises WriteRefusedError."""
        self._write(self.path(op) + BESIDE_SUFFIX, op, data, ())

    def take_beside(self, op: int, checksum: str) -> None:
        """What was written beside the snapshot at ``op`` takes its place if it is the one with this checksum."""
        path = self.path(op)
        if not self._files.exists(path + BESIDE_SUFFIX):
            return
        try:
            content = self._content(path + BESIDE_SUFFIX)
        except SnapshotFileError:
            return  # it is no reason to refuse the one in use
        try:
            if checksum_snapshot(content) == checksum:
                self._files.rename(path + BESIDE_SUFFIX, path)
                self._files.sync_directory(self._directory)
        except OSError as error:
            raise SnapshotFileError(f"{_named(error) or path}: {error.strerror or error}") from error

    def _write(self, path: str, op: int, data: bytes, held: Sequence[Segment]) -> None:
        try:
            self.segments.store(data, held)
            write_atomically(self._files, path, data)
        except SegmentLostError as error:
            raise SegmentsGoneError(f"{path}: cannot write the snapshot of op {op}: {error}", error.refs) from error
        except OSError as error:
            self._remove_temporary(path)
            raise WriteRefusedError(
                f"{_named(error) or path}: cannot write the snapshot of op {op}: {error.strerror or error}"
            ) from error

    def write_segment(self, ref: SegmentRef, content: bytes) -> None:
        """A segment that came from another replica; durable when it returns. Raises WriteRefusedError."""
        path = self.segments.path(ref.key)
        try:
            self.segments.write(ref, content)
        except OSError as error:
            self._remove_temporary(path)
            raise WriteRefusedError(
                f"{_named(error) or path}: cannot write the segment: {error.strerror or error}"
            ) from error

    def keep(self, op: int) -> None:
        """Writes the snapshot at ``op`` again if a file of it is gone or was cut since. Raises WriteRefusedError.

        It is the last one that was written or read; without messages that can be read there is none to look after.
        """
        newest, data, held = self._newest
        if newest != op:
            return
        path = self.path(op)
        found = self._files.size_of(path)
        gone = found is None or found < len(data)
        if gone or self.segments.lacking():
            self.write(op, data, held)
        if gone:
            what = "is gone" if found is None else f"was cut to {found} of {len(data)} bytes"
            self.segments.mended.append(f"{path}: it {what} while the process ran: it was written again")
        self._newest = op, data, ()

    def mended(self) -> list[str]:
        """What was written again since this was last asked, because it vanished or was cut while the process ran."""
        found, self.segments.mended = self.segments.mended, []
        return found

    def read(self, op: int, checksum: str, *, thorough: bool = False) -> tuple[Snapshot, tuple[SegmentRef, ...], str]:
        """The verified snapshot at ``op``, which of its segments cannot be read, and why. Raises SnapshotFileError.

        All its segments are read if `thorough`, else the last of each partition. Raises StorageError for another
        format.
        """
        path = self.path(op)
        content = self._content(path)
        try:
            if is_manifest_of_version_1(content):
                raise SnapshotFormatError(1)
            self._require(path, content, checksum)
            decode_snapshot(content)
        except SnapshotFormatError as error:
            raise StorageError(f"{path}: {error}") from error
        except SnapshotError as error:
            raise SnapshotFileError(f"{path}: {error}. {_REMEDY}") from error
        try:
            loaded = self.segments.load(content, thorough=thorough)
        except (SegmentFileError, SnapshotError, StateError, OSError) as error:
            raise SnapshotFileError(f"{path}: {error}. {_REMEDY}") from error
        found = checksum if loaded.data is content else checksum_snapshot(loaded.data)
        if not self.segments.is_whole(found, checksum):
            raise SnapshotFileError(f"{path}: its messages are not those of the snapshot. {_REMEDY}")
        self._newest = op, loaded.data, ()
        return Snapshot(op, found, loaded.data), loaded.lost, "; ".join(loaded.problems)

    def _require(self, path: str, content: bytes, checksum: str) -> None:
        found = checksum_snapshot(content)
        if found != checksum:
            raise SnapshotFileError(
                f"{path}: the snapshot ({len(content)} bytes) has the checksum {found}, the superblock says {checksum}:"
                f" it is damaged. {_REMEDY}"
            )

    def _content(self, path: str) -> bytes:
        try:
            file = self._files.open(path)
            try:
                return file.read_at(0, file.size())
            finally:
                file.close()
        except OSError as error:
            raise SnapshotFileError(
                f"{path}: cannot read the snapshot that the superblock refers to: {error.strerror or error}. {_REMEDY}"
            ) from error

    def rebuild_indexes(self) -> list[str]:
        """Makes the indexes of the segments that were read last right; returns what was wrong with them."""
        return self.segments.rebuild_indexes()

    def salvage(self, op: int, checksum: str) -> tuple[bytes, list[str]]:
        """What is left of the snapshot at ``op``, whose segments are damaged, and what is lost.

        Raises SnapshotFileError.
        """
        path = self.path(op)
        content = self._content(path)
        self._require(path, content, checksum)
        try:
            return self.segments.salvage(content)
        except (SnapshotError, StateError, OSError) as error:
            raise SnapshotFileError(f"{path}: nothing can be saved: {error}") from error

    def ops(self) -> list[int]:
        """Ops of the snapshots that are there, rising."""
        names = (name.removeprefix(SNAPSHOT_PREFIX) for name in self._snapshot_names())
        return sorted(int(name) for name in names if name.isdigit())

    def prune(self, op: int, *, above: bool) -> None:
        """Remove snapshots below ``op``, with ``above`` also those above it, and temporary files.

        Raises WriteRefusedError if one cannot be removed.
        """
        try:
            doomed = [self.path(other) for other in self.ops() if other < op or (above and other > op)]
            if above:
                doomed += [
                    os.path.join(self._directory, name)
                    for name in self._files.names(self._directory)
                    if name.startswith((SNAPSHOT_PREFIX, SEGMENT_PREFIX))
                    and name.endswith((TEMPORARY_SUFFIX, BESIDE_SUFFIX))
                    and name != f"{SNAPSHOT_PREFIX}{op}{BESIDE_SUFFIX}"  # the superblock may name it by now
                ]
            for path in doomed:
                self._files.remove(path)
            if doomed:
                self._files.sync_directory(self._directory)
        except OSError as error:
            raise WriteRefusedError(
                f"{error.filename or self._directory}: cannot remove an old snapshot: {error.strerror or error}"
            ) from error

    def _snapshot_names(self) -> list[str]:
        return [name for name in self._files.names(self._directory) if name.startswith(SNAPSHOT_PREFIX)]

    def _remove_temporary(self, path: str) -> None:
        try:
            if self._files.exists(path + TEMPORARY_SUFFIX):
                self._files.remove(path + TEMPORARY_SUFFIX)
        except OSError:
            return  # it is removed when the directory is opened


def _named(error: OSError) -> str:
    """The file that an operation failed on: of a renaming, the name that could not be had."""
    return str(error.filename2 or error.filename or "")
