"""What a server counts and measures, as Prometheus reads it: text over HTTP, on a port of this machine only.

Every request that arrives is one of `OUTCOMES` in the end, or waits: the sum of both is the number that arrived. So the
time of a request that is not answered here is never taken for that of one that is (seed 001: timers without an end).
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

__all__ = ["OUTCOMES", "GroupMetrics", "Histogram", "Sample", "exposition", "serve_metrics"]

WRITES = ("append", "superblock", "snapshot", "segment", "drain")
"""Kinds of durable writes."""

OUTCOMES = ("replied", "evicted", "not_primary", "repeated", "refused", "dropped")
"""What became of a request: its reply was sent, or an eviction message; this replica is not the normal primary; the
client sent the same one, or another, before an answer; it is too far ahead; the view or the connection came to an end.
"""

BUCKETS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
"""Upper bounds of the buckets of a histogram, seconds."""

REQUEST_LINE_MAX = 8192
CONNECTIONS_MAX = 8
"""At a time; who comes above that is closed."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One line: `name` with its suffix, labels, value. `family` and `kind` are those of the metric that it is of."""

    family: str
    kind: str
    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Histogram:
    """Durations, seconds."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def observe(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.sum += seconds

    def samples(self, name: str, labels: tuple[tuple[str, str], ...]) -> Iterator[Sample]:
        """Its buckets, each with all below, then sum and count."""
        below = 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            below += count
            yield Sample(name, "histogram", f"{name}_bucket", (*labels, ("le", bound)), below)
        yield Sample(name, "histogram", f"{name}_sum", labels, self.sum)
        yield Sample(name, "histogram", f"{name}_count", labels, below)


class GroupMetrics:
    """Of one replica: its requests, its durable writes, its views.

    `on_written` and `sync_seconds` are the storage thread's, the rest the event loop's.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._waiting: dict[int, tuple[int, float]] = {}
        self.arrived = 0
        self.outcomes: Counter[str] = Counter()
        self.request_seconds = Histogram()
        self.write_seconds = {kind: Histogram() for kind in WRITES}
        self.sync_seconds = Histogram()
        self.view_changes = 0
        self.views_started = 0

    def on_request(self, client: int, request: int) -> None:
        """A request arrived, and waits for its answer."""
        self.arrived += 1
        before = self._waiting.get(client)
        if before is not None:
            self.outcomes["repeated"] += 1
            if before[0] == request:
                return  # its time runs from the first copy
        self._waiting[client] = request, self._clock()

    def on_turned_away(self, outcome: str) -> None:
        """A request arrived, and was not taken."""
        self.arrived += 1
        self.outcomes[outcome] += 1

    def on_answer(self, client: int, outcome: str) -> None:
        """What a client waits for was sent."""
        waiting = self._waiting.pop(client, None)
        if waiting is None:
            return  # of an entry whose request another replica, or an earlier process, took
        self.outcomes[outcome] += 1
        if outcome == "replied":
            self.request_seconds.observe(self._clock() - waiting[1])

    def keep(self, is_there: Callable[[int], bool]) -> None:
        """Forgets requests of clients that are gone."""
        gone = [client for client in self._waiting if not is_there(client)]
        for client in gone:
            del self._waiting[client]
        self.outcomes["dropped"] += len(gone)

    def on_view(self, changed: bool, started: bool) -> None:
        """Another view, or one that is normal now; whoever waits asks again."""
        self.view_changes += changed
        self.views_started += started
        self.keep(lambda client: False)

    @property
    def waiting(self) -> int:
        """Requests without an answer so far."""
        return len(self._waiting)

    def on_written(self, kind: str, seconds: float) -> None:
        """A durable write of this kind took so long, flush included."""
        self.write_seconds[kind].observe(seconds)

    def samples(self, labels: tuple[tuple[str, str], ...]) -> Iterator[Sample]:
        """All of it."""
        requests = "viewproof_requests_total"
        yield counter("viewproof_requests_arrived_total", labels, self.arrived)
        for outcome in OUTCOMES:
            yield counter(requests, (*labels, ("outcome", outcome)), self.outcomes[outcome])
        yield gauge("viewproof_requests_waiting", labels, self.waiting)
        yield from self.request_seconds.samples("viewproof_request_seconds", labels)
        for kind, histogram in self.write_seconds.items():
            yield from histogram.samples("viewproof_write_seconds", (*labels, ("kind", kind)))
        yield from self.sync_seconds.samples("viewproof_sync_seconds", labels)
        for name, value in (("view_changes", self.view_changes), ("views_started", self.views_started)):
            yield counter(f"viewproof_{name}_total", labels, value)


def counter(name: str, labels: tuple[tuple[str, str], ...], value: float) -> Sample:
    """A value that only rises while the process runs."""
    return Sample(name, "counter", name, labels, value)


def gauge(name: str, labels: tuple[tuple[str, str], ...], value: float) -> Sample:
    """A value as it is now."""
    return Sample(name, "gauge", name, labels, value)


def exposition(samples: Iterable[Sample]) -> str:
    """The text format of Prometheus, version 0.0.4: each family once, with its type."""
    families: dict[str, list[Sample]] = {}
    for sample in samples:
        families.setdefault(sample.family, []).append(sample)
    lines: list[str] = []
    for family, members in families.items():
        lines.append(f"# TYPE {family} {members[0].kind}")
        for sample in members:
            labels = ",".join(f'{name}="{value}"' for name, value in sample.labels)
            lines.append(f"{sample.name}{{{labels}}} {sample.value:.17g}")
    return "\n".join(lines) + "\n"


async def serve_metrics(port: int, text: Callable[[], str]) -> asyncio.Server:
    """Answers GET /metrics on the loopback address, each connection once. Raises OSError."""

    open_now = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now
        open_now += 1
        try:
            if open_now > CONNECTIONS_MAX:
                return
            async with asyncio.timeout(5.0):
                request = await reader.readuntil(b"\r\n\r\n")
                found = request.startswith((b"GET /metrics ", b"GET /metrics?"))
                body = (text() if found else "only GET /metrics\n").encode()
                status = "200 OK" if found else "404 Not Found"
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                    + body
                )
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # whoever asked is gone, or asks too much
        finally:
            open_now -= 1
            writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", port, limit=REQUEST_LINE_MAX, backlog=CONNECTIONS_MAX)
