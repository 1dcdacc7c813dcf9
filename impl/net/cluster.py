"""A cluster of real processes on this machine: format, start, kill (SIGKILL), restart, stop.

Layout below ``directory``: ``data/replica-I/`` the data directories, ``logs/replica-I.log`` what each process wrote to
stderr, and, unless told otherwise, ``traces/RUN/replica-I.ndjson``. All paths are made
absolute. Ports are chosen free, below the range from which the system takes ports for outgoing connections, so that
nothing takes a port while its replica is down.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from viewproof.impl.faults import validate_faults
from viewproof.impl.groups.group import SINGLE, Group
from viewproof.impl.interface.durable import CLIENTS_SESSIONS, ClientTableConfig, Quorums, SuperblockState
from viewproof.impl.net.address import Address, address_text
from viewproof.impl.net.connection import fetch_status
from viewproof.impl.net.framing import Status
from viewproof.impl.net.server_config import data_path, groups_there, trace_path
from viewproof.impl.net.tls import Tls
from viewproof.impl.storage.data_file import SUPERBLOCK_NAME, format_data_file
from viewproof.impl.storage.recover import is_in_use
from viewproof.impl.storage.superblock import COPIES, COPY_SIZE, decode_copy

__all__ = ["Cluster", "ClusterError", "Place", "free_ports"]

HOST = "127.0.0.1"

STOP_SECONDS = 60.0
"""A process that has not ended so long after SIGTERM is killed."""


class ClusterError(Exception):
    """A process did not start or the cluster did not become ready; the text quotes the logs."""


def free_ports(count: int) -> list[int]:
    """``count`` ports that nobody listens on now. Raises ClusterError if there are none."""
    ports: list[int] = []
    for port in random.sample(range(10_000, 32_000), 2_000):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise ClusterError(f"no {count} free ports between 10000 and 32000 on {HOST}")


class Place(NamedTuple):
    """Where a replica listens; ``inside``: words before its command, as those that enter a network namespace."""

    address: Address
    inside: tuple[str, ...] = ()


class Cluster:
    """Processes of one cluster. As a context manager it kills what is left at the end.

    ``cluster`` is the cluster's id, ``run`` the run id of the traces, ``faults`` named mistakes (impl/faults/)
    switched on in every replica; ``server_options`` are further options of impl/net/server.py. ``groups``: the
    consensus groups of every process; ``features``: what the members support, which may be changed per replica
    between its processes. ``tls``: the directory of an authority
    (impl/net/authority.py). Nothing is started or formatted by the constructor; it raises FaultError for an unknown
    fault.
    """

    def __init__(
        self,
        directory: Path,
        replica_count: int = 3,
        *,
        cluster: int = 1,
        run: str = "run",
        trace_directory: Path | None = None,
        quorums: Quorums | None = None,
        clients: ClientTableConfig = CLIENTS_SESSIONS,
        tick_seconds: float = 0.01,
        faults: Iterable[str] = (),
        traced: bool = True,
        server_options: Iterable[str] = (),
        groups: Iterable[Group] = (SINGLE,),
        features: Iterable[str] = (),
        tls: Path | None = None,
    ) -> None:
        self.directory = Path(directory).absolute()
        self.tls = None if tls is None else tls.absolute()
        self.replica_count = replica_count
        self.cluster = cluster
        self.run = run
        self.trace_directory = (trace_directory or self.directory / "traces").absolute()
        self.quorums = quorums
        self.clients = clients
        self.tick_seconds = tick_seconds
        self.faults = tuple(faults)
        self.traced = traced
        self.server_options = tuple(server_options)
        self.groups = tuple(groups)
        self.features = [tuple(features)] * replica_count
        validate_faults(frozenset(self.faults))
        self.addresses: tuple[Address, ...] = tuple((HOST, port) for port in free_ports(replica_count))
        self._inside: tuple[tuple[str, ...], ...] = ((),) * replica_count
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._log_starts: dict[int, int] = {}

    def run_at(self, places: Sequence[Place]) -> None:
        """Where the replicas run, if not at free ports of this host."""
        self.addresses = tuple(place.address for place in places)
        self._inside = tuple(place.inside for place in places)

    def data_path(self, replica: int) -> Path:
        """Data directory of a replica."""
        return self.directory / "data" / f"replica-{replica}"

    def log_path(self, replica: int) -> Path:
        """What the replica's processes wrote to stderr."""
        return self.directory / "logs" / f"replica-{replica}.log"

    def trace_path(self, replica: int, group: Group | None = None) -> Path:
        """Trace of a replica in a group (None: its first), over all its processes."""
        return trace_path(self._trace_option(replica), self.groups[0] if group is None else group)

    @property
    def trace_paths(self) -> tuple[Path, ...]:
        """The traces of all replicas in all groups."""
        return tuple(self.trace_path(replica, group) for group in self.groups for replica in range(self.replica_count))

    def format(self) -> None:
        """Make all data directories. Raises DataFileError if one exists."""
        for replica in range(self.replica_count):
            for group in self.groups:
                format_data_file(
                    data_path(self.data_path(replica), group),
                    self.cluster,
                    replica,
                    self.replica_count,
                    self.quorums,
                    clients=self.clients,
                    group=group.number,
                )

    def format_or_check(self) -> None:
        """Make all data directories if there is none yet; otherwise check that all are there and of this cluster.

        Raises ClusterError naming what does not fit. A directory that is missing beside others is never made anew: a
        replica that forgot what it acknowledged must not vote.
        """
        found = sorted((self.directory / "data").glob("replica-*"))
        if not found:
            self.format()
            return
        for path in found:
            there = groups_there(path)
            if there and there != self.groups:
                names, asked = (",".join(group.name for group in groups) for groups in (there, self.groups))
                raise ClusterError(f"{path} was formatted for the groups {names}, but {asked} were asked for")
            state = _superblock(data_path(path, self.groups[0]))
            if state is not None and state.replica_count != self.replica_count:
                raise ClusterError(
                    f"{path} was formatted for a cluster of {state.replica_count} replicas, but {self.replica_count} "
                    f"were asked for: use --replicas {state.replica_count}, or another directory"
                )
            if state is not None and state.cluster != self.cluster:
                raise ClusterError(f"{path} belongs to cluster {state.cluster}, not to cluster {self.cluster}")
        used = [str(path) for path in found if is_in_use(data_path(path, self.groups[0]))]
        if used:
            raise ClusterError(f"{', '.join(used)}: in use by another process: does the cluster run already?")
        replicas = [self.data_path(replica) for replica in range(self.replica_count)]
        missing = [data_path(path, group) for path in replicas for group in self.groups]
        missing = [path for path in missing if not (path / SUPERBLOCK_NAME).exists()]
        if missing:
            raise ClusterError(
                f"{', '.join(map(str, missing))}: not there, or not formatted to the end, though other replicas have "
                "data; a lost replica is not made anew. If the cluster never ran, delete its whole directory"
            )

    def pid(self, replica: int) -> int | None:
        """Process id of the replica's last process, None if it was never started or was stopped."""
        process = self._processes.get(replica)
        return None if process is None else process.pid

    def exit_code(self, replica: int) -> int | None:
        """How the replica's last process ended (minus the signal that killed it); None while it runs."""
        process = self._processes.get(replica)
        return None if process is None else process.poll()

    def address_list(self) -> str:
        """All addresses, as --addresses takes them."""
        return ",".join(map(address_text, self.addresses))

    def start_command(self, replica: int) -> str:
        """The shell command that runs the replica by hand, with the same data, address and trace."""
        words = ["vsr", "start", str(self.data_path(replica)), "--replica", str(replica)]
        words += ["--addresses", self.address_list(), "--cluster", str(self.cluster), *self._member_options(replica)]
        return shlex.join([*words, "--trace", str(self._trace_option(replica)), "--run", self.run])

    def _trace_option(self, replica: int) -> Path:
        return self.trace_directory / self.run / f"replica-{replica}.ndjson"

    def _member_options(self, replica: int) -> list[str]:
        """What `vsr start` and impl/net/server.py are told of groups and features, where it is not the default."""
        options: list[str] = []
        if self.tls is not None:
            options += ["--tls", str(self.tls / f"replica-{replica}")]
        if self.groups != (SINGLE,):
            options += ["--groups", ",".join(group.name for group in self.groups)]
        for feature in self.features[replica]:
            options += ["--feature", feature]
        return options

    def start(self, replica: int, options: Iterable[str] = ()) -> None:
        """Start the process of a replica; ``options`` win over all others. Raises ClusterError if it is running."""
        if self.alive(replica):
            raise ClusterError(f"replica {replica} is running already")
        command = [
            *self._inside[replica],
            sys.executable,
            "-m",
            "viewproof.impl.net.server",
            "--until-stdin-closes",
        ]
        command += ["--data", str(self.data_path(replica)), "--replica", str(replica), "--cluster", str(self.cluster)]
        command += ["--addresses", self.address_list()]
        command += ["--tick", str(self.tick_seconds), *self._member_options(replica), *self.server_options]
        if self.traced:
            command += ["--trace", str(self._trace_option(replica)), "--run", self.run]
        for fault in self.faults:
            command += ["--fault", fault]
        command += options
        log = self.log_path(replica)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stderr:
            self._log_starts[replica] = stderr.tell()
            self._processes[replica] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd=Path(__file__).parents[3],
                start_new_session=True,
            )

    def start_all(self) -> None:
        """Start every replica that is not running."""
        for replica in range(self.replica_count):
            if not self.alive(replica):
                self.start(replica)

    def alive(self, replica: int) -> bool:
        """True if the replica's process runs."""
        process = self._processes.get(replica)
        return process is not None and process.poll() is None

    def kill(self, replica: int) -> None:
        """SIGKILL the process and wait for its end; nothing happens if it does not run."""
        process = self._processes.pop(replica, None)
        if process is not None:
            process.kill()
            self._reap(process, 10.0)

    def stop(self, replica: int, timeout_seconds: float = STOP_SECONDS) -> int | None:
        """SIGTERM, wait, and SIGKILL if it takes too long; returns the exit code (None: it did not run)."""
        process = self._processes.pop(replica, None)
        if process is None:
            return None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        return self._reap(process, timeout_seconds)

    def stop_all(self) -> dict[int, int]:
        """Stop every replica; exit codes by replica."""
        for process in self._processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        codes = {replica: self._reap(process, STOP_SECONDS) for replica, process in sorted(self._processes.items())}
        self._processes.clear()
        return codes

    def client_tls(self) -> Tls | None:
        """What a client of this cluster shows, None without TLS."""
        return None if self.tls is None else Tls(self.tls / "clients")

    async def statuses(self, timeout_seconds: float = 1.0, group: Group | None = None) -> list[Status | None]:
        """The status of each replica in a group (None: its first), None for one that does not answer."""
        number = (group or self.groups[0]).number
        tls = self.client_tls()
        asked = (fetch_status(address, self.cluster, timeout_seconds, number, tls) for address in self.addresses)
        return list(await asyncio.gather(*asked))

    async def primary(self, group: Group | None = None) -> int | None:
        """The replica that is the normal primary of a group's highest view seen, or None."""
        found = [each for each in await self.statuses(group=group) if each is not None and each.is_primary]
        return max(found, key=lambda status: status.view).replica if found else None

    async def wait_ready(self, timeout_seconds: float = 30.0) -> int:
        """Wait until every running replica is normal in one view with its primary, in each group.

        Returns the primary of the first group. Raises ClusterError, with the ends of the logs, if a process ended or
        the time is up.
        """
        deadline = time.monotonic() + timeout_seconds
        primaries = [await self._wait_ready(group, deadline, timeout_seconds) for group in self.groups]
        return primaries[0]

    async def _wait_ready(self, group: Group, deadline: float, timeout_seconds: float) -> int:
        while True:
            for replica, process in self._processes.items():
                if process.poll() is not None:
                    raise ClusterError(f"replica {replica} ended, code {process.returncode}: {self.log_tail(replica)}")
            statuses = await self.statuses(group=group)
            running = [statuses[replica] for replica in self._processes]
            views = {status.view for status in running if status is not None and status.status == "normal"}
            if running and None not in running and len(views) == 1:
                view = views.pop()
                primary = view % self.replica_count
                if primary in self._processes and all(s is not None and s.status == "normal" for s in running):
                    return primary
            if time.monotonic() > deadline:
                states = [s and f"{s.status} view {s.view} op {s.op} commit {s.commit_min}" for s in statuses]
                raise ClusterError(f"group {group.name} is not ready after {timeout_seconds} s: {states}")
            await asyncio.sleep(0.05)

    async def wait_answering(self, replica: int, timeout_seconds: float = 30.0) -> Status:
        """Wait until the replica's process answers. Raises ClusterError if it ended or the time is up."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            status = await fetch_status(self.addresses[replica], self.cluster, tls=self.client_tls())
            if status is not None:
                return status
            if not self.alive(replica) or time.monotonic() > deadline:
                raise ClusterError(f"replica {replica} does not answer: {self.log_tail(replica)}")
            await asyncio.sleep(0.02)

    def log_tail(self, replica: int, lines: int = 5) -> str:
        """The last lines that the replica's last process wrote to its log; of one that gave up, the reason only."""
        path = self.log_path(replica)
        if not path.exists():
            return "(no log)"
        written = path.read_bytes()[self._log_starts.get(replica, 0) :].decode(errors="replace").splitlines()
        if written and written[-1].startswith("error: "):
            return written[-1].removeprefix("error: ")
        return " | ".join(written[-lines:]) or "(nothing in its log)"

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for replica in list(self._processes):
            self.kill(replica)

    @staticmethod
    def _reap(process: subprocess.Popen[bytes], timeout_seconds: float) -> int:
        try:
            code = process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        return code


def _superblock(directory: Path) -> SuperblockState | None:
    """What a data directory says it is; None if no copy can be read (the replica itself says why, when started)."""
    try:
        data = (directory / SUPERBLOCK_NAME).read_bytes()
    except OSError:
        return None
    copies = (decode_copy(data[copy * COPY_SIZE : (copy + 1) * COPY_SIZE], copy)[0] for copy in range(COPIES))
    return next((state for state in copies if state is not None), None)
