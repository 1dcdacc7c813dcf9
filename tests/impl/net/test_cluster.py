"""A real cluster of three processes: what was acknowledged survives SIGKILL; nobody is harmed by bad input."""

from __future__ import annotations

import asyncio
import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.impl.net.raw import RawConnection, client_hello, replica_hello
from tests.impl.net.waiting import measured, wait_for, wait_for_log
from viewproof.impl.interface.messages import Prepare, Reply, Request, make_header, reply_checksum
from viewproof.impl.machine.state_machine import Append, Get, Operation, Put, Result, Value, encode_operation
from viewproof.impl.net.address import address_text, unknown_name
from viewproof.impl.net.client import (
    Client,
    ClientBusyError,
    ClientClosedError,
    RefusedError,
    RequestTimeoutError,
    RequestTooLargeError,
    UncertainError,
)
from viewproof.impl.net.cluster import Cluster, ClusterError, free_ports
from viewproof.impl.net.connection import fetch_status
from viewproof.impl.net.errors import ClientError
from viewproof.impl.net.framing import (
    PROTOCOL_VERSION,
    Hello,
    frame_message,
)
from viewproof.impl.net.record import RecordOptions, record, rounds
from viewproof.impl.net.server import ServerError, parse_addresses
from viewproof.impl.net.sync_client import SyncClient
from viewproof.impl.storage.data_file import format_data_file
from viewproof.impl.trace.events import decode_line

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, cluster=7) as running:
        running.format()
        running.start_all()
        asyncio.run(running.wait_ready())
        yield running


def ask_primary(cluster: Cluster, request: Request) -> Reply:
    """The reply of the primary, whoever that is."""
    for _ in range(100):
        primary = asyncio.run(cluster.wait_ready())
        reply = RawConnection(cluster.addresses[primary], client_hello(request.client)).ask(request)
        if reply is not None:
            return reply
    raise AssertionError("no replica stays primary")


def test_writes_survive_kill_9_of_the_primary_and_then_of_everyone(cluster: Cluster) -> None:
    with SyncClient(cluster.addresses, 7) as client:
        for number in range(50):
            client.put(b"key-%d" % number, b"value-%d" % number)
        primary = asyncio.run(cluster.wait_ready())
        cluster.kill(primary)
        assert [client.get(b"key-%d" % number) for number in range(50)] == [b"value-%d" % n for n in range(50)]
        client.append(b"key-0", b"+")
        assert client.client.view >= 1
        assert client.client.clock > 0
        for replica in range(3):
            cluster.kill(replica)
        cluster.start_all()
        assert client.get(b"key-0") == b"value-0+"
        assert client.compare_and_set(b"key-1", b"value-1", b"new")
        assert not client.compare_and_set(b"key-1", b"value-1", b"newer")
        assert client.delete(b"key-2")
        assert client.get(b"key-2") is None
    asyncio.run(cluster.wait_ready())
    assert set(cluster.stop_all().values()) == {0}
    for replica in range(3):
        lines = cluster.trace_path(replica).read_bytes().splitlines(keepends=True)
        events = [decode_line(line) for line in lines]
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        assert events[0].event == "start"
        assert sum(event.event == "restart" for event in events) == 1


def test_a_duplicate_request_gets_the_same_reply_also_from_a_later_primary(cluster: Cluster) -> None:
    session = ask_primary(cluster, Request(client=5, request=0, body=b"", incarnation=1)).session
    request = Request(client=5, request=1, body=encode_operation(Append(b"k", b"x")), session=session)
    replies = [ask_primary(cluster, request), ask_primary(cluster, request)]
    cluster.kill(asyncio.run(cluster.wait_ready()))
    replies.append(ask_primary(cluster, request))
    assert len({reply_checksum(reply) for reply in replies}) == 1
    with SyncClient(cluster.addresses, 7) as client:
        assert client.get(b"k") == b"x"


def test_bad_frames_close_the_connection_with_a_reason_and_harm_nobody(cluster: Cluster) -> None:
    address = cluster.addresses[1]
    request = Request(client=5, request=1, body=b"")
    header = make_header(parent="", view=0, op=1, client=1, request=1, commit=0, body=b"")
    cases: list[tuple[Hello | None, bytes, str]] = [
        (None, b"GET / HTTP/1.0\r\n\r\n", "are allowed"),
        (None, struct.pack(">I", 5) + b"\x01abcd", "does not decode"),
        (None, frame_message(request), "not a Hello"),
        (Hello(99, 7, "client", 5), b"", "protocol version 99"),
        (client_hello(5, 8), b"", "belongs to cluster 7"),
        (Hello(PROTOCOL_VERSION, 7, "replica", 3), b"", "no replica 3"),
        (Hello(PROTOCOL_VERSION, 7, "replica", 1), b"", "no replica 1"),
        (Hello(PROTOCOL_VERSION, 7, "admin", 1), b"", "no admin 1"),
        (client_hello(6), frame_message(request), "a request of client 5"),
        (client_hello(5), frame_message(Prepare(header, b"", replica=0)), "a Prepare of replica 0"),
        (
            replica_hello(address, 2),
            frame_message(Prepare(header, b"", replica=0)),
            "a Prepare of replica 0",
        ),
        (client_hello(5), b"\xff" * 100, "are allowed"),
        (client_hello(5), struct.pack(">I", 2 << 20), "2 to 1049600 are allowed"),
    ]
    for hello, data, reason in cases:
        connection = RawConnection(address, hello)
        connection.socket.sendall(data)
        assert reason in connection.goodbye()
        wait_for_log(cluster, 1, reason)
    half = RawConnection(address, client_hello(5))
    half.socket.sendall(b"\x00\x00")
    half.socket.close()
    RawConnection(cluster.addresses[0], client_hello(9)).socket.sendall(
        frame_message(Request(client=9, request=1, body=b"no operation"))
    )
    with SyncClient(cluster.addresses, 7) as client:
        with pytest.raises(RequestTooLargeError):
            client.put(b"a", bytes(2 << 20))
        client.put(b"a", b"b")
        assert client.get(b"a") == b"b"
    asyncio.run(cluster.wait_ready())
    assert "Traceback" not in cluster.log_path(1).read_text()


def test_a_client_of_another_cluster_is_refused(cluster: Cluster) -> None:
    with SyncClient(cluster.addresses, 8) as client, pytest.raises(RefusedError, match="belongs to cluster 7"):
        client.get(b"a")


async def answered(client: Client, operation: Operation | None) -> Result:
    """The result of an operation, or of the one that has no answer yet, however long it takes."""
    while True:
        try:
            return await (client.retry() if operation is None else client.execute(operation))
        except RequestTimeoutError as error:
            operation = None if error.executed is None else operation


def test_a_client_without_an_answer_takes_nothing_new_until_it_has_one(cluster: Cluster) -> None:
    async def scenario() -> None:
        primary = await cluster.wait_ready()
        down = [replica for replica in range(3) if replica != primary]
        async with Client(cluster.addresses, 7, timeout_seconds=0.5) as client:
            await answered(client, Put(b"a", b"0"))
            for replica in down:
                cluster.kill(replica)
            outstanding = asyncio.create_task(client.execute(Put(b"a", b"1")))
            await asyncio.sleep(0.05)
            with pytest.raises(ClientBusyError):
                await client.get(b"a")
            with pytest.raises(RequestTimeoutError, match="may still be executed"):
                await outstanding
            with pytest.raises(UncertainError, match="retry"):
                await client.get(b"a")
            cluster.start(down[0])
            await cluster.wait_answering(down[0])
            await answered(client, None)
            assert await answered(client, Get(b"a")) == Value(b"1")
        with pytest.raises(ClientClosedError):
            await client.get(b"a")

    asyncio.run(scenario())


def test_a_recorded_run_with_the_primary_killed_is_linearizable(tmp_path: Path) -> None:
    result = record(tmp_path, tmp_path / "traces", "kill", RecordOptions(requests=300, down_seconds=0.3))
    assert result.ok, result.check.failures
    assert result.killed is not None
    assert result.view_after > result.view_before
    assert result.requests >= 300
    assert all(path.stat().st_size > 0 for path in result.traces)
    with pytest.raises(ClusterError, match="holds a run already"):
        record(tmp_path / "other", tmp_path / "traces", "kill")


def test_no_acknowledged_write_is_lost_in_three_rounds_of_kills(tmp_path: Path) -> None:
    seen: list[int] = []
    options = RecordOptions(requests=150, down_seconds=0.3, seed=2)
    result = rounds(tmp_path, tmp_path / "traces", "rounds", 3, options, lambda one: seen.append(one.number))
    assert result.ok, [one.check.failures for one in result.rounds]
    assert seen == [1, 2, 3]
    assert result.unanswered == 0


def server(*arguments: str, file_size_max: int | None = None) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        if file_size_max is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size_max, file_size_max))

    return subprocess.run(
        [sys.executable, "-m", "viewproof.impl.net.server", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=limit,
        check=False,
    )


def test_foreseeable_errors_are_one_line_and_exit_code_2(tmp_path: Path) -> None:
    port, second = free_ports(2)
    address, other = f"127.0.0.1:{port}", f"127.0.0.1:{second}"
    format_data_file(tmp_path / "d", 7, 0, 1)
    format_data_file(tmp_path / "used", 7, 0, 1)
    trace = tmp_path / "trace.ndjson"
    trace.write_bytes(b"no event\n")
    base = ["--replica", "0", "--addresses", address]
    cases = [
        (["--data", str(tmp_path / "none"), *base], "never formatted"),
        (["--data", str(tmp_path / "d"), "--replica", "1", "--addresses", address], "expected 0..0"),
        (["--data", str(tmp_path / "d"), "--replica", "1", "--addresses", f"{address},{other}"], "wrong data dir"),
        (["--data", str(tmp_path / "d"), "--replica", "0", "--addresses", f"{address},{other}"], "replica_count"),
        (["--data", str(tmp_path / "d"), "--replica", "0", "--addresses", "nonsense"], "not HOST:PORT"),
        (["--data", str(tmp_path / "d"), *base, "--cluster", "8"], "cluster is 7"),
        (["--data", str(tmp_path / "d"), *base, "--fault", "no.such"], "unknown fault no.such"),
        (["--data", str(tmp_path / "d"), *base, "--trace", str(trace)], "trace.ndjson:1: not a trace event"),
    ]
    for arguments, text in cases:
        finished = server(*arguments)
        assert finished.returncode == 2, finished
        assert text in finished.stderr
        assert "Traceback" not in finished.stderr
    with socket.create_server(("127.0.0.1", port)):
        finished = server("--data", str(tmp_path / "d"), *base)
    assert finished.returncode == 2
    assert "cannot listen on" in finished.stderr


def fill(client: SyncClient, acknowledged: list[int]) -> None:
    for number in range(1000):
        client.put(b"%d" % number, b"x" * 1000)
        acknowledged.append(number)


def test_a_disk_that_refuses_writes_loses_nothing(tmp_path: Path) -> None:
    """The replica goes on without what it cannot store, says so, and has all it acknowledged once there is room."""
    port = free_ports(1)[0]
    format_data_file(tmp_path / "d", 7, 0, 1)
    arguments = ["--data", str(tmp_path / "d"), "--replica", "0", "--addresses", f"127.0.0.1:{port}"]
    command = [sys.executable, "-m", "viewproof.impl.net.server", *arguments]
    limit = (50_000, 50_000)
    acknowledged: list[int] = []
    full = subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )  # fmt: skip
    try:
        wait_for(lambda: asyncio.run(fetch_status(("127.0.0.1", port), 7)) is not None, "the server answers")
        with SyncClient([("127.0.0.1", port)], 7, timeout_seconds=6) as client, pytest.raises(ClientError):
            fill(client, acknowledged)
        assert full.poll() is None
    finally:
        full.terminate()
        _, errors = full.communicate(timeout=120)
    assert "nothing of it was kept" in errors
    assert "Traceback" not in errors
    assert 10 < len(acknowledged) < 60
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        with SyncClient([("127.0.0.1", port)], 7) as client:
            for number in acknowledged:
                assert client.get(b"%d" % number) == b"x" * 1000
    finally:
        process.terminate()
        assert process.wait(120) == 0


def test_addresses_are_parsed_or_refused_by_name() -> None:
    read = parse_addresses("localhost:1, [::1]:65535")
    assert read == (("localhost", 1), ("::1", 65535))
    assert ",".join(map(address_text, read)) == "localhost:1,[::1]:65535"
    for text in ("", "host", "host:", "host:0", "host:65536", ":1", "a:1,,b:2"):
        with pytest.raises(ServerError, match="is not HOST:PORT"):
            parse_addresses(text)
    for text in ("..a:1", "a..b:1", f"{'a' * 64}:1", f"{'a.' * 127}:1"):
        with pytest.raises(ServerError, match="parts of a name are 1 to 63 letters long"):
            parse_addresses(text)
    assert parse_addresses("a.b.:1,[fe80::1%eth0]:1") == (("a.b.", 1), ("fe80::1%eth0", 1))


def test_a_name_that_leads_nowhere_is_told_from_one_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolved(loop: object, host: str, port: int, **options: object) -> list[tuple[str, int]]:
        if host == "slow":
            await asyncio.Event().wait()
        if host == "known":
            return [(host, port)]
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolved)
    said = [asyncio.run(unknown_name((host, 1), 0.01)) for host in ("known", "slow", "no.such")]
    assert said == ["", "", "no.such: Name or service not known"]


def test_a_status_nobody_answers_is_none() -> None:
    assert asyncio.run(fetch_status(("127.0.0.1", free_ports(1)[0]), 7, 0.2)) is None


def test_the_benchmark_counts_answered_requests(cluster: Cluster) -> None:
    result = measured(cluster, 4, 1, at_least=20)
    assert 0 < result.latency_ms_median <= result.latency_ms_99 <= result.latency_ms_max
    statuses = asyncio.run(cluster.statuses(timeout_seconds=60))
    assert max(status.op for status in statuses if status is not None) >= result.requests


def test_the_rounds_notice_a_cluster_that_forgets(tmp_path: Path) -> None:
    options = RecordOptions(requests=60, down_seconds=0.2, seed=5, faults=("boot.all_zero",), timeout_seconds=2)
    result = rounds(tmp_path, tmp_path / "traces", "forgets", 3, options)
    assert not result.ok
    assert result.rounds[-1].check.verdict == "violation"
    assert "can be explained" in str(result.rounds[-1].check.failures[0])
