"""Inspection shows what is there, names what is broken, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewproof.impl.interface.durable import CLIENTS_SESSIONS, superblock_next
from viewproof.impl.interface.messages import Prepare, make_header
from viewproof.impl.machine.snapshot import Contents, encode_snapshot
from viewproof.impl.machine.state_machine import Put, StateMachine, encode_operation
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.features import FeatureState
from viewproof.impl.storage.data_file import DataFileError, format_data_file, open_data_file
from viewproof.impl.storage.inspect import inspect_data_file
from viewproof.impl.storage.snapshots import SnapshotFileError


def filled(path: Path, replica_count: int = 3) -> list[Prepare]:
    format_data_file(path, 7, min(1, replica_count - 1), replica_count)
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
    journal.write_bytes(whole + b"torn")
    superblock.write_bytes(b"\0" + superblock.read_bytes()[1:])
    before = journal.read_bytes(), superblock.read_bytes()
    found = inspect_data_file(tmp_path)
    assert found.opens
    assert any("superblock copy 0" in problem for problem in found.problems)
    assert any("cut off" in problem for problem in found.problems)
    journal.write_bytes(whole[:4200] + b"?" + whole[4201:])
    damaged = inspect_data_file(tmp_path)
    assert damaged.opens
    assert damaged.log_length == 1  # op 2; op 1 is lost, and op 3 is of no log yet
    assert any("are damaged" in problem for problem in damaged.problems)
    journal.write_bytes(before[0])
    inspect_data_file(tmp_path)
    assert (journal.read_bytes(), superblock.read_bytes()) == before


def test_a_damaged_journal_of_a_single_replica_is_refused(tmp_path: Path) -> None:
    filled(tmp_path, 1)
    journal = tmp_path / "journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:4200] + b"?" + whole[4201:])
    refused = inspect_data_file(tmp_path)
    assert not refused.opens
    assert any("no other one to fetch it from" in problem for problem in refused.problems)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="cannot read"):
        inspect_data_file(tmp_path)


def with_checkpoint(path: Path, replica_count: int = 3) -> str:
    """A data directory with a snapshot of two ops, one op above it, and a snapshot that nobody refers to."""
    entries = filled(path, replica_count)
    machine = StateMachine()
    machine.apply(encode_operation(Put(b"k", b"v")))
    table = ClientTable(CLIENTS_SESSIONS)
    contents = Contents(entries[1].header, machine.to_bytes(), table.to_bytes(), FeatureState().to_bytes())
    snapshot = encode_snapshot(7, contents)
    data = open_data_file(path)
    data.write_snapshot(2, snapshot.data)
    data.write_snapshot(5, snapshot.data)
    data.append([entries[2]])
    data.write_superblock(
        superblock_next(
            data.superblock,
            view=0,
            log_view=0,
            head_op=2,
            head_checksum=entries[1].header.checksum,
            clock=1,
            checkpoint=(2, snapshot.checksum),
        )
    )
    data.close()
    return snapshot.checksum


def test_a_snapshot_is_shown_with_what_it_holds(tmp_path: Path) -> None:
    checksum = with_checkpoint(tmp_path)
    found = inspect_data_file(tmp_path)
    assert found.opens
    assert found.log_length == 1
    used, left = found.snapshots
    assert (used.op, used.checksum, used.in_use, used.reason) == (2, checksum, True, "")
    assert (used.keys, used.clients, used.features) == (1, 0, ())
    assert used.entry is not None
    assert used.entry.op == 2
    assert (left.in_use, "op 2" in left.reason) == (False, True)
    assert any("2 records up to the checkpoint" in problem for problem in found.problems)
    assert any("snapshot-5: left over" in problem for problem in found.problems)
    open_data_file(tmp_path).close()
    assert inspect_data_file(tmp_path).problems == ()


def test_a_snapshot_that_is_damaged_or_gone_is_named(tmp_path: Path) -> None:
    with_checkpoint(tmp_path)
    snapshot = tmp_path / "snapshot-2"
    whole = snapshot.read_bytes()
    for position in range(len(whole)):
        snapshot.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        found = inspect_data_file(tmp_path)
        assert found.opens
        assert any("the superblock says" in problem for problem in found.problems)
    for reason in ("is damaged", "cannot read the snapshot"):
        data = open_data_file(tmp_path)
        state = data.durable_state()
        assert (state.snapshot, len(state.log), state.superblock.checkpoint) == (b"", 1, 2)
        assert any(reason in problem and "fetched from the other replicas" in problem for problem in data.problems)
        data.close()
        snapshot.unlink(missing_ok=True)
    assert any("does not exist" in problem for problem in inspect_data_file(tmp_path).problems)


def test_a_single_replica_does_not_start_without_its_snapshot(tmp_path: Path) -> None:
    with_checkpoint(tmp_path, replica_count=1)
    (tmp_path / "snapshot-2").unlink()
    assert not inspect_data_file(tmp_path).opens
    data = open_data_file(tmp_path)
    with pytest.raises(SnapshotFileError, match="cannot read the snapshot"):
        data.durable_state()
