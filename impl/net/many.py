"""Closed-loop load of many clients over one connection: what a busy process in front of the cluster sends.

Each client has one request outstanding and sends the next when it is answered; all that one read from the connection
answers goes out again in one write. No library between: the client for applications is `impl/net/client.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import Callable, Sequence

from viewproof.impl.interface.messages import Eviction, Message, Reply, Request
from viewproof.impl.net.address import Address
from viewproof.impl.net.client import RefusedError, RequestTimeoutError, UnreachableError
from viewproof.impl.net.framing import (
    PROTOCOL_VERSION,
    Control,
    FrameError,
    FrameReader,
    Goodbye,
    Hello,
    NotPrimary,
    frame_control,
    frame_message,
)
from viewproof.impl.net.tls import Tls, dialling_options

__all__ = ["ManyClients"]

RETRY_SECONDS = 0.5
"""A request that has no answer for so long is sent again, to the next replica if none was answered meanwhile."""


class ManyClients(asyncio.Protocol):
    """``count`` clients with random ids. ``latencies`` (seconds): of requests called after ``measure_from``.

    ``body(number, request)`` gives the encoded operation of client ``number``'s request. Clients register where the
    cluster has sessions. Times are of ``time.perf_counter``.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        cluster: int,
        count: int,
        body: Callable[[int, int], bytes],
        tls: Tls | None = None,
    ) -> None:
        first = 1 + secrets.randbelow((1 << 62) - count)
        self.latencies: list[float] = []
        self.retries = 0
        self.measure_from = 0.0
        self._first = first
        self._addresses = tuple(addresses)
        self._hello = frame_control(Hello(PROTOCOL_VERSION, cluster, "clients", 0))
        self._body = body
        self._tls = tls
        self._target = 0
        self._view = 0
        self._requests: list[Request | None] = [self._request(first + number, 1, 0) for number in range(count)]
        self._called = [0.0] * count
        self._outgoing: list[bytes] = []
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._end = 0.0
        self._open = 0
        self._answered = 0.0
        self._asked = 0.0
        self._refusal = ""
        self._wake = asyncio.Event()

    async def run(self, end: float, *, unreachable_seconds: float, timeout_seconds: float = 30.0) -> None:
        """Load until ``end``, then wait for the last answers.

        Raises UnreachableError if no replica accepts a connection for so long, RequestTimeoutError if nothing is
        answered for ``timeout_seconds``, RefusedError if a replica refuses the connection.
        """
        self._end = end
        self._open = len(self._requests)
        self._answered = accepted = time.perf_counter()
        while self._open:
            if self._refusal:
                raise RefusedError(f"a replica refused: {self._refusal}")
            if time.perf_counter() - self._answered > timeout_seconds:
                raise RequestTimeoutError(f"no request was answered within {timeout_seconds} s")
            if self._transport is None:
                if not await self._connect():
                    if time.perf_counter() - accepted > unreachable_seconds:
                        raise UnreachableError("nobody accepts connections; are the replicas running?")
                    continue
                accepted = self._asked = time.perf_counter()
                self._send_all()
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS):
                    await self._wake.wait()
            self._ask_again()
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def _ask_again(self) -> None:
        """Turn to the next replica if this one answers nothing, else send again what waits for too long."""
        before = time.perf_counter() - RETRY_SECONDS
        silent = max(self._answered, self._asked) < before
        if silent and self._turn_to((self._target + 1) % len(self._addresses)):
            return
        if self._open and self._transport is not None and min(self._called) < before:
            self._send_all(before)

    async def _connect(self) -> bool:
        loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        try:
            async with asyncio.timeout(1.0):
                address = self._addresses[self._target]
                await loop.create_connection(lambda: self, *address, **dialling_options(self._tls, address[0]))
        except (OSError, TimeoutError):
            self._target = (self._target + 1) % len(self._addresses)
            await asyncio.sleep(0.02)
            return False
        return True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say who we are."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._hello)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake ``run``."""
        self._transport = None
        self._wake.set()

    def data_received(self, data: bytes) -> None:
        """Answers in, the next requests out."""
        try:
            for frame in self._reader.feed(data):
                self._on_frame(frame)
        except FrameError as error:
            self._refusal = str(error)
            self._wake.set()
        self._flush()
        if not self._open:
            self._wake.set()

    def _on_frame(self, frame: Message | Control) -> None:
        if isinstance(frame, Reply):
            self._on_reply(frame)
        elif isinstance(frame, NotPrimary):
            if frame.view >= self._view:
                self._view = frame.view
                self._turn_to(frame.view % len(self._addresses))
        elif isinstance(frame, Eviction):
            self._on_eviction(frame)
        elif isinstance(frame, Goodbye) and not frame.temporary:
            self._refusal = frame.reason
            self._wake.set()

    def _on_reply(self, reply: Reply) -> None:
        number = reply.client - self._first
        request = self._requests[number]
        if request is None or reply.request != request.request:
            return
        now = self._answered = time.perf_counter()
        session = request.session
        if request.request == 0:
            session = reply.session
        elif self._called[number] >= self.measure_from:
            self.latencies.append(now - self._called[number])
        if now < self._end:
            request = self._request(reply.client, request.request + 1, session)
            self._requests[number] = request
            self._called[number] = now
            self._outgoing.append(frame_message(request))
        else:
            self._requests[number] = None
            self._called[number] = float("inf")
            self._open -= 1

    def _on_eviction(self, eviction: Eviction) -> None:
        number = eviction.client - self._first
        request = self._requests[number]
        if request is not None and (request.session, request.request) == (eviction.session, eviction.request):
            incarnation = max(eviction.incarnation + 1, time.time_ns() // 1000)
            request = Request(client=eviction.client, request=0, body=b"", incarnation=incarnation)
            self._requests[number] = request
            self._outgoing.append(frame_message(request))

    def _request(self, client: int, request: int, session: int) -> Request:
        return Request(client=client, request=request, body=self._body(client - self._first, request), session=session)

    def _turn_to(self, target: int) -> bool:
        """False if it is this one that is talked to."""
        if target == self._target:
            return False
        self._target = target
        self.close()
        return True

    def _send_all(self, before: float = float("inf")) -> None:
        """Send what has no answer: all of it, or what was called before so many seconds."""
        now = time.perf_counter()
        for number, request in enumerate(self._requests):
            if request is None or self._called[number] > before:
                continue
            if self._called[number]:
                self.retries += 1
            else:
                self._called[number] = now
            self._outgoing.append(frame_message(request))
        self._flush()

    def _flush(self) -> None:
        if self._outgoing and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()
