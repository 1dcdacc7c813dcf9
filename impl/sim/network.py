"""The faulty network of the simulator: loss, delay, repeat, reorder, clogged paths, partitions (also one-way)."""

from __future__ import annotations

from random import Random

from viewproof.impl.sim.profile import SimProfile


class Network:
    """Decides for every message when it arrives (none, one or several times).

    Nodes 0..n-1 are replicas; clients are reached over the path of their replica only, and are never partitioned.
    """

    def __init__(self, profile: SimProfile, random: Random, statistics: dict[str, int]) -> None:
        self.profile = profile
        self.random = random
        self.statistics = statistics
        self.cut: set[tuple[int, int]] = set()
        self.clogged: dict[tuple[int, int], int] = {}

    def arrivals(self, now: int, source: int, to: int) -> tuple[int, ...]:
        """The ticks (all above `now`) at which a message sent now arrives."""
        profile, random, statistics = self.profile, self.random, self.statistics
        path = (source, to)
        if path in self.cut:
            statistics["messages_cut"] += 1
            return ()
        if profile.loss and random.random() < profile.loss:
            statistics["messages_lost"] += 1
            return ()
        first = now + self._delay()
        if self.clogged:
            until = self.clogged.get(path, 0)
            if until > now:
                statistics["messages_clogged"] += 1
                first += until - now
        if profile.repeat and random.random() < profile.repeat:
            statistics["messages_repeated"] += 1
            return (first, first + self._delay() * random.randint(1, 8))
        if profile.late and random.random() < profile.late:
            statistics["messages_late"] += 1
            return (first, first + random.randint(1, profile.late_ticks_max))
        return (first,)

    def _delay(self) -> int:
        mean = self.profile.delay_ticks_mean
        return self.profile.delay_ticks_min + int(self.random.expovariate(1.0 / mean))

    def partition(self, replica_count: int) -> None:
        """Cuts the replicas in two groups at random, in both directions or only from the first to the second."""
        members = [node for node in range(replica_count) if self.random.random() < 0.5]
        if not members:
            members = [self.random.randrange(replica_count)]
        others = [node for node in range(replica_count) if node not in members]
        one_way = self.random.random() < self.profile.partition_one_way
        self.statistics["partitions_one_way" if one_way else "partitions"] += 1
        for a in members:
            for b in others:
                self.cut.add((a, b))
                if not one_way:
                    self.cut.add((b, a))

    def heal(self) -> None:
        """Ends partitions."""
        self.cut.clear()

    def clog(self, now: int, replica_count: int) -> None:
        """Holds one path for a while: its messages arrive late, and out of order with later ones."""
        source, to = self.random.randrange(replica_count), self.random.randrange(replica_count)
        ticks = 1 + int(self.random.expovariate(1.0 / self.profile.clog_ticks_mean))
        self.clogged[(source, to)] = now + ticks
        self.statistics["clogs"] += 1
