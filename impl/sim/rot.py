"""What may be damaged on the disks of a cluster so that its data can be repaired (seed 002, "always leaving one
good copy of each item somewhere").

A prepare of a replica's log may be damaged there if another replica's disk has it, clean; or if no other ever had it,
so that it cannot be committed and nacks or a later view settle it. In the second case, and if the replica will not know
where its log ended, or others may drain what it lost while it is down, it needs the others to go on without it: no more
replicas may be in that state ("stricken") at a time than can be spared, or one whose nacks can suffice.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from random import Random

from viewproof.impl.interface.durable import DamagedLog
from viewproof.impl.interface.messages import PrepareHeader
from viewproof.impl.sim.ring_storage import RingStorage
from viewproof.impl.storage.file import MemoryFile
from viewproof.impl.storage.ring import RingJournal
from viewproof.impl.storage.ring_file import SECTOR

Item = tuple[int, str]
"""Op and checksum of a prepare."""


def headers_on(storage: RingStorage, journal: RingJournal | None = None) -> list[PrepareHeader]:
    """Of the prepares above the checkpoint that are clean on the disk, or in a copy of it that was opened: those of the
    log, as what it does not name may be erased. If the log is damaged not all of it is known: then all but those that
    were fetched for another log.
    """
    block, journal = storage.superblock, journal or storage.as_found
    damaged, names = journal.is_damaged(block), journal.log_names(block)
    found = [(repair, header) for _, _, repair, header in journal.records() if header.op > block.checkpoint]
    return [header for repair, header in found if header.checksum in names or (damaged and not repair)]


def items_on(storage: RingStorage, journal: RingJournal | None = None) -> set[Item]:
    """The prepares of `headers_on`."""
    return {(header.op, header.checksum) for header in headers_on(storage, journal)}


AIMED = 0.6
"""How often the prepare is struck that only one replica has."""


def _damage(storage: RingStorage, journal: RingJournal | None = None) -> DamagedLog | None:
    """What a replica would find of its log on the disk, or in a copy of it that was opened; None: all."""
    return (journal or storage.as_found)._damage(storage.superblock)


class Rot:
    """Damages disks of one cluster. `spare`: so many replicas can be down while the others go on; `lost` ones never
    come back, and their disks are no copies.
    """

    def __init__(
        self,
        storages: Sequence[RingStorage],
        spare: int,
        quorum_replication: int,
        random: Random,
        lost: AbstractSet[int],
    ) -> None:
        self.lost = lost
        self.storages = storages
        self.spare = spare
        self.quorum_nack = len(storages) - quorum_replication + 1
        self.quorum_replication = quorum_replication
        self.random = random
        self.interval = storages[0].profile.checkpoint_interval
        self.known: set[tuple[int, str, int]] = set()

    def may_lose(self, node: int, cell: int | None) -> bool:
        """True if a write of a replica may be lost, and what a cell of its journal (None: nothing that matters) holds:
        that is on another's disk, or useless. The replica is stricken then.

        What is being written needs no other copy: of a quorum that acknowledges it, more replicas than can be spared,
        one at least has it.
        """
        storage = self.storages[node]
        if self._stricken_besides(node) >= self.spare:
            return False
        found = None if cell is None else storage.journal._cells[cell].header
        if found is not None and found.op > storage.superblock.checkpoint:
            elsewhere = set().union(*(items_on(self.storages[at]) for at in self._others(node)))
            if (found.op, found.checksum) not in elsewhere:
                return False
        storage.stricken = True
        return True

    def strike(self, node: int) -> None:
        """Damages some sectors of a replica that is down, if that leaves enough; counted in the statistics.

        Often the prepare that nobody else has yet, which nacks may settle.
        """
        storage = self.storages[node]
        before = items_on(storage)
        others = [self.storages[at] for at in self._others(node)]
        if node in self.lost or not others:
            return
        for op, checksum in before:
            self.known.add((op, checksum, node))
        for at in self._others(node):
            self.known |= {(op, checksum, at) for op, checksum in items_on(self.storages[at])}
        elsewhere = set().union(*(items_on(other) for other in others))
        own = [item for item in sorted(before - elsewhere) if not self._was_elsewhere(item, node)]
        file = storage.file.copy()
        if own and self.random.random() < AIMED:
            number = self.random.choice((1, 2, len(own)))
            targets = self.random.sample(own, min(number, len(own)))
            marks = self._spoil_prepares(storage, file, {checksum for _, checksum in targets})
        else:
            marks = self._spoil(storage, file)
        spoilt = RingJournal.open(MemoryFile(file.path, bytes(file.durable)), storage.superblock)
        lost, damage = before - items_on(storage, spoilt), _damage(storage, spoilt)
        alone = {item for item in lost if item not in elsewhere}
        if any(self._was_elsewhere(item, node) for item in alone) or (alone and self.quorum_replication == 1):
            return
        uncertain = damage is not None and damage.op_max > damage.head_op
        stricken = bool(alone) or uncertain or any(op <= self._drained_next(node) for op, _ in lost)
        stricken |= storage.stricken
        if stricken and not self._may_be_stricken(node, damage):
            return
        storage.file.durable = file.durable
        storage.file.content = bytearray(file.durable)
        storage.stricken |= stricken
        for mark in marks:
            storage.statistics[mark] += 1
        if alone:
            storage.statistics["rot_of_unacknowledged"] += len(alone)

    def _drained_next(self, node: int) -> int:
        """Up to where another replica may drain its log before it takes another prepare."""
        interval = max(1, self.interval)
        others = [self.storages[at] for at in self._others(node)]
        ops = [op for other in others for op, _ in items_on(other)]
        bases = [other.superblock.checkpoint for other in others]
        return max(*bases, (max(ops, default=0) + self.storages[0].profile.pipeline_max) // interval * interval)

    def _others(self, node: int) -> list[int]:
        return [at for at in range(len(self.storages)) if at != node and at not in self.lost]

    def _stricken_besides(self, node: int) -> int:
        return len(self.stricken - {node})

    @property
    def stricken(self) -> set[int]:
        """The replicas that the others have to do without, now or for ever; also those for which it is too late by now
        to get from the others what they lack.
        """
        sure = {at for at, storage in enumerate(self.storages) if storage.stricken or at in self.lost}
        rest = [at for at in range(len(self.storages)) if at not in sure]
        return sure | {at for at in rest if not self._is_mended_by_all(at, _damage(self.storages[at]))}

    def _may_be_stricken(self, node: int, damage: DamagedLog | None) -> bool:
        count = self._stricken_besides(node)
        nacks = count == 0 and self.quorum_nack <= len(self._others(node))
        return count < self.spare or (nacks and self._is_mended_by_all(node, damage))

    def _is_mended_by_all(self, node: int, damage: DamagedLog | None) -> bool:
        """True if the others, none of which went on meanwhile, can send all that a log lacks, or nack it: what only
        this replica ever had, and whose header it still knows.
        """
        if damage is None:
            return True
        if damage.op_max > damage.head_op:
            return False
        own = {header.checksum: header for header in damage.known}
        held = {prepare.header.checksum: prepare.header for prepare in damage.held}
        disks = [self.storages[at] for at in self._others(node)]
        others = {header.checksum: header for disk in disks for header in headers_on(disk)}
        op, checksum = damage.head_op, damage.head_checksum
        while op > self.storages[node].superblock.checkpoint:
            header = held.get(checksum) or others.get(checksum) or own.get(checksum)
            if header is None or (checksum not in held and op <= self._drained_next(node)):
                return False
            if checksum not in held and checksum not in others and self._was_elsewhere((op, checksum), node):
                return False
            op, checksum = op - 1, header.parent
        return True

    def _was_elsewhere(self, item: Item, node: int) -> bool:
        return any((*item, other) in self.known for other in range(len(self.storages)) if other != node)

    def _spoil_prepares(self, storage: RingStorage, file: MemoryFile, checksums: set[str]) -> list[str]:
        """Spoils some prepares, in a copy of a file, and leaves their headers."""
        marks: list[str] = []
        for cell, found in enumerate(storage.as_found._cells):
            name = found.header.checksum if found.clean and found.header is not None else ""
            if name in checksums and cell not in storage.unheadered:
                _flip(file, storage.geometry.prepare_at(cell), self.random)
                marks.append("rot_prepare")
        return marks

    def _spoil(self, storage: RingStorage, file: MemoryFile) -> list[str]:
        """Spoils sectors in a copy of a file, some of the log's, some of any cell's."""
        random, geometry = self.random, storage.geometry
        journal = storage.as_found
        used = [cell for cell, found in enumerate(journal._cells) if found.header is not None]
        marks: list[str] = []
        for _ in range(random.choice((1, 1, 2, 3, 8))):
            cell = random.choice(used) if used and random.random() < 0.7 else random.randrange(geometry.cells)
            if random.random() < 0.3 and used:
                cell = max(used, key=lambda each: found.op if (found := journal._cells[each].header) else 0)
            kind = random.choice(("header", "prepare", "prepare", "both"))
            if cell in storage.unheadered and kind != "header":
                continue
            marks.append(f"rot_{kind}")
            if kind != "prepare":
                _flip(file, geometry.header_at(cell), random)
            if kind != "header":
                _flip(file, geometry.prepare_at(cell), random)
        return marks


def _flip(file: MemoryFile, sector: int, random: Random) -> None:
    """One bit of the sector, among those that any record uses."""
    at = sector + random.randrange(min(SECTOR, 128))
    for content in (file.durable, file.content):
        content[at] ^= 1 << random.randrange(8)
