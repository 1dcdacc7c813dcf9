"""The cells of a ring journal's two rings, as they are read and written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from viewproof.impl.interface.durable import SuperblockState
from viewproof.impl.interface.messages import Prepare, PrepareHeader
from viewproof.impl.storage.file import File
from viewproof.impl.storage.journal import JournalRecovery
from viewproof.impl.storage.records import (
    BODY_SIZE_MAX,
    CHECKSUM_SIZE,
    RECORD,
    RECORD_HEADER_SIZE,
    RECORD_MAGIC,
    decode_record,
    digest_at,
    encode_record,
    pack_header,
    padded,
    unpack_header,
)
from viewproof.impl.storage.ring_file import SECTOR, Geometry, round_up
from viewproof.impl.storage.ring_table import BROKEN, RESERVED, Bounds, Found

HEADER_MAGIC = 0x56535248  # "VSRH"
_ERASED = bytes(SECTOR)
NO_HEADER = b"\xff" * SECTOR
"""Broken: no header, and not none."""


@dataclass(slots=True)
class Cell:
    """A cell as recovered or written: its header if it is known, `clean` if the prepare is durable, `faulty` if not
    but something was there. `unnamed`: its header is broken, so it may have held another prepare than the one that is
    known. `unsure`: see the module's text. `written` orders the writes of this process.
    """

    header: PrepareHeader | None = None
    others: tuple[PrepareHeader, ...] = ()
    repair: bool = False
    clean: bool = False
    faulty: bool = False
    unnamed: bool = False
    unsure: bool = False
    written: int = 0


def may_have_held(cell: Cell, op: int, log_view: int) -> bool:
    """False only if what a faulty cell held is known, and was not appended at `op` in that view.

    A prepare under a broken header does not say so: a later one, which the header named, may never have arrived.
    """
    appended = () if cell.repair else (cell.header,)
    known = [header for header in (*appended, *cell.others) if header is not None]
    return cell.unnamed or any(header.op == op and header.view == log_view for header in known)


def uncertain(header: Found, prepare: Found, bounds: Bounds) -> Cell:
    """A cell whose record of a log to install says that it hides a loss; what it says of the log itself stays known."""
    known = [found.header for found in (header, prepare) if found.header is not None]
    own = [each for each in known if each.op <= bounds.op_max]
    return Cell(own[0] if own else None, tuple(own[1:]), faulty=True, unnamed=True)


@dataclass(frozen=True, slots=True)
class RingRecovery(JournalRecovery):
    """What opening found: how often each row of the decision table and each decision applied."""

    rows: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"{self.records} records; cells: " + ", ".join(f"{n} {d}" for d, n in sorted(self.decisions.items()))


class RingCells:
    """Reads and writes records of cells; `superblock` is that of the last opening or write."""

    def __init__(self, file: File, geometry: Geometry, superblock: SuperblockState) -> None:
        self._file = file
        self.geometry = geometry
        self._superblock = superblock
        self._cells = [Cell() for _ in range(geometry.cells)]

    def _read_header(self, cell: int) -> tuple[Found, bool, bool]:
        offset = self.geometry.header_at(cell)
        data = self._read(offset, SECTOR)
        if data is None or len(data) < SECTOR:
            return BROKEN, False, False
        if data == _ERASED:
            return RESERVED, False, False
        if digest_at(offset, data[CHECKSUM_SIZE:]) != data[:CHECKSUM_SIZE]:
            return BROKEN, False, False
        group, header, repair = unpack_header(data, CHECKSUM_SIZE)
        return Found(header), repair, self._is_unsure(group)

    def _read_prepare(self, cell: int) -> tuple[Found, bool, bool]:
        found = self._load_cell(cell)
        if isinstance(found, Found):
            return found, False, False
        prepare, group, repair = found
        return Found(prepare.header), repair, self._is_unsure(group)

    def _is_unsure(self, group: int) -> bool:
        return group == self._superblock.log_view + 1

    def _load_cell(self, cell: int) -> Found | tuple[Prepare, int, bool]:
        """The prepare in a cell with its flags, or that it is reserved or broken."""
        offset = self.geometry.prepare_at(cell)
        head = self._read(offset, SECTOR)
        if head is None or len(head) < SECTOR:
            return BROKEN
        if head == _ERASED:
            return RESERVED
        magic, *_, size = RECORD.unpack_from(head, CHECKSUM_SIZE)
        length = padded(RECORD_HEADER_SIZE + size)
        if magic != RECORD_MAGIC or size > BODY_SIZE_MAX or length > self.geometry.slot_size:
            return BROKEN
        rest = b"" if length <= SECTOR else self._read(offset + SECTOR, length - SECTOR)
        if rest is None:
            return BROKEN
        record, body, _ = decode_record((head + rest)[:length], offset)
        if record is None or record.header.op % self.geometry.slots != cell % self.geometry.slots:
            return BROKEN
        return Prepare(record.header, body), record.group, record.repair

    def _op(self, cell: int) -> int:
        header = self._cells[cell].header
        return 0 if header is None else header.op

    def _load(self, cell: int) -> Prepare | None:
        found = self._load_cell(cell)
        return None if isinstance(found, Found) else found[0]

    def _read(self, offset: int, length: int) -> bytes | None:
        """Bytes, or None for sectors that cannot be read."""
        try:
            return self._file.read_at(offset, length)
        except OSError:
            return None

    def _write_prepare(self, cell: int, prepare: Prepare, repair: bool, unsure: bool) -> None:
        offset = self.geometry.prepare_at(cell)
        group = self._superblock.log_view + 1 if unsure else 0
        data = encode_record(prepare, offset, group, repair, self._file.path)
        self._file.write_at(offset, data.ljust(round_up(len(data)), b"\0"))

    def _write_header(self, cell: int, header: PrepareHeader, repair: bool, unsure: bool) -> None:
        offset = self.geometry.header_at(cell)
        group = self._superblock.log_view + 1 if unsure else 0
        rest = pack_header(header, HEADER_MAGIC, group, repair, self._file.path).ljust(SECTOR - CHECKSUM_SIZE, b"\0")
        self._file.write_at(offset, digest_at(offset, rest) + rest)


class AppendError(Exception):
    """An append failed; `cells` may have been written to."""

    def __init__(self, message: str, cells: list[int]) -> None:
        super().__init__(message)
        self.cells = cells
