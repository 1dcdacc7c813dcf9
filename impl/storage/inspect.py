"""Look into a data directory without changing it: what each copy and record says, also where they are damaged.

Nothing is locked, repaired or cut off; of a directory in use this is what the files held at the moment of reading.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from viewproof.impl.interface.durable import SuperblockState
from viewproof.impl.interface.messages import CHECKSUM_NONE, PrepareHeader
from viewproof.impl.machine.partition_log import SEGMENT_BYTES, SegmentLostError, segment_bytes_of
from viewproof.impl.machine.snapshot import Snapshot, SnapshotError, checksum_snapshot
from viewproof.impl.machine.state_machine import StateError
from viewproof.impl.replica.config import ReplicaConfig
from viewproof.impl.replica.features import FEATURES_ANY
from viewproof.impl.replica.restore import Restorer
from viewproof.impl.storage.data_file import JOURNAL_NAME, SUPERBLOCK_NAME, DataFileError
from viewproof.impl.storage.file import File, FileSystem, MemoryFile, RealFileSystem, StorageError
from viewproof.impl.storage.overlay import OverlayFile
from viewproof.impl.storage.ring import open_journal
from viewproof.impl.storage.segments import SegmentFileError, SegmentStore, segments_named
from viewproof.impl.storage.snapshots import SNAPSHOT_PREFIX
from viewproof.impl.storage.superblock import COPIES, COPY_SIZE, Superblock, decode_copy

__all__ = ["ClientView", "CopyView", "Inspection", "RecordView", "inspect_data_file"]


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
class ClientView:
    """A client in a snapshot's table: its slot, session, incarnation, last request, and the op of that."""

    slot: int
    client: int
    session: int
    incarnation: int
    request: int
    op: int


@dataclass(frozen=True, slots=True)
class SnapshotView:
    """A snapshot file. ``in_use``: the superblock refers to it. ``reason``: why it cannot be used, or "".

    ``keys`` are those of the store, ``clients`` those with a slot, ``features`` the enabled ones and the ops of their
    entries, ``database`` the database checksum ("" without the feature).
    """

    name: str
    op: int
    size: int
    checksum: str
    in_use: bool
    reason: str
    entry: PrepareHeader | None = None
    keys: int = 0
    clients: int = 0
    features: tuple[tuple[int, int], ...] = ()
    database: str = ""
    table: tuple[ClientView, ...] = ()


@dataclass(frozen=True, slots=True)
class Inspection:
    """A data directory. ``problems`` is everything that opening it would repair, cut off or refuse.

    ``superblock`` is None, and ``records`` empty, where opening would refuse the file. ``log_length`` counts the ops
    above the checkpoint.
    """

    path: str
    copies: tuple[CopyView, ...]
    superblock: SuperblockState | None
    journal_bytes: int
    records: tuple[RecordView, ...]
    log_length: int
    problems: tuple[str, ...]
    snapshots: tuple[SnapshotView, ...] = ()

    @property
    def opens(self) -> bool:
        """True if a replica would start on it."""
        return self.superblock is not None and self.log_length >= 0


def inspect_data_file(path: str | os.PathLike[str], file_system: FileSystem | None = None) -> Inspection:
    """Read superblock, snapshots and journal. Raises DataFileError if a file is missing or cannot be read."""
    files = file_system or RealFileSystem()
    directory = os.fspath(path)
    superblock_file = _copy_of(files, os.path.join(directory, SUPERBLOCK_NAME))
    journal_file = _overlay_of(files, os.path.join(directory, JOURNAL_NAME))
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
    snapshots = _snapshot_views(files, directory, superblock)
    if superblock is not None:
        base, reason = _base_of(snapshots, superblock)
        problems += [reason] if reason else []
        problems += [f"{view.name}: left over, removed at the next start" for view in snapshots if not view.in_use]
        try:
            journal = open_journal(journal_file, superblock)
            if journal.recovery.cut_offset is not None:
                problems.append(f"{journal_file.path}: {journal.recovery}")
            relics = journal.relics(superblock.checkpoint)
            if relics:
                problems.append(
                    f"{journal_file.path}: {relics} records up to the checkpoint, drained at the next start"
                )
            problems += journal.damaged
            if journal.damage(superblock) is None and not superblock.recovery:
                log = {prepare.header.checksum for prepare in journal.log(superblock, None if reason else base)}
            else:
                log = journal.log_names(superblock)
            log_length = -1 if reason and superblock.replica_count == 1 else len(log)
            records = tuple(
                RecordView(offset, size, repair, header, header.checksum in log)
                for offset, size, repair, header in journal.records()
            )
        except StorageError as error:
            problems.append(str(error))
    journal_file.close()
    return Inspection(directory, copies, superblock, journal_bytes, records, log_length, tuple(problems), snapshots)


def _overlay_of(files: FileSystem, path: str) -> File:
    """The file, so that opening it can repair and cut without harm; a ring is too large to copy."""
    try:
        return OverlayFile(files.open(path))
    except OSError as error:
        raise DataFileError(f"{path}: cannot read: {error.strerror or error}") from error


def _base_of(snapshots: tuple[SnapshotView, ...], superblock: SuperblockState) -> tuple[str, str]:
    """The checksum of the entry at the checkpoint, and why it is not known, or ""."""
    if superblock.checkpoint == 0:
        return CHECKSUM_NONE, ""
    for view in snapshots:
        if view.in_use and view.entry is not None:
            return view.entry.checksum, ""
        if view.in_use:
            return "", f"{view.name}: {view.reason}"
    name = f"{SNAPSHOT_PREFIX}{superblock.checkpoint}"
    return "", f"{name}: the snapshot that the superblock refers to does not exist"


def _snapshot_views(files: FileSystem, directory: str, superblock: SuperblockState | None) -> tuple[SnapshotView, ...]:
    names = [name for name in files.names(directory) if name.startswith(SNAPSHOT_PREFIX)]
    views = [_snapshot_view(files, directory, name, superblock) for name in names]
    return tuple(sorted(views, key=lambda view: view.op))


def _snapshot_view(files: FileSystem, directory: str, name: str, superblock: SuperblockState | None) -> SnapshotView:
    content = bytes(_copy_of(files, os.path.join(directory, name)).content)
    number = name.removeprefix(SNAPSHOT_PREFIX)
    op = int(number) if number.isdigit() else 0
    in_use = superblock is not None and op > 0 and op == superblock.checkpoint
    checksum = checksum_snapshot(content)
    wrong = SnapshotView(name, op, len(content), checksum, in_use, "")
    if in_use and superblock is not None and checksum != superblock.snapshot:
        return replace(wrong, reason=f"checksum {checksum}, the superblock says {superblock.snapshot}")
    if superblock is None:
        return replace(wrong, reason="without a superblock nothing says what it should hold")
    try:
        store = SegmentStore(files, directory)
        lost = store.load(content, thorough=True).problems
        if lost:
            return replace(wrong, reason="; ".join(lost))
        config = ReplicaConfig(supports=FEATURES_ANY, segment_bytes=_segment_bytes(store, content))
        restored = Restorer(superblock, config, source=store).snapshot(Snapshot(op, checksum, content))
    except (SnapshotError, StateError, SegmentFileError, SegmentLostError, OSError) as error:
        return replace(wrong, reason=str(error))
    return replace(
        wrong,
        entry=restored.header,
        keys=len(restored.state_machine.store),
        clients=len(restored.client_table.places),
        features=tuple(sorted(restored.enabled.ops.items())),
        database=restored.enabled.checksum,
        table=tuple(
            ClientView(place, slot.client, slot.session, slot.incarnation, slot.request, slot.op)
            for place, slot in enumerate(restored.client_table.slots)
            if slot is not None
        ),
    )


def _segment_bytes(store: SegmentStore, snapshot: bytes) -> int:
    """The size at which the segments in a snapshot roll. Raises SnapshotError, StateError, SegmentLostError."""
    return next((segment_bytes_of(store.read(ref)) for ref in segments_named(snapshot)), SEGMENT_BYTES)


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
