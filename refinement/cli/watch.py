"""`vsr cluster` once it is ready: what it says of itself, and what happens when one of its replicas ends."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable

from viewproof.impl.groups.group import SINGLE
from viewproof.impl.net.cluster import Cluster

RESTART_SECONDS = 1.0
"""A replica that ended is down for so long before --restart starts it again."""
SHORT_LIFE_SECONDS = 5.0
SHORT_LIVES_MAX = 5
"""A replica that gave up (was not killed) so many times in a row, each time so soon, is not started any more."""


def description(cluster: Cluster, primary: int) -> str:
    """Processes, addresses, folders, and the commands that go on from here."""
    lines = [
        f"replica {replica}  pid {cluster.pid(replica)}  {host}:{port}{'  (primary)' if replica == primary else ''}"
        for replica, (host, port) in enumerate(cluster.addresses)
    ]
    traces = [str(cluster.trace_path(0, group).parent) for group in cluster.groups]
    lines += [f"data     {cluster.data_path(0).parent}", f"traces   {' '.join(traces)}"]
    lines += [f"logs     {cluster.log_path(0).parent}"]
    lines += [] if cluster.tls is None else [f"tls      {cluster.tls}"]
    secured = "" if cluster.tls is None else f" --tls {shlex.quote(str(cluster.tls / 'clients'))}"
    for group in cluster.groups:
        option = "" if group == SINGLE else f" --group {group.name}"
        lines += [f"talk     vsr repl{option} --addresses {cluster.address_list()}{secured}"]
    lines += [f"audit    {shlex.join(['vsr', 'audit', *traces])}"]
    lines += [f"ready, primary {primary}; kill -9 a replica as you like; Ctrl-C stops all"]
    return "\n".join(lines)


class Watch:
    """Looks after the processes of a cluster: says who ended, and with `restart` starts them again."""

    def __init__(self, cluster: Cluster, restart: bool, say: Callable[[str], None]) -> None:
        self._cluster, self._restart, self._say = cluster, restart, say
        self._ended: dict[int, float] = {}
        self._started = dict.fromkeys(range(cluster.replica_count), time.monotonic())
        self._short_lives = dict.fromkeys(range(cluster.replica_count), 0)

    def look(self) -> None:
        """One look at every replica; call it again and again."""
        now = time.monotonic()
        for replica in range(self._cluster.replica_count):
            code = self._cluster.exit_code(replica)
            if code is None:
                continue
            if replica not in self._ended:
                self._ended[replica] = now
                self._say(self._ending(replica, code, now))
            elif self._restarts(replica) and now - self._ended[replica] >= RESTART_SECONDS:
                del self._ended[replica]
                self._started[replica] = now
                self._cluster.start(replica)
                self._say(f"replica {replica} started again (pid {self._cluster.pid(replica)})")

    def _restarts(self, replica: int) -> bool:
        return self._restart and self._short_lives[replica] < SHORT_LIVES_MAX

    def _ending(self, replica: int, code: int, now: float) -> str:
        short = code >= 0 and now - self._started[replica] < SHORT_LIFE_SECONDS
        self._short_lives[replica] = self._short_lives[replica] + 1 if short else 0
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        why = f": {self._cluster.log_tail(replica, 1)}" if code > 0 else ""
        if self._restarts(replica):
            return f"replica {replica} (pid {self._cluster.pid(replica)}) {how}{why}; it is started again in a second"
        given_up = f"; it gave up {SHORT_LIVES_MAX} times in a row" if self._restart else ""
        command = self._cluster.start_command(replica)
        return f"replica {replica} (pid {self._cluster.pid(replica)}) {how}{why}{given_up}; restart it with: {command}"
