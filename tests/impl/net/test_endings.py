"""Connections end: also those whose other end reads nothing, asks without end, or is no longer waited for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.impl.net.raw import client_hello
from tests.impl.net.test_connections import Silence
from viewproof.impl.net import authority, metrics
from viewproof.impl.net.authority import issue_cluster
from viewproof.impl.net.connection import open_connection
from viewproof.impl.net.framing import FrameReader, Status, StatusRequest, frame_control
from viewproof.impl.net.inbound import Inbound
from viewproof.impl.net.limits import LINE_MAX, Limits, LogBudget
from viewproof.impl.net.listener import Listener
from viewproof.impl.net.server import main
from viewproof.impl.net.tls import Tls

UNREAD = b"\0" * (16 << 20)
"""More than the system takes for a connection."""


async def until(holds: Callable[[], bool]) -> None:
    """Waits for a condition."""
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


class Served:
    """A host that listens, and a client that has said hello and reads nothing more, to whom much was sent."""

    def __init__(self, limits: Limits) -> None:
        self.silence = Silence(limits)
        self.host = self.silence.host
        self.listener = Listener(self.host)

    async def __aenter__(self) -> Served:
        await self.listener.open(*self.silence.address)
        self.looking = asyncio.create_task(self.host.look_after(0.02))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.looking.cancel()
        self.listener.close()
        for connection in tuple(self.host.connections):
            connection.abort("the test is over")

    async def deaf(self) -> tuple[Inbound, asyncio.StreamWriter]:
        """The connection as the host has it, and the client's end."""
        _, writer = await asyncio.open_connection(*self.silence.address)
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(frame_control(client_hello(5)))
        await until(lambda: any(each.is_client for each in self.host.connections))
        (inbound,) = (each for each in self.host.connections if each.is_client)
        inbound.send(UNREAD)
        inbound.flush()
        return inbound, writer

    async def evicted(self) -> None:
        inbound, writer = await self.deaf()
        await asyncio.sleep(self.host.limits.yield_seconds)
        _, other = await asyncio.open_connection(*self.silence.address)
        other.write(frame_control(client_hello(6)))
        await until(lambda: inbound not in self.host.connections)
        await until(lambda: inbound._transport is None)
        for each in (writer, other):
            each.close()

    async def ended(self) -> None:
        inbound, writer = await self.deaf()
        writer.write_eof()
        await until(lambda: inbound._transport is None)
        assert inbound not in self.host.connections
        writer.close()

    async def parted(self) -> None:
        inbound, writer = await self.deaf()
        inbound.part("certificates were renewed")
        await until(lambda: inbound._transport is None)
        writer.close()


def test_who_makes_room_and_reads_nothing_keeps_no_file() -> None:
    async def run() -> None:
        async with Served(Limits(clients=1, yield_seconds=0.01)) as served:
            await served.evicted()

    asyncio.run(run())


@pytest.mark.parametrize("how", ["ended", "parted"])
def test_a_connection_that_ends_has_so_long_to_be_read_and_no_longer(how: str) -> None:
    async def run() -> None:
        async with Served(Limits(slow_seconds=0.1)) as served:
            await getattr(served, how)()

    asyncio.run(run())


def test_many_questions_at_once_have_one_answer() -> None:
    async def run() -> int:
        async with Served(Limits(idle_seconds=0.2)) as served:
            reader, writer = await asyncio.open_connection(*served.silence.address)
            writer.write(frame_control(client_hello(5)) + frame_control(StatusRequest()) * 5_000)
            frames, found = FrameReader(), 0
            while data := await reader.read(1 << 16):
                found += sum(isinstance(frame, Status) for frame in frames.feed(data))
            writer.close()
            return found

    assert 1 <= asyncio.run(run()) <= 50


def test_a_client_that_no_longer_waits_leaves_no_connection() -> None:
    async def run() -> None:
        ended = asyncio.Event()
        greeted = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                while await reader.read(1 << 10):
                    greeted.set()
            ended.set()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        asking = asyncio.create_task(open_connection(address, 7, 1, 600.0))
        async with asyncio.timeout(60):
            await greeted.wait()
            asking.cancel()
            await ended.wait()
        server.close()

    asyncio.run(run())


def test_who_only_connects_to_the_metrics_leaves_room() -> None:
    async def run() -> None:
        server = await metrics.serve_metrics(0, lambda: "text\n")
        address = server.sockets[0].getsockname()
        opened = [await asyncio.open_connection(*address) for _ in range(3 * metrics.CONNECTIONS_MAX)]
        reads = [asyncio.create_task(reader.read()) for reader, _ in opened]
        await until(lambda: sum(read.done() for read in reads) >= 2 * metrics.CONNECTIONS_MAX)
        for _, writer in opened:
            writer.close()

        async def asked() -> bytes:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ConnectionError):
                return await reader.read()
            return b""

        async with asyncio.timeout(60):
            while not (await asked()).endswith(b"text\n"):
                await asyncio.sleep(0.01)
        server.close()

    asyncio.run(run())


def test_a_line_of_the_log_has_a_length() -> None:
    lines: list[str] = []
    LogBudget(lines.append).note("x" * 1_000_000, "y" * 1_000_000)
    assert [len(line) for line in lines] == [LINE_MAX]


def test_an_authority_that_ends_soon_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authority, "AUTHORITY_DAYS", 3.5)
    issue_cluster(tmp_path, 7, [("localhost", 1)], days=1)

    async def run() -> tuple[str, ...]:
        async with Served(Limits()) as served:
            served.host.peers.tls = Tls(tmp_path / "replica-0")
            await until(lambda: bool(served.host.expiry.notices()))
            return served.host.expiry.notices()

    (said,) = asyncio.run(run())
    assert "the authority in ca.pem ends in 3 days" in said


def test_a_data_directory_that_cannot_be_looked_into_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", "d" * 300, "--replica", "0", "--addresses", "127.0.0.1:1"]) == 2
    said = capfd.readouterr().err
    assert said.startswith("error: d")
    assert said.count("\n") == 1
