"""Many at once, and slow ones: connections, frames that do not end, more ids of clients than there are."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.impl.net.raw import RawConnection, client_hello
from tests.impl.net.test_connections import Silence, one_replica, resident_bytes_of, status_of
from tests.impl.net.waiting import wait_for
from viewproof.impl.interface.messages import Request
from viewproof.impl.net.framing import PROTOCOL_VERSION, Hello, Status, StatusRequest, frame_control, frame_message
from viewproof.impl.net.inbound import Inbound, InboundHost
from viewproof.impl.net.limits import CLIENT_IDS_MAX, Limits
from viewproof.impl.net.sync_client import SyncClient

CROWD_BYTES_MAX = 48 << 20


@pytest.mark.parametrize("count", [200, pytest.param(1_000, marks=pytest.mark.long)])
def test_many_connections_are_served_and_as_many_frames_that_do_not_end_harm_nobody(count: int, tmp_path: Path) -> None:
    with (
        one_replica(tmp_path, files=1_400) as (address, process),
        SyncClient([address], 7, timeout_seconds=60) as client,
    ):
        client.put(b"k", b"0")
        before = resident_bytes_of(process.pid)
        crowd = [RawConnection(address, client_hello(number)) for number in range(10, 10 + count)]
        for connection in crowd:
            connection.socket.sendall(frame_control(StatusRequest()))
        for connection in crowd:
            assert isinstance(connection.next(), Hello)
            assert isinstance(connection.next(), Status)
        client.put(b"k", b"1")
        for connection in crowd:
            connection.socket.sendall(struct.pack(">I", 1 << 20) + b"\1" + bytes(1_000))
        client.put(b"k", b"2")
        assert client.get(b"k") == b"2"
        status = status_of(address)
        assert status is not None
        assert status.connections[1] >= count
        assert resident_bytes_of(process.pid) - before < CROWD_BYTES_MAX
        for connection in crowd:
            connection.socket.close()
        wait_for(lambda: (s := status_of(address)) is not None and s.connections[1] < 10, "they are forgotten")
        client.put(b"k", b"3")
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    assert len(log) < 20_000


class Pipe(asyncio.Transport):
    """A connection that goes nowhere; `told`: what was written into it."""

    def __init__(self) -> None:
        super().__init__()
        self.told = b""
        self.closed = False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There are none."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        self.told += bytes(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


def accepted(host: InboundHost, hello: Hello) -> tuple[Inbound, Pipe]:
    connection, pipe = Inbound(host), Pipe()
    host.opened(connection)
    connection.connection_made(pipe)
    connection.data_received(frame_control(hello))
    return connection, pipe


def test_a_frame_begins_with_its_first_byte_however_long_nothing_came_before() -> None:
    async def run() -> None:
        now = [0.0]
        host = Silence(Limits(frame_seconds=30)).host
        host._clock = lambda: now[0]
        connection, pipe = accepted(host, client_hello(5))
        framed = frame_message(Request(5, 1, b"x" * 100))
        for part in (framed[:50], framed[50:] + framed[:50]):
            now[0] += 100
            connection.data_received(part)
            connection.look(now[0] + 29, host.limits)
            assert not pipe.closed
            now[0] += 29
        connection.data_received(framed[50:60])
        connection.look(now[0] + 2, host.limits)
        assert b"a frame has not ended within 30 s" in pipe.told, "a byte now and then does not make it a new one"

    asyncio.run(run())


def test_one_connection_of_any_number_of_clients_holds_a_bounded_number_of_them() -> None:
    async def run() -> None:
        host = Silence(Limits()).host
        many, _ = accepted(host, Hello(PROTOCOL_VERSION, 7, "clients", 0))
        one, _ = accepted(host, client_hello(5))
        host.took(one, 0, 5)
        for client in range(10, 10 + 2 * CLIENT_IDS_MAX):
            host.took(many, 0, client)
        assert len(host.clients) == len(many.clients) == CLIENT_IDS_MAX
        assert not one.clients
        host.took(one, 0, 5)
        assert host.clients[0, 5] is one
        host.took(many, 0, 5)
        assert not one.clients, "one client is on one connection"
        host.closed(many)
        assert not host.clients

    asyncio.run(run())
