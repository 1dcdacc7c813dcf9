"""The ring journal: every I/O at which power can go, every row of its decision table, rot, wrap-around, two logs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count

import pytest

from viewproof.impl.interface.durable import DamagedLog, SuperblockState, superblock_formatted
from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare, make_header
from viewproof.impl.storage.file import MemoryFile, MemoryFileSystem
from viewproof.impl.storage.records import JournalError
from viewproof.impl.storage.ring import RingJournal
from viewproof.impl.storage.ring_file import SECTOR, Geometry
from viewproof.impl.storage.ring_table import BROKEN, RESERVED, TABLE, Bounds, Found, decide

SLOTS = 4
BLOCK = superblock_formatted(1, 0, 3)
SOLO = superblock_formatted(1, 0, 1)


def prepare(op: int, parent: str, view: int = 0, size: int = 700) -> Prepare:
    body = bytes((op + view * 50) % 251 for _ in range(size))
    header = make_header(parent=parent, view=view, op=op, client=1, request=op, commit=op - 1, body=body)
    return Prepare(header, body)


def chain(first: int, last: int, parent: str = CHECKSUM_NONE, view: int = 0) -> list[Prepare]:
    log: list[Prepare] = []
    for op in range(first, last + 1):
        log.append(prepare(op, parent, view))
        parent = log[-1].header.checksum
    return log


def ring() -> MemoryFile:
    file = MemoryFile("journal")
    RingJournal.format(file, 1, 0, SLOTS, 4 * SECTOR)
    return file


def cell_of(journal: RingJournal, each: Prepare) -> int:
    return next(
        cell
        for cell, found in enumerate(journal._cells)
        if found.header is not None and found.header.checksum == each.header.checksum
    )


def spoil(file: MemoryFile, offset: int) -> None:
    """One sector rots."""
    for content in (file.content, file.durable):
        content[offset + 20] ^= 0x55


def spoiled(log: list[Prepare], where: Callable[[RingJournal], list[int]]) -> tuple[RingJournal, DamagedLog | None]:
    file = ring()
    journal = RingJournal.open(file, BLOCK)
    journal.append(log)
    for offset in where(journal):
        spoil(file, offset)
    journal = RingJournal.open(file, BLOCK)
    return journal, journal.damage(BLOCK)


def test_appends_are_there_after_opening() -> None:
    file = ring()
    journal = RingJournal.open(file, BLOCK)
    log = chain(1, 4)
    journal.append(log[:1])
    journal.append(log[1:])
    assert RingJournal.open(file, BLOCK).log(BLOCK) == tuple(log)
    assert RingJournal.open(file, BLOCK).damage(BLOCK) is None


def test_wraps_around_over_what_is_drained_and_never_over_what_is_not() -> None:
    file = ring()
    journal = RingJournal.open(file, BLOCK)
    log = chain(1, 9)
    journal.append(log[:4])
    with pytest.raises(JournalError, match="takes one of 4 slots"):
        journal.append(log[4:5])
    block = replace(BLOCK, checkpoint=3, head_op=3, head_checksum=log[2].header.checksum)
    journal.on_superblock(block)
    journal.drain(MemoryFileSystem(), 3)
    journal.append(log[4:7])
    journal = RingJournal.open(file, block)
    assert journal.damage(block) is None
    assert journal.log(block, log[2].header.checksum) == tuple(log[3:7])
    with pytest.raises(JournalError, match="takes one of 4 slots"):
        journal.append(log[7:8])


def test_a_log_to_install_leaves_the_old_one_whole_until_the_superblock_names_it() -> None:
    file = ring()
    journal = RingJournal.open(file, BLOCK)
    old, new = chain(1, 3), chain(1, 4, view=1)
    journal.append(old)
    journal.append(new, repair=True)
    assert RingJournal.open(file, BLOCK).log(BLOCK) == tuple(old)
    block = replace(BLOCK, view=1, log_view=1, head_op=4, head_checksum=new[-1].header.checksum)
    assert RingJournal.open(file, block).log(block) == tuple(new)
    journal.on_superblock(block)
    third = chain(2, 4, new[0].header.checksum, view=2)
    journal.append(third, repair=True)
    assert RingJournal.open(file, block).log(block) == tuple(new)


def _survival(keep: int, skipped: int | None = None) -> Callable[[int], int]:
    """Keeps so many bytes of each write, and nothing of one of them."""
    order = count()
    return lambda length: 0 if next(order) == skipped else min(length, keep)


def _crash_points(act: Callable[[RingJournal], None], before: list[Prepare], block: SuperblockState) -> int:
    """Cuts the power at each I/O of `act`, with nothing, whole sectors, odd parts or all left of what was not synced;
    returns the number of cases. The log must be `before`, and a prefix of what was being appended. Only a sector of
    which a part was written can damage it, and never to a cluster of one.
    """
    points, blown, at = 0, True, -1
    while blown:
        at += 1
        for keep in (0, 1, 100, SECTOR, SECTOR + 1, 2 * SECTOR, 1 << 20):
            for skipped in (None, 0, 1):
                file = ring()
                journal = RingJournal.open(file, block)
                journal.append(before)
                fuse = _Fuse(file, at)
                with suppress(_PowerLossError):
                    act(journal)
                fuse.remove()
                file.crash(_survival(keep, skipped))
                journal = RingJournal.open(file, block)
                points += 1
                damage = journal.damage(block)
                if damage is not None:
                    assert block is BLOCK, (at, keep, skipped)
                    assert keep % SECTOR, (at, keep, skipped)
                    assert set(before) < set(damage.held)
                    assert damage.head_op > len(before)
                    continue
                log = journal.log(block)
                assert log[: len(before)] == tuple(before)
                names = {each.header.checksum for each in log[len(before) :]}
                assert names <= {each.header.checksum for each in chain(1, 6)}
                if not fuse.blown:
                    assert len(log) == 4
                blown = fuse.blown
    return points


class _PowerLossError(Exception):
    pass


class _Fuse:
    def __init__(self, file: MemoryFile, at: int) -> None:
        self.left, self.blown, self.file = at, False, file
        write, sync = file.write_at, file.sync

        def burn(call: Callable[..., None], *args: object) -> None:
            if self.left == 0:
                self.blown = True
                if args:
                    call(*args)  # the write in flight: crash decides what is left of it
                raise _PowerLossError
            self.left -= 1
            call(*args)

        file.write_at = lambda offset, data: burn(write, offset, data)  # type: ignore[method-assign]
        file.sync = lambda: burn(sync)  # type: ignore[method-assign]

    def remove(self) -> None:
        del self.file.write_at, self.file.sync


@pytest.mark.parametrize("block", [BLOCK, SOLO], ids=["three", "alone"])
def test_power_goes_at_every_io_of_an_append(block: SuperblockState) -> None:
    log = chain(1, 4)
    assert _crash_points(lambda journal: journal.append(log[2:]), log[:2], block) > 100


def test_power_goes_at_every_io_of_erasing_what_a_drain_leaves() -> None:
    log = chain(1, 4)
    old = replace(BLOCK, log_view=0)
    stale = chain(2, 4, log[0].header.checksum, view=1)

    def act(journal: RingJournal) -> None:
        journal.append(stale, repair=True)
        journal.drain(MemoryFileSystem(), 0, {each.header.checksum for each in log})

    for at in count():
        for keep in (0, SECTOR, 1 << 20):
            file = ring()
            journal = RingJournal.open(file, old)
            journal.append(log)
            fuse = _Fuse(file, at)
            with suppress(_PowerLossError):
                act(journal)
            fuse.remove()
            file.crash(_survival(keep))
            assert RingJournal.open(file, old).log(old) == tuple(log), (at, keep)
        if not fuse.blown:
            assert at > 10
            return


# Damage


def header_of(log: list[Prepare], *ops: int) -> Callable[[RingJournal], list[int]]:
    return lambda journal: [journal.geometry.header_at(cell_of(journal, log[op - 1])) for op in ops]


def body_of(log: list[Prepare], *ops: int) -> Callable[[RingJournal], list[int]]:
    return lambda journal: [journal.geometry.prepare_at(cell_of(journal, log[op - 1])) + SECTOR for op in ops]


def both(log: list[Prepare], op: int) -> Callable[[RingJournal], list[int]]:
    return lambda journal: header_of(log, op)(journal) + body_of(log, op)(journal)


LOG = chain(1, 3)


def test_a_broken_header_of_the_highest_op_is_rewritten() -> None:
    journal, damage = spoiled(LOG, header_of(LOG, 3))
    assert damage is None
    assert journal.log(BLOCK) == tuple(LOG)
    assert RingJournal.open(journal._file, BLOCK).recovery.rows["equal and valid"] == 3


@pytest.mark.parametrize("op", [1, 2, 3])
def test_a_rotten_prepare_is_known_by_its_header(op: int) -> None:
    _, damage = spoiled(LOG, body_of(LOG, op))
    assert damage is not None
    assert (damage.head_op, damage.head_checksum, damage.op_max) == (3, LOG[-1].header.checksum, 3)
    assert set(damage.held) == set(LOG) - {LOG[op - 1]}
    assert damage.known == (LOG[op - 1].header,)


def test_both_rings_broken_below_the_head() -> None:
    _, damage = spoiled(LOG, both(LOG, 2))
    assert damage is not None
    assert (damage.head_op, damage.op_max, damage.known) == (3, 3, ())


def test_both_rings_broken_at_the_head_leave_it_uncertain() -> None:
    _, damage = spoiled(LOG, both(LOG, 3))
    assert damage is not None
    assert (damage.head_op, damage.op_max) == (2, 3)


def test_a_cluster_of_one_stops() -> None:
    file = ring()
    journal = RingJournal.open(file, SOLO)
    journal.append(LOG)
    spoil(file, body_of(LOG, 2)(journal)[0])
    with pytest.raises(JournalError, match="nobody to repair from"):
        RingJournal.open(file, SOLO).damage(SOLO)


def test_a_prepare_to_install_does_not_hide_an_uncertain_head() -> None:
    file = ring()
    journal = RingJournal.open(file, BLOCK)
    journal.append(LOG)
    for offset in both(LOG, 3)(journal):
        spoil(file, offset)
    journal = RingJournal.open(file, BLOCK)
    new = chain(1, 4, view=1)
    journal.append(new, repair=True)
    damage = RingJournal.open(file, BLOCK).damage(BLOCK)
    assert damage is not None
    assert damage.op_max >= 3
    journal.append(chain(1, 4, view=2), repair=True)
    damage = RingJournal.open(file, BLOCK).damage(BLOCK)
    assert damage is not None
    assert damage.op_max >= 3
    block = replace(BLOCK, view=1, log_view=1, head_op=2, head_checksum=LOG[1].header.checksum)
    assert RingJournal.open(file, block).damage(block) is None


def test_lost_and_misdirected_writes_are_found() -> None:
    file = ring()
    journal = RingJournal.open(file, BLOCK)
    journal.append(LOG[:2])
    geometry = Geometry(SLOTS, 4 * SECTOR)
    here, there = geometry.cells_of(3)[0], geometry.cells_of(2)[0]
    fresh = bytes(file.content)
    journal.append(LOG[2:])
    start, end = geometry.prepare_at(here), geometry.prepare_at(here) + geometry.slot_size
    data = bytes(file.content[start:end])
    for content in (file.content, file.durable):
        content[start:end] = fresh[start:end]
    damage = RingJournal.open(file, BLOCK).damage(BLOCK)
    assert damage is not None
    assert damage.known == (LOG[2].header,)
    aim = geometry.prepare_at(there)
    for content in (file.content, file.durable):
        content[aim : aim + len(data)] = data
    damage = RingJournal.open(file, BLOCK).damage(BLOCK)
    assert damage is not None
    assert set(damage.known) == {LOG[1].header, LOG[2].header}


def test_a_drained_prepare_under_a_broken_header_does_not_say_what_the_header_named() -> None:
    """The write of a prepare was lost, then its header rots: what is left in the cell is of an op long drained."""
    file, log = ring(), chain(1, 6)
    RingJournal.open(file, BLOCK).append(log[:4])
    block = replace(BLOCK, checkpoint=4, head_op=4, head_checksum=log[3].header.checksum)
    journal = RingJournal.open(file, block)
    cell = cell_of(journal, log[1])
    at = journal.geometry.prepare_at(cell)
    drained = bytes(file.content[at : at + 4 * SECTOR])
    journal.append(log[4:])
    assert cell_of(journal, log[5]) == cell, "op 6 took the place of op 2"
    for content in (file.content, file.durable):
        content[at : at + 4 * SECTOR] = drained
    damage = RingJournal.open(MemoryFile("copy", bytes(file.content)), block).damage(block)
    assert damage is not None
    assert (damage.head_op, damage.op_max) == (6, 6), "its header is enough"
    spoil(file, journal.geometry.header_at(cell))
    damage = RingJournal.open(file, block).damage(block)
    assert damage is not None
    assert (damage.head_op, damage.op_max) == (5, 6)


def test_an_overruled_prepare_under_a_broken_header_is_not_what_the_header_named() -> None:
    """Op 3 of view 0 was overruled; the write of that of view 1 was lost in its cell, and then its header rots."""
    file, old = ring(), chain(1, 3)
    RingJournal.open(file, BLOCK).append(old)
    block = replace(BLOCK, view=1, log_view=1, head_op=2, head_checksum=old[1].header.checksum)
    journal = RingJournal.open(file, block)
    cell, at = cell_of(journal, old[2]), journal.geometry.prepare_at(cell_of(journal, old[2]))
    overruled = bytes(file.content[at : at + 4 * SECTOR])
    new = prepare(3, old[1].header.checksum, view=1)
    journal.append([new])
    assert cell_of(journal, new) == cell, "it took the place of the other one"
    for content in (file.content, file.durable):
        content[at : at + 4 * SECTOR] = overruled
    assert RingJournal.open(MemoryFile("copy", bytes(file.content)), block).recovery.rows[
        "same op, different checksums"
    ]
    spoil(file, journal.geometry.header_at(cell))
    for _ in range(2):
        journal = RingJournal.open(file, block)
        damage = journal.damage(block)
        assert journal.recovery.rows["header broken, prepare the highest op"] == 1
        assert damage is not None, "also after another crash"
        assert (damage.head_op, damage.op_max) == (2, 3)


# The table

H1, H5, H5B, H9 = (prepare(op, "00" * 16, view).header for op, view in ((1, 0), (5, 0), (5, 1), (9, 0)))
BOUNDS = Bounds(checkpoint=4, op_max=8, op_highest=5)
CASES = {
    "both reserved": (RESERVED, RESERVED, "nil"),
    "op beyond the largest possible": (Found(H9), Found(H9), "cut"),
    "both broken": (BROKEN, BROKEN, "vsr"),
    "header broken, prepare the highest op": (BROKEN, Found(H5), "fix"),
    "header broken, prepare reserved or not the highest": (BROKEN, Found(H1), "vsr"),
    "header reserved or drained, prepare broken": (Found(H1), BROKEN, "cut"),
    "header ok, prepare broken": (Found(H5), BROKEN, "vsr"),
    "header reserved, prepare valid": (RESERVED, Found(H5), "fix"),
    "header valid, prepare reserved": (Found(H5), RESERVED, "vsr"),
    "header older than prepare": (Found(H1), Found(H5), "fix"),
    "header newer than prepare": (Found(H5), Found(H1), "vsr"),
    "same op, different checksums": (Found(H5), Found(H5B), "vsr"),
    "equal and valid": (Found(H5), Found(H5), "eql"),
}


@pytest.mark.parametrize("row", [row for row, _, _ in TABLE])
def test_each_row_of_the_table(row: str) -> None:
    header, found, decision = CASES[row]
    assert decide(header, found, BOUNDS) == (row, decision)


def test_every_pair_is_decided() -> None:
    kinds = [RESERVED, BROKEN, *(Found(each) for each in (H1, H5, H5B, H9))]
    rows = {decide(header, found, BOUNDS)[0] for header in kinds for found in kinds}
    assert rows == {row for row, _, _ in TABLE}
