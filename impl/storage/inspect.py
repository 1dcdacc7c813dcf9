"""Look into a data directory without changing it: what each copy and record says, also where they are damaged.

Nothing is locked, repaired or cut off; of a directory in use this is what the files held at the moment of reading.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from impl.durable import SuperblockState
from impl.messages import PrepareHeader
from impl.storage.data_file import JOURNAL_NAME, SUPERBLOCK_NAME, DataFileError
from impl.storage.file import FileSystem, MemoryFile, RealFileSystem, StorageError
from impl.storage.journal import Journal
from impl.storage.superblock import COPIES, COPY_SIZE, Superblock, decode_copy

__all__ = ["CopyView", "Inspection", "RecordView", "inspect_data_file"]


@dataclass(frozen=True, slots=True)
class CopyView:
    """One copy of the superblock: its state, or why it is not valid."""

    copy: int
    state: SuperblockState | None
    reason: str


@dataclass(frozen=True, slots=True)
class RecordView:
    """One record of the journal. ``in_log``: part of the log that the superblock names."""

    offset: int
    size: int
    repair: bool
    header: PrepareHeader
    in_log: bool


@dataclass(frozen=True, slots=True)
class Inspection:
    """A data directory. ``problems`` is everything that opening it would repair, cut off or refuse.

    ``superblock`` is None, and ``records`` empty, where opening would refuse the file.
    """

    path: str
    copies: tuple[CopyView, ...]
    superblock: SuperblockState | None
    journal_bytes: int
    records: tuple[RecordView, ...]
    log_length: int
    problems: tuple[str, ...]

    @property
    def opens(self) -> bool:
        """True if a replica would start on it."""
        return self.superblock is not None and self.log_length >= 0


def inspect_data_file(path: str | os.PathLike[str], file_system: FileSystem | None = None) -> Inspection:
    """Read superblock and journal. Raises DataFileError if a file is missing or cannot be read."""
    files = file_system or RealFileSystem()
    directory = os.fspath(path)
    superblock_file = _copy_of(files, os.path.join(directory, SUPERBLOCK_NAME))
    journal_file = _copy_of(files, os.path.join(directory, JOURNAL_NAME))
    copies = tuple(_copy_view(superblock_file, copy) for copy in range(COPIES))
    problems = [f"superblock copy {view.copy}: {view.reason}" for view in copies if view.state is None]
    journal_bytes = journal_file.size()
    try:
        superblock: SuperblockState | None = Superblock.open(superblock_file).state
    except StorageError as error:
        superblock = None
        problems.append(str(error))
    records: tuple[RecordView, ...] = ()
    log_length = -1
    if superblock is not None:
        try:
            journal = Journal.open(journal_file, superblock.cluster, superblock.replica)
            if journal.recovery.cut_offset is not None:
                problems.append(f"{journal_file.path}: {journal.recovery}")
            log = {prepare.header.checksum for prepare in journal.log(superblock)}
            log_length = len(log)
            records = tuple(
                RecordView(offset, size, repair, header, header.checksum in log)
                for offset, size, repair, header in journal.records()
            )
        except StorageError as error:
            problems.append(str(error))
    return Inspection(directory, copies, superblock, journal_bytes, records, log_length, tuple(problems))


def _copy_view(file: MemoryFile, copy: int) -> CopyView:
    state, reason = decode_copy(file.read_at(copy * COPY_SIZE, COPY_SIZE), copy)
    return CopyView(copy, state, reason)


def _copy_of(files: FileSystem, path: str) -> MemoryFile:
    """The file's content in memory, so that opening it can repair and cut without harm."""
    try:
        file = files.open(path)
        try:
            return MemoryFile(path, file.read_at(0, file.size()))
        finally:
            file.close()
    except OSError as error:
        raise DataFileError(f"{path}: cannot read: {error.strerror or error}") from error
