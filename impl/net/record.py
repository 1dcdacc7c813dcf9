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

from viewproof.impl.groups.group import SINGLE, Group
from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.durable import CLIENTS_SESSIONS, ClientTableConfig
from viewproof.impl.net.authority import issue_cluster
from viewproof.impl.net.cluster import Cluster, ClusterError
from viewproof.impl.net.history import CheckResult, check_history
from viewproof.impl.net.load import Load
from viewproof.impl.net.partition_load import PartitionLoad

__all__ = ["RecordOptions", "RecordResult", "RoundResult", "RoundsResult", "record", "rounds"]


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """What a run does. ``rate``: requests per second aimed at over all clients (None: as fast as possible).

    ``down_seconds`` is how long a killed process stays down; ``kill`` False records a quiet run. ``timeout_seconds``:
    when a request is given up. ``client_table`` of a new cluster; with fewer slots than clients they evict each other.
    ``send_twice``: chance that a client sends a request twice. ``checkpoint_interval``: the server's unless given.
    In each group of partitions as many producers append to them, beside the clients of the keys. ``tls``: all use
    certificates of an authority that is made for the run.
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
    tls: bool = False


@dataclass(frozen=True, slots=True)
class RecordResult:
    """One recorded run. ``killed`` is the primary that was killed (None: none was), ``requests`` the answered ones.

    Without a group of keys (``has_keys``) requests and latencies are those of the appends to partitions.
    """

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
    has_keys: bool = True

    @property
    def ok(self) -> bool:
        """True if the clients saw one consistent store; a request may be left unanswered (its session was evicted)."""
        return _ok(self)


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
    has_keys: bool = True

    @property
    def ok(self) -> bool:
        """True if what the clients and producers saw is consistent."""
        return _ok(self)


def _ok(result: RecordResult | RoundResult) -> bool:
    """True if something was looked at on each side that there is, and all of it is right."""
    looked_at = result.check.ok if result.has_keys else result.appends > 0
    return looked_at and not result.problems


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
    cluster = Cluster(
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
        tls=directory / "tls" if options.tls else None,
    )
    if cluster.tls is not None:
        issue_cluster(cluster.tls, cluster.cluster, cluster.addresses)
    return cluster


class _Loads:
    """The load on the keys, if a group has any, and one on the partitions of each other group, side by side."""

    def __init__(self, cluster: Cluster, options: RecordOptions) -> None:
        self.keys: Load | None = None
        self.partitions: list[PartitionLoad] = []
        for group in options.groups:
            if group.plane is Plane.PARTITIONS:
                self.partitions.append(_partition_load(cluster, options, group))
            else:
                self.keys = _key_load(cluster, options, group)

    async def run(self, *, requests: int, at_least_until: asyncio.Event | None = None) -> None:
        """`requests` on each."""
        loads = [load.run(requests=requests, at_least_until=at_least_until) for load in self.partitions]
        if self.keys is not None:
            loads.append(self.keys.run(requests=requests, at_least_until=at_least_until))
        await asyncio.gather(*loads)

    async def read_all(self) -> None:
        """Reads every key and every partition."""
        for load in self._all:
            await load.read_all()

    async def close(self) -> None:
        """Closes all clients."""
        for load in self._all:
            await load.close()

    @property
    def _all(self) -> list[Load | PartitionLoad]:
        return [*self.partitions] if self.keys is None else [self.keys, *self.partitions]

    @property
    def unanswered(self) -> int:
        """Requests given up."""
        return sum(load.unanswered for load in self._all)

    @property
    def retries(self) -> int:
        """Requests on keys that were sent again."""
        return 0 if self.keys is None else self.keys.retries

    @property
    def latencies_ns(self) -> list[int]:
        """Of all answered requests on keys, or of the appends, if there are no keys."""
        if self.keys is not None:
            return self.keys.latencies_ns
        return [latency for load in self.partitions for latency in load.latencies_ns]

    @property
    def appends(self) -> int:
        """Appends to partitions, answered or not."""
        return sum(len(load.appends) for load in self.partitions)

    def check(self) -> CheckResult:
        """The history of the keys, judged."""
        return check_history([] if self.keys is None else self.keys.history)

    def problems(self) -> tuple[str, ...]:
        """What is wrong with the partitions."""
        return tuple(problem for load in self.partitions for problem in load.problems())


def _key_load(cluster: Cluster, options: RecordOptions, group: Group) -> Load:
    return Load(
        cluster.addresses,
        cluster.cluster,
        clients=options.clients,
        keys=options.keys,
        seed=options.seed,
        rate=options.rate,
        timeout_seconds=options.timeout_seconds,
        send_twice=options.send_twice,
        group=group.number,
        tls=cluster.client_tls(),
    )


def _partition_load(cluster: Cluster, options: RecordOptions, group: Group) -> PartitionLoad:
    return PartitionLoad(
        cluster.addresses,
        cluster.cluster,
        clients=options.clients,
        seed=options.seed,
        rate=options.rate,
        timeout_seconds=options.timeout_seconds,
        group=group.number,
        namespaces=() if group.namespace is None else (group.namespace,),
        tls=cluster.client_tls(),
    )


async def _record(directory: Path, trace_directory: Path, run: str, options: RecordOptions) -> RecordResult:
    with _cluster(directory, trace_directory, run, options) as cluster:
        cluster.format()
        cluster.start_all()
        await cluster.wait_ready()
        view_before = await _view(cluster)
        loads = _Loads(cluster, options)
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
    latencies = sorted(loads.latencies_ns)
    answered = len(latencies)
    return RecordResult(
        run=run,
        requests=answered,
        unanswered=loads.unanswered,
        retries=loads.retries,
        killed=killed,
        view_before=view_before,
        view_after=view_after,
        seconds=seconds,
        requests_per_second=answered / seconds,
        latency_ms_median=latencies[answered // 2] / 1e6 if latencies else 0.0,
        latency_ms_max=latencies[-1] / 1e6 if latencies else 0.0,
        check=loads.check(),
        traces=_traces(cluster),
        appends=loads.appends,
        problems=loads.problems(),
        has_keys=loads.keys is not None,
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
    started = time.monotonic()
    cluster.start_all()
    primary = await cluster.wait_ready()
    view_before = await _view(cluster)
    before, retries = len(loads.latencies_ns), loads.retries
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
        requests=len(loads.latencies_ns) - before,
        retries=loads.retries - retries,
        seconds=time.monotonic() - started,
        check=loads.check(),
        appends=loads.appends,
        problems=loads.problems(),
        has_keys=loads.keys is not None,
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
