"""Accepts connections one at a time, so that no more are ever open than there are places for.

(`asyncio`'s own server accepts all that wait at once, and fails with a traceback if the files do not suffice.)
"""

from __future__ import annotations

import asyncio
import socket
from asyncio.sslproto import SSLProtocol

from viewproof.impl.net.address import is_loopback
from viewproof.impl.net.inbound import Inbound, InboundHost
from viewproof.impl.net.tls import accepting_options

__all__ = ["Listener"]

BACKLOG = 128
PAUSE_SECONDS = 1.0
"""After the system had no file for a connection."""

UNACKNOWLEDGED_SECONDS_MAX = 30.0
"""Of what was sent: a machine that is gone, or a process that reads nothing, holds a connection no longer."""

KEEPALIVE_SECONDS = 15
"""Of silence, after which the other end is asked whether it is there; and between two of these."""

TLS_BUFFER_BYTES = 1 << 15
"""Of each connection with TLS, read at once: two records. `asyncio` would keep 256 KiB for each."""


class Listener:
    """The sockets of one address."""

    def __init__(self, host: InboundHost) -> None:
        self._host = host
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[object]] = set()

    async def open(self, host: str, port: int, loopback_only: bool = False) -> None:
        """Listen. Raises OSError, and ValueError if other machines reach the address and ``loopback_only`` is set."""
        SSLProtocol.max_size = TLS_BUFFER_BYTES
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for entry in found:
            if loopback_only and not is_loopback(str(entry[4][0])):
                raise ValueError(f"{entry[4][0]} can be reached from other machines")
        try:
            for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
                listening = socket.create_server(address[:2], family=family, backlog=BACKLOG)
                listening.setblocking(False)
                self._sockets.append(listening)
        except OSError:
            self.close()
            raise
        for listening in self._sockets:
            loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Listen no more; connections stay."""
        for listening in self._sockets:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        self._sockets.clear()

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            accepted, _ = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            self._host.log.note(f"cannot accept a connection: {error.strerror or error}")
            loop.remove_reader(listening)
            loop.call_later(PAUSE_SECONDS, self._accept_again, listening)
            return
        accepted.setblocking(False)
        _bound(accepted)
        connection = self._host.kind(self._host)
        self._host.opened(connection)
        connection.task = loop.create_task(self._serve(connection, accepted))
        self._tasks.add(connection.task)
        connection.task.add_done_callback(self._tasks.discard)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _serve(self, connection: Inbound, accepted: socket.socket) -> None:
        """Hands the socket to its connection."""
        try:
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: connection, accepted, **accepting_options(self._host.peers.tls))
        except (OSError, asyncio.CancelledError) as error:
            self._host.log.note(f"a connection was given up: {str(error) or repr(error)}", "given up")
        except Exception as error:  # a handshake that ends in a way that asyncio does not foresee
            self._host.log.note(f"a connection was given up: {error!r}", "given up")
        else:
            return
        accepted.close()
        self._host.closed(connection)


def _bound(accepted: socket.socket) -> None:
    """A connection ends if its other end is gone, also if nothing is sent."""
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_SECONDS)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_SECONDS)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNACKNOWLEDGED_SECONDS_MAX * 1000))
