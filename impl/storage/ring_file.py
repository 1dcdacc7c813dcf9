"""The file of a ring journal: where its parts lie, and its header."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.storage.file import File
from viewproof.impl.storage.records import CHECKSUM_SIZE, RECORD_HEADER_SIZE, JournalError

SECTOR = 512
"""Bytes of a sector: a header has one to itself, so that a torn or rotten sector costs no other header."""

RING_MAGIC = b"VSRJRING"
RING_VERSION = 1
SLOTS_DEFAULT = 1 << 14
SLOT_SIZE_DEFAULT = (1 << 20) + SECTOR
_HEADER = struct.Struct(">8sHHQIQ")  # magic, version, replica, cluster, slots, slot_size


def round_up(length: int) -> int:
    """The next multiple of a sector."""
    return -(-length // SECTOR) * SECTOR


@dataclass(frozen=True, slots=True)
class Geometry:
    """`slots` ops at a time, prepares of at most `slot_size` bytes with their record header. Two cells per slot."""

    slots: int
    slot_size: int

    def __post_init__(self) -> None:
        """Raises `ConfigurationError`."""
        if self.slots < 1:
            raise ConfigurationError(f"journal slots must be at least 1, got {self.slots}")
        if self.slot_size % SECTOR or self.slot_size < round_up(RECORD_HEADER_SIZE):
            raise ConfigurationError(f"slot size must be a positive multiple of {SECTOR}, got {self.slot_size}")

    @property
    def cells(self) -> int:
        """Cells of a ring."""
        return 2 * self.slots

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.prepare_at(self.cells)

    def cells_of(self, op: int) -> tuple[int, int]:
        """The two cells of the slot of an op."""
        slot = op % self.slots
        return slot, slot + self.slots

    def header_at(self, cell: int) -> int:
        """Offset of a cell in the header ring."""
        return (2 + cell) * SECTOR

    def prepare_at(self, cell: int) -> int:
        """Offset of a cell in the prepare ring."""
        return (2 + self.cells) * SECTOR + cell * self.slot_size


def encode_ring_header(cluster: int, replica: int, geometry: Geometry) -> bytes:
    """One sector."""
    body = _HEADER.pack(RING_MAGIC, RING_VERSION, replica, cluster, geometry.slots, geometry.slot_size)
    return (body + hashlib.blake2b(body, digest_size=CHECKSUM_SIZE).digest()).ljust(SECTOR, b"\0")


def is_ring(file: File) -> bool:
    """True if the file's header, or its copy, says that it is a ring journal."""
    return any(_read(file, copy)[:8] == RING_MAGIC for copy in (0, 1))


def read_ring_header(file: File, cluster: int, replica: int) -> Geometry:
    """The geometry, from the first copy that is whole. Raises JournalError."""
    for copy in (0, 1):
        data = _read(file, copy)
        body = data[: _HEADER.size]
        checksum = data[_HEADER.size : _HEADER.size + CHECKSUM_SIZE]
        if len(data) < SECTOR or hashlib.blake2b(body, digest_size=CHECKSUM_SIZE).digest() != checksum:
            continue
        magic, version, its_replica, its_cluster, slots, slot_size = _HEADER.unpack(body)
        if magic != RING_MAGIC:
            continue
        if version != RING_VERSION:
            raise JournalError(
                f"{file.path}: format version {version}; this program reads {RING_VERSION}. "
                "`vsr recover` says what to do"
            )
        if (its_cluster, its_replica) != (cluster, replica):
            raise JournalError(
                f"{file.path}: belongs to replica {its_replica} of cluster {its_cluster}, "
                f"not to replica {replica} of cluster {cluster}. `vsr recover` says what to do"
            )
        geometry = Geometry(slots, slot_size)
        if file.size() < geometry.size:
            raise JournalError(f"{file.path}: {file.size()} bytes, {geometry.size} expected: the file was truncated")
        return geometry
    raise JournalError(
        f"{file.path}: both copies of the file header (bytes 0..{2 * SECTOR - 1}) are damaged. "
        "`vsr recover` says what to do"
    )


def _read(file: File, copy: int) -> bytes:
    try:
        return file.read_at(copy * SECTOR, SECTOR)
    except OSError:
        return b""
