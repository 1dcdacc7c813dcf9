"""A cluster that is set up wrongly says so, on both sides, and nothing that was acknowledged is lost by it."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.impl.net.test_checkpoints import put, status_of, wait_level
from tests.impl.net.test_recover import vsr
from tests.impl.net.waiting import wait_for
from viewproof.impl.interface.durable import ClientTableConfig, Quorums, superblock_formatted
from viewproof.impl.net.address import address_text
from viewproof.impl.net.client import RefusedError, RequestTimeoutError
from viewproof.impl.net.cluster import Cluster, free_ports
from viewproof.impl.net.configuration import configuration_of, differences
from viewproof.impl.net.framing import PROTOCOL_VERSION, Hello, Position
from viewproof.impl.net.peers import Peers, is_older, newer
from viewproof.impl.net.sync_client import SyncClient
from viewproof.impl.storage.data_file import format_data_file

ROOT = Path(__file__).resolve().parents[3]

STATE = superblock_formatted(7, 0, 3, clients=ClientTableConfig(64, True))
HERE = configuration_of([STATE], 100, 1 << 20)
ADDRESSES = (("a", 1), ("b", 2), ("c", 3))


def peers(now: list[float] | None = None) -> Peers:
    """Replica 0 of three."""
    return Peers(
        cluster=7,
        replica=0,
        addresses=ADDRESSES,
        configuration=HERE,
        incarnation=10,
        sessions=True,
        positions=lambda: (Position(0, 0, 0, 4, 4, 9),),
        clock=lambda: 0.0 if now is None else now[0],
    )


def hello(number: int = 1, incarnation: int = 11, **changes: object) -> Hello:
    whole = Hello(
        PROTOCOL_VERSION, 7, "replica", number, True, incarnation, HERE, tuple(map(address_text, ADDRESSES)), ()
    )
    return msgspec.structs.replace(whole, **changes)


def test_who_says_what_is_expected_is_spoken_with() -> None:
    known = peers()
    assert known.refusal(hello()) is None
    assert known.refusal(hello(), dialled=1) is None
    assert known.problems() == ()


@pytest.mark.parametrize(
    ("there", "text"),
    [
        (
            configuration_of([replace(STATE, quorums=Quorums(3, 1))], 100, 1 << 20),
            "quorums of single (replication, view change) (3, 1) there, (2, 2) here",
        ),
        (
            configuration_of([replace(STATE, clients=ClientTableConfig(32, True))], 100, 1 << 20),
            "client table of single (slots, sessions, gaps) (32, True, False) there, (64, True, False) here",
        ),
        (
            configuration_of([replace(STATE, clients=ClientTableConfig(64, False))], 100, 1 << 20),
            "client table of single (slots, sessions, gaps) (64, False, False) there",
        ),
        (configuration_of([STATE], 200, 1 << 20), "checkpoint interval 200 there, 100 here"),
        (configuration_of([STATE], 100, 1 << 21), "segment bytes 2097152 there, 1048576 here"),
        (configuration_of([replace(STATE, replica_count=5)], 100, 1 << 20), "replicas 5 there, 3 here"),
        (
            configuration_of([replace(STATE, group=1), replace(STATE, group=2)], 100, 1 << 20),
            "groups metadata,partitions there, single here",
        ),
    ],
)
def test_each_difference_of_configuration_is_refused_by_name(there: object, text: str) -> None:
    known = peers()
    reason = known.refusal(hello(configuration=there))
    assert reason is not None
    assert text in reason
    assert reason.startswith("replica 1 is configured differently from replica 0")
    assert known.problems() == (reason,)


def test_equal_configurations_have_equal_digests_and_no_differences() -> None:
    same = configuration_of([STATE], 100, 1 << 20)
    assert (same.digest, differences(same, HERE)) == (HERE.digest, [])
    assert configuration_of([STATE], 101, 1 << 20).digest != HERE.digest


def test_another_replica_at_an_address_is_refused() -> None:
    assert "the replica at b:2 is 2, not 1" in str(peers().refusal(hello(2), dialled=1))


def test_other_addresses_are_a_problem_until_they_are_the_same() -> None:
    now = [0.0]
    known = peers(now)
    assert known.refusal(hello(addresses=("a:1", "c:3", "b:2"))) is None
    now[0] = 1e6
    assert known.problems() == (
        "replica 1 has other addresses: replica 1 is c:3 there, b:2 here; replica 2 is b:2 there, c:3 here",
    )
    assert known.refusal(hello()) is None
    assert known.problems() == ()


def test_a_process_that_was_replaced_is_refused_and_the_problem_ends() -> None:
    now = [0.0]
    known = peers(now)
    assert known.refusal(hello(incarnation=11)) is None
    assert known.refusal(hello(incarnation=12)) is None
    assert known.refusal(hello(incarnation=12)) is None
    assert "another process of replica 1 has come since" in str(known.refusal(hello(incarnation=11)))
    assert known.refusal(hello(2, incarnation=11)) is None, "incarnations are a replica's own"
    assert len(known.problems()) == 1
    now[0] = 31.0
    assert known.problems() == ()


OLD, NEW = Position(1, 0, 0, 5, 4, 90), Position(1, 0, 0, 5, 5, 80)


@pytest.mark.parametrize(
    ("found", "known", "older"),
    [
        (OLD, OLD, False),
        (OLD, NEW, True),
        (NEW, OLD, False),
        (msgspec.structs.replace(NEW, op=79), NEW, True),
        (msgspec.structs.replace(NEW, op=-1), NEW, False),
        (msgspec.structs.replace(NEW, view=4, op=-1), NEW, True),
        (Position(1, 0, 1, 0, 0, -1), NEW, False),
        (NEW, Position(1, 0, 1, 0, 0, -1), True),
    ],
)
def test_what_is_older(found: Position, known: Position, older: bool) -> None:
    assert is_older(found, known) is older
    assert not is_older(newer(known, found), known)
    if older:
        assert newer(known, found) == known


def test_a_directory_older_than_what_was_heard_is_refused_also_if_another_heard_it() -> None:
    known = peers()
    known.hear([NEW])
    reason = known.refusal(hello(positions=(OLD,)))
    assert reason is not None
    assert "older than what was heard from it (view 5, op 80 of view 5; now view 5, op 90 of view 4)" in reason
    assert "vsr recover" in reason
    assert known.refusal(hello(positions=(NEW,))) is None
    assert known.all_positions() == (Position(0, 0, 0, 4, 4, 9), NEW)


def test_a_replica_that_others_have_heard_more_of_knows_it_and_keeps_it() -> None:
    kept: list[tuple[int, str]] = []
    now = (Position(0, 0, 0, 4, 4, 9, 10),)
    known = Peers(
        cluster=7,
        replica=0,
        addresses=ADDRESSES,
        configuration=HERE,
        incarnation=10,
        sessions=True,
        positions=lambda: now,
        on_outdated=lambda group, reason: kept.append((group, reason)),
    )
    known.hello()
    begun, now = now[0], (msgspec.structs.replace(now[0], op=500),)
    for heard in (begun, msgspec.structs.replace(begun, incarnation=3), msgspec.structs.replace(now[0], op=400)):
        assert known.refusal(hello(positions=(heard,))) is None, "not more, or of this very process"
    assert kept == []
    later = msgspec.structs.replace(begun, op=400, incarnation=3)
    assert "replica 0 is older than what was heard from it" in str(known.refusal(hello(positions=(later,))))
    assert [group for group, _ in kept] == [0]
    recovered = msgspec.structs.replace(begun, recoveries=1, incarnation=3)
    told = "(view 4, op 9 of view 4, recoveries 1; it began with view 4, op 9 of view 4)"
    assert told in str(known.refusal(hello(positions=(recovered,)))), "what makes it older is in the text"


def test_a_hello_that_what_its_own_process_said_later_has_overtaken_is_no_older_directory() -> None:
    known = peers()
    known.hear([msgspec.structs.replace(OLD, incarnation=11)])
    known.hear([msgspec.structs.replace(NEW, incarnation=12)])
    late = msgspec.structs.replace(OLD, incarnation=12)
    assert known.refusal(hello(incarnation=12, positions=(late,))) is None
    stale = msgspec.structs.replace(OLD, incarnation=13)
    known.hear([stale])
    assert "older than what was heard" in str(known.refusal(hello(incarnation=13, positions=(stale,))))


def test_what_others_say_of_a_replica_that_is_not_there_is_not_kept() -> None:
    known = peers()
    known.hear([Position(9, 0, 0, 1, 1, 1), Position(0, 0, 9, 99, 99, 99)])
    known.hear(Position(1, group, 0, 1, 1, 1) for group in range(100))
    assert len(known.heard) <= 3


# Clusters


def problems_of(cluster: Cluster, replica: int) -> str:
    status = status_of(cluster, replica)
    return "" if status is None else "\n".join(status.problems)


def wait_problem(cluster: Cluster, replica: int, text: str) -> None:
    wait_for(lambda: text in problems_of(cluster, replica), f"replica {replica} reports {text!r}")


@pytest.mark.parametrize(("count", "others"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
def test_requests_are_taken_once_more_than_half_are_configured_alike(count: int, others: int) -> None:
    here = configuration_of([replace(STATE, replica_count=count)], 100, 1 << 20)
    known = Peers(
        cluster=7,
        replica=0,
        addresses=[("a", number) for number in range(count)],
        configuration=here,
        incarnation=10,
        sessions=True,
        positions=lambda: (),
    )
    for number in range(1, others + 1):
        assert not known.has_majority
        assert known.refusal(hello(number, 10 + number, configuration=HERE if count != 3 else None)) is not None
        assert not known.has_majority
        assert known.refusal(hello(number, 10 + number, configuration=here)) is None
    assert known.has_majority


def test_a_replica_with_other_quorums_takes_part_in_nothing(tmp_path: Path) -> None:
    with Cluster(tmp_path, cluster=7) as cluster:
        cluster.format()
        shutil.rmtree(cluster.data_path(1))
        format_data_file(cluster.data_path(1), 7, 1, 3, Quorums(3, 1), clients=cluster.clients)
        cluster.start_all()
        for replica in (0, 1, 2):
            wait_problem(cluster, replica, "quorums of single (replication, view change)")
        with SyncClient(cluster.addresses, 7) as client:
            client.put(b"a", b"4")
        cluster.kill(0)
        cluster.start(0)
        with SyncClient(cluster.addresses, 7) as client:
            assert client.get(b"a") == b"4"
        status = status_of(cluster, 1)
        assert status is not None
        assert (status.commit_max, status.peers) == (0, ())
        code, output = vsr("status", "--addresses", cluster.address_list(), "--cluster", 7)
        assert code == 1, output
        assert "(3, 1) there, (2, 2) here" in output


def test_a_first_primary_that_needs_nobody_acknowledges_nothing_alone(tmp_path: Path) -> None:
    with Cluster(tmp_path, cluster=7) as cluster:
        cluster.format()
        shutil.rmtree(cluster.data_path(0))
        format_data_file(cluster.data_path(0), 7, 0, 3, Quorums(1, 3), clients=cluster.clients)
        cluster.start(0)
        wait_for(lambda: (found := status_of(cluster, 0)) is not None and found.status == "normal", "it is the primary")
        client = SyncClient(cluster.addresses, 7, timeout_seconds=2)
        with pytest.raises(RequestTimeoutError):
            client.put(b"a", b"1")
        cluster.start(1)
        cluster.start(2)
        wait_problem(cluster, 0, "quorums of single (replication, view change)")
        with SyncClient(cluster.addresses, 7) as another:
            another.put(b"a", b"2")
            assert another.get(b"a") == b"2"
        status = status_of(cluster, 0)
        assert status is not None
        assert status.op == 0


def test_exchanged_addresses_are_noticed_by_replicas_and_by_status(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.format()
        right = cluster.addresses
        cluster.addresses = (right[0], right[2], right[1])
        wrong = cluster.address_list()
        cluster.start(0)
        cluster.addresses = right
        cluster.start(1)
        cluster.start(2)
        wait_problem(cluster, 0, f"the replica at {address_text(right[2])} is 2, not 1")
        wait_problem(cluster, 1, "replica 0 has other addresses: replica 1 is")
        with SyncClient(cluster.addresses, 1) as client:
            client.put(b"a", b"1")
        turned = (right[2], right[1], right[0])
        with SyncClient(turned, 1) as misled, pytest.raises(RefusedError, match="is 2, not 0: give the addresses"):
            misled.get(b"a")
        code, output = vsr("status", "--addresses", wrong, "--json", tmp_path / "status.json")
        assert code == 1, output
        found = json.loads((tmp_path / "status.json").read_text())["problems"]
        assert f"the replica at {address_text(right[2])} is 2, not 1: give the addresses by index" in found


@contextmanager
def second_process(cluster: Cluster, replica: int, data: Path) -> Iterator[None]:
    """Another process of a replica, at another port, on a directory of its own."""
    port = free_ports(1)[0]
    addresses = list(cluster.addresses)
    addresses[replica] = (addresses[replica][0], port)
    command = [sys.executable, "-m", "viewproof.impl.net.server", "--data", str(data), "--replica", str(replica)]
    command += ["--addresses", ",".join(map(address_text, addresses))]
    with (data.parent / "second.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def test_two_processes_of_one_replica_are_noticed(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.format()
        shutil.copytree(cluster.data_path(2), tmp_path / "copy")
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        with second_process(cluster, 2, tmp_path / "copy"):
            wait_problem(cluster, 0, "another process of replica 2 has come since")
            with SyncClient(cluster.addresses, 1) as client:
                client.put(b"a", b"1")
            assert vsr("status", "--addresses", cluster.address_list())[0] == 1


def test_a_directory_from_a_backup_is_refused_and_recovered(tmp_path: Path) -> None:
    with Cluster(tmp_path) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        put(cluster, 10)
        wait_level(cluster)
        cluster.stop(2)
        data = cluster.data_path(2)
        shutil.copytree(data, tmp_path / "backup")
        cluster.start(2)
        put(cluster, 10)
        level = wait_level(cluster)
        for other in (0, 1):
            wait_for(lambda other=other: level in heard_ops(cluster, other, 2), "it is known what replica 2 holds")
        cluster.kill(2)
        shutil.rmtree(data)
        shutil.copytree(tmp_path / "backup", data)
        cluster.start(2)
        wait_problem(cluster, 0, "the data directory of replica 2 is older than what was heard from it")
        wait_problem(cluster, 2, "the data directory of replica 2 is older than what was heard from it")
        put(cluster, 5)
        assert vsr("recover", data, "--from-cluster", cluster.address_list())[0] == 2, "it runs"
        wait_for((data / "outdated.json").exists, "replica 2 keeps that its directory is older")
        for replica in range(3):  # what the others heard is forgotten
            cluster.kill(replica)
        cluster.start_all()
        wait_for(lambda: cluster.exit_code(2) == 2, "replica 2 does not start on it")
        assert "older than what was heard from it" in cluster.log_tail(2)
        assert vsr("recover", data)[0] == 1
        put(cluster, 5)  # the others serve again
        code, output = vsr("recover", data, "--from-cluster", cluster.address_list(), "--timeout", 60)
        assert code == 0, output
        assert "older than what was heard from it" in output
        cluster.kill(2)
        cluster.start(2)
        wait_level(cluster)
        put(cluster, 5)
        wait_level(cluster)
        assert set(cluster.stop_all().values()) == {0}


def heard_ops(cluster: Cluster, replica: int, of: int) -> list[int]:
    status = status_of(cluster, replica)
    return [] if status is None else [position.op for position in status.heard if position.replica == of]
