"""`vsr inspect` and `vsr recover` on healthy and on damaged data: what they say, their exit codes and their JSON."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from viewproof.impl.interface.durable import CLIENTS_PAPER, ClientTableConfig, Quorums, superblock_next
from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare, make_header
from viewproof.impl.machine.snapshot import Contents, encode_snapshot
from viewproof.impl.machine.state_machine import Put, StateMachine, encode_operation
from viewproof.impl.net.framing import Position, Status
from viewproof.impl.net.recovery import RecoveryError, TooFewAnswersError, recovery_superblock
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.features import FeatureState
from viewproof.impl.storage.data_file import DataFileError, format_data_file, open_data_file
from viewproof.impl.storage.file import File, RealFileSystem
from viewproof.impl.storage.recover import diagnose, reset_for_recovery
from viewproof.impl.storage.superblock import COPIES, COPY_SIZE
from viewproof.refinement.cli.root import cli

OTHERS = "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"


def vsr(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def filled(path: Path, replicas: int = 3, ring: bool = False) -> Path:
    """A data directory with a snapshot of op 2 and two ops above it."""
    words = ["format", path, "--replica", 0, "--replicas", replicas, "--no-sessions", "--client-slots", 4]
    assert vsr(*words, *(["--journal", "ring", "--journal-slots", 16] if ring else [])).exit_code == 0
    data = open_data_file(path)
    log: list[Prepare] = []
    machine, table = StateMachine(), ClientTable(data.superblock.clients)
    parent = CHECKSUM_NONE
    for op in range(1, 5):
        body = encode_operation(Put(b"k%d" % op, b"v"))
        header = make_header(parent=parent, view=0, op=op, client=op, request=1, commit=0, body=body)
        log.append(Prepare(header, body))
        parent = header.checksum
        data.append(log[-1:])
    for prepare in log[:2]:
        machine.apply(prepare.body)
    contents = Contents(log[1].header, machine.to_bytes(), table.to_bytes(), FeatureState().to_bytes())
    snapshot = encode_snapshot(1, contents)
    data.write_snapshot(2, snapshot.data)
    head = {"head_op": 2, "head_checksum": log[1].header.checksum}
    at = (2, snapshot.checksum)
    data.write_superblock(superblock_next(data.superblock, view=0, log_view=0, clock=1, checkpoint=at, **head))  # type: ignore[arg-type]
    data.drain(2)
    data.close()
    return path


def report_of(result: Result, file: Path) -> Any:
    """The JSON written, which has the exit code."""
    assert "Traceback" not in result.output
    report = json.loads(file.read_text())
    assert report["exit_code"] == result.exit_code
    return report


@pytest.mark.parametrize("part", ["superblock", "wal", "snapshot", "clients"])
@pytest.mark.parametrize("ring", [False, True])
def test_parts_of_a_healthy_directory(part: str, ring: bool, tmp_path: Path) -> None:
    data = filled(tmp_path / "d", ring=ring)
    report = report_of(vsr("inspect", part, data, "--json", tmp_path / "r"), tmp_path / "r")
    assert report["exit_code"] == 0
    assert report["problems"] == []
    wanted = {"superblock": "superblock", "wal": "records", "snapshot": "snapshots", "clients": "snapshots"}[part]
    assert wanted in report
    assert ("records" in report) == (part == "wal")


def flip(path: Path, *offsets: int) -> None:
    data = bytearray(path.read_bytes())
    for offset in offsets:
        data[offset] ^= 1
    path.write_bytes(data)


def spoil_superblock(data: Path) -> None:
    flip(data / "superblock", *(copy * COPY_SIZE + 40 for copy in range(COPIES)))


def spoil_version(data: Path) -> None:
    """One bit less in each copy: it reads as an older version, but the rest is of this one."""
    content = bytearray((data / "superblock").read_bytes())
    for start in range(0, COPIES * COPY_SIZE, COPY_SIZE):
        content[start + 16 + 9] &= content[start + 16 + 9] - 1
    (data / "superblock").write_bytes(bytes(content))


def age_superblock(data: Path) -> None:
    """An older version, whose block was shorter."""
    content = bytearray((data / "superblock").read_bytes())
    for start in range(0, COPIES * COPY_SIZE, COPY_SIZE):
        content[start + 16 + 9] -= 1
        content[start : start + 16] = hashlib.blake2b(content[start + 16 : start + 100], digest_size=16).digest()
    (data / "superblock").write_bytes(bytes(content))


DAMAGE: dict[str, tuple[Callable[[Path], object], str, str, bool]] = {
    "one copy": (lambda data: flip(data / "superblock", 40), "superblock", "start", True),
    "superblock": (spoil_superblock, "superblock", "from_cluster", False),
    "older superblock": (age_superblock, "superblock", "other_version", False),
    "superblock version": (spoil_version, "superblock", "from_cluster", False),
    "superblock lost": (lambda data: (data / "superblock").unlink(), "superblock", "from_cluster", False),
    "journal header": (lambda data: flip(data / "journal", 20), "journal", "from_cluster", False),
    "journal record": (lambda data: flip(data / "journal", 4200), "journal", "start_or_from_cluster", True),
    "journal lost": (lambda data: (data / "journal").unlink(), "journal", "from_cluster", False),
    "snapshot": (lambda data: flip(data / "snapshot-2", 50), "snapshot-2", "start_or_from_cluster", True),
    "snapshot lost": (lambda data: (data / "snapshot-2").unlink(), "snapshot-2", "start_or_from_cluster", True),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_each_damage_has_a_name_and_a_remedy(kind: str, tmp_path: Path) -> None:
    spoil, file, remedy, starts = DAMAGE[kind]
    data = filled(tmp_path / "d")
    healthy = vsr("recover", data)
    assert (healthy.exit_code, "nothing is wrong" in healthy.output) == (0, True)
    spoil(data)
    before = {path.name: path.read_bytes() for path in data.iterdir()}
    report = report_of(vsr("recover", data, "--json", tmp_path / "r"), tmp_path / "r")
    assert (report["starts"], report["exit_code"]) == (starts, 0 if starts else 1)
    (finding,) = report["findings"]
    assert (finding["file"], finding["remedy"]) == (str(data / file), remedy)
    assert finding["action"]
    assert finding["file"] not in finding["problem"], "the file is named once"
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before
    if (data / "superblock").exists() and (data / "journal").exists():
        inspected = report_of(vsr("inspect", data, "--json", tmp_path / "i"), tmp_path / "i")
        assert inspected["opens"] == starts
        assert inspected["problems"]
    again = vsr("recover", data, "--from-cluster", OTHERS, "--replica", 0, "--cluster", 1, "--timeout", 0.1)
    assert again.exit_code == (2 if remedy in ("other_version",) else 4 if remedy != "start" else 2)
    assert "nothing was changed" in again.output
    assert {path.name: path.read_bytes() for path in data.iterdir()} == before


def test_a_single_replica_is_told_to_restore(tmp_path: Path) -> None:
    data = filled(tmp_path / "d", replicas=1)
    flip(data / "journal", 4200)
    report = report_of(vsr("recover", data, "--json", tmp_path / "r"), tmp_path / "r")
    assert [finding["remedy"] for finding in report["findings"]] == ["restore"]
    refused = vsr("recover", data, "--from-cluster", "127.0.0.1:1")
    assert refused.exit_code == 2
    assert "not to be recovered from the cluster" in refused.output


def test_an_empty_directory_is_not_taken_for_a_lost_disk(tmp_path: Path) -> None:
    data = tmp_path / "d"
    data.mkdir()
    refused = vsr("recover", data, "--from-cluster", OTHERS, "--replica", 0, "--cluster", 1, "--timeout", 0.1)
    assert refused.exit_code == 2
    assert "--all-lost" in refused.output
    assert "--all-lost --replica I --cluster C" in vsr("recover", data).output
    missing = vsr("recover", data / "missing")
    assert missing.exit_code == 2
    assert "does not exist: is it the right one?" in missing.output
    asked = vsr("recover", data, "--from-cluster", OTHERS, "--all-lost", "--timeout", 0.1)
    assert (asked.exit_code, "give --replica" in asked.output) == (2, True)
    assert list(data.iterdir()) == []


def test_what_a_recovery_put_aside_is_not_taken_for_a_data_directory(tmp_path: Path) -> None:
    """It was killed before the new files were there."""
    data = filled(tmp_path / "d")
    (data / "before-recovery-1").mkdir()
    for file in [path for path in data.iterdir() if path.is_file()]:
        file.rename(data / "before-recovery-1" / file.name)
    refused = vsr("recover", data, "--from-cluster", OTHERS, "--timeout", 0.1)
    assert refused.exit_code == 2
    assert "a recovery put aside (before-recovery-1)" in refused.output
    assert "go on with --all-lost" in refused.output
    words = ("--all-lost", "--replica", 0, "--cluster", 1, "--timeout", 0.1)
    assert vsr("recover", data, "--from-cluster", OTHERS, *words).exit_code == 4, "nobody answers"


@pytest.mark.parametrize("name", ["superblock", "journal"])
@pytest.mark.parametrize("kind", ["link", "directory"])
def test_a_link_or_a_directory_in_the_place_of_a_file_is_put_aside(name: str, kind: str, tmp_path: Path) -> None:
    data = filled(tmp_path / "d")
    (data / name).rename(tmp_path / "elsewhere")
    if kind == "link":
        (data / name).symlink_to(tmp_path / "elsewhere")
        flip(tmp_path / "elsewhere", 20)
    else:
        (data / name).mkdir()
    found = diagnose(data)
    reset_for_recovery(found, recovery_superblock([None, answer(1, 7), answer(2, 9)], 0, 1, 0, found.copies))
    assert diagnose(data).agreed is not None
    assert sorted(path.name for path in data.iterdir()) == ["before-recovery-1", "journal", "superblock"]


def test_the_directory_of_another_replica(tmp_path: Path) -> None:
    data = filled(tmp_path / "d")
    shutil.copy(filled(tmp_path / "e") / "journal", data / "journal")
    format_data_file(tmp_path / "f", 9, 1, 3, clients=CLIENTS_PAPER)
    shutil.copy(tmp_path / "f" / "journal", data / "journal")
    found = vsr("recover", data)
    assert found.exit_code == 1
    assert "belongs to replica 1 of cluster 9" in found.output
    wrong = vsr("recover", data, "--from-cluster", OTHERS, "--replica", 1)
    assert (wrong.exit_code, "wrong directory" in wrong.output) == (2, True)


def answer(replica: int, view: int, **changes: Any) -> Status:
    fields = {
        "cluster": 1, "replica": replica, "replica_count": 3, "status": "normal", "view": view, "log_view": view,
        "op": 1, "commit_min": 1, "commit_max": 1, "journal_bytes": 0, "peers": (), "quorums": (2, 2),
        "clients": (4, False, True),
    }  # fmt: skip
    return Status(**fields | changes)


def test_the_options_that_name_another_replica_are_refused_on_a_whole_directory_too(tmp_path: Path) -> None:
    data = filled(tmp_path / "d")
    for words in (("--replica", 1), ("--cluster", 2), ("--group", "metadata")):
        found = vsr("recover", data, *words)
        assert (found.exit_code, "wrong directory?" in found.output) == (2, True), found.output


def test_settings_that_no_replica_starts_beside_are_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = filled(tmp_path / "d")
    (data / "configuration.toml").write_bytes(b"\xff")
    found = vsr("recover", data)
    assert (found.exit_code, "remove it, and start with the settings of before" in found.output) == (1, True)
    assert f"{data / 'configuration.toml'}: byte 0 is no UTF-8" in found.output
    monkeypatch.setattr("viewproof.refinement.cli.recover._ask", nobody)
    asked = vsr("recover", data, "--from-cluster", OTHERS, "--timeout", 0.1)
    assert (asked.exit_code, "not to be recovered from the cluster, see above" in asked.output) == (2, True)
    (data / "configuration.toml").unlink()
    assert vsr("recover", data).exit_code == 0


async def nobody(*words: object) -> list[None]:
    return []


@pytest.mark.parametrize("lost", ["superblock", "journal"])
def test_two_recoveries_at_once_are_one(tmp_path: Path, lost: str) -> None:
    """Also where no superblock is there to be locked; what the first has put back is not put aside by the second."""
    data = filled(tmp_path / "d")
    (data / lost).unlink()
    found = diagnose(data)
    state = recovery_superblock([None, answer(1, 7), answer(2, 9)], 0, 1, 0, found.copies)
    release = RealFileSystem().lock(str(data))
    with pytest.raises(DataFileError, match="another vsr recover is at it"):
        reset_for_recovery(found, state)
    release()
    assert diagnose(data) == found
    reset_for_recovery(found, state)
    with pytest.raises(DataFileError, match="has changed since it was looked at"):
        reset_for_recovery(found, state)
    after = diagnose(data)
    assert after.agreed == state
    assert sorted(path.name for path in data.iterdir()) == ["before-recovery-1", "journal", "superblock"]


def test_the_view_is_the_highest_that_enough_others_know() -> None:
    state = recovery_superblock([answer(0, 7), answer(1, 9), None], 2, 1, 0)
    assert (state.view, state.log_view, state.head_op, state.checkpoint) == (9, 0, 0, 0)
    assert state.recovery
    assert state.sequence > 1
    assert (state.quorums, state.clients) == (Quorums(2, 2), ClientTableConfig(4, False, True))
    assert recovery_superblock([answer(0, 7), answer(1, 9), None], 2, 1, 0, [state]).sequence > state.sequence
    of_five = [answer(node, node, replica_count=5, quorums=(3, 3)) for node in range(3)]
    assert recovery_superblock([*of_five, None, None], 4, 1, 0).view == 2


def test_a_replica_is_not_put_back_while_the_others_have_no_quorum_without_it() -> None:
    with pytest.raises(TooFewAnswersError, match=r"replicas \[1\] are recovering themselves"):
        recovery_superblock([answer(0, 7), answer(1, 9, status="recovering"), None], 2, 1, 0)
    of_five = [answer(node, node, replica_count=5, quorums=(3, 3), status="normal") for node in range(3)]
    of_five.append(answer(3, 3, replica_count=5, quorums=(3, 3), status="recovering"))
    assert recovery_superblock([*of_five, None], 4, 1, 0).view == 3


def test_a_recovered_replica_answers_for_another_only_after_all_were_restarted() -> None:
    statuses = [answer(0, 7, recoveries=2), answer(1, 9), None]
    state = recovery_superblock(statuses, 2, 1, 0, others_restarted=True)
    assert (state.view, state.recoveries) == (9, 1)
    assert recovery_superblock(statuses, 2, 1, 0, [state], others_restarted=True).recoveries == 2
    of_five = [answer(node, node, replica_count=5, quorums=(3, 3), recoveries=node == 0) for node in range(4)]
    assert recovery_superblock([*of_five, None], 4, 1, 0).view == 3, "three others who were not are enough"


def test_what_a_recovery_needs() -> None:
    for statuses, replica, error, text in (
        ([answer(0, 7), None, None], 2, TooFewAnswersError, "1 of the 2 others"),
        ([None, None, None], 2, TooFewAnswersError, "no other replica"),
        ([None], 0, RecoveryError, "single replica"),
        ([answer(0, 1), answer(1, 1), answer(2, 1)], 2, RecoveryError, "is running"),
        ([answer(1, 1), answer(0, 1), None], 2, RecoveryError, "is that of replica 1"),
        ([answer(0, 1, quorums=(3, 1)), answer(1, 1, quorums=(3, 1)), None], 2, RecoveryError, "no other knows of"),
        ([answer(0, 1), answer(1, 1, quorums=(3, 2)), None], 2, RecoveryError, "do not agree"),
        ([answer(0, 1, recoveries=1), answer(1, 1), None], 2, RecoveryError, r"\[0\] were recovered themselves"),
        ([answer(0, 1, replica_count=5), answer(1, 1, replica_count=5), None], 2, RecoveryError, "3 addresses, but"),
    ):
        with pytest.raises(error, match=text):
            recovery_superblock(statuses, replica, 1, 0)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.EMFILE])
@pytest.mark.parametrize("name", ["superblock", "journal"])
def test_a_file_that_may_not_be_read_is_not_taken_for_damaged(name: str, number: int, tmp_path: Path) -> None:
    class Closed(RealFileSystem):
        def open(self, path: str) -> File:
            if path.endswith(name):
                raise OSError(number, os.strerror(number))
            return super().open(path)

    with pytest.raises(DataFileError, match=f"{name}: {os.strerror(number)}: whether it is damaged is not known"):
        diagnose(filled(tmp_path / "d"), Closed())


def test_that_a_directory_is_older_is_kept_for_when_the_others_have_forgotten_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = filled(tmp_path / "d")
    heard = (Position(0, 0, 0, view=0, log_view=0, op=9),)
    others = [answer(replica, 0, heard=heard) for replica in (1, 2)]
    said: list[Status | None] = [answer(0, 0), *others]

    async def ask(*_: object) -> list[Status | None]:
        return said

    monkeypatch.setattr("viewproof.refinement.cli.recover._ask", ask)
    recover = ("recover", data, "--from-cluster", OTHERS)
    assert vsr(*recover).exit_code == 2
    assert not (data / "outdated.json").exists(), "the replica runs, so the others may have heard what was just written"
    said[0] = None
    said[1] = msgspec.structs.replace(others[0], recoveries=1)
    result = vsr(*recover)
    assert (result.exit_code, "--others-restarted" in result.output) == (2, True), result.output
    said[1:] = [answer(replica, 0) for replica in (1, 2)]
    assert vsr("recover", data).exit_code == 1
    with pytest.raises(DataFileError, match=r"outdated\.json: older than what replica 0 said of itself before"):
        open_data_file(data)
    result = vsr(*recover)
    assert (result.exit_code, "begins its recovery" in result.output) == (0, True), result.output
    open_data_file(data).close()
