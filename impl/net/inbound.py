"""Connections accepted from anyone: of other replicas, and of clients. Bad frames close them, with the reason logged.

Until it has said hello a connection may send little and must be quick; then its role says what it may do. Nothing that
arrives here ends the process: it is refused by name, and counted (`Status.refused`).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import cast, get_args

from viewproof.impl.groups.group import UnknownGroupError
from viewproof.impl.interface.messages import Eviction, Message, Reply, Request
from viewproof.impl.interface.ranges import REASON_SIZE_MAX
from viewproof.impl.net.address import address_text
from viewproof.impl.net.expiry import ExpiryWatch
from viewproof.impl.net.framing import (
    CLIENT_FRAME_SIZE_MAX,
    FRAME_SIZE_MAX,
    HELLO_SIZE_MAX,
    PROTOCOL_VERSION,
    Control,
    FrameError,
    FrameReader,
    Goodbye,
    Hello,
    Holds,
    NotPrimary,
    Status,
    StatusRequest,
    frame_control,
)
from viewproof.impl.net.limits import (
    BUFFER_BYTES_MAX,
    CLIENT_BYTES_MAX,
    CLIENT_IDS_MAX,
    CLIENT_SEND_BYTES_MAX,
    Limits,
    LogBudget,
)
from viewproof.impl.net.peers import Peers
from viewproof.impl.net.tls import expiry_of

__all__ = ["Inbound", "InboundHost"]

WRITE_HIGH_WATER = 1 << 20
"""Bytes in a send buffer from which on nothing more is read from the connection."""

_UNEXPECTED = frozenset({Hello, Status, NotPrimary, Reply, Eviction})
_CONTROLS = frozenset(get_args(Control))

logger = logging.getLogger("viewproof.impl.net")


class Inbound(asyncio.Protocol):
    """An accepted connection."""

    def __init__(self, host: InboundHost) -> None:
        self._host = host
        self._reader = FrameReader(HELLO_SIZE_MAX)
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[bytes] = []
        self.task: asyncio.Task[object] | None = None
        self.hello: Hello | None = None
        self.clients: set[tuple[int, int]] = set()
        self.name = "?"
        self.opened_at = self.active_at = self._frame_at = host.now()
        self._slow_at: float | None = None
        self._ending_at: float | None = None
        self._asked: set[int | None] = set()
        self._expires_at = float("inf")
        self._counted = 0

    @property
    def is_client(self) -> bool:
        """True once it has said hello as a client."""
        return self.hello is not None and self.hello.role != "replica"

    @property
    def certificate(self) -> tuple[float, str] | None:
        """When its certificate ends, and who showed it; None until it has said hello."""
        return None if self.hello is None else (self._expires_at, f"{self.hello.role} {self.hello.number}")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the hello."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=WRITE_HIGH_WATER)
        self._expires_at = expiry_of(transport)
        address = transport.get_extra_info("peername")
        self.name = address_text(address[:2]) if address else "?"

    def data_received(self, data: bytes) -> None:
        """Hand over every whole frame; the host flushes once all input that is here now was handed over."""
        now = self._host.now()
        if not self._reader.held:
            self._frame_at = now
        try:
            for group, frame in self._reader.feed_routed(data):
                if self._transport is None or self._transport.is_closing():
                    return
                self.active_at = self._frame_at = now
                self._on_frame(group, frame)
            self._count_held()
        except (FrameError, UnknownGroupError) as error:
            self._host.refused[error.what if isinstance(error, FrameError) else "group"] += 1
            self.refuse(str(error))
        finally:
            self._host.flush_later()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._transport = None
        self._host.closed(self)

    def eof_received(self) -> None:
        """The other side sends no more: what it was sent is written out, and that is the end."""
        self._ending_at = self._ending_at or self._host.now()

    def pause_writing(self) -> None:
        """The other side does not read: nothing more is taken from it."""
        self._slow_at = self._host.now()
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        self._slow_at = None
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def send(self, frame: bytes) -> None:
        """Collect a frame for the host's next flush."""
        if not self._outgoing:
            self._host.to_flush.append(self)
        self._outgoing.append(frame)

    def flush(self) -> None:
        """Write what was collected; a receiver that reads too slowly loses the connection."""
        self._asked.clear()
        if not self._outgoing:
            return
        if self._transport is not None and not self._transport.is_closing():
            most = CLIENT_SEND_BYTES_MAX if self.is_client else BUFFER_BYTES_MAX
            if self._transport.get_write_buffer_size() > most:
                self.abort("reads too slowly")
            else:
                self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()

    def refuse(self, reason: str, temporary: bool = False) -> None:
        """Log, tell the other side, close. ``temporary``: it may try again."""
        self._host.log.note(f"{self.name}: {reason}; closing", reason)
        self.part(reason, temporary)

    def part(self, reason: str, temporary: bool = True, stops: bool = False, at_once: bool = False) -> None:
        """Tell the other side, close. ``stops``: this process ends. ``at_once``: it need not read what it was sent."""
        if self._transport is not None and not self._transport.is_closing():
            if reason:
                self._transport.write(frame_control(Goodbye(reason[:REASON_SIZE_MAX], temporary, stops)))
            self._end(self._transport)
            if at_once and self._transport.get_write_buffer_size():
                self._transport.abort()
        elif self._transport is None and self.task is not None:
            self.task.cancel(reason)

    def abort(self, reason: str) -> None:
        """Log, close without a word: the other side does not read."""
        self._host.log.note(f"{self.name}: {reason}; closing")
        if self._transport is not None:
            self._transport.abort()

    def _end(self, transport: asyncio.Transport) -> None:
        """Closes it once what waits is written, for which there is some time (`look`)."""
        self._ending_at = self._ending_at or self._host.now()
        transport.close()

    def look(self, now: float, limits: Limits) -> None:
        """Close it if it has done nothing for too long."""
        if self._ending_at is not None:
            if now - self._ending_at > limits.slow_seconds:
                self.abort(f"has not read to the end within {limits.slow_seconds:g} s")
        elif self.hello is None:
            if now - self.opened_at > limits.hello_seconds:
                self.refuse(f"no hello within {limits.hello_seconds:g} s")
        elif time.time() > self._expires_at:
            self.refuse("its certificate has expired")
        elif self._slow_at is not None:
            if now - self._slow_at > limits.slow_seconds:
                self.abort(f"has read nothing for {limits.slow_seconds:g} s")
        elif self._reader.held and now - self._frame_at > limits.frame_seconds:
            self.refuse(f"a frame has not ended within {limits.frame_seconds:g} s", temporary=True)
        elif self.is_client and now - self.active_at > limits.idle_seconds:
            self.part(f"nothing was asked for {limits.idle_seconds:g} s")

    def release(self) -> None:
        """What it held is free."""
        self._host.held -= self._counted
        self._counted = 0

    def _count_held(self) -> None:
        """Unfinished frames of clients share one budget."""
        if self.hello is not None and not self.is_client:
            return
        self._host.held += self._reader.held - self._counted
        self._counted = self._reader.held
        if self._counted and self._host.held > CLIENT_BYTES_MAX:
            self._host.refused["frame: no room"] += 1
            self.refuse(f"{self._host.held} bytes wait for the rest of their frames; that is too much", temporary=True)

    def _on_frame(self, group: int, frame: Message | Control) -> None:
        hello = self.hello
        if hello is None:
            self._on_hello(frame)
        elif (reason := self.speaker_error(hello, frame)) is not None:
            raise FrameError(reason)
        elif isinstance(frame, Request):
            self._host.on_request(self, group, frame)
        elif type(frame) not in _CONTROLS:
            self._host.on_peer_message(group, cast(Message, frame))
        elif isinstance(frame, StatusRequest):
            if frame.group not in self._asked:  # one answer to all that came since the last flush
                self._asked.add(frame.group)
                self.send(frame_control(self._host.status(frame.group)))
        elif isinstance(frame, Goodbye):
            self._on_goodbye(frame)
        elif isinstance(frame, Holds):
            self._host.peers.hear(frame.positions)

    def speaker_error(self, hello: Hello, frame: Message | Control) -> str | None:
        """Why who said this hello may not send this frame, or None."""
        kind = type(frame)
        if isinstance(frame, Request):
            may = hello.role == "clients" or (hello.role == "client" and frame.client == hello.number)
            return None if may else f"a request of client {frame.client} on a connection of {self.name}"
        if kind in _UNEXPECTED:
            return f"unexpected {kind.__name__}"
        if kind not in _CONTROLS:
            sender: int = frame.replica  # type: ignore[union-attr]
            may = hello.role == "replica" and sender == hello.number
            return None if may else f"a {kind.__name__} of replica {sender} on a connection of {self.name}"
        if kind is Holds and hello.role != "replica":
            return f"a Holds on a connection of {self.name}"
        return None

    def _on_goodbye(self, frame: Goodbye) -> None:
        hello = self.hello
        if frame.reason and hello is not None and hello.role == "replica":
            self._host.peers.note(hello.number, "refuses", f"replica {hello.number} refuses this one: {frame.reason}")
        if frame.reason:
            self._host.log.note(f"{self.name} refused: {frame.reason}", frame.reason)
        if self._transport is not None and not self._transport.is_closing():
            self._end(self._transport)

    def _on_hello(self, frame: Message | Control) -> None:
        if not isinstance(frame, Hello):
            raise FrameError(f"the first frame is a {type(frame).__name__}, not a Hello")
        if frame.version != PROTOCOL_VERSION:
            raise FrameError(f"protocol version {frame.version}; this server speaks {PROTOCOL_VERSION}")
        peers = self._host.peers
        if frame.cluster != peers.cluster:
            own = f"this replica belongs to cluster {peers.cluster} (--cluster {peers.cluster})"
            raise FrameError(f"cluster {frame.cluster}; {own}")
        if frame.role == "replica":
            known = 0 <= frame.number < peers.count and frame.number != peers.replica
        elif frame.role == "clients":
            known = frame.number == 0
        else:
            known = frame.role == "client" and frame.number >= 0
        if not known:
            raise FrameError(f"no {frame.role} {frame.number} is known to this replica")
        self.name = f"{frame.role} {frame.number} ({self.name})"
        if self._transport is not None and (reason := peers.certificate_error(self._transport, frame)) is not None:
            raise FrameError(reason, "certificate")
        if frame.role == "replica" and (reason := peers.refusal(frame)) is not None:
            raise FrameError(reason, "replica")
        if frame.role != "replica" and not self._host.room_for_client():
            self._host.refused["client: no place"] += 1
            self.refuse(f"all {self._host.limits.clients} places for clients are taken", temporary=True)
            return
        self.hello = frame
        self._reader.frame_size_max = CLIENT_FRAME_SIZE_MAX if self.is_client else FRAME_SIZE_MAX
        self._host.greeted(self)
        self.send(frame_control(peers.hello()))


class InboundHost:
    """What an Inbound needs of the server; each is called in the event loop's thread.

    ``on_request``, ``on_peer_message`` and ``status`` take the number of a group (``status`` also None) and raise
    UnknownGroupError for one that is not run here. ``clients``: (group, client) → connection of its latest request.
    ``kind``: what is made of a connection; ``held``: bytes of unfinished frames, but those of replicas. ``refused``
    counts what was not taken, by name.
    """

    def __init__(
        self,
        *,
        peers: Peers,
        limits: Limits,
        on_request: Callable[[Inbound, int, Request], None],
        on_peer_message: Callable[[int, Message], None],
        status: Callable[[int | None], Status],
        flush_later: Callable[[], None],
        clock: Callable[[], float] | None = None,
        kind: type[Inbound] = Inbound,
    ) -> None:
        self.kind = kind
        self._clock = clock or asyncio.get_running_loop().time
        self.peers = peers
        self.limits = limits
        self.on_request = on_request
        self.on_peer_message = on_peer_message
        self.status = status
        self.flush_later = flush_later
        self.log = LogBudget(logger.warning)
        self.expiry = ExpiryWatch(self.log)
        self.held = 0
        self.refused: Counter[str] = Counter()
        self.to_flush: list[Inbound] = []
        self.connections: dict[Inbound, None] = {}
        self.pending: dict[Inbound, None] = {}
        self.of_replicas: dict[int, Inbound] = {}
        self.clients: OrderedDict[tuple[int, int], Inbound] = OrderedDict()

    def now(self) -> float:
        """Seconds of the event loop's clock, or the one given."""
        return self._clock()

    def opened(self, connection: Inbound) -> None:
        """A connection was accepted; if too many have not said hello, the oldest of them has to go."""
        while len(self.pending) >= self.limits.pending:
            oldest = next(iter(self.pending))
            oldest.refuse("others wait to say hello", temporary=True)
            self.pending.pop(oldest, None)
        self.connections[connection] = None
        self.pending[connection] = None

    def greeted(self, connection: Inbound) -> None:
        """It has said hello. Of each other replica there is one connection: the latest."""
        self.pending.pop(connection, None)
        hello = connection.hello
        if hello is not None and hello.role == "replica":
            before = self.of_replicas.get(hello.number)
            self.of_replicas[hello.number] = connection
            if before is not None:
                before.part("this replica has another connection")

    def room_for_client(self) -> bool:
        """True if one more client may come; the one that has asked for nothing for longest may have to go for it."""
        clients = [connection for connection in self.connections if connection.is_client]
        if len(clients) < self.limits.clients:
            return True
        idle = min(clients, key=lambda connection: connection.active_at)
        if self.now() - idle.active_at < self.limits.yield_seconds:
            return False
        idle.part("another client wants the place", at_once=True)
        self.closed(idle)
        return True

    def closed(self, connection: Inbound) -> None:
        """A connection is gone; replies to its client are dropped until the client comes back."""
        self.connections.pop(connection, None)
        self.pending.pop(connection, None)
        connection.release()
        hello = connection.hello
        if hello is not None and hello.role == "replica" and self.of_replicas.get(hello.number) is connection:
            del self.of_replicas[hello.number]
        for client in connection.clients:
            if self.clients.get(client) is connection:
                del self.clients[client]

    def counts(self) -> tuple[int, int, int]:
        """Connections of replicas and of clients, and the most of clients."""
        clients = sum(connection.is_client for connection in self.connections)
        return len(self.of_replicas), clients, self.limits.clients

    def part_all(self, reason: str) -> None:
        """All may come back at once."""
        for connection in tuple(self.connections):
            connection.part(reason)

    def took(self, connection: Inbound, group: int, client: int) -> None:
        """The client's latest request to the group came on this connection.

        One connection may bring requests of any number of clients: those that came first are forgotten.
        """
        key = (group, client)
        before = self.clients.get(key)
        if before is connection:
            return
        if before is not None:
            before.clients.discard(key)
        elif len(self.clients) >= CLIENT_IDS_MAX:
            oldest, its = self.clients.popitem(last=False)
            its.clients.discard(oldest)
        self.clients[key] = connection
        connection.clients.add(key)

    async def look_after(self, seconds: float = 0.5) -> None:
        """Closes connections that do nothing for too long, and warns of certificates that end, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            self.log.release()
            now = self.now()
            for connection in tuple(self.connections):
                connection.look(now, self.limits)
            shown = (certificate for each in self.connections if (certificate := each.certificate) is not None)
            self.expiry.look((*shown, *(() if self.peers.tls is None else self.peers.tls.authorities())))
