"""Connections of a server: links to other replicas (kept up by dialling again) and connections accepted from anyone.

A pair of replicas has two connections, one dialled by each; a replica sends on the one it dialled. Sending never waits:
what cannot be sent now (no connection, or more than BUFFER_BYTES_MAX unsent) is dropped, as the protocol allows.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections.abc import Callable

from viewproof.impl.groups.group import UnknownGroupError
from viewproof.impl.interface.messages import Eviction, Message, Reply, Request
from viewproof.impl.net.client import Address
from viewproof.impl.net.framing import (
    PROTOCOL_VERSION,
    REQUEST_SIZE_MAX,
    Control,
    FrameError,
    FrameReader,
    Goodbye,
    Hello,
    NotPrimary,
    Status,
    StatusRequest,
    frame_control,
)

__all__ = ["BUFFER_BYTES_MAX", "Inbound", "PeerLink"]

BUFFER_BYTES_MAX = 64 << 20
"""Bytes that may wait in one connection's send buffer."""

HELLO_TIMEOUT_SECONDS = 10.0
BACKOFF_SECONDS_MIN = 0.02
BACKOFF_SECONDS_MAX = 1.0
CONNECT_TIMEOUT_SECONDS = 2.0
UNACKNOWLEDGED_SECONDS_MAX = 5.0

_UNEXPECTED = (Hello, Status, NotPrimary, Reply, Eviction)

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


class Inbound(asyncio.Protocol):
    """An accepted connection: of another replica, or of a client. Bad frames close it, with the reason logged."""

    def __init__(self, host: InboundHost) -> None:
        self._host = host
        self._reader = FrameReader(host.frame_size_max)
        self._transport: asyncio.Transport | None = None
        self._hello_timer: asyncio.TimerHandle | None = None
        self._outgoing: list[bytes] = []
        self.hello: Hello | None = None
        self.clients: set[tuple[int, int]] = set()
        self.name = "?"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the hello."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        address = transport.get_extra_info("peername")
        self.name = f"{address[0]}:{address[1]}" if address else "?"
        self._host.opened(self)
        self._hello_timer = asyncio.get_running_loop().call_later(HELLO_TIMEOUT_SECONDS, self._no_hello)

    def data_received(self, data: bytes) -> None:
        """Hand over every whole frame; the host flushes once all input that is here now was handed over."""
        try:
            for group, frame in self._reader.feed_routed(data):
                if self._transport is None or self._transport.is_closing():
                    return
                self._on_frame(group, frame)
        except (FrameError, UnknownGroupError) as error:
            self.refuse(str(error))
        finally:
            self._host.flush_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._transport = None
        if self._hello_timer is not None:
            self._hello_timer.cancel()
        self._host.closed(self)

    def send(self, frame: bytes) -> None:
        """Collect a frame for the host's next flush."""
        if not self._outgoing:
            self._host.to_flush.append(self)
        self._outgoing.append(frame)

    def flush(self) -> None:
        """Write what was collected; a receiver that reads too slowly loses the connection."""
        if not self._outgoing:
            return
        if self._transport is not None and not self._transport.is_closing():
            if self._transport.get_write_buffer_size() > BUFFER_BYTES_MAX:
                logger.warning("%s reads too slowly; closing", self.name)
                self._transport.abort()
            else:
                self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

    def refuse(self, reason: str) -> None:
        """Log, tell the other side, close."""
        logger.warning("%s: %s; closing", self.name, reason)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame_control(Goodbye(reason)))
            self._transport.close()

    def close(self) -> None:
        """Close without a reason."""
        if self._transport is not None:
            self._transport.close()

    def _no_hello(self) -> None:
        if self.hello is None:
            self.refuse(f"no hello within {HELLO_TIMEOUT_SECONDS} s")

    def _on_frame(self, group: int, frame: Message | Control) -> None:
        hello = self.hello
        if hello is None:
            self._on_hello(frame)
        elif isinstance(frame, Request):
            if hello.role != "clients" and (hello.role != "client" or frame.client != hello.number):
                raise FrameError(f"a request of client {frame.client} on a connection of {self.name}")
            if len(frame.body) > REQUEST_SIZE_MAX:
                raise FrameError(f"a request of {len(frame.body)} bytes; at most {REQUEST_SIZE_MAX} are allowed")
            self._host.on_request(self, group, frame)
        elif isinstance(frame, _UNEXPECTED):
            raise FrameError(f"unexpected {type(frame).__name__}")
        elif isinstance(frame, StatusRequest):
            self.send(frame_control(self._host.status(frame.group)))
        elif isinstance(frame, Goodbye):
            self.close()
        elif hello.role != "replica" or frame.replica != hello.number:
            raise FrameError(f"a {type(frame).__name__} of replica {frame.replica} on a connection of {self.name}")
        else:
            self._host.on_peer_message(group, frame)

    def _on_hello(self, frame: Message | Control) -> None:
        if not isinstance(frame, Hello):
            raise FrameError(f"the first frame is a {type(frame).__name__}, not a Hello")
        if frame.version != PROTOCOL_VERSION:
            raise FrameError(f"protocol version {frame.version}; this server speaks {PROTOCOL_VERSION}")
        if frame.cluster != self._host.cluster:
            raise FrameError(f"cluster {frame.cluster}; this replica belongs to cluster {self._host.cluster}")
        if frame.role == "replica":
            known = 0 <= frame.number < self._host.replica_count and frame.number != self._host.replica
        elif frame.role == "clients":
            known = frame.number == 0
        else:
            known = frame.role == "client" and frame.number >= 0
        if not known:
            raise FrameError(f"no {frame.role} {frame.number} is known to this replica")
        self.hello = frame
        self.name = f"{frame.role} {frame.number} ({self.name})"
        self.send(frame_control(self._host.hello()))


class InboundHost:
    """What an Inbound needs of the server; each is called in the event loop's thread.

    ``on_request``, ``on_peer_message`` and ``status`` take the number of a group (``status`` also None) and raise
    UnknownGroupError for one that is not run here. ``clients``: (group, client) → connection of its latest request.
    """

    def __init__(
        self,
        *,
        cluster: int,
        replica: int,
        replica_count: int,
        frame_size_max: int,
        on_request: Callable[[Inbound, int, Request], None],
        on_peer_message: Callable[[int, Message], None],
        status: Callable[[int | None], Status],
        flush_later: Callable[[], None],
        sessions: bool = False,
    ) -> None:
        self.sessions = sessions
        self.cluster = cluster
        self.replica = replica
        self.replica_count = replica_count
        self.frame_size_max = frame_size_max
        self.on_request = on_request
        self.on_peer_message = on_peer_message
        self.status = status
        self.flush_later = flush_later
        self.to_flush: list[Inbound] = []
        self.connections: set[Inbound] = set()
        self.clients: dict[tuple[int, int], Inbound] = {}

    def hello(self) -> Hello:
        """The server's own hello."""
        return Hello(PROTOCOL_VERSION, self.cluster, "replica", self.replica, self.sessions)

    def opened(self, connection: Inbound) -> None:
        """A connection was accepted."""
        self.connections.add(connection)

    def closed(self, connection: Inbound) -> None:
        """A connection is gone; replies to its client are dropped until the client comes back."""
        self.connections.discard(connection)
        for client in connection.clients:
            if self.clients.get(client) is connection:
                del self.clients[client]

    def took(self, connection: Inbound, group: int, client: int) -> None:
        """The client's latest request to the group came on this connection."""
        key = (group, client)
        if self.clients.get(key) is not connection:
            self.clients[key] = connection
            connection.clients.add(key)
