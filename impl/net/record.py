"""Scripted runs of a real cluster, checked from the clients' side, with the traces left for the audit.

``record`` is one run under load in which the primary is killed with SIGKILL and restarted. ``rounds`` kills and
restarts a random process, round after round, over the same data. Neither prints; both return a result object. Both
raise ClusterError if processes do not start, a view change does not end or the run id is taken, FaultError for an
unknown fault before anything is started, and ClientError if a client cannot go on.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from impl.durable import CLIENTS_SESSIONS, ClientTableConfig
from impl.groups.group import PARTITIONS, SINGLE, Group
from impl.net.cluster import Cluster, ClusterError
from impl.net.history import CheckResult, check_history
from impl.net.load import Load
from impl.net.partition_load import PartitionLoad

__all__ = ["RecordOptions", "RecordResult", "RoundResult", "RoundsResult", "record", "rounds"]


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """What a run does. ``rate``: requests per second aimed at over all clients (None: as fast as possible).

    ``down_seconds`` is how long a killed process stays down; ``kill`` False records a quiet run. ``timeout_seconds``:
    when a request is given up. ``client_table`` of a new cluster; with fewer slots than clients they evict each other.
    ``send_twice``: chance that a client sends a request twice. ``checkpoint_interval``: the server's unless given.
    With the group partitions among ``groups``, as many producers append to its partitions, beside the clients.
    """

    replica_count: int = 3
    clients: int = 4
    keys: int = 6
    requests: int = 1000
    rate: float | None = 400.0
    seed: int = 1
    kill: bool = True
    down_seconds: float = 1.0
    tick_seconds: float = 0.01
    faults: tuple[str, ...] = ()
    timeout_seconds: float = 60.0
    client_table: ClientTableConfig = CLIENTS_SESSIONS
    send_twice: float = 0.05
    checkpoint_interval: int | None = None
    groups: tuple[Group, ...] = (SINGLE,)
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordResult:
    """One recorded run. ``killed`` is the primary that was killed (None: none was), ``requests`` the answered ones."""

    run: str
    requests: int
    unanswered: int
    retries: int
    killed: int | None
    view_before: int
    view_after: int
    seconds: float
    requests_per_second: float
    latency_ms_median: float
    latency_ms_max: float
    check: CheckResult
    traces: tuple[Path, ...]
    appends: int = 0
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if the clients saw one consistent store; a request may be left unanswered (its session was evicted)."""
        return self.check.ok and not self.problems


@dataclass(frozen=True, slots=True)
class RoundResult:
    """One round: who was killed when, and the check of the whole history up to its end."""

    number: int
    killed: int
    was_primary: bool
    view_before: int
    view_after: int
    requests: int
    retries: int
    seconds: float
    check: CheckResult
    appends: int = 0
    problems: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True if what the clients and producers saw is consistent."""
        return self.check.ok and not self.problems


@dataclass(frozen=True, slots=True)
class RoundsResult:
    """All rounds; ``unanswered`` counts requests given up (each is then a write that may or may not have happened)."""

    run: str
    rounds: tuple[RoundResult, ...]
    unanswered: int
    traces: tuple[Path, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """True if every round was checked and consistent."""
        return bool(self.rounds) and all(result.ok for result in self.rounds)


def record(directory: Path, trace_directory: Path, run: str, options: RecordOptions | None = None) -> RecordResult:
    """Record one run; data and logs below ``directory``, traces in ``trace_directory/run``. Own event loop."""
    return asyncio.run(_record(directory, trace_directory, run, options or RecordOptions()))


def rounds(
    directory: Path,
    trace_directory: Path,
    run: str,
    count: int = 20,
    options: RecordOptions | None = None,
    after_round: Callable[[RoundResult], None] | None = None,
) -> RoundsResult:
    """``count`` rounds over one cluster's data; ``options.requests`` are made per round. Own event loop.

    In a round all replicas are started, a seeded random one is killed under load and restarted, every key is read, all
    are stopped (SIGTERM), and the whole history so far is checked. ``after_round`` is then called, while no process
    runs, so that the traces can be audited. Stops early after a round whose history has no explanation.
    """
    return asyncio.run(_rounds(directory, trace_directory, run, count, options or RecordOptions(), after_round))


def _cluster(directory: Path, trace_directory: Path, run: str, options: RecordOptions) -> Cluster:
    for group in options.groups:
        path = trace_directory / group.run(run)
        if path.exists() and any(path.iterdir()):
            raise ClusterError(f"{path} holds a run already; give another run id, or delete it")
    interval = options.checkpoint_interval
    return Cluster(
        directory,
        options.replica_count,
        run=run,
        trace_directory=trace_directory,
        clients=options.client_table,
        tick_seconds=options.tick_seconds,
        faults=options.faults,
        server_options=() if interval is None else ("--checkpoint-interval", str(interval)),
        groups=options.groups,
        features=options.features,
    )


class _Loads:
    """The load on the keys and, if there is such a group, the one on the partitions, side by side."""

    def __init__(self, cluster: Cluster, options: RecordOptions) -> None:
        self.keys = _load(cluster, options)
        self.partitions: PartitionLoad | None = None
        if PARTITIONS in options.groups:
            self.partitions = PartitionLoad(
                cluster.addresses,
                cluster.cluster,
                clients=options.clients,
                seed=options.seed,
                rate=options.rate,
                timeout_seconds=options.timeout_seconds,
            )

    async def run(self, *, requests: int, at_least_until: asyncio.Event | None = None) -> None:
        """`requests` on each."""
        loads = [self.keys.run(requests=requests, at_least_until=at_least_until)]
        if self.partitions is not None:
            loads.append(self.partitions.run(requests=requests, at_least_until=at_least_until))
        await asyncio.gather(*loads)

    async def read_all(self) -> None:
        """Reads every key and every partition."""
        await self.keys.read_all()
        if self.partitions is not None:
            await self.partitions.read_all()

    async def close(self) -> None:
        """Closes all clients."""
        await self.keys.close()
        if self.partitions is not None:
            await self.partitions.close()

    @property
    def unanswered(self) -> int:
        """Requests given up."""
        return self.keys.unanswered + (0 if self.partitions is None else self.partitions.unanswered)

    @property
    def appends(self) -> int:
        """Appends to partitions, answered or not."""
        return 0 if self.partitions is None else len(self.partitions.appends)

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the partitions."""
        return () if self.partitions is None else self.partitions.problems()


def _load(cluster: Cluster, options: RecordOptions) -> Load:
    return Load(
        cluster.addresses,
        cluster.cluster,
        clients=options.clients,
        keys=options.keys,
        seed=options.seed,
        rate=options.rate,
        timeout_seconds=options.timeout_seconds,
        send_twice=options.send_twice,
        group=options.groups[0].number,
    )


async def _record(directory: Path, trace_directory: Path, run: str, options: RecordOptions) -> RecordResult:
    with _cluster(directory, trace_directory, run, options) as cluster:
        cluster.format()
        cluster.start_all()
        await cluster.wait_ready()
        view_before = await _view(cluster)
        loads = _Loads(cluster, options)
        load = loads.keys
        started = time.monotonic()
        killed: int | None = None
        part = options.requests // 3 if options.kill else options.requests
        await loads.run(requests=part)
        if options.kill:
            killed = await cluster.primary()
            victim = killed if killed is not None else 0
            await _kill_under_load(cluster, loads, options.requests - part, victim, 0.05, options.down_seconds)
        seconds = time.monotonic() - started
        await loads.read_all()
        await cluster.wait_ready()
        view_after = await _view(cluster)
        await loads.close()
        cluster.stop_all()
    latencies = sorted(load.latencies_ns)
    answered = len(latencies)
    return RecordResult(
        run=run,
        requests=answered,
        unanswered=loads.unanswered,
        retries=load.retries,
        killed=killed,
        view_before=view_before,
        view_after=view_after,
        seconds=seconds,
        requests_per_second=answered / seconds,
        latency_ms_median=latencies[answered // 2] / 1e6 if latencies else 0.0,
        latency_ms_max=latencies[-1] / 1e6 if latencies else 0.0,
        check=check_history(load.history),
        traces=_traces(cluster),
        appends=loads.appends,
        problems=loads.problems(),
    )


async def _rounds(
    directory: Path,
    trace_directory: Path,
    run: str,
    count: int,
    options: RecordOptions,
    after_round: Callable[[RoundResult], None] | None,
) -> RoundsResult:
    source = random.Random(options.seed)
    results: list[RoundResult] = []
    with _cluster(directory, trace_directory, run, options) as cluster:
        cluster.format()
        loads = _Loads(cluster, options)
        for number in range(1, count + 1):
            result = await _round(cluster, loads, number, source, options)
            results.append(result)
            if after_round is not None:
                after_round(result)
            if not result.ok:
                break
        await loads.close()
    return RoundsResult(run, tuple(results), loads.unanswered, _traces(cluster))


async def _round(
    cluster: Cluster, loads: _Loads, number: int, source: random.Random, options: RecordOptions
) -> RoundResult:
    load = loads.keys
    started = time.monotonic()
    cluster.start_all()
    primary = await cluster.wait_ready()
    view_before = await _view(cluster)
    before, retries = len(load.latencies_ns), load.retries
    victim = source.randrange(cluster.replica_count)
    await _kill_under_load(cluster, loads, options.requests, victim, source.uniform(0.02, 0.3), options.down_seconds)
    await loads.read_all()
    await cluster.wait_ready()
    view_after = await _view(cluster)
    cluster.stop_all()
    return RoundResult(
        number=number,
        killed=victim,
        was_primary=victim == primary,
        view_before=view_before,
        view_after=view_after,
        requests=len(load.latencies_ns) - before,
        retries=load.retries - retries,
        seconds=time.monotonic() - started,
        check=check_history(load.history),
        appends=loads.appends,
        problems=loads.problems(),
    )


async def _kill_under_load(
    cluster: Cluster, loads: _Loads, requests: int, replica: int, after_seconds: float, down_seconds: float
) -> None:
    """SIGKILL and restart while the clients run: they make ``requests``, and go on until the process is back."""
    back = asyncio.Event()
    running = asyncio.create_task(loads.run(requests=requests, at_least_until=back))
    try:
        await asyncio.sleep(after_seconds)
        cluster.kill(replica)
        await asyncio.sleep(down_seconds)
        cluster.start(replica)
        await cluster.wait_answering(replica)
        back.set()
        await running
    finally:
        running.cancel()


async def _view(cluster: Cluster) -> int:
    return max((status.view for status in await cluster.statuses() if status is not None), default=0)


def _traces(cluster: Cluster) -> tuple[Path, ...]:
    return cluster.trace_paths
