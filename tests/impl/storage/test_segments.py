"""Segment files: what they hold, damage to every byte of them, losses refused by name and accepted by name."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tests.impl.storage.test_drain import entries as chain
from viewproof.impl.faults import segments_with
from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.durable import superblock_next
from viewproof.impl.interface.messages import Prepare
from viewproof.impl.machine.partition_log import PartitionLog, SegmentError, scan_segment
from viewproof.impl.machine.partitions import AppendMessages, StoreOffset
from viewproof.impl.machine.snapshot import Contents, Snapshot, decode_snapshot, encode_snapshot
from viewproof.impl.machine.state_machine import StateMachine, encode_operation
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.features import FeatureState
from viewproof.impl.storage.data_file import DataFile, format_data_file, open_data_file
from viewproof.impl.storage.file import MemoryFileSystem, StorageError, WriteRefusedError
from viewproof.impl.storage.inspect_partitions import inspect_partitions
from viewproof.impl.storage.snapshots import SnapshotFileError

NAMESPACE = 7
SIZE = 150


def machine_with(count: int, stored: int = 0) -> StateMachine:
    """A partition of so many messages; consumer 1 stored the offset `stored`."""
    machine = StateMachine(Plane.PARTITIONS, SIZE)
    for number in range(count):
        machine.apply(encode_operation(AppendMessages(NAMESPACE, (b"message %d" % number,))))
    machine.apply(encode_operation(StoreOffset(NAMESPACE, 1, stored)))
    return machine


def snapshot_of(entry: Prepare, machine: StateMachine, data: DataFile) -> Snapshot:
    table = ClientTable(data.superblock.clients)
    return encode_snapshot(1, Contents(entry.header, machine.to_bytes(), table.to_bytes(), FeatureState().to_bytes()))


def checkpoint(data: DataFile, entry: Prepare, machine: StateMachine) -> Snapshot:
    """Makes the state the checkpoint at the entry's op."""
    snapshot = snapshot_of(entry, machine, data)
    data.write_snapshot(snapshot.op, snapshot.data)
    before = data.superblock
    data.write_superblock(
        superblock_next(
            before,
            view=before.view,
            log_view=before.log_view,
            head_op=snapshot.op,
            head_checksum=entry.header.checksum,
            clock=0,
            checkpoint=(snapshot.op, snapshot.checksum),
        )
    )
    data.drain(snapshot.op)
    return snapshot


def prepared(replica_count: int) -> tuple[MemoryFileSystem, Snapshot]:
    """A closed data directory with two checkpoints, of 3 and of 7 messages, in several segments."""
    files = MemoryFileSystem()
    format_data_file("d", 1, 0, replica_count, file_system=files)
    data = open_data_file("d", file_system=files)
    log = chain(2)
    data.append(log)
    checkpoint(data, log[0], machine_with(3, 2))
    snapshot = checkpoint(data, log[1], machine_with(7, 7))
    data.close()
    return files, snapshot


def segment_paths(files: MemoryFileSystem, ending: str = ".log") -> list[str]:
    return sorted(path for path in files.files if path.endswith(ending))


def test_what_is_stored_is_read_and_only_the_tails_are_written() -> None:
    files, snapshot = prepared(3)
    assert len(segment_paths(files)) == 4
    data = open_data_file("d", file_system=files)
    assert (data.durable_state().snapshot, data.problems) == (snapshot.data, [])
    before = {path: bytes(files.files[path].content) for path in segment_paths(files)}
    syncs = {path: files.files[path].syncs for path in before}
    log = chain(3)
    data.append(log[2:])
    checkpoint(data, log[2], machine_with(8, 7))
    assert segment_paths(files) == list(before)
    for path in list(before)[:-1]:
        assert (bytes(files.files[path].content), files.files[path].syncs) == (before[path], syncs[path])
    data.close()
    inspection = inspect_partitions("d", files)
    assert (inspection.whole, inspection.problems, inspection.remedy) == (True, (), "")
    assert [(view.namespace, view.end, view.durable_end) for view in inspection.partitions] == [(NAMESPACE, 8, 8)]
    assert [(stored.reader, stored.offset) for stored in inspection.partitions[0].offsets] == [(1, 7)]


@pytest.mark.parametrize("kind", [".log", ".index", "snapshot"])
def test_every_byte_flipped(kind: str) -> None:
    """One of three: nothing but the right snapshot, or none, with a problem that names the file and the remedy."""
    files, snapshot = prepared(3)
    paths = ["d/snapshot-2"] if kind == "snapshot" else segment_paths(files, kind)
    outcomes = set()
    for path in paths:
        for position in range(len(files.files[path].durable)):
            files, _ = prepared(3)
            file = files.files[path]
            file.write_at(position, bytes([file.content[position] ^ 0x20]))
            file.sync()
            data = open_data_file("d", file_system=files)
            found = data.durable_state().snapshot
            problems = " ".join(data.problems)
            assert path in problems, (path, position, problems)
            assert found == (snapshot.data if kind == ".index" else b""), (path, position)
            outcome = "rebuilt from the messages" if kind == ".index" else "fetched from the other replicas"
            assert outcome in problems
            outcomes.add(outcome)
            if kind == ".log":
                assert not inspect_partitions("d", files).whole
            data.write_snapshot(2, snapshot.data)
            data.close()
            data = open_data_file("d", file_system=files)
            assert (data.durable_state().snapshot, data.problems) == (snapshot.data, [])
            data.close()
    assert len(outcomes) == 1


@pytest.mark.parametrize("kind", [".log", ".index"])
def test_every_cut_and_every_missing_file(kind: str) -> None:
    files, snapshot = prepared(3)
    for path in segment_paths(files, kind):
        for size in [*range(0, len(files.files[path].durable), 3), -1]:
            files, _ = prepared(3)
            if size < 0:
                files.remove(path)
            else:
                files.files[path].truncate(size)
            data = open_data_file("d", file_system=files)
            found = data.durable_state().snapshot
            assert found == (snapshot.data if kind == ".index" else b"")
            assert path in " ".join(data.problems)
            assert not (size < 0 and kind == ".log" and files.exists(path)), "a missing segment is not made anew"
            data.close()


def test_a_replica_on_its_own_refuses_until_the_loss_is_accepted() -> None:
    files, snapshot = prepared(1)
    files.files[segment_paths(files)[1]].truncate(60)
    data = open_data_file("d", file_system=files)
    with pytest.raises(SnapshotFileError, match=r"segment-.*\.log: .*--accept-loss"):
        data.durable_state()
    data.close()
    inspection = inspect_partitions("d", files)
    assert "--accept-loss" in inspection.remedy
    assert inspection.partitions[0].offsets[0].above_end
    assert any("stored offset 7 of consumer 1 is above" in problem for problem in inspection.problems)
    data = open_data_file("d", file_system=files, accept_loss=True)
    state = data.durable_state()
    assert any("loss accepted: stored offset 7 of consumer 1 is above the end 2" in text for text in data.problems)
    left = machine_with(2, 2)
    entry = chain(2)[1]
    assert state.snapshot == snapshot_of(entry, left, data).data != snapshot.data
    data.close()
    data = open_data_file("d", file_system=files)
    assert (data.durable_state(), data.problems) == (state, [])


def test_a_loss_is_not_accepted_where_others_hold_it() -> None:
    files, _ = prepared(3)
    files.files[segment_paths(files)[0]].truncate(60)
    data = open_data_file("d", file_system=files, accept_loss=True)
    with pytest.raises(StorageError, match="one of 3 replicas, the others hold what is lost"):
        data.durable_state()


@pytest.mark.parametrize("faults", [frozenset(), frozenset({"boot.swallows_sync_error"})])
def test_a_failed_sync_is_an_error(faults: frozenset[str]) -> None:
    """With the fault the write counts, and what it wrote is gone after a power cut."""
    files, _ = prepared(3)
    data = open_data_file("d", file_system=files, segments=segments_with(faults))
    data.durable_state()
    last = segment_paths(files)[-1]
    files.files[last].sync_errno = errno.EIO
    log = chain(3)
    snapshot = snapshot_of(log[2], machine_with(8, 7), data)
    if not faults:
        with pytest.raises(WriteRefusedError, match=last):
            data.write_snapshot(3, snapshot.data)
        files.files[last].sync_errno = None
        data.write_snapshot(3, snapshot.data)
        return
    data.append(log[2:])
    checkpoint(data, log[2], machine_with(8, 7))
    data.close()
    files.crash()
    files.files[last].sync_errno = None
    assert open_data_file("d", file_system=files).durable_state().snapshot == b""


def test_the_next_offset_comes_from_the_messages() -> None:
    """Messages 0..6, an index that ends before: the next one gets 7; with the fault, what the index says."""
    for faults, end in ((frozenset[str](), 7), (frozenset({"boot.offset_from_index"}), 6)):
        files, _ = prepared(3)
        index = segment_paths(files, ".index")[-1]
        files.files[index].truncate(files.files[index].size() - 24)
        data = open_data_file("d", file_system=files, segments=segments_with(faults))
        contents = data.durable_state().snapshot
        start = contents.index(b"VSRSEGMT")
        assert start > 0
        machine = restored(contents)
        assert machine.partitions.end(NAMESPACE) == end


def restored(data: bytes) -> StateMachine:
    return StateMachine.from_bytes(decode_snapshot(data).state_machine, Plane.PARTITIONS, SIZE)


def test_a_state_of_another_log_is_not_written_over_a_segment() -> None:
    files, _ = prepared(3)
    data = open_data_file("d", file_system=files)
    data.durable_state()
    other = StateMachine(Plane.PARTITIONS, SIZE)
    other.apply(encode_operation(AppendMessages(NAMESPACE, (b"another", b"log"))))
    with pytest.raises(StorageError, match="not of one log"):
        data.write_snapshot(3, snapshot_of(chain(3)[2], other, data).data)


def test_segments_of_another_size_are_refused() -> None:
    log = PartitionLog(NAMESPACE, SIZE)
    for number in range(5):
        log.append(b"message %d" % number)
    contents = [bytes(segment.content) for segment in log.segments]
    assert PartitionLog.of_segments(NAMESPACE, contents, SIZE).read(0, 9) == log.read(0, 9)
    for wrong, size, reason in (
        (contents, SIZE + 1, "roll at 150 bytes, here at 151"),
        (contents[1:], SIZE, "expected 7 from 0"),
        (contents[:1] + contents[2:], SIZE, "expected 7 from"),
        ([contents[0][:-1]], SIZE, "has 8 of 9 bytes"),
    ):
        with pytest.raises(SegmentError, match=reason):
            PartitionLog.of_segments(NAMESPACE, wrong, size)
    with pytest.raises(SegmentError, match="too few"):
        scan_segment(b"", NAMESPACE, 0)


def test_format_refuses_over_segments(tmp_path: Path) -> None:
    (tmp_path / f"segment-{0:016x}-{0:020d}.log").touch()
    with pytest.raises(StorageError, match="refusing to format"):
        format_data_file(tmp_path, 1, 0, 3)
