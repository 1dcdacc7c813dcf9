"""The journal: torn ends are cut, damage is never cut, failed appends leave nothing, the log is a chain.

Of a `MemoryFile`, `durable` is what a power loss leaves: without the mark of the last append, which no sync followed;
`content` is what a killed process leaves, with it.
"""

from __future__ import annotations

import errno
import random
from dataclasses import replace

import pytest

from viewproof.impl.interface.durable import superblock_formatted
from viewproof.impl.interface.messages import Prepare, make_header
from viewproof.impl.storage.file import MemoryFile, MemoryFileSystem
from viewproof.impl.storage.journal import FILE_HEADER_SIZE, RECORD_SIZE_MIN, Journal, JournalError
from viewproof.impl.storage.records import FILE_HEADER, GROUP_HEADER_SIZE, MARK_OFFSET, read_mark

SUPERBLOCK = superblock_formatted(cluster=7, replica=1, replica_count=3)
ALONE = replace(SUPERBLOCK, replica_count=1)
SECTOR = 512


def entry(op: int, parent: str = "", view: int = 0, body: bytes = b"body") -> Prepare:
    header = make_header(parent=parent, view=view, op=op, client=1, request=op, commit=0, body=body)
    return Prepare(header=header, body=body)


def chain(length: int, view: int = 0, start: Prepare | None = None) -> list[Prepare]:
    entries: list[Prepare] = []
    op, parent = (start.header.op, start.header.checksum) if start else (0, "")
    for _ in range(length):
        op += 1
        entries.append(entry(op, parent, view, b"x" * op))
        parent = entries[-1].header.checksum
    return entries


def formatted() -> tuple[MemoryFile, Journal]:
    file = MemoryFile("journal")
    return file, Journal.format(file, 7, 1)


def reopen(data: bytes) -> Journal:
    return Journal.open(MemoryFile("journal", data), 7, 1)


def test_what_was_appended_is_the_log_after_opening() -> None:
    file, journal = formatted()
    entries = chain(5)
    journal.append(entries[:2])
    journal.append(entries[2:])
    opened = reopen(bytes(file.durable))
    assert opened.log(SUPERBLOCK) == tuple(entries)
    assert opened.recovery.records == 5
    assert opened.recovery.cut_offset is None
    assert opened.read(entries[3].header.checksum) == entries[3]
    assert opened.read("00" * 16) is None
    assert file.syncs == 3


def test_every_truncation_of_the_last_record_is_cut_and_reported() -> None:
    file, journal = formatted()
    entries = chain(3)
    journal.append(entries[:2])
    start = journal.size
    journal.append(entries[2:])
    for size in range(start + 1, journal.size):
        torn = MemoryFile("journal", bytes(file.durable[:size]))
        opened = Journal.open(torn, 7, 1)
        assert opened.log(SUPERBLOCK) == tuple(entries[:2])
        assert opened.recovery.cut_offset == start
        assert opened.recovery.cut_bytes == size - start
        assert len(torn.durable) == start
        opened.append(entries[2:])
        assert reopen(bytes(torn.durable)).log(SUPERBLOCK) == tuple(entries)


def test_every_flipped_byte_before_the_last_group_is_damage_not_a_shorter_log() -> None:
    file, journal = formatted()
    entries = chain(3)
    ends = [journal.size]
    for prepare in entries:
        journal.append([prepare])
        ends.append(journal.size)
    for index in range(2):
        for position in range(ends[index] + GROUP_HEADER_SIZE, ends[index + 1]):
            damaged = bytearray(file.durable)
            damaged[position] ^= 0x10
            opened = reopen(bytes(damaged))
            found = opened.damage(SUPERBLOCK)
            assert found is not None
            assert (found.head_op, found.head_checksum, found.op_max) == (3, entries[2].header.checksum, 3)
            assert found.held == tuple(entry for entry in entries if entry is not entries[index])
            with pytest.raises(JournalError, match=f"bytes {ends[index] + GROUP_HEADER_SIZE}.*no other"):
                opened.damage(ALONE)


def test_damage_behind_the_last_whole_record_may_hide_more_of_the_log() -> None:
    file, journal = formatted()
    entries = chain(3)
    journal.append(entries[:1])
    start = journal.size
    journal.append(entries[1:2])
    end = journal.size
    journal.append(chain(1, view=0, start=entries[2]), repair=True)
    damaged = bytearray(file.durable)
    damaged[start + GROUP_HEADER_SIZE] ^= 1
    found = reopen(bytes(damaged)).damage(SUPERBLOCK)
    assert found is not None
    assert found.head_op == 1
    assert found.op_max >= 2
    assert found.op_max == 1 + -(-(end - start - GROUP_HEADER_SIZE) // RECORD_SIZE_MIN)


def test_a_damaged_journal_is_drained_only_by_the_names_of_its_log() -> None:
    files = MemoryFileSystem()
    journal = Journal.format(files.create("d/journal"), 7, 1)
    entries = chain(4)
    for entry in entries:
        journal.append([entry])
    content = files.files["d/journal"].content
    content[journal.records()[1][0]] ^= 1
    opened = Journal.open(files.open("d/journal"), 7, 1)
    with pytest.raises(JournalError, match="drained once the log is whole"):
        opened.drain(files, 1)
    assert opened.log_names(SUPERBLOCK) == {entry.header.checksum for entry in entries if entry is not entries[1]}
    opened.append([entries[1]])
    assert opened.damage(SUPERBLOCK) is not None
    opened.drain(files, 0, opened.log_names(SUPERBLOCK))
    assert opened.damage(SUPERBLOCK) is None
    assert opened.log(SUPERBLOCK) == tuple(entries)
    assert Journal.open(files.open("d/journal"), 7, 1).log(SUPERBLOCK) == tuple(entries)


def appended(bodies: list[bytes]) -> tuple[MemoryFile, Prepare, int]:
    """One op, then one append with these bodies; the first op's entry, and where the append begins."""
    file, journal = formatted()
    first = entry(1)
    journal.append([first])
    start = journal.size
    group = [first]
    for op, body in enumerate(bodies, 2):
        group.append(entry(op, group[-1].header.checksum, 0, body))
    journal.append(group[1:])
    return file, first, start


def needs_repair(data: bytes, first: Prepare) -> None:
    """The end of the log is uncertain to one of several replicas, and one alone does not start."""
    opened = reopen(data)
    found = opened.damage(SUPERBLOCK)
    assert found is not None
    assert found.head_op == len(found.held)
    assert found.held[0] == first
    assert found.op_max > found.head_op
    assert opened.recovery.cut_offset is None
    with pytest.raises(JournalError, match=r"journal: bytes \d+\.\.\d+ are damaged.*Restore.*`vsr recover`"):
        opened.damage(ALONE)


def test_every_flipped_bit_of_the_last_append_is_damage() -> None:
    """Also if a power loss took the mark: it is no torn write, since nothing of it is unwritten."""
    file, first, start = appended([b"body"])
    for position in range(start, len(file.durable)):
        for data in (file.durable, file.content):
            damaged = bytearray(data)
            damaged[position] ^= 1 << position % 8
            if position < start + GROUP_HEADER_SIZE:  # tells nothing that the record does not
                opened = reopen(bytes(damaged))
                assert (len(opened.log(ALONE)), opened.damage(ALONE)) == (2, None)
            else:
                needs_repair(bytes(damaged), first)


def test_an_append_with_sectors_that_were_never_written_is_cut() -> None:
    """Any of them, be the file short or not; nothing of the append is kept, also if its bodies are all zeros."""
    source = random.Random(1)
    for bodies in ([bytes(3000)], [source.randbytes(700), b"", bytes(900)], [b"x"], [bytes(330)], [bytes(358)]):
        file, first, start = appended(bodies)
        end = len(file.durable)
        sectors = [(max(start, at), min(end, at + SECTOR)) for at in range(start // SECTOR * SECTOR, end, SECTOR)]
        subsets = [1 << at for at in range(len(sectors))] + [source.randrange(1, 1 << len(sectors)) for _ in range(20)]
        for subset in subsets:
            torn = bytearray(file.durable)
            for number, (low, high) in enumerate(sectors):
                if subset >> number & 1:
                    torn[low:high] = bytes(high - low)
            for data in (torn, torn.rstrip(b"\0")):
                opened = reopen(bytes(data))
                assert opened.damage(ALONE) is None
                assert opened.log(ALONE) == (first,)
                assert opened.recovery.cut_offset in (start, None)
            marked = bytearray(file.content)
            marked[start:] = torn[start:]
            found = reopen(bytes(marked)).damage(SUPERBLOCK)
            assert found is not None or len(reopen(bytes(marked)).log(SUPERBLOCK)) == 1 + len(bodies)


def test_a_write_cut_short_at_any_byte_is_torn_unless_it_was_marked() -> None:
    file, first, start = appended([b"some body", bytes(400)])
    for size in range(start + 1, len(file.durable)):
        for data in (file.durable[:size], (file.durable[:size]).ljust(len(file.durable) - 8, b"\0")):
            opened = reopen(bytes(data))
            assert opened.log(ALONE) == (first,)
            assert opened.recovery.cut_offset == start
        needs_repair(bytes(file.content[:size]), first)
    for zeros in range(8, len(file.durable) - start):
        tail = bytes(file.durable[:-zeros]) + bytes(zeros)
        assert reopen(tail).log(ALONE) == (first,)


def test_what_a_later_append_began_behind_had_been_durable() -> None:
    file, first, start = appended([bytes(600)])
    torn = bytearray(file.durable)
    torn[start + SECTOR : start + 2 * SECTOR] = bytes(SECTOR)
    assert reopen(bytes(torn)).log(ALONE) == (first,)
    needs_repair(bytes(torn) + b"\x9d" * 8, first)
    whole = bytearray(file.durable)
    journal = Journal.open(file, 7, 1)
    journal.append([entry(3, "ab" * 16)])
    lost = bytearray(file.durable)
    lost[MARK_OFFSET] ^= 1
    lost[start : len(whole)] = bytes(len(whole) - start)
    found = reopen(bytes(lost)).damage(SUPERBLOCK)
    assert found is not None
    assert [each.header.op for each in found.held] == [1, 3]


def test_a_journal_that_was_opened_marks_what_it_holds() -> None:
    file, _, start = appended([b"body"])
    assert read_mark(MemoryFile("journal", bytes(file.durable))) == start
    again = MemoryFile("journal", bytes(file.durable))
    Journal.open(again, 7, 1)
    assert read_mark(again) == len(file.durable)
    again.crash()
    for position in range(MARK_OFFSET, MARK_OFFSET + 32):
        damaged = bytearray(file.content)
        damaged[position] ^= 1
        assert read_mark(MemoryFile("journal", bytes(damaged))) == 0
        assert len(reopen(bytes(damaged)).log(SUPERBLOCK)) == 2


def test_a_journal_goes_on_behind_a_damaged_end() -> None:
    file, first, _ = appended([b"body"])
    damaged = bytearray(file.durable)
    damaged[-1] ^= 1
    torn = MemoryFile("journal", bytes(damaged) + b"?")
    opened = Journal.open(torn, 7, 1)
    later = entry(3, "ab" * 16)
    opened.append([later])
    again = reopen(bytes(torn.durable)).damage(SUPERBLOCK)
    assert again is not None
    assert (again.head_op, set(again.held)) == (3, {first, later})


def test_a_crash_in_an_append_keeps_all_or_nothing_of_it() -> None:
    entries = chain(6)
    source = random.Random(1)
    kept = set()
    for _ in range(200):
        file, journal = formatted()
        journal.append(entries[:2])
        file.sync_errno = errno.EIO
        with pytest.raises(JournalError, match="opened again"):
            journal.append(entries[2:])
        with pytest.raises(JournalError, match="open the journal again"):
            journal.append(entries[2:])
        file.sync_errno = None
        file.crash(lambda length: source.choice([length, source.randint(0, length)]))
        log = Journal.open(file, 7, 1).log(SUPERBLOCK)
        assert log == tuple(entries[: len(log)])
        kept.add(len(log))
    assert kept == {2, 6}


def test_a_full_disk_is_reported_and_leaves_the_journal_consistent() -> None:
    entries = chain(3)
    for budget in (0, 1, 50, 200):
        file, journal = formatted()
        journal.append(entries[:1])
        before = file.durable[FILE_HEADER_SIZE:]
        file.write_budget = budget
        with pytest.raises(JournalError, match="nothing of it was kept"):
            journal.append(entries[1:])
        assert file.durable[FILE_HEADER_SIZE:] == before
        file.write_budget = None
        journal.append(entries[1:])
        assert reopen(bytes(file.durable)).log(SUPERBLOCK) == tuple(entries)


def test_the_log_is_the_chain_of_the_superblock_not_the_newest_records() -> None:
    file, journal = formatted()
    old = chain(4)
    journal.append(old)
    new = chain(2, view=1, start=old[1])
    journal.append(new, repair=True)
    later = chain(1, view=2, start=new[-1])
    journal.append(later)
    opened = reopen(bytes(file.durable))
    assert opened.log(SUPERBLOCK) == tuple(old)
    head = new[-1].header
    installed = replace(SUPERBLOCK, view=1, log_view=1, head_op=4, head_checksum=head.checksum)
    assert opened.log(installed) == (*old[:2], *new)
    assert opened.log(replace(installed, view=2, log_view=2)) == (*old[:2], *new, *later)


def test_a_repaired_record_never_extends_the_log() -> None:
    file, journal = formatted()
    entries = chain(3)
    journal.append(entries[:1])
    journal.append(entries[1:], repair=True)
    assert reopen(bytes(file.durable)).log(SUPERBLOCK) == tuple(entries[:1])
    head = replace(SUPERBLOCK, head_op=3, head_checksum=entries[2].header.checksum)
    assert reopen(bytes(file.durable)).log(head) == tuple(entries)


def test_a_missing_link_is_refused() -> None:
    file, journal = formatted()
    entries = chain(3)
    journal.append([entries[0], entries[2]])
    head = replace(SUPERBLOCK, head_op=3, head_checksum=entries[2].header.checksum)
    with pytest.raises(JournalError, match="no record of op 2"):
        reopen(bytes(file.durable)).log(head)


def test_a_journal_of_another_replica_or_no_journal_is_refused() -> None:
    file, _ = formatted()
    with pytest.raises(JournalError, match="belongs to replica 1 of cluster 7"):
        Journal.open(MemoryFile("journal", bytes(file.durable)), 7, 2)
    with pytest.raises(JournalError, match="belongs to"):
        Journal.open(MemoryFile("journal", bytes(file.durable)), 8, 1)
    for position in range(FILE_HEADER.size + 16):
        damaged = bytearray(file.durable)
        damaged[position] ^= 1
        with pytest.raises(JournalError, match=r"damaged or not a journal|format version \d"):
            reopen(bytes(damaged))
    old = FILE_HEADER.pack(b"VSRJOURN", 3, 1, 7, 64).ljust(64, b"\0")
    with pytest.raises(JournalError, match="format version 3; this program reads 4"):
        reopen(old + bytes(200))
    for size in range(FILE_HEADER_SIZE):
        with pytest.raises(JournalError, match="damaged or not a journal"):
            reopen(bytes(file.durable[:size]))


def test_records_written_before_a_kill_are_synced_at_open() -> None:
    file, journal = formatted()
    entries = chain(1)
    file.sync_errno = errno.EIO
    with pytest.raises(JournalError):
        journal.append(entries)
    with pytest.raises(JournalError, match="cannot read or sync"):
        Journal.open(file, 7, 1)
    file.sync_errno = None
    assert Journal.open(file, 7, 1).log(SUPERBLOCK) == tuple(entries)
    file.crash()
    assert Journal.open(file, 7, 1).log(SUPERBLOCK) == tuple(entries)


def test_a_journal_that_something_else_made_long_is_refused_unread() -> None:
    """As a sparse file of 1 TiB: it would be read to its end."""

    class Sparse(MemoryFile):
        def size(self) -> int:
            return 1 << 40

    file, journal = formatted()
    journal.append(chain(1))
    with pytest.raises(JournalError, match=r"1099511627776 bytes, of which \d+ were durable"):
        Journal.open(Sparse("journal", bytes(file.durable)), 7, 1)
