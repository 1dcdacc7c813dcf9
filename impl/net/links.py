"""Links of a server to the other replicas, kept up by dialling again.

A pair of replicas has two connections, one dialled by each; a replica sends on the one it dialled. Sending never waits:
what cannot be sent now (no connection, or more than BUFFER_BYTES_MAX unsent) is dropped, as the protocol allows.
"""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import time

from viewproof.impl.interface.ranges import REASON_SIZE_MAX
from viewproof.impl.net.address import address_text
from viewproof.impl.net.framing import (
    HELLO_SIZE_MAX,
    PROTOCOL_VERSION,
    FrameError,
    FrameReader,
    Goodbye,
    Hello,
    frame_control,
)
from viewproof.impl.net.limits import BUFFER_BYTES_MAX, LogBudget
from viewproof.impl.net.peers import Peers
from viewproof.impl.net.tls import certificate_text, dialling_options, expiry_of, subject_error

__all__ = ["PeerLink"]

BACKOFF_SECONDS_MIN = 0.02
BACKOFF_SECONDS_MAX = 1.0
CONNECT_TIMEOUT_SECONDS = 2.0
HELLO_SECONDS_MAX = 2.0
"""A peer that took the connection and has said nothing for so long is mute."""
UNHEARD_MAX = 8
"""So many connections in a row that were taken and closed without a byte are no replica that starts or ends."""
UNACKNOWLEDGED_SECONDS_MAX = 5.0


class _Dialled(asyncio.Protocol):
    """One connection of a link; what an earlier one still hears is nothing to it."""

    def __init__(self, link: PeerLink) -> None:
        self._link = link

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        if not self._link.on_made(self, transport):
            transport.abort()

    def data_received(self, data: bytes) -> None:
        self._link.on_data(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.on_lost(self, exc)


class PeerLink:
    """The dialled connection to one other replica. ``send`` only collects; ``flush`` writes what was collected.

    ``connected``: the other side has said hello, and is who it should be.
    """

    def __init__(self, peer: int, peers: Peers, log: LogBudget) -> None:
        self.peer = peer
        self.dropped = 0
        self.connected = False
        self._peers = peers
        self._log = log
        self._address = peers.addresses[peer]
        self._where = f"replica {peer} at {address_text(self._address)}"
        self._transport: asyncio.Transport | None = None
        self._dialled: _Dialled | None = None
        self._lost = asyncio.Event()
        self._reader = FrameReader(HELLO_SIZE_MAX)
        self._outgoing: list[bytes] = []
        self._refusal = ""
        self._unheard = 0
        self._expires_at = float("inf")
        self._made_at = float("inf")
        self._random = random.Random(f"{peers.replica}-{peer}")

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
        ready = self.connected and transport is not None and not transport.is_closing()
        if transport is not None and ready and transport.get_write_buffer_size() <= BUFFER_BYTES_MAX:
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
                        await self._dial(_Dialled(self))
                    await self._lost.wait()
                except ssl.SSLError as error:
                    self._refusal = str(error)
                    self._note("dialled", f"{self._where}: {certificate_text(error)}")
                except (OSError, TimeoutError):
                    pass
                self._let_go()
                if loop.time() - started > BACKOFF_SECONDS_MAX and not self._refusal:
                    backoff = BACKOFF_SECONDS_MIN
                await asyncio.sleep(backoff * self._random.uniform(0.5, 1.0))
                backoff = min(backoff * 2, BACKOFF_SECONDS_MAX)
        finally:
            self._let_go()

    async def _dial(self, dialled: _Dialled) -> None:
        self._dialled = dialled
        options = dialling_options(self._peers.tls, self._address[0])
        await asyncio.get_running_loop().create_connection(lambda: dialled, *self._address, **options)

    def _let_go(self) -> None:
        """Whatever is left of a connection ends, unheard."""
        transport, self._transport, self._dialled, self.connected = self._transport, None, None, False
        self._outgoing.clear()
        if transport is not None and not transport.is_closing():
            transport.abort()

    def on_made(self, dialled: _Dialled, transport: asyncio.Transport) -> bool:
        """Say who we are; False if nobody waits for this connection any more."""
        if dialled is not self._dialled:
            return False
        self._transport = transport
        self._made_at = asyncio.get_running_loop().time()
        self._unheard += 1
        self._reader = FrameReader(HELLO_SIZE_MAX)
        self._expires_at = expiry_of(transport)
        _set_user_timeout(transport)
        transport.write(frame_control(self._peers.hello()))
        return True

    def on_data(self, dialled: _Dialled, data: bytes) -> None:
        """The other side says hello, or goodbye with a reason; protocol messages come on the connection it dialled."""
        if dialled is not self._dialled or self._transport is None or self._transport.is_closing():
            return
        self._unheard = 0
        try:
            for _, frame in self._reader.feed_routed(data):
                if isinstance(frame, Goodbye):
                    self._on_goodbye(frame)
                elif not isinstance(frame, Hello):
                    raise FrameError(f"unexpected {type(frame).__name__}")
                elif (reason := self._reason(frame)) is not None:
                    self._close(f"{self._where}: {reason}", reason)
                    return
                else:
                    self.connected = True
        except FrameError as error:
            self._close(f"{self._where}: {error}", str(error))

    def _reason(self, hello: Hello) -> str | None:
        """Why this is not the replica that was dialled, or None."""
        if hello.version != PROTOCOL_VERSION:
            return f"protocol version {hello.version}; this one speaks {PROTOCOL_VERSION}"
        if (hello.cluster, hello.role) != (self._peers.cluster, "replica"):
            return f"{hello.role} {hello.number} of cluster {hello.cluster}; replica {self.peer} was dialled"
        if self._peers.tls is not None and self._transport is not None:
            reason = subject_error(self._transport, self._peers.cluster, "replica", self.peer)
            if reason is not None:
                return reason
        return self._peers.refusal(hello, self.peer)

    def _on_goodbye(self, frame: Goodbye) -> None:
        if frame.stops:
            text = f"{self._where} has stopped: {frame.reason}"
            if self._peers.note(self.peer, "stopped", text, lasting=True):
                self._log.note(text)
        if frame.temporary:
            return
        self._refusal = frame.reason
        text = f"{self._where} refuses this one: {frame.reason}"
        self._note("refuses", text)

    def _close(self, text: str, reason: str) -> None:
        """Tell the other side why, and close; the log has it once while it lasts."""
        self.connected = False
        self._refusal = reason
        self._note("dialled", text)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame_control(Goodbye(reason[:REASON_SIZE_MAX])))
            self._transport.close()

    def _note(self, what: str, text: str) -> None:
        """A problem; the log has it once while it lasts."""
        if self._peers.note(self.peer, what, text):
            self._log.note(text)

    def redial(self) -> None:
        """Begin a new connection."""
        self._let_go()
        self._lost.set()

    def look(self) -> None:
        """A certificate that has ended ends the connection; one to which nobody answers is a problem."""
        now = asyncio.get_running_loop().time()
        if self._transport is not None and not self.connected and now - self._made_at > HELLO_SECONDS_MAX:
            self._note(
                "mute", f"{self._where}: the connection is taken, and no hello comes: a process hangs, or is no replica"
            )
        if self.connected and time.time() > self._expires_at:
            self._close(f"{self._where}: its certificate has expired", "expired")

    def on_lost(self, dialled: _Dialled, exc: Exception | None) -> None:
        """Wake ``keep_up``."""
        if dialled is not self._dialled:
            return
        if isinstance(exc, ssl.SSLError) and exc.reason != "APPLICATION_DATA_AFTER_CLOSE_NOTIFY":
            self._refusal = str(exc)
            self._note("refuses", f"{self._where}: {certificate_text(exc)}")
        elif self._unheard >= UNHEARD_MAX:
            self._note(
                "mute", f"{self._where}: connections are taken and closed before a hello: no replica answers there"
            )
        self._transport = None
        self.connected = False
        self._outgoing.clear()
        self._lost.set()


def _set_user_timeout(transport: asyncio.Transport) -> None:
    """Give a peer up whose machine is gone after UNACKNOWLEDGED_SECONDS_MAX instead of TCP's quarter of an hour."""
    connection = transport.get_extra_info("socket")
    if connection is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
        milliseconds = int(UNACKNOWLEDGED_SECONDS_MAX * 1000)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
