"""How fast a cluster answers: closed-loop clients, throughput and latency (impl/net/record.py checks answers)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from viewproof.impl.machine.state_machine import Put, encode_operation
from viewproof.impl.net.address import Address
from viewproof.impl.net.many import ManyClients
from viewproof.impl.net.tls import Tls

__all__ = ["BenchResult", "bench"]

UNREACHABLE_SECONDS = 3.0
"""A measurement gives up once no replica has accepted a connection for so long."""


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Answered puts of one measurement; latencies are in milliseconds, of requests after the warm-up.

    ``interrupted``: it ended before its time.
    """

    clients: int
    connections: int
    value_bytes: int
    requests: int
    seconds: float
    requests_per_second: float
    latency_ms_median: float
    latency_ms_99: float
    latency_ms_max: float
    retries: int
    interrupted: bool = False


def bench(
    addresses: Sequence[Address],
    cluster: int,
    *,
    clients: int = 32,
    connections: int = 1,
    seconds: float = 5.0,
    value_bytes: int = 64,
    warm_up_seconds: float = 0.5,
    tls: Tls | None = None,
) -> BenchResult:
    """Puts from ``clients`` clients, each with one outstanding, for ``seconds`` after the warm-up. Own event loop.

    The clients share ``connections`` connections. Cancelled (by Ctrl-C, as asyncio does it) it says what was measured.
    Raises ClientError if requests are not answered.
    """
    return asyncio.run(
        _bench(
            tuple(addresses), cluster, clients, min(connections, clients), seconds, value_bytes, warm_up_seconds, tls
        )
    )


async def _bench(
    addresses: tuple[Address, ...],
    cluster: int,
    clients: int,
    connections: int,
    seconds: float,
    value_bytes: int,
    warm_up_seconds: float,
    tls: Tls | None,
) -> BenchResult:
    bodies = [encode_operation(Put(b"bench-%d" % number, bytes(value_bytes))) for number in range(clients)]

    def some(first: int) -> ManyClients:
        own = bodies[first::connections]
        return ManyClients(addresses, cluster, len(own), lambda number, _: own[number], tls)

    loads = [some(first) for first in range(connections)]
    start = time.perf_counter() + warm_up_seconds
    interrupted = False
    try:
        async with asyncio.TaskGroup() as group:
            for load in loads:
                load.measure_from = start
                group.create_task(load.run(start + seconds, unreachable_seconds=UNREACHABLE_SECONDS))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    except asyncio.CancelledError:  # as Ctrl-C arrives here
        interrupted = True
    finally:
        for load in loads:
            load.close()
    elapsed = max(time.perf_counter() - start, 0.0)
    latencies = sorted(latency for load in loads for latency in load.latencies)
    answered = len(latencies)
    return BenchResult(
        clients=clients,
        connections=connections,
        value_bytes=value_bytes,
        requests=answered,
        seconds=elapsed,
        requests_per_second=answered / elapsed if elapsed else 0.0,
        latency_ms_median=latencies[answered // 2] * 1e3 if latencies else 0.0,
        latency_ms_99=latencies[answered * 99 // 100] * 1e3 if latencies else 0.0,
        latency_ms_max=latencies[-1] * 1e3 if latencies else 0.0,
        retries=sum(load.retries for load in loads),
        interrupted=interrupted,
    )
