"""Connections that do nothing, or too much: bounded in number, bytes and time; those who work keep their place."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.impl.net.raw import RawConnection, client_hello
from tests.impl.net.waiting import SECONDS, wait_for
from viewproof.impl.interface.durable import superblock_formatted
from viewproof.impl.interface.messages import Request
from viewproof.impl.machine.state_machine import Get, encode_operation
from viewproof.impl.net import links
from viewproof.impl.net.address import Address
from viewproof.impl.net.cluster import free_ports
from viewproof.impl.net.configuration import configuration_of
from viewproof.impl.net.connection import fetch_status
from viewproof.impl.net.framing import (
    PROTOCOL_VERSION,
    FrameReader,
    Goodbye,
    Hello,
    Status,
    frame_control,
    frame_message,
)
from viewproof.impl.net.inbound import InboundHost
from viewproof.impl.net.limits import CLIENT_BYTES_MAX, Limits, LogBudget, limits_of
from viewproof.impl.net.links import PeerLink
from viewproof.impl.net.listener import Listener
from viewproof.impl.net.peers import Peers
from viewproof.impl.net.sync_client import SyncClient
from viewproof.impl.storage.data_file import format_data_file

ROOT = Path(__file__).resolve().parents[3]


@contextmanager
def one_replica(tmp_path: Path, files: int | None = None) -> Iterator[tuple[Address, subprocess.Popen[bytes]]]:
    """A cluster of one process that may open so many files; its log is ``tmp_path/log``."""

    def limit() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    address = ("127.0.0.1", free_ports(1)[0])
    format_data_file(tmp_path / "d", 7, 0, 1)
    command = [sys.executable, "-m", "viewproof.impl.net.server", "--data", str(tmp_path / "d"), "--replica", "0"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--addresses", f"{address[0]}:{address[1]}"], cwd=ROOT, stderr=log, preexec_fn=limit
        )
    try:
        wait_for(lambda: status_of(address) is not None, "the server answers")
        yield address, process
    finally:
        process.kill()
        process.wait()


def status_of(address: Address) -> Status | None:
    return asyncio.run(fetch_status(address, 7))


def test_ninety_idle_connections_leave_room_for_those_who_ask(tmp_path: Path) -> None:
    with one_replica(tmp_path, files=64) as (address, _):
        held = [RawConnection(address, client_hello(1000 + number)) for number in range(90)]
        held += [RawConnection(address, None) for _ in range(90)]
        with SyncClient([address], 7, timeout_seconds=60) as client:
            client.put(b"k", b"v")
        wait_for(lambda: (s := status_of(address)) is not None and s.status == "normal" and s.view == 0, "status")
        status = status_of(address)
        assert status is None or status.connections[1] <= status.connections[2] == limit_of(64).clients
        for connection in held:
            connection.socket.close()
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    assert "Too many open files" not in log
    assert len(log) < 50_000


def limit_of(files: int) -> Limits:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, before[1]))
    try:
        limits = limits_of(1, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert limits is not None
    return limits


def test_files_are_kept_for_replicas_and_storage() -> None:
    assert limit_of(64).clients + limit_of(64).pending <= 32
    with pytest.raises(AssertionError):
        limit_of(34)


def resident_bytes_of(pid: int | None) -> int:
    """What the process holds in memory."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def test_what_unfinished_frames_hold_is_bounded(tmp_path: Path) -> None:
    with one_replica(tmp_path) as (address, process):
        before = resident_bytes_of(process.pid)
        large = [RawConnection(address, client_hello(number)) for number in range(1, 26)]
        for connection in large:
            connection.socket.sendall(struct.pack(">I", 40 << 20) + b"\x01" + bytes(1 << 10))
        assert {connection.goodbye() for connection in large} == {"frame of 41943040 bytes; 2 to 1049600 are allowed"}
        begun = [RawConnection(address, client_hello(number)) for number in range(100, 240)]
        part = struct.pack(">I", 1 << 20) + b"\x01" + bytes((1 << 20) - 100)
        ended = 0
        for connection in begun:
            try:
                connection.socket.sendall(part)
            except (BrokenPipeError, ConnectionResetError):
                ended += 1
        wait_for(lambda: refused_of(address, "frame: no room") > 0, "the budget for unfinished frames is kept")
        assert resident_bytes_of(process.pid) - before < 2 * CLIENT_BYTES_MAX + (64 << 20)
        for connection in begun:
            connection.socket.close()
        with SyncClient([address], 7) as client:
            client.put(b"k", b"v")


def refused_of(address: Address, name: str) -> int:
    status = status_of(address)
    return 0 if status is None else dict(status.refused).get(name, 0)


def test_who_does_not_read_the_answers_is_not_read_either(tmp_path: Path) -> None:
    with one_replica(tmp_path) as (address, process):
        before = resident_bytes_of(process.pid)
        connection = RawConnection(address, client_hello(5))
        connection.socket.setblocking(False)
        with SyncClient([address], 7) as client:
            client.put(b"k", bytes(1 << 12))
        asked = frame_message(Request(5, 1, encode_operation(Get(b"k")))) * 4096  # each is answered, by the same reply
        blocked = 0
        sent = 0
        while blocked < 3:
            try:
                sent += connection.socket.send(asked[sent % len(asked) :])
                blocked = 0
            except BlockingIOError:
                blocked += 1
                wait_for(lambda: status_of(address) is not None, "the server answers others")
            assert sent < 32 << 20, "it takes questions without end"
        assert resident_bytes_of(process.pid) - before < 64 << 20
        connection.socket.close()


# The host of accepted connections by itself


CONFIGURATION = configuration_of([superblock_formatted(7, 0, 3)], 100, 1 << 20)
ADDRESSES = (("127.0.0.1", 1), ("127.0.0.1", 2), ("127.0.0.1", 3))


def peers() -> Peers:
    return Peers(
        cluster=7,
        replica=0,
        addresses=ADDRESSES,
        configuration=CONFIGURATION,
        incarnation=1,
        sessions=True,
        positions=tuple,
    )


class Silence:
    """A host that takes nothing; the connections that it closes are seen from outside."""

    def __init__(self, limits: Limits) -> None:
        self.host = InboundHost(
            peers=peers(),
            limits=limits,
            on_request=lambda connection, group, request: None,
            on_peer_message=lambda group, message: None,
            status=lambda group: Status(7, 0, 3, "normal", 0, 0, 0, 0, 0, 0, ()),
            flush_later=self.flush,
        )
        self.address: Address = ("127.0.0.1", free_ports(1)[0])

    def flush(self) -> None:
        """At once."""
        to_flush, self.host.to_flush = self.host.to_flush, []
        for connection in to_flush:
            connection.flush()


async def said(reader: asyncio.StreamReader) -> list[object]:
    """All frames up to the end of the connection."""
    frames = FrameReader()
    found: list[object] = []
    while data := await reader.read(1 << 16):
        found += frames.feed(data)
    return found


async def close_after(limits: Limits, *sent: bytes) -> list[list[object]]:
    """What each connection that sends these bytes is told until it is closed."""
    silence = Silence(limits)
    listener = Listener(silence.host)
    await listener.open(*silence.address)
    looking = asyncio.create_task(silence.host.look_after(0.02))
    opened = [await asyncio.open_connection(*silence.address) for _ in sent]
    for (_, writer), data in zip(opened, sent, strict=True):
        writer.write(data)
    try:
        async with asyncio.timeout(60):
            return [await said(reader) for reader, _ in opened]
    finally:
        looking.cancel()
        listener.close()
        for _, writer in opened:
            writer.close()


def reasons(told: list[list[object]]) -> list[str]:
    return [frame.reason for frames in told for frame in frames if isinstance(frame, Goodbye)]


def test_who_says_no_hello_is_closed() -> None:
    told = asyncio.run(close_after(Limits(hello_seconds=0.05), b""))
    assert reasons(told) == ["no hello within 0.05 s"]


def test_who_asks_for_nothing_is_closed_and_may_come_back() -> None:
    told = asyncio.run(close_after(Limits(idle_seconds=0.05), frame_control(client_hello(5))))
    assert reasons(told) == ["nothing was asked for 0.05 s"]
    assert all(frame.temporary for frame in told[0] if isinstance(frame, Goodbye))


def test_who_does_not_end_a_frame_is_closed() -> None:
    begun = frame_control(client_hello(5)) + frame_message(Request(5, 1, b"x" * 100))[:50]
    told = asyncio.run(close_after(Limits(frame_seconds=0.05), begun))
    assert reasons(told) == ["a frame has not ended within 0.05 s"]


def test_a_large_frame_before_the_hello_is_refused() -> None:
    told = asyncio.run(close_after(Limits(), struct.pack(">I", 1 << 20)))
    assert reasons(told) == ["frame of 1048576 bytes; 2 to 65536 are allowed"]


def test_the_latest_connection_of_a_replica_counts_and_clients_do_not_take_its_place() -> None:
    said = Hello(PROTOCOL_VERSION, 7, "replica", 2, incarnation=5, configuration=CONFIGURATION)
    replica = frame_control(said)
    client = frame_control(client_hello(5))
    limits = Limits(clients=1, yield_seconds=60, idle_seconds=0.3)
    told = asyncio.run(close_after(limits, replica, client, client, replica + frame_control(Goodbye(""))))
    assert "this replica has another connection" in reasons(told)
    assert "all 1 places for clients are taken" in reasons(told)


def test_the_log_has_a_budget() -> None:
    lines: list[str] = []
    now = [0.0]
    budget = LogBudget(lines.append, lines=2, period=10, clock=lambda: now[0])
    for number in range(5):
        budget.note(f"line {number}")
    now[0] = 11.0
    budget.note("another")
    assert lines == ["line 0", "line 1", "3 more lines like these in 11 s were left out", "another"]
    budget.note("a\nforged line\x1b[31m")
    assert lines[-1] == "a\N{REPLACEMENT CHARACTER}forged line\N{REPLACEMENT CHARACTER}[31m"


def test_the_log_says_the_same_few_times_only() -> None:
    lines: list[str] = []
    budget = LogBudget(lines.append, clock=lambda: 0.0)
    for number in range(50):
        budget.note(f"from port {number}", "the same")
    budget.note("another")
    assert lines == [*(f"from port {number}" for number in range(5)), "another"]


def test_nobody_is_harmed_by_a_connection_that_ends_at_once(tmp_path: Path) -> None:
    with one_replica(tmp_path, files=64) as (address, _):
        for _ in range(300):
            socket.create_connection(address).close()
        with SyncClient([address], 7) as client:
            client.put(b"k", b"v")
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_peer_that_takes_the_connection_and_says_nothing_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "HELLO_SECONDS_MAX", 0.05)
    lines: list[str] = []
    taken: list[asyncio.StreamWriter] = []  # a writer that nothing refers to closes its connection

    async def run() -> tuple[str, ...]:
        mute = await asyncio.start_server(lambda reader, writer: taken.append(writer), "127.0.0.1", 0)
        known = peers()
        known.addresses = (ADDRESSES[0], mute.sockets[0].getsockname(), ADDRESSES[2])
        link = PeerLink(1, known, LogBudget(lines.append))
        task = asyncio.get_running_loop().create_task(link.keep_up())
        while len(known.problems()) == 0:
            await asyncio.sleep(0.01)
            link.look()
        link.look()
        task.cancel()
        mute.close()
        for writer in taken:
            writer.close()
        return known.problems()

    problem = asyncio.run(asyncio.wait_for(run(), SECONDS))
    assert len(lines) == len(problem) == 1
    assert "the connection is taken, and no hello comes" in problem[0]


def test_a_peer_that_takes_connections_and_closes_them_is_a_problem_once_it_does_not_end() -> None:
    lines: list[str] = []
    closed = []

    def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        closed.append(writer)
        writer.close()

    async def run() -> tuple[str, ...]:
        rude = await asyncio.start_server(close, "127.0.0.1", 0)
        known = peers()
        known.addresses = (ADDRESSES[0], rude.sockets[0].getsockname(), ADDRESSES[2])
        task = asyncio.get_running_loop().create_task(PeerLink(1, known, LogBudget(lines.append)).keep_up())
        while len(known.problems()) == 0:
            await asyncio.sleep(0.01)
        task.cancel()
        rude.close()
        return known.problems()

    problem = asyncio.run(asyncio.wait_for(run(), SECONDS))
    assert len(closed) >= links.UNHEARD_MAX
    assert len(lines) == len(problem) == 1
    assert "closed before a hello" in problem[0]
