"""A cluster of real processes on this machine: format, start, kill (SIGKILL), restart, stop.

Layout below ``directory``: ``data/replica-I/`` the data directories, ``logs/replica-I.log`` what each process wrote to
stderr, and, unless told otherwise, ``traces/RUN/replica-I.ndjson``. Ports are chosen free, below the range from which
the system takes ports for outgoing connections, so that nothing takes a port while its replica is down.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from impl.durable import Quorums
from impl.net.client import Address, fetch_status
from impl.net.framing import Status
from impl.storage.data_file import format_data_file

__all__ = ["Cluster", "ClusterError", "free_ports"]

HOST = "127.0.0.1"


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


class Cluster:
    """Processes of one cluster. As a context manager it kills what is left at the end.

    ``cluster`` is the cluster's id, ``run`` the run id of the traces, ``faults`` named mistakes (impl/faults.py)
    switched on in every replica. Nothing is started or formatted by the constructor.
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
        tick_seconds: float = 0.01,
        faults: Iterable[str] = (),
    ) -> None:
        self.directory = Path(directory)
        self.replica_count = replica_count
        self.cluster = cluster
        self.run = run
        self.trace_directory = trace_directory if trace_directory is not None else self.directory / "traces"
        self.quorums = quorums
        self.tick_seconds = tick_seconds
        self.faults = tuple(faults)
        self.addresses: tuple[Address, ...] = tuple((HOST, port) for port in free_ports(replica_count))
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def data_path(self, replica: int) -> Path:
        """Data directory of a replica."""
        return self.directory / "data" / f"replica-{replica}"

    def log_path(self, replica: int) -> Path:
        """What the replica's processes wrote to stderr."""
        return self.directory / "logs" / f"replica-{replica}.log"

    def trace_path(self, replica: int) -> Path:
        """Trace of a replica, over all its processes."""
        return self.trace_directory / self.run / f"replica-{replica}.ndjson"

    def format(self) -> None:
        """Make all data directories. Raises DataFileError if one exists."""
        for replica in range(self.replica_count):
            format_data_file(self.data_path(replica), self.cluster, replica, self.replica_count, self.quorums)

    def start(self, replica: int) -> None:
        """Start the process of a replica. Raises ClusterError if it is running."""
        if self.alive(replica):
            raise ClusterError(f"replica {replica} is running already")
        command = [sys.executable, "-m", "impl.net.server", "--until-stdin-closes"]
        command += ["--data", str(self.data_path(replica)), "--replica", str(replica), "--cluster", str(self.cluster)]
        command += ["--addresses", ",".join(f"{host}:{port}" for host, port in self.addresses)]
        command += ["--trace", str(self.trace_path(replica)), "--run", self.run, "--tick", str(self.tick_seconds)]
        for fault in self.faults:
            command += ["--fault", fault]
        log = self.log_path(replica)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as stderr:
            self._processes[replica] = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd=Path(__file__).resolve().parents[2],
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

    def stop(self, replica: int, timeout_seconds: float = 10.0) -> int | None:
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
        codes = {replica: self._reap(process, 10.0) for replica, process in sorted(self._processes.items())}
        self._processes.clear()
        return codes

    async def statuses(self, timeout_seconds: float = 1.0) -> list[Status | None]:
        """The status of each replica, None for one that does not answer."""
        asked = (fetch_status(address, self.cluster, timeout_seconds) for address in self.addresses)
        return list(await asyncio.gather(*asked))

    async def primary(self) -> int | None:
        """The replica that is the normal primary of the highest view seen, or None."""
        found = [
            status
            for status in await self.statuses()
            if status is not None and status.status == "normal" and status.view % self.replica_count == status.replica
        ]
        return max(found, key=lambda status: status.view).replica if found else None

    async def wait_ready(self, timeout_seconds: float = 30.0) -> int:
        """Wait until every running replica is normal in one view with its primary; returns the primary.

        Raises ClusterError, with the ends of the logs, if a process ended or the time is up.
        """
        deadline = time.monotonic() + timeout_seconds
        while True:
            for replica, process in self._processes.items():
                if process.poll() is not None:
                    raise ClusterError(f"replica {replica} ended with {process.returncode}: {self.log_tail(replica)}")
            statuses = await self.statuses()
            running = [statuses[replica] for replica in self._processes]
            views = {status.view for status in running if status is not None and status.status == "normal"}
            if running and None not in running and len(views) == 1:
                view = views.pop()
                primary = view % self.replica_count
                if primary in self._processes and all(s is not None and s.status == "normal" for s in running):
                    return primary
            if time.monotonic() > deadline:
                states = [s and f"{s.status} view {s.view} op {s.op} commit {s.commit_min}" for s in statuses]
                raise ClusterError(f"not ready after {timeout_seconds} s: {states}")
            await asyncio.sleep(0.05)

    async def wait_answering(self, replica: int, timeout_seconds: float = 30.0) -> Status:
        """Wait until the replica's process answers. Raises ClusterError if it ended or the time is up."""
        deadline = time.monotonic() + timeout_seconds
        while True:
            status = await fetch_status(self.addresses[replica], self.cluster)
            if status is not None:
                return status
            if not self.alive(replica) or time.monotonic() > deadline:
                raise ClusterError(f"replica {replica} does not answer: {self.log_tail(replica)}")
            await asyncio.sleep(0.02)

    def log_tail(self, replica: int, lines: int = 5) -> str:
        """The last lines of a replica's log."""
        path = self.log_path(replica)
        if not path.exists():
            return "(no log)"
        return " | ".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])

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
