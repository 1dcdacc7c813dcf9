"""A client's connection to one replica: dial, say hello, and the frames that come back."""

from __future__ import annotations

import asyncio

from viewproof.impl.net.address import Address, address_text
from viewproof.impl.net.errors import RefusedError
from viewproof.impl.net.framing import PROTOCOL_VERSION, FrameError, FrameReader, Goodbye, Hello, frame_control

__all__ = ["Connection", "open_connection"]


class Connection(asyncio.Protocol):
    """Frames go to ``inbox``, None at the end. ``sessions``: the replica's cluster has clients register."""

    def __init__(self, hello: Hello, group: int = 0) -> None:
        self.inbox: asyncio.Queue[object] = asyncio.Queue()
        self.sessions = False
        self._transport: asyncio.Transport | None = None
        self._hello = hello
        self._reader = FrameReader(group=group)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say who we are."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(frame_control(self._hello))

    def data_received(self, data: bytes) -> None:
        """Hand over whole frames; bad ones close the connection."""
        try:
            for frame in self._reader.feed(data):
                self.inbox.put_nowait(frame)
        except FrameError:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end."""
        self._transport = None
        self.inbox.put_nowait(None)

    @property
    def alive(self) -> bool:
        """True if what is sent now goes into the connection."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, data: bytes) -> bool:
        """Write a frame; False if the connection is gone, and nothing was sent."""
        if self._transport is None or not self.alive:
            return False
        self._transport.write(data)
        return True

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


async def open_connection(
    address: Address, cluster: int, client_id: int, timeout_seconds: float, group: int = 0
) -> Connection | None:
    """Dial and exchange hellos, to talk to a group; None if nobody answers in time. Raises RefusedError."""
    hello = Hello(version=PROTOCOL_VERSION, cluster=cluster, role="client", number=client_id)
    loop = asyncio.get_running_loop()
    connection: Connection | None = None
    try:
        async with asyncio.timeout(timeout_seconds):
            _, connection = await loop.create_connection(lambda: Connection(hello, group), *address)
            frame = await connection.inbox.get()
    except (OSError, TimeoutError):
        frame = None
    if isinstance(frame, Goodbye) and not frame.temporary:
        raise RefusedError(f"replica at {address_text(address)} refused: {frame.reason}", executed=False)
    if isinstance(frame, Hello) and connection is not None:
        connection.sessions = frame.sessions
        return connection
    if connection is not None:
        connection.close()
    return None
