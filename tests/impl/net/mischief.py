"""Proxies between clients and replicas that lose, delay, swap and copy requests, lose answers and cut connections.

A copy of a request arrives much later, over a connection of its own, at any replica: what a network that keeps
datagrams, or a client library that retries too eagerly, may do to a cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from viewproof.impl.net.address import Address
from viewproof.impl.net.cluster import HOST

LENGTH_BYTES = 4


@dataclass(frozen=True)
class Chances:
    """Of each request: to be lost, held back behind the next one, copied; of each answer: that the connection ends."""

    lose: float = 0.03
    hold: float = 0.1
    copy: float = 0.3
    cut: float = 0.03
    copy_seconds_max: float = 1.5


class Mischief:
    """One proxy for each replica; ``addresses`` in their order. ``counts`` says what was done."""

    def __init__(self, targets: Sequence[Address], seed: int, chances: Chances | None = None) -> None:
        self.addresses: tuple[Address, ...] = ()
        self.counts: Counter[str] = Counter()
        self._targets = tuple(targets)
        self._chances = chances or Chances()
        self._random = Random(seed)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Mischief:
        for target in self._targets:
            server = await asyncio.start_server(lambda r, w, target=target: self._serve(target, r, w), HOST, 0)
            self._servers.append(server)
        self.addresses = tuple((HOST, server.sockets[0].getsockname()[1]) for server in self._servers)
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: object) -> None:
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, target: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection(*target)
        except OSError:
            writer.close()
            return
        self._spawn(self._answers(to_reader, writer))
        with contextlib.suppress(OSError, EOFError):
            await self._requests(reader, to_writer)
        to_writer.close()
        writer.close()

    async def _requests(self, reader: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        hello = await _frame(reader)
        to.write(hello)
        held: list[bytes] = []
        while True:
            try:
                async with asyncio.timeout(0.2 if held else None):
                    frame = await _frame(reader)
            except TimeoutError:
                to.writelines(held)
                held.clear()
                continue
            if self._happens("copy"):
                self._spawn(self._copy(hello, frame))
            if self._happens("lose"):
                continue
            if not held and self._happens("hold"):
                held.append(frame)
                continue
            to.writelines([frame, *held])
            held.clear()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            while data := await reader.read(1 << 16):
                if self._happens("cut"):
                    break
                writer.write(data)
        writer.close()

    async def _copy(self, hello: bytes, frame: bytes) -> None:
        await asyncio.sleep(self._random.uniform(0.0, self._chances.copy_seconds_max))
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(*self._random.choice(self._targets))
            writer.write(hello + frame)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await reader.read()
            writer.close()

    def _happens(self, name: str) -> bool:
        happens = self._random.random() < getattr(self._chances, name)
        self.counts[name] += happens
        return happens


async def _frame(reader: asyncio.StreamReader) -> bytes:
    """One frame with its length."""
    head = await reader.readexactly(LENGTH_BYTES)
    return head + await reader.readexactly(int.from_bytes(head, "big"))
