"""Snapshot files of one replica: ``snapshot-OP`` in its data directory, each written once and atomically.

A snapshot is written to a temporary name, synced, renamed, and the directory synced, so a file of that name is whole.
The superblock says which one counts, by op and checksum; the others are in no one's way and removed by ``prune``.
The messages of partitions lie in segment files beside it (`impl.storage.segments`).
"""

from __future__ import annotations

import os

from viewproof.impl.machine.snapshot import Snapshot, checksum_snapshot
from viewproof.impl.storage.file import (
    TEMPORARY_SUFFIX,
    FileSystem,
    StorageError,
    WriteRefusedError,
    write_atomically,
)
from viewproof.impl.storage.segments import SEGMENT_PREFIX, SegmentFileError, SegmentStore

__all__ = ["SNAPSHOT_PREFIX", "SnapshotFileError", "Snapshots"]

SNAPSHOT_PREFIX = "snapshot-"


_REMEDY = "Another replica's snapshot of the same op can take its place (it is the same there, byte for byte)"


class SnapshotFileError(StorageError):
    """The snapshot that the superblock refers to cannot be read; the text names file and remedy."""


class Snapshots:
    """The snapshots in one data directory, their messages in `segments`."""

    def __init__(self, files: FileSystem, directory: str, segments: type[SegmentStore] = SegmentStore) -> None:
        self._files = files
        self._directory = directory
        self._segments = segments(files, directory)
        self._newest = (0, b"", 0)  # op and bytes of the last one that was written or read, and size of its file

    def path(self, op: int) -> str:
        """The file of the snapshot at ``op``."""
        return os.path.join(self._directory, f"{SNAPSHOT_PREFIX}{op}")

    def write(self, op: int, data: bytes) -> None:
        """Durable when it returns. Raises WriteRefusedError; the snapshots before are then as they were."""
        path = self.path(op)
        try:
            content = self._segments.store(data)
            write_atomically(self._files, path, content)
        except OSError as error:
            self._remove_temporary(path)
            raise WriteRefusedError(
                f"{error.filename or path}: cannot write the snapshot of op {op}: {error.strerror or error}"
            ) from error
        self._newest = op, data, len(content)

    def keep(self, op: int) -> None:
        """Writes the snapshot at ``op`` again if a file of it is gone or was cut since. Raises WriteRefusedError.

        It is the last one that was written or read; without messages that can be read there is none to look after.
        """
        newest, data, size = self._newest
        if newest != op:
            return
        path = self.path(op)
        found = self._files.size_of(path)
        gone = found is None or found < size
        if gone or self._segments.lacking():
            self.write(op, data)
        if gone:
            what = "is gone" if found is None else f"was cut to {found} of {size} bytes"
            self._segments.mended.append(f"{path}: it {what} while the process ran: it was written again")

    def mended(self) -> list[str]:
        """What was written again since this was last asked, because it vanished or was cut while the process ran."""
        found, self._segments.mended = self._segments.mended, []
        return found

    def read(self, op: int, checksum: str) -> Snapshot:
        """The verified snapshot at ``op``. Raises SnapshotFileError."""
        path = self.path(op)
        content = self._content(path)
        data = self._loaded(path, content)
        found = checksum_snapshot(data)
        if not self._segments.is_whole(found, checksum):
            raise SnapshotFileError(
                f"{path}: the snapshot ({len(data)} bytes) has the checksum {found}, the superblock says {checksum}: "
                f"it is damaged. {_REMEDY}"
            )
        self._newest = op, data, len(content)
        return Snapshot(op, found, data)

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

    def _loaded(self, path: str, content: bytes) -> bytes:
        try:
            return self._segments.load(content)
        except (SegmentFileError, OSError) as error:
            raise SnapshotFileError(f"{path}: its messages cannot be read: {error}. {_REMEDY}") from error

    def rebuild_indexes(self) -> list[str]:
        """Makes the indexes of the segments that were read last right; returns what was wrong with them."""
        return self._segments.rebuild_indexes()

    def held_segments(self) -> dict[tuple[int, int], bytes]:
        """What is whole of the segments here, by namespace and first offset; the snapshot in use is unreadable."""
        return self._segments.held()

    def salvage(self, op: int) -> tuple[bytes, list[str]]:
        """What is left of the snapshot at ``op``, whose segments are damaged, and what is lost.

        Raises SnapshotFileError.
        """
        path = self.path(op)
        try:
            return self._segments.salvage(self._content(path))
        except (SegmentFileError, OSError) as error:
            raise SnapshotFileError(f"{path}: nothing can be saved: {error}") from error

    def ops(self) -> list[int]:
        """Ops of the snapshots that are there, rising."""
        names = (name.removeprefix(SNAPSHOT_PREFIX) for name in self._snapshot_names())
        return sorted(int(name) for name in names if name.isdigit())

    def prune(self, op: int, *, above: bool) -> None:
        """Remove snapshots below ``op``, with ``above`` also those above it, and temporary files.

        Raises WriteRefusedError if one cannot be removed.
        """
        doomed = [self.path(other) for other in self.ops() if other < op or (above and other > op)]
        if above:
            doomed += [
                os.path.join(self._directory, name)
                for name in self._files.names(self._directory)
                if name.startswith((SNAPSHOT_PREFIX, SEGMENT_PREFIX)) and name.endswith(TEMPORARY_SUFFIX)
            ]
        try:
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
