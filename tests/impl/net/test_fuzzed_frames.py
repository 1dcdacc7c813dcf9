"""Fuzzed frames: nothing but a refusal comes of them, in bounded memory, and a cluster serves throughout."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from tests.impl.link import Link
from tests.impl.net.fuzzed import SAMPLES, SEGMENT, frames
from tests.impl.net.raw import RawConnection, client_hello
from tests.impl.net.test_connections import resident_bytes_of
from tests.impl.net.waiting import SECONDS
from tests.refinement.traces import load
from viewproof.impl.interface.checks import ContradictionError
from viewproof.impl.interface.messages import Message
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.framing import FrameError, FrameReader, frame_control, frame_message
from viewproof.impl.net.guard import jump_error
from viewproof.impl.net.sync_client import SyncClient
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

DECODED_BYTES_MAX = 64 << 20
"""What the process may have more after fuzzed frames than before."""

SERVER_BYTES_MAX = 128 << 20
"""What a server may take more than before it was sent fuzzed frames."""


def decode_all(seed: int, count: int) -> tuple[int, int, int]:
    """(refused, dropped as too far ahead, taken) of so many frames; what is taken is given to a replica of three."""
    refused = dropped = taken = 0
    link = Link()
    for number, frame in enumerate(frames(seed, count)):
        if number % 5_000 == 0:
            link = Link()
        if link[0].segments.fetch is None and link[0].segments.writing is None:
            link[0].segments._begin(SEGMENT.ref)
        try:
            found = list(FrameReader(1 << 16).feed_routed(frame))
        except FrameError:
            refused += 1
            continue
        for _, message in found:
            if not isinstance(message, MESSAGES):
                continue
            if jump_error(message, link.replicas[0].state) is not None:
                dropped += 1
                continue
            taken += 1
            try:
                link.deliver(0, message)
                link.run()
            except ContradictionError:  # a peer that forges a log stops a replica, which says so, and nothing else does
                link = Link()
    return refused, dropped, taken


MESSAGES = tuple(type(sample) for sample in SAMPLES if isinstance(sample, Message))


def test_each_message_that_is_mutated_is_one_that_is_taken() -> None:
    for sample in SAMPLES:
        framed = frame_message(sample) if isinstance(sample, MESSAGES) else frame_control(sample)
        assert [found for _, found in FrameReader(1 << 16).feed_routed(framed)] == [sample]


@pytest.mark.parametrize("count", [50_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_of_fuzzed_frames_comes_a_refusal_or_a_message_that_a_replica_takes(count: int) -> None:
    before = resident_bytes_of(os.getpid())
    refused, dropped, taken = decode_all(count, count)
    assert resident_bytes_of(os.getpid()) - before < DECODED_BYTES_MAX
    assert refused > count // 2
    assert min(dropped, taken) > count // 1000


@pytest.mark.parametrize("count", [600, pytest.param(20_000, marks=pytest.mark.long)])
def test_a_cluster_serves_while_fuzzed_frames_arrive(count: int, tmp_path: Path) -> None:
    serve_while(count, tmp_path)


def serve_while(count: int, directory: Path) -> str:
    """Sends a real cluster so many fuzzed frames, with requests between; what it took, in a line."""
    with Cluster(directory, cluster=7) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready(SECONDS))
        address = cluster.addresses[0]
        hellos = [None, client_hello(5), client_hello(0)]
        before = resident_bytes_of(cluster.pid(0))
        with SyncClient(cluster.addresses, 7) as client:
            for number, frame in enumerate(frames(1, count)):
                with RawConnection(address, hellos[number % 3]) as connection, contextlib.suppress(OSError):
                    connection.socket.sendall(frame)
                if number % 50 == 0:
                    client.put(b"k", b"%d" % number)
            assert client.get(b"k") == b"%d" % ((count - 1) // 50 * 50)
        grown = resident_bytes_of(cluster.pid(0)) - before
        assert grown < SERVER_BYTES_MAX
        assert None not in asyncio.run(cluster.statuses(60))
        assert set(cluster.stop_all().values()) == {0}
        for replica in range(3):
            assert "Traceback" not in cluster.log_path(replica).read_text()
    verdict = check_run("run", load(cluster.trace_directory), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)
    return f"{(count + 49) // 50} requests answered meanwhile; the server {grown / (1 << 20):+.0f} MiB; traces conform"
