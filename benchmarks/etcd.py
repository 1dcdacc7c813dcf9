"""How fast the real cluster is, next to etcd (Raft, in Go) on the same machine: one command, one table.

    python -m benchmarks.etcd             # needs Go, which gets and builds etcd from its source, outside this project
    python -m benchmarks.etcd --record    # its table in docs/cluster-speed.md

Three replicas and three members, each a process with files, without TLS; closed-loop clients put values, each with one
request outstanding, all over few connections to the leader. Both flush before they acknowledge: etcd each append to its
log, ours one for all entries that wait. Each row is the median of measurements of both sides, taken in turn. Columns as
in `benchmarks.cluster`; `ratio` is our throughput over its.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.cluster import REPLICAS, WARM_UP_SECONDS, Measured, Row, busy_seconds, measure_own, median
from benchmarks.figures import record
from benchmarks.text import table
from viewproof.impl.net.cluster import HOST, free_ports

SOURCE = Path(__file__).resolve().parents[1] / "tools" / "etcd"
ROWS = tuple(
    (clients, value_bytes) for value_bytes, counts in ((64, (1, 32, 256)), (1024, (256,))) for clients in counts
)
HEADER = ("clients", "bytes", "requests/s", "p50 ms", "p99 ms", "batch", "etcd", "p50 ms", "p99 ms", "ratio", "others")
BUILD_SECONDS = 1200.0


@functools.cache
def program() -> Path:
    """The compiled program of `tools/etcd`, kept with Go's own cache. Raises SystemExit if it cannot be built."""
    if shutil.which("go") is None:
        raise SystemExit("etcd is built by Go, and there is none")
    cache = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True).stdout.strip()
    path = Path(cache) / "viewproof-etcd"
    sys.stderr.write("building etcd, the first time for some minutes\n")
    command = ["go", "build", "-o", str(path), "."]
    built = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False)
    if built.returncode:
        raise SystemExit(f"etcd does not build here: {built.stderr.strip()}")
    return path


@contextlib.contextmanager
def members(directory: Path) -> Iterator[str]:
    """A new cluster of etcd; its endpoints, with commas."""
    ports = free_ports(2 * REPLICAS)
    peers = [f"http://{HOST}:{port}" for port in ports[:REPLICAS]]
    clients = [f"http://{HOST}:{port}" for port in ports[REPLICAS:]]
    cluster = ",".join(f"m{number}={peer}" for number, peer in enumerate(peers))
    processes = []
    for number in range(REPLICAS):
        options = {
            "name": f"m{number}",
            "data-dir": str(directory / f"m{number}"),
            "initial-cluster": cluster,
            "initial-cluster-state": "new",
            "initial-advertise-peer-urls": peers[number],
            "listen-peer-urls": peers[number],
            "listen-client-urls": clients[number],
            "advertise-client-urls": clients[number],
            "log-level": "error",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        processes.append(subprocess.Popen([program(), "member", *words], stderr=subprocess.DEVNULL))
    try:
        yield ",".join(clients)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure_etcd(clients: int, value_bytes: int, seconds: float) -> Measured:
    """A new cluster of etcd under load. Raises SystemExit if it does not answer."""
    with tempfile.TemporaryDirectory(prefix="bench-etcd-") as directory, members(Path(directory)) as endpoints:
        words = [str(word) for word in (clients, value_bytes, WARM_UP_SECONDS, seconds)]
        run = subprocess.run([program(), "load", endpoints, *words], capture_output=True, text=True, check=False)
        if run.returncode:
            raise SystemExit(f"etcd: {run.stderr.strip()}")
    found = json.loads(run.stdout)
    if found["failed"]:
        sys.stderr.write(f"etcd: {found['failed']} requests failed\n")
    return Measured(found["requests_per_second"], found["latency_ms_median"], found["latency_ms_99"], 0.0)


def compare(clients: int, value_bytes: int, seconds: float, repeat: int) -> tuple[str, ...]:
    """One row of the table; measurements of the two sides take turns."""
    own: list[Measured] = []
    other: list[Measured] = []
    started, (machine, mine) = time.monotonic(), busy_seconds()
    for _ in range(repeat):
        own.append(measure_own(Row("append", clients, value_bytes), seconds))
        other.append(measure_etcd(clients, value_bytes, seconds))
    machine_after, mine_after = busy_seconds()
    others = max(0.0, machine_after - machine - (mine_after - mine)) / (time.monotonic() - started)
    ours, theirs = median(own), median(other)
    rate = theirs.requests_per_second
    ratio = f"{ours.requests_per_second / rate:.2f}" if rate else "it answered nothing"
    return (str(clients), f"{value_bytes:,}", *ours.cells(), *theirs.cells()[:3], ratio, f"{others:.1f}")


def _chosen(text: str) -> tuple[int, int]:
    clients, _, value_bytes = text.partition(":")
    if not clients.isdigit() or not value_bytes.isdigit() or int(clients) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not CLIENTS:BYTES")
    return int(clients), int(value_bytes)


def main(words: Sequence[str] | None = None) -> None:
    """Parse options, measure, print."""
    parser = argparse.ArgumentParser(prog="benchmarks.etcd", description="The real cluster next to etcd.")
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement, after the warm-up (3)")
    parser.add_argument("--repeat", type=int, default=3, help="measurements of each side for one row (3)")
    parser.add_argument("--row", action="append", type=_chosen, help="CLIENTS:BYTES, only this; may be repeated")
    parser.add_argument("--record", action="store_true", help="keep the table, and write docs/cluster-speed.md")
    options = parser.parse_args(words)
    program()
    rows = []
    for clients, value_bytes in options.row or ROWS:
        sys.stderr.write(f"measuring {clients} clients, {value_bytes} bytes\n")
        rows.append(compare(clients, value_bytes, options.seconds, options.repeat))
    sys.stdout.write(table(HEADER, rows) + "\n")
    if options.record:
        note = f"Medians of {options.repeat}, of {options.seconds:g} s each."
        chosen = "".join(f" --row {clients}:{value_bytes}" for clients, value_bytes in options.row or ())
        record("cluster", "etcd", HEADER, rows, f"python -m benchmarks.etcd{chosen} --record", note)


if __name__ == "__main__":
    main()
