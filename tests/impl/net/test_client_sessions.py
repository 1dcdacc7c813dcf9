"""What the client library makes of sessions: registers, evictions, fencing; against a scripted server and a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.refinement.traces import load
from viewproof.impl.interface.durable import ClientTableConfig
from viewproof.impl.interface.messages import Eviction, Message, Reply, Request, register_result
from viewproof.impl.machine.state_machine import Done, Put, encode_operation
from viewproof.impl.net.client import (
    Client,
    EvictedError,
    FencedError,
    RequestTimeoutError,
    UncertainError,
)
from viewproof.impl.net.cluster import Cluster, free_ports
from viewproof.impl.net.errors import ClientError
from viewproof.impl.net.framing import (
    PROTOCOL_VERSION,
    Control,
    FrameReader,
    Hello,
    NotPrimary,
    frame_control,
    frame_message,
)
from viewproof.impl.net.sync_client import SyncClient
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

PUT = Put(b"k", b"v")
DONE = b"\x91\xa4done"

Answer = Callable[[Request, int], "Message | Control | None"]
"""(request, how many arrived before) → what the server sends, None: nothing."""


def against(
    answer: Answer,
    scenario: Callable[[Client, list[Request]], Awaitable[None]],
    timeout_seconds: float = 60,
    retry_seconds: float = 30,
) -> None:
    """Runs a client of one scripted replica; the scenario sees the requests that arrived.

    Without `retry_seconds` nothing is sent twice, however busy the machine is.
    """

    async def run() -> None:
        port = free_ports(1)[0]
        requests: list[Request] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            frames = FrameReader()
            while data := await reader.read(1 << 16):
                for frame in frames.feed(data):
                    if isinstance(frame, Hello):
                        writer.write(frame_control(Hello(PROTOCOL_VERSION, 7, "replica", 0, True)))
                    elif isinstance(frame, Request):
                        requests.append(frame)
                        sent = answer(frame, len(requests) - 1)
                        if isinstance(sent, NotPrimary):
                            writer.write(frame_control(sent))
                        elif isinstance(sent, Reply | Eviction):
                            writer.write(frame_message(sent))
            writer.close()

        async with (
            await asyncio.start_server(serve, "127.0.0.1", port),
            Client([("127.0.0.1", port)], 7, 9, timeout_seconds, retry_seconds=retry_seconds) as client,
        ):
            await scenario(client, requests)

    asyncio.run(run())


def registered(request: Request, session: int) -> Reply:
    return Reply(request.client, session, 0, session, register_result(request.incarnation), 0, 0, clock=session)


def done(request: Request, op: int = 100) -> Reply:
    return Reply(request.client, request.session, request.request, op, DONE, 0, 0)


def evicted(request: Request, reason: str = "no_session", incarnation: int = 0) -> Eviction:
    return Eviction(request.client, request.session, request.request, reason, incarnation)


def scripted(*answers: Callable[[Request], Message | Control | None]) -> Answer:
    """One answer after the other; the last one goes on."""
    return lambda request, index: answers[min(index, len(answers) - 1)](request)


def test_a_client_registers_once_and_numbers_its_requests() -> None:
    async def scenario(client: Client, requests: list[Request]) -> None:
        for _ in range(3):
            assert await client.execute(PUT) == Done()
        assert [(r.session, r.request, r.incarnation > 0) for r in requests] == [
            (0, 0, True),
            (4, 1, False),
            (4, 2, False),
            (4, 3, False),
        ]
        assert client.clock == 4

    against(scripted(lambda r: registered(r, 4), done), scenario)


def test_an_evicted_request_that_was_sent_once_is_sent_again_in_the_next_session() -> None:
    async def scenario(client: Client, requests: list[Request]) -> None:
        assert await client.execute(PUT) == Done()
        assert await client.execute(PUT) == Done()
        register, first, gone, again, last = requests
        assert (first.request, gone.request, last.request) == (1, 2, 1)
        assert again.incarnation > register.incarnation
        assert (gone.session, last.session) == (4, 6)
        assert gone.body == last.body == encode_operation(PUT)
        assert client.evictions == 1

    answer = scripted(lambda r: registered(r, 4), done, evicted, lambda r: registered(r, 6), done)
    against(answer, scenario)


def test_an_evicted_request_that_was_sent_twice_may_have_been_executed() -> None:
    async def scenario(client: Client, requests: list[Request]) -> None:
        with pytest.raises(EvictedError, match="request 1 was executed once or never") as caught:
            await client.execute(PUT)
        assert caught.value.executed is None
        assert await client.execute(PUT) == Done()
        assert [(r.session, r.request) for r in requests] == [(0, 0), (4, 1), (4, 1), (0, 0), (6, 1)]

    answer = scripted(lambda r: registered(r, 4), lambda r: None, evicted, lambda r: registered(r, 6), done)
    against(answer, scenario, retry_seconds=1.5)


def test_a_client_whose_id_is_taken_refuses_every_request() -> None:
    async def scenario(client: Client, requests: list[Request]) -> None:
        with pytest.raises(FencedError, match="client 9 is fenced") as caught:
            await client.execute(PUT)
        assert caught.value.executed is False
        with pytest.raises(FencedError, match="client 9 is fenced"):
            await client.execute(PUT)
        assert len(requests) == 2

    answer = scripted(lambda r: registered(r, 4), lambda r: evicted(r, "fenced", 1 << 62))
    against(answer, scenario)


def test_a_client_fenced_by_its_own_old_register_registers_again() -> None:
    async def scenario(client: Client, requests: list[Request]) -> None:
        assert await client.execute(PUT) == Done()
        assert [r.request for r in requests] == [0, 1, 0, 1]

    answer = scripted(lambda r: registered(r, 4), lambda r: evicted(r, "fenced", 5), lambda r: registered(r, 8), done)
    against(answer, scenario)


def test_evictions_and_replies_of_other_sessions_are_not_mistaken() -> None:
    def confused(request: Request, index: int) -> Message | None:
        if request.request == 0:
            return registered(request, 7)
        others = (
            Eviction(9, 6, 1, "no_session"),
            Reply(9, 6, 1, 50, DONE, 0, 0),
            Reply(9, 7, 2, 51, DONE, 0, 0),
            Eviction(8, 7, 1, "fenced", 1 << 62),
        )
        return others[index - 1] if index <= len(others) else done(request)

    async def scenario(client: Client, requests: list[Request]) -> None:
        assert await client.execute(PUT) == Done()
        assert (client.session, client.evictions, len(requests)) == (7, 0, 6)

    against(confused, scenario, retry_seconds=0.4)


def test_what_no_primary_took_is_known_not_to_be_executed_and_its_number_is_used_again() -> None:
    async def scenario(client: Client, requests: list[Request]) -> None:
        with pytest.raises(RequestTimeoutError, match="it was not executed") as caught:
            await client.execute(PUT)
        assert caught.value.executed is False
        before = len(requests)
        assert before > 2
        taken.append(True)
        assert await client.execute(PUT) == Done()
        assert {r.request for r in requests[1:]} == {1}

    taken: list[bool] = []

    def answer(request: Request, index: int) -> Message | Control | None:
        if request.request == 0:
            return registered(request, 3)
        return done(request) if taken else NotPrimary(request.client, request.request, 0, "view_change")

    against(answer, scenario, timeout_seconds=2, retry_seconds=0.5)


def test_without_a_session_nothing_was_sent() -> None:
    async def scenario(client: Client, requests: list[Request]) -> None:
        for _ in range(2):
            with pytest.raises(RequestTimeoutError, match="the operation was not sent") as caught:
                await client.execute(PUT)
            assert caught.value.executed is False
        assert {r.body for r in requests} == {b""}
        assert {r.session for r in requests} == {0}
        assert {r.incarnation for r in requests if r.request == 0} == {client.incarnation}

    against(lambda request, index: None, scenario, timeout_seconds=1.5, retry_seconds=0.05)


def test_a_client_whose_clock_was_ahead_goes_on_above_its_old_incarnation() -> None:
    ahead = 1 << 60

    def answer(request: Request, index: int) -> Message | None:
        if request.request == 0:
            return registered(request, 8) if request.incarnation > ahead else evicted(request, "stale", ahead)
        return done(request)

    async def scenario(client: Client, requests: list[Request]) -> None:
        assert await client.execute(PUT) == Done()
        assert client.incarnation == ahead + 1
        assert [r.request for r in requests] == [0, 0, 1]

    against(answer, scenario)


def test_a_client_that_had_a_session_does_not_take_it_back_from_who_came_after() -> None:
    later = 1 << 60

    def answer(request: Request, index: int) -> Message | None:
        if request.request == 0:
            return registered(request, 4) if index == 0 else evicted(request, "stale", later)
        return evicted(request, "no_session")

    async def scenario(client: Client, requests: list[Request]) -> None:
        with pytest.raises(FencedError, match=f"with incarnation {later}"):
            await client.execute(PUT)

    against(answer, scenario, retry_seconds=0.3)


def test_an_old_incarnation_of_its_id_does_not_disturb_a_register() -> None:
    def answer(request: Request, index: int) -> Message | None:
        if request.request == 0:
            return registered(request, 8) if index > 4 else evicted(request, "stale", 5)
        return done(request)

    async def scenario(client: Client, requests: list[Request]) -> None:
        before = client.incarnation
        assert await client.execute(PUT) == Done()
        assert client.incarnation == before

    against(answer, scenario, retry_seconds=0.3)


def test_a_request_in_doubt_may_be_given_up() -> None:
    async def scenario(client: Client, requests: list[Request]) -> None:
        with pytest.raises(ClientError, match="no unanswered request"):
            client.abandon()
        with pytest.raises(RequestTimeoutError, match="it may still be executed"):
            await client.execute(PUT)
        client.abandon()
        assert await client.execute(Put(b"k", b"other")) == Done()
        registers = [r for r in requests if r.request == 0]
        assert registers[-1].incarnation > registers[0].incarnation
        assert (requests[-1].session, requests[-1].request) == (6, 1)

    def answer(request: Request, index: int) -> Message | None:
        if request.request == 0:
            return registered(request, 3 if index == 0 else 6)
        return done(request) if request.session == 6 else None

    against(answer, scenario, timeout_seconds=2, retry_seconds=0.5)


def test_a_request_in_doubt_must_be_retried_first() -> None:
    async def scenario(client: Client, requests: list[Request]) -> None:
        with pytest.raises(RequestTimeoutError, match="it may still be executed") as caught:
            await client.execute(PUT)
        assert caught.value.executed is None
        with pytest.raises(UncertainError, match="retry"):
            await client.execute(PUT)
        taken.append(True)
        assert await client.retry() == Done()
        assert {r.request for r in requests[1:]} == {1}

    taken: list[bool] = []

    def answer(request: Request, index: int) -> Message | None:
        if request.request == 0:
            return registered(request, 3)
        return done(request) if taken else None

    against(answer, scenario, timeout_seconds=2, retry_seconds=0.5)


# A cluster


def test_clients_that_evict_each_other_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    with Cluster(tmp_path, cluster=7, clients=ClientTableConfig(1, sessions=True)) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(take_turns(cluster))


async def take_turns(cluster: Cluster) -> None:
    """Two clients, and one session; no request is sent twice only because the answer takes long."""
    await cluster.wait_ready()
    async with (
        Client(cluster.addresses, 7, timeout_seconds=60, retry_seconds=20) as one,
        Client(cluster.addresses, 7, timeout_seconds=60, retry_seconds=20) as other,
    ):
        for _ in range(5):
            await one.append(b"k", b"1")
            await other.append(b"k", b"2")
        assert await one.get(b"k") == b"12" * 5
        assert one.evictions == 5
        assert other.evictions == 4


def test_a_program_whose_clock_was_set_back_is_not_locked_out(tmp_path: Path) -> None:
    """It registered with a clock an hour ahead; with the clock right it takes its id over, and the trace conforms."""
    with Cluster(tmp_path, 1, cluster=7) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        with SyncClient(cluster.addresses, 7, 77) as ahead:
            ahead.client.incarnation += 3600 * 10**6
            ahead.put(b"k", b"1")
            with SyncClient(cluster.addresses, 7, 77) as right:
                right.append(b"k", b"2")
                assert right.client.incarnation == ahead.client.incarnation + 1
                with pytest.raises(FencedError, match="client 77 is fenced"):
                    ahead.append(b"k", b"3")
                assert right.get(b"k") == b"12"
        cluster.stop_all()
    verdict = check_run("run", load(cluster.trace_directory), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)


def test_the_later_client_of_an_id_goes_on_and_the_earlier_is_fenced(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1, cluster=7) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        with SyncClient(cluster.addresses, 7, 5) as first:
            first.put(b"k", b"1")
            with SyncClient(cluster.addresses, 7, 5) as second:
                second.append(b"k", b"2")
                with pytest.raises(FencedError, match="client 5 is fenced"):
                    first.append(b"k", b"3")
                assert second.get(b"k") == b"12"
