"""A real cluster with both planes in every process: separate groups, strict routing, features enabled in each."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tests.impl.net.waiting import SECONDS
from tests.refinement.traces import load
from viewproof.impl.groups.group import BOTH_PLANES, METADATA, PARTITIONS
from viewproof.impl.interface.messages import Request
from viewproof.impl.machine.namespaces import NamespaceError
from viewproof.impl.net.client import Client
from viewproof.impl.net.cluster import Cluster, ClusterError
from viewproof.impl.net.connection import fetch_status
from viewproof.impl.net.errors import RefusedError, ReplyError
from viewproof.impl.net.framing import FrameError, FrameReader, StatusRequest, frame_control, frame_message
from viewproof.impl.net.partitions import OffsetError, PartitionsClient
from viewproof.impl.net.server import serve
from viewproof.impl.net.server_config import ServerConfig, ServerError
from viewproof.impl.storage.inspect import inspect_data_file
from viewproof.impl.trace.files import read_ndjson
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions


async def enabled(cluster: Cluster) -> set[int]:
    """Features enabled, on any replica in any group that lacks some."""
    deadline = time.monotonic() + SECONDS
    while True:
        found = [status for group in BOTH_PLANES for status in await cluster.statuses(group=group)]
        masks = {-1 if status is None else status.features for status in found}
        if masks == {1} or time.monotonic() > deadline:
            return masks
        await asyncio.sleep(0.05)


async def use_both_planes(cluster: Cluster) -> None:
    await cluster.wait_ready()
    async with (
        Client(cluster.addresses, 1, group=METADATA.number) as metadata,
        PartitionsClient(cluster.addresses, 1) as partitions,
    ):
        pack = partitions.layout.pack
        await metadata.put(b"topic", b"0/1")
        offsets = [await partitions.append_messages(pack(0, 1, number % 2), [b"m%d" % number]) for number in range(6)]
        assert offsets == [0, 0, 1, 1, 2, 2]
        primary = await cluster.primary(PARTITIONS)
        assert primary is not None
        cluster.kill(primary)
        assert await partitions.append_messages(pack(0, 1, 0), [b"m6", b"m7"]) == 3
        await metadata.put(b"topic", b"0/2")
        cluster.start(primary)
        await cluster.wait_ready()
        assert (await partitions.poll(pack(0, 1, 0), 1, 9)).messages == (b"m2", b"m4", b"m6", b"m7")
        await partitions.store_offset(pack(0, 1, 0), 1, 5)
        with pytest.raises(OffsetError, match="offset 6 of consumer 1 is above the end"):
            await partitions.store_offset(pack(0, 1, 0), 1, 6)
        assert (await partitions.read_offset(pack(0, 1, 0), 1), await metadata.get(b"topic")) == (5, b"0/2")
        with pytest.raises(NamespaceError):
            await partitions.append_messages(1 << 64, [b"x"])
    async with Client(cluster.addresses, 1, group=PARTITIONS.number) as lost:
        with pytest.raises(ReplyError, match="put belongs to the group of the plane metadata"):
            await lost.put(b"k", b"v")


def test_both_planes_serve_through_a_kill_and_enable_features_each_in_its_own_log(tmp_path: Path) -> None:
    with Cluster(tmp_path, groups=BOTH_PLANES, features=["database_checksum"]) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(use_both_planes(cluster))
        assert asyncio.run(enabled(cluster)) == {1}
        assert set(cluster.stop_all().values()) == {0}
        for group in BOTH_PLANES:
            with cluster.trace_path(0, group).open("rb") as file:
                events = read_ndjson(file)
            assert {event.run for event in events} == {f"run.{group.name}"}
            assert cluster.trace_path(0, group) == tmp_path / "traces" / f"run.{group.name}" / "replica-0.ndjson"
            assert [event.m_feature for event in events if event.event == "execute" and event.m_feature]


async def ask_unknown_groups(cluster: Cluster) -> None:
    await cluster.wait_ready()
    for group in (0, 7):
        async with Client(cluster.addresses, 1, group=group, timeout_seconds=SECONDS) as client:
            with pytest.raises(RefusedError, match=rf"group {group} is not run here.*1 \(metadata\), 2 \(partitions\)"):
                await client.put(b"k", b"v")
        with pytest.raises(RefusedError, match=f"group {group} is not run here"):
            await fetch_status(cluster.addresses[0], 1, SECONDS, group=group)
    assert {status.op for status in await cluster.statuses() if status is not None} == {0}


def test_what_is_addressed_to_an_unknown_group_is_refused_by_name(tmp_path: Path) -> None:
    with Cluster(tmp_path, groups=BOTH_PLANES) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(ask_unknown_groups(cluster))
        assert "group 7 is not run here" in cluster.log_path(0).read_text()


def test_data_of_other_groups_is_refused(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, groups=BOTH_PLANES)
    cluster.format()
    with pytest.raises(ClusterError, match="was formatted for the groups metadata,partitions, but single were asked"):
        Cluster(tmp_path).format_or_check()
    (cluster.data_path(0) / "metadata").rename(cluster.data_path(0) / "swapped")
    (cluster.data_path(0) / "partitions").rename(cluster.data_path(0) / "metadata")
    (cluster.data_path(0) / "swapped").rename(cluster.data_path(0) / "partitions")
    config = ServerConfig(cluster.data_path(0), 0, cluster.addresses, groups=BOTH_PLANES)
    with pytest.raises(ServerError, match="group is 2 there, but 1 was asked for"):
        asyncio.run(serve(config))


def test_a_message_carries_its_group_and_a_reader_of_one_group_refuses_others() -> None:
    request = Request(1, 1, b"")
    data = frame_message(request, 2) + frame_control(StatusRequest())
    assert list(FrameReader().feed_routed(data)) == [(2, request), (-1, StatusRequest())]
    assert FrameReader(group=2).feed(data) == [request, StatusRequest()]
    with pytest.raises(FrameError, match="a Request of group 2 on a connection to group 1"):
        FrameReader(group=1).feed(data)


async def fill(cluster: Cluster, first: int) -> None:
    await cluster.wait_ready()
    async with PartitionsClient(cluster.addresses, 1) as client:
        offsets = [await client.append_messages(5, [b"%d" % number]) for number in range(first, first + 40)]
    assert offsets == list(range(first, first + 40))


async def digests(cluster: Cluster) -> list[tuple[int, int, str, str]]:
    """Features, commit_min, digest, database checksum of each replica of the partitions group, once they are level."""
    deadline = time.monotonic() + SECONDS
    while True:
        found = await cluster.statuses(group=PARTITIONS)
        level = [
            (status.features, status.commit_min, status.digest, status.checksum)
            for status in found
            if status is not None
        ]
        alike = len(level) == cluster.replica_count and len(set(level)) == 1
        if (alike and level[0][0]) or time.monotonic() > deadline:
            return level
        await asyncio.sleep(0.05)


def test_features_and_messages_survive_checkpoints_and_restarts_of_all(tmp_path: Path) -> None:
    options = ["--checkpoint-interval", "16"]
    features = ["database_checksum"]
    with Cluster(tmp_path, groups=BOTH_PLANES, features=features, server_options=options) as cluster:
        cluster.format()
        for number in range(3):
            cluster.start_all()
            asyncio.run(fill(cluster, 40 * number))
            level = asyncio.run(digests(cluster))
            assert (len(level), len(set(level))) == (3, 1)
            features, commit_min, _, checksum = level[0]
            assert (features, len(checksum)) == (1, 32)
            assert asyncio.run(asked(cluster)) == (True, False, (commit_min, checksum))
            for replica in range(3):
                cluster.kill(replica)
        for group in BOTH_PLANES:
            verdict = check_run(group.run("run"), load(cluster.trace_path(0, group).parent), AuditOptions())
            assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)
        inspected = [inspect_data_file(cluster.data_path(replica) / "partitions") for replica in range(3)]
        used = [view for found in inspected for view in found.snapshots if view.in_use]
        by_op = {view.op: {other.database for other in used if other.op == view.op} for view in used}
        assert [len(checksums) for checksums in by_op.values()] == [1] * len(by_op)
        assert all(view.database and view.features for view in used)
        with cluster.trace_path(0, PARTITIONS).open("rb") as file:
            events = read_ndjson(file)
        restarts = [event for event in events if event.event == "restart"]
        assert len(restarts) == 2
        assert all((event.checkpoint or 0) >= 16 for event in restarts)
        assert restarts[1].features == 1, "at the first one the entry may lie above the checkpoint"
        assert len([event for event in events if event.event == "propose_feature"]) <= 1


async def asked(cluster: Cluster) -> tuple[bool, bool, tuple[int, str]]:
    """What a client is told of features 1 and 2, and of the database checksum."""
    async with PartitionsClient(cluster.addresses, 1) as client:
        return await client.is_feature_enabled(1), await client.is_feature_enabled(2), await client.database_checksum()


async def enable(cluster: Cluster) -> None:
    await cluster.wait_ready()
    assert await enabled(cluster) == {1}


def test_a_member_without_an_enabled_feature_ends_with_the_op_and_the_remedy(tmp_path: Path) -> None:
    with Cluster(tmp_path, groups=BOTH_PLANES, features=["database_checksum"]) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(enable(cluster))
        assert cluster.stop(2) == 0
        cluster.features[2] = ()
        cluster.start(2)
        deadline = time.monotonic() + SECONDS
        while cluster.alive(2) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert cluster.exit_code(2) == 2
        assert "op 1 enables feature 1 (database_checksum), which this replica does not support" in cluster.log_tail(2)
