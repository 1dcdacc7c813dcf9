"""What is done to a cluster while it is used: to its processes, its files, its settings, its network.

A strike ends by itself and puts right what it did: the process is started again, the link carries again. A replica
that refuses to start on damaged files is put back by `vsr recover`, as its operator would do.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from random import Random

from benchmarks.soak.network import Network
from viewproof.impl.interface.durable import ClientTableConfig, Quorums
from viewproof.impl.net.address import address_text
from viewproof.impl.net.authority import issue_cluster
from viewproof.impl.net.cluster import Cluster, ClusterError
from viewproof.impl.storage.data_file import format_data_file

VSR = (sys.executable, "-c", "from viewproof.refinement.cli import main; main()")

BACK_SECONDS = 300.0
"""A cluster that is left alone must be back within this time, on a busy machine too."""

PAGE = 4096

Strike = Callable[[], Awaitable[str]]


class NotBackError(Exception):
    """A replica did not come back; the text says what was done to it and what its log says."""


class ProcessStrikes:
    """On one replica at a time, or on all processes at once; its files stay whole, or its settings are wrong."""

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self.cluster = cluster
        self.random = random
        self.counts: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self._other = cluster.directory / "other"
        self._traces = count()
        self._make_others()

    def strikes(self) -> list[tuple[Strike, int]]:
        """With their weights."""
        return [(self.kill, 4), (self.kill_twice, 1), (self.kill_all, 1), (self.stop, 1), (self.pause, 4)]

    async def some(self) -> None:
        """One of them."""
        chosen = self.strikes()
        strike = self.random.choices([strike for strike, _ in chosen], [weight for _, weight in chosen])[0]
        self.counts[await strike()] += 1

    async def victim(self) -> int:
        """Half the time the primary."""
        primary = await self.cluster.primary() if self.random.random() < 0.5 else None
        return self.random.randrange(self.cluster.replica_count) if primary is None else primary

    async def rest(self, least: float, most: float) -> None:
        """Some time between these, in seconds."""
        await asyncio.sleep(self.random.uniform(least, most))

    async def kill(self) -> str:
        """SIGKILL, and a new process soon or later."""
        victim = await self.victim()
        self.cluster.kill(victim)
        await self.rest(0.0, 3.0)
        await self.back(victim, "SIGKILL")
        return "SIGKILL"

    async def kill_twice(self) -> str:
        """SIGKILL, and another while the new process starts."""
        victim = await self.victim()
        self.cluster.kill(victim)
        self.cluster.start(victim)
        await self.rest(0.0, 0.8)
        self.cluster.kill(victim)
        await self.back(victim, "SIGKILL twice")
        return "SIGKILL twice"

    async def kill_all(self) -> str:
        """All at once."""
        for replica in range(self.cluster.replica_count):
            self.cluster.kill(replica)
        await self.rest(0.0, 0.5)
        self.cluster.start_all()
        for replica in range(self.cluster.replica_count):
            await self.back(replica, "SIGKILL of all")
        return "SIGKILL of all"

    async def stop(self) -> str:
        """SIGTERM."""
        victim = await self.victim()
        code = await asyncio.to_thread(self.cluster.stop, victim)
        if code:
            raise NotBackError(f"replica {victim} ended with {code} at SIGTERM: {self.cluster.log_tail(victim)}")
        await self.back(victim, "SIGTERM")
        return "SIGTERM"

    async def pause(self) -> str:
        """SIGSTOP, for shorter or longer than what the others wait for."""
        victim = await self.victim()
        pid = self.cluster.pid(victim)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            await self.rest(0.1, 6.0)
        finally:
            os.kill(pid, signal.SIGCONT)
        await self.back(victim, "SIGSTOP")
        return "SIGSTOP"

    async def back(self, replica: int, after: str) -> None:
        """The replica's process runs and answers. Raises NotBackError."""
        if not self.cluster.alive(replica):
            self.cluster.start(replica)
        try:
            await self.cluster.wait_answering(replica, BACK_SECONDS)
        except ClusterError as error:
            raise NotBackError(f"after {after}: {error}") from None

    # Wrong settings

    def _make_others(self) -> None:
        cluster = self.cluster
        for replica in range(cluster.replica_count):
            for name, quorums, clients in (
                ("quorums", Quorums(cluster.replica_count, 1), cluster.clients),
                ("clients", None, ClientTableConfig(32, sessions=True)),
            ):
                path = self._other / f"{name}-{replica}"
                format_data_file(path, cluster.cluster, replica, cluster.replica_count, quorums, clients=clients)
        issue_cluster(self._other / "tls", cluster.cluster, cluster.addresses)

    def _own_trace(self) -> list[str]:
        """Options for a new trace. That of the run has one configuration, and its replica is not the one that starts
        with a wrong one: that it wrote nothing meanwhile shows when it comes back.
        """
        return ["--trace", str(self._other / f"trace-{next(self._traces)}.ndjson"), "--run", "other"]

    def wrong_settings(self, victim: int) -> dict[str, list[str]]:
        """Name → options that win over the right ones."""
        other = (victim + 1) % self.cluster.replica_count
        turned = list(self.cluster.addresses)
        turned[other], turned[other - 2] = turned[other - 2], turned[other]
        trace = self._own_trace()
        return {
            "another checkpoint interval": ["--checkpoint-interval", "77", *trace],
            "addresses exchanged": ["--addresses", ",".join(map(address_text, turned))],
            "another authority": ["--tls", str(self._other / "tls" / f"replica-{victim}")],
            "another's certificate": ["--tls", str((self.cluster.tls or self._other) / f"replica-{other}")],
            "another cluster": ["--cluster", str(self.cluster.cluster + 1)],
            "another's directory": ["--data", str(self.cluster.data_path(other)), *trace],
            "other quorums": ["--data", str(self._other / f"quorums-{victim}"), *trace],
            "another client table": ["--data", str(self._other / f"clients-{victim}"), *trace],
        }

    async def misconfigure(self) -> str:
        """A process with a wrong setting in place of the right one, for some seconds."""
        victim = await self.victim()
        name, options = self.random.choice(list(self.wrong_settings(victim).items()))
        self.cluster.kill(victim)
        self.cluster.start(victim, options)
        await self.rest(1.0, 5.0)
        self.refusals[f"{name}: exit code {self.cluster.exit_code(victim)}"] += 1
        self.cluster.kill(victim)
        await self.back(victim, name)
        return f"set up wrongly: {name}"


class FileStrikes(ProcessStrikes):
    """Also on files of one replica at a time: before the next, that one is whole again."""

    def strikes(self) -> list[tuple[Strike, int]]:
        return [*super().strikes(), (self.misconfigure, 3), (self.damage, 4), (self.unlink, 1), (self.backup, 1)]

    async def damage(self) -> str:
        """Files of a dead process are damaged."""
        victim = await self.victim()
        await self.all_normal("before files are damaged")
        self.cluster.kill(victim)
        name, damage = self.random.choice(list(self._damages().items()))
        damage(self.cluster.data_path(victim))
        await self.mend(victim, name)
        return f"damage: {name}"

    def _damages(self) -> dict[str, Callable[[Path], None]]:
        return {
            "bits of the journal": lambda data: self._flip(data / "journal", PAGE, self.random.randint(1, 9)),
            "a page of the journal": lambda data: self._zero(data / "journal"),
            "header of the journal": lambda data: self._flip(data / "journal", 0, 1, 60),
            "journal cut": lambda data: self._cut(data / "journal"),
            "journal gone": lambda data: (data / "journal").unlink(),
            "a copy of the superblock": lambda data: self._flip(data / "superblock", 0, 1, PAGE),
            "superblock": lambda data: self._flip(data / "superblock", 0, 400),
            "superblock gone": lambda data: (data / "superblock").unlink(),
            "snapshots": self._flip_snapshots,
            "snapshots gone": self._remove_snapshots,
            "all gone": self._all_gone,
        }

    def _flip(self, path: Path, start: int, bits: int, end: int | None = None) -> None:
        content = bytearray(path.read_bytes())
        end = len(content) if end is None else min(end, len(content))
        for _ in range(bits if end > start else 0):
            content[self.random.randrange(start, end)] ^= 1 << self.random.randrange(8)
        path.write_bytes(content)

    def _zero(self, path: Path) -> None:
        content = bytearray(path.read_bytes())
        at = self.random.randrange(PAGE, max(len(content), PAGE + 1)) // PAGE * PAGE
        content[at : at + PAGE] = bytes(len(content[at : at + PAGE]))
        path.write_bytes(content)

    def _cut(self, path: Path) -> None:
        os.truncate(path, self.random.randrange(path.stat().st_size + 1))

    def _flip_snapshots(self, data: Path) -> None:
        for path in data.glob("snapshot-*"):
            self._flip(path, 0, 3)

    @staticmethod
    def _remove_snapshots(data: Path) -> None:
        for path in data.glob("snapshot-*"):
            path.unlink()

    @staticmethod
    def _all_gone(data: Path) -> None:
        shutil.rmtree(data)
        data.mkdir()

    async def unlink(self) -> str:
        """A file of a running process loses its name."""
        await self.all_normal("before a file is removed")
        victim = await self.victim()
        name = self.random.choice(["superblock", "journal"])
        (self.cluster.data_path(victim) / name).unlink(missing_ok=True)
        await self.rest(1.0, 3.0)
        self.cluster.kill(victim)
        await self.mend(victim, f"{name} removed while it ran")
        return f"damage: {name} removed under the process"

    async def backup(self) -> str:
        """A directory is put back as it was some seconds ago: refused, and not started with again."""
        await self.all_normal("before a directory is put back")
        victim = await self.victim()
        data, kept = self.cluster.data_path(victim), self.cluster.directory / "kept"
        self.cluster.kill(victim)
        shutil.copytree(data, kept)
        await self.back(victim, "a copy")
        status = await self.cluster.wait_answering(victim, BACK_SECONDS)
        before = (status.log_view, status.op)
        await self._until(lambda heard: heard > before, victim, "the others hear more of it")
        self.cluster.kill(victim)
        shutil.rmtree(data)
        kept.rename(data)
        self.cluster.start(victim, self._own_trace())
        deadline = time.monotonic() + BACK_SECONDS
        while not (data / "outdated.json").exists():
            if time.monotonic() > deadline:
                raise NotBackError(f"replica {victim} has a directory from a backup, and nobody noticed")
            await asyncio.sleep(0.1)
        self.cluster.kill(victim)
        await self.mend(victim, "a backup")
        return "damage: a directory from a backup"

    async def _heard(self, victim: int) -> tuple[int, int]:
        """The most that any other replica heard of it: the view and op of its log."""
        found = [
            (position.log_view, position.op)
            for status in await self.cluster.statuses()
            for position in (() if status is None or status.replica == victim else status.heard)
            if position.replica == victim
        ]
        return max(found, default=(-1, -1))

    async def _until(self, holds: Callable[[tuple[int, int]], bool], victim: int, what: str) -> None:
        deadline = time.monotonic() + BACK_SECONDS
        while not holds(await self._heard(victim)):
            if time.monotonic() > deadline:
                raise NotBackError(f"replica {victim}: not within {BACK_SECONDS:g} s: {what}")
            await asyncio.sleep(0.1)

    async def mend(self, victim: int, name: str) -> None:
        """The replica is started, or recovered if it refuses its files; then all are normal. Raises NotBackError."""
        self.cluster.start(victim)
        try:
            await self.cluster.wait_answering(victim, BACK_SECONDS)
            self.refusals[f"{name}: started"] += 1
        except ClusterError as error:
            if self.cluster.exit_code(victim) != 2:
                raise NotBackError(f"after {name}: {error}") from None
            self.refusals[f"{name}: recovered"] += 1
            self.cluster.kill(victim)
            await self._recover(victim, name)
            await self.back(victim, name)
        await self.all_normal(f"after {name}")

    async def _recover(self, victim: int, name: str) -> None:
        command = [*VSR, "recover", str(self.cluster.data_path(victim)), "--from-cluster", self.cluster.address_list()]
        command += ["--replica", str(victim), "--cluster", str(self.cluster.cluster), "--timeout", "20"]
        if self.cluster.tls is not None:
            command += ["--tls", str(self.cluster.tls / "clients")]
        if name == "all gone":
            command.append("--all-lost")
        deadline = time.monotonic() + BACK_SECONDS
        while True:
            process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            output, _ = await process.communicate()
            if process.returncode == 0:
                return
            if b"then say --others-restarted" in output and "--others-restarted" not in command:
                await self._restart_others(victim, name)
                command.append("--others-restarted")
            elif process.returncode != 4 or time.monotonic() > deadline:
                raise NotBackError(f"after {name}: vsr recover ends with {process.returncode}: {output.decode()}")
            await asyncio.sleep(1.0)

    async def _restart_others(self, victim: int, name: str) -> None:
        for replica in range(self.cluster.replica_count):
            if replica != victim:
                self.cluster.kill(replica)
                await self.back(replica, name)

    async def all_normal(self, when: str) -> None:
        """All replicas are normal in one view. Raises NotBackError."""
        try:
            await self.cluster.wait_ready(BACK_SECONDS)
        except ClusterError as error:
            raise NotBackError(f"{when}: {error}") from None


class NetworkStrikes:
    """Links between replicas, each direction on its own, are cut for a time."""

    def __init__(self, network: Network, count: int, random: Random) -> None:
        self.counts: Counter[str] = Counter()
        self._network = network
        self._count = count
        self._random = random

    async def some(self) -> None:
        """One of them."""
        one = self._random.randrange(self._count)
        others = [replica for replica in range(self._count) if replica != one]
        other = self._random.choice(others)
        kinds = {
            "one link, one direction": [(one, other)],
            "a replica that is not heard": [(one, replica) for replica in others],
            "a replica that hears nobody": [(replica, one) for replica in others],
            "a replica alone": [*((one, replica) for replica in others), *((replica, one) for replica in others)],
            "each hears one other": [(replica, (replica + 1) % self._count) for replica in range(self._count)],
        }
        name, links = self._random.choice(list(kinds.items()))
        for source, target in links:
            self._network.cut(source, target)
        try:
            await asyncio.sleep(self._random.uniform(0.2, 6.0))
        finally:
            for source, target in links:
                self._network.heal(source, target)
        self.counts[name] += 1
