"""Rolling restarts and SIGKILLs of a whole cluster under load, with checkpoints that wrap the journal many times.

Checked from outside: the history of the keys, and every message of every partition (none lost or doubled, offsets
unique and rising); from inside: the audit of every group's traces.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from tests.impl.net.waiting import SECONDS
from tests.refinement.traces import load as load_traces
from viewproof.impl.groups.group import METADATA, PARTITIONS
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.history import check_history
from viewproof.impl.net.load import Load
from viewproof.impl.net.partition_load import PartitionLoad
from viewproof.impl.net.server_config import data_path
from viewproof.impl.storage.inspect import inspect_data_file
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

GROUPS = (METADATA, PARTITIONS)
OPTIONS = ("--checkpoint-interval", "20", "--pipeline", "16")
REQUESTS = 120
PATIENCE_SECONDS = 900.0
"""A client asks for so long: a machine that is busy with other things may not run a process for minutes."""


class Restarts:
    """A cluster of two groups with a load on each."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.keys = Load(
            cluster.addresses, 1, rate=150.0, seed=3, group=METADATA.number, timeout_seconds=PATIENCE_SECONDS
        )
        self.partitions = PartitionLoad(cluster.addresses, 1, rate=150.0, seed=3, timeout_seconds=PATIENCE_SECONDS)

    async def rolling(self) -> None:
        """One replica after the other ends cleanly and comes back, the primary too; the others go on meanwhile."""
        for replica in range(3):
            self.cluster.stop(replica)
            self.cluster.start(replica)
            await self.cluster.wait_ready(SECONDS)

    async def kill_all(self) -> None:
        """All are killed at once, and started again."""
        await asyncio.sleep(0.3)
        for replica in range(3):
            self.cluster.kill(replica)
        self.cluster.start_all()
        await self.cluster.wait_ready(SECONDS)

    async def round(self, number: int) -> None:
        """A restart under load, then everything is read."""
        back = asyncio.Event()
        loads = [self.keys.run(requests=REQUESTS, at_least_until=back)]
        loads.append(self.partitions.run(requests=REQUESTS, at_least_until=back))
        running = asyncio.gather(*loads)
        await asyncio.sleep(0.2)
        await (self.rolling() if number % 2 else self.kill_all())
        back.set()
        await running
        await self.keys.read_all()
        await self.partitions.read_all()

    async def run(self, rounds: int) -> None:
        """So many rounds, alternately rolling and of the whole cluster; the clients' view is checked after each."""
        self.cluster.start_all()
        await self.cluster.wait_ready(SECONDS)
        for number in range(1, rounds + 1):
            await self.round(number)
            assert check_history(self.keys.history).ok, number
            assert self.partitions.problems() == (), number
        await self.keys.close()
        await self.partitions.close()


def restarts(directory: Path, rounds: int) -> str:
    """Runs, checks and audits; what was done, in a line."""
    started = time.monotonic()
    with Cluster(directory, server_options=OPTIONS, groups=GROUPS) as cluster:
        cluster.format()
        work = Restarts(cluster)
        asyncio.run(work.run(rounds))
        codes = cluster.stop_all()
        assert set(codes.values()) == {0}
    seconds = time.monotonic() - started
    wraps = []
    for group in GROUPS:
        found = [inspect_data_file(data_path(cluster.data_path(replica), group)) for replica in range(3)]
        assert all(inspection.opens for inspection in found)
        wraps.append(min(inspection.superblock.checkpoint for inspection in found if inspection.superblock) // 20)
    assert [*work.keys.given_up, *work.partitions.given_up] == []
    events = 0
    for group in GROUPS:
        rows = load_traces(cluster.trace_directory / group.run("run"))
        verdict = check_run(group.run("run"), rows, AuditOptions())
        assert verdict.verdict == "conforms", (group.name, verdict.missing, [str(item) for item in verdict.violations])
        events += len(rows)
    answered = f"{len(work.keys.latencies_ns)} requests and {len(work.partitions.appends)} appends answered"
    checkpoints = f"at least {min(wraps)} checkpoints of each group"
    return f"{rounds} rounds in {seconds:.0f} s: {answered}, none lost; {checkpoints}; {events} events conform"


def test_one_round_of_each(tmp_path: Path) -> None:
    restarts(tmp_path, 2)


@pytest.mark.long
def test_thirty_rounds(tmp_path: Path) -> None:
    sys.stdout.write(restarts(tmp_path, 30) + "\n")
