"""Faults of the safety phase: when to partition, clog, crash and restart."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.effects import AppendPrepares, IoEffect
from viewproof.impl.sim.cluster import SimCluster
from viewproof.impl.sim.ring_storage import RingStorage
from viewproof.impl.sim.storage import SimStorage

VIEW_CHANGE_EVENTS = frozenset(
    {"start_view_change", "on_start_view_change", "do_view_change", "on_do_view_change", "repair", "start_view"}
)
"""Events at which a replica may be struck in the middle of a view change."""

CRASH_AFTER_LOSS = 0.9
"""How often a replica dies soon after the write of a prepare was lost in a cell that holds another one of its op, or
after the log was replaced: then the next prepare of that op often goes to such a cell.
"""


class Nemesis:
    """Draws the time of each kind of fault; `stop` ends them and heals the cluster for the liveness phase.

    Several groups in the same processes (the cluster's mates) share network, crashes and restarts.
    """

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster
        self.groups = (cluster, *cluster.mates)
        self.random = cluster.random
        self.active = True
        profile = cluster.profile
        for group in self.groups:
            if profile.lost_write:
                group.on_event = partial(self._on_event, group)
            if profile.crash_in_write:
                group.on_write = self._on_write
            if profile.crash_in_view_change:
                group.on_event = partial(self._on_event, group)
            group.on_stop = self._restart_later
            for node, storage in enumerate(group.storages):
                if isinstance(storage, RingStorage):
                    storage.on_lost = partial(self._on_lost, node)
        self._repeat(profile.partition_interval_ticks, self._partition)
        self._repeat(profile.clog_interval_ticks, self._clog)
        self._repeat(profile.crash_interval_ticks, self._crash)
        self._repeat(profile.disk_full_interval_ticks, self._fill_disk)
        self._repeat(profile.link_fault_interval_ticks, self._cut_links)
        self._repeat(profile.slow_disk_interval_ticks, self._slow_disk)

    def _repeat(self, interval: int, fault: object) -> None:
        if interval:
            self.cluster.at(self._later(interval), partial(self._strike, interval, fault))

    def _later(self, mean: float) -> int:
        return self.cluster.now + 1 + int(self.random.expovariate(1.0 / mean))

    def _strike(self, interval: int, fault: object) -> None:
        if self.active and callable(fault):
            fault()
            self._repeat(interval, fault)

    def _partition(self) -> None:
        network = self.cluster.network
        if network.cut:
            return
        network.partition(len(self.cluster.replicas))
        self.cluster.at(self._later(self.cluster.profile.partition_ticks_mean), self._heal)

    def _cut_links(self) -> None:
        cluster = self.cluster
        if cluster.network.cut:
            return
        cluster.network.cut_links(self._victim(), len(cluster.replicas), cluster.clients.count)
        cluster.at(self._later(cluster.profile.link_fault_ticks_mean), self._heal)

    def _slow_disk(self) -> None:
        """One replica's disk, often the primary's, is slow for a while."""
        storage = self.cluster.storages[self._victim()]
        if any(each.slow for each in self.cluster.storages):
            return
        self.cluster.statistics["disks_slow"] += 1
        storage.slow = True
        self.cluster.at(self._later(self.cluster.profile.slow_disk_ticks_mean), partial(_speed_up, storage))

    def _heal(self) -> None:
        if self.active:
            self.cluster.network.heal()

    def _clog(self) -> None:
        self.cluster.network.clog(self.cluster.now, len(self.cluster.replicas))

    def _fill_disk(self) -> None:
        """One replica's disk is full for a while."""
        storage = self.random.choice(self.cluster.storages)
        if storage.full:
            return
        self.cluster.statistics["disks_full"] += 1
        storage.full = True
        self.cluster.at(self._later(self.cluster.profile.disk_full_ticks_mean), partial(_make_room, storage))

    def _crash(self) -> None:
        cluster, random = self.cluster, self.random
        count = len(cluster.replicas)
        if cluster.border is not None and cluster.border.restored is not None:
            return  # who would start anew has not heard what the others hold
        if random.random() < cluster.profile.crash_all:
            cluster.statistics["crashes_of_all"] += 1
            victims = list(range(count))
        else:
            victims = [self._victim()]
        for node in victims:
            if cluster.replicas[node] is None:
                continue
            if random.random() < 0.5:
                cluster.crash(node)
            else:
                self._any_group().doomed[node] = random.randrange(8)
            self._restart_later(node)

    def _restart_later(self, node: int) -> None:
        profile = self.cluster.profile
        long = profile.outage_long and self.random.random() < profile.outage_long
        mean = profile.outage_long_ticks_mean if long else profile.restart_ticks_mean
        self.cluster.at(self._later(mean), partial(self._restart, node))

    def _any_group(self) -> SimCluster:
        return self.groups[0] if len(self.groups) == 1 else self.random.choice(self.groups)

    def _on_event(self, group: SimCluster, node: int, name: str) -> None:
        """Now and then a replica dies in mid view change: between its next effects, or some ticks later."""
        if name == "on_start_view" and self.active:
            self._on_installed(group, node)
        if not self.active or name not in VIEW_CHANGE_EVENTS or node in group.doomed:
            return
        random = self.random
        if random.random() >= self.cluster.profile.crash_in_view_change:
            return
        self.cluster.statistics["crashes_in_view_change"] += 1
        if random.random() < 0.5:
            group.doomed[node] = random.randrange(6)
            self._restart_later(node)
        else:
            self.cluster.at(self.cluster.now + random.randint(1, 8), partial(self._crash_one, node))

    def _on_write(self, node: int, io: IoEffect, latency: int) -> None:
        """Now and then a replica dies while a write that takes more than a tick is in flight: superblock or repair."""
        if isinstance(io, AppendPrepares) and not io.repair:
            return
        profile, random = self.cluster.profile, self.random
        if self.active and latency > 1 and random.random() < profile.crash_in_write:
            self.cluster.statistics["crashes_in_write"] += 1
            self.cluster.at(self.cluster.now + random.randint(1, latency - 1), partial(self._crash_one, node))

    def _on_installed(self, group: SimCluster, node: int) -> None:
        storage = group.storages[node]
        if group.profile.lost_write and isinstance(storage, RingStorage) and storage.has_overruled:
            self._on_lost(node)

    def _on_lost(self, node: int) -> None:
        """Often the replica dies before that damage is overwritten."""
        if self.random.random() < CRASH_AFTER_LOSS:
            self.cluster.at(self.cluster.now + self.random.randint(1, 30), partial(self._crash_one, node))

    def _crash_one(self, node: int) -> None:
        if self.active and self.cluster.replicas[node] is not None:
            self.cluster.crash(node)
            self._restart_later(node)

    def _victim(self) -> int:
        """The primary of the latest view of a group, often; else any replica."""
        cluster = self._any_group()
        if self.random.random() < cluster.profile.crash_primary:
            view = max((replica.state.view for replica in cluster.replicas if replica is not None), default=0)
            return view % len(cluster.replicas)
        return self.random.randrange(len(cluster.replicas))

    def _restart(self, node: int) -> None:
        if self.active:
            for group in self.groups:
                group.doomed.pop(node, None)
            self.cluster.boot(node)

    def stop(self, core_size_min: int) -> None:
        """Heals the network and leaves a random core of at least `core_size_min` replicas up, the others down."""
        cluster = self.cluster
        self.active = False
        count = len(cluster.replicas)
        out = () if cluster.border is None else (cluster.border.outsider,)
        sound = [node for node in range(count) if node not in cluster.lost and node not in out]
        check(len(sound) >= core_size_min, f"{len(sound)} replicas can come back, {core_size_min} are needed")
        core = sorted(self.random.sample(sound, self.random.randint(core_size_min, len(sound))))
        rings = [storage for storage in cluster.storages if isinstance(storage, RingStorage)]
        have_copies = all(_have_copies([group.storages[node] for node in core]) for group in self.groups)
        if any(storage.needs_others for storage in rings) or not have_copies:
            core = sound  # what one lacks, any other may be the only one to have
        cluster.network.heal()
        cluster.network.clogged.clear()
        calm = cluster.profile.without_faults()
        cluster.network.profile = calm
        for group in self.groups:
            group.profile = calm
            group.doomed.clear()
            for storage in group.storages:
                storage.profile = calm
                storage.slow = False
                _make_room(storage)
        mending = {node for node in cluster.lost if not cluster.storages[node].unreadable}
        for node in range(count):
            if node in core or node in mending or node in out:
                cluster.boot(node)
            else:
                cluster.crash(node)


def _have_copies(core: Sequence[SimStorage]) -> bool:
    """Is each segment that was struck at one of these still whole at another?"""
    return all(
        any(other.segments.has(path, size) for other in core)
        for storage in core
        for path, size in storage.segments.wanted.items()
    )


def _speed_up(storage: SimStorage) -> None:
    storage.slow = False


def _make_room(storage: SimStorage) -> None:
    storage.full = False
