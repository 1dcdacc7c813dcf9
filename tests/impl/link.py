"""Replicas wired by a fake link: messages in order of sending, writes that finish when told, a filter for losses."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Protocol

from viewproof.impl.faults import parts_with
from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.durable import (
    CLIENTS_PAPER,
    ClientTableConfig,
    DurableState,
    Quorums,
    superblock_formatted,
)
from viewproof.impl.interface.effects import AppendPrepares, Effect, Emit, IoEffect, Send, SendClient, WriteSuperblock
from viewproof.impl.interface.messages import Eviction, Message, PreVote, Reply, Request
from viewproof.impl.machine.partition_log import SegmentSource
from viewproof.impl.machine.state_machine import Operation, encode_operation
from viewproof.impl.replica import Replica, ReplicaConfig
from viewproof.impl.replica.state import LONG_AGO
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.storage import SimStorage
from viewproof.impl.trace.events import TraceEvent


class Storage(Protocol):
    """What a link needs of a replica's disk."""

    in_flight: list[IoEffect]

    @property
    def segments(self) -> SegmentSource:
        """Where the replica reads segments of messages."""

    def start(self, io: IoEffect) -> object:
        """A write begins."""

    def finish(self, io: IoEffect) -> None:
        """It is durable."""

    def recover(self) -> DurableState:
        """What a process that starts finds."""


class Link:
    """A cluster under full control of a test.

    `supports`: features of each replica, used when it boots. `lose(source, to, message)` decides which messages
    vanish; `hold(node, io)` which writes stay in flight.
    """

    def __init__(
        self,
        count: int = 3,
        *,
        quorums: Quorums | None = None,
        faults: Sequence[str] = (),
        pipeline_max: int = 32,
        supports: Sequence[int] = (),
        plane: Plane = Plane.SINGLE,
        clients: ClientTableConfig = CLIENTS_PAPER,
        config: ReplicaConfig | None = None,
        storages: Sequence[Storage] | None = None,
        booted: bool = True,
    ) -> None:
        """`config` replaces the configuration that the other arguments make; `storages` the simulated ones."""
        self.faults = frozenset(faults)
        self.supports = [*supports, *[0] * (count - len(supports))]
        self.config = config or ReplicaConfig(run="test", pipeline_max=pipeline_max, plane=plane)
        profile = SimProfile(slow_write=0.0)
        self.storages: Sequence[Storage] = storages or [
            SimStorage(superblock_formatted(1, node, count, quorums, clients), profile, Random(0), defaultdict(int))
            for node in range(count)
        ]
        self.replicas: dict[int, Replica] = {}
        self.events: list[TraceEvent] = []
        self.sent: list[tuple[int, int, Message]] = []
        self.replies: list[Reply] = []
        self.evictions: list[Eviction] = []
        self.writes: list[tuple[int, IoEffect]] = []
        self.queue: deque[tuple[int, Message]] = deque()
        self.held: list[tuple[int, IoEffect]] = []
        self.lose: Callable[[int, int, Message], bool] = lambda source, to, message: False
        self.hold: Callable[[int, IoEffect], bool] = lambda node, io: False
        self.order: list[tuple[int, Effect]] = []
        if booted:
            for node in range(count):
                self.boot(node)
            self.run()

    def __getitem__(self, node: int) -> Replica:
        return self.replicas[node]

    def boot(self, node: int) -> None:
        """Starts a replica over its disk; its trace goes on."""
        own = [event for event in self.events if event.node == node]
        seq, clock = (own[-1].seq, own[-1].clock) if own else (0, 0)
        config = replace(self.config, supports=self.supports[node])
        durable, parts = self.storages[node].recover(), parts_with(self.faults, node)
        source = self.storages[node].segments
        self.replicas[node] = Replica(durable, config, seq=seq, clock=clock, parts=parts, source=source)
        self.handle(node, self.replicas[node].boot())

    def crash(self, node: int) -> None:
        """The process is gone; writes in flight do not reach the disk."""
        del self.replicas[node]
        self.storages[node].in_flight = []
        self.held = [(other, io) for other, io in self.held if other != node]

    def handle(self, node: int, effects: list[Effect]) -> None:
        """Carries out effects; messages and write completions are queued."""
        for effect in effects:
            self.order.append((node, effect))
            if isinstance(effect, Emit):
                self.events.append(effect.event)
            elif isinstance(effect, SendClient):
                if isinstance(effect.message, Eviction):
                    self.evictions.append(effect.message)
                else:
                    self.replies.append(effect.message)
            elif isinstance(effect, Send):
                self.sent.append((node, effect.to, effect.message))
                if not self.lose(node, effect.to, effect.message):
                    self.queue.append((effect.to, effect.message))
            else:
                self.storages[node].start(effect)
                self.writes.append((node, effect))
                self.held.append((node, effect))

    def finish(self, node: int, io: IoEffect) -> None:
        """A write becomes durable."""
        self.held.remove((node, io))
        self.storages[node].finish(io)
        self.handle(node, self.replicas[node].on_io_done(io))

    def run(self) -> None:
        """Delivers messages and finishes writes until nothing moves."""
        while True:
            ready = [(node, io) for node, io in self.held if not self.hold(node, io)]
            if ready:
                self.finish(*ready[0])
            elif self.queue:
                to, message = self.queue.popleft()
                self.deliver(to, message)
            else:
                return

    def deliver(self, to: int, message: Message) -> None:
        """Hands a message to a replica, if it is up."""
        if to in self.replicas:
            self.handle(to, self.replicas[to].on_message(message))

    def tick(self, ticks: int, *nodes: int) -> None:
        """Lets time pass on the given replicas (all that are up if none is named)."""
        for _ in range(ticks):
            for node in sorted(nodes or self.replicas):
                if node in self.replicas:
                    self.handle(node, self.replicas[node].on_tick())
            self.run()

    def request(self, to: int, client: int, number: int, operation: Operation, session: int = 0) -> None:
        """A client's request arrives at a replica, and everything that follows happens."""
        self.deliver(to, Request(client, number, encode_operation(operation), session))
        self.run()

    def register(self, to: int, client: int, incarnation: int = 1) -> int:
        """A client's register arrives, and everything that follows happens; its session, 0 if it got none."""
        before = len(self.replies)
        self.deliver(to, Request(client, 0, b"", 0, incarnation))
        self.run()
        return self.replies[-1].session if len(self.replies) > before else 0

    def change_view(self, node: int) -> None:
        """The replica times out of its view; those that it reaches hear that all others want that, too."""
        view = self.replicas[node].state.view
        reached = [to for to in self.replicas if to == node or not self.lose(node, to, PreVote(view + 1, node))]
        for to in reached:
            self.replicas[to].state.timers.heard_at = LONG_AGO
        for _ in range(1_000):
            if self.replicas[node].writes.superblock_writing is not None or self.replicas[node].state.view != view:
                break
            for to in reached:
                for source in self.replicas[to].state.others:
                    self.handle(to, self.replicas[to].on_message(PreVote(view + 1, source)))
            self.handle(node, self.replicas[node].on_tick())
        self.run()

    def names(self, node: int) -> list[str]:
        """The events of a replica by name."""
        return [event.event for event in self.events if event.node == node]

    def of(self, node: int, name: str) -> list[TraceEvent]:
        """The events of one name of a replica."""
        return [event for event in self.events if event.node == node and event.event == name]

    def messages(self, kind: type, source: int | None = None) -> list[Message]:
        """Messages of a kind that were sent, lost ones included."""
        return [m for sender, _, m in self.sent if isinstance(m, kind) and source in (None, sender)]


def is_append(node: int, io: IoEffect) -> bool:
    """A filter for `hold`."""
    return isinstance(io, AppendPrepares)


def is_superblock(node: int, io: IoEffect) -> bool:
    """A filter for `hold`."""
    return isinstance(io, WriteSuperblock)
