"""Load on the partitions of a cluster, and what its producers may conclude from the answers (seed 003, I15).

Every message is unique, so that a message that was lost, doubled or moved shows when the partitions are read.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from viewproof.impl.groups.group import PARTITIONS
from viewproof.impl.machine.namespaces import NamespaceLayout
from viewproof.impl.net.address import Address
from viewproof.impl.net.client import EvictedError, RequestTimeoutError
from viewproof.impl.net.partitions import PartitionsClient
from viewproof.impl.net.tls import Tls

__all__ = ["Append", "PartitionLoad", "StoredOffsets", "check_appends"]

MESSAGES_MAX = 3
POLL_COUNT = 500
STORED = 0.2
"""Part of the answered appends after which the producer stores the offset behind them, as a consumer of its number."""


@dataclass(frozen=True, slots=True)
class Append:
    """One append as its producer saw it, times in nanoseconds; `offset` None: it had no answer, and may be there."""

    producer: int
    namespace: int
    messages: tuple[bytes, ...]
    called: int
    returned: int
    offset: int | None


class PartitionLoad:
    """Seeded producers on shared partitions of a group: those of `namespaces`, else so many (`partitions`).

    `appends` grows with every answered or given-up append, `given_up` with why a request had no answer.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        cluster: int,
        *,
        clients: int = 4,
        partitions: int = 3,
        seed: int = 1,
        rate: float | None = None,
        timeout_seconds: float = 60.0,
        group: int = PARTITIONS.number,
        namespaces: Sequence[int] = (),
        tls: Tls | None = None,
    ) -> None:
        self._tls = tls
        layout = NamespaceLayout()
        self.appends: list[Append] = []
        self.given_up: list[str] = []
        self.contents: dict[int, list[bytes]] = {}
        self.offsets = StoredOffsets()
        drawn = [layout.pack(0, number // 2, number % 2) for number in range(partitions)]
        self._namespaces = list(namespaces) or drawn
        self._group = group
        self._addresses = tuple(addresses)
        self._cluster = cluster
        self._timeout_seconds = timeout_seconds
        self._pause_seconds = clients / rate if rate else 0.0
        self._next_client_id = 1
        self._clients = [self._new_client() for _ in range(clients)]
        self._randoms = [random.Random(f"{seed}-partitions-{group}-{number}") for number in range(clients)]
        self._count = 0

    async def run(self, *, requests: int, at_least_until: asyncio.Event | None = None) -> None:
        """Run until `requests` more were made over all producers, and on until the event is set."""
        limit = self._count + requests

        def go_on() -> bool:
            return self._count < limit or (at_least_until is not None and not at_least_until.is_set())

        await asyncio.gather(*(self._run_producer(number, go_on) for number in range(len(self._clients))))

    @property
    def unanswered(self) -> int:
        """Requests without an answer."""
        return len(self.given_up)

    @property
    def latencies_ns(self) -> list[int]:
        """How long each answered append took."""
        return [append.returned - append.called for append in self.appends if append.offset is not None]

    async def read_all(self) -> None:
        """Polls every partition to its end, into `contents`."""
        for namespace in self._namespaces:
            messages: list[bytes] = []
            while True:
                polled = await self._clients[0].poll(namespace, len(messages), POLL_COUNT)
                messages += polled.messages
                if len(messages) >= polled.end:
                    break
            self.contents[namespace] = messages
        for namespace, consumer in self.offsets.readers:
            self.offsets.read(namespace, consumer, await self._clients[0].read_offset(namespace, consumer))

    async def close(self) -> None:
        """Close the clients."""
        for client in self._clients:
            await client.close()

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the answers, `contents` and stored offsets; see `check_appends` and `StoredOffsets`."""
        return check_appends(self.appends, self.contents) + tuple(self.offsets.problems)

    def _new_client(self) -> PartitionsClient:
        client = PartitionsClient(
            self._addresses,
            self._cluster,
            self._next_client_id,
            self._timeout_seconds,
            group=self._group,
            tls=self._tls,
        )
        self._next_client_id += 1
        return client

    async def _run_producer(self, number: int, go_on: Callable[[], bool]) -> None:
        source = self._randoms[number]
        while go_on():
            self._count += 1
            messages = tuple(
                b"%d.%d.%d" % (number, self._count, part) for part in range(source.randint(1, MESSAGES_MAX))
            )
            namespace = source.choice(self._namespaces)
            offset = await self._append(number, namespace, messages)
            if offset is not None and source.random() < STORED:
                await self._store(number, namespace, offset + len(messages))
            if self._pause_seconds:
                await asyncio.sleep(self._pause_seconds * source.uniform(0.5, 1.5))

    async def _append(self, number: int, namespace: int, messages: tuple[bytes, ...]) -> int | None:
        offset: int | None = None
        called = time.monotonic_ns()
        async with self._client(number) as client:
            offset = await client.append_messages(namespace, messages)
        self.appends.append(Append(number, namespace, messages, called, time.monotonic_ns(), offset))
        return offset

    async def _store(self, number: int, namespace: int, offset: int) -> None:
        self.offsets.asked(namespace, number, offset)
        async with self._client(number) as client:
            await client.store_offset(namespace, number, offset)
            self.offsets.answered(namespace, number, offset)

    @asynccontextmanager
    async def _client(self, number: int) -> AsyncIterator[PartitionsClient]:
        """A producer's client for one request, which may have no answer: it is counted, and after a timeout the
        producer goes on as another client.
        """
        client = self._clients[number]
        try:
            yield client
        except EvictedError as error:
            self.given_up.append(str(error))
        except RequestTimeoutError as error:
            self.given_up.append(str(error))
            await client.close()
            self._clients[number] = self._new_client()


class StoredOffsets:
    """Offsets that were stored, per namespace and consumer, each with one writer; what is read must be one of them:
    the last that was answered, or one without an answer, which may be executed at any time.
    """

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._answered: dict[tuple[int, int], int] = {}
        self._unanswered: dict[tuple[int, int], set[int]] = {}

    @property
    def readers(self) -> list[tuple[int, int]]:
        """Those that stored, or may have stored, something."""
        return sorted(self._unanswered)

    def asked(self, namespace: int, consumer: int, offset: int) -> None:
        """The offset is being stored."""
        self._unanswered.setdefault((namespace, consumer), set()).add(offset)

    def answered(self, namespace: int, consumer: int, offset: int) -> None:
        """It is stored."""
        self._unanswered[namespace, consumer].discard(offset)
        self._answered[namespace, consumer] = offset

    def read(self, namespace: int, consumer: int, offset: int | None) -> None:
        """This offset was read, with nothing under way."""
        last = self._answered.get((namespace, consumer))
        if offset != last and offset not in self._unanswered[namespace, consumer]:
            self.problems.append(f"{namespace}: consumer {consumer} stored {last}, but {offset} was read")


def check_appends(appends: Sequence[Append], contents: dict[int, list[bytes]]) -> tuple[str, ...]:
    """Problems, none if all is well: every answered append lies at its offset; no message is there twice or unsent.

    An append that was called after another one of its partition was answered has the higher offset.
    """
    problems: list[str] = []
    for namespace, messages in sorted(contents.items()):
        own = [append for append in appends if append.namespace == namespace]
        sent = {message for append in own for message in append.messages}
        problems += [f"{namespace}: {message!r} was never sent" for message in messages if message not in sent]
        if len(set(messages)) < len(messages):
            doubled = sorted({message for message in messages if messages.count(message) > 1})
            problems.append(f"{namespace}: {doubled[:3]} are there more than once")
        for append in own:
            if append.offset is not None:
                there = tuple(messages[append.offset : append.offset + len(append.messages)])
                if there != append.messages:
                    problems.append(
                        f"{namespace}: offset {append.offset} was answered for {append.messages}, but {there} is there"
                    )
        problems += _late_offsets(namespace, [append for append in own if append.offset is not None])
    unread = {append.namespace for append in appends} - contents.keys()
    problems += [f"{namespace}: was not read" for namespace in sorted(unread)]
    return tuple(problems)


def _late_offsets(namespace: int, answered: list[Append]) -> list[str]:
    problems: list[str] = []
    by_return = sorted(answered, key=lambda append: append.returned)
    position, end = 0, 0
    for append in sorted(answered, key=lambda append: append.called):
        while position < len(by_return) and by_return[position].returned < append.called:
            before = by_return[position]
            end = max(end, (before.offset or 0) + len(before.messages))
            position += 1
        if (append.offset or 0) < end:
            problems.append(f"{namespace}: offset {append.offset} was given after those below {end} were answered")
    return problems
