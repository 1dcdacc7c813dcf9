"""A simulated disk under a ring journal (`impl.storage.ring`): sectors rot, writes are lost or land elsewhere.

The journal is the real one, over a file in memory. Superblock and snapshots are those of `SimStorage`. Damage leaves
one good copy of each prepare that a quorum may have acknowledged: what may be damaged, `impl.sim.rot` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from viewproof.impl.interface.durable import BootRefusedError, DurableState, SuperblockState
from viewproof.impl.interface.effects import AppendPrepares, DrainJournal, IoEffect, WriteSuperblock
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.storage import SimStorage, StorageError
from viewproof.impl.storage.file import MemoryFile, MemoryFileSystem
from viewproof.impl.storage.records import JournalError
from viewproof.impl.storage.ring import RingJournal
from viewproof.impl.storage.ring_file import SECTOR, Geometry
from viewproof.impl.storage.segments import SegmentStore

SLOT_SIZE = 4 * SECTOR

OVER_ANOTHER = 1.0
"""How often the write of a prepare is lost, if writes are at all, in a cell that holds another one of the same op."""


class PowerLossError(Exception):
    """The process dies in the middle of a journal write."""


class SectorFile(MemoryFile):
    """A file whose power may fail, and whose disk may lose a write or put it elsewhere.

    `fuse`: so many writes and syncs are left; None: no end. `aim` says where a write really goes (None: nowhere).
    """

    fuse: int | None = None
    aim: Callable[[int, bytes], int | None] = staticmethod(lambda offset, data: offset)

    def write_at(self, offset: int, data: bytes) -> None:
        self._burn()
        at = self.aim(offset, data)
        if at is not None:
            super().write_at(at, data)

    def sync(self) -> None:
        self._burn()
        super().sync()

    def _burn(self) -> None:
        if self.fuse is None:
            return
        if self.fuse == 0:
            raise PowerLossError
        self.fuse -= 1

    def copy(self) -> MemoryFile:
        """The file as it is durable now."""
        return MemoryFile(self.path, bytes(self.durable))


class RingStorage(SimStorage):
    """Journal as a ring, superblock and snapshots in memory.

    `unheadered`: cells whose header was lost or went astray; `unwritten`: those whose prepare was, or lies under one
    that went astray. Nothing else is done to either: a slot that lost both says nothing of what it held.

    `stricken`: the disk was damaged such that the replica may need a start_view or nacks, and it is not whole again.
    `on_lost`: the write of a prepare was lost that was to take the place of another one of its op, a rare damage.
    """

    def __init__(
        self,
        superblock: SuperblockState,
        profile: SimProfile,
        random: Random,
        statistics: dict[str, int],
        segments: type[SegmentStore] = SegmentStore,
    ) -> None:
        super().__init__(superblock, profile, random, statistics, segments)
        self.file = SectorFile(f"journal of replica {superblock.replica}")
        RingJournal.format(self.file, superblock.cluster, superblock.replica, profile.journal_slots, SLOT_SIZE)
        self.geometry = Geometry(profile.journal_slots, SLOT_SIZE)
        self.journal = RingJournal.open(self.file, superblock)
        self.file.aim = self._aim
        self.may_lose: Callable[[int | None], bool] = lambda cell: False
        self.on_lost: Callable[[], None] = lambda: None
        self.unheadered: set[int] = set()
        self.unwritten: set[int] = set()
        self.writing: dict[int, str] = {}
        self.stricken = False
        self._opened: tuple[RingJournal, bytes, SuperblockState] | None = None

    def holds(self, op: int, checksum: str) -> bool:
        """True if the entry is durable here, as far as this replica was told."""
        return checksum in self.journal or op <= self.superblock.checkpoint

    @property
    def as_found(self) -> RingJournal:
        """The journal as a process would find it if it began now, over a copy of the disk, to be looked at only."""
        if self._opened is not None:
            journal, durable, superblock = self._opened
            if superblock == self.superblock and durable == self.file.durable:
                return journal
        journal = RingJournal.open(self.file.copy(), self.superblock)
        self._opened = (journal, bytes(self.file.durable), self.superblock)
        return journal

    @property
    def is_damaged(self) -> bool:
        """True if a cell on the disk would have to be repaired."""
        return self.as_found.recovery.decisions["vsr"] > 0

    @property
    def needs_others(self) -> bool:
        """True if the replica cannot count as one that is up: a cell is to be repaired, or the end of its log is not
        known, though each cell is whole by now. Then it waits for a start_view, which a quorum of others has to make.
        """
        return self.is_damaged or self.as_found.is_damaged(self.superblock)

    @property
    def has_overruled(self) -> bool:
        """True if the journal has a prepare above the checkpoint that the log does not name any more."""
        live, checkpoint = self.journal._live, self.superblock.checkpoint
        headers = [found.header for found in self.journal._cells if found.clean and found.header is not None]
        return any(header.op > checkpoint and header.checksum not in live for header in headers)

    def _take_effect(self, io: IoEffect) -> None:
        if isinstance(io, AppendPrepares):
            self._append_ring(io)
        elif isinstance(io, DrainJournal):
            self._drain_ring(io)
        else:
            super()._take_effect(io)
            if isinstance(io, WriteSuperblock):
                self.journal.on_superblock(io.superblock)

    def _append_ring(self, io: AppendPrepares) -> None:
        self.writing = {prepare.header.op: prepare.header.checksum for prepare in io.prepares}
        self.journal.append(io.prepares, io.repair)

    def _drain_ring(self, io: DrainJournal) -> None:
        if self.superblock.checkpoint < io.op:
            raise StorageError(
                f"replica {self.superblock.replica}: drain of op {io.op} at checkpoint {self.superblock.checkpoint}"
            )
        log = self.journal.log_names(self.superblock, io.end) if io.stale else None
        self.journal.drain(MemoryFileSystem(), io.op, log)
        self.snapshots = {at: snapshot for at, snapshot in self.snapshots.items() if at >= io.op}
        if io.stale:
            self.stricken = self.is_damaged

    def _crash_append(self, io: AppendPrepares) -> None:
        """The power goes at some write or sync of the append; of what was not synced, whole sectors survive."""
        self.file.fuse = self.random.randint(0, 2 * len(io.prepares) + 2)
        try:
            self._append_ring(io)
            self.statistics["crash_append_whole"] += 1
        except PowerLossError:
            self.statistics["crash_append_torn"] += 1
        self.file.fuse = None
        if self.random.random() < 0.3:
            self.file.crash()
        else:
            self.file.crash(lambda length: SECTOR * self.random.randint(0, -(-length // SECTOR)))

    def recover(self) -> DurableState:
        """Opens the ring. Raises `StorageError` if superblock or snapshot contradict a promise, `BootRefusedError` if
        the disk has failed, or (a cluster of one) the journal is damaged.
        """
        self._open()
        data, lost = self._snapshot_in_use()
        superblock = self.superblock
        try:
            self.journal = RingJournal.open(self.file, superblock)
            self.unheadered = {cell for cell in self.unheadered if not self._is_headed(cell)}
            damage = self.journal.damage(superblock)
        except JournalError as error:
            raise BootRefusedError(str(error), lost=True) from error
        for row, number in self.journal.recovery.rows.items():
            self.statistics[f"recovered: {row}"] += number
        for decision, number in self.journal.recovery.decisions.items():
            self.statistics[f"decision_{decision}"] += number
        checkpoint = superblock.checkpoint
        self.snapshots = {op: snapshot for op, snapshot in self.snapshots.items() if op == checkpoint}
        if damage is not None:
            self.statistics["boots_damaged"] += 1
            if damage.op_max > damage.head_op:
                self.statistics["boots_head_uncertain"] += 1
            return DurableState(superblock, (), data, 0, damage, lost)
        log = self.journal.log(superblock)
        return DurableState(superblock, log, data, lost=lost)

    def _is_headed(self, cell: int) -> bool:
        """True if the header ring names what the prepare ring has in a cell: damage to the prepare will be seen."""
        return self.journal._read_header(cell)[0].header == self.journal._read_prepare(cell)[0].header

    # Writes that do not arrive

    def _cell_at(self, offset: int) -> tuple[int, bool] | None:
        """The cell that begins at an offset, and whether in the header ring; None elsewhere."""
        geometry = self.geometry
        first = geometry.prepare_at(0)
        if offset < geometry.header_at(0):
            return None
        if offset < first:
            return offset // SECTOR - 2, True
        return (offset - first) // SLOT_SIZE, False

    def _aim(self, offset: int, data: bytes) -> int | None:
        place = self._cell_at(offset)
        if place is None or not any(data):
            return offset
        cell, is_header = place
        profile, random = self.profile, self.random
        if not is_header:
            self.unwritten.discard(cell)
        self.unheadered.discard(cell)
        over = self._lies_over_another(place)
        lost = profile.lost_write and (OVER_ANOTHER if over else profile.lost_write)
        strikes = lost and random.random() < lost
        strays = not strikes and profile.misdirected_write and random.random() < profile.misdirected_write
        target = random.randrange(self.geometry.cells) if strays else None
        if not (strikes or strays) or cell in self.unwritten or target == cell or target in self.unheadered:
            return offset
        if not self.may_lose(target):
            return offset
        if is_header:
            self.unheadered.add(cell)
        else:
            self.unwritten |= {cell} if target is None else {cell, target}
        ring = "header" if is_header else "prepare"
        self.statistics[f"{ring}_writes_{'misdirected' if strays else 'lost'}"] += 1
        if over:
            self.on_lost()
        if target is None:
            return None
        return self.geometry.header_at(target) if is_header else self.geometry.prepare_at(target)

    def _lies_over_another(self, place: tuple[int, bool]) -> bool:
        """True if a prepare is being written to a cell that holds another one of its op."""
        cell, is_header = place
        found = self.journal._cells[cell]
        if is_header or not found.clean or found.header is None:
            return False
        return self.writing.get(found.header.op, found.header.checksum) != found.header.checksum
