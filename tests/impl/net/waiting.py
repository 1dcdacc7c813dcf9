"""Waiting for what a real cluster does in its own time: on a machine that is busy with other things, too."""

from __future__ import annotations

import time
from collections.abc import Callable

from viewproof.impl.net.bench import BenchResult, bench
from viewproof.impl.net.cluster import Cluster

SECONDS = 120.0


def wait_for(condition: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    """Returns once the condition holds. Raises AssertionError, naming it, if it does not come to that."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.05)


def wait_for_log(cluster: Cluster, replica: int, text: str) -> None:
    """Returns once the log of a replica's processes holds the text."""
    wait_for(lambda: text in cluster.log_path(replica).read_text(), f"replica {replica} logs {text!r}")


def measured(cluster: Cluster, clients: int, connections: int, at_least: int) -> BenchResult:
    """A measurement in which so many requests were answered; it lasts longer each time that there were fewer."""
    seconds = 0.3
    while True:
        result = bench(
            cluster.addresses,
            cluster.cluster,
            clients=clients,
            connections=connections,
            seconds=seconds,
            warm_up_seconds=0.2,
        )
        if result.requests >= at_least:
            return result
        seconds *= 2
        assert seconds < SECONDS, f"{result.requests} requests answered in {result.seconds} s"
