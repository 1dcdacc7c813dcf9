"""Load on a cluster from several clients, recorded as a history for impl/net/history.py.

Every value written is unique to its operation, so that a read names the write it saw; keys are shared by all clients.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence

from viewproof.impl.net.address import Address
from viewproof.impl.net.client import Client, EvictedError, RequestTimeoutError
from viewproof.impl.net.history import Kind, Operation
from viewproof.impl.net.tls import Tls

__all__ = ["APPENDS", "MIXED", "Load"]

MIXED: Mapping[Kind, int] = {"get": 30, "put": 30, "append": 15, "cas": 20, "delete": 5}
"""Kind of operation → its weight among those that clients choose."""

APPENDS: Mapping[Kind, int] = {"append": 70, "get": 30}
"""Only operations that leave what was written before: a lost or a doubled one shows in every later read."""


class Load:
    """Seeded clients on shared keys. ``history`` grows with every answered or given-up operation, ``given_up`` with why
    one had no answer.

    ``rate`` is the aim in requests per second over all clients (None: as fast as answers come). The operations are
    a function of ``seed``; their interleaving is not. ``group`` is that of the keys, ``name`` how they begin.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        cluster: int,
        *,
        clients: int = 4,
        keys: int = 6,
        seed: int = 1,
        rate: float | None = None,
        timeout_seconds: float = 60.0,
        first_client_id: int = 1,
        send_twice: float = 0.0,
        group: int = 0,
        weights: Mapping[Kind, int] = MIXED,
        may_be_copied: bool = False,
        tls: Tls | None = None,
        name: str = "key",
    ) -> None:
        self._tls = tls
        self.history: list[Operation] = []
        self.latencies_ns: list[int] = []
        self.given_up: list[str] = []
        self._addresses = tuple(addresses)
        self._cluster = cluster
        self.keys = [f"{name}-{number}".encode() for number in range(keys)]
        self._timeout_seconds = timeout_seconds
        self._pause_seconds = clients / rate if rate else 0.0
        self._next_client_id = first_client_id
        self._send_twice = send_twice
        self._group = group
        self._weights = weights
        self._may_be_copied = may_be_copied
        self._clients = [self._new_client() for _ in range(clients)]
        self._randoms = [random.Random(f"{seed}-{number}") for number in range(clients)]
        self._seen: dict[bytes, bytes | None] = {}
        self._count = 0
        self._retries_closed = 0

    @property
    def unanswered(self) -> int:
        """Operations without an answer."""
        return len(self.given_up)

    @property
    def evictions(self) -> int:
        """Times a client was told that it has no session."""
        return sum(client.evictions for client in self._clients)

    @property
    def retries(self) -> int:
        """Times a request was sent again."""
        return self._retries_closed + sum(client.retries for client in self._clients)

    async def run(
        self,
        *,
        requests: int | None = None,
        seconds: float | None = None,
        at_least_until: asyncio.Event | None = None,
    ) -> None:
        """Run until ``requests`` more were made over all clients, or ``seconds`` passed, whichever is first.

        With ``at_least_until`` the clients go on after that until the event is set.
        """
        deadline = time.monotonic() + seconds if seconds is not None else None
        limit = self._count + requests if requests is not None else None

        def go_on() -> bool:
            if at_least_until is not None and not at_least_until.is_set():
                return True
            return (limit is None or self._count < limit) and (deadline is None or time.monotonic() < deadline)

        await asyncio.gather(*(self._run_client(number, go_on) for number in range(len(self._clients))))

    async def read_all(self) -> None:
        """One get of every key, into the history: what was acknowledged must still be there."""
        await self.read(self.keys)

    async def read(self, keys: Sequence[bytes]) -> None:
        """One get of each of these keys, which may be those of another load."""
        for key in keys:
            await self._one(0, "get", key, b"")

    async def close(self) -> None:
        """Close the clients."""
        for client in self._clients:
            await client.close()

    def _new_client(self) -> Client:
        client = Client(
            self._addresses,
            self._cluster,
            self._next_client_id,
            self._timeout_seconds,
            send_twice=self._send_twice,
            may_be_copied=self._may_be_copied,
            group=self._group,
            tls=self._tls,
        )
        self._next_client_id += 1
        return client

    async def _run_client(self, number: int, go_on: Callable[[], bool]) -> None:
        source = self._randoms[number]
        while go_on():
            self._count += 1
            kind, key, value = self._choose(source, number)
            await self._one(number, kind, key, value)
            if self._pause_seconds:
                await asyncio.sleep(self._pause_seconds * source.uniform(0.5, 1.5))

    def _choose(self, source: random.Random, number: int) -> tuple[Kind, bytes, bytes]:
        kind = source.choices(list(self._weights), weights=list(self._weights.values()))[0]
        key = source.choice(self.keys)
        return kind, key, f"{number}.{self._count};".encode()

    async def _one(self, number: int, kind: Kind, key: bytes, value: bytes) -> None:
        client = self._clients[number]
        expected = self._seen.get(key) if kind == "cas" else None
        argument = value if kind in ("put", "append", "cas") else None
        found: bytes | None = None
        success = True
        returned: int | None = None
        called = time.monotonic_ns()
        try:
            if kind == "get":
                found = await client.get(key)
            elif kind == "put":
                await client.put(key, value)
            elif kind == "append":
                await client.append(key, value)
            elif kind == "cas":
                success = await client.compare_and_set(key, expected, value)
            else:
                success = await client.delete(key)
            returned = time.monotonic_ns()
            self.latencies_ns.append(returned - called)
        except asyncio.CancelledError:  # the run ends; what was asked may have been done
            self.history.append(Operation(client.client_id, kind, key, called, None, argument, expected))
            raise
        except EvictedError as error:
            self.given_up.append(str(error))
        except RequestTimeoutError as error:
            self.given_up.append(str(error))
            self._retries_closed += client.retries
            await client.close()
            self._clients[number] = self._new_client()
        if returned is not None and kind == "get":
            self._seen[key] = found
        elif returned is not None and kind in ("put", "cas") and success:
            self._seen[key] = value
        self.history.append(
            Operation(client.client_id, kind, key, called, returned, argument, expected, found, success)
        )
