"""A cluster whose one partition is a group of its own: damaged segments and indexes of a replica are repaired."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from tests.impl.net.waiting import SECONDS
from tests.refinement.traces import load
from viewproof.impl.groups.group import parse_groups
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.partitions import PartitionsClient
from viewproof.impl.storage.inspect_partitions import inspect_partitions
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

(GROUP,) = parse_groups("partition:0/1/2")
OPTIONS = ("--checkpoint-interval", "10", "--segment-bytes", "300")
VICTIM = 1


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def flip(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])


DAMAGES: tuple[tuple[str, Callable[[Path], None], str], ...] = (
    (".log", cut, "fetched from the other replicas"),
    (".log", Path.unlink, "fetched from the other replicas"),
    (".log", flip, "fetched from the other replicas"),
    (".index", cut, "rebuilt from the messages"),
    (".index", Path.unlink, "rebuilt from the messages"),
)


def test_each_damage_is_named_and_repaired(tmp_path: Path) -> None:
    assert GROUP.namespace is not None
    with Cluster(tmp_path, groups=(GROUP,), server_options=OPTIONS) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        sent: list[bytes] = []
        send(cluster, sent, 30)
        directory = cluster.data_path(VICTIM) / GROUP.name
        for ending, damage, outcome in DAMAGES:
            stop_with_segments(cluster, directory)
            path = sorted(directory.glob(f"*{ending}"))[1]
            damage(path)
            assert str(path) in " ".join(inspect_partitions(directory).problems)
            known = len(cluster.log_path(VICTIM).read_text())
            cluster.start(VICTIM)
            wait_level(cluster)
            send(cluster, sent, 12)
            wait_level(cluster)
            said = cluster.log_path(VICTIM).read_text()[known:]
            assert str(path) in said
            assert outcome in said
        wait_level(cluster)
        cluster.stop_all()
        for replica in range(3):
            found = inspect_partitions(cluster.data_path(replica) / GROUP.name)
            assert found.whole
            assert all("above the checkpoint" in problem for problem in found.problems), found.problems
    run = GROUP.run("run")
    verdict = check_run(run, load(cluster.trace_path(0, GROUP).parent), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)


POLLED_MAX = 1000
"""Messages of a poll: who sends until something happens may send more."""


def send(cluster: Cluster, sent: list[bytes], count: int) -> None:
    """Appends so many messages, and reads all of them back."""
    namespace = GROUP.namespace
    assert namespace is not None

    async def run() -> None:
        client = PartitionsClient(cluster.addresses, cluster.cluster, group=GROUP.number)
        for _ in range(count):
            message = b"message %d" % len(sent)
            assert await client.append_messages(namespace, [message]) == len(sent)
            sent.append(message)
        await client.store_offset(namespace, 4, len(sent), group=True)
        assert await client.read_offset(namespace, 4, group=True) == len(sent)
        assert await client.read_offset(namespace, 4) is None
        first = max(0, len(sent) - POLLED_MAX)
        assert list((await client.poll(namespace, first, POLLED_MAX)).messages) == sent[first:]
        await client.close()

    asyncio.run(run())


def stop_with_segments(cluster: Cluster, directory: Path) -> None:
    """Stops the victim with a checkpoint that has three segments: all of the second one is part of it.

    A replica that was behind may not have taken it yet: then it goes on, and is stopped again.
    """
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        wait_level(cluster)
        cluster.stop(VICTIM)
        found = inspect_partitions(directory)
        if found.partitions and len(found.partitions[0].segments) >= 3:
            return
        cluster.start(VICTIM)
    raise AssertionError(f"no checkpoint with three segments: {found}")


def wait_level(cluster: Cluster) -> None:
    """Waits until the replicas are normal with all executed."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = asyncio.run(cluster.statuses(group=GROUP))
        states = {(status.status, status.op, status.commit_min) for status in found if status is not None}
        if None not in found and len(states) == 1 and next(iter(states))[0] == "normal":
            _, op, commit_min = states.pop()
            if op == commit_min:
                return
        time.sleep(0.1)
    raise AssertionError(f"not level: {found}")
