"""Network namespaces, one for each replica, on one bridge; and frames of one to another that go nowhere.

The caller runs in a network namespace of its own, as its administrator (`entered`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from viewproof.impl.net.address import Address
from viewproof.impl.net.cluster import Place

PORT = 4000
NOBODY = "02:00:00:00:ff:ff"
"""A link address that no interface has: what is sent to it is lost."""

MARK = "VIEWPROOF_SOAK_NAMESPACE"
"""In the environment of a process that was started again in a namespace of its own."""


def entered(arguments: Sequence[str]) -> int | None:
    """None in a namespace of one's own; otherwise the exit code of the same command, which was run in one."""
    if os.environ.get(MARK):
        return None
    words = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    command = [*words, "--", sys.executable, "-m", "benchmarks.soak", *arguments]
    root = Path(__file__).resolve().parents[2]
    return subprocess.run(command, env={**os.environ, MARK: "1"}, cwd=root, check=False).returncode


class Network:
    """``places``: where the replicas run."""

    def __init__(self, count: int) -> None:
        self._addresses: tuple[Address, ...] = tuple((f"10.77.0.{number + 1}", PORT) for number in range(count))
        self._holders = [
            subprocess.Popen(["unshare", "--net", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(count)
        ]
        for holder in self._holders:  # it is in its namespace once it echoes
            assert holder.stdin is not None
            assert holder.stdout is not None
            holder.stdin.write(b"\n")
            holder.stdin.flush()
            holder.stdout.read(1)
        self._inside = [("nsenter", f"--net=/proc/{holder.pid}/ns/net", "--") for holder in self._holders]
        self.places = [Place(*place) for place in zip(self._addresses, self._inside, strict=True)]
        self._lay_out()
        self._links = [self._link_address(number) for number in range(count)]

    def _lay_out(self) -> None:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", "bridge0", "type", "bridge")
        _ip("addr", "add", "10.77.0.254/24", "dev", "bridge0")
        _ip("link", "set", "bridge0", "up")
        for number, holder in enumerate(self._holders):
            _ip("link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
            _ip("link", "set", f"port{number}", "master", "bridge0", "up")
            self._within(number, "link", "set", "lo", "up")
            self._within(number, "addr", "add", f"{self._addresses[number][0]}/24", "dev", "eth0")
            self._within(number, "link", "set", "eth0", "up")

    def _link_address(self, number: int) -> str:
        words = self._within(number, "-brief", "link", "show", "eth0").split()
        return next(word for word in words if word.count(":") == 5)

    def cut(self, source: int, target: int) -> None:
        """What ``source`` sends to ``target`` is lost from now on; the other direction is as it was."""
        self._neighbour(source, target, NOBODY)

    def heal(self, source: int, target: int) -> None:
        """It arrives again."""
        self._neighbour(source, target, self._links[target])

    def _neighbour(self, source: int, target: int, link: str) -> None:
        host = self._addresses[target][0]
        self._within(source, "neigh", "replace", host, "lladdr", link, "dev", "eth0", "nud", "permanent")

    def _within(self, number: int, *words: str) -> str:
        return _run([*self._inside[number], "ip", *words])

    def __enter__(self) -> Network:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for holder in self._holders:
            holder.kill()
            holder.communicate()


def _ip(*words: str) -> None:
    _run(["ip", *words])


def _run(command: Sequence[str]) -> str:
    """Output. Raises SystemExit with what the command says if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
