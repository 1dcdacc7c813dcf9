"""Many clients at once, each over TLS on a connection of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.impl.net.test_connections import resident_bytes_of
from viewproof.impl.net.authority import issue_cluster
from viewproof.impl.net.client import Client
from viewproof.impl.net.cluster import Cluster

AT_ONCE = 16
BYTES_PER_CLIENT_MAX = 112 << 10


async def crowd(cluster: Cluster, count: int) -> None:
    """So many clients ask, wave by wave, and stay; then all ask again."""
    primary = await cluster.wait_ready(120.0)
    process = cluster.pid(primary)
    assert process is not None
    before = resident_bytes_of(process)
    tls = cluster.client_tls()
    clients = [Client(cluster.addresses, cluster.cluster, timeout_seconds=600.0, tls=tls) for _ in range(count)]
    for start in range(0, count, AT_ONCE):
        wave = clients[start : start + AT_ONCE]
        await asyncio.gather(*(client.append(b"k", b"x") for client in wave))
    assert resident_bytes_of(process) - before < count * BYTES_PER_CLIENT_MAX + (8 << 20)
    held = [status.connections[1] for status in await cluster.statuses(60.0) if status is not None]
    assert sum(held) >= count
    for start in range(0, count, AT_ONCE):
        wave = clients[start : start + AT_ONCE]
        await asyncio.gather(*(client.append(b"k", b"y") for client in wave))
    assert await clients[0].get(b"k") == b"x" * count + b"y" * count
    for client in clients:
        await client.close()


@pytest.mark.parametrize("count", [50, pytest.param(1_000, marks=pytest.mark.long)])
def test_each_of_many_clients_is_answered_over_tls(count: int, tmp_path: Path) -> None:
    with Cluster(tmp_path, cluster=7, tls=tmp_path / "tls") as cluster:
        issue_cluster(tmp_path / "tls", 7, cluster.addresses)
        cluster.format()
        cluster.start_all()
        asyncio.run(crowd(cluster, count))
        assert cluster.stop_all() == {0: 0, 1: 0, 2: 0}
        logs = "".join(cluster.log_path(replica).read_text() for replica in range(3))
        assert "Traceback" not in logs
        assert len(logs) < 40_000
