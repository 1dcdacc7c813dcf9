"""The superblock: views, log head and checkpoint in four copies; a crash at any byte leaves one of two versions.

Layout. Copy i lies at i * COPY_SIZE. A copy is a fixed big-endian header (magic, format version, sequence, identity,
configuration, views, head, checkpoint) with a blake2b-128 checksum over it and its copy number, then zeros up to
COPY_SIZE (one page, so no page is shared by two copies).

Write rule. A write has a sequence number above the one before and goes to copies 0 and 1, sync, copies 2 and 3, sync.
It is durable once both syncs returned. At any moment of it at least one pair of copies is whole: 2 and 3 hold the old
version while 0 and 1 are written, and 0 and 1 hold the new one while 2 and 3 are.

Read rule. The version with the largest sequence that at least ``QUORUM`` (2) valid copies hold, equal in every byte but
the copy number. A completed write is in all four, so no later crash can bring back an older one, and two copies may
rot. If no version has a quorum the replica refuses to boot: an unreadable superblock never counts as a fresh one, since
the replica may have voted in views it no longer knows (fault boot.view_file_unreadable_is_new). ``open`` repairs:
broken and older copies are written again; if a copy of a newer version lost for want of a quorum, all are written with
a sequence above it, so that it cannot come back.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from viewproof.impl.interface.durable import ClientTableConfig, Quorums, SuperblockState
from viewproof.impl.interface.ranges import range_error
from viewproof.impl.storage.file import File, FileSystem, StorageError, WriteRefusedError, is_unreadable
from viewproof.impl.storage.vanished import with_name

__all__ = [
    "COPIES",
    "COPY_SIZE",
    "QUORUM",
    "Superblock",
    "SuperblockError",
    "SuperblockRangeError",
    "SuperblockRefusedError",
]

COPIES = 4
QUORUM = 2
COPY_SIZE = 4096
MAGIC = b"VSRSUPER"
FORMAT_VERSION = 6

# magic, version, copy, sequence, cluster, group, replica, replica_count, q_r, q_v, client slots, sessions, gaps,
# view, log_view, head_op, clock, checkpoint, recovery, recoveries, head, snapshot
_BODY = struct.Struct(">8sHHQQHHHHHIBBQQQQQQI16s16s")
_PREFIX = struct.Struct(">8sH")  # magic, version
_CHECKSUM_SIZE = 16


class SuperblockError(StorageError):
    """The superblock cannot be read or written; the text names file, copies and remedy."""


class SuperblockRefusedError(WriteRefusedError, SuperblockError):
    """A write failed and left the superblock as it was."""


class SuperblockRangeError(SuperblockError):
    """A field of ``state`` is out of its range: a replica cannot go on from there, or the audit not follow it."""

    def __init__(self, text: str, state: SuperblockState) -> None:
        super().__init__(text)
        self.state = state


def encode_copy(state: SuperblockState, copy: int) -> bytes:
    """One copy, COPY_SIZE bytes. Raises SuperblockError if a field does not fit."""
    try:
        body = _BODY.pack(
            MAGIC,
            FORMAT_VERSION,
            copy,
            state.sequence,
            state.cluster,
            state.group,
            state.replica,
            state.replica_count,
            state.quorums.replication,
            state.quorums.view_change,
            state.clients.slots,
            state.clients.sessions,
            state.clients.gaps,
            state.view,
            state.log_view,
            state.head_op,
            state.clock,
            state.checkpoint,
            state.recovery,
            state.recoveries,
            bytes.fromhex(state.head_checksum) if state.head_checksum else bytes(16),
            bytes.fromhex(state.snapshot) if state.snapshot else bytes(16),
        )
    except (struct.error, ValueError) as error:
        raise SuperblockError(f"a superblock field does not fit its width: {error}: {state}") from error
    checksum = hashlib.blake2b(body, digest_size=_CHECKSUM_SIZE).digest()
    return (checksum + body).ljust(COPY_SIZE, b"\0")


def decode_copy(data: bytes, copy: int) -> tuple[SuperblockState | None, str]:
    """(state, "") of a valid copy, else (None, reason)."""
    if len(data) != COPY_SIZE:
        return None, f"{len(data)} of {COPY_SIZE} bytes"
    checksum, body = data[:_CHECKSUM_SIZE], data[_CHECKSUM_SIZE : _CHECKSUM_SIZE + _BODY.size]
    if hashlib.blake2b(body, digest_size=_CHECKSUM_SIZE).digest() != checksum:
        magic, version = _PREFIX.unpack_from(body)
        mended = _PREFIX.pack(magic, FORMAT_VERSION) + body[_PREFIX.size :]
        if hashlib.blake2b(mended, digest_size=_CHECKSUM_SIZE).digest() == checksum:
            return None, f"the version is damaged: {version}, and all else is of {FORMAT_VERSION}"
        if magic == MAGIC and 0 < version < FORMAT_VERSION:
            return None, f"format version {version}, this program reads {FORMAT_VERSION}"
        return None, "checksum does not match"
    magic, version, number, sequence, *rest = _BODY.unpack(body)
    *identity, view, log_view, head_op, clock, checkpoint, recovery, recoveries, head, snapshot = rest
    if magic != MAGIC:
        return None, f"magic is {magic!r}, not {MAGIC!r}"
    if version != FORMAT_VERSION:
        return None, f"format version {version}, this program reads {FORMAT_VERSION}"
    if number != copy:
        return None, f"this is copy {number} (misdirected write)"
    if any(data[_CHECKSUM_SIZE + _BODY.size :]):
        return None, "padding is not zero"
    cluster, group, replica, replica_count, quorum_replication, quorum_view_change, slots, sessions, gaps = identity
    return (
        SuperblockState(
            cluster=cluster,
            group=group,
            replica=replica,
            replica_count=replica_count,
            quorums=Quorums(replication=quorum_replication, view_change=quorum_view_change),
            clients=ClientTableConfig(slots=slots, sessions=bool(sessions), gaps=bool(gaps)),
            view=view,
            log_view=log_view,
            head_op=head_op,
            head_checksum=head.hex() if head_op else "",
            sequence=sequence,
            clock=clock,
            checkpoint=checkpoint,
            snapshot=snapshot.hex() if checkpoint else "",
            recovery=recovery,
            recoveries=recoveries,
        ),
        "",
    )


def _read_copy(file: File, copy: int) -> tuple[SuperblockState | None, str]:
    """A copy, or None and why it is none. Raises OSError if the medium is not what refuses it."""
    try:
        return decode_copy(file.read_at(copy * COPY_SIZE, COPY_SIZE), copy)
    except OSError as error:
        if not is_unreadable(error):
            raise
        return None, error.strerror or str(error)


class Superblock:
    """The four copies in one file, and the version they hold.

    After a failed write the old version is written again. If that fails, or a sync did, the state on disk is unknown
    between the old and the new version; the object then refuses further writes until it is opened again, and the caller
    must not act on either version.
    """

    def __init__(self, file: File, state: SuperblockState, problems: tuple[str, ...], check_views: bool = True) -> None:
        self._file = file
        self.state = state
        self.problems = problems
        self._check_views = check_views
        self._failed: str | None = None

    @classmethod
    def format(cls, file: File, state: SuperblockState) -> Superblock:
        """Write the first version to an empty file. Raises SuperblockError if the file is not empty."""
        if file.size():
            raise SuperblockError(f"{file.path}: not empty ({file.size()} bytes); refusing to overwrite it")
        block = cls(file, state, ())
        block._write_copies(state, range(COPIES))
        return block

    @classmethod
    def open(cls, file: File, check_views: bool = True, check_ranges: bool = True) -> Superblock:
        """Read by the quorum rule, repair copies that differ, return the block. Raises SuperblockError.

        What is returned is durable also if the process before this one was killed between a write and its sync.
        ``check_views=False`` lets later writes lower a view, for runs with a fault of ``faults.md`` switched on;
        ``check_ranges=False`` takes a version with a field out of its range, else SuperblockRangeError.
        """
        states: list[SuperblockState | None] = []
        problems: list[str] = []
        try:
            size = file.size()
            for copy in range(COPIES):
                state, reason = _read_copy(file, copy)
                states.append(state)
                if state is None:
                    problems.append(f"copy {copy} at offset {copy * COPY_SIZE}: {reason}")
        except OSError as error:
            raise SuperblockError(f"{file.path}: cannot read the superblock: {error.strerror}") from error
        valid = [state for state in states if state is not None]
        agreed = [state for state, count in Counter(valid).items() if count >= QUORUM]
        if not agreed:
            raise SuperblockError(_refusal(file.path, size, problems, valid))
        state = max(agreed, key=lambda version: version.sequence)
        if check_ranges and (out := range_error(state)) is not None:
            raise SuperblockRangeError(f"{file.path}: {out}. `vsr recover` says what to do", state)
        block = cls(file, state, tuple(problems), check_views)
        if all(other == state for other in states):
            block._sync()
        elif any(other != state and other.sequence >= state.sequence for other in valid):
            newest = max(version.sequence for version in valid)
            order = sorted(range(COPIES), key=lambda copy: states[copy] == state)
            block._write_copies(replace(state, sequence=newest + 1), order)
        else:
            block._write_copies(state, [copy for copy in range(COPIES) if states[copy] != state])
        return block

    def write(self, state: SuperblockState) -> None:
        """Make ``state`` durable; its ``sequence`` must be above the last one's.

        Raises SuperblockRefusedError if the disk refuses and the version before is durable again; SuperblockError if it
        is not (the old or the new version will be read at the next open), if a sync fails, if the sequence does not
        rise, or if view or log_view would fall.
        """
        if self._failed is not None:
            raise SuperblockError(f"{self._file.path}: an earlier write failed ({self._failed}); open it again")
        if state.sequence <= self.state.sequence:
            raise SuperblockError(
                f"{self._file.path}: sequence {self.state.sequence} -> {state.sequence} does not rise"
            )
        if (out := range_error(state)) is not None:
            raise SuperblockRangeError(f"{self._file.path}: {out}", state)
        lowered = state.view < self.state.view or state.log_view < self.state.log_view or state.log_view > state.view
        if lowered and self._check_views:
            raise SuperblockError(
                f"{self._file.path}: view {self.state.view} -> {state.view}, "
                f"log_view {self.state.log_view} -> {state.log_view}: neither may fall, nor log_view pass view"
            )
        if (state.checkpoint < self.state.checkpoint or state.head_op < state.checkpoint) and self._check_views:
            raise SuperblockError(
                f"{self._file.path}: checkpoint {self.state.checkpoint} -> {state.checkpoint} with the log head at op "
                f"{state.head_op}: the checkpoint may not fall, nor pass the head"
            )
        before = self.state
        try:
            self._put(state, range(COPIES))
        except OSError as error:
            # The last copies first: either they are the old version as it is, or the first ones are the new one, whole.
            self._write_copies(before, (*range(QUORUM, COPIES), *range(QUORUM)))
            raise SuperblockRefusedError(
                f"{self._file.path}: cannot write the superblock: {error.strerror or error}; the version before was "
                "written again"
            ) from error

    def keep(self, files: FileSystem) -> str:
        """A file that was cut, or lost its name, is written again; returns what was done. Raises FileVanishedError,
        OSError.
        """
        found = self._file.size()
        if found < COPIES * COPY_SIZE:
            self._write_copies(self.state, range(COPIES))
            return f"{self._file.path}: it was cut to {found} bytes while the process ran: it was written again"
        self._file, done = with_name(files, self._file)
        return done

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _sync(self) -> None:
        try:
            self._file.sync()
        except OSError as error:
            self._failed = error.strerror or str(error)
            raise SuperblockError(f"{self._file.path}: cannot sync the superblock: {self._failed}") from error

    def _write_copies(self, written: SuperblockState, order: Sequence[int]) -> None:
        """As `_put`, and what fails ends all writing: what the disk holds is unknown then."""
        try:
            self._put(written, order)
        except OSError as error:
            self._failed = error.strerror or str(error)
            raise SuperblockError(f"{self._file.path}: cannot write the superblock: {self._failed}") from error

    def _put(self, written: SuperblockState, order: Sequence[int]) -> None:
        """Write all copies, a pair at a time. A repair names the copies that differ first: the others stay whole.

        Raises OSError if a write fails, SuperblockError if a sync does: then no further write is tried.
        """
        copies = [encode_copy(written, copy) for copy in range(COPIES)]
        for first in range(0, len(order), QUORUM):
            for copy in order[first : first + QUORUM]:
                self._file.write_at(copy * COPY_SIZE, copies[copy])
            self._sync()
        self.state = written


def _refusal(path: str, size: int, problems: list[str], valid: list[SuperblockState]) -> str:
    held = ", ".join(f"sequence {state.sequence}" for state in valid) or "none"
    return (
        f"{path}: no version of the superblock is held by {QUORUM} of {COPIES} copies "
        f"(file of {size} bytes; valid copies: {held}; {'; '.join(problems) or 'no copy is broken'}). "
        "This replica will not start, since it may have voted in views it no longer knows. "
        "`vsr recover` says what to do"
    )
