"""Draining the journal, snapshot files, and what a failure or a crash in the middle leaves."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from viewproof.impl.interface.durable import CLIENTS_PAPER, superblock_next
from viewproof.impl.interface.messages import Prepare, make_header
from viewproof.impl.machine.snapshot import Contents, Snapshot, encode_snapshot
from viewproof.impl.machine.state_machine import StateMachine
from viewproof.impl.storage.data_file import DataFile, DataFileError, format_data_file, open_data_file
from viewproof.impl.storage.file import FileSystem, MemoryFileSystem, RealFileSystem, WriteRefusedError
from viewproof.impl.storage.journal import FILE_HEADER_SIZE, JournalError
from viewproof.impl.storage.records import GROUP_HEADER_SIZE


def entries(count: int, view: int = 0) -> list[Prepare]:
    made: list[Prepare] = []
    parent = ""
    for op in range(1, count + 1):
        header = make_header(parent=parent, view=view, op=op, client=1, request=op, commit=0, body=b"%d" % op)
        made.append(Prepare(header, b"%d" % op))
        parent = header.checksum
    return made


def snapshot_at(prepare: Prepare) -> Snapshot:
    return encode_snapshot(7, Contents(prepare.header, StateMachine().to_bytes(), b"table", b"features"))


def formatted(directory: str, files: FileSystem) -> DataFile:
    format_data_file(directory, 7, 1, 3, file_system=files, clients=CLIENTS_PAPER)
    return open_data_file(directory, file_system=files)


def refer(data: DataFile, log: list[Prepare], op: int, head: int) -> Snapshot:
    """Writes the snapshot at `op` and a superblock that refers to it, with the log head at `head`."""
    snapshot = snapshot_at(log[op - 1])
    data.write_snapshot(op, snapshot.data)
    data.write_superblock(
        superblock_next(
            data.superblock,
            view=data.superblock.view,
            log_view=data.superblock.log_view,
            head_op=head,
            head_checksum=log[head - 1].header.checksum,
            clock=1,
            checkpoint=(op, snapshot.checksum),
        )
    )
    return snapshot


@pytest.fixture(params=["memory", "real"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, FileSystem]:
    if request.param == "memory":
        return "d", MemoryFileSystem()
    return str(tmp_path / "d"), RealFileSystem()


def test_a_drain_keeps_what_lies_above_with_its_flags(place: tuple[str, FileSystem]) -> None:
    directory, files = place
    data = formatted(directory, files)
    log = entries(6)
    data.append(log[:4])
    data.append(log[4:5], repair=True)
    data.append(entries(3, view=1)[2:], repair=True)
    before = data.journal_bytes
    snapshot = refer(data, log, 3, 4)
    data.drain(3)
    assert data.journal_bytes < before
    assert list(data.durable_state().log) == log[3:4]
    data.append(log[4:6])
    data.close()
    again = open_data_file(directory, file_system=files)
    state = again.durable_state()
    assert (list(state.log), state.snapshot, state.relics) == (log[3:6], snapshot.data, 0)
    assert again.problems == []
    again.close()


def test_what_was_appended_and_then_written_for_a_repair_stays_appended(place: tuple[str, FileSystem]) -> None:
    directory, files = place
    data = formatted(directory, files)
    log = entries(5)
    data.append(log)
    data.append(log[4:], repair=True)
    refer(data, log, 3, 4)
    data.drain(3)
    data.close()
    again = open_data_file(directory, file_system=files)
    assert list(again.durable_state().log) == log[3:]
    again.close()


def test_a_stale_drain_keeps_the_log_only(place: tuple[str, FileSystem]) -> None:
    directory, files = place
    data = formatted(directory, files)
    log, other = entries(5), entries(6, view=1)
    data.append(log)
    data.append(other[4:], repair=True)
    refer(data, log, 3, 3)
    data.drain(3, stale=True)
    assert list(data.durable_state().log) == log[3:]
    refer(data, log, 4, 4)
    data.drain(4, stale=True)
    data.close()
    again = open_data_file(directory, file_system=files)
    assert list(again.durable_state().log) == log[4:]
    assert files.names(directory) == ["journal", "snapshot-4", "superblock"]
    again.close()


def test_a_drain_above_the_checkpoint_is_refused(place: tuple[str, FileSystem]) -> None:
    data = formatted(*place)
    log = entries(4)
    data.append(log)
    refer(data, log, 2, 2)
    with pytest.raises(JournalError, match="drain up to op 3, but the checkpoint is 2"):
        data.drain(3)
    assert list(data.durable_state().log) == log[2:]


def lost_of(path: Path, log: Sequence[Prepare]) -> None:
    """The journal says that some of the log is lost, and how far it may have reached."""
    data = open_data_file(path)
    damage = data.durable_state().damage
    assert damage is not None
    assert damage.op_max >= log[-1].header.op
    assert len(damage.held) < len(log)
    data.close()


def test_damage_below_the_durable_end_is_never_cut(tmp_path: Path) -> None:
    data = formatted(str(tmp_path), RealFileSystem())
    log = entries(4)
    data.append(log)
    refer(data, log, 2, 4)
    data.drain(2)
    data.close()
    path = tmp_path / "journal"
    whole = path.read_bytes()
    for size in range(FILE_HEADER_SIZE, len(whole)):
        path.write_bytes(whole[:size])
        lost_of(tmp_path, log[2:])
    for position in range(FILE_HEADER_SIZE + GROUP_HEADER_SIZE, len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        lost_of(tmp_path, log[2:])
    path.write_bytes(whole + b"torn")
    again = open_data_file(tmp_path)
    assert list(again.durable_state().log) == log[2:]
    assert again.journal_recovery.cut_bytes == 4


class FailingFileSystem(MemoryFileSystem):
    """Fails at one kind of operation on directories."""

    fail: str = ""

    def rename(self, source: str, target: str) -> None:
        self._fail("rename")
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._fail("remove")
        super().remove(path)

    def sync_directory(self, directory: str) -> None:
        self._fail("sync_directory")
        super().sync_directory(directory)

    def _fail(self, what: str) -> None:
        if what == self.fail:
            raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_drain_that_fails_leaves_the_journal_or_stops_it() -> None:
    files = FailingFileSystem()
    data = formatted("d", files)
    log = entries(5)
    data.append(log[:4])
    refer(data, log, 2, 4)
    files.fail = "rename"
    with pytest.raises(WriteRefusedError, match="cannot drain the journal"):
        data.drain(2)
    data.append(log[4:])
    assert list(data.durable_state().log) == log[2:]
    files.fail = "sync_directory"
    with pytest.raises(JournalError, match="must be opened again"):
        data.drain(2)
    with pytest.raises(JournalError, match="open the journal again"):
        data.append(log[4:])
    files.fail = ""
    files.crash()
    again = open_data_file("d", file_system=files)
    assert list(again.durable_state().log) == log[2:]


def test_an_old_snapshot_that_cannot_be_removed_is_a_problem_that_does_not_stop() -> None:
    files = FailingFileSystem()
    data = formatted("d", files)
    log = entries(4)
    data.append(log)
    refer(data, log, 1, 4)
    data.drain(1)
    refer(data, log, 2, 4)
    files.fail = "remove"
    with pytest.raises(WriteRefusedError, match="cannot remove an old snapshot"):
        data.drain(2)
    data.close()
    again = open_data_file("d", file_system=files)
    assert "cannot remove an old snapshot" in again.problems[0]
    assert list(again.durable_state().log) == log[2:]


@pytest.mark.parametrize("operation", ["rename", "sync_directory"])
def test_a_snapshot_that_could_not_be_written_leaves_the_one_before(operation: str) -> None:
    files = FailingFileSystem()
    data = formatted("d", files)
    log = entries(3)
    data.append(log)
    first = refer(data, log, 1, 3)
    files.fail = operation
    with pytest.raises(WriteRefusedError, match="cannot write the snapshot"):
        data.write_snapshot(2, snapshot_at(log[1]).data)
    files.fail = ""
    assert data.durable_state().snapshot == first.data
    data.write_snapshot(2, snapshot_at(log[1]).data)


def test_format_never_takes_a_directory_with_a_snapshot(tmp_path: Path) -> None:
    (tmp_path / "snapshot-4").write_bytes(b"x")
    with pytest.raises(DataFileError, match="refusing to format"):
        format_data_file(tmp_path, 7, 1, 3)


def test_names_of_a_crash_are_a_prefix_of_the_changes() -> None:
    for kept, expected in ((0, ["a", "b"]), (1, ["b", "c"]), (2, ["b"]), (9, ["b"])):
        files = MemoryFileSystem()
        for name, data in (("d/a", b"1"), ("d/b", b"2")):
            file = files.create(name)
            file.write_at(0, data)
            file.sync()
        files.rename("d/a", "d/c")
        files.rename("d/c", "d/b")
        files.crash(lambda length, kept=kept: kept)  # type: ignore[misc]
        assert files.names("d") == expected
        assert bytes(files.open("d/b").content) == (b"1" if kept >= 2 else b"2")


def test_what_has_the_name_of_a_snapshot_is_named_if_it_cannot_be_replaced(tmp_path: Path) -> None:
    data = formatted(str(tmp_path / "d"), RealFileSystem())
    (tmp_path / "d" / "snapshot-5").mkdir()
    with pytest.raises(WriteRefusedError, match=r"/snapshot-5: cannot write the snapshot of op 5: Is a directory"):
        data.write_snapshot(5, snapshot_at(entries(5)[4]).data)
    (tmp_path / "d" / "snapshot-5").rmdir()
    data.write_snapshot(5, snapshot_at(entries(5)[4]).data)
    data.close()
