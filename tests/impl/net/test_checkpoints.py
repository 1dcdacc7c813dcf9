"""Checkpoints on a real cluster: bounded files, state transfer, a lost snapshot, a disk that is full for a while."""

from __future__ import annotations

import asyncio
import resource
import time
from pathlib import Path

from tests.impl.net.waiting import SECONDS, wait_for_log
from tests.refinement.traces import load
from viewproof.impl.net.client import Client
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.connection import fetch_status
from viewproof.impl.net.framing import Status
from viewproof.impl.storage.inspect import Inspection, inspect_data_file
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

OPTIONS = ("--checkpoint-interval", "40", "--pipeline", "32")


def put(cluster: Cluster, count: int) -> None:
    """So many puts by one new client."""

    async def run() -> None:
        client = Client(cluster.addresses, cluster.cluster)
        for number in range(count):
            await client.put(b"key-%d" % (number % 7), b"%1000d" % number)
        await client.close()

    asyncio.run(run())


def status_of(cluster: Cluster, replica: int) -> Status | None:
    return asyncio.run(fetch_status(cluster.addresses[replica], cluster.cluster))


def wait_level(cluster: Cluster, seconds: float = SECONDS) -> int:
    """Waits until all replicas are normal with all executed and the same checkpoint; their op."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = [status_of(cluster, replica) for replica in range(cluster.replica_count)]
        states = {(s.status, s.view, s.op, s.commit_min, s.checkpoint) for s in found if s is not None}
        if None not in found and len(states) == 1:
            status, _, op, commit_min, _ = states.pop()
            if status == "normal" and op == commit_min:
                return op
        time.sleep(0.1)
    raise AssertionError(f"not level: {found}")


def stopped(cluster: Cluster) -> list[Inspection]:
    """The data directories, of processes that have ended."""
    cluster.stop_all()
    return [inspect_data_file(cluster.data_path(replica)) for replica in range(cluster.replica_count)]


def test_state_transfer_and_a_lost_snapshot(tmp_path: Path) -> None:
    with Cluster(tmp_path, server_options=OPTIONS) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        put(cluster, 50)
        wait_level(cluster)
        cluster.kill(2)
        put(cluster, 120)
        cluster.start(2)
        op = wait_level(cluster)
        found = stopped(cluster)
        assert {inspection.superblock.checkpoint for inspection in found if inspection.superblock} == {op // 40 * 40}
        assert len({inspection.snapshots[0].checksum for inspection in found}) == 1
        assert [len(inspection.records) for inspection in found] == [op % 40] * 3
        (cluster.data_path(1) / found[1].snapshots[0].name).write_bytes(b"damaged")
        cluster.start_all()
        wait_level(cluster)
        assert "fetched from the other replicas" in cluster.log_path(1).read_text()
        put(cluster, 5)
        wait_level(cluster)
        assert all(inspection.problems == () for inspection in stopped(cluster))
    rows = load(cluster.trace_directory)
    verdict = check_run("run", rows, AuditOptions())
    assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)


def test_a_disk_that_is_full_for_a_while(tmp_path: Path) -> None:
    with Cluster(tmp_path, traced=False, server_options=OPTIONS) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        put(cluster, 10)
        wait_level(cluster)
        for victim in (2, 0):
            status = status_of(cluster, victim)
            pid = cluster.pid(victim)
            assert status is not None
            assert pid is not None
            limit = max(status.journal_bytes + 500, 17_000)
            _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, -1))
            put(cluster, 150)
            wait_for_log(cluster, victim, "tried again later")
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
            wait_level(cluster)
            assert cluster.pid(victim) == pid
        assert {len(inspection.problems) for inspection in stopped(cluster)} == {0}
