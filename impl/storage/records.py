"""The bytes of a journal: file header, mark, headers of appends, records (docs/storage-and-net.md has the layout)."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare, PrepareHeader, prepare_is_valid
from viewproof.impl.storage.file import File, StorageError

FILE_MAGIC = b"VSRJOURN"
RECORD_MAGIC = 0x56535252  # "VSRR"
FORMAT_VERSION = 3
"""Of records, in a ring, too."""
JOURNAL_VERSION = 4
"""Of the file of an append-only journal."""
FILE_HEADER_SIZE = 4096
"""One page, so that the header and the mark share none with what was appended."""
MARK_OFFSET = 512
MARK_MAGIC = b"VSRJMARK"
GROUP_MAGIC = 0x56535247  # "VSRG"
ALIGNMENT = 8
BODY_SIZE_MAX = 1 << 26
"""Largest body of a record, bytes; a larger size in a header is read as damage."""

CHECKSUM_SIZE = 16
FILE_HEADER = struct.Struct(">8sHHQQ")  # magic, version, replica, cluster, durable_end
# magic, version, flags, group, checksum, parent, view, op, client, request, commit, session, incarnation, feature, size
RECORD = struct.Struct(">IHHQ16s16sQQQQQQQQI")
RECORD_HEADER_SIZE = CHECKSUM_SIZE + RECORD.size
MARK = struct.Struct(">8sQ")  # magic, durable_end
GROUP = struct.Struct(">IIQ")  # magic, 0, bytes of the append with this header
GROUP_HEADER_SIZE = CHECKSUM_SIZE + GROUP.size
_VEIL = bytes(byte ^ 0x9D for byte in range(256))
_FLAG_REPAIR = 1
_FLAG_FIRST = 2  # parent is "" (op 1)


class JournalError(StorageError):
    """The journal cannot be read, or an append failed; the text names file, offset and remedy."""


@dataclass(frozen=True, slots=True)
class Record:
    """Where a record lies; ``size`` is its whole length with header and padding."""

    offset: int
    size: int
    group: int
    repair: bool
    header: PrepareHeader


def padded(length: int) -> int:
    """The length of a record with its padding."""
    return -(-length // ALIGNMENT) * ALIGNMENT


def digest_at(offset: int, rest: bytes) -> bytes:
    """Checksum of bytes that lie at this offset of the file."""
    return hashlib.blake2b(struct.pack(">Q", offset) + rest, digest_size=CHECKSUM_SIZE).digest()


def encode_file_header(cluster: int, replica: int, durable_end: int = FILE_HEADER_SIZE) -> bytes:
    """The file header; bytes up to `durable_end` are durable since the file has its name."""
    body = FILE_HEADER.pack(FILE_MAGIC, JOURNAL_VERSION, replica, cluster, durable_end)
    return (body + hashlib.blake2b(body, digest_size=CHECKSUM_SIZE).digest()).ljust(FILE_HEADER_SIZE, b"\0")


def check_file_header(file: File, cluster: int, replica: int) -> int:
    """The durable end by file header and mark. Raises JournalError if the file is not this replica's journal."""
    data = file.read_at(0, FILE_HEADER_SIZE)
    body = data[: FILE_HEADER.size]
    checksum = data[FILE_HEADER.size : FILE_HEADER.size + CHECKSUM_SIZE]
    if len(data) >= FILE_HEADER.size + CHECKSUM_SIZE:
        magic, version, its_replica, its_cluster, durable_end = FILE_HEADER.unpack(body)
        whole = hashlib.blake2b(body, digest_size=CHECKSUM_SIZE).digest() == checksum
        if magic == FILE_MAGIC and (0 < version < JOURNAL_VERSION or (whole and version != JOURNAL_VERSION)):
            raise JournalError(
                f"{file.path}: format version {version}; this program reads {JOURNAL_VERSION}. "
                "`vsr recover` says what to do"
            )
        if magic == FILE_MAGIC and whole and len(data) == FILE_HEADER_SIZE:
            if (its_cluster, its_replica) != (cluster, replica):
                raise JournalError(
                    f"{file.path}: belongs to replica {its_replica} of cluster {its_cluster}, "
                    f"not to replica {replica} of cluster {cluster}. `vsr recover` says what to do"
                )
            return max(int(durable_end), read_mark(file))
    raise JournalError(
        f"{file.path}: the file header (bytes 0..{FILE_HEADER_SIZE - 1}) is damaged or not a journal's. "
        "`vsr recover` says what to do"
    )


def encode_mark(durable_end: int) -> bytes:
    """What lies at MARK_OFFSET once all bytes below ``durable_end`` are durable; it is never synced itself."""
    body = MARK.pack(MARK_MAGIC, durable_end)
    return body + digest_at(MARK_OFFSET, body)


def read_mark(file: File) -> int:
    """The durable end that the mark names; 0 if there is none or it is broken."""
    data = file.read_at(MARK_OFFSET, MARK.size + CHECKSUM_SIZE)
    body = data[: MARK.size]
    if len(body) < MARK.size or digest_at(MARK_OFFSET, body) != data[MARK.size :]:
        return 0
    magic, durable_end = MARK.unpack(body)
    return int(durable_end) if magic == MARK_MAGIC else 0


def veil(data: bytes) -> bytes:
    """Written and true bytes of an append, one from the other: runs of zeros are turned into runs of something else.

    So zeros at the end of a sector were never written (but for a body of 0x9d bytes).
    """
    return data.translate(_VEIL)


def encode_group(offset: int, length: int) -> bytes:
    """The header of an append that begins at ``offset`` and is ``length`` bytes long, this header included."""
    rest = GROUP.pack(GROUP_MAGIC, 0, length)
    return digest_at(offset, rest) + rest


def decode_group(data: bytes, offset: int) -> int | None:
    """The length from what `encode_group` made, or None."""
    rest = data[CHECKSUM_SIZE:GROUP_HEADER_SIZE]
    if len(rest) < GROUP.size or digest_at(offset, rest) != data[:CHECKSUM_SIZE]:
        return None
    magic, _, length = GROUP.unpack(rest)
    return int(length) if magic == GROUP_MAGIC else None


def pack_header(header: PrepareHeader, magic: int, group: int, repair: bool, path: str) -> bytes:
    """A header's fields in their widths. Raises JournalError if one does not fit."""
    flags = (_FLAG_REPAIR if repair else 0) | (_FLAG_FIRST if header.parent == CHECKSUM_NONE else 0)
    try:
        return RECORD.pack(
            magic,
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


def unpack_header(data: bytes, at: int) -> tuple[int, PrepareHeader, bool]:
    """(group, header, repair) from what `pack_header` made."""
    _, _, flags, group, checksum, parent, view, op, client, request, commit, *numbers, size = RECORD.unpack_from(
        data, at
    )
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
    return group, header, bool(flags & _FLAG_REPAIR)


def encode_record(prepare: Prepare, offset: int, group: int, repair: bool, path: str) -> bytes:
    """The record of a prepare at this offset of the file. Raises JournalError if it does not fit a record."""
    header = prepare.header
    if len(prepare.body) > BODY_SIZE_MAX or header.size != len(prepare.body):
        raise JournalError(
            f"{path}: op {header.op}: body of {len(prepare.body)} bytes, header says {header.size}, "
            f"at most {BODY_SIZE_MAX} are allowed"
        )
    rest = pack_header(header, RECORD_MAGIC, group, repair, path)
    content = rest + prepare.body
    content += bytes(padded(CHECKSUM_SIZE + len(content)) - CHECKSUM_SIZE - len(content))
    return digest_at(offset, content) + content


def decode_record(data: bytes, offset: int) -> tuple[Record | None, bytes, str]:
    """(record, body, "") if ``data`` is the whole record that was written at ``offset``, else (None, b"", reason)."""
    _, version, *_, size = RECORD.unpack_from(data, CHECKSUM_SIZE)
    length = padded(RECORD_HEADER_SIZE + size)
    if len(data) < length:
        return None, b"", f"{len(data)} of {length} bytes of a record"
    if digest_at(offset, data[CHECKSUM_SIZE:length]) != data[:CHECKSUM_SIZE]:
        return None, b"", "checksum does not match"
    if version != FORMAT_VERSION:
        return None, b"", f"format version {version}; this program reads {FORMAT_VERSION}"
    group, header, repair = unpack_header(data, CHECKSUM_SIZE)
    body = data[RECORD_HEADER_SIZE : RECORD_HEADER_SIZE + size]
    if not prepare_is_valid(Prepare(header=header, body=body)):
        return None, b"", f"the entry's own checksum {header.checksum} does not match"
    return Record(offset, length, group, repair, header), body, ""
