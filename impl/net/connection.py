"""A client's connection to one replica: dial, say hello, and the frames that come back."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Iterable, Sequence
from typing import TypeVar

from viewproof.impl.groups.group import NAMESPACES
from viewproof.impl.machine.namespaces import NamespaceLayout
from viewproof.impl.net.address import Address, address_text
from viewproof.impl.net.errors import RefusedError
from viewproof.impl.net.framing import (
    PROTOCOL_VERSION,
    FrameError,
    FrameReader,
    Goodbye,
    Hello,
    Status,
    StatusRequest,
    frame_control,
)
from viewproof.impl.net.tls import Tls, TlsError, certificate_text, dialling_options, subject_error

__all__ = ["Connection", "answers_of", "fetch_status", "layout_of", "open_connection"]

AnswerT = TypeVar("AnswerT")


class Connection(asyncio.Protocol):
    """Frames go to ``inbox``, None at the end.

    ``sessions``: the replica's cluster has clients register; ``replica`` is its index, of ``replica_count`` (0: it does
    not say).
    """

    def __init__(self, hello: Hello, group: int = 0) -> None:
        self.inbox: asyncio.Queue[object] = asyncio.Queue()
        self.sessions = False
        self.error: Exception | None = None
        self.replica = -1
        self.replica_count = 0
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
        self.error = exc
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

    def certificate_error(self, cluster: int, replica: int) -> str | None:
        """Why the certificate at the other end is not that of this replica, or None."""
        return (
            "the connection is gone"
            if self._transport is None
            else subject_error(self._transport, cluster, "replica", replica)
        )

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None and self.alive:
            self._transport.close()


async def open_connection(
    address: Address, cluster: int, client_id: int, timeout_seconds: float, group: int = 0, tls: Tls | None = None
) -> Connection | None:
    """Dial and exchange hellos, to talk to a group; None if nobody answers in time. Raises RefusedError."""
    if tls is not None:
        with contextlib.suppress(TlsError):
            tls.refresh()
    hello = Hello(version=PROTOCOL_VERSION, cluster=cluster, role="client", number=client_id)
    loop = asyncio.get_running_loop()
    connection: Connection | None = None
    try:
        async with asyncio.timeout(timeout_seconds):
            options = dialling_options(tls, address[0])
            _, connection = await loop.create_connection(lambda: Connection(hello, group), *address, **options)
            frame = await connection.inbox.get()
    except ssl.SSLError as error:
        text = f"replica at {address_text(address)}: {certificate_text(error)}"
        raise RefusedError(text, executed=False) from error
    except (OSError, TimeoutError):
        frame = None
    except asyncio.CancelledError:
        if connection is not None:
            connection.close()
        raise
    if frame is None and connection is not None and isinstance(connection.error, ssl.SSLError):
        text = f"replica at {address_text(address)}: {certificate_text(connection.error)}"
        raise RefusedError(text, executed=False)
    if isinstance(frame, Goodbye) and not frame.temporary:
        if connection is not None:
            connection.close()
        raise RefusedError(f"replica at {address_text(address)} refused: {frame.reason}", executed=False)
    if isinstance(frame, Hello) and connection is not None:
        wrong = None if tls is None else connection.certificate_error(cluster, frame.number)
        if wrong is not None:
            connection.close()
            raise RefusedError(f"replica {frame.number} at {address_text(address)}: {wrong}", executed=False)
        connection.sessions = frame.sessions
        connection.replica = frame.number
        connection.replica_count = 0 if frame.configuration is None else frame.configuration.replica_count
        return connection
    if connection is not None:
        connection.close()
    return None


async def answers_of(asked: Iterable[Awaitable[AnswerT]]) -> list[AnswerT | RefusedError]:
    """What replicas that are asked at the same time answer, or why one refuses. Raises RefusedError if all refuse."""

    async def answer(one: Awaitable[AnswerT]) -> AnswerT | RefusedError:
        try:
            return await one
        except RefusedError as error:
            return error

    answers = await asyncio.gather(*map(answer, asked))
    refusals = [each for each in answers if isinstance(each, RefusedError)]
    if refusals and len(refusals) == len(answers):
        raise refusals[0]
    return list(answers)


async def layout_of(addresses: Sequence[Address], cluster: int, tls: Tls | None) -> NamespaceLayout:
    """How the cluster packs the names of partitions, by the first replica that answers; the default if none does."""
    for address in addresses:
        with contextlib.suppress(RefusedError):
            status = await fetch_status(address, cluster, tls=tls)
            if status is not None:
                return NamespaceLayout(*status.namespace_bits)
    return NAMESPACES


async def fetch_status(
    address: Address, cluster: int, timeout_seconds: float = 1.0, group: int | None = None, tls: Tls | None = None
) -> Status | None:
    """What the process at ``address`` says of its replica in a group (None: its first); None: no answer in time.

    Raises RefusedError if it answers that it is another cluster's, or does not run the group.
    """
    connection = await open_connection(address, cluster, 0, timeout_seconds, tls=tls)
    if connection is None:
        return None
    try:
        async with asyncio.timeout(timeout_seconds):
            connection.send(frame_control(StatusRequest(group)))
            while True:
                frame = await connection.inbox.get()
                if isinstance(frame, Status):
                    return frame
                if isinstance(frame, Goodbye) and not frame.temporary:
                    raise RefusedError(f"replica at {address_text(address)} refused: {frame.reason}")
                if frame is None:
                    return None
    except TimeoutError:
        return None
    finally:
        connection.close()
