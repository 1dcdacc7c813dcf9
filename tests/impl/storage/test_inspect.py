"""Inspection shows what is there, names what is broken, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from impl.messages import Prepare, make_header
from impl.storage.data_file import DataFileError, format_data_file, open_data_file
from impl.storage.inspect import inspect_data_file


def filled(path: Path) -> list[Prepare]:
    format_data_file(path, 7, 1, 3)
    data = open_data_file(path)
    entries: list[Prepare] = []
    parent = ""
    for op in range(1, 4):
        header = make_header(parent=parent, view=0, op=op, client=1, request=op, commit=0, body=b"b")
        entries.append(Prepare(header, b"b"))
        parent = header.checksum
        data.append(entries[-1:], repair=op == 3)
    data.close()
    return entries


def test_a_sound_directory_is_shown_in_full(tmp_path: Path) -> None:
    entries = filled(tmp_path)
    found = inspect_data_file(tmp_path)
    assert found.opens
    assert found.problems == ()
    assert found.log_length == 2
    assert [record.header for record in found.records] == [entry.header for entry in entries]
    assert [(record.repair, record.in_log) for record in found.records] == [(False, True), (False, True), (True, False)]
    assert {view.state for view in found.copies} == {found.superblock}


def test_damage_is_named_and_left_as_it_is(tmp_path: Path) -> None:
    filled(tmp_path)
    journal, superblock = tmp_path / "journal", tmp_path / "superblock"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-3])
    superblock.write_bytes(b"\0" + superblock.read_bytes()[1:])
    before = journal.read_bytes(), superblock.read_bytes()
    found = inspect_data_file(tmp_path)
    assert found.opens
    assert any("superblock copy 0" in problem for problem in found.problems)
    assert any("cut off" in problem for problem in found.problems)
    journal.write_bytes(whole[:70] + b"?" + whole[71:])
    refused = inspect_data_file(tmp_path)
    assert not refused.opens
    assert any("is damaged" in problem for problem in refused.problems)
    journal.write_bytes(before[0])
    inspect_data_file(tmp_path)
    assert (journal.read_bytes(), superblock.read_bytes()) == before


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="cannot read"):
        inspect_data_file(tmp_path)
