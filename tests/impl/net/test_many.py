"""Many clients over one connection: all are answered, also when the primary is gone."""

from __future__ import annotations

import asyncio
import socket
import time
from pathlib import Path

import pytest

from tests.impl.net.waiting import SECONDS, measured, wait_for
from viewproof.impl.interface.durable import CLIENTS_PAPER
from viewproof.impl.interface.messages import Reply, Request
from viewproof.impl.machine.state_machine import Put, encode_operation
from viewproof.impl.net.bench import bench
from viewproof.impl.net.client import Client, ClientError, RefusedError, UnreachableError
from viewproof.impl.net.cluster import Cluster, free_ports
from viewproof.impl.net.framing import PROTOCOL_VERSION, FrameReader, Goodbye, Hello, frame_control, frame_message
from viewproof.impl.net.many import ManyClients


def test_all_clients_of_a_connection_are_answered_and_measured(tmp_path: Path) -> None:
    with Cluster(tmp_path, traced=False) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        result = measured(cluster, 20, 3, at_least=20)
        assert (result.clients, result.connections) == (20, 3)
        assert result.latency_ms_median <= result.latency_ms_99 <= result.latency_ms_max
        keys = [b"bench-%d" % number for number in range(20)]
        wait_for(lambda: _are_written(cluster, keys), "every client has written its key")
        with pytest.raises(RefusedError, match="cluster 7"):
            bench(cluster.addresses, 7, clients=1, seconds=0.1)
        cluster.kill(0)
        assert asyncio.run(_values(cluster, [b"bench-0"])) == [bytes(64)]
        measured(cluster, 20, 1, at_least=20)


def _are_written(cluster: Cluster, keys: list[bytes]) -> bool:
    """True if each client has put its key; one that has registered late may not have had the time: then again."""
    values = asyncio.run(_values(cluster, keys))
    assert set(values) <= {None, bytes(64)}
    if None in values:
        measured(cluster, len(keys), 3, at_least=1)
    return None not in values


async def _values(cluster: Cluster, keys: list[bytes]) -> list[bytes | None]:
    async with Client(cluster.addresses, 1) as client:
        return [await client.get(key) for key in keys]


def test_nobody_there_is_said() -> None:
    addresses = tuple(("127.0.0.1", port) for port in free_ports(2))
    many = ManyClients(addresses, 1, 2, lambda _number, _request: encode_operation(Put(b"a", b"b")))
    with pytest.raises(UnreachableError, match="nobody accepts"):
        asyncio.run(many.run(time.perf_counter() + 0.2, unreachable_seconds=0.3))
    with pytest.raises(ClientError):
        bench(addresses, 1, clients=1, seconds=0.1)


def test_a_single_replica_that_dropped_a_request_is_asked_again() -> None:
    """There is no other to turn to."""
    asked: list[Request] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        while len(asked) < 2 and (data := await reader.read(1 << 16)):
            asked.extend(frame for frame in frames.feed(data) if isinstance(frame, Request))
        writer.write(frame_control(Goodbye("asked twice")))
        writer.close()

    async def ask() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()[:2]
        many = ManyClients((address,), 1, 1, lambda _number, _request: encode_operation(Put(b"a", b"b")))
        async with server:
            await many.run(time.perf_counter() + SECONDS, unreachable_seconds=SECONDS, timeout_seconds=SECONDS)

    with pytest.raises(RefusedError, match="asked twice"):
        asyncio.run(ask())
    assert asked[0] == asked[1]


def test_a_shared_connection_serves_several_ids_and_a_single_one_only_its_own(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1, traced=False, clients=CLIENTS_PAPER) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        requests = [Request(client=client, request=1, body=encode_operation(Put(b"k", b"v"))) for client in (5, 6)]
        shared = _talk(cluster, Hello(PROTOCOL_VERSION, 1, "clients", 0), requests, 3)
        assert sorted(frame.client for frame in shared if isinstance(frame, Reply)) == [5, 6]
        own = _talk(cluster, Hello(PROTOCOL_VERSION, 1, "client", 5), requests[1:], 2)
        assert isinstance(own[-1], Goodbye)
        refused = _talk(cluster, Hello(PROTOCOL_VERSION, 1, "clients", 4), [], 1)
        assert isinstance(refused[-1], Goodbye)


def _talk(cluster: Cluster, hello: Hello, requests: list[Request], frames: int) -> list[object]:
    """The first frames that the only replica answers with. Requests that it drops, as it may, are sent again."""
    reader, found = FrameReader(), list[object]()
    deadline = time.monotonic() + SECONDS
    with socket.create_connection(cluster.addresses[0], timeout=2) as connection:
        connection.sendall(frame_control(hello))
        sent = b"".join(map(frame_message, requests))
        connection.sendall(sent)
        while len(found) < frames and time.monotonic() < deadline:
            try:
                data = connection.recv(1 << 16)
            except TimeoutError:
                connection.sendall(sent)
                continue
            if not data:
                break
            found += [frame for frame in reader.feed(data) if frame not in found]
    return found
