"""A client of the cluster: finds the primary, retries under the same request number, carries the Lamport clock.

One request is outstanding at a time (the protocol allows no more per client; use more clients instead). A request is
sent again, with its number, until it is answered or its time is up; after that its outcome is unknown: it may
be executed later. The client then takes no new operation, only ``retry`` of the same one.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TypeVar

import msgspec

from impl.messages import Reply, Request
from impl.net.framing import (
    PROTOCOL_VERSION,
    REQUEST_SIZE_MAX,
    FrameError,
    FrameReader,
    Goodbye,
    Hello,
    NotPrimary,
    Status,
    StatusRequest,
    frame_control,
    frame_message,
)
from impl.state_machine import (
    Append,
    CompareAndSet,
    Delete,
    Done,
    Get,
    Operation,
    Outcome,
    Put,
    Result,
    Value,
    decode_result,
    encode_operation,
)

__all__ = [
    "Address",
    "Client",
    "ClientBusyError",
    "ClientClosedError",
    "ClientError",
    "RefusedError",
    "ReplyError",
    "RequestTimeoutError",
    "RequestTooLargeError",
    "SyncClient",
    "UncertainError",
    "UnreachableError",
    "fetch_status",
]

_ResultT = TypeVar("_ResultT")

Address = tuple[str, int]
"""Host and port of one replica."""

CLIENT_ID_MAX = (1 << 62) - 1


class ClientError(Exception):
    """A request did not get an answer; the subclasses say why."""


class RequestTimeoutError(ClientError):
    """No answer in time. The operation may have been executed, or may be later; ``Client.retry`` asks again."""


class UnreachableError(ClientError):
    """For some time no replica accepted a connection. As after RequestTimeoutError, ``Client.retry`` asks again."""


class RequestTooLargeError(ClientError):
    """The operation is larger than a request may be; nothing was sent."""


class UncertainError(ClientError):
    """The request before this one has no answer yet: call ``retry``, or use a new client."""


class ClientBusyError(ClientError):
    """Another request of this client is outstanding."""


class ClientClosedError(ClientError):
    """The client was closed."""


class RefusedError(ClientError):
    """A replica refused the connection for good, for example because it belongs to another cluster."""


class ReplyError(ClientError):
    """The answer does not decode or does not fit the operation."""


class _Connection(asyncio.Protocol):
    """One connection to one replica; frames go to ``inbox``, None at the end."""

    def __init__(self, hello: Hello) -> None:
        self.inbox: asyncio.Queue[object] = asyncio.Queue()
        self.transport: asyncio.Transport | None = None
        self._hello = hello
        self._reader = FrameReader()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(frame_control(self._hello))

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                self.inbox.put_nowait(frame)
        except FrameError:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self.inbox.put_nowait(None)

    def send(self, data: bytes) -> bool:
        if self.transport is None or self.transport.is_closing():
            return False
        self.transport.write(data)
        return True

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


class Client:
    """Asyncio client. Times are in seconds. Use within one event loop; ``async with`` closes it."""

    def __init__(
        self,
        addresses: Sequence[Address],
        cluster: int,
        client_id: int | None = None,
        timeout_seconds: float = 30.0,
        retry_seconds: float = 0.4,
        retry_seconds_max: float = 2.0,
        unreachable_seconds: float | None = None,
    ) -> None:
        """``client_id`` must never have been used in this cluster before (None: a random one of 62 bits).

        ``unreachable_seconds``: give up, with UnreachableError, once no replica has accepted a connection for so long
        (None: only when the time of the request is up).
        """
        if not addresses:
            raise ValueError("a client needs at least one address")
        self.addresses = tuple(addresses)
        self.client_id = client_id if client_id is not None else 1 + secrets.randbelow(CLIENT_ID_MAX)
        if not 1 <= self.client_id <= CLIENT_ID_MAX:
            raise ValueError(f"client_id must be in 1..{CLIENT_ID_MAX}, got {self.client_id}")
        self.clock = 0
        self.request_number = 0
        self.view = 0
        self.retries = 0
        self._cluster = cluster
        self._timeout_seconds = timeout_seconds
        self._retry_seconds = retry_seconds
        self._retry_seconds_max = retry_seconds_max
        self._unreachable_seconds = unreachable_seconds
        self._target = 0
        self._connection: _Connection | None = None
        self._pending: Request | None = None
        self._busy = False
        self._closed = False

    async def execute(self, operation: Operation) -> Result:
        """Send one operation and return its result.

        Raises RequestTimeoutError, UnreachableError, RequestTooLargeError, UncertainError, ClientBusyError,
        ClientClosedError, RefusedError or ReplyError.
        """
        self._check_usable()
        if self._pending is not None:
            raise UncertainError(
                f"request {self._pending.request} of client {self.client_id} has no answer yet: retry() asks again"
            )
        body = encode_operation(operation)
        if len(body) > REQUEST_SIZE_MAX:
            raise RequestTooLargeError(f"the operation takes {len(body)} bytes; at most {REQUEST_SIZE_MAX} are allowed")
        self.request_number += 1
        self._pending = Request(client=self.client_id, request=self.request_number, body=body, clock=self.clock)
        return await self.retry()

    async def retry(self) -> Result:
        """Ask again for the request that had no answer. Raises as ``execute``; ClientError if there is none."""
        self._check_usable()
        request = self._pending
        if request is None:
            raise ClientError("there is no unanswered request to retry")
        self._busy = True
        try:
            async with asyncio.timeout(self._timeout_seconds):
                reply = await self._ask(request)
        except TimeoutError as error:
            raise RequestTimeoutError(
                f"request {request.request} of client {self.client_id} had no answer within {self._timeout_seconds} s; "
                "it may still be executed"
            ) from error
        finally:
            self._busy = False
        self._pending = None
        self.clock = max(self.clock, reply.clock)
        self.view = max(self.view, reply.view)
        try:
            return decode_result(reply.body)
        except msgspec.DecodeError as error:
            raise ReplyError(f"the answer to request {request.request} does not decode: {error}") from error

    async def put(self, key: bytes, value: bytes) -> None:
        """Set ``key`` to ``value``."""
        _expect(await self.execute(Put(key, value)), Done)

    async def get(self, key: bytes) -> bytes | None:
        """The value of ``key``, None if it is absent."""
        return _expect(await self.execute(Get(key)), Value).value

    async def delete(self, key: bytes) -> bool:
        """Remove ``key``; True if it was there."""
        return _expect(await self.execute(Delete(key)), Outcome).success

    async def append(self, key: bytes, value: bytes) -> None:
        """Append ``value`` to the value of ``key``; an absent one counts as empty."""
        _expect(await self.execute(Append(key, value)), Done)

    async def compare_and_set(self, key: bytes, expected: bytes | None, value: bytes) -> bool:
        """Set ``key`` to ``value`` if its value is ``expected`` (None: absent); True if that was so."""
        return _expect(await self.execute(CompareAndSet(key, expected, value)), Outcome).success

    async def close(self) -> None:
        """Close the connection. An outstanding request is left without an answer."""
        self._closed = True
        self._drop()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _check_usable(self) -> None:
        if self._closed:
            raise ClientClosedError("the client is closed")
        if self._busy:
            raise ClientBusyError(f"client {self.client_id} has a request outstanding; use one client per task")

    async def _ask(self, request: Request) -> Reply:
        """Send to the believed primary until the reply is here; wait longer, and turn to the next one, each time."""
        frame = frame_message(request)
        wait = self._retry_seconds
        attempts = 0
        silent: set[int] = set()
        accepted = time.monotonic()
        while True:
            if attempts:
                self.retries += 1
            attempts += 1
            connection = await self._connect()
            if connection is not None:
                silent.clear()
                accepted = time.monotonic()
            else:
                silent.add(self._target)
                self._check_reachable(silent, time.monotonic() - accepted)
            if connection is None or not connection.send(frame):
                self._next_target()
                await asyncio.sleep(min(0.02 * attempts, 0.2))
                continue
            try:
                async with asyncio.timeout(wait):
                    reply = await self._await_reply(connection, request)
            except TimeoutError:
                reply = None
                self._next_target()
                wait = min(wait * 1.5, self._retry_seconds_max)
            if reply is not None:
                return reply
            await asyncio.sleep(min(0.005 * attempts, 0.1))

    def _check_reachable(self, silent: set[int], seconds: float) -> None:
        if self._unreachable_seconds is None or seconds < self._unreachable_seconds:
            return
        if len(silent) == len(self.addresses):
            addresses = ", ".join(map(_text, self.addresses))
            raise UnreachableError(f"nobody accepts connections at {addresses}; are the replicas running?")

    async def _await_reply(self, connection: _Connection, request: Request) -> Reply | None:
        """The reply, or None if this replica cannot give it; the target is then another one."""
        while True:
            frame = await connection.inbox.get()
            if isinstance(frame, Reply):
                if frame.client == request.client and frame.request == request.request:
                    return frame
            elif isinstance(frame, NotPrimary):
                if frame.request == request.request:
                    self._follow(frame)
                    return None
            elif isinstance(frame, Goodbye):
                raise RefusedError(f"replica at {_text(self.addresses[self._target])} refused: {frame.reason}")
            elif frame is None:
                self._drop()
                self._next_target()
                return None

    def _follow(self, hint: NotPrimary) -> None:
        if hint.view >= self.view and hint.view % len(self.addresses) != self._target:
            self.view = hint.view
            self._turn_to(hint.view % len(self.addresses))
        else:
            self._next_target()

    def _next_target(self) -> None:
        self._turn_to((self._target + 1) % len(self.addresses))

    def _turn_to(self, target: int) -> None:
        if target != self._target:
            self._drop()
            self._target = target

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def _connect(self) -> _Connection | None:
        if self._connection is None:
            self._connection = await _open(self.addresses[self._target], self._cluster, self.client_id, 1.0)
        return self._connection


class SyncClient:
    """The same client for code without an event loop: it runs its own in the calling thread."""

    def __init__(
        self,
        addresses: Sequence[Address],
        cluster: int,
        client_id: int | None = None,
        timeout_seconds: float = 30.0,
        unreachable_seconds: float | None = None,
    ) -> None:
        self.client = Client(addresses, cluster, client_id, timeout_seconds, unreachable_seconds=unreachable_seconds)
        self._runner = asyncio.Runner()

    def execute(self, operation: Operation) -> Result:
        """As Client.execute."""
        return self._runner.run(self.client.execute(operation))

    def retry(self) -> Result:
        """As Client.retry."""
        return self._runner.run(self.client.retry())

    def put(self, key: bytes, value: bytes) -> None:
        """As Client.put."""
        self._runner.run(self.client.put(key, value))

    def get(self, key: bytes) -> bytes | None:
        """As Client.get."""
        return self._runner.run(self.client.get(key))

    def delete(self, key: bytes) -> bool:
        """As Client.delete."""
        return self._runner.run(self.client.delete(key))

    def append(self, key: bytes, value: bytes) -> None:
        """As Client.append."""
        self._runner.run(self.client.append(key, value))

    def compare_and_set(self, key: bytes, expected: bytes | None, value: bytes) -> bool:
        """As Client.compare_and_set."""
        return self._runner.run(self.client.compare_and_set(key, expected, value))

    def close(self) -> None:
        """Close the connection and the loop."""
        if not self.client._closed:
            self._runner.run(self.client.close())
        self._runner.close()

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


async def fetch_status(address: Address, cluster: int, timeout_seconds: float = 1.0) -> Status | None:
    """What the replica at ``address`` says of itself; None if it does not answer in time.

    Raises RefusedError if it answers that it is another cluster's.
    """
    connection = await _open(address, cluster, 0, timeout_seconds)
    if connection is None:
        return None
    try:
        async with asyncio.timeout(timeout_seconds):
            connection.send(frame_control(StatusRequest()))
            while True:
                frame = await connection.inbox.get()
                if isinstance(frame, Status):
                    return frame
                if isinstance(frame, Goodbye):
                    raise RefusedError(f"replica at {_text(address)} refused: {frame.reason}")
                if frame is None:
                    return None
    except TimeoutError:
        return None
    finally:
        connection.close()


async def _open(address: Address, cluster: int, client_id: int, timeout_seconds: float) -> _Connection | None:
    hello = Hello(version=PROTOCOL_VERSION, cluster=cluster, role="client", number=client_id)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_seconds):
            _, connection = await loop.create_connection(lambda: _Connection(hello), *address)
    except (OSError, TimeoutError):
        return None
    return connection


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


def _expect(result: Result, kind: type[_ResultT]) -> _ResultT:
    if isinstance(result, kind):
        return result
    raise ReplyError(f"the answer is {result!r}; expected {kind.__name__}")
