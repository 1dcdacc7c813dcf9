"""`vsr bench`: how fast a real cluster answers. (How fast the audit is: `python -m benchmarks.audit`.)"""

from __future__ import annotations

import asyncio
import functools
import tempfile
from pathlib import Path

import click
import msgspec

from viewproof.impl.interface.durable import CLIENTS_SESSIONS, ClientTableConfig
from viewproof.impl.interface.ranges import BODY_SIZE_MAX
from viewproof.impl.net.bench import BenchResult
from viewproof.impl.net.bench import bench as measure
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.server import parse_addresses
from viewproof.impl.net.tls import Tls
from viewproof.refinement.cli.options import Seconds, cluster_id_option, tls_option
from viewproof.refinement.cli.output import json_option, note, save_json
from viewproof.refinement.interrupts import left_to_asyncio
from viewproof.refinement.reports.text import number
from viewproof.refinement.schema import REPLICAS_MAX
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE

FLUSHES = {"group": (), "each": ("--flush-each",), "none": ("--no-sync",)}
"""--flush → options of the servers."""

CLIENTS_MAX = 1 << 16


@click.command()
@click.option("--addresses", help="HOST:PORT of all replicas, with commas; else a cluster is started for it.")
@cluster_id_option
@click.option(
    "--replicas", type=click.IntRange(1, REPLICAS_MAX), default=3, show_default=True, help="Of the cluster it starts."
)
@click.option(
    "--clients", type=click.IntRange(1, CLIENTS_MAX), default=32, show_default=True, help="Each with one request open."
)
@click.option("--seconds", type=Seconds(), default=5.0, show_default=True)
@click.option(
    "--payload", type=click.IntRange(0, BODY_SIZE_MAX), default=64, show_default=True, help="Bytes of each value."
)
@click.option(
    "--connections", type=click.IntRange(1, CLIENTS_MAX), default=1, show_default=True, help="Which the clients share."
)
@click.option(
    "--flush",
    type=click.Choice(list(FLUSHES)),
    default="group",
    show_default=True,
    help="Of the cluster it starts: entries that wait share a flush, each has its own, or none is made (not durable).",
)
@click.option("--no-trace", is_flag=True, help="The cluster it starts writes no trace.")
@tls_option
@json_option
def bench(
    addresses: str | None,
    cluster_id: int,
    replicas: int,
    clients: int,
    seconds: float,
    payload: int,
    connections: int,
    flush: str,
    no_trace: bool,
    tls: Path | None,
    json_file: Path | None,
) -> int:
    """Measure a cluster: answered puts a second and their latency.

    The cluster that it starts has its processes, and the clients, on this machine; every put is durable on a quorum
    before it is answered, unless --flush none, and traced, unless --no-trace. Its data is removed afterwards. Exit
    code 4 if nothing was answered, or on Ctrl-C, which keeps what was measured. (Next to PySyncObj: python -m
    benchmarks.cluster.)
    """
    load = functools.partial(
        measure,
        cluster=cluster_id,
        clients=clients,
        connections=connections,
        seconds=seconds,
        value_bytes=payload,
        tls=None if tls is None else Tls(tls),
    )
    if addresses is not None:
        with left_to_asyncio():
            result = load(parse_addresses(addresses))
    else:
        slots = max(clients, CLIENTS_SESSIONS.slots)
        with (
            tempfile.TemporaryDirectory(prefix="vsr-bench-") as directory,
            Cluster(
                Path(directory),
                replicas,
                cluster=cluster_id,
                clients=ClientTableConfig(slots=slots, sessions=True),
                traced=not no_trace,
                server_options=FLUSHES[flush],
            ) as processes,
        ):
            processes.format()
            processes.start_all()
            primary = asyncio.run(processes.wait_ready())
            note(f"{replicas} replicas on this machine, primary {primary}; {seconds:g} s")
            with left_to_asyncio():
                result = load(processes.addresses)
            processes.stop_all()
    _print(result)
    code = EXIT_CONFORMS if result.requests and not result.interrupted else EXIT_INCONCLUSIVE
    save_json({"format": "viewproof.bench/1", **msgspec.to_builtins(result), "exit_code": code}, json_file)
    return code


def _print(result: BenchResult) -> None:
    if result.interrupted:
        click.echo("interrupted: this is what was measured before")
    click.echo(f"{result.requests_per_second:,.0f} requests/s ({result.requests:,} in {result.seconds:.1f} s)")
    latencies = (result.latency_ms_median, result.latency_ms_99, result.latency_ms_max)
    click.echo("latency ms: p50 {:.2f}, p99 {:.2f}, max {:.2f}".format(*latencies))
    shared = f"{number(result.clients, 'client')} over {number(result.connections, 'connection')}"
    click.echo(f"{shared}, values of {number(result.value_bytes, 'byte')}, {result.retries} retries")
