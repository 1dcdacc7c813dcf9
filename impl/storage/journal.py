"""The journal: append-only records, each a prepare, and the log as a chain through them.

Layout. A file header (magic, format version, cluster, replica, blake2b-128) of FILE_HEADER_SIZE bytes, then records. A
record is a fixed big-endian header, the body, and zeros up to a multiple of ALIGNMENT. The header: blake2b-128 over the
rest of the header, the record's own offset and the body; magic, format version, flags; ``group``, the file offset at
which the append that wrote it began; the entry's checksum, parent, view, op, client, request, commit, session,
incarnation, feature; size of the body.

Append. One group of records is one write and one fdatasync, and a group is written only after the one before is
durable. A group that fails is cut off again. If its sync fails, or it cannot be cut off, the journal refuses further
appends until it is opened again, since what the disk holds is unknown then.

Recovery. Records are read to the end of the file. A broken record is torn if no valid record of a *later* group
follows: its group was never known to be durable, so the file is cut there, and the cut reported (a disk may also keep a
later record of that group and lose an earlier one). If a later group follows, its group had been durable: the file is
damaged, and is refused by name and offset. A damaged last group cannot be told from a torn one; it is cut.

The log (docs/core-protocol.md, impl/durable.py): the chain from the superblock's head back to op 1, extended forward by
appended (not repair) records of view = log_view whose parent is the head.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from impl.durable import SuperblockState
from impl.messages import CHECKSUM_NONE, Prepare, PrepareHeader, prepare_is_valid
from impl.storage.file import File, StorageError

__all__ = ["BODY_SIZE_MAX", "Journal", "JournalError", "JournalRecovery"]

FILE_MAGIC = b"VSRJOURN"
RECORD_MAGIC = 0x56535252  # "VSRR"
FORMAT_VERSION = 2
FILE_HEADER_SIZE = 64
ALIGNMENT = 8
BODY_SIZE_MAX = 1 << 26
"""Largest body of a record, bytes; a larger size in a header is read as damage."""

_CHECKSUM_SIZE = 16
_FILE_HEADER = struct.Struct(">8sHHQ")  # magic, version, replica, cluster
# magic, version, flags, group, checksum, parent, view, op, client, request, commit, session, incarnation, feature, size
_RECORD = struct.Struct(">IHHQ16s16sQQQQQQQQI")
_RECORD_HEADER_SIZE = _CHECKSUM_SIZE + _RECORD.size
_FLAG_REPAIR = 1
_FLAG_FIRST = 2  # parent is "" (op 1)


class JournalError(StorageError):
    """The journal cannot be read, or an append failed; the text names file, offset and remedy."""


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


@dataclass(frozen=True, slots=True)
class _Record:
    """Where a record lies; ``size`` is its whole length with header and padding."""

    offset: int
    size: int
    group: int
    repair: bool
    header: PrepareHeader


class Journal:
    """The journal of one replica over an open file. Not thread-safe: one append at a time."""

    def __init__(self, file: File, end: int, recovery: JournalRecovery) -> None:
        self._file = file
        self._end = end
        self.recovery = recovery
        self._by_checksum: dict[str, _Record] = {}
        self._appended: dict[str, _Record] = {}  # by parent and view: the newest appended record
        self._failed: str | None = None

    @classmethod
    def format(cls, file: File, cluster: int, replica: int) -> Journal:
        """Write the file header to an empty file. Raises JournalError if the file is not empty."""
        if file.size():
            raise JournalError(f"{file.path}: not empty ({file.size()} bytes); refusing to overwrite it")
        try:
            file.write_at(0, _encode_file_header(cluster, replica))
            file.sync()
        except OSError as error:
            raise JournalError(f"{file.path}: cannot write the journal's header: {error.strerror}") from error
        return cls(file, FILE_HEADER_SIZE, JournalRecovery(0))

    @classmethod
    def open(cls, file: File, cluster: int, replica: int) -> Journal:
        """Scan all records, cut off a torn end, index the rest. Raises JournalError (see the module's text)."""
        try:
            _check_file_header(file, cluster, replica)
            journal = cls(file, FILE_HEADER_SIZE, JournalRecovery(0))
            journal._scan()
            # Also without a cut: a process killed before its fdatasync leaves records that only the page cache has.
            file.sync()
        except OSError as error:
            raise JournalError(f"{file.path}: cannot read or sync the journal: {error.strerror or error}") from error
        return journal

    @property
    def size(self) -> int:
        """Bytes of the file that hold valid records, header included."""
        return self._end

    def append(self, prepares: Sequence[Prepare], repair: bool = False) -> None:
        """Append in order, with one write and one fdatasync; durable when this returns.

        Raises JournalError if the disk refuses (nothing of the group counts then) or a body is too large.
        """
        if self._failed is not None:
            raise JournalError(f"{self._file.path}: an earlier append failed ({self._failed}); open the journal again")
        group = self._end
        records: list[_Record] = []
        parts: list[bytes] = []
        offset = group
        for prepare in prepares:
            data = _encode_record(prepare, offset, group, repair, self._file.path)
            parts.append(data)
            records.append(_Record(offset, len(data), group, repair, prepare.header))
            offset += len(data)
        if not parts:
            return
        try:
            self._file.write_at(group, b"".join(parts))
        except OSError as error:
            self._undo(group, error)
            raise JournalError(
                f"{self._file.path}: append of {len(parts)} records at offset {group} failed: "
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
        self._end = offset

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

    def log(self, superblock: SuperblockState) -> tuple[Prepare, ...]:
        """The log that ``superblock`` names, ops 1..n. Raises JournalError if the chain is broken."""
        chain: list[_Record] = []
        op, checksum = superblock.head_op, superblock.head_checksum
        while op > 0:
            record = self._by_checksum.get(checksum)
            if record is None or record.header.op != op:
                raise JournalError(
                    f"{self._file.path}: no record of op {op} with checksum {checksum or '(none)'}, which the log that "
                    f"ends at op {superblock.head_op} ({superblock.head_checksum}) needs. The replica will not start "
                    "on a shorter log. Restore the file from a copy of this very replica, or replace the replica"
                )
            chain.append(record)
            op, checksum = op - 1, record.header.parent
        if checksum != CHECKSUM_NONE:
            raise JournalError(f"{self._file.path}: op 1 of the log has the parent {checksum}; expected none")
        chain.reverse()
        head = superblock.head_checksum
        while True:
            record = self._appended.get(_extension_key(head, superblock.log_view))
            if record is None or record.header.op != len(chain) + 1:
                break
            chain.append(record)
            head = record.header.checksum
        return tuple(self._load(record) for record in chain)

    def _load(self, record: _Record) -> Prepare:
        try:
            data = self._file.read_at(record.offset, record.size)
        except OSError as error:
            raise JournalError(
                f"{self._file.path}: cannot read op {record.header.op} at offset {record.offset}: {error.strerror}"
            ) from error
        found, body, reason = _decode_record(data, record.offset)
        if found is None:
            raise JournalError(f"{self._file.path}: op {record.header.op} at offset {record.offset}: {reason}")
        return Prepare(header=found.header, body=body)

    def _remember(self, record: _Record) -> None:
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

    def _scan(self) -> None:
        size = self._file.size()
        offset = FILE_HEADER_SIZE
        count = 0
        while offset < size:
            record, reason = self._read_record(offset)
            if record is None:
                self._refuse_damage(offset, size, reason)
                self._file.truncate(offset)
                self.recovery = JournalRecovery(count, offset, size - offset, reason)
                self._end = offset
                return
            self._remember(record)
            count += 1
            offset += record.size
        self._end = offset
        self.recovery = JournalRecovery(count)

    def _read_record(self, offset: int) -> tuple[_Record | None, str]:
        head = self._file.read_at(offset, _RECORD_HEADER_SIZE)
        if len(head) < _RECORD_HEADER_SIZE:
            return None, f"{len(head)} of {_RECORD_HEADER_SIZE} bytes of a record header"
        magic, *_, size = _RECORD.unpack_from(head, _CHECKSUM_SIZE)
        if magic != RECORD_MAGIC:
            return None, "no record magic"
        if size > BODY_SIZE_MAX:
            return None, f"size {size} is above {BODY_SIZE_MAX}"
        length = _padded(_RECORD_HEADER_SIZE + size)
        record, _, reason = _decode_record(head + self._file.read_at(offset + len(head), length - len(head)), offset)
        if record is None and "format version" in reason:
            raise JournalError(f"{self._file.path}: record at offset {offset}: {reason}")
        return record, reason

    def _refuse_damage(self, broken: int, size: int, reason: str) -> None:
        """Raise if a record of a later group follows the broken one at ``broken``."""
        magic = struct.pack(">I", RECORD_MAGIC)
        step = 1 << 20
        for start in range(broken, size, step):
            chunk = self._file.read_at(start, step + _CHECKSUM_SIZE + len(magic))
            position = chunk.find(magic)
            while position >= 0:
                offset = start + position - _CHECKSUM_SIZE
                if offset > broken and offset % ALIGNMENT == 0:
                    record, _ = self._read_record(offset)
                    if record is not None and record.group > broken:
                        raise JournalError(
                            f"{self._file.path}: the record at offset {broken} is damaged ({reason}), but a later "
                            f"one at offset {offset} (op {record.header.op}) is whole, so it had been durable. The "
                            "replica will not start without it. Restore the file from a copy of this very replica, or "
                            "replace the replica"
                        )
                position = chunk.find(magic, position + 1)


def _extension_key(parent: str, view: int) -> str:
    return f"{parent}/{view}"


def _padded(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT


def _digest(offset: int, rest: bytes) -> bytes:
    return hashlib.blake2b(struct.pack(">Q", offset) + rest, digest_size=_CHECKSUM_SIZE).digest()


def _encode_file_header(cluster: int, replica: int) -> bytes:
    body = _FILE_HEADER.pack(FILE_MAGIC, FORMAT_VERSION, replica, cluster)
    return (body + hashlib.blake2b(body, digest_size=_CHECKSUM_SIZE).digest()).ljust(FILE_HEADER_SIZE, b"\0")


def _check_file_header(file: File, cluster: int, replica: int) -> None:
    data = file.read_at(0, FILE_HEADER_SIZE)
    body = data[: _FILE_HEADER.size]
    checksum = data[_FILE_HEADER.size : _FILE_HEADER.size + _CHECKSUM_SIZE]
    if len(data) < FILE_HEADER_SIZE or hashlib.blake2b(body, digest_size=_CHECKSUM_SIZE).digest() != checksum:
        raise JournalError(
            f"{file.path}: the file header (bytes 0..{FILE_HEADER_SIZE - 1}) is damaged or not a journal's. "
            "Restore the file from a copy of this very replica, or replace the replica"
        )
    magic, version, its_replica, its_cluster = _FILE_HEADER.unpack(body)
    if magic != FILE_MAGIC:
        raise JournalError(f"{file.path}: not a journal (magic {magic!r})")
    if version != FORMAT_VERSION:
        raise JournalError(f"{file.path}: format version {version}; this program reads {FORMAT_VERSION}")
    if (its_cluster, its_replica) != (cluster, replica):
        raise JournalError(
            f"{file.path}: belongs to replica {its_replica} of cluster {its_cluster}, "
            f"not to replica {replica} of cluster {cluster}"
        )


def _encode_record(prepare: Prepare, offset: int, group: int, repair: bool, path: str) -> bytes:
    header = prepare.header
    if len(prepare.body) > BODY_SIZE_MAX or header.size != len(prepare.body):
        raise JournalError(
            f"{path}: op {header.op}: body of {len(prepare.body)} bytes, header says {header.size}, "
            f"at most {BODY_SIZE_MAX} are allowed"
        )
    flags = (_FLAG_REPAIR if repair else 0) | (_FLAG_FIRST if header.parent == CHECKSUM_NONE else 0)
    try:
        rest = _RECORD.pack(
            RECORD_MAGIC,
            FORMAT_VERSION,
            flags,
            group,
            bytes.fromhex(header.checksum),
            bytes.fromhex(header.parent),
            header.view,
            header.op,
            header.client,
            header.request,
            header.commit,
            header.session,
            header.incarnation,
            header.feature,
            header.size,
        )
    except (struct.error, ValueError) as error:
        raise JournalError(f"{path}: op {header.op}: a header field does not fit its width: {error}") from error
    content = rest + prepare.body
    content += bytes(_padded(_CHECKSUM_SIZE + len(content)) - _CHECKSUM_SIZE - len(content))
    return _digest(offset, content) + content


def _decode_record(data: bytes, offset: int) -> tuple[_Record | None, bytes, str]:
    """(record, body, "") if ``data`` is the whole record that was written at ``offset``, else (None, b"", reason)."""
    *fields, size = _RECORD.unpack_from(data, _CHECKSUM_SIZE)
    length = _padded(_RECORD_HEADER_SIZE + size)
    if len(data) < length:
        return None, b"", f"{len(data)} of {length} bytes of a record"
    if _digest(offset, data[_CHECKSUM_SIZE:length]) != data[:_CHECKSUM_SIZE]:
        return None, b"", "checksum does not match"
    _, version, flags, group, checksum, parent, view, op, client, request, commit, *numbers = fields
    if version != FORMAT_VERSION:
        return None, b"", f"format version {version}; this program reads {FORMAT_VERSION}"
    header = PrepareHeader(
        checksum=checksum.hex(),
        parent=CHECKSUM_NONE if flags & _FLAG_FIRST else parent.hex(),
        view=view,
        op=op,
        client=client,
        request=request,
        commit=commit,
        size=size,
        session=numbers[0],
        incarnation=numbers[1],
        feature=numbers[2],
    )
    body = data[_RECORD_HEADER_SIZE : _RECORD_HEADER_SIZE + size]
    if not prepare_is_valid(Prepare(header=header, body=body)):
        return None, b"", f"the entry's own checksum {header.checksum} does not match"
    return _Record(offset, length, group, bool(flags & _FLAG_REPAIR), header), body, ""
