"""The real server and its clients: format, repl, cluster, record."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from viewproof.impl.faults import FAULTS
from viewproof.impl.groups.group import SINGLE, Group, parse_group, parse_groups
from viewproof.impl.interface.durable import CLIENT_SLOTS_MAX, CLIENTS_SESSIONS, ClientTableConfig, Quorums
from viewproof.impl.machine.partition_log import HEAD_BYTES, RECORD_BYTES, SEGMENT_BYTES
from viewproof.impl.net.authority import issue_cluster
from viewproof.impl.net.bench import UNREACHABLE_SECONDS
from viewproof.impl.net.client import EvictedError
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.connection import layout_of
from viewproof.impl.net.record import RecordOptions, RecordResult, RoundResult
from viewproof.impl.net.record import record as record_run
from viewproof.impl.net.record import rounds as record_rounds
from viewproof.impl.net.server import parse_addresses
from viewproof.impl.net.server_config import CHECKPOINT_INTERVAL, data_path
from viewproof.impl.net.sync_client import SyncClient
from viewproof.impl.net.tls import Tls
from viewproof.impl.replica.features import FEATURES
from viewproof.impl.storage.data_file import format_data_file
from viewproof.impl.storage.ring_file import SLOT_SIZE_DEFAULT, SLOTS_DEFAULT, Geometry
from viewproof.refinement.cli import repl as lines
from viewproof.refinement.cli.options import (
    FaultName,
    Place,
    RunName,
    addresses_option,
    cluster_id_option,
    json_option,
    json_option_of_maker,
    protect,
    protect_data,
    tls_option,
)
from viewproof.refinement.cli.output import note, save_json
from viewproof.refinement.cli.used import note_other_runs
from viewproof.refinement.cli.watch import Watch, description
from viewproof.refinement.schema import REPLICAS_MAX
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_ERROR, EXIT_INCONCLUSIVE, EXIT_VIOLATES
from viewproof.spec.vsr.config import ClientTable

_DIRECTORY = Place(file_okay=False)
_groups = click.option(
    "--groups",
    default=SINGLE.name,
    show_default=True,
    callback=lambda context, parameter, value: parse_groups(value),
    help="Consensus groups of every process: single, or metadata,partitions, or metadata,partition:0/1/2,….",
)
_checkpoint_interval = click.option(
    "--checkpoint-interval",
    type=click.IntRange(0),
    default=CHECKPOINT_INTERVAL,
    show_default=True,
    help="Ops between two checkpoints, the same on every replica; 0: none, and the journal grows for ever.",
)
_segment_bytes = click.option(
    "--segment-bytes",
    type=click.IntRange(HEAD_BYTES + RECORD_BYTES, (1 << 32) - 1),
    default=SEGMENT_BYTES,
    show_default=True,
    help="Size at which segments of messages roll; the same on every replica, for ever.",
)
_features = click.option(
    "--feature", "features", multiple=True, type=click.Choice(sorted(FEATURES.values())), help="Supported feature."
)

_tls = click.option(
    "--tls", "secured", is_flag=True, help="Make an authority for development, and use TLS on every connection."
)


@click.command("format")
@click.argument("directory", type=_DIRECTORY)
@click.option("--replica", type=click.IntRange(0, REPLICAS_MAX - 1), required=True, help="Index of this replica.")
@click.option("--replicas", type=click.IntRange(1, REPLICAS_MAX), default=3, show_default=True)
@click.option("--quorum-replication", type=click.IntRange(1), help="Majority unless given.")
@click.option("--quorum-view-change", type=click.IntRange(1), help="Majority unless given.")
@click.option(
    "--sessions/--no-sessions",
    default=True,
    show_default=True,
    help="Clients register; without, a client must never forget its number. The same for every replica.",
)
@click.option(
    "--client-slots",
    type=click.IntRange(0, CLIENT_SLOTS_MAX),
    help=f"Clients that are remembered; {CLIENTS_SESSIONS.slots} unless given, and every one (0) without sessions.",
)
@click.option(
    "--journal",
    type=click.Choice(("append", "ring")),
    default="append",
    show_default=True,
    help="A file that grows and is drained, or rings of fixed slots, which need checkpoints.",
)
@click.option(
    "--journal-slots",
    type=click.IntRange(1),
    default=SLOTS_DEFAULT,
    show_default=True,
    help="Slots of a ring: at least the ops between two checkpoints and the pipeline.",
)
@_groups
@cluster_id_option
@json_option
def format_data(
    directory: Path,
    replica: int,
    replicas: int,
    quorum_replication: int | None,
    quorum_view_change: int | None,
    sessions: bool,
    client_slots: int | None,
    journal: str,
    journal_slots: int,
    groups: tuple[Group, ...],
    cluster_id: int,
    json_file: Path | None,
) -> int:
    """Make the data directory of one replica, with one directory below it for each of several groups."""
    protect_data("--json", json_file, [directory])
    quorums = None
    if quorum_replication is not None or quorum_view_change is not None:
        majority = replicas // 2 + 1
        quorums = Quorums(quorum_replication or majority, quorum_view_change or majority)
    slots = client_slots if client_slots is not None else (CLIENTS_SESSIONS.slots if sessions else 0)
    clients = ClientTableConfig(slots, sessions, gaps=slots > 0 and not sessions)
    for group in groups:
        path = data_path(directory, group)
        ring = Geometry(journal_slots, SLOT_SIZE_DEFAULT) if journal == "ring" else None
        format_data_file(path, cluster_id, replica, replicas, quorums, clients=clients, group=group.number, ring=ring)
        click.echo(f"formatted {path}: cluster {cluster_id}, replica {replica} of {replicas}")
    made = {"format": "viewproof.format/1", "directory": str(directory), "cluster": cluster_id, "replica": replica}
    save_json({**made, "exit_code": EXIT_CONFORMS}, json_file)
    return EXIT_CONFORMS


@click.command()
@addresses_option
@click.option("--group", default=SINGLE.name, show_default=True, help="As in --groups: one of them.")
@cluster_id_option
@tls_option
@json_option
def repl(addresses: str, group: str, cluster_id: int, tls: Path | None, json_file: Path | None) -> int:
    """Talk to the replicated state machine: one command a line, from the terminal or stdin.

    Keys belong to the group metadata, partitions (STREAM/TOPIC/PARTITION) to the group partitions, if there are two.
    Words with spaces stand in quotes. Exit code 2 if a line read from a file or pipe is no command, 4 if it is
    not known whether one was carried out (the session was evicted meanwhile).
    """
    terminal = sys.stdin.isatty()
    if terminal:
        note(lines.HELP)
    answers: list[dict[str, str]] = []
    wrong = unknown = 0
    parsed, asked = parse_addresses(addresses), parse_group(group)
    shown = None if tls is None else Tls(tls)
    layout = asyncio.run(layout_of(parsed, cluster_id, shown))
    with SyncClient(parsed, cluster_id, None, 30.0, UNREACHABLE_SECONDS, asked.number, shown) as client:
        for number, line in enumerate(sys.stdin, 1):
            try:
                words = lines.parse(line, layout)
            except lines.LineError as error:
                wrong += 1
                note(f"{error}" if terminal else f"line {number}: {error}")
                answers.append({"command": line.strip(), "error": str(error)})
                continue
            if words and words[0] in lines.QUIT:
                break
            if words:
                try:
                    answer = lines.answer(client, words, layout)
                except EvictedError as error:
                    unknown += 1
                    note(f"{error}" if terminal else f"line {number}: {error}")
                    answers.append({"command": line.strip(), "error": str(error)})
                    continue
                answers.append({"command": line.strip(), "answer": answer})
                click.echo(answer)
    code = EXIT_ERROR if wrong else EXIT_INCONCLUSIVE if unknown else EXIT_CONFORMS
    code = EXIT_CONFORMS if terminal else code
    save_json({"format": "viewproof.repl/1", "answers": answers, "exit_code": code}, json_file)
    return code


@click.command()
@click.argument("directory", type=_DIRECTORY)
@click.option("--replicas", type=click.IntRange(1, REPLICAS_MAX), default=3, show_default=True)
@click.option(
    "--run", type=RunName(), default="run", show_default=True, help="Run id in the traces, DIRECTORY/traces/RUN."
)
@click.option("--restart", is_flag=True, help="Start a replica that ended again, after a second.")
@_tls
@_groups
@_features
@json_option_of_maker
def cluster(
    directory: Path,
    replicas: int,
    run: str,
    restart: bool,
    secured: bool,
    groups: tuple[Group, ...],
    features: tuple[str, ...],
    json_file: Path | None,
) -> int:
    """Start a cluster of processes on this machine; ends with Ctrl-C. Formats what is not formatted yet.

    A replica that ends does not end the others: the command that starts it again is printed. See docs/cluster.md.
    """
    protect({"--json": json_file}, directories=[directory])
    protect_data("--json", json_file, [directory / "data"])
    tls = directory / "tls" if secured else None
    with Cluster(directory, replicas, run=run, groups=groups, features=features, tls=tls) as processes:
        processes.format_or_check()
        if processes.tls is not None:
            issue_cluster(processes.tls, processes.cluster, processes.addresses)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        processes.start_all()
        primary = asyncio.run(processes.wait_ready())
        click.echo(description(processes, primary))
        sys.stdout.flush()
        addresses = processes.address_list().split(",")
        pids = [processes.pid(replica) for replica in range(replicas)]
        result = {"format": "viewproof.cluster/1", "primary": primary, "addresses": addresses, "pids": pids}
        save_json({**result, "exit_code": EXIT_CONFORMS}, json_file)
        watch = Watch(processes, restart, note)
        try:
            while True:
                watch.look()
                time.sleep(0.2)
        except KeyboardInterrupt:
            processes.stop_all()
            note("stopped all")
    return EXIT_CONFORMS


@click.command()
@click.argument("out", type=_DIRECTORY)
@click.option("--run", type=RunName(), default="run", show_default=True, help="Run id; the traces go to OUT/RUN.")
@click.option("--replicas", type=click.IntRange(1, REPLICAS_MAX), default=3, show_default=True)
@click.option("--clients", type=click.IntRange(1), default=4, show_default=True)
@click.option("--requests", type=click.IntRange(1), default=1000, show_default=True, help="At least; or per round.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--kill/--no-kill", default=True, show_default=True, help="Kill the primary with SIGKILL under load.")
@click.option("--rounds", type=click.IntRange(0), default=0, help="Instead: rounds of killing a random process.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    type=FaultName(FAULTS),
    metavar="NAME",
    help="Switch a mistake on in every replica.",
)
@click.option(
    "--client-slots",
    type=click.IntRange(1, CLIENT_SLOTS_MAX),
    default=CLIENTS_SESSIONS.slots,
    show_default=True,
    help="Clients that the cluster remembers; fewer than the clients, and they evict each other.",
)
@click.option(
    "--sessions/--no-sessions",
    default=True,
    show_default=True,
    help="Clients register.",
)
@_checkpoint_interval
@_tls
@_groups
@_features
@json_option_of_maker
def record(
    out: Path,
    run: str,
    replicas: int,
    clients: int,
    requests: int,
    seed: int,
    kill: bool,
    rounds: int,
    faults: tuple[str, ...],
    client_slots: int,
    sessions: bool,
    checkpoint_interval: int,
    secured: bool,
    groups: tuple[Group, ...],
    features: tuple[str, ...],
    json_file: Path | None,
) -> int:
    """Record traces of a real cluster of processes under load. Exit code 1 if a client saw a wrong answer.

    With --groups there is a load on the keys, one on the partitions of each other group, and a run for each group.
    """
    protect({"--json": json_file}, directories=[out])
    options = RecordOptions(
        replica_count=replicas,
        clients=clients,
        requests=requests,
        seed=seed,
        kill=kill,
        faults=faults,
        client_table=ClientTableConfig(client_slots, sessions, gaps=not sessions),
        checkpoint_interval=checkpoint_interval,
        groups=groups,
        features=features,
        tls=secured,
    )
    with tempfile.TemporaryDirectory(prefix="vsr-record-") as data:
        if rounds:
            many = record_rounds(Path(data), out, run, rounds, options, _print_round)
            ok, result = many.ok, _plain(many)
        else:
            one = record_run(Path(data), out, run, options)
            ok, result = one.ok, _plain(one)
            _print_record(one)
    code = EXIT_CONFORMS if ok else EXIT_VIOLATES
    runs = [group.run(run) for group in groups]
    traces = [str(out / name) for name in runs]
    audit = shlex.join(["vsr", "audit", *traces])
    click.echo(f"clients' view: {'consistent' if ok else 'WRONG'}; traces: {' '.join(traces)} ({audit})")
    if weakness := ClientTable(client_slots, sessions).weakness:
        click.echo(weakness)
    note_other_runs(out, runs)
    format_ = "viewproof.record-rounds/1" if rounds else "viewproof.record/1"
    save_json({"format": format_, **result, "exit_code": code}, json_file)
    return code


def _plain(result: Any) -> dict[str, Any]:
    return dict(msgspec.to_builtins(result, enc_hook=str))


def _print_record(result: RecordResult) -> None:
    killed = "nobody killed" if result.killed is None else f"primary {result.killed} killed"
    click.echo(
        f"{result.requests} requests answered, {result.unanswered} not, {result.retries} retries; {killed}; "
        f"view {result.view_before} → {result.view_after}; {result.requests_per_second:.0f} requests/s, "
        f"latency {result.latency_ms_median:.1f} ms median, {result.latency_ms_max:.0f} ms at most"
    )
    _print_appends(result)


def _print_round(result: RoundResult) -> None:
    role = "primary" if result.was_primary else "backup"
    note(
        f"round {result.number}: replica {result.killed} ({role}) killed, view {result.view_before} → "
        f"{result.view_after}, {result.requests} requests, {'consistent' if result.ok else 'WRONG'}"
    )
    _print_appends(result)


def _print_appends(result: RecordResult | RoundResult) -> None:
    if result.appends:
        state = "; ".join(result.problems[:3]) or "none lost or doubled, offsets unique and rising"
        note(f"{result.appends} appends to partitions: {state}")
