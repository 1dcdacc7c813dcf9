"""The data directory of one replica: superblock, journal, last snapshot; opened by one process at a time.

Thread use: one write at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from viewproof.impl.interface.durable import (
    CLIENTS_SESSIONS,
    ClientTableConfig,
    ConfigurationError,
    DurableState,
    Quorums,
    SuperblockState,
    superblock_formatted,
    validate_quorums,
)
from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare
from viewproof.impl.machine.partition_log import Segment, SegmentRef
from viewproof.impl.machine.snapshot import Snapshot, SnapshotError, checksum_snapshot, decode_snapshot
from viewproof.impl.storage.evidence import (
    OUTDATED_NAME,
    Evidence,
    evidence_in,
    keep_evidence,
    keep_outdated,
    outdated_in,
)
from viewproof.impl.storage.file import FileSystem, RealFileSystem, StorageError, WriteRefusedError
from viewproof.impl.storage.journal import Journal, JournalError, JournalRecovery
from viewproof.impl.storage.ring import RingJournal, open_journal
from viewproof.impl.storage.ring_file import Geometry
from viewproof.impl.storage.segments import SEGMENT_PREFIX, SegmentStore
from viewproof.impl.storage.snapshots import SNAPSHOT_PREFIX, SnapshotFileError, Snapshots
from viewproof.impl.storage.superblock import Superblock

__all__ = ["DataFile", "DataFileError", "format_data_file", "open_data_file"]

SUPERBLOCK_NAME = "superblock"
JOURNAL_NAME = "journal"


class DataFileError(StorageError):
    """A data directory is missing, in use, already formatted, or another replica's."""


class DataFile:
    """An opened data directory. ``superblock_problems`` and ``journal_recovery`` report what opening had to mend."""

    def __init__(
        self,
        path: str,
        files: FileSystem,
        superblock: Superblock,
        journal: Journal | RingJournal,
        release: Callable[[], None],
        segments: type[SegmentStore] = SegmentStore,
        accept_loss: bool = False,
    ) -> None:
        self.path = path
        self._files = files
        self._superblock = superblock
        self._journal = journal
        self._snapshots = Snapshots(files, path, segments)
        self._accept_loss = accept_loss
        self._release = release
        self.problems: list[str] = []

    @property
    def superblock(self) -> SuperblockState:
        """The superblock as durable now."""
        return self._superblock.state

    @property
    def superblock_problems(self) -> tuple[str, ...]:
        """Broken copies that were found and repaired at open."""
        return self._superblock.problems

    @property
    def journal_recovery(self) -> JournalRecovery:
        """What the scan of the journal found."""
        return self._journal.recovery

    @property
    def journal_slots(self) -> int:
        """Slots of the journal, if it is a ring; 0: it has no end."""
        return self._journal.geometry.slots if isinstance(self._journal, RingJournal) else 0

    @property
    def journal_bytes(self) -> int:
        """Size of the journal, bytes."""
        return self._journal.size

    @property
    def segments(self) -> SegmentStore:
        """Where the replica reads segments of messages that are not in memory."""
        return self._snapshots.segments

    def durable_state(self) -> DurableState:
        """Superblock, snapshot and log as they are durable now.

        Without a snapshot that can be read, or without some segments of it, if there are others to fetch them from;
        this is a problem then. Raises SnapshotFileError if there are none, JournalError if the log cannot be used.
        """
        found = self._snapshot()
        state = self._superblock.state
        data, base = b"", None if state.checkpoint else CHECKSUM_NONE
        lost: tuple[SegmentRef, ...] = ()
        if found is not None:
            snapshot, base, lost = found
            data = snapshot.data
            state = replace(state, snapshot=snapshot.checksum)
        damage = self._journal.damage(state)
        if damage is not None:
            return DurableState(state, (), data, 0, damage, lost)
        relics = self._journal.relics(state.checkpoint)
        return DurableState(state, self._journal.log(state, base), data, relics, None, lost)

    def _snapshot(self) -> tuple[Snapshot, str, tuple[SegmentRef, ...]] | None:
        """The snapshot in use, the checksum of the entry at its op, and which of its segments are to be fetched.

        None without one, or if it cannot be read and is to be fetched. With `accept_loss` what is left of it becomes
        the snapshot in use.
        """
        if self._superblock.state.checkpoint == 0:
            return None
        try:
            snapshot, base, lost, reason = self._read_snapshot()
        except SnapshotFileError as error:
            if self._others_have(str(error), error):
                return None
            snapshot, base, lost, reason = self._salvaged()
        if lost and not self._others_have(
            f"{self._snapshots.path(snapshot.op)}: its messages cannot be read: {reason}"
        ):
            snapshot, base, lost, reason = self._salvaged()
        self.problems += self._snapshots.rebuild_indexes()
        return snapshot, base, lost

    def _read_snapshot(self) -> tuple[Snapshot, str, tuple[SegmentRef, ...], str]:
        """Raises SnapshotFileError. One that nobody else holds is read with all its messages."""
        state = self._superblock.state
        thorough = state.replica_count == 1
        self._snapshots.take_beside(state.checkpoint, state.snapshot)
        snapshot, lost, reason = self._snapshots.read(state.checkpoint, state.snapshot, thorough=thorough)
        try:
            contents = decode_snapshot(snapshot.data, cluster=state.cluster, op=state.checkpoint)
        except SnapshotError as error:
            raise SnapshotFileError(f"{self._snapshots.path(state.checkpoint)}: {error}") from error
        return snapshot, contents.header.checksum, lost, reason

    def _others_have(self, reason: str, error: Exception | None = None) -> bool:
        """True if what is unreadable of the snapshot in use is to be fetched; false if its loss is accepted.

        Raises SnapshotFileError if it is to be refused.
        """
        replicas = self._superblock.state.replica_count
        if replicas == 1 and self._accept_loss:
            return False
        if replicas == 1:
            raise SnapshotFileError(
                f"{reason}; but there is no other replica. Restore the file from a backup, or give up what is lost and"
                " start with --accept-loss"
            ) from error
        if self._accept_loss:
            raise SnapshotFileError(
                f"{reason}. Refusing to accept the loss: this is one of {replicas} replicas, the others hold what is"
                " lost here; start it without --accept-loss"
            ) from error
        self.problems.append(f"{reason}. It is fetched from the other replicas, if one still has it")
        return True

    def _salvaged(self) -> tuple[Snapshot, str, tuple[SegmentRef, ...], str]:
        """What is left of the snapshot in use becomes the snapshot in use. Raises SnapshotFileError."""
        state = self._superblock.state
        op = state.checkpoint
        data, losses = self._snapshots.salvage(op, state.snapshot)
        self._snapshots.write_beside(op, data)
        self.write_superblock(replace(state, snapshot=checksum_snapshot(data), sequence=state.sequence + 1))
        self.problems += [f"loss accepted: {loss}" for loss in losses]
        return self._read_snapshot()

    def clean_up(self) -> None:
        """Finishes a drain that was cut short, and removes what no one refers to. What cannot be done is a problem."""
        checkpoint = self._superblock.state.checkpoint
        try:
            if self._journal.relics(checkpoint):
                self._journal.drain(self._files, checkpoint)
            self._snapshots.prune(checkpoint, above=True)
        except WriteRefusedError as error:
            self.problems.append(str(error))

    def append(self, prepares: Sequence[Prepare], repair: bool = False) -> None:
        """Durable when it returns (effect AppendPrepares). Raises JournalError, JournalRefusedError if it can go on.

        Here and below FileVanishedError if a file was cut or replaced while the process ran, in a way that cannot be
        made good; what could is a problem.
        """
        self._journal.require_whole()
        self._journal.append(prepares, repair)
        self._keep_files()

    def write_snapshot(self, op: int, data: bytes, held: Sequence[Segment] = ()) -> None:
        """Durable when it returns, with its segments (effect WriteSnapshot); `held` are those in memory.

        Raises WriteRefusedError; SegmentsGoneError if segments are neither here nor in memory.
        """
        self._snapshots.write(op, data, held)
        self.problems += self._snapshots.mended()

    def write_segment(self, ref: SegmentRef, content: bytes) -> None:
        """Durable when it returns (effect WriteSegment). Raises WriteRefusedError."""
        self._snapshots.write_segment(ref, content)

    def read_segment(self, ref: SegmentRef) -> None:
        """Compares a segment on the disk with what names it (effect ReadSegment). Raises SegmentLostError."""
        self.segments.verify(ref)

    def drain(self, op: int, stale: bool = False, end: int | None = None) -> None:
        """Durable when it returns (effect DrainJournal). Raises JournalError, WriteRefusedError if it can go on.

        Nothing is drained before the snapshot that takes its place is there, with all its segments.
        """
        self._journal.require_whole()
        self._keep_files()
        self._snapshots.keep(self._superblock.state.checkpoint)
        self.problems += self._snapshots.mended()
        state = self._superblock.state
        if state.checkpoint < op:
            raise JournalError(f"{self.path}: drain up to op {op}, but the checkpoint is {state.checkpoint}")
        log = self._journal.log_names(state, end) if stale else None
        self._journal.drain(self._files, op, log)
        self._snapshots.prune(op, above=False)

    def write_superblock(self, state: SuperblockState) -> None:
        """Durable when it returns (effect WriteSuperblock). Raises SuperblockError, SuperblockRefusedError if it can go
        on.
        """
        self._superblock.write(state)
        self._journal.on_superblock(state)
        self._keep_files()

    def _keep_files(self) -> None:
        """The files that are open have their names, or get them again."""
        superblock = os.path.join(self.path, SUPERBLOCK_NAME)
        try:
            journal_mended = self._journal.keep(self._files)
            superblock_mended = self._superblock.keep(self._files)
            if superblock_mended:
                self._release()
                self._release = self._files.lock(superblock)
        except BlockingIOError as error:
            raise DataFileError(f"{superblock} was taken by another process while this one ran") from error
        except OSError as error:
            raise DataFileError(
                f"{error.filename or self.path}: a file vanished while the process ran, and cannot be written again: "
                f"{error.strerror or error}"
            ) from error
        self.problems += [text for text in (journal_mended, superblock_mended) if text]

    def keep_evidence(self, reason: str, contents: Mapping[str, object]) -> str:
        """The path of the file that keeps it. Raises OSError."""
        return keep_evidence(self._files, self.path, reason, contents)

    def evidence(self) -> list[Evidence]:
        """What was kept when the replica stopped before. Raises OSError."""
        return evidence_in(self._files, self.path)

    def keep_outdated(self, reason: str) -> None:
        """No replica starts on the directory any more: it is older than what was heard of it. Raises OSError."""
        keep_outdated(self._files, self.path, reason)

    def close(self) -> None:
        """Close both files and give up the lock."""
        self._superblock.close()
        self._journal.close()
        self._release()


def format_data_file(
    path: str | os.PathLike[str],
    cluster: int,
    replica: int,
    replica_count: int,
    quorums: Quorums | None = None,
    file_system: FileSystem | None = None,
    group: int = 0,
    clients: ClientTableConfig = CLIENTS_SESSIONS,
    ring: Geometry | None = None,
) -> SuperblockState:
    """Make a new data directory (its journal first, its superblock last) and return the superblock written.

    With `ring` the journal is one (`impl.storage.ring`), else it is append-only. Clients have sessions unless `clients`
    says otherwise; it must be the same on every replica.

    Raises ConfigurationError (impl/interface/durable.py) for numbers that the protocol does not allow, DataFileError
    if the directory holds a journal or a superblock already, also one left by a format that did not finish.
    """
    state = superblock_formatted(cluster, replica, replica_count, quorums, clients, group)
    validate_quorums(state.quorums, replica_count)
    if not 0 <= replica < replica_count:
        raise ConfigurationError(f"replica must be in 0..{replica_count - 1}, got {replica}")
    if not 0 <= cluster < 1 << 64:
        raise ConfigurationError(f"cluster must fit 64 bits, got {cluster}")
    files = file_system or RealFileSystem()
    directory = os.fspath(path)
    names = files.names(directory) if files.exists(directory) else []
    snapshots = [name for name in names if name.startswith((SNAPSHOT_PREFIX, SEGMENT_PREFIX))]
    for name in (SUPERBLOCK_NAME, JOURNAL_NAME, *snapshots):
        if files.exists(os.path.join(directory, name)):
            raise DataFileError(
                f"{os.path.join(directory, name)} exists: refusing to format over it. "
                "If this replica never took part in a cluster, delete the directory first"
            )
    try:
        journal = files.create(os.path.join(directory, JOURNAL_NAME))
        if ring is None:
            Journal.format(journal, cluster, replica)
        else:
            RingJournal.format(journal, cluster, replica, ring.slots, ring.slot_size)
        journal.close()
        superblock = files.create(os.path.join(directory, SUPERBLOCK_NAME))
        Superblock.format(superblock, state)
        superblock.close()
    except OSError as error:
        raise DataFileError(f"{directory}: cannot format: {error.strerror or error}") from error
    return state


def open_data_file(
    path: str | os.PathLike[str],
    cluster: int | None = None,
    replica: int | None = None,
    replica_count: int | None = None,
    file_system: FileSystem | None = None,
    check_views: bool = True,
    group: int | None = None,
    segments: type[SegmentStore] = SegmentStore,
    accept_loss: bool = False,
) -> DataFile:
    """Open, lock, verify and recover a data directory; identities that are given must match the superblock's.

    `segments`: what keeps the messages of partitions. `accept_loss`: go on without the messages of segments that
    are damaged, if there is no other replica; what is lost is a problem then.

    Raises DataFileError (missing, locked, not this replica), SuperblockError or JournalError (damaged).
    """
    files = file_system or RealFileSystem()
    directory = os.fspath(path)
    superblock_path = os.path.join(directory, SUPERBLOCK_NAME)
    for name in (SUPERBLOCK_NAME, JOURNAL_NAME):
        if not files.exists(os.path.join(directory, name)):
            raise DataFileError(
                f"{os.path.join(directory, name)} does not exist: the directory was never formatted, its format "
                "did not finish, or a file was lost. A lost file is never made anew; format only a replica that is "
                "new. `vsr recover` says what to do"
            )
    try:
        release = files.lock(superblock_path)
    except BlockingIOError as error:
        raise DataFileError(f"{superblock_path} is in use by another process") from error
    except OSError as error:
        raise DataFileError(f"{superblock_path}: cannot lock: {error.strerror or error}") from error
    try:
        superblock = Superblock.open(files.open(superblock_path), check_views)
        state = superblock.state
        _check_identity(superblock_path, state, cluster, replica, replica_count, group)
        outdated = outdated_in(files, directory)
        if outdated:
            raise DataFileError(
                f"{os.path.join(directory, OUTDATED_NAME)}: {outdated}. `vsr recover {directory} --from-cluster "
                "ADDRESSES` puts the replica back"
            )
        journal = open_journal(files.open(os.path.join(directory, JOURNAL_NAME)), state)
        data = DataFile(directory, files, superblock, journal, release, segments, accept_loss)
        data.clean_up()
    except OSError as error:
        release()
        raise DataFileError(f"{error.filename or directory}: cannot open: {error.strerror or error}") from error
    except StorageError:
        release()
        raise
    return data


def _check_identity(
    path: str,
    state: SuperblockState,
    cluster: int | None,
    replica: int | None,
    replica_count: int | None,
    group: int | None,
) -> None:
    for name, wanted, found in (
        ("cluster", cluster, state.cluster),
        ("group", group, state.group),
        ("replica", replica, state.replica),
        ("replica_count", replica_count, state.replica_count),
    ):
        if wanted is not None and wanted != found:
            raise DataFileError(f"{path}: {name} is {found} there, but {wanted} was asked for; wrong data directory?")
