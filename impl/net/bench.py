"""How fast a cluster answers: closed-loop clients, throughput and latency (impl/net/record.py checks answers)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from impl.net.client import Address, Client

__all__ = ["BenchResult", "bench"]

UNREACHABLE_SECONDS = 3.0
"""A measurement gives up once no replica has accepted a connection for so long."""


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Answered puts of one measurement; latencies are in milliseconds, of requests after the warm-up."""

    clients: int
    value_bytes: int
    requests: int
    seconds: float
    requests_per_second: float
    latency_ms_median: float
    latency_ms_99: float
    latency_ms_max: float
    retries: int


def bench(
    addresses: Sequence[Address],
    cluster: int,
    *,
    clients: int = 32,
    seconds: float = 5.0,
    value_bytes: int = 64,
    warm_up_seconds: float = 0.5,
) -> BenchResult:
    """Puts from ``clients`` clients, each with one outstanding, for ``seconds`` after the warm-up. Own event loop.

    Raises ClientError if a request is not answered.
    """
    return asyncio.run(_bench(tuple(addresses), cluster, clients, seconds, value_bytes, warm_up_seconds))


async def _bench(
    addresses: tuple[Address, ...],
    cluster: int,
    count: int,
    seconds: float,
    value_bytes: int,
    warm_up_seconds: float,
) -> BenchResult:
    latencies: list[float] = []
    start = time.perf_counter() + warm_up_seconds
    end = start + seconds

    async def one(number: int, client: Client) -> None:
        key, value = b"bench-%d" % number, bytes(value_bytes)
        while (called := time.perf_counter()) < end:
            await client.put(key, value)
            if called >= start:
                latencies.append(time.perf_counter() - called)

    clients = [Client(addresses, cluster, unreachable_seconds=UNREACHABLE_SECONDS) for _ in range(count)]
    try:
        async with asyncio.TaskGroup() as group:
            for number, client in enumerate(clients):
                group.create_task(one(number, client))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        for client in clients:
            await client.close()
    elapsed = time.perf_counter() - start
    latencies.sort()
    answered = len(latencies)
    return BenchResult(
        clients=count,
        value_bytes=value_bytes,
        requests=answered,
        seconds=elapsed,
        requests_per_second=answered / elapsed,
        latency_ms_median=latencies[answered // 2] * 1e3 if latencies else 0.0,
        latency_ms_99=latencies[answered * 99 // 100] * 1e3 if latencies else 0.0,
        latency_ms_max=latencies[-1] * 1e3 if latencies else 0.0,
        retries=sum(client.retries for client in clients),
    )
