"""How fast the real cluster is, next to PySyncObj (Raft, also Python) on the same machine: one command, one table.

    python -m benchmarks.cluster          # or: make bench, tools/dev bench; needs the extra `bench`
    python -m benchmarks.cluster --record # the table of docs/cluster-speed.md

Each row is the median of several measurements of each side, taken in turn. Three replicas, each a process with files;
closed-loop clients put values, each with one request outstanding.

* `append`: durable; each side flushes after what it calls an append: ours takes all entries that wait, as one group;
  that of PySyncObj takes one entry;
* `entry`: durable; a flush for every single entry on both sides;
* `group`: durable; PySyncObj is made to flush once per group, too, which it cannot do by itself;
* `none`: written to a file by every replica before it acknowledges, but never flushed.

Columns: `ms` are p50 and p99 of the time to the answer; `batch` are entries in one flush of the primary's journal (of
ours without flushes: in one write); `setting`: the faster of the settings of PySyncObj that are measured (SETTINGS);
`ratio` is our throughput over its; `others` are the cores that other processes of the machine kept busy: where that is
not near 0, look at the ratio only.

Our clients are a process of their own and come over one TCP connection; PySyncObj has no client, its requests start in
the leader's process, which spares it that work. Neither side writes a trace, but for our last row.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from benchmarks.figures import record
from benchmarks.text import table
from benchmarks.watch import machine_busy_seconds
from viewproof.impl.interface.durable import CLIENTS_SESSIONS, ClientTableConfig
from viewproof.impl.net.bench import bench
from viewproof.impl.net.cluster import Cluster, free_ports
from viewproof.impl.net.connection import fetch_status
from viewproof.impl.net.framing import Status

CLUSTER = 1
REPLICAS = 3
WARM_UP_SECONDS = 0.5
SERVER_OPTIONS = {"append": (), "entry": ("--flush-each",), "group": (), "none": ("--no-sync",)}
"""Mode → options of our server."""

FLUSHES = {"append": "each", "entry": "each", "group": "group", "none": "none"}
"""Mode → when PySyncObj flushes (`benchmarks/pysyncobj_node.py`)."""

SETTINGS: dict[str, dict[str, object]] = {
    "at once": {"batch": False, "period": 0.1, "tick": 0.05},
    "each 10 ms": {"batch": True, "period": 0.01, "tick": 0.002},
}
"""Settings of PySyncObj: entries are sent on as they come, or collected. Its own default, 100 ms, is slower."""

HEADER = (
    "flush", "clients", "bytes", "requests/s", "p50 ms", "p99 ms", "batch",
    "PySyncObj", "p50 ms", "p99 ms", "batch", "setting", "ratio", "others",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """What is measured: mode, clients, and the bytes of each value."""

    mode: str
    clients: int
    value_bytes: int
    traced: bool = False


ROWS = (
    *(Row("append", clients, 64) for clients in (1, 32, 256)),
    *(Row("append", 256, value_bytes) for value_bytes in (1024, 16384)),
    Row("entry", 256, 64),
    *(Row("group", clients, 64) for clients in (32, 256)),
    *(Row("none", clients, 64) for clients in (32, 256)),
    Row("append", 256, 64, traced=True),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement: requests per second, latencies in ms, entries per write of the primary's journal."""

    requests_per_second: float
    latency_ms_median: float
    latency_ms_99: float
    batch: float

    def cells(self) -> tuple[str, ...]:
        """Four cells of a row."""
        batch = f"{self.batch:.1f}" if self.batch else ""
        return f"{self.requests_per_second:,.0f}", f"{self.latency_ms_median:.1f}", f"{self.latency_ms_99:.1f}", batch


def measure_own(row: Row, seconds: float) -> Measured:
    """A new cluster of ours under load."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-cluster-") as directory,
        Cluster(
            Path(directory),
            REPLICAS,
            cluster=CLUSTER,
            clients=ClientTableConfig(max(CLIENTS_SESSIONS.slots, 2 * row.clients), sessions=True),
            traced=row.traced,
            server_options=SERVER_OPTIONS[row.mode],
        ) as processes,
    ):
        processes.format()
        processes.start_all()
        primary = asyncio.run(processes.wait_ready())
        before = _status(processes, primary)
        result = bench(
            processes.addresses,
            CLUSTER,
            clients=row.clients,
            seconds=seconds,
            value_bytes=row.value_bytes,
            warm_up_seconds=WARM_UP_SECONDS,
        )
        after = _status(processes, primary)
        processes.stop_all()
    batch = (after.op - before.op) / max(after.journal_writes - before.journal_writes, 1)
    return Measured(result.requests_per_second, result.latency_ms_median, result.latency_ms_99, batch)


def _status(processes: Cluster, replica: int) -> Status:
    found = asyncio.run(fetch_status(processes.addresses[replica], CLUSTER, timeout_seconds=5.0))
    if found is None:
        raise SystemExit(f"replica {replica} of the measured cluster does not answer")
    return found


def measure_pysyncobj(row: Row, setting: str, seconds: float) -> Measured:
    """A new cluster of PySyncObj under load (`benchmarks/pysyncobj_node.py`)."""
    options = {
        **SETTINGS[setting],
        "flush": FLUSHES[row.mode],
        "clients": row.clients,
        "value_bytes": row.value_bytes,
        "warm_up": WARM_UP_SECONDS,
        "seconds": seconds,
    }
    addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(REPLICAS))
    with tempfile.TemporaryDirectory(prefix="bench-pysyncobj-") as directory:
        command = [sys.executable, "-m", "benchmarks.pysyncobj_node"]
        nodes = [
            subprocess.Popen(
                [*command, str(node), addresses, directory, json.dumps(options)],
                stdout=subprocess.PIPE,
                cwd=Path(__file__).resolve().parents[1],
            )
            for node in range(REPLICAS)
        ]
        try:
            found = json.loads(_first_output(nodes, seconds + 60.0))
        finally:
            for node in nodes:
                node.kill()
                node.communicate()
    if found["failed"]:
        sys.stderr.write(f"PySyncObj, {setting}: {found['failed']} requests failed (its leader changed)\n")
    batch = found["entries_per_flush"] if row.mode != "none" else 0.0
    return Measured(found["requests_per_second"], found["latency_ms_median"], found["latency_ms_99"], batch)


def _first_output(nodes: Sequence[subprocess.Popen[bytes]], seconds: float) -> bytes:
    """What the leader prints. Raises SystemExit if all ended without it, or after ``seconds``."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended = [node for node in nodes if node.poll() is not None]
        for node in ended:
            if node.returncode == 0 and node.stdout is not None:
                return node.stdout.read()
        if len(ended) == len(nodes):
            break
        time.sleep(0.05)
    raise SystemExit(f"PySyncObj: no leader has answered within {seconds:g} s")


def median(found: Sequence[Measured]) -> Measured:
    """The measurement with the median throughput."""
    ordered = sorted(found, key=lambda measured: measured.requests_per_second)
    return ordered[statistics.median_low(range(len(ordered)))]


def busy_seconds() -> tuple[float, float]:
    """Processor seconds so far: of the whole machine, and of this process and the children that have ended."""
    return machine_busy_seconds(), sum(os.times()[:4])


def compare(row: Row, seconds: float, repeat: int) -> tuple[str, ...]:
    """One row of the table; measurements of the two sides take turns."""
    own: list[Measured] = []
    other: dict[str, list[Measured]] = {setting: [] for setting in SETTINGS}
    started, (machine, mine) = time.monotonic(), busy_seconds()
    for _ in range(repeat):
        own.append(measure_own(row, seconds))
        for setting, found in other.items():
            found.append(measure_pysyncobj(row, setting, seconds))
    machine_after, mine_after = busy_seconds()
    others = max(0.0, machine_after - machine - (mine_after - mine)) / (time.monotonic() - started)
    ours = median(own)
    medians = {setting: median(found) for setting, found in other.items()}
    setting = max(medians, key=lambda name: medians[name].requests_per_second)
    theirs = medians[setting]
    answers = theirs.requests_per_second
    ratio = f"{ours.requests_per_second / answers:.1f}" if answers else "it answered nothing"
    mode = f"{row.mode}, traced" if row.traced else row.mode
    cells = (mode, str(row.clients), f"{row.value_bytes:,}", *ours.cells(), *theirs.cells(), setting)
    return (*cells, ratio, f"{others:.1f}")


def _chosen(text: str) -> Row:
    mode, _, rest = text.partition(":")
    clients, _, value_bytes = rest.partition(":")
    if mode not in SERVER_OPTIONS or not clients.isdigit() or not value_bytes.isdigit() or int(clients) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not MODE:CLIENTS:BYTES with MODE {', '.join(SERVER_OPTIONS)}")
    return Row(mode, int(clients), int(value_bytes))


def main(words: Sequence[str] | None = None) -> None:
    """Parse options, measure, print."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster", description="The real cluster next to PySyncObj.")
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement, after the warm-up (3)")
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each side for one row (3)")
    parser.add_argument("--row", action="append", type=_chosen, help="MODE:CLIENTS:BYTES, only this; may be repeated")
    parser.add_argument("--record", action="store_true", help="keep the table, and write docs/cluster-speed.md")
    options = parser.parse_args(words)
    if find_spec("pysyncobj") is None:
        raise SystemExit("PySyncObj is not installed: pip install 'viewproof[bench]'")
    rows = []
    for row in options.row or ROWS:
        sys.stderr.write(f"measuring {row.mode}, {row.clients} clients, {row.value_bytes} bytes\n")
        rows.append(compare(row, options.seconds, options.repeat))
    sys.stdout.write(table(HEADER, rows) + "\n")
    if options.record:
        note = f"Medians of {options.repeat}, of {options.seconds:g} s each."
        chosen = "".join(f" --row {row.mode}:{row.clients}:{row.value_bytes}" for row in options.row or ())
        record("cluster", "cluster", HEADER, rows, f"python -m benchmarks.cluster{chosen} --record", note)


if __name__ == "__main__":
    main()
