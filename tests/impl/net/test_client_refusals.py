"""A client and replicas that refuse it: one may be set up wrongly; if more than half refuse, the client is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tests.impl.net.test_client_sessions import PUT, done
from viewproof.impl.interface.messages import Request
from viewproof.impl.machine.state_machine import Done
from viewproof.impl.net.client import Client
from viewproof.impl.net.cluster import free_ports
from viewproof.impl.net.errors import RefusedError, RequestTimeoutError, UnreachableError
from viewproof.impl.net.framing import (
    PROTOCOL_VERSION,
    FrameReader,
    Goodbye,
    Hello,
    NotPrimary,
    frame_control,
    frame_message,
)

Writer = asyncio.StreamWriter
Kind = Callable[[Writer, object], None]
"""What a replica does with a frame."""

HELLO = frame_control(Hello(PROTOCOL_VERSION, 7, "replica", 0))
GOODBYE = frame_control(Goodbye("of another world", temporary=False))


def refuses(writer: Writer, frame: object) -> None:
    """At once."""
    writer.write(GOODBYE)
    writer.close()


def refuses_later(writer: Writer, frame: object) -> None:
    """The request, as one that does not run its group."""
    writer.write(HELLO if isinstance(frame, Hello) else GOODBYE)
    if not isinstance(frame, Hello):
        writer.close()


def serves(writer: Writer, frame: object) -> None:
    """It is the primary."""
    writer.write(frame_message(done(frame)) if isinstance(frame, Request) else HELLO)


def sends_to_0(writer: Writer, frame: object) -> None:
    """A backup."""
    hint = NotPrimary(client=9, request=1, view=0, status="normal")
    writer.write(frame_control(hint) if isinstance(frame, Request) else HELLO)


def takes_and_leaves(writer: Writer, frame: object) -> None:
    """The request arrives; nothing comes back."""
    if isinstance(frame, Hello):
        writer.write(HELLO)
    else:
        writer.close()


def against(
    kinds: list[Kind | None],
    scenario: Callable[[Client], Awaitable[None]],
    timeout_seconds: float = 60,
    unreachable_seconds: float | None = None,
) -> None:
    """Runs a client of replicas of these kinds; None: nobody is there."""

    async def run() -> None:
        ports = free_ports(len(kinds))

        def server(kind: Kind) -> Callable[[asyncio.StreamReader, Writer], Awaitable[None]]:
            async def serve(reader: asyncio.StreamReader, writer: Writer) -> None:
                frames = FrameReader()
                while data := await reader.read(1 << 16):
                    for frame in frames.feed(data):
                        kind(writer, frame)
                writer.close()

            return serve

        async with AsyncExitStack() as stack:
            for port, kind in zip(ports, kinds, strict=True):
                if kind is not None:
                    await stack.enter_async_context(await asyncio.start_server(server(kind), "127.0.0.1", port))
            client = Client(
                [("127.0.0.1", port) for port in ports],
                7,
                9,
                timeout_seconds,
                unreachable_seconds=unreachable_seconds,
            )
            try:
                await scenario(client)
            finally:
                await client.close()

    asyncio.run(run())


@pytest.mark.parametrize("kind", [refuses, refuses_later])
@pytest.mark.parametrize("others", [(serves, serves), (sends_to_0, serves), (None, sends_to_0, serves, None)])
def test_one_replica_that_refuses_is_left_for_another(kind: Kind, others: tuple[Kind | None, ...]) -> None:
    async def scenario(client: Client) -> None:
        assert isinstance(await client.execute(PUT), Done)

    against([kind, *others], scenario)


@pytest.mark.parametrize("kind", [refuses, refuses_later])
@pytest.mark.parametrize("others", [(), (refuses, serves), (refuses_later, None), (None, refuses)])
def test_more_than_half_that_refuse_are_an_error(kind: Kind, others: tuple[Kind | None, ...]) -> None:
    async def scenario(client: Client) -> None:
        for _ in range(2):
            with pytest.raises(RefusedError, match=r"refused: of another world$") as error:
                await client.execute(PUT)
            assert error.value.executed is (None if refuses_later in (kind, *others) else False)
            if error.value.executed is None:
                with pytest.raises(RefusedError):
                    await client.retry()
                return

    against([kind, *others], scenario)


def test_a_primary_that_is_gone_is_left_for_another_whoever_names_it() -> None:
    async def scenario(client: Client) -> None:
        assert isinstance(await client.execute(PUT), Done)

    against([None, sends_to_0, serves], scenario)


def test_what_was_sent_before_a_refusal_may_have_been_executed() -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(RefusedError) as error:
            await client.execute(PUT)
        assert error.value.executed is None

    against([takes_and_leaves, refuses, refuses], scenario)


def test_a_client_that_gives_up_says_who_refused() -> None:
    async def unreachable(client: Client) -> None:
        with pytest.raises(UnreachableError, match=r"running, and without it.; replica at .* refused: of another"):
            await client.execute(PUT)

    async def timed_out(client: Client) -> None:
        with pytest.raises(RequestTimeoutError, match=r"replica at .* refused: of another"):
            await client.execute(PUT)

    against([None, refuses, None], unreachable, unreachable_seconds=0.0)
    against([None, refuses, None], timed_out, timeout_seconds=2)
