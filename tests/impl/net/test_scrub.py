"""A real cluster finds rot in a segment that nobody reads, mends it from another replica, and says so."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.impl.net.test_metrics import read, total
from tests.impl.net.test_segment_damage import GROUP, OPTIONS, VICTIM, flip, send, stop_with_segments, wait_level
from tests.impl.net.waiting import wait_for, wait_for_log
from viewproof.impl.net.cluster import Cluster, free_ports
from viewproof.impl.storage.inspect_partitions import inspect_partitions


def test_rot_that_nobody_reads_is_found_and_mended(tmp_path: Path) -> None:
    with Cluster(tmp_path, groups=(GROUP,), server_options=OPTIONS) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        send(cluster, [], 30)
        directory = cluster.data_path(VICTIM) / GROUP.name
        stop_with_segments(cluster, directory)
        path = sorted(directory.glob("*.log"))[1]
        right = path.read_bytes()
        flip(path)
        (port,) = free_ports(1)
        cluster.start(VICTIM, ("--metrics-port", str(port)))
        wait_for(lambda: path.read_bytes() == right, "the segment is whole again")
        wait_for_log(cluster, VICTIM, f"{path}: its checksum is not the one in the snapshot: fetched from the other")
        wait_for(lambda: total(read(port), "viewproof_scrub_passes_total") >= 1, "all segments were read")
        found = read(port)
        assert total(found, "viewproof_scrub_found_total") == 1
        assert total(found, "viewproof_scrub_segments_read_total") >= 3
        assert total(found, "viewproof_segments_lost") == 0
        wait_level(cluster)
        assert cluster.stop_all() == {0: 0, 1: 0, 2: 0}
        assert inspect_partitions(directory).whole
