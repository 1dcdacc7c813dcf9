"""The faulty network of the simulator: loss, delay, repeat, reorder, clogged paths, partitions (also one-way)."""

from __future__ import annotations

from random import Random

from viewproof.impl.sim.profile import SimProfile

LINK_FAULTS = ("deaf", "mute", "no clients", "clients apart", "one link", "some links")
"""A replica hears nobody, or is heard by nobody; no client reaches one, each client does not reach one of its own; one
link between replicas is cut, or some, in one direction or in both.
"""


class Network:
    """Decides for every message when it arrives (none, one or several times).

    Nodes 0..n-1 are replicas; client c is node -c on a link that may be cut, and shares each replica's path to clients.
    `held`: path → tick at which the last message arrives that is under way for so long that heartbeats before and after
    it may leave a silence of a normal timeout.
    """

    def __init__(self, profile: SimProfile, random: Random, statistics: dict[str, int]) -> None:
        self.profile = profile
        self.random = random
        self.statistics = statistics
        self.cut: set[tuple[int, int]] = set()
        self.clogged: dict[tuple[int, int], int] = {}
        self.held: dict[tuple[int, int], int] = {}

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
        if first - now >= profile.normal_timeout_ticks - profile.commit_timeout_ticks:
            self.held[path] = max(first, self.held.get(path, 0))
        if profile.repeat and random.random() < profile.repeat:
            statistics["messages_repeated"] += 1
            return (first, first + self._delay() * random.randint(1, 8))
        if profile.late and random.random() < profile.late:
            statistics["messages_late"] += 1
            return (first, first + random.randint(1, profile.late_ticks_max))
        return (first,)

    def arrivals_of_client(self, now: int, client: int, to: int) -> tuple[int, ...]:
        """When a client's message arrives at a replica."""
        return self._between(now, (-client, to), to)

    def arrivals_at_client(self, now: int, source: int, client: int) -> tuple[int, ...]:
        """When a replica's message arrives at a client."""
        return self._between(now, (source, -client), source)

    def _between(self, now: int, link: tuple[int, int], node: int) -> tuple[int, ...]:
        if link in self.cut:
            self.statistics["client_messages_cut"] += 1
            return ()
        return self.arrivals(now, node, node)

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

    def cut_links(self, node: int, replica_count: int, clients: int) -> None:
        """Cuts some links, so that who hears whom is no equivalence: one of `LINK_FAULTS`, drawn; `node` may suffer."""
        kind = self.random.choice(self.profile.link_faults or LINK_FAULTS)
        self.statistics[f"link faults: {kind}"] += 1
        nodes = range(replica_count)
        everyone = [*(other for other in nodes if other != node), *(-client for client in range(1, clients + 1))]
        if kind == "deaf":
            self.cut |= {(other, node) for other in everyone}
        elif kind == "mute":
            self.cut |= {(node, other) for other in everyone}
        elif kind == "no clients":
            self.cut |= {link for other in everyone if other < 0 for link in ((node, other), (other, node))}
        elif kind == "clients apart":
            for client in range(1, clients + 1):
                far = self.random.choice(nodes)
                self.cut |= {(far, -client), (-client, far)}
        else:
            both_ways = self.random.random() < 0.5
            chance = 1.0 / replica_count if kind == "some links" else 0.0
            pairs = [(a, b) for a in nodes for b in nodes if a != b]
            chosen = [pair for pair in pairs if self.random.random() < chance]
            if pairs and not chosen:
                chosen = [self.random.choice(pairs)]
            self.cut |= {*chosen, *(((b, a) for a, b in chosen) if both_ways else ())}

    def heal(self) -> None:
        """Ends partitions."""
        self.cut.clear()

    def clog(self, now: int, replica_count: int) -> None:
        """Holds one path for a while: its messages arrive late, and out of order with later ones."""
        source, to = self.random.randrange(replica_count), self.random.randrange(replica_count)
        ticks = 1 + int(self.random.expovariate(1.0 / self.profile.clog_ticks_mean))
        self.clogged[(source, to)] = now + ticks
        self.statistics["clogs"] += 1
