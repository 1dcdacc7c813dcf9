"""Progress while the run goes on (L1, L2): nobody waits for ever beside a quorum that could serve, and no healthy view
is left.

A run is judged only while it stands still around the replicas: the same ones up, the same links cut, the same disks
slow, for so long that every timeout has passed several times. If then a quorum is connected in both directions,

* a client that reaches all of it is answered within that time;
* its view does not change any more once it has begun, if nothing is lost, no disk is slow and its primary's heartbeats
  are not held;
* a replica with a slow disk is not its primary, if all the others are faster, are a quorum without it, and no larger
  one than a majority: the slowest of more is not so much faster.

A primary of view 0 that nobody answered yet may wait for its peers to be started (`first_answer_timeout_ticks`); the
time of judging begins anew when that has ended.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from viewproof.impl.replica import Replica, Status
from viewproof.impl.sim.checkers.base import Checker

if TYPE_CHECKING:
    from viewproof.impl.sim.cluster import SimCluster

EVERY_TICKS = 8

Around = tuple[object, ...]
"""What must stay as it is: who is up since which boot, cut links, slow and full disks, the first view's beginning."""


def patience(cluster: SimCluster) -> int:
    """Ticks within which view changes must have ended and requests been answered: three times all timeouts in a row."""
    config, profile = cluster.config, cluster.profile
    view = config.normal_timeout_ticks + config.view_change_timeout_ticks + 2 * config.jitter_ticks
    backoff = config.backoff_ticks * config.backoff_steps_max
    clients = profile.client_timeout_ticks * len(cluster.replicas) + profile.client_pause_ticks_mean
    delays = 10 * int(profile.delay_ticks_mean + profile.append_ticks_max + profile.superblock_ticks_max)
    return 3 * (view + backoff + config.abdicate_timeout_ticks + clients + delays)


class StallsChecker(Checker):
    """Looks at the cluster every few ticks."""

    name = "liveness"

    def __init__(self, cluster: SimCluster) -> None:
        super().__init__()
        self.cluster = cluster
        self.around: Around = ()
        self.since = 0
        self.completed = -1
        self.completed_at = 0
        self.completed_since = 0
        self.view_settled: int | None = None
        self.patience = 0
        self.before = 0
        """Until when what began with the timeouts of another profile may still wait by them."""

    def on_tick(self) -> None:
        """A tick has passed."""
        cluster = self.cluster
        if cluster.now % EVERY_TICKS:
            return
        around = self._around()
        completed = cluster.clients.completed
        if completed != self.completed or around != self.around or not self._waiting():
            self.completed, self.completed_at = completed, cluster.now
        if around != self.around:
            self.around, self.since, self.view_settled = around, cluster.now, None
            self.completed_since = completed
            return
        limit = self._limit()
        if cluster.now < self.before:
            return
        if cluster.now - self.since >= limit and (quorum := self._connected_quorum()):
            self._judge(quorum, limit)

    def _limit(self) -> int:
        cluster = self.cluster
        now = patience(cluster)
        if now != self.patience:
            self.before, self.patience = cluster.now + self.patience, now
        return now + (cluster.config.first_answer_timeout_ticks if self._begins() else 0)

    def _around(self) -> Around:
        cluster = self.cluster
        up = tuple(replica is not None for replica in cluster.replicas)
        disks = tuple((storage.slow, storage.full) for storage in cluster.storages)
        network = cluster.network
        return (up, tuple(cluster.incarnations), frozenset(network.cut), disks, id(network.profile), self._begins())

    def _begins(self) -> bool:
        """True if all are in view 0 and its primary has not been answered yet."""
        replicas = self.cluster.replicas
        first = replicas[0]
        alone = first is None or not first.state.timers.answered_at
        return alone and all(replica is None or replica.state.view == 0 for replica in replicas)

    def _is_fit(self, node: int) -> bool:
        replica, storage = self.cluster.replicas[node], self.cluster.storages[node]
        return replica in self.cluster.members and replica.state.status is not Status.RECOVERING and not storage.full

    def _is_linked(self, a: int, b: int) -> bool:
        cut = self.cluster.network.cut
        return (a, b) not in cut and (b, a) not in cut

    def _connected_quorum(self) -> tuple[int, ...]:
        """Replicas that can do all alone, each of which hears every other; fast ones, if there are enough of them."""
        quorums = self.cluster.storages[0].superblock.quorums
        size = max(quorums.replication, quorums.view_change)
        fit = [node for node in range(len(self.cluster.replicas)) if self._is_fit(node)]
        fast = [node for node in fit if not self.cluster.storages[node].slow]
        for nodes in (fast, fit):
            for chosen in combinations(nodes, size):
                if all(self._is_linked(a, b) for a, b in combinations(chosen, 2)):
                    return chosen
        return ()

    def _judge(self, quorum: tuple[int, ...], limit: int) -> None:
        cluster = self.cluster
        latest = max(cluster.members, key=lambda replica: (replica.state.view, replica.state.status is Status.NORMAL))
        if cluster.now - self.completed_at >= limit and any(
            self._reaches(client, quorum) for client in self._waiting()
        ):
            self.fail(
                f"tick {cluster.now}: nothing answered for {cluster.now - self.completed_at} ticks; {self._states()}"
            )
            self.completed_at = cluster.now
        self._judge_view(quorum, latest)

    def _judge_view(self, quorum: tuple[int, ...], latest: Replica) -> None:
        """No view is left, and none has a slow primary."""
        cluster = self.cluster
        profile = cluster.network.profile
        view = max(cluster.replicas[node].state.view for node in quorum)  # type: ignore[union-attr]
        slow = [node for node, storage in enumerate(cluster.storages) if storage.slow]
        if slow:
            done = cluster.clients.completed - self.completed_since
            primary = view % len(cluster.replicas)
            lasts = cluster.now - self.since >= 2 * patience(cluster) and done >= 60
            count = len(cluster.replicas)
            few = cluster.storages[0].superblock.quorums.replication <= min(count - 1, count // 2 + 1)
            if few and lasts and slow == [primary] and (primary + 1) % len(cluster.replicas) in quorum:
                self.fail(f"tick {cluster.now}: replica {primary} leads view {view} with a slow disk; {self._states()}")
                self.since = cluster.now
            return
        if profile.loss or profile.slow_write or profile.append_failure or profile.superblock_failure:
            return
        settled = self.view_settled
        if settled is not None and view > settled and not self._was_silent(settled, quorum):
            self.fail(f"tick {cluster.now}: view {settled} was left for {view} for nothing; {self._states()}")
        stays = settled is not None and view <= settled
        self.view_settled = view if latest.state.status is Status.NORMAL or stays else None

    def _was_silent(self, view: int, quorum: tuple[int, ...]) -> bool:
        """True if heartbeats of the view's primary came late to one of the quorum, so that it was right to miss it.

        What a replica wants counts for a normal timeout after that.
        """
        cluster, config = self.cluster, self.cluster.config
        since = cluster.now - 2 * (config.normal_timeout_ticks + config.jitter_ticks)
        paths = ((view % len(cluster.replicas), node) for node in quorum)
        return any(cluster.network.held.get(path, 0) >= since for path in paths)

    def _waiting(self) -> list[int]:
        return [client.client for client in self.cluster.clients.instances if client.waits]

    def _reaches(self, client: int, quorum: tuple[int, ...]) -> bool:
        """True if the client has links to all of the quorum, and to a primary that is none of it but has one, too."""
        cluster = self.cluster
        view = max(cluster.replicas[node].state.view for node in quorum)  # type: ignore[union-attr]
        primary = view % len(cluster.replicas)
        heard = [node for node in range(len(cluster.replicas)) if self._is_fit(node) and self._is_linked(primary, node)]
        leads = len(heard) >= cluster.storages[0].superblock.quorums.replication
        return all(self._is_linked(-client, node) for node in {*quorum, *((primary,) if leads else ())})

    def _states(self) -> str:
        states = [replica.state for replica in self.cluster.replicas if replica is not None]
        shown = ", ".join(f"{s.node}: {s.status.value} view {s.view} op {s.op} commit {s.commit_max}" for s in states)
        return f"cut {sorted(self.cluster.network.cut)}; replicas {shown}"
