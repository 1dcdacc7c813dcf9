"""What a server measures: every request ends in one outcome, and a running cluster tells its numbers as text."""

from __future__ import annotations

import asyncio
import re
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.impl.net.waiting import wait_for
from viewproof.impl.net.client import Client
from viewproof.impl.net.cluster import Cluster, free_ports
from viewproof.impl.net.metrics import BUCKETS, GroupMetrics, Histogram, exposition, gauge


def balanced(metrics: GroupMetrics) -> bool:
    """Each request that arrived is one of the outcomes, or waits."""
    return metrics.arrived == sum(metrics.outcomes.values()) + metrics.waiting


def test_every_request_has_one_end() -> None:
    now = [0.0]
    metrics = GroupMetrics(clock=lambda: now[0])
    metrics.on_request(1, 1)
    now[0] = 2.0
    metrics.on_request(1, 1)
    metrics.on_turned_away("not_primary")
    metrics.on_request(2, 5)
    assert balanced(metrics)
    now[0] = 5.0
    metrics.on_answer(1, "replied")
    assert (metrics.request_seconds.sum, metrics.request_seconds.count) == (5.0, 1), "from the first copy on"
    metrics.on_answer(1, "replied")
    metrics.on_request(2, 6)
    metrics.on_request(3, 1)
    metrics.keep(lambda client: client == 2)
    assert (metrics.waiting, metrics.outcomes["dropped"]) == (1, 1)
    metrics.on_view(changed=True, started=False)
    assert dict(metrics.outcomes) == {"repeated": 2, "not_primary": 1, "replied": 1, "dropped": 2}
    assert balanced(metrics)
    assert metrics.request_seconds.count == 1, "only what was answered"


def test_a_bucket_counts_all_below() -> None:
    histogram = Histogram()
    for seconds in (0.0001, 0.002, 0.002, 99.0):
        histogram.observe(seconds)
    samples = list(histogram.samples("m", ()))
    assert [sample.value for sample in samples[: len(BUCKETS) + 1]] == [1, 1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 4]
    assert [(sample.name, sample.value) for sample in samples[-2:]] == [("m_sum", 99.0041), ("m_count", 4)]


def test_the_text_has_each_family_once() -> None:
    text = exposition([gauge("a", (("x", "1"),), 1), gauge("b", (), 2.5), gauge("a", (("x", "2"),), 3)])
    assert text == '# TYPE a gauge\na{x="1"} 1\na{x="2"} 3\n# TYPE b gauge\nb{} 2.5\n'


def read(port: int) -> dict[str, float]:
    """The samples of a process, by name and labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def total(samples: dict[str, float], name: str) -> float:
    """The sum over the labels."""
    return sum(value for key, value in samples.items() if re.match(rf"{name}\{{", key))


async def use(cluster: Cluster, count: int) -> int:
    await cluster.wait_ready()
    async with Client(cluster.addresses, 1) as client:
        for number in range(count):
            await client.put(b"k%d" % number, b"v")
    primary = await cluster.primary()
    assert primary is not None
    return primary


def test_a_cluster_tells_its_numbers(tmp_path: Path) -> None:
    ports = free_ports(3)
    with Cluster(tmp_path, server_options=("--checkpoint-interval", "10")) as cluster:
        cluster.format()
        for replica, port in enumerate(ports):
            cluster.server_options = ("--checkpoint-interval", "10", "--metrics-port", str(port))
            cluster.start(replica)
        primary = asyncio.run(use(cluster, 25))
        found = read(ports[primary])
        assert total(found, "viewproof_requests_arrived_total") == total(found, "viewproof_requests_total") + total(
            found, "viewproof_requests_waiting"
        )
        labels = f'{{replica="{primary}",group="single"'
        assert found[f'viewproof_requests_total{labels},outcome="replied"}}'] >= 26
        assert found[f"viewproof_request_seconds_count{labels}}}"] >= 26
        assert found[f"viewproof_commits_total{labels}}}"] >= 26
        assert found[f"viewproof_primary{labels}}}"] == 1
        assert found[f'viewproof_write_seconds_count{labels},kind="append"}}'] >= 1
        assert found[f'viewproof_write_seconds_count{labels},kind="drain"}}'] >= 1
        written = total(found, "viewproof_write_seconds_sum")
        assert 0 < found[f"viewproof_sync_seconds_sum{labels}}}"] <= written
        cluster.kill(primary)
        asyncio.run(use(cluster, 1))
        other = ports[(primary + 1) % 3]
        wait_for(lambda: total(read(other), "viewproof_view_changes_total") >= 1, "the view change is counted")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{other}/", timeout=10)


def test_a_port_that_is_taken_is_an_error_by_name(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with Cluster(tmp_path, 1, server_options=("--metrics-port", str(port))) as cluster:
            cluster.format()
            cluster.start(0)
            wait_for(lambda: cluster.exit_code(0) == 2, "the process ends")
            assert f"cannot serve metrics on 127.0.0.1:{port}" in cluster.log_tail(0)
