"""The simulated cluster: replicas, their disks, the network and the clients on one virtual clock of ticks.

Deterministic: all choices come from one seeded generator and all iteration orders are fixed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

from viewproof.impl.faults import parts_with, segments_with, stand_in
from viewproof.impl.interface.durable import BootRefusedError, DurableState, Quorums, superblock_formatted
from viewproof.impl.interface.effects import (
    DrainJournal,
    Effect,
    Emit,
    IoEffect,
    Send,
    SendClient,
    WriteSnapshot,
    WriteSuperblock,
)
from viewproof.impl.interface.messages import Message, Prepare, Request, RequestStartView
from viewproof.impl.machine.partition_log import SegmentLostError, SegmentRef
from viewproof.impl.replica import Replica, ReplicaConfig, Status
from viewproof.impl.replica.features import SUPPORTS_ALL, UnknownEntryError
from viewproof.impl.sim.border import SimBorder
from viewproof.impl.sim.checkers import (
    AcknowledgementsChecker,
    AgreementChecker,
    AtMostOnceChecker,
    BoundsChecker,
    Checker,
    DigestsChecker,
    DurabilityChecker,
    Failure,
    FeaturesChecker,
    FencesChecker,
    FinalState,
    LaterViewsChecker,
    LivenessChecker,
    OffsetsChecker,
    PromisesChecker,
    RepliesChecker,
    SnapshotsChecker,
    StallsChecker,
    TablesChecker,
    ViewsChecker,
)
from viewproof.impl.sim.clients import Clients
from viewproof.impl.sim.control_situations import ControlSituations
from viewproof.impl.sim.network import Network
from viewproof.impl.sim.profile import SimProfile, supports_drawn
from viewproof.impl.sim.repair_situations import RepairSituations
from viewproof.impl.sim.ring_storage import RingStorage
from viewproof.impl.sim.rot import Rot
from viewproof.impl.sim.situations import COUNTED_EVENTS, Situations
from viewproof.impl.sim.storage import WRITES, SimStorage, rotten
from viewproof.impl.trace.events import TraceEvent, encode_line

DOWNGRADED = 0.4
"""Probability that a process comes back without features, where members withdraw them."""


class SimCluster:
    """One run's world. `step` advances it by one tick; faults are the nemesis's business."""

    def __init__(
        self,
        *,
        config: ReplicaConfig,
        replica_count: int,
        quorums: Quorums | None,
        client_count: int,
        requests: int,
        profile: SimProfile,
        random: Random,
        record: bool,
        network: Network | None = None,
        faults: frozenset[str] = frozenset(),
    ) -> None:
        """`network`: that of another group of the same processes; see `mates`."""
        self.config = config
        self.profile = profile
        self.random = random
        self.record = record
        self.statistics: dict[str, int] = defaultdict(int)
        self.situations = Situations(replica_count, self.statistics)
        self.control_situations = ControlSituations(replica_count, self.statistics)
        self.repair_situations = RepairSituations(replica_count, self.statistics)
        self.network = network or Network(profile, random, self.statistics)
        self.mates: tuple[SimCluster, ...] = ()
        self.now = 0
        self.buckets: dict[int, list[Callable[[], None]]] = defaultdict(list)
        self.clients = Clients(client_count, replica_count, requests, self, random, self.statistics)
        self.storages = [
            stand_in("disk", RingStorage if profile.ring else SimStorage, faults, node)(
                superblock_formatted(1, node, replica_count, quorums, profile.client_table),
                profile,
                random,
                self.statistics,
                segments_with(faults),
            )
            for node in range(replica_count)
        ]
        for storage in self.storages[1:]:
            storage.segments.taken = self.storages[0].segments.taken
        self.parts = [parts_with(faults, node) for node in range(replica_count)]
        self.supports = supports_drawn(profile.features, replica_count, random)
        self.replicas: list[Replica | None] = [None] * replica_count
        self.incarnations = [0] * replica_count
        self.doomed: dict[int, int] = {}
        self.lost: set[int] = set()
        self.upgraded: set[int] = set()
        self.spare = 0
        self.rot: Rot | None = None
        self.on_write: Callable[[int, IoEffect, int], None] = lambda node, io, latency: None
        self.on_event: Callable[[int, str], None] = lambda node, name: None
        self.on_stop: Callable[[int], None] = lambda node: None
        self.seqs = [0] * replica_count
        self.clocks = [0] * replica_count
        self.lines: list[list[bytes]] = [[] for _ in range(replica_count)]
        self.events = 0
        self.border = SimBorder(self, faults) if profile.has_border else None
        self._add_checkers()

    def _add_checkers(self) -> None:
        self.agreement = AgreementChecker()
        self.views = ViewsChecker()
        self.later_views = LaterViewsChecker()
        self.execution_checkers: tuple[Checker, ...] = (
            self.agreement,
            AtMostOnceChecker(),
            BoundsChecker(),
            DigestsChecker(),
            TablesChecker(),
            FeaturesChecker(),
            OffsetsChecker(),
        )
        self.stalls = StallsChecker(self)
        self.checkers: tuple[Checker, ...] = (
            *self.execution_checkers,
            self.views,
            self.later_views,
            DurabilityChecker(),
            PromisesChecker(self.storages),
            RepliesChecker(),
            FencesChecker(),
            SnapshotsChecker(),
            AcknowledgementsChecker(),
            LivenessChecker(),
            self.stalls,
            *(() if self.border is None else (self.border.checker,)),
        )
        self.watchers: dict[str, tuple[Checker, ...]] = {
            name: tuple(checker for checker in self.checkers if name in checker.events)
            for name in sorted({name for checker in self.checkers for name in checker.events})
        }

    # Time

    def at(self, tick: int, call: Callable[[], None]) -> None:
        """Schedules a call for a later tick."""
        self.buckets[tick].append(call)

    def start(self) -> None:
        """Boots all replicas over formatted data files and lets the clients begin."""
        for node in range(len(self.replicas)):
            self.boot(node)
        self.clients.start()

    def step(self) -> None:
        """One tick: what is due, then the replicas' own clocks."""
        self.now += 1
        due = self.buckets.pop(self.now, None)
        if due is not None:
            for call in due:
                call()
        for node, replica in enumerate(self.replicas):
            if replica is not None:
                effects = self._takes(node, replica.on_tick)
                if effects:
                    self._run_effects(node, replica, effects)
        self.stalls.on_tick()

    # Processes

    def boot(self, node: int) -> None:
        """Starts the replica's process, of all its groups, over what its disk holds; does nothing if it is up."""
        for group in (self, *self.mates):
            if group.replicas[node] is None:
                group.boot_group(node)

    def boot_group(self, node: int) -> None:
        """Boots the replica of this group in its process."""
        try:
            durable = self.storages[node].recover()
        except BootRefusedError as error:
            self._on_boot_refused(node, error)
            return
        if self.profile.features == "upgrade" and self.seqs[node]:
            self.supports[node] = SUPPORTS_ALL
        if self.profile.features == "downgrades" and node not in self.upgraded:
            self.supports[node] = 0 if self.random.random() < DOWNGRADED else SUPPORTS_ALL
        try:
            replica = self._replica(node, durable)
        except UnknownEntryError as error:
            self._upgrade(node, error)
            replica = self._replica(node, durable)
        self.replicas[node] = replica
        self.repair_situations.on_boot(node, replica)
        effects = self._takes(node, replica.boot)
        if self.border is not None and self.replicas[node] is replica:
            self.border.on_boot(node)
        for checker in self._judges(self.checkers, node):
            checker.on_boot(node, replica)
        self._run_effects(node, replica, effects)

    def _judges(self, checkers: tuple[Checker, ...], node: int) -> tuple[Checker, ...]:
        """Who looks at a replica: nobody at one that is shut out."""
        return () if self.border is not None and node in self.border.shut_out else checkers

    def _replica(self, node: int, durable: DurableState) -> Replica:
        config = self.config if self.border is None else self.border.config_of(node)
        config = replace(config, supports=self.supports[node], nonce=self.incarnations[node] + 1)
        parts, source = self.parts[node], self.storages[node].segments
        return Replica(durable, config, seq=self.seqs[node], clock=self.clocks[node], parts=parts, source=source)

    def _upgrade(self, node: int, error: UnknownEntryError) -> None:
        """A replica needs a feature that was taken away from it, and has it from now on. Raises `error` otherwise."""
        if self.profile.features != "downgrades":
            raise error
        self.statistics["upgrades_needed"] += 1
        self.upgraded.add(node)
        self.supports[node] = SUPPORTS_ALL

    def _takes(self, node: int, call: Callable[[], list[Effect]]) -> list[Effect]:
        """What a replica says; one that lacks a feature stops, and is started with it."""
        try:
            return call()
        except UnknownEntryError as error:
            self._upgrade(node, error)
            self.crash(node)
            self.at(self.now + 1, partial(self.boot, node))
            return []

    def _on_boot_refused(self, node: int, error: BootRefusedError) -> None:
        """The process ends at once; it is started again, unless its disk is lost."""
        self.statistics["boots_refused"] += 1
        if error.lost:
            self.lost.add(node)
        else:
            self.on_stop(node)

    def crash(self, node: int) -> None:
        """Kills the replica's process: what it had in memory, of all its groups, is gone, writes in flight are torn."""
        for group in (self, *self.mates):
            group.crash_group(node)

    def crash_group(self, node: int) -> None:
        """The replica of this group dies with its process."""
        replica = self.replicas[node]
        if replica is None:
            return
        self.situations.on_crash(replica)
        self.doomed.pop(node, None)
        self.replicas[node] = None
        self.incarnations[node] += 1
        self.storages[node].crash()
        self.statistics["crashes"] += 1
        if self.border is not None:
            if self.border.may_restore(node):
                self.border.restore(node)
            self.border.on_crash(node)
        if self.rot is not None and self.profile.rot and self.random.random() < self.profile.rot:
            self.rot.strike(node)
        damage = self.profile.superblock_damage
        if damage and self._missing(node) < self.spare and self.random.random() < damage:
            self.statistics["superblocks_lost"] += 1
            self.storages[node].unreadable = True
            self.lost.add(node)
            return
        damage = self.profile.snapshot_damage
        strikes = bool(damage) and self._missing(node) < self.spare and self.random.random() < damage
        if strikes and self.storages[node].damage_snapshot():
            self.statistics["snapshots_lost"] += 1
            self.lost.add(node)

    def _missing(self, node: int) -> int:
        """Number of other replicas that cannot be counted on; all, if one of them may need what only this one has."""
        if self.rot is None:
            return len(self.lost)
        others = [each for each in self.storages if each is not self.storages[node]]
        if any(isinstance(each, RingStorage) and each.is_damaged for each in others):
            return len(others)
        return len(self.rot.stricken - {node})

    def let_rot(self) -> None:
        """From now on disks may be damaged, as far as the replicas that can be spared allow."""
        rings = [storage for storage in self.storages if isinstance(storage, RingStorage)]
        if len(rings) < 2:
            return
        self.rot = Rot(rings, self.spare, self.storages[0].superblock.quorums.replication, self.random, self.lost)
        for node, storage in enumerate(rings):
            storage.may_lose = partial(self.rot.may_lose, node)

    # Effects

    def _run_effects(self, node: int, replica: Replica, effects: list[Effect]) -> None:
        incarnation, border, storage = self.incarnations[node], self.border, self.storages[node]
        is_judged = border is None or node not in border.shut_out
        for effect in effects:
            if self.doomed and self._is_struck(node):
                return
            if isinstance(effect, Emit):
                self._on_emit(node, replica, effect.event)
            elif isinstance(effect, Send):
                message = effect.message
                if is_judged:
                    self.views.on_send(node, message, storage.superblock.view)
                if isinstance(message, RequestStartView):
                    self.later_views.on_question(node, replica, message)
                if border is not None and not border.passes(node, effect.to, message):
                    continue
                for tick in self.network.arrivals(self.now, node, effect.to):
                    self.buckets[tick].append(partial(self._arrive, node, effect.to, message))
            elif isinstance(effect, SendClient):
                message_out = effect.message
                for checker in self._judges(self.checkers, node):
                    checker.on_answer(node, message_out)
                for tick in self.network.arrivals_at_client(self.now, node, message_out.client):
                    self.at(tick, partial(self.clients.on_message, node, message_out))
            else:
                latency = storage.start(effect)
                self.at(self.now + latency, partial(self._on_io_done, node, incarnation, effect))
                self.on_write(node, effect, latency)

    def _is_struck(self, node: int) -> bool:
        """A doomed replica dies between two of its effects."""
        left = self.doomed.get(node)
        if left is None:
            return False
        if left > 0:
            self.doomed[node] = left - 1
            return False
        self.statistics["crashes_between_effects"] += 1
        self.crash(node)
        return True

    def _on_emit(self, node: int, replica: Replica, event: TraceEvent) -> None:
        self.events += 1
        self.seqs[node] = event.seq
        self.clocks[node] = event.clock
        if self.record:
            self.lines[node].append(encode_line(event))
        self.situations.on_event(node, replica, event)
        self.control_situations.on_event(node, replica, event)
        self.repair_situations.on_event(node, event)
        name = event.event
        if name in ("restart", "recover"):
            storage = self.storages[node]
            if name == "recover" and node in self.lost:
                self.statistics["snapshots_overtaken"] += 1
                self.lost.discard(node)
            if isinstance(storage, RingStorage):
                storage.stricken = storage.is_damaged
        self.on_event(node, name)
        if name == "execute":
            for checker in self._judges(self.execution_checkers, node):
                checker.on_execute(node, replica, event)
        else:
            for checker in self._judges(self.watchers.get(name, ()), node):
                checker.on_event(node, replica, event)
        if name in COUNTED_EVENTS:
            self.statistics[name] += 1

    def _arrive(self, source: int, to: int, message: Message) -> None:
        """A message of a replica arrives, unless its connection has ended meanwhile."""
        if self.border is None or self.border.linked(source, to):
            self.deliver(to, message)

    def deliver(self, to: int, message: Message) -> None:
        """A message arrives at a replica."""
        replica = self.replicas[to]
        if replica is None:
            self.statistics["messages_to_dead"] += 1
            return
        self.situations.on_message(replica, message)
        met = self.repair_situations.before_message(to, replica, message)
        before = replica.state.status if self.later_views.is_due(replica, message) else None
        effects = self._takes(to, partial(replica.on_message, message))
        if before is not None and self.replicas[to] is replica and self._judges((self.later_views,), to):
            self.later_views.on_handled(to, replica, message, before, effects)
        self.repair_situations.after_message(replica, message, met, effects)
        if effects:
            self._run_effects(to, replica, effects)

    def _on_io_done(self, node: int, incarnation: int, io: IoEffect) -> None:
        replica = self.replicas[node]
        if replica is None or self.incarnations[node] != incarnation:
            return
        error = self.storages[node].failure(io)
        if error is not None:
            self._on_io_failed(node, replica, io, error)
            return
        try:
            self.storages[node].finish(io)
        except SegmentLostError as gone:
            self._on_io_failed(node, replica, io, str(gone), gone.refs)
            return
        self.statistics[WRITES[type(io)]] += 1
        if isinstance(io, DrainJournal) and io.end is not None:
            self.statistics["discards"] += 1
        if replica.snapshot_recovery.lost is not None and isinstance(io, WriteSnapshot):
            self.statistics["snapshots_repaired"] += 1
            self.lost.discard(node)
        self._run_effects(node, replica, self._takes(node, partial(replica.on_io_done, io)))

    def _on_io_failed(
        self, node: int, replica: Replica, io: IoEffect, error: str, lost: tuple[SegmentRef, ...] = ()
    ) -> None:
        """A write failed. Of a superblock write it may be unknown what it left: then the process stops."""
        self.statistics[f"{WRITES[type(io)]}_failed"] += 1
        if isinstance(io, WriteSuperblock) and self.random.random() < 0.5:
            self.statistics["superblock_writes_unknown"] += 1
            self.crash(node)
            self.on_stop(node)
            return
        self.storages[node].fail(io)
        self._run_effects(node, replica, self._takes(node, partial(replica.on_io_failed, io, error, lost)))

    def deliver_request(self, to: int, request: Request) -> None:
        """A client's request arrives at a replica."""
        if self.border is None or self.replicas[to] is None or self.border.takes_requests(to):
            self.deliver(to, request)

    # The end

    @property
    def members(self) -> tuple[Replica, ...]:
        """The replicas that are up, and not shut out."""
        out = () if self.border is None else self.border.shut_out
        return tuple(replica for node, replica in enumerate(self.replicas) if replica is not None and node not in out)

    def settled(self) -> bool:
        """No client waits, and all members are normal in one view with equal, executed logs."""
        if not self.clients.settled or rotten(self.members, self.storages):
            return False
        states = {
            (state.status, state.view, state.op, state.head, state.commit_min, state.commit_max)
            for state in (replica.state for replica in self.members)
        }
        if len(states) != 1:
            return False
        status, _, op, _, commit_min, commit_max = states.pop()
        return status is Status.NORMAL and op == commit_min == commit_max and self._features_settled()

    def _features_settled(self) -> bool:
        """If all replicas are up: what all support is enabled."""
        up = [replica for replica in self.replicas if replica is not None]
        common = SUPPORTS_ALL if len(up) == len(self.replicas) else 0
        for replica in up:
            common &= replica.control.supports
        return all(common & ~replica.state.enabled.mask == 0 for replica in up)

    def finish(self) -> list[Failure]:
        """The checkers' verdicts."""
        final = FinalState(
            core=self.members,
            chain=self.chain,
            answers=tuple(self.clients.answers),
            finished=self.settled(),
            unanswered=self.clients.unanswered,
            fenced_wrongly=tuple(self.clients.fenced_wrongly),
            tick=self.now,
            rotten=rotten(self.members, self.storages),
        )
        failures: list[Failure] = []
        for checker in self.checkers:
            checker.finish(final)
            failures += checker.failures
        return failures

    @property
    def chain(self) -> dict[int, Prepare]:
        """The canonical commit chain: op → the entry first executed there."""
        return self.agreement.chain
