"""A socket that speaks frames: for messages that no client and no replica would send."""

from __future__ import annotations

import socket

import msgspec

from viewproof.impl.interface.messages import Message, Reply, Request
from viewproof.impl.net.address import Address
from viewproof.impl.net.framing import (
    PROTOCOL_VERSION,
    Control,
    FrameReader,
    Goodbye,
    Hello,
    NotPrimary,
    frame_control,
    frame_message,
)


def client_hello(number: int, cluster: int = 7) -> Hello:
    return Hello(PROTOCOL_VERSION, cluster, "client", number)


def replica_hello(address: Address, number: int, cluster: int = 7) -> Hello:
    """What replica ``number`` would say, as far as others can know: it has their configuration."""
    with RawConnection(address, client_hello(0, cluster)) as connection:
        there = connection.next()
    assert isinstance(there, Hello)
    return msgspec.structs.replace(there, number=number, incarnation=1, positions=())


class RawConnection:
    """One connection; a ``hello`` is sent at once."""

    def __init__(self, address: Address, hello: Hello | None) -> None:
        self.socket = socket.create_connection(address, 60)
        self.socket.settimeout(60)
        self.reader = FrameReader()
        self.frames: list[Message | Control] = []
        if hello is not None:
            self.socket.sendall(frame_control(hello))

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def next(self) -> Message | Control | None:
        """The next frame, None at the end of the stream."""
        while not self.frames:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.frames = self.reader.feed(data)
        return self.frames.pop(0)

    def goodbye(self) -> str:
        """The reason with which the server closes."""
        reason = ""
        while (frame := self.next()) is not None:
            if isinstance(frame, Goodbye):
                reason = frame.reason
        return reason

    def ask(self, request: Request) -> Reply | None:
        """Send a request and wait for its reply; None if it was dropped, or by a replica that is not the primary."""
        self.socket.sendall(frame_message(request))
        self.socket.settimeout(2)
        try:
            while (frame := self.next()) is not None and not isinstance(frame, NotPrimary):
                if isinstance(frame, Reply):
                    return frame
        except TimeoutError:
            return None
        return None
