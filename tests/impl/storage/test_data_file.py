"""The data directory: formatted once, opened by its own replica only, by one process at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from viewproof.impl.interface.durable import ConfigurationError, Quorums
from viewproof.impl.interface.messages import Prepare, make_header
from viewproof.impl.storage.data_file import DataFileError, format_data_file, open_data_file
from viewproof.impl.storage.file import FileSystem, MemoryFileSystem, RealFileSystem, StorageError


@pytest.fixture(params=["real", "memory"])
def file_system(request: pytest.FixtureRequest) -> FileSystem:
    return RealFileSystem() if request.param == "real" else MemoryFileSystem()


def prepare(op: int, parent: str) -> Prepare:
    header = make_header(parent=parent, view=0, op=op, client=1, request=op, commit=0, body=b"b")
    return Prepare(header=header, body=b"b")


def test_state_survives_reopening(tmp_path: Path, file_system: FileSystem) -> None:
    path = tmp_path / "a" / "b"
    format_data_file(path, 7, 1, 3, file_system=file_system)
    data = open_data_file(path, 7, 1, 3, file_system=file_system)
    assert data.durable_state().log == ()
    one = prepare(1, "")
    two = prepare(2, one.header.checksum)
    data.append([one, two])
    written = replace(data.superblock, view=4, sequence=data.superblock.sequence + 1)
    data.write_superblock(written)
    data.close()
    again = open_data_file(path, file_system=file_system)
    assert again.durable_state().superblock == written
    assert again.durable_state().log == (one, two)
    assert again.superblock_problems == ()
    again.close()


def test_format_never_overwrites(tmp_path: Path, file_system: FileSystem) -> None:
    format_data_file(tmp_path / "d", 7, 1, 3, file_system=file_system)
    with pytest.raises(DataFileError, match="refusing to format"):
        format_data_file(tmp_path / "d", 7, 1, 3, file_system=file_system)


def test_identities_must_match(tmp_path: Path, file_system: FileSystem) -> None:
    format_data_file(tmp_path / "d", 7, 1, 3, file_system=file_system)
    for arguments in ((8, 1, 3), (7, 0, 3), (7, 1, 5)):
        with pytest.raises(DataFileError, match="wrong data directory"):
            open_data_file(tmp_path / "d", *arguments, file_system=file_system)
    open_data_file(tmp_path / "d", 7, 1, 3, file_system=file_system).close()


def test_one_process_at_a_time(tmp_path: Path, file_system: FileSystem) -> None:
    format_data_file(tmp_path / "d", 7, 1, 3, file_system=file_system)
    first = open_data_file(tmp_path / "d", file_system=file_system)
    with pytest.raises(DataFileError, match="in use"):
        open_data_file(tmp_path / "d", file_system=file_system)
    first.close()
    open_data_file(tmp_path / "d", file_system=file_system).close()


def test_configurations_that_the_protocol_refuses(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="must intersect"):
        format_data_file(tmp_path, 7, 0, 4, Quorums(replication=2, view_change=2))
    with pytest.raises(ConfigurationError, match="replica must be"):
        format_data_file(tmp_path, 7, 3, 3)
    with pytest.raises(ConfigurationError, match="64 bits"):
        format_data_file(tmp_path, -1, 0, 3)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_or_emptied_file_is_never_made_anew(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="does not exist"):
        open_data_file(tmp_path / "nothing")
    for name in ("superblock", "journal"):
        path = tmp_path / name
        format_data_file(path, 7, 1, 3)
        (path / name).write_bytes(b"")
        with pytest.raises(StorageError):
            open_data_file(path)
        (path / name).unlink()
        with pytest.raises(DataFileError, match="does not exist"):
            open_data_file(path)


def test_a_format_that_was_cut_short_is_not_a_replica(tmp_path: Path) -> None:
    files = MemoryFileSystem()
    format_data_file("d", 7, 1, 3, file_system=files)
    del files.files["d/superblock"]
    with pytest.raises(DataFileError, match="did not finish"):
        open_data_file("d", file_system=files)
    with pytest.raises(DataFileError, match="refusing"):
        format_data_file("d", 7, 1, 3, file_system=files)


def test_the_data_of_one_group_is_refused_for_another(tmp_path: Path) -> None:
    format_data_file(tmp_path / "data", 1, 0, 3, group=2)
    open_data_file(tmp_path / "data", 1, 0, 3, group=2).close()
    with pytest.raises(DataFileError, match="group is 2 there, but 1 was asked for"):
        open_data_file(tmp_path / "data", 1, 0, 3, group=1)


def test_the_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    format_data_file(tmp_path / "d", 7, 1, 3)
    (tmp_path / "d" / "journal").unlink()
    (tmp_path / "d" / "journal").mkdir()
    with pytest.raises(DataFileError, match=r"d/journal: cannot open: Is a directory"):
        open_data_file(tmp_path / "d")
