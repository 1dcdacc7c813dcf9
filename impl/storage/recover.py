"""What is wrong with a data directory, what to do about each, and the reset of one whose promises are lost.

`vsr recover` and docs/recovery.md: a replica that cannot start is put back under its old identity, with a superblock
that says that what it promised was lost. It is never made anew: it takes part in nothing until the cluster has given it
a log that holds all it may have acknowledged.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count

from viewproof.impl.interface.durable import SuperblockState
from viewproof.impl.interface.ranges import range_error
from viewproof.impl.storage.data_file import JOURNAL_NAME, SUPERBLOCK_NAME, DataFileError
from viewproof.impl.storage.evidence import OUTDATED_NAME, outdated_in
from viewproof.impl.storage.evidence import PREFIX as EVIDENCE_PREFIX
from viewproof.impl.storage.file import (
    File,
    FileSystem,
    MemoryFile,
    RealFileSystem,
    StorageError,
    is_unreadable,
    write_atomically,
)
from viewproof.impl.storage.journal import Journal
from viewproof.impl.storage.overlay import OverlayFile
from viewproof.impl.storage.ring import RingJournal
from viewproof.impl.storage.ring_file import Geometry, is_ring, read_ring_header
from viewproof.impl.storage.snapshots import SnapshotFileError, Snapshots
from viewproof.impl.storage.superblock import (
    COPIES,
    COPY_SIZE,
    Superblock,
    SuperblockRangeError,
    decode_copy,
    encode_copy,
)

__all__ = ["Diagnosis", "Finding", "Remedy", "diagnose", "is_in_use", "reset_clock", "reset_for_recovery"]

ASIDE = "before-recovery-"
"""Directories that hold the files as they were, by number of the recovery, with a report of what was wrong."""

REPORT_NAME = "report"

_NO_DAMAGE = {
    errno.EACCES: "run this as the replica's user",
    errno.EPERM: "run this as the replica's user",
    errno.EROFS: "make the file system writable, or run this on a copy",
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.ENFILE: "close files of other programs",
    errno.ENOMEM: "free memory",
}
"""Why a file that may be whole cannot be opened, and what to do then."""


class Remedy(StrEnum):
    """What to do about a finding."""

    START = "start"
    START_OR_CLUSTER = "start_or_from_cluster"
    FROM_CLUSTER = "from_cluster"
    RESTORE = "restore"
    OTHER_VERSION = "other_version"
    RESET_CLOCK = "reset_clock"
    SETTINGS = "settings"


REMEDIES = {
    Remedy.START: "start the replica: it mends this by itself",
    Remedy.START_OR_CLUSTER: "start the replica: it fetches this from the others; if none of them has it any more, "
    "vsr recover DIRECTORY --from-cluster ADDRESSES, then start the replica",
    Remedy.FROM_CLUSTER: "vsr recover DIRECTORY --from-cluster ADDRESSES, then start the replica",
    Remedy.RESTORE: "there is no other replica: restore the file from a backup of this very replica",
    Remedy.OTHER_VERSION: "start the replica with the version of this program that wrote the file; if there is none, "
    "the file is damaged: if it is the journal, vsr recover DIRECTORY --from-cluster ADDRESSES, then start the replica",
    Remedy.SETTINGS: "remove it, and start with the settings of before: it is written anew at each start",
    Remedy.RESET_CLOCK: "vsr recover DIRECTORY --reset-clock, then start the replica with another --trace: the "
    "clock only orders the events of traces, and the clocks of the one before are out of range, too",
}
"""In words."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with one file."""

    file: str
    problem: str
    remedy: Remedy


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A data directory. `copies` are the valid copies of its superblock, `agreed` what a quorum of them says.

    `geometry`: of its journal, if that is a ring and its header is whole. `files`: names of what is there. `op`: the
    last one of its log, None if that is not known.
    """

    path: str
    files: tuple[str, ...]
    copies: tuple[SuperblockState, ...]
    agreed: SuperblockState | None
    geometry: Geometry | None
    findings: tuple[Finding, ...]
    op: int | None = None

    @property
    def known(self) -> SuperblockState | None:
        """Whose directory it is: the newest valid copy."""
        return max(self.copies, key=lambda state: state.sequence, default=None)

    @property
    def evidence(self) -> tuple[str, ...]:
        """Names of files that say why it stopped before (`impl.storage.evidence`)."""
        return tuple(name for name in self.files if name.startswith(EVIDENCE_PREFIX))

    @property
    def starts(self) -> bool:
        """True if a replica starts on it."""
        return all(finding.remedy in (Remedy.START, Remedy.START_OR_CLUSTER) for finding in self.findings)

    @property
    def recoverable(self) -> bool:
        """True if something may be wrong that only the cluster can help with, and nothing that it cannot."""
        remedies = {finding.remedy for finding in self.findings}
        if Remedy.RESTORE in remedies or (self.agreed is None and Remedy.OTHER_VERSION in remedies):
            return False
        return bool(remedies - {Remedy.START, Remedy.SETTINGS})


def diagnose(path: str | os.PathLike[str], file_system: FileSystem | None = None) -> Diagnosis:
    """Reads superblock, journal and snapshot without changing them.

    Raises DataFileError if there is no directory, or superblock or journal may not be read: that is no damage.
    """
    files = file_system or RealFileSystem()
    directory = os.fspath(path)
    try:
        names = tuple(files.names(directory))
    except OSError as error:
        raise DataFileError(f"{directory}: {error.strerror or error}") from error
    findings: list[Finding] = []
    copies, agreed = _superblock(files, directory, findings)
    one = max(copies, key=lambda state: state.sequence, default=None)
    single = one is not None and one.replica_count == 1
    geometry, op = _journal(files, directory, one, agreed, single, findings)
    if agreed is not None and agreed.checkpoint:
        _snapshot(files, directory, agreed, findings)
    outdated = outdated_in(files, directory)
    if outdated:
        findings.append(Finding(os.path.join(directory, OUTDATED_NAME), outdated, Remedy.FROM_CLUSTER))
    return Diagnosis(directory, names, copies, agreed, geometry, tuple(findings), op)


def is_in_use(path: str | os.PathLike[str], file_system: FileSystem | None = None) -> bool:
    """True if a process has the data directory open. Raises OSError if that cannot be seen."""
    files = file_system or RealFileSystem()
    superblock = os.path.join(path, SUPERBLOCK_NAME)
    if not files.exists(superblock):
        return False
    try:
        files.lock(superblock)()
    except BlockingIOError:
        return True
    return False


def _superblock(
    files: FileSystem, directory: str, findings: list[Finding]
) -> tuple[tuple[SuperblockState, ...], SuperblockState | None]:
    path = os.path.join(directory, SUPERBLOCK_NAME)
    file, problem = _copy_of(files, path)
    if file is None:
        findings.append(Finding(path, problem, Remedy.FROM_CLUSTER))
        return (), None
    decoded = [decode_copy(file.read_at(copy * COPY_SIZE, COPY_SIZE), copy) for copy in range(COPIES)]
    copies = tuple(state for state, _ in decoded if state is not None)
    single = bool(copies) and copies[0].replica_count == 1
    try:
        agreed: SuperblockState | None = Superblock.open(file).state
    except SuperblockRangeError as error:
        agreed = error.state
        only_clock = range_error(replace(agreed, clock=0)) is None
        lost = Remedy.RESTORE if single else Remedy.FROM_CLUSTER
        problem = str(error).removeprefix(f"{path}: ")
        findings.append(Finding(path, problem, Remedy.RESET_CLOCK if only_clock else lost))
    except StorageError as error:
        agreed = None
        other = any("format version" in reason for _, reason in decoded)
        lost = Remedy.RESTORE if single else Remedy.FROM_CLUSTER
        findings.append(Finding(path, str(error).removeprefix(f"{path}: "), Remedy.OTHER_VERSION if other else lost))
    else:
        findings += [
            Finding(path, f"copy {copy}: {reason}", Remedy.START) for copy, (_, reason) in enumerate(decoded) if reason
        ]
    return copies, agreed


def _journal(
    files: FileSystem,
    directory: str,
    one: SuperblockState | None,
    agreed: SuperblockState | None,
    single: bool,
    findings: list[Finding],
) -> tuple[Geometry | None, int | None]:
    """The geometry of a ring, and the last op of the log, if they are known."""
    path = os.path.join(directory, JOURNAL_NAME)
    lost = Remedy.RESTORE if single else Remedy.FROM_CLUSTER
    try:
        file = OverlayFile(files.open(path))
    except OSError as error:
        _require_readable(path, error)
        findings.append(Finding(path, f"cannot read the file: {error.strerror or error}", lost))
        return None, None
    geometry: Geometry | None = None
    op: int | None = None
    if one is None:
        file.close()
        return None, None
    try:
        if is_ring(file):
            geometry = read_ring_header(file, one.cluster, one.replica)
        if agreed is None:
            return geometry, None
        journal = RingJournal.open(file, agreed) if geometry else Journal.open(file, agreed.cluster, agreed.replica)
        if journal.damage(agreed) is not None:
            problem = "some of its prepares are damaged"
            findings.append(Finding(path, problem, Remedy.RESTORE if single else Remedy.START_OR_CLUSTER))
        else:
            log = journal.log(agreed, None)
            op = log[-1].header.op if log else agreed.checkpoint
        if journal.recovery.cut_offset is not None:
            findings.append(Finding(path, str(journal.recovery), Remedy.START))
    except StorageError as error:
        text = str(error)
        remedy = Remedy.OTHER_VERSION if "format version" in text else lost
        findings.append(Finding(path, text.removeprefix(f"{path}: "), remedy))
    finally:
        file.close()
    return geometry, op


def _snapshot(files: FileSystem, directory: str, agreed: SuperblockState, findings: list[Finding]) -> None:
    snapshots = Snapshots(files, directory)
    file = snapshots.path(agreed.checkpoint)
    try:
        _, _, reason = snapshots.read(agreed.checkpoint, agreed.snapshot, thorough=True)
    except SnapshotFileError as error:
        reason = str(error).removeprefix(f"{file}: ")
    if reason:
        remedy = Remedy.RESTORE if agreed.replica_count == 1 else Remedy.START_OR_CLUSTER
        findings.append(Finding(file, reason, remedy))


def _copy_of(files: FileSystem, path: str) -> tuple[MemoryFile | None, str]:
    """The superblock's content in memory, without copies that the medium refuses; or None and why it cannot be read."""
    try:
        file = files.open(path)
        try:
            pieces = (_piece(file, at) for at in range(0, file.size(), COPY_SIZE))
            return MemoryFile(path, b"".join(pieces)), ""
        finally:
            file.close()
    except OSError as error:
        _require_readable(path, error)
        return None, f"cannot read the file: {error.strerror or error}"


def _piece(file: File, at: int) -> bytes:
    try:
        return file.read_at(at, COPY_SIZE)
    except OSError as error:
        if not is_unreadable(error):
            raise
        return bytes(COPY_SIZE)


def _require_readable(path: str, error: OSError) -> None:
    """Raises DataFileError if a file cannot be opened for a reason that says nothing of what is in it."""
    remedy = _NO_DAMAGE.get(error.errno or 0)
    if remedy is not None:
        text = f"{path}: {error.strerror}: whether it is damaged is not known; {remedy}"
        raise DataFileError(text) from error


def reset_clock(diagnosis: Diagnosis, file_system: FileSystem | None = None) -> None:
    """Sets the clock of a superblock back to 0 whose clock is out of range; all else stays.

    Raises DataFileError: nothing is wrong with the clock, or the directory is in use; StorageError if the disk refuses.
    """
    if all(finding.remedy is not Remedy.RESET_CLOCK for finding in diagnosis.findings):
        raise DataFileError(f"{diagnosis.path}: the clock is in range; nothing was changed")
    files = file_system or RealFileSystem()
    path = os.path.join(diagnosis.path, SUPERBLOCK_NAME)
    try:
        release = files.lock(path)
    except BlockingIOError as error:
        raise DataFileError(f"{path} is in use by another process: stop the replica first") from error
    try:
        block = Superblock.open(files.open(path), check_ranges=False)
        block.write(replace(block.state, clock=0, sequence=block.state.sequence + 1))
        block.close()
    finally:
        release()


def reset_for_recovery(diagnosis: Diagnosis, state: SuperblockState, file_system: FileSystem | None = None) -> str:
    """Puts all files aside and makes an empty journal, and a superblock of `state`; `state.recovery` is its nonce.

    Returns the directory that holds the files as they were. A crash in between leaves a directory that does not start,
    and this can be done again. Raises DataFileError: in use, no longer what was diagnosed, or the disk refuses.
    """
    files = file_system or RealFileSystem()
    directory = diagnosis.path
    if not state.recovery or state.head_op or state.checkpoint:
        raise DataFileError(f"{directory}: a recovery begins with a nonce, without log and snapshot, not with {state}")
    superblock = os.path.join(directory, SUPERBLOCK_NAME)
    locked = directory
    releases: list[Callable[[], None]] = []
    try:
        releases.append(files.lock(directory))
        locked = superblock
        if files.exists(superblock):
            releases.append(files.lock(superblock))
        now = diagnose(directory, files)
        if (now.files, now.copies) != (diagnosis.files, diagnosis.copies):
            raise DataFileError(
                f"{directory} has changed since it was looked at, by another vsr recover? Run this again"
            )
        aside = next(
            path for n in count(1) if not files.exists(os.path.join(path := f"{directory}/{ASIDE}{n}", REPORT_NAME))
        )
        _write_report(files, os.path.join(aside, REPORT_NAME), diagnosis)
        parts = (SUPERBLOCK_NAME, JOURNAL_NAME)  # also where one is a link, or a directory in its place
        there = {*diagnosis.files, *(name for name in parts if files.exists(os.path.join(directory, name)))}
        for name in sorted(there, key=lambda name: name != SUPERBLOCK_NAME):
            files.rename(os.path.join(directory, name), os.path.join(aside, name))
        files.sync_directory(aside)
        files.sync_directory(directory)
        _format_journal(files, os.path.join(directory, JOURNAL_NAME), state, diagnosis.geometry)
        write_atomically(files, superblock, b"".join(encode_copy(state, copy) for copy in range(COPIES)))
    except BlockingIOError as error:
        other = "stop the replica" if locked == superblock else "another vsr recover is at it; let it end"
        raise DataFileError(f"{locked} is in use by another process: {other} first") from error
    except OSError as error:
        raise DataFileError(f"{error.filename or directory}: {error.strerror or error}") from error
    finally:
        for release in releases:
            release()
    return aside


def _write_report(files: FileSystem, path: str, diagnosis: Diagnosis) -> None:
    lines = [f"{finding.file}: {finding.problem}\n" for finding in diagnosis.findings]
    file = files.create(path)
    try:
        file.write_at(0, "".join(lines).encode())
        file.sync()
    finally:
        file.close()


def _format_journal(files: FileSystem, path: str, state: SuperblockState, ring: Geometry | None) -> None:
    journal = files.create(path)
    if ring is None:
        Journal.format(journal, state.cluster, state.replica)
    else:
        RingJournal.format(journal, state.cluster, state.replica, ring.slots, ring.slot_size)
    journal.close()
