"""The journal: append-only records, each a prepare, and the log as a chain through them.

Layout. A file header (magic, format version, cluster, replica, blake2b-128) in a page of its own, with the mark; then
appends, each a header (its length, blake2b-128) and records. A record is a fixed big-endian header, the body, and zeros
up to a multiple of ALIGNMENT. The header: blake2b-128 over the rest of the header, the record's own offset and the
body; magic, format version, flags; ``group``, the file offset at which the append that wrote it began; the entry's
checksum, parent, view, op, client, request, commit, session, incarnation, feature; size of the body. Behind the first
page every byte is written XOR 0x9d, so that what was never written can be told.

Append. One group of records is one write and one fdatasync, and a group is written only after the one before is
durable. Then the mark in the first page says how far the journal is durable; it is written but not synced, so it costs
no time, and becomes durable with the next append, or when the system writes it. A group that fails is cut off again. If
its sync fails, or it cannot be cut off, the journal refuses further appends until it is opened again, since what the
disk holds is unknown then.

Drain. Records that a snapshot has made useless are dropped by writing the others to a new file, which then takes the
journal's name; its header says how far it was durable from the start.

Recovery (impl/storage/journal_scan.py). Records are read to the end of the file. A last group that is provably torn is
cut, and the cut reported. Anything else that is broken is damage: it had been durable, or may have been acknowledged.
What lies between the valid records is a gap. `damage` says what is left of the log, for the other replicas to mend; a
cluster of one refuses, by name and offset. The next drain ends it.

The log (docs/core-protocol.md, impl/interface/durable.py): the chain from the superblock's head back to its checkpoint,
extended forward by appended (not repair) records of view = log_view whose parent is the head.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from viewproof.impl.interface.durable import DamagedLog, SuperblockState
from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare, PrepareHeader
from viewproof.impl.storage.file import TEMPORARY_SUFFIX, File, FileSystem, WriteRefusedError
from viewproof.impl.storage.journal_scan import read_record, scan
from viewproof.impl.storage.records import (
    BODY_SIZE_MAX,
    FILE_HEADER_SIZE,
    GROUP_HEADER_SIZE,
    MARK_OFFSET,
    RECORD_HEADER_SIZE,
    JournalError,
    Record,
    check_file_header,
    encode_file_header,
    encode_group,
    encode_mark,
    encode_record,
    padded,
    veil,
)
from viewproof.impl.storage.vanished import require_size, with_name

RECORD_SIZE_MIN = padded(RECORD_HEADER_SIZE)

COPY_BYTES = 4 << 20
"""What a drain holds of the records that it keeps."""

__all__ = ["BODY_SIZE_MAX", "FILE_HEADER_SIZE", "Journal", "JournalError", "JournalRecovery", "JournalRefusedError"]


class JournalRefusedError(WriteRefusedError, JournalError):
    """An append or a drain failed and left the journal as it was."""


@dataclass(frozen=True, slots=True)
class JournalRecovery:
    """What opening found: valid records, and the cut (offset and bytes removed; None and 0: nothing was cut)."""

    records: int
    cut_offset: int | None = None
    cut_bytes: int = 0
    reason: str = ""

    def __str__(self) -> str:
        if self.cut_offset is None:
            return f"{self.records} records"
        return f"{self.records} records; {self.cut_bytes} bytes cut off at offset {self.cut_offset}: {self.reason}"


class Journal:
    """The journal of one replica over an open file. Not thread-safe: one append at a time."""

    def __init__(self, file: File, recovery: JournalRecovery, cluster: int, replica: int) -> None:
        self._file = file
        self._end = self._size = FILE_HEADER_SIZE  # a file that was cut before it was opened is shorter than its end
        self._identity = (cluster, replica)
        self.recovery = recovery
        self._by_checksum: dict[str, Record] = {}
        self._appended: dict[str, Record] = {}  # by parent and view: the newest appended record
        self._failed: str | None = None
        self._gaps: list[tuple[int, int, str]] = []  # offsets of damage: begin and end; its reason

    @classmethod
    def format(cls, file: File, cluster: int, replica: int) -> Journal:
        """Write the file header to an empty file. Raises JournalError if the file is not empty."""
        if file.size():
            raise JournalError(f"{file.path}: not empty ({file.size()} bytes); refusing to overwrite it")
        try:
            file.write_at(0, encode_file_header(cluster, replica))
            file.sync()
        except OSError as error:
            raise JournalError(f"{file.path}: cannot write the journal's header: {error.strerror}") from error
        return cls(file, JournalRecovery(0), cluster, replica)

    @classmethod
    def open(cls, file: File, cluster: int, replica: int) -> Journal:
        """Scan all records, cut off a torn end, index the rest. Raises JournalError (see the module's text)."""
        try:
            durable_end = check_file_header(file, cluster, replica)
            journal = cls(file, JournalRecovery(0), cluster, replica)
            journal._scan(durable_end)
            # Also without a cut: a process killed before its fdatasync leaves records that only the page cache has.
            file.sync()
            if journal._end > durable_end:
                journal._mark()
        except OSError as error:
            raise JournalError(f"{file.path}: cannot read or sync the journal: {error.strerror or error}") from error
        return journal

    @property
    def size(self) -> int:
        """Bytes of the file that hold valid records, header included."""
        return self._end

    def append(self, prepares: Sequence[Prepare], repair: bool = False) -> None:
        """Append in order, with one write and one fdatasync; durable when this returns.

        Raises JournalRefusedError if the disk refuses and the journal is as it was, JournalError if it cannot go on or
        a body is too large.
        """
        if self._failed is not None:
            raise JournalError(f"{self._file.path}: an earlier append failed ({self._failed}); open the journal again")
        if not prepares:
            return
        group = self._end
        records, data = self._encode([(prepare, repair) for prepare in prepares], group)
        try:
            self._file.write_at(group, data)
        except OSError as error:
            self._undo(group, error)
            refusal = JournalError if self._failed is not None else JournalRefusedError
            raise refusal(
                f"{self._file.path}: append of {len(records)} records at offset {group} failed: "
                f"{error.strerror or error}; nothing of it was kept"
            ) from error
        try:
            self._file.sync()
        except OSError as error:
            self._failed = error.strerror or str(error)
            raise JournalError(
                f"{self._file.path}: sync after offset {group} failed: {self._failed}; "
                "what the disk holds is unknown, so the journal must be opened again"
            ) from error
        for record in records:
            self._remember(record)
        self._end = self._size = group + len(data)
        self._mark()

    def _mark(self) -> None:
        """Says that all up to the end is durable. Best effort: without it less can be told from a torn write."""
        try:
            self._file.write_at(MARK_OFFSET, encode_mark(self._end))
        except OSError:
            return

    def _encode(self, prepares: Sequence[tuple[Prepare, bool]], group: int) -> tuple[list[Record], bytes]:
        """The records of an append at the offset `group`, each repair or not, and its bytes as they are written."""
        records: list[Record] = []
        parts: list[bytes] = []
        offset = group + GROUP_HEADER_SIZE
        for prepare, repair in prepares:
            data = encode_record(prepare, offset, group, repair, self._file.path)
            parts.append(data)
            records.append(Record(offset, len(data), group, repair, prepare.header))
            offset += len(data)
        return records, veil(encode_group(group, offset - group) + b"".join(parts))

    def drain(self, files: FileSystem, op: int, log: Collection[str] | None = None) -> None:
        """Drop the records at or below ``op``, and those above it that ``log`` (checksums) does not name, if given.

        What is left is written to a new file that takes the journal's name, so a crash leaves the old or the new one.
        Raises JournalRefusedError if the journal is as it was, JournalError if it cannot go on.
        """
        if self._failed is not None:
            raise JournalError(f"{self._file.path}: an earlier write failed ({self._failed}); open the journal again")
        if self._gaps and log is None:
            raise JournalRefusedError(f"{self._file.path}: damaged; it is drained once the log is whole again")
        kept = [record for record in self._live() if record.header.op > op]
        if log is not None:
            kept = [record for record in kept if record.header.checksum in log]
        path = self._file.path
        temporary = path + TEMPORARY_SUFFIX
        file: File | None = None
        try:
            if files.exists(temporary):
                files.remove(temporary)
            file = files.create(temporary)
            records, end = self._copy(kept, file)
            files.rename(temporary, path)
        except OSError as error:
            if file is not None:
                file.close()
            _remove(files, temporary)
            raise JournalRefusedError(f"{path}: cannot drain the journal: {error.strerror or error}") from error
        self._file.close()
        file.path = path
        self._file, self._end, self._size = file, end, end
        self._by_checksum, self._appended, self._gaps = {}, {}, []
        for record in records:
            self._remember(record)
        try:
            files.sync_directory(os.path.dirname(path))
        except OSError as error:
            self._failed = error.strerror or str(error)
            raise JournalError(
                f"{path}: sync of the directory after a drain failed: {self._failed}; which file the disk holds is "
                "unknown, so the journal must be opened again"
            ) from error

    def _live(self) -> list[Record]:
        """Every entry's record by offset; one that was appended before it was written as repair counts as appended."""
        live = dict(self._by_checksum)
        live.update((record.header.checksum, record) for record in self._appended.values())
        return sorted(live.values(), key=lambda record: record.offset)

    def _copy(self, kept: Sequence[Record], file: File) -> tuple[list[Record], int]:
        """Writes the records to an empty file, durably, some MiB at a time. Returns them where they lie now, and the
        end.
        """
        copied: list[Record] = []
        end = FILE_HEADER_SIZE
        group: list[tuple[Prepare, bool]] = []
        size = 0
        for number, record in enumerate(kept, 1):
            group.append((self._load(record), record.repair))
            size += record.size
            if size >= COPY_BYTES or number == len(kept):
                records, data = self._encode(group, end)
                file.write_at(end, data)
                copied += records
                end += len(data)
                group, size = [], 0
        file.write_at(0, encode_file_header(*self._identity, end))
        file.sync()
        return copied, end

    @property
    def damaged(self) -> tuple[str, ...]:
        """Where records are broken that had been durable, or may have been, and why."""
        return tuple(
            f"{self._file.path}: bytes {begin}..{end - 1} are damaged: {why}" for begin, end, why in self._gaps
        )

    def damage(self, superblock: SuperblockState) -> DamagedLog | None:
        """What is left of the log that `superblock` names, if records were lost. Raises JournalError if n = 1.

        A gap may hide records of log_view above the last one that is whole, unless that one was appended behind it.
        """
        if not self._gaps:
            return None
        if superblock.replica_count == 1:
            raise JournalError(
                f"{self.damaged[0]}, and this is not a write that was cut short. The replica will not start without "
                "it, and there is no other one to fetch it from. Restore the file from a copy of this very replica; "
                "`vsr recover` says what is wrong"
            )
        base = superblock.checkpoint
        head_op, head, appended_at = self._end_of(superblock)
        hidden = sum(end - begin for begin, end, _ in self._gaps if begin >= appended_at)
        held = tuple(self._load(record) for record in self._by_checksum.values() if record.header.op > base)
        return DamagedLog(held, (), head_op, head, head_op + -(-hidden // RECORD_SIZE_MIN))

    def _end_of(self, superblock: SuperblockState) -> tuple[int, str, int]:
        """Op, checksum and offset of the last entry of log_view that is whole; the log leads to it, over gaps.

        Offset 0 for the superblock's head: it may have been written again since, from another replica.
        """
        found = [record for record in self._appended.values() if record.header.view == superblock.log_view]
        last = max(found, key=lambda record: record.header.op, default=None)
        if last is None or last.header.op <= superblock.head_op:
            return superblock.head_op, superblock.head_checksum, 0
        return last.header.op, last.header.checksum, last.offset

    def on_superblock(self, superblock: SuperblockState) -> None:
        """The superblock is durable: nothing depends on it, as nothing is overwritten."""

    def relics(self, op: int) -> int:
        """Number of entries at or below ``op``."""
        return sum(record.header.op <= op for record in self._by_checksum.values())

    def require_whole(self) -> None:
        """Raises FileVanishedError if the file is shorter than what is durable in it."""
        require_size(self._file, self._size)

    def keep(self, files: FileSystem) -> str:
        """A file that lost its name gets a durable copy under it; returns what was done. Raises FileVanishedError,
        OSError.
        """
        self._file, done = with_name(files, self._file)
        return done

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, checksum: str) -> Prepare | None:
        """The prepare of this checksum, or None. Raises JournalError if its record became unreadable."""
        record = self._by_checksum.get(checksum)
        return None if record is None else self._load(record)

    def records(self) -> list[tuple[int, int, bool, PrepareHeader]]:
        """(offset, size, repair, header) of every entry's newest record, by offset."""
        found = sorted(self._by_checksum.values(), key=lambda record: record.offset)
        return [(record.offset, record.size, record.repair, record.header) for record in found]

    def __contains__(self, checksum: str) -> bool:
        return checksum in self._by_checksum

    def log(self, superblock: SuperblockState, base_checksum: str | None = CHECKSUM_NONE) -> tuple[Prepare, ...]:
        """The log that ``superblock`` names, above its checkpoint, whose entry has ``base_checksum`` (None: not known).

        Raises JournalError if the chain is broken.
        """
        return tuple(self._load(record) for record in self._chain(superblock, base_checksum))

    def log_names(self, superblock: SuperblockState, end: int | None = None) -> set[str]:
        """The checksums of the log that ``superblock`` names, up to ``end``. Raises JournalError as ``log`` does.

        Of a damaged log also all that lies below what is missing.
        """
        if self._gaps:
            headers = self._reachable(superblock)
        else:
            headers = [record.header for record in self._chain(superblock, None)]
        return {header.checksum for header in headers if end is None or header.op <= end}

    def _reachable(self, superblock: SuperblockState) -> list[PrepareHeader]:
        op, checksum, _ = self._end_of(superblock)
        headers: list[PrepareHeader] = []
        while op > superblock.checkpoint and (record := self._by_checksum.get(checksum)) is not None:
            headers.append(record.header)
            op, checksum = op - 1, record.header.parent
        return headers + [record.header for record in self._by_checksum.values() if record.header.op < op]

    def _chain(self, superblock: SuperblockState, base_checksum: str | None) -> list[Record]:
        chain: list[Record] = []
        base = superblock.checkpoint
        op, checksum = superblock.head_op, superblock.head_checksum
        while op > base:
            record = self._by_checksum.get(checksum)
            if record is None or record.header.op != op:
                raise JournalError(
                    f"{self._file.path}: no record of op {op} with checksum {checksum or '(none)'}, which the log that "
                    f"ends at op {superblock.head_op} ({superblock.head_checksum}) needs. The replica will not start "
                    "on a shorter log. `vsr recover` says what to do"
                )
            chain.append(record)
            op, checksum = op - 1, record.header.parent
        if base_checksum is not None and checksum != base_checksum:
            raise JournalError(
                f"{self._file.path}: op {base + 1} of the log has the parent {checksum or 'none'}; expected "
                f"{base_checksum or 'none'}, the entry at the checkpoint {base}"
            )
        chain.reverse()
        head = superblock.head_checksum
        while True:
            record = self._appended.get(_extension_key(head, superblock.log_view))
            if record is None or record.header.op != base + len(chain) + 1:
                break
            chain.append(record)
            head = record.header.checksum
        return chain

    def _load(self, record: Record) -> Prepare:
        try:
            found, body, reason = read_record(self._file, record.offset)
        except OSError as error:
            raise JournalError(
                f"{self._file.path}: cannot read op {record.header.op} at offset {record.offset}: {error.strerror}"
            ) from error
        if found is None:
            raise JournalError(f"{self._file.path}: op {record.header.op} at offset {record.offset}: {reason}")
        return Prepare(header=found.header, body=body)

    def _remember(self, record: Record) -> None:
        self._by_checksum[record.header.checksum] = record
        if not record.repair:
            self._appended[_extension_key(record.header.parent, record.header.view)] = record

    def _undo(self, group: int, error: OSError) -> None:
        """Cut a half-written group off; if even that fails, refuse further appends."""
        try:
            self._file.truncate(group)
            self._file.sync()
        except OSError:
            self._failed = error.strerror or str(error)

    def _scan(self, durable_end: int) -> None:
        size = self._file.size()
        found = scan(self._file, durable_end)
        for record in found.records:
            self._remember(record)
        self._end, self._gaps = found.end, found.gaps
        self._size = min(found.end, size)
        self.recovery = JournalRecovery(len(found.records))
        if found.cut is not None:
            self._file.truncate(found.cut)
            self.recovery = JournalRecovery(len(found.records), found.cut, size - found.cut, found.reason)


def _remove(files: FileSystem, path: str) -> None:
    """Removes a temporary file, if it can be removed; else the next drain does."""
    try:
        if files.exists(path):
            files.remove(path)
    except OSError:
        return


def _extension_key(parent: str, view: int) -> str:
    return f"{parent}/{view}"
