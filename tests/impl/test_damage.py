"""One bit of each kind of file of one of three replicas is flipped; nothing that a client was answered is lost.

The replica mends it, or refuses by a message that names file and remedy, and the remedy brings it back. After each, the
next request needs this very replica. docs/recovery.md has the table of outcomes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.impl.damage import REGIONS, DamagedLink, region_size
from tests.impl.test_power_cuts import require_conforms
from viewproof.impl.interface.durable import CLIENTS_PAPER
from viewproof.impl.interface.messages import Prepare, PrepareHeader, make_header
from viewproof.impl.machine.snapshot import Snapshot
from viewproof.impl.storage.data_file import format_data_file, open_data_file
from viewproof.impl.storage.file import MemoryFileSystem
from viewproof.impl.storage.journal import FILE_HEADER_SIZE, JournalError
from viewproof.impl.storage.recover import Remedy, diagnose

EXPECTED = {
    "superblock: all copies": {"refused; back by vsr recover", "harmless"},
    "superblock: three copies": {"refused; back by vsr recover", "harmless"},
    "journal: file header": {"refused; back by vsr recover", "harmless"},
    "journal: record header": {"log repaired"},
    "journal: record body": {"log repaired"},
    "journal: last append": {"log repaired", "harmless"},
    "journal: cut short": {"refused; back by vsr recover", "log repaired"},
    "snapshot": {"snapshot fetched"},
    "ring: one file header": {"harmless"},
    "ring: header of a prepare": {"log repaired", "header written again from its prepare", "harmless"},
    "ring: prepare": {"log repaired"},
}


def judge(link: DamagedLink, directory: Path) -> None:
    """All that was answered is in every replica, once and in order, and the audit says that the traces conform."""
    link.settle()
    values = {replica.state.state_machine.store[b"key"] for replica in link.replicas.values()}
    assert len(values) == 1
    written = values.pop().split(b";")[:-1]
    for client, count in link.number.items():
        mine = [item for item in written if item.startswith(b"%d." % client)]
        assert mine == [b"%d.%d" % (client, number) for number in range(1, count + 1)]
    for name, message in link.refusals:
        assert f"d/{name}" in message
        assert "`vsr recover` says what to do" in message
    require_conforms(link, directory)


@pytest.mark.parametrize("region", REGIONS)
def test_a_sample_of_each_region(region: str, tmp_path: Path) -> None:
    link = DamagedLink(ring=region.startswith("ring"))
    size = 0
    for turn in range(5):
        size = size or region_size(link, region) if turn else 0
        link.hurt(region, turn * 37 + (size * turn) // 5)
    outcomes = {outcome for _, outcome in link.outcomes_of}
    assert outcomes <= EXPECTED.get(region, {"repaired from other copies", "harmless"})
    judge(link, tmp_path)


@pytest.mark.parametrize("place", [3, 20])
def test_a_ring_without_a_header_comes_back_as_an_append_only_journal(place: int, tmp_path: Path) -> None:
    link = DamagedLink(ring=True)
    assert link.hurt("ring: both file headers", place) == "refused; back by vsr recover"
    assert link.data.journal_slots == 0
    judge(link, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("region", REGIONS)
def test_each_byte_of_each_region(region: str, tmp_path: Path) -> None:
    link = DamagedLink(ring=region.startswith("ring"))
    link.hurt(region, 0)
    size, done, part = min(300, region_size(link, region)), 1, 0
    total = dict(link.outcomes_of)
    while done < size:
        link.hurt(region, done)
        done += 1
        if done % 100 == 0 or done == size:
            judge(link, tmp_path / str(part))
            for key, count in link.outcomes_of.items():
                total[key] = total.get(key, 0) + count
            link, part = DamagedLink(part % 3, region.startswith("ring")), part + 1
    sys.stdout.write(f"{region}: {dict(sorted((outcome, count) for (_, outcome), count in total.items()))}\n")
    assert {outcome for _, outcome in total} <= EXPECTED.get(region, {"repaired from other copies", "harmless"})


@pytest.mark.parametrize("at", ["first", "last"])
def test_one_alone_refuses_a_damaged_append_and_cuts_a_torn_one(at: str) -> None:
    """It says file and remedy, and starts again once the file is restored."""
    files = MemoryFileSystem()
    format_data_file("d", 1, 0, 1, file_system=files, clients=CLIENTS_PAPER)
    data = open_data_file("d", file_system=files)
    first, last = (Prepare(header_of(op, parent), b"%d" % op) for op, parent in ((1, ""), (2, header_of(1).checksum)))
    data.append([first])
    end = data.journal_bytes
    data.append([last])
    file = files.files["d/journal"]
    whole, unmarked = bytes(file.content), bytes(file.durable)
    place = FILE_HEADER_SIZE + 60 if at == "first" else len(whole) - 3
    for content in (whole, unmarked):
        damaged = bytearray(content)
        damaged[place] ^= 4
        files._locked.clear()
        file.durable, file.content = bytearray(damaged), bytearray(damaged)
        (finding,) = diagnose("d", files).findings
        assert (finding.file, finding.remedy) == ("d/journal", Remedy.RESTORE)
        with pytest.raises(JournalError, match=r"d/journal: bytes \d+\.\.\d+ are damaged.*Restore.*`vsr recover`"):
            open_data_file("d", file_system=files).durable_state()
    for content, log in ((whole, (first, last)), (unmarked[: end + 70], (first,))):
        files._locked.clear()
        file.durable, file.content = bytearray(content), bytearray(content)
        assert open_data_file("d", file_system=files).durable_state().log == log


def header_of(op: int, parent: str = "") -> PrepareHeader:
    """Of an op in view 0."""
    return make_header(parent=parent, view=0, op=op, client=1, request=op, commit=0, body=b"%d" % op)


@pytest.mark.parametrize("victim", range(3))
def test_a_rotten_snapshot_that_nobody_has_any_more_is_replaced_by_a_later_one(victim: int, tmp_path: Path) -> None:
    link = DamagedLink(victim)
    while link.data.superblock.checkpoint == 0:
        link.ask(1)
        link.settle()
    own = link.data.superblock.checkpoint
    name, offsets = link.places("snapshot")[30]
    link.stop(victim)
    file = link.file(name)
    for offset in offsets:
        file.content[offset] ^= 1
    file.durable = bytearray(file.content)
    others = [node for node in range(3) if node != victim]
    while any(snapshot.op <= own for snapshot in snapshots_of(link, others)):
        link.ask(1)
        link.tick(12)
    link.start(victim)
    assert link.replicas[victim].snapshot_recovery.lost is not None
    link.settle()
    assert link.names(victim).count("recover") == 1
    assert link.replicas[victim].state.checkpoint > own
    judge(link, tmp_path)


def snapshots_of(link: DamagedLink, nodes: list[int]) -> list[Snapshot]:
    states = [link.replicas[node].state for node in nodes]
    kept = [snapshot for state in states for snapshot in (state.snapshot, state.snapshot_before)]
    return [snapshot for snapshot in kept if snapshot is not None]
