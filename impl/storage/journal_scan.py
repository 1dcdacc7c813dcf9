"""Opening a journal: which records are whole, where some are damaged, and whether its end is a torn write.

A write that the power cut short leaves of each sector what was written or what was there before: nothing, as a journal
only grows; so zeros, or the file is short. Nothing that is written is zero (`impl.storage.records.veil`), hence a
broken end is

* damaged, if it had been durable: by the file header, by the mark, or as a later append had begun behind it;
* torn, if it is short by its header, or a sector of it ends in zeros: the whole append is cut, as it was one write;
* damaged otherwise: nothing shows that it was not acknowledged.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from viewproof.impl.storage.file import File
from viewproof.impl.storage.records import (
    ALIGNMENT,
    BODY_SIZE_MAX,
    CHECKSUM_SIZE,
    FILE_HEADER_SIZE,
    GROUP_HEADER_SIZE,
    GROUP_MAGIC,
    RECORD,
    RECORD_HEADER_SIZE,
    RECORD_MAGIC,
    JournalError,
    Record,
    decode_group,
    decode_record,
    padded,
    veil,
)

_SECTOR = 512
_CHUNK = 1 << 20
_MAGICS = tuple(veil(struct.pack(">I", magic)) for magic in (GROUP_MAGIC, RECORD_MAGIC))


@dataclass(slots=True)
class Scanned:
    """``records`` that are whole, by offset; ``gaps``: begin, end and reason of damage; ``end``: where to append.

    ``cut`` and ``reason``: the offset of a torn append, of which nothing is in ``records``.
    """

    records: list[Record] = field(default_factory=list)
    gaps: list[tuple[int, int, str]] = field(default_factory=list)
    end: int = FILE_HEADER_SIZE
    cut: int | None = None
    reason: str = ""


def read_record(file: File, offset: int) -> tuple[Record | None, bytes, str]:
    """As `decode_record`, of what lies at ``offset``. Raises JournalError for a record of another version."""
    head = veil(file.read_at(offset, RECORD_HEADER_SIZE))
    if len(head) < RECORD_HEADER_SIZE:
        return None, b"", f"{len(head)} of {RECORD_HEADER_SIZE} bytes of a record header"
    magic, *_, size = RECORD.unpack_from(head, CHECKSUM_SIZE)
    if magic != RECORD_MAGIC:
        return None, b"", "no record magic"
    if size > BODY_SIZE_MAX:
        return None, b"", f"size {size} is above {BODY_SIZE_MAX}"
    rest = veil(file.read_at(offset + len(head), padded(RECORD_HEADER_SIZE + size) - len(head)))
    record, body, reason = decode_record(head + rest, offset)
    if record is None and "format version" in reason:
        raise JournalError(f"{file.path}: record at offset {offset}: {reason}")
    return record, body, reason


BEYOND_BYTES_MAX = 1 << 37
"""So much may lie behind the mark, which becomes durable later than what it says: more than a disk writes by then."""


def scan(file: File, durable_end: int) -> Scanned:
    """Reads all; bytes below ``durable_end`` are known to have been durable. Raises OSError, JournalError."""
    size = file.size()
    if size > durable_end + BEYOND_BYTES_MAX:
        raise JournalError(
            f"{file.path}: the file has {size} bytes, of which {durable_end} were durable when it was last marked: no "
            "append is so large, so something else made it so long. Nothing is read; `vsr recover` says what to do"
        )
    return _Scan(file, durable_end).run()


class _Scan:
    def __init__(self, file: File, durable_end: int) -> None:
        self._file = file
        self._durable_end = durable_end
        self._size = file.size()
        self._begin = FILE_HEADER_SIZE  # of the append that is being read
        self._end: int | None = None  # of it, if its header is whole
        self._found = Scanned()

    def run(self) -> Scanned:
        offset = FILE_HEADER_SIZE
        while offset < self._size:
            step = self._next(offset)
            if step is None:
                self._found.records = [record for record in self._found.records if record.offset < self._begin]
                self._found.cut = self._found.end = self._begin
                return self._found
            offset = step
        if self._size < self._durable_end:
            reason = f"the file was truncated to {self._size} bytes, but {self._durable_end} had been durable"
            self._found.gaps.append((self._size, self._durable_end, reason))
        self._found.end = padded(max(self._size, self._durable_end))
        return self._found

    def _next(self, offset: int) -> int | None:
        """Takes what lies at `offset` and returns where the next thing does; None: from `_begin` on it is torn."""
        outside = self._end is None or offset >= self._end
        length = self._read_group(offset) if outside else None
        if length is not None:
            self._begin, self._end = offset, offset + length
            if self._end > self._size and offset >= self._durable_end:
                self._found.reason = f"{self._size - offset} of {length} bytes of an append"
                return None
            return offset + GROUP_HEADER_SIZE
        record, _, reason = read_record(self._file, offset)
        if record is not None:
            self._found.records.append(record)
            return offset + record.size
        if outside:
            self._begin, self._end = offset, None
        following, later = self._after(offset)
        known_end = self._end
        durable = later or offset < self._durable_end or (known_end is not None and self._size > known_end)
        if not durable and self._is_unwritten(offset):
            self._found.reason = reason
            return None
        if not (outside and self._only_header(offset, following)):
            self._found.gaps.append((offset, following, reason))
        return following

    def _read_group(self, offset: int) -> int | None:
        return decode_group(veil(self._file.read_at(offset, GROUP_HEADER_SIZE)), offset)

    def _only_header(self, offset: int, following: int) -> bool:
        """True if an append lost only its header, which tells nothing that its records do not."""
        if following != offset + GROUP_HEADER_SIZE:
            return False
        record = read_record(self._file, following)[0]
        return record is not None and record.group == offset

    def _is_unwritten(self, offset: int) -> bool:
        """True if some sector from `offset` to the end of the append was not written to its end, or is not there."""
        end = self._size if self._end is None else self._end
        if end % ALIGNMENT or end - offset < GROUP_HEADER_SIZE:
            return True
        for start in range(offset, end, _CHUNK):
            chunk = self._file.read_at(start, min(_CHUNK, end - start))
            stops = [*range(_SECTOR - start % _SECTOR, len(chunk), _SECTOR), len(chunk)]
            if any(not any(chunk[stop - ALIGNMENT : stop]) for stop in stops):
                return True
        return False

    def _after(self, broken: int) -> tuple[int, bool]:
        """Offset of the next whole thing behind a broken one (or the end), and whether a later append wrote one."""
        following = self._size
        for start in range(broken, self._size, _CHUNK):
            chunk = self._file.read_at(start, _CHUNK + CHECKSUM_SIZE + len(_MAGICS[0]))
            for offset in sorted(set(_offsets(chunk, start, broken))):
                length = self._read_group(offset)
                record = read_record(self._file, offset)[0] if length is None else None
                if length is None and record is None:
                    continue
                following = min(following, offset)
                if record is None or record.group > broken:
                    return following, True
        return following, False


def _offsets(chunk: bytes, start: int, broken: int) -> list[int]:
    """Where in a chunk, which lies at `start`, a header may begin by its magic."""
    found: list[int] = []
    for magic in _MAGICS:
        position = chunk.find(magic)
        while position >= 0:
            offset = start + position - CHECKSUM_SIZE
            if offset > broken and offset % ALIGNMENT == 0:
                found.append(offset)
            position = chunk.find(magic, position + 1)
    return found
