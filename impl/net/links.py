"""Links of a server to the other replicas, kept up by dialling again.

A pair of replicas has two connections, one dialled by each; a replica sends on the one it dialled. Sending never waits:
what cannot be sent now (no connection, or more than BUFFER_BYTES_MAX unsent) is dropped, as the protocol allows.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket

from viewproof.impl.net.client import Address
from viewproof.impl.net.framing import FrameError, FrameReader, Goodbye, Hello, frame_control
from viewproof.impl.net.limits import BUFFER_BYTES_MAX

__all__ = ["PeerLink"]

BACKOFF_SECONDS_MIN = 0.02
BACKOFF_SECONDS_MAX = 1.0
CONNECT_TIMEOUT_SECONDS = 2.0
UNACKNOWLEDGED_SECONDS_MAX = 5.0

logger = logging.getLogger("viewproof.impl.net")


class PeerLink(asyncio.Protocol):
    """The dialled connection to one other replica. ``send`` only collects; ``flush`` writes what was collected."""

    def __init__(self, peer: int, address: Address, hello: Hello) -> None:
        self.peer = peer
        self.dropped = 0
        self._address = address
        self._hello = hello
        self._transport: asyncio.Transport | None = None
        self._lost = asyncio.Event()
        self._reader = FrameReader()
        self._outgoing: list[bytes] = []
        self._refusal = ""
        self._random = random.Random(f"{hello.number}-{peer}")

    @property
    def connected(self) -> bool:
        """True if what is sent now goes into a connection."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, frame: bytes) -> None:
        """Collect a frame for the next flush; dropped if there is no connection."""
        if self.connected:
            self._outgoing.append(frame)
        else:
            self.dropped += 1

    def flush(self) -> None:
        """Write what was collected."""
        if not self._outgoing:
            return
        transport = self._transport
        if transport is not None and transport.get_write_buffer_size() <= BUFFER_BYTES_MAX:
            transport.write(b"".join(self._outgoing))
        else:
            self.dropped += len(self._outgoing)
        self._outgoing.clear()

    async def keep_up(self) -> None:
        """Dial, and dial again when the connection is lost, until cancelled. Waits longer after each failure."""
        loop = asyncio.get_running_loop()
        backoff = BACKOFF_SECONDS_MIN
        try:
            while True:
                self._lost.clear()
                self._refusal = ""
                started = loop.time()
                try:
                    async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                        await loop.create_connection(lambda: self, *self._address)
                    await self._lost.wait()
                except (OSError, TimeoutError):
                    pass
                if loop.time() - started > BACKOFF_SECONDS_MAX and not self._refusal:
                    backoff = BACKOFF_SECONDS_MIN
                await asyncio.sleep(backoff * self._random.uniform(0.5, 1.0))
                backoff = min(backoff * 2, BACKOFF_SECONDS_MAX)
        finally:
            if self._transport is not None:
                self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say who we are."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._reader = FrameReader()
        _set_user_timeout(transport)
        transport.write(frame_control(self._hello))

    def data_received(self, data: bytes) -> None:
        """The other side says hello, or goodbye with a reason; protocol messages come on the connection it dialled."""
        try:
            for frame in self._reader.feed(data):
                if isinstance(frame, Goodbye):
                    self._refusal = frame.reason
                    logger.warning("replica %d at %s:%d refused: %s", self.peer, *self._address, frame.reason)
        except FrameError as error:
            logger.warning("replica %d at %s:%d: %s; closing", self.peer, *self._address, error)
            if self._transport is not None:
                self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wake ``keep_up``."""
        self._transport = None
        self._outgoing.clear()
        self._lost.set()


def _set_user_timeout(transport: asyncio.Transport) -> None:
    """Give a peer up whose machine is gone after UNACKNOWLEDGED_SECONDS_MAX instead of TCP's quarter of an hour."""
    connection = transport.get_extra_info("socket")
    if connection is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        milliseconds = int(UNACKNOWLEDGED_SECONDS_MAX * 1000)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
