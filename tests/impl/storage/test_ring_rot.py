"""A ring journal that rots, is mended from the cluster, and loses power, in any order: it never forgets its log's end.

Whatever was acknowledged stays in the log, or the journal says that its log may go on so far.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from random import Random

import pytest

from tests.impl.storage.test_ring import BLOCK, chain, spoil
from viewproof.impl.interface.durable import SuperblockState
from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare
from viewproof.impl.storage.file import MemoryFile, MemoryFileSystem
from viewproof.impl.storage.records import JournalError
from viewproof.impl.storage.ring import RingJournal
from viewproof.impl.storage.ring_file import SECTOR, Geometry

GEOMETRY = Geometry(slots=8, slot_size=4 * SECTOR)
ROUNDS = 6
ALL = 1 << 20
PART_OF_A_SECTOR = 100
PART_OF_A_CHECKSUM = 8


class PowerLossError(Exception):
    """At a write or a sync."""


class FusedFile(MemoryFile):
    """Loses power before the I/O with number `left`, counted down to; never while it is below 0."""

    left = -1

    def _burn(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise PowerLossError

    def write_at(self, offset: int, data: bytes) -> None:
        self._burn()
        super().write_at(offset, data)

    def sync(self) -> None:
        self._burn()
        super().sync()


class Disk:
    """One replica's journal and superblock; `log` is what it has acknowledged, `asked` what it was given in this view.

    Up to `kept` it must stay: what a later view overrules was not committed, even if the new log is not named yet.
    `sound`: nothing was damaged since the log was found to be whole, so it is whole. `held`: what was clean of the log
    at the last boot, and is so at the next, unless it was `touched` by more than a power loss.
    """

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.file = FusedFile("journal")
        RingJournal.format(self.file, 1, 0, GEOMETRY.slots, GEOMETRY.slot_size)
        self.block: SuperblockState = BLOCK
        self.log: list[Prepare] = []
        self.view = 0
        self.asked: list[Prepare] = []
        self.kept = ALL
        self.sound = True
        self.held: set[str] = set()
        self.touched = False
        self.done: list[str] = []
        self.journal = RingJournal.open(self.file, self.block)
        self.append()

    # What a replica does

    def append(self) -> None:
        """The next prepares of its view, as far as there is room; only a journal that is whole takes some."""
        room = self.block.checkpoint + GEOMETRY.slots - len(self.log)
        if room <= 0 or self.journal.damage(self.block) is not None:
            return
        more = self._entries(self.random.randint(1, room), self.log, self.block.log_view)
        self.asked = max(self.asked, self.log + more, key=len)
        with self.fused(0.3, f"appending {len(more)}") as whole:
            self.journal.append(more)
        if whole:
            self.log = self.log + more

    def mend(self) -> None:
        """Prepares come from the cluster; once all are there, a later view may name the log."""
        missing = [each for each in self._above_checkpoint(self.log) if each.header.checksum not in self.journal]
        fetched = missing if self.random.random() < 0.5 else [each for each in missing if self.random.random() < 0.7]
        own = self.random.random() < 0.5
        beside = {header.checksum for _, _, repair, header in self.journal.records() if repair}
        again = [each for each in self._above_checkpoint(self.log) if own and each.header.checksum in beside]
        what = f"fetching {[each.header.op for each in fetched + again]}{', for itself' if own else ''}"
        with self.fused(0.4, what) as whole:
            for each in fetched + again:
                self.journal.append([each], repair=not own)
        if whole and self.log and fetched == missing and self.random.random() < 0.6:
            self._name(self.log, self._later_view())

    def overrule(self) -> None:
        """A later view has another log: it is written beside the old one, and then named."""
        kept = self.random.randint(self.block.checkpoint, len(self.log))
        room = self.block.checkpoint + GEOMETRY.slots - kept
        new, view = self.log[:kept], self._later_view()
        new += self._entries(self.random.randint(0, room), new, view)
        if not new:
            return
        self.kept = min(self.kept, kept)
        missing = [each for each in self._above_checkpoint(new) if each.header.checksum not in self.journal]
        with self.fused(0.4, f"installing {len(new) - kept} above {kept}") as whole:
            self.journal.append(missing, repair=True)
        if whole and self.random.random() < 0.8:
            self.log = new
            self._name(new, view)

    def transfer(self) -> None:
        """A later view has ops that the ring has no room for: they are written for a snapshot that comes with them."""
        checkpoint, view = len(self.log) + self.random.randint(0, GEOMETRY.slots), self._later_view()
        new = self.log + self._entries(checkpoint - len(self.log), self.log, view)
        new += self._entries(self.random.randint(1, GEOMETRY.slots), new, view)
        self.held = set()  # what the snapshot holds was committed, and others have it durable: no copy is missed
        with self.fused(0.6, f"installing {len(new) - checkpoint} above a snapshot of {checkpoint}") as whole:
            self.journal.append(new[checkpoint:], repair=True)
        if whole and self.random.random() < 0.8:
            self.log = new
            self.block = replace(self.block, checkpoint=checkpoint)
            self._name(new, view)

    def settle(self) -> None:
        """A log that was mended is named up to its head; then all that is not of it is erased."""
        if self.journal.damage(self.block) is not None or not self.log:
            return
        head = self.log[-1].header
        self.block = replace(self.block, head_op=head.op, head_checksum=head.checksum)
        self.journal.on_superblock(self.block)
        with self.fused(0.3, "erasing the rest"):
            self.journal.drain(MemoryFileSystem(), self.block.checkpoint, self.journal.log_names(self.block))

    def checkpoint(self) -> None:
        """A snapshot holds what is below; its slots are free."""
        if self.journal.damage(self.block) is not None or not self.log:
            return
        op = self.random.randint(self.block.checkpoint, len(self.log))
        if self.block.head_op < op:
            head = self.log[op - 1].header
            self.block = replace(self.block, head_op=op, head_checksum=head.checksum)
        self.block = replace(self.block, checkpoint=op)
        self.journal.on_superblock(self.block)
        with self.fused(0.3, f"draining up to {op}"):
            self.journal.drain(MemoryFileSystem(), op)

    def _entries(self, count: int, log: list[Prepare], view: int) -> list[Prepare]:
        parent = log[-1].header.checksum if log else CHECKSUM_NONE
        return chain(len(log) + 1, len(log) + count, parent, view)

    def _above_checkpoint(self, log: list[Prepare]) -> list[Prepare]:
        return log[self.block.checkpoint :]

    def _later_view(self) -> int:
        """One that nobody has been in: what was prepared in a view is one log, named or not."""
        self.view += 1
        return self.view

    def _name(self, log: list[Prepare], view: int) -> None:
        head = log[-1].header
        self.block = replace(self.block, view=view, log_view=view, head_op=head.op, head_checksum=head.checksum)
        self.journal.on_superblock(self.block)
        self.asked, self.kept = [], ALL
        self.done.append(f"log_view {view}")

    # What befalls it

    def rot(self) -> None:
        """The header ring, the prepare ring or both rot, in some cells."""
        names = {each.header.checksum for each in self.random.sample(self.log, min(len(self.log), 2))}
        cells = [
            cell
            for cell, found in enumerate(self.journal._cells)
            if self.random.random() < 0.05 or (found.header is not None and found.header.checksum in names)
        ]
        for cell in cells:
            for offset in (GEOMETRY.header_at(cell), GEOMETRY.prepare_at(cell)):
                if self.random.random() < 0.6:
                    spoil(self.file, offset)
                    self.sound, self.touched = False, True
        self.done.append(f"cells {cells} rot")

    @contextmanager
    def fused(self, chance: float, what: str) -> Iterator[list[bool]]:
        """Power may go in what is done; then the replica boots. What is given is true afterwards if it did not."""
        whole: list[bool] = []
        self.file.left = self.random.randint(1, 12) if self.random.random() < chance else -1
        try:
            yield whole
            whole.append(True)
            self.done.append(what)
        except PowerLossError:
            self.crash(what)
            self.boot()
        finally:
            self.file.left = -1

    def crash(self, where: str) -> None:
        self.file.left = -1
        kept = self.random.choice((0, PART_OF_A_CHECKSUM, PART_OF_A_SECTOR, SECTOR, ALL))
        self.sound &= kept not in (PART_OF_A_CHECKSUM, PART_OF_A_SECTOR)
        self.touched |= kept not in (0, ALL)
        self.file.crash(lambda length: min(length, kept) if self.random.random() < 0.8 else 0)
        self.done.append(f"power loss in {where}, {kept} bytes of a write stay")

    def boot(self) -> None:
        """Opens the journal, sometimes with a power loss on the way, and judges what it says of the log."""
        while True:
            self.file.left = self.random.randint(1, 8) if self.random.random() < 0.3 else -1
            try:
                self.journal = RingJournal.open(self.file, self.block)
                break
            except PowerLossError:
                self.crash("boot")
        self.file.left = -1
        self.judge()

    def judge(self) -> None:
        damage = self.journal.damage(self.block)
        least = min(len(self.log), self.kept)
        names = {each.header.checksum for each in self.log[self.block.checkpoint : least]}
        here = {name for name in names if name in self.journal}
        assert self.touched or self.held & names <= here, self.done
        self.held, self.touched = here, False
        if damage is not None:
            assert damage.op_max >= least, self.done
            assert not self.sound, self.done
            self.done.append(f"damaged, {len(damage.held)} held, up to {damage.op_max}")
            return
        found = self.log[: self.block.checkpoint] + list(self.journal.log(self.block))
        assert len(found) >= least, self.done
        assert found == self.log[: len(found)] or found == self.asked[: len(found)], self.done
        self.log, self.sound = found, True
        self.done.append("whole")


def judged(seed: int) -> Disk:
    disk = Disk(seed)
    for _ in range(ROUNDS):
        if disk.random.random() < 0.5:
            disk.rot()
        disk.boot()
        acts = (disk.append, disk.mend, disk.mend, disk.settle, disk.overrule, disk.transfer, disk.checkpoint)
        disk.random.choice(acts)()
        if disk.random.random() < 0.5:
            disk.crash("rest")
    return disk


@pytest.mark.parametrize("left", range(1, 7))
def test_what_hides_a_loss_does_so_while_it_is_written_again(left: int) -> None:
    """A prepare came for another log, into a cell that had lost its header; it is written for the own one, and torn."""
    file = FusedFile("journal")
    RingJournal.format(file, 1, 0, GEOMETRY.slots, GEOMETRY.slot_size)
    log = chain(1, 3, CHECKSUM_NONE, 0)
    RingJournal.open(file, BLOCK).append(log)
    spoil(file, GEOMETRY.header_at(1))
    journal = RingJournal.open(file, BLOCK)
    journal.append(log[:1], repair=True)
    file.left = left
    with pytest.raises(PowerLossError):
        journal.append(log[:1])
    file.left = -1
    file.crash(lambda length: min(length, PART_OF_A_CHECKSUM))
    journal = RingJournal.open(file, BLOCK)
    damage = journal.damage(BLOCK)
    assert (len(journal.log(BLOCK)) if damage is None else damage.op_max) >= len(log)


class RefusingFile(MemoryFile):
    """Refuses the write with number `left`, counted down to, and each that follows within `sector` of it."""

    left = -1
    bad = -1

    def write_at(self, offset: int, data: bytes) -> None:
        self.left -= 1
        if self.left == 0:
            self.bad = offset
        if 0 <= self.bad == offset:
            raise OSError(errno.EIO, "Input/output error")
        super().write_at(offset, data)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("lost", ["prepare", "header", "both"])
@pytest.mark.parametrize("op", [2, 3])
@pytest.mark.parametrize("left", range(1, 4))
def test_what_hides_a_loss_does_so_after_the_disk_has_refused_to_mend_it(
    left: int, op: int, lost: str, own: bool
) -> None:
    """A write into a sector that cannot be read is refused; so is that which would take it back."""
    file = RefusingFile("journal")
    RingJournal.format(file, 1, 0, GEOMETRY.slots, GEOMETRY.slot_size)
    log = chain(1, 3, CHECKSUM_NONE, 0)
    RingJournal.open(file, BLOCK).append(log)
    for offset in (GEOMETRY.prepare_at(op), GEOMETRY.header_at(op))[lost == "header" : 1 + (lost != "prepare")]:
        spoil(file, offset)
    known = RingJournal.open(file, BLOCK).damage(BLOCK) is not None
    journal = RingJournal.open(file, BLOCK)
    file.left = left
    with suppress(JournalError):
        journal.append(log[op - 1 : op], repair=not own)
    file.left = file.bad = -1
    file.crash(lambda length: length)
    journal = RingJournal.open(file, BLOCK)
    damage = journal.damage(BLOCK)
    assert known or (lost, op) == ("header", 3), "the last prepare under a broken header is taken"
    assert (len(journal.log(BLOCK)) if damage is None else damage.op_max) >= len(log)


@pytest.mark.parametrize("left", [*range(1, 9), -1])
def test_the_last_prepare_with_its_header_lost_stays_known_when_the_next_one_comes_again(left: int) -> None:
    """It was told by being the last that is known; both replicas of a cluster lost one like this (seed 65,019,851)."""
    file = FusedFile("journal")
    RingJournal.format(file, 1, 0, GEOMETRY.slots, GEOMETRY.slot_size)
    log = chain(1, 3, CHECKSUM_NONE, 0)
    block = replace(BLOCK, head_op=3, head_checksum=log[2].header.checksum)
    RingJournal.open(file, BLOCK).append(log)
    for offset in (GEOMETRY.header_at(2), GEOMETRY.header_at(3), GEOMETRY.prepare_at(3)):
        spoil(file, offset)
    journal = RingJournal.open(file, block)
    assert log[1].header.checksum in journal
    file.left = left
    with suppress(PowerLossError):
        journal.append(log[2:])
    file.left = -1
    file.crash(lambda length: length)
    assert log[1].header.checksum in RingJournal.open(file, block)


def test_the_end_of_the_log_is_never_forgotten() -> None:
    told = [line for seed in range(400) for line in judged(seed).done]
    assert {"whole", "log_view 1", "power loss in boot, 0 bytes of a write stay"} <= set(told)
    assert any(line.startswith("damaged") for line in told)


def test_the_mark_of_a_loss_that_was_drained_counts_for_nothing() -> None:
    """A write over its record was torn, of a log to install: the own log is as whole as before."""
    assert judged(38_874).done.count("whole") > 1


@pytest.mark.long
def test_the_end_of_the_log_is_never_forgotten_in_many_runs() -> None:
    for seed in range(400, 40_000):
        judged(seed)
