"""Segment files: what they hold, damage to every byte of them, losses refused by name and accepted by name."""

from __future__ import annotations

import errno
import hashlib
import os
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.impl.memory_source import MemorySource
from tests.impl.storage.test_drain import entries as chain
from viewproof.impl.faults import segments_with
from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.durable import SuperblockState, superblock_next
from viewproof.impl.interface.messages import Prepare
from viewproof.impl.machine.partition_log import (
    PartitionLog,
    SegmentCache,
    SegmentError,
    SegmentLostError,
    SegmentSource,
    scan_segment,
)
from viewproof.impl.machine.partitions import AppendMessages, Poll, StoreOffset
from viewproof.impl.machine.snapshot import Contents, Snapshot, SnapshotFormatError, decode_snapshot, encode_snapshot
from viewproof.impl.machine.state_machine import StateMachine, decode_state, encode_operation
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.features import FeatureState
from viewproof.impl.storage.data_file import DataFile, format_data_file, open_data_file
from viewproof.impl.storage.file import MemoryFile, MemoryFileSystem, StorageError, WriteRefusedError
from viewproof.impl.storage.inspect_partitions import inspect_partitions
from viewproof.impl.storage.segments import segments_named
from viewproof.impl.storage.snapshots import SegmentsGoneError, SnapshotFileError

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
    data.write_snapshot(snapshot.op, snapshot.data, machine.partitions.held())
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
    closed = {name.removesuffix(".log") + kind for name in segment_paths(files)[:-1]}
    for path in paths:
        if kind == ".index" and path in closed:
            continue  # nothing is taken from it
        for position in range(len(files.files[path].content)):
            files, _ = prepared(3)
            file = files.files[path]
            file.write_at(position, bytes([file.content[position] ^ 0x20]))
            file.sync()
            data = open_data_file("d", file_system=files)
            state = data.durable_state()
            problems = " ".join(data.problems)
            if not problems:
                assert path in closed, "only a closed one is not read at the start"
                lost = [ref for ref in segments_named(snapshot.data) if data.segments.path(ref.key) == path]
                with pytest.raises(SegmentLostError, match=path):
                    data.segments.read(lost[0])
                assert not inspect_partitions("d", files).whole
                data.close()
                continue
            assert path in problems, (path, position, problems)
            assert state.snapshot == (b"" if kind == "snapshot" else snapshot.data), (path, position)
            assert [data.segments.path(ref.key) for ref in state.lost] == ([path] if kind == ".log" else [])
            outcome = "rebuilt from the messages" if kind == ".index" else "fetched from the other replicas"
            assert outcome in problems
            outcomes.add(outcome)
            if kind == ".log":
                assert not inspect_partitions("d", files).whole
            machine = machine_with(7, 7)
            for segment in machine.partitions.held():
                data.write_segment(segment.ref, bytes(segment.content))
            data.write_snapshot(2, snapshot.data)
            data.close()
            data = open_data_file("d", file_system=files)
            assert (data.durable_state(), data.problems) == (replace(state, snapshot=snapshot.data, lost=()), [])
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
            state = data.durable_state()
            assert state.snapshot == snapshot.data
            assert bool(state.lost) == (kind == ".log")
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


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_loss_that_was_being_accepted_when_the_process_died_can_be_accepted_again(
    taken_over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The superblock names what is left, or not yet: either is there."""
    files, _ = prepared(1)
    damaged = files.files[segment_paths(files)[1]]
    damaged.truncate(60)
    damaged.sync()
    write = DataFile.write_superblock

    def dies(data: DataFile, state: SuperblockState) -> None:
        if taken_over:
            write(data, state)
        raise PowerLossError

    monkeypatch.setattr(DataFile, "write_superblock", dies)
    data = open_data_file("d", file_system=files, accept_loss=True)
    with pytest.raises(PowerLossError):
        data.durable_state()
    monkeypatch.undo()
    data.close()
    files.crash()
    data = open_data_file("d", file_system=files, accept_loss=not taken_over)
    state = data.durable_state()
    assert state.snapshot == snapshot_of(chain(2)[1], machine_with(2, 2), data).data
    data.clean_up()
    data.close()
    data = open_data_file("d", file_system=files)
    assert (data.durable_state(), data.problems) == (state, [])
    assert not [path for path in files.files if "salvaged" in path]


class PowerLossError(Exception):
    """In the middle of it."""


def refusing(files: MemoryFileSystem, path: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads of the file fail."""
    read_at = MemoryFile.read_at

    def refused(file: MemoryFile, offset: int, length: int) -> bytes:
        if file.path == path:
            raise OSError(number, os.strerror(number))
        return read_at(file, offset, length)

    monkeypatch.setattr(MemoryFile, "read_at", refused)


@pytest.mark.parametrize("kind", [".log", ".index"])
def test_a_file_that_the_medium_refuses_is_a_damaged_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files, snapshot = prepared(3)
    path = segment_paths(files, kind)[-1]
    refusing(files, path, errno.EIO, monkeypatch)
    data = open_data_file("d", file_system=files)
    state = data.durable_state()
    assert state.snapshot == snapshot.data
    assert bool(state.lost) == (kind == ".log")
    assert f"{path}: Input/output error" in " ".join(data.problems)
    data.close()
    refusing(files, path, errno.EMFILE, monkeypatch)
    data = open_data_file("d", file_system=files)
    if kind == ".log":
        data.durable_state()
        assert "Too many open files" in " ".join(data.problems), "that is no damage: all of it is fetched, or refused"


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
            data.write_snapshot(3, snapshot.data, machine_with(8, 7).partitions.held())
        files.files[last].sync_errno = None
        data.write_snapshot(3, snapshot.data, machine_with(8, 7).partitions.held())
        return
    data.append(log[2:])
    checkpoint(data, log[2], machine_with(8, 7))
    data.close()
    files.crash()
    files.files[last].sync_errno = None
    assert len(open_data_file("d", file_system=files).durable_state().lost) == 1


def test_the_next_offset_comes_from_the_messages() -> None:
    """Messages 0..6, an index that ends before: the next one gets 7; with the fault, what the index says."""
    for faults, end in ((frozenset[str](), 7), (frozenset({"boot.offset_from_index"}), 6)):
        files, _ = prepared(3)
        index = segment_paths(files, ".index")[-1]
        files.files[index].truncate(files.files[index].size() - 24)
        data = open_data_file("d", file_system=files, segments=segments_with(faults))
        machine = restored(data.durable_state().snapshot, data.segments)
        assert machine.partitions.end(NAMESPACE) == end


def restored(data: bytes, source: SegmentSource) -> StateMachine:
    return StateMachine.from_bytes(decode_snapshot(data).state_machine, Plane.PARTITIONS, SIZE, source=source)


def test_a_state_of_another_log_is_not_written_over_a_segment() -> None:
    files, _ = prepared(3)
    data = open_data_file("d", file_system=files)
    data.durable_state()
    other = StateMachine(Plane.PARTITIONS, SIZE)
    other.apply(encode_operation(AppendMessages(NAMESPACE, (b"another", b"log"))))
    with pytest.raises(StorageError, match="not of one log"):
        data.write_snapshot(3, snapshot_of(chain(3)[2], other, data).data, other.partitions.held())


def test_segments_that_do_not_follow_one_another_are_refused() -> None:
    log = PartitionLog(NAMESPACE, SIZE)
    for number in range(5):
        log.append(b"message %d" % number)
    refs = log.refs
    source = MemorySource(log.segments)
    cache = SegmentCache(source)
    found = PartitionLog.of_refs(NAMESPACE, refs, source, cache, SIZE)
    assert list(found.messages(0, 9)) == list(log.messages(0, 9))
    assert (len(found.segments), found.hashes, found.refs) == (1, log.hashes, refs)
    for wrong, size, reason in (
        (refs, SIZE + 1, "roll at 150 bytes, here at 151"),
        (refs[1:], SIZE, "expected 7 from 0"),
        (refs[:1] + refs[2:], SIZE, "expected 7 from"),
        ([msgspec.structs.replace(refs[0], size=1)], SIZE, "1 bytes"),
    ):
        with pytest.raises(SegmentError, match=reason):
            PartitionLog.of_refs(NAMESPACE, wrong, source, cache, size)
    source[refs[-1]] = source[refs[0]]
    with pytest.raises(SegmentError, match="expected 7 from"):
        PartitionLog.of_refs(NAMESPACE, refs, source, cache, SIZE)
    with pytest.raises(SegmentError, match="too few"):
        scan_segment(b"", NAMESPACE, 0)


def test_memory_holds_the_last_segment_and_those_that_were_read_last() -> None:
    """A checkpoint of 40 segments: polls are answered from the files, of which the cache keeps a few."""
    files = MemoryFileSystem()
    format_data_file("d", 1, 0, 3, file_system=files)
    data = open_data_file("d", file_system=files)
    log = chain(1)
    data.append(log)
    machine = machine_with(80)
    expected = machine.partitions.read(NAMESPACE, 0, 80)
    snapshot = checkpoint(data, log[0], machine)
    machine.partitions.release(decode_state(decode_snapshot(snapshot.data).state_machine).partitions)
    assert len(machine.partitions.held()) == 1
    assert machine.to_bytes() == decode_snapshot(snapshot.data).state_machine
    again = restored(snapshot.data, data.segments)
    again.partitions.cache._size = 500
    assert (again.digest, again.partitions.end(NAMESPACE)) == (machine.digest, 80)
    for offset in (*range(80), *range(79, -1, -7)):
        assert again.partitions.read(NAMESPACE, offset, 3) == expected[offset : offset + 3]
        assert again.partitions.cache.held <= 500
    assert again.partitions.read(NAMESPACE, 0, 99) == expected
    path = segment_paths(files)[3]
    files.files[path].content[-1] ^= 1
    with pytest.raises(SegmentLostError, match=path):
        again.apply(encode_operation(Poll(NAMESPACE, 0, 80)))


def test_a_checkpoint_over_a_segment_that_is_gone_waits_for_it() -> None:
    """It is not in memory any more: the write is refused by name, and goes through once another replica gave it."""
    for name, size in ((0, None), (1, 40)):
        files, _ = prepared(3)
        data = open_data_file("d", file_system=files)
        data.durable_state()
        path = segment_paths(files)[name]
        files.remove(path) if size is None else files.files[path].truncate(size)
        machine = machine_with(8, 7)
        tail = machine.partitions.held()[-2:]
        after = snapshot_of(chain(3)[2], machine, data)
        with pytest.raises(SegmentsGoneError, match=path) as gone:
            data.write_snapshot(3, after.data, tail)
        assert not files.exists("d/snapshot-3")
        (ref,) = gone.value.refs
        content = next(bytes(each.content) for each in machine.partitions.held() if each.ref == ref)
        data.write_segment(ref, content)
        data.write_snapshot(3, after.data, tail)
        assert data.segments.read(ref) == content
        data.close()


def test_a_snapshot_of_an_earlier_format_is_refused_by_name() -> None:
    files, snapshot = prepared(3)
    body = b"\x90"
    checksum = hashlib.blake2b(body, digest_size=16, person=b"segmentfile").digest()
    files.files["d/snapshot-2"] = MemoryFile("d/snapshot-2", b"VSRSNAPM" + checksum + body)
    with pytest.raises(StorageError, match=r"snapshot-2: snapshot of format version 1; this program reads 2"):
        open_data_file("d", file_system=files).durable_state()
    with pytest.raises(SnapshotFormatError, match="format version 1"):
        decode_snapshot(snapshot.data[:8] + b"\0\1" + snapshot.data[10:])


def test_format_refuses_over_segments(tmp_path: Path) -> None:
    (tmp_path / f"segment-{0:016x}-{0:020d}.log").touch()
    with pytest.raises(StorageError, match="refusing to format"):
        format_data_file(tmp_path, 1, 0, 3)
