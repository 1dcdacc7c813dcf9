"""Files of one replica are removed and cut while its process runs: nothing is lost, and what happened is said."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from tests.impl.net.test_segment_damage import GROUP, OPTIONS, send, wait_level
from tests.impl.net.waiting import wait_for, wait_for_log
from tests.refinement.traces import load
from viewproof.impl.net.cluster import Cluster
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

VICTIM = 2


def cut(path: Path) -> None:
    """Leaves a third."""
    os.truncate(path, path.stat().st_size // 3)


STRIKES: tuple[tuple[str, Callable[[Path], None]], ...] = (
    ("segment-*.log", Path.unlink),
    ("segment-*.log", cut),
    ("segment-*.index", Path.unlink),
    ("superblock", Path.unlink),
    ("superblock", cut),
    ("journal", Path.unlink),
)
"""What is written again."""


def times_mended(cluster: Cluster, path: Path) -> int:
    """How often the victim said that it wrote this file again, from memory or from another replica."""
    lines = cluster.log_path(VICTIM).read_text().splitlines()
    return sum(
        str(path) in line and ("written again" in line or "fetched from the other replicas" in line) for line in lines
    )


def is_undone(path: Path, strike: Callable[[Path], None], size: int) -> bool:
    """Is the file there as before? A write that was under way may have made it so before it was missed: a drain gives
    the journal a new file, and a superblock is written as a whole.
    """
    return path.exists() and (strike is Path.unlink or path.stat().st_size >= size)


def test_what_vanishes_under_a_process_is_written_again(tmp_path: Path) -> None:
    with Cluster(tmp_path, groups=(GROUP,), server_options=OPTIONS) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        sent: list[bytes] = []
        send(cluster, sent, 30)
        directory = cluster.data_path(VICTIM) / GROUP.name
        for pattern, strike in STRIKES:
            wait_for(lambda pattern=pattern: bool(list(directory.glob(pattern))), f"{pattern} is there")
            path = sorted(directory.glob(pattern))[0]
            known, size = times_mended(cluster, path), path.stat().st_size
            strike(path)
            while times_mended(cluster, path) == known:
                send(cluster, sent, 3)
                if is_undone(path, strike, size):
                    send(cluster, sent, 3)  # what was written again is in the log by now
                    if times_mended(cluster, path) == known:
                        strike(path)
            send(cluster, sent, 5)
        wait_level(cluster)
        # Without the third: what it holds is needed.
        cluster.kill(VICTIM)
        cluster.kill(0)
        cluster.start(VICTIM)
        asyncio.run(cluster.wait_ready())
        send(cluster, sent, 3)
        cluster.start(0)
        wait_level(cluster)
        assert cluster.stop_all() == {0: 0, 1: 0, 2: 0}
    verdict = check_run(GROUP.run("run"), load(cluster.trace_path(0, GROUP).parent), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)


def test_what_cannot_be_written_again_stops_the_process_and_the_others_mend_it(tmp_path: Path) -> None:
    with Cluster(tmp_path, groups=(GROUP,), server_options=OPTIONS) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        sent: list[bytes] = []
        send(cluster, sent, 33)
        wait_level(cluster)
        cut(cluster.data_path(VICTIM) / GROUP.name / "journal")
        send(cluster, sent, 3)
        wait_for_log(cluster, VICTIM, "while the process ran")
        wait_for(lambda: cluster.exit_code(VICTIM) == 2, "the process stops")
        assert "journal: it was cut to" in cluster.log_tail(VICTIM)
        cluster.trace_path(0, GROUP).unlink()
        wait_for(lambda: cluster.exit_code(0) == 2, "the process stops")
        assert "the trace was removed while the process ran" in cluster.log_tail(0)
