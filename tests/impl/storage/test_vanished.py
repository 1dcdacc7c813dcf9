"""Files that vanish, are cut or replaced under a running process: written again from memory, or the process stops."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.impl.storage.test_drain import entries as chain
from tests.impl.storage.test_segments import checkpoint, machine_with, snapshot_of
from viewproof.impl.faults import segments_with
from viewproof.impl.interface.durable import superblock_next
from viewproof.impl.storage.data_file import DataFile, DataFileError, format_data_file, open_data_file
from viewproof.impl.storage.file import FileSystem, MemoryFileSystem, RealFileSystem, StorageError
from viewproof.impl.storage.ring_file import SECTOR, Geometry
from viewproof.impl.storage.vanished import FileVanishedError
from viewproof.impl.trace.events import TraceEvent
from viewproof.impl.trace.files import TraceError, TraceWriter

LOG = chain(6)
REMADE = frozenset({"storage.remakes_vanished_segment"})


@pytest.fixture(params=["memory", "real"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, FileSystem]:
    """A directory, and the files in it."""
    if request.param == "memory":
        return "d", MemoryFileSystem()
    return str(tmp_path / "d"), RealFileSystem()


def running(place: tuple[str, FileSystem], faults: frozenset[str] = frozenset(), ring: bool = False) -> DataFile:
    """An open data directory with a checkpoint at op 2, of 7 messages in 4 segments, and an entry above it."""
    directory, files = place
    geometry = Geometry(8, 2 * SECTOR) if ring else None
    format_data_file(directory, 1, 0, 3, file_system=files, ring=geometry)
    data = open_data_file(directory, file_system=files, segments=segments_with(faults))
    data.append(LOG[:1])
    checkpoint(data, LOG[0], machine_with(3, 2))
    data.append(LOG[1:2])
    checkpoint(data, LOG[1], machine_with(7, 7))
    data.append(LOG[2:3])
    return data


def paths(place: tuple[str, FileSystem], ending: str) -> list[str]:
    """The files that end so, sorted."""
    directory, files = place
    return [os.path.join(directory, name) for name in files.names(directory) if name.endswith(ending)]


def cut(files: FileSystem, path: str, size: int) -> None:
    """Cuts a file behind the back of the process that has it open."""
    file = files.open(path)
    file.truncate(size)
    file.sync()
    if isinstance(files, RealFileSystem):
        file.close()


def remove(files: FileSystem, path: str) -> None:
    """Removes a file behind the back of the process that has it open."""
    files.remove(path)
    files.sync_directory(os.path.dirname(path))


def opened_again(data: DataFile, place: tuple[str, FileSystem]) -> DataFile:
    """The same directory, as the next process finds it after the power went."""
    data.close()
    directory, files = place
    if isinstance(files, MemoryFileSystem):
        files.crash()
    return open_data_file(directory, file_system=files)


@pytest.mark.parametrize("size", [None, 0, 60])
@pytest.mark.parametrize("ending", [".log", ".index"])
def test_a_segment_is_written_again_by_the_next_checkpoint(
    place: tuple[str, FileSystem], ending: str, size: int | None
) -> None:
    """The last one, which grows, and one that was closed long ago."""
    data = running(place)
    files = place[1]
    for number, path in enumerate((paths(place, ending)[0], paths(place, ending)[-1])):
        if size is None:
            remove(files, path)
        else:
            cut(files, path, min(size, max(0, (files.size_of(path) or 0) - 1)))
        entry = LOG[2 + number]
        if number:
            data.append([entry])
        snapshot = checkpoint(data, entry, machine_with(8 + number, 7))
        assert len(data.problems) == number + 1
        assert path in data.problems[-1]
        assert "while the process ran" in data.problems[-1]
    again = opened_again(data, place)
    assert again.durable_state().snapshot == snapshot.data
    assert all("rebuilt from the messages" in problem for problem in again.problems), "an index may lag, as ever"


def test_with_the_mistake_the_journal_is_drained_of_what_the_segment_lacks(place: tuple[str, FileSystem]) -> None:
    data = running(place, REMADE)
    remove(place[1], paths(place, ".log")[-1])
    checkpoint(data, LOG[2], machine_with(8, 7))
    assert data.problems == []
    again = opened_again(data, place)
    found = again.durable_state()
    assert (found.superblock.checkpoint, len(found.lost), found.log) == (3, 1, ())


@pytest.mark.parametrize("ending", ["snapshot-3", ".log", ".index"])
@pytest.mark.parametrize("size", [None, 7])
def test_nothing_is_drained_before_the_snapshot_is_there(
    place: tuple[str, FileSystem], ending: str, size: int | None
) -> None:
    """A file that vanishes between the snapshot's write and the drain."""
    data = running(place)
    snapshot = snapshot_of(LOG[2], machine_with(8, 7), data)
    data.write_snapshot(3, snapshot.data, machine_with(8, 7).partitions.held())
    data.write_superblock(
        superblock_next(
            data.superblock,
            view=0,
            log_view=0,
            head_op=3,
            head_checksum=LOG[2].header.checksum,
            clock=0,
            checkpoint=(3, snapshot.checksum),
        )
    )
    path = paths(place, ending)[-1]
    remove(place[1], path) if size is None else cut(place[1], path, size)
    data.drain(3)
    assert [path in problem for problem in data.problems] == [True]
    again = opened_again(data, place)
    assert again.durable_state().snapshot == snapshot.data
    assert all("rebuilt from the messages" in problem for problem in again.problems), "an index may lag, as ever"


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("name", ["journal", "superblock"])
def test_an_open_file_that_lost_its_name_gets_it_back(place: tuple[str, FileSystem], name: str, ring: bool) -> None:
    data = running(place, ring=ring)
    path = os.path.join(place[0], name)
    remove(place[1], path)
    data.append(LOG[3:4])
    assert data.problems == [f"{path}: it was gone while the process ran: it was written again"]
    with pytest.raises(DataFileError, match="in use by another process"):
        open_data_file(place[0], file_system=place[1])
    data.append(LOG[4:5])
    checkpoint(data, LOG[3], machine_with(9, 7))
    found = opened_again(data, place).durable_state()
    assert (found.superblock.checkpoint, found.snapshot != b"", found.log) == (4, True, tuple(LOG[4:5]))


def test_a_superblock_that_was_cut_is_written_again(place: tuple[str, FileSystem]) -> None:
    data = running(place)
    state = data.superblock
    cut(place[1], os.path.join(place[0], "superblock"), 100)
    data.append(LOG[3:4])
    assert "it was cut to 100 bytes" in data.problems[0]
    again = opened_again(data, place)
    assert (again.superblock, again.superblock_problems) == (state, ())


@pytest.mark.parametrize("ring", [False, True])
def test_a_journal_that_was_cut_stops_the_process_and_nothing_is_drained(
    place: tuple[str, FileSystem], ring: bool
) -> None:
    data = running(place, ring=ring)
    path = os.path.join(place[0], "journal")
    cut(place[1], path, data.journal_bytes - 1)
    with pytest.raises(FileVanishedError, match=r"journal: it was cut to \d+ bytes while the process ran"):
        data.append(LOG[3:4])
    snapshot = snapshot_of(LOG[2], machine_with(8, 7), data)
    data.write_snapshot(3, snapshot.data, machine_with(8, 7).partitions.held())
    size = place[1].size_of(path)
    with pytest.raises(FileVanishedError, match="Nothing more is written or drained"):
        data.drain(2)
    assert place[1].size_of(path) == size


@pytest.mark.parametrize("name", ["journal", "superblock"])
def test_a_file_that_another_one_replaced_is_left_alone(place: tuple[str, FileSystem], name: str) -> None:
    """As by a recovery of this very replica, or a copy from a backup."""
    data = running(place)
    path = os.path.join(place[0], name)
    remove(place[1], path)
    other = place[1].create(path)
    other.write_at(0, b"other")
    with pytest.raises(FileVanishedError, match=f"{name}: another file has its name now"):
        data.append(LOG[3:4])
    with pytest.raises(FileVanishedError):
        data.drain(2)
    assert other.read_at(0, 10) == b"other"


def test_a_directory_that_is_gone_is_not_made_anew(tmp_path: Path) -> None:
    place = (str(tmp_path / "d"), RealFileSystem())
    data = running(place)
    shutil.move(place[0], tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="its directory was removed or renamed"):
        data.append(LOG[3:4])
    assert not os.path.exists(place[0])


@pytest.mark.parametrize("how", ["removed", "cut", "another file"])
def test_a_trace_that_vanishes_is_noticed(tmp_path: Path, how: str) -> None:
    trace = TraceWriter(tmp_path / "trace.ndjson")
    trace.write(TraceEvent(run="r", node=0, seq=1, clock=1, event="start"))
    trace.require_whole()
    if how == "cut":
        os.truncate(trace.path, 3)
    else:
        trace.path.unlink()
        if how == "another file":
            trace.path.write_text("x" * 500)
    with pytest.raises(TraceError, match=how):
        trace.require_whole()
