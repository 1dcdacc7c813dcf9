"""A run: periods of load with strikes meanwhile, then a read of every key of every period."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from benchmarks.soak.network import Network
from benchmarks.soak.strikes import BACK_SECONDS, FileStrikes, NetworkStrikes, NotBackError
from viewproof.impl.net.authority import issue_cluster
from viewproof.impl.net.cluster import Cluster, ClusterError
from viewproof.impl.net.errors import ClientError
from viewproof.impl.net.history import Operation
from viewproof.impl.net.load import Load

REPLICAS = 3
CHECKPOINT_INTERVAL = 500
SETTLE_SECONDS = 2.0
"""Between the last strike of a period and the reads."""


@dataclass(frozen=True, slots=True)
class SoakOptions:
    """`rate`: requests per second aimed at; `period`: seconds with one set of keys."""

    seconds: float
    seed: int = 1
    rate: float = 200.0
    clients: int = 8
    keys: int = 8
    period: float = 20.0


@dataclass(slots=True)
class Soaked:
    """What happened; `strikes` and `refusals` count what was done and what came of it, `failure` is what ended it."""

    history: list[Operation] = field(default_factory=list)
    latencies_ns: list[int] = field(default_factory=list)
    periods: int = 0
    unanswered: int = 0
    retries: int = 0
    seconds: float = 0.0
    strikes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failure: str = ""
    tracebacks: tuple[str, ...] = ()
    codes: dict[int, int] = field(default_factory=dict)
    traces: Path = Path()


def soak(directory: Path, options: SoakOptions, say: Callable[[str], None] = lambda _: None) -> Soaked:
    """Run it, in a network namespace of one's own."""
    with Network(REPLICAS) as network:
        tls = directory / "tls"
        with Cluster(
            directory,
            REPLICAS,
            run="soak",
            tls=tls,
            server_options=("--checkpoint-interval", str(CHECKPOINT_INTERVAL)),
        ) as cluster:
            cluster.run_at(network.places)
            issue_cluster(tls, cluster.cluster, cluster.addresses)
            cluster.format()
            cluster.start_all()
            soaked = asyncio.run(_Soak(cluster, network, options, say).run())
            soaked.codes = cluster.stop_all()
    logs = sorted((directory / "logs").iterdir())
    soaked.tracebacks = tuple(path.name for path in logs if "Traceback" in path.read_text(errors="replace"))
    soaked.traces = cluster.trace_directory / cluster.run
    return soaked


class _Soak:
    def __init__(self, cluster: Cluster, network: Network, options: SoakOptions, say: Callable[[str], None]) -> None:
        self.cluster = cluster
        self.options = options
        self.say = say
        self.soaked = Soaked()
        self.processes = FileStrikes(cluster, Random(f"{options.seed} processes"))
        self.network = NetworkStrikes(network, cluster.replica_count, Random(f"{options.seed} network"))
        self.random = Random(options.seed)
        self.client_id = 1

    async def run(self) -> Soaked:
        """All periods, and the last reads."""
        started = time.monotonic()
        try:
            await self._periods(started)
        except (NotBackError, ClusterError, ClientError) as error:
            self.soaked.failure = f"{type(error).__name__}: {error}"
        self.soaked.seconds = time.monotonic() - started
        self.soaked.strikes = self.strikes
        self.soaked.refusals = self.processes.refusals
        return self.soaked

    async def _periods(self, started: float) -> None:
        await self.cluster.wait_ready(BACK_SECONDS)
        keys: list[bytes] = []
        while (passed := time.monotonic() - started) < self.options.seconds or not self.soaked.periods:
            load = self._load()
            keys += load.keys
            try:
                await self._period(load, max(5.0, min(self.options.period, self.options.seconds - passed)))
            finally:
                await self._take(load)
            self.say(f"{passed:.0f} s: {len(self.soaked.history):,} operations; {_text(self.strikes)}")
        load = self._load()
        try:
            await load.read(keys)
        finally:
            await self._take(load)

    @property
    def strikes(self) -> Counter[str]:
        """All so far."""
        return self.processes.counts + self.network.counts

    def _load(self) -> Load:
        options, number = self.options, self.soaked.periods
        load = Load(
            self.cluster.addresses,
            self.cluster.cluster,
            clients=options.clients,
            keys=options.keys,
            seed=options.seed * 1_000_003 + number,
            rate=options.rate,
            first_client_id=self.client_id,
            send_twice=0.02,
            tls=self.cluster.client_tls(),
            name=f"period-{number}",
        )
        self.client_id += 100_000
        return load

    async def _take(self, load: Load) -> None:
        await load.close()
        self.soaked.history += load.history
        self.soaked.latencies_ns += load.latencies_ns
        self.soaked.unanswered += load.unanswered
        self.soaked.retries += load.retries
        self.soaked.periods += 1

    async def _period(self, load: Load, seconds: float) -> None:
        """Load and strikes, then none; the cluster comes back, and every key is read."""
        over = asyncio.Event()
        running = asyncio.create_task(load.run(seconds=0.0, at_least_until=over))
        until = time.monotonic() + seconds
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._strike(self.processes.some, until))
                group.create_task(self._strike(self.network.some, until))
            await self.processes.all_normal("after all strikes of a period")
            await asyncio.sleep(SETTLE_SECONDS)
            over.set()
            await running
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
        await load.read_all()

    async def _strike(self, strike: Callable[[], Awaitable[None]], until: float) -> None:
        while time.monotonic() < until:
            await asyncio.sleep(self.random.uniform(0.2, 2.0))
            await strike()


def _text(counts: Counter[str]) -> str:
    return f"{counts.total()} strikes"
