"""The journal: torn ends are cut, damage is refused by name, failed appends leave nothing, the log is a chain."""

from __future__ import annotations

import errno
import random
from dataclasses import replace

import pytest

from impl.durable import superblock_formatted
from impl.messages import Prepare, make_header
from impl.storage.file import MemoryFile, MemoryFileSystem
from impl.storage.journal import FILE_HEADER_SIZE, RECORD_SIZE_MIN, Journal, JournalError

SUPERBLOCK = superblock_formatted(cluster=7, replica=1, replica_count=3)


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
        for position in range(ends[index], ends[index + 1]):
            damaged = bytearray(file.durable)
            damaged[position] ^= 0x10
            opened = reopen(bytes(damaged))
            found = opened.damage(SUPERBLOCK)
            assert found is not None
            assert (found.head_op, found.head_checksum, found.op_max) == (3, entries[2].header.checksum, 3)
            assert found.held == tuple(entry for entry in entries if entry is not entries[index])
            with pytest.raises(JournalError, match=f"bytes {ends[index]}.*no other"):
                opened.damage(replace(SUPERBLOCK, replica_count=1))


def test_damage_behind_the_last_whole_record_may_hide_more_of_the_log() -> None:
    file, journal = formatted()
    entries = chain(3)
    journal.append(entries[:1])
    start = journal.size
    journal.append(entries[1:2])
    end = journal.size
    journal.append(chain(1, view=0, start=entries[2]), repair=True)
    damaged = bytearray(file.durable)
    damaged[start] ^= 1
    found = reopen(bytes(damaged)).damage(SUPERBLOCK)
    assert found is not None
    assert found.head_op == 1
    assert found.op_max >= 2
    assert found.op_max == 1 + -(-(end - start) // RECORD_SIZE_MIN)


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


def test_every_flipped_byte_of_the_last_record_is_cut() -> None:
    file, journal = formatted()
    entries = chain(2)
    journal.append(entries[:1])
    start = journal.size
    journal.append(entries[1:])
    for position in range(start, journal.size):
        damaged = bytearray(file.durable)
        damaged[position] ^= 0x10
        opened = reopen(bytes(damaged))
        assert opened.log(SUPERBLOCK) == tuple(entries[:1])
        assert opened.recovery.cut_offset == start


def test_a_hole_in_a_group_that_was_never_durable_is_cut_not_refused() -> None:
    file, journal = formatted()
    entries = chain(4)
    journal.append(entries[:1])
    start = journal.size
    journal.append(entries[1:])
    damaged = bytearray(file.durable)
    damaged[start : start + 40] = bytes(40)
    opened = reopen(bytes(damaged))
    assert opened.log(SUPERBLOCK) == tuple(entries[:1])
    assert opened.recovery.cut_offset == start


def test_a_crash_in_an_append_keeps_a_prefix_of_it() -> None:
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
        file.crash(lambda length: source.randint(0, length))
        log = Journal.open(file, 7, 1).log(SUPERBLOCK)
        assert log == tuple(entries[: len(log)])
        kept.add(len(log))
    assert kept == {2, 3, 4, 5, 6} or kept == {2, 3, 4, 5}


def test_a_full_disk_is_reported_and_leaves_the_journal_consistent() -> None:
    entries = chain(3)
    for budget in (0, 1, 50, 200):
        file, journal = formatted()
        journal.append(entries[:1])
        before = bytes(file.durable)
        file.write_budget = budget
        with pytest.raises(JournalError, match="nothing of it was kept"):
            journal.append(entries[1:])
        assert bytes(file.durable) == before
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
    for position in range(FILE_HEADER_SIZE - 20):
        damaged = bytearray(file.durable)
        damaged[position] ^= 1
        with pytest.raises(JournalError, match=r"damaged or not a journal|format version 2"):
            reopen(bytes(damaged))
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
