"""Damage to single bytes of one of three replicas' files, again and again, and how each of them is got over."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from tests.impl.power import PowerLink, isolate
from viewproof.impl.net.framing import Status
from viewproof.impl.net.recovery import recovery_superblock
from viewproof.impl.replica import ReplicaConfig
from viewproof.impl.storage.data_file import DataFile
from viewproof.impl.storage.file import MemoryFile, StorageError
from viewproof.impl.storage.journal import FILE_HEADER_SIZE
from viewproof.impl.storage.records import CHECKSUM_SIZE, GROUP_HEADER_SIZE, MARK_OFFSET, RECORD_HEADER_SIZE
from viewproof.impl.storage.recover import diagnose, reset_for_recovery
from viewproof.impl.storage.ring_cells import RingRecovery
from viewproof.impl.storage.ring_file import SECTOR, Geometry
from viewproof.impl.storage.superblock import COPIES, COPY_SIZE

CONFIG = ReplicaConfig(
    run="test",
    checkpoint_interval=6,
    journal_slots=20,
    pipeline_max=4,
    snapshot_chunk_bytes=4096,
    write_retry_ticks=2,
    ring=True,
)
SUPERBLOCK_USED = 164
"""Bytes of a copy that are not zero, and some of the rest."""

REGIONS = (
    *(f"superblock: copy {copy}" for copy in range(COPIES)),
    "superblock: all copies",
    "superblock: three copies",
    "journal: file header",
    "journal: record header",
    "journal: record body",
    "journal: last append",
    "journal: cut short",
    "snapshot",
    "ring: one file header",
    "ring: header of a prepare",
    "ring: prepare",
)
RING = Geometry(slots=20, slot_size=2 * SECTOR)


def region_size(link: DamagedLink, region: str) -> int:
    """How many places there are to damage in a region."""
    return len(link.places(region))


class DamagedLink(PowerLink):
    """Three replicas, of which `victim` is stopped, damaged and started again, under the eyes of a client."""

    def __init__(self, victim: int = 2, ring: bool = False) -> None:
        self.outcomes_of: Counter[tuple[str, str]] = Counter()
        self.refusals: set[tuple[str, str]] = set()  # the damaged file, what was said
        self.boots = 0
        super().__init__(CONFIG, victim, ring=RING if ring else None)
        self.ask(1)

    def start(self, node: int) -> None:
        """Every process has a nonce of its own."""
        self.boots += 1
        self.config = replace(self.config, nonce=self.boots)
        self.boot(node)

    def file(self, name: str) -> MemoryFile:
        """One of the victim's files."""
        return self.file_storages[self.victim].files.files[f"d/{name}"]

    @property
    def data(self) -> DataFile:
        """The victim's open data file."""
        found = self.file_storages[self.victim].data
        assert found is not None
        return found

    def places(self, region: str) -> list[tuple[str, tuple[int, ...]]]:
        """(file, offsets that are damaged together) for each place of a region; of a cut: where the file ends."""
        if region.startswith("superblock"):
            copies = {"all copies": (0, 1, 2, 3), "three copies": (0, 1, 2)}
            of = copies.get(region.split(": ")[1]) or (int(region[-1]),)
            offsets = [*range(SUPERBLOCK_USED), *range(SUPERBLOCK_USED, COPY_SIZE, 97)]
            return [("superblock", tuple(copy * COPY_SIZE + offset for copy in of)) for offset in offsets]
        if region == "snapshot":
            name = f"snapshot-{self.data.superblock.checkpoint}"
            return [(name, (offset,)) for offset in range(len(self.file(name).content))]
        if region.startswith("ring"):
            return self._places_of_ring(region)
        records = [(offset, size) for offset, size, _, _ in self.data._journal.records()]
        last, end = records[-1][0], sum(records[-1])
        found = {
            "journal: file header": [
                *range(64),
                *range(MARK_OFFSET, MARK_OFFSET + 32),
                *range(64, FILE_HEADER_SIZE, 97),
            ],
            "journal: record header": [
                at for begin, _ in records[:-1] for at in range(begin, begin + RECORD_HEADER_SIZE)
            ],
            "journal: record body": [
                at for begin, size in records[:-1] for at in range(begin + RECORD_HEADER_SIZE, begin + size)
            ],
            "journal: last append": range(last - GROUP_HEADER_SIZE, end),
            "journal: cut short": [*range(0, FILE_HEADER_SIZE, 512), *range(FILE_HEADER_SIZE, end, CHECKSUM_SIZE // 2)],
        }[region]
        return [("journal", (offset,)) for offset in found]

    def _places_of_ring(self, region: str) -> list[tuple[str, tuple[int, ...]]]:
        if region.endswith("file header"):
            return [("journal", (offset,)) for offset in range(SECTOR)]
        if region.endswith("file headers"):
            return [("journal", (offset, SECTOR + offset)) for offset in range(SECTOR)]
        base, cells = self.data.superblock.checkpoint, self.data._journal._cells  # type: ignore[union-attr]
        live = [cell for cell, found in enumerate(cells) if found.clean and found.header.op > base]  # type: ignore[union-attr]
        if region.endswith("prepare") and "header" not in region:
            sizes = {cell: RECORD_HEADER_SIZE + cells[cell].header.size for cell in live}  # type: ignore[union-attr]
            return [("journal", (RING.prepare_at(cell) + at,)) for cell in live for at in range(sizes[cell])]
        return [("journal", (RING.header_at(cell) + at,)) for cell in live for at in range(RECORD_HEADER_SIZE + 4)]

    def hurt(self, region: str, place: int) -> str:
        """Stops the victim, flips a bit at a place of the region (or cuts the file there), starts it; the outcome."""
        while self.data.superblock.checkpoint == 0 or self.replicas[self.victim].state.op % 6 not in (3, 4):
            self.ask(1)
            self.settle()
        places = self.places(region)
        name, offsets = places[place % len(places)]
        self.stop(self.victim)
        file = self.file(name)
        for offset in offsets:
            if region == "journal: cut short":
                del file.content[offset:]
            else:
                file.content[offset] ^= 1 << place % 8
        file.durable = bytearray(file.content)
        outcome = self._start_again(name)
        self.outcomes_of[region, outcome] += 1
        return outcome

    def _start_again(self, name: str) -> str:
        try:
            self.start(self.victim)
        except StorageError as error:
            self.refusals.add((name, str(error)))
            self.file_storages[self.victim].files._locked.clear()
            self._recover()
            outcome = "refused; back by vsr recover"
        else:
            replica, data = self.replicas[self.victim], self.data
            if replica.snapshot_recovery.lost is not None:
                outcome = "snapshot fetched"
            elif replica.state.log_repair is not None:
                outcome = "log repaired"
            elif data.journal_recovery.cut_offset is not None:
                outcome = "cut like a torn write"
            elif isinstance(data.journal_recovery, RingRecovery) and data.journal_recovery.decisions["fix"]:
                outcome = "header written again from its prepare"
            elif data.superblock_problems:
                outcome = "repaired from other copies"
            else:
                outcome = "harmless"
        self.settle()
        self._need_victim()
        return outcome

    def _recover(self) -> None:
        """What `vsr recover --from-cluster` does."""
        files = self.file_storages[self.victim].files
        found = diagnose("d", files)
        assert found.recoverable, found.findings
        statuses = [None if node == self.victim else self._status(node) for node in range(3)]
        state = recovery_superblock(statuses, self.victim, 1, 0, found.copies)
        reset_for_recovery(found, state, files)
        self.start(self.victim)

    def _status(self, node: int) -> Status:
        replica = self.replicas[node]
        return Status(
            cluster=1,
            replica=node,
            replica_count=3,
            status=str(replica.state.status),
            view=replica.state.view,
            log_view=replica.state.log_view,
            op=replica.state.op,
            commit_min=replica.state.commit_min,
            commit_max=replica.state.commit_max,
            journal_bytes=0,
            peers=(),
            quorums=(replica.state.quorums.replication, replica.state.quorums.view_change),
            clients=(replica.state.clients.slots, replica.state.clients.sessions, replica.state.clients.gaps),
        )

    def _need_victim(self) -> None:
        """The next request is answered by the victim and one other: what the victim has forgotten would be missing."""
        away = (self.victim + 1 + self.boots % 2) % 3
        self.lose = isolate(away)
        self.ask(2)
        self.lose = lambda source, to, message: False
        self.settle()
