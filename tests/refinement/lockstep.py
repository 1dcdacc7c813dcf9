"""Implementation and specification in lock-step: a cluster under full control, whose every event the spec must explain.

`World` holds replicas, disks and the network; nothing moves by itself. Each event that a replica emits is given to
`Follower` at once, which takes the spec's steps for it (the audit's own handlers) and evaluates every invariant.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from random import Random

from viewproof.impl.faults import parts_with
from viewproof.impl.interface.durable import ClientTableConfig, superblock_formatted
from viewproof.impl.interface.effects import Effect, Emit, IoEffect, Send, SendClient, WriteSuperblock
from viewproof.impl.interface.messages import Eviction, Message, Reply, Request
from viewproof.impl.machine.state_machine import Append, encode_operation
from viewproof.impl.replica import Replica, ReplicaConfig
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.storage import SimStorage
from viewproof.impl.trace.events import TraceEvent
from viewproof.refinement.checker import program_for
from viewproof.refinement.checker.compile import Program
from viewproof.refinement.checker.state import Missing, Reject
from viewproof.refinement.native import SYSTEM, configuration
from viewproof.refinement.schema import COLUMNS, Row
from viewproof.spec.engines.interp import holds
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Predicate
from viewproof.spec.lang.schema import Schema
from viewproof.spec.lang.sorts import Instance

Invariants = tuple[Predicate, ...]

PATIENCE_TICKS = 400
"""Ticks in which a replica that is up does something at last: more than any of its timeouts."""


class DivergedError(AssertionError):
    """The spec does not explain an event, or an invariant does not hold."""


class Follower:
    """The spec's state along the events of one run."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._program: Program | None = None
        self._state = State.initial()

    def feed(self, event: TraceEvent) -> None:
        """Take the spec's steps for the event; over them the invariants of steps hold. Raises DivergedError."""
        row: Row = (*(getattr(event, name) for name in COLUMNS), "memory", len(self.rows) + 1)
        self.rows.append(row)
        if self._program is None:
            self._begin(row)
        assert self._program is not None
        try:
            self._program.handlers[event.event](self._run, self._store, row)
        except (Reject, Missing) as error:
            raise DivergedError(f"{event.event} of node {event.node}: {error}") from error
        self._run.events += 1
        before, self._state = self._state, self._program.replay.layout.to_state(self._store)
        self._check(self._of_steps, before, self._state)

    def check(self) -> None:
        """The invariants of states hold now. Raises DivergedError."""
        if self.rows:
            self._check(self._of_states, self._state, None)

    def _begin(self, row: Row) -> None:
        cfg = configuration(dict(zip(COLUMNS, row, strict=False)))
        self._program = program_for(SYSTEM, cfg, row)
        self._of_steps, self._of_states = _invariants(self._program)
        self._spec = self._program.replay.spec
        self._run = self._program.new_run(row)
        self._store = self._program.replay.new_store()

    def _check(self, invariants: Invariants, state: State, after: State | None) -> None:
        finite = replace(self._spec, instance=Instance(_reach(self._spec.schema, self._state, self._run.replicas)))
        for invariant in invariants:
            if not holds(finite, invariant, state, after):
                raise DivergedError(f"{invariant.id}, {invariant.title}, does not hold after {self.rows[-1][:5]}")


def _invariants(program: Program) -> tuple[Invariants, Invariants]:
    """The invariants of steps and of states."""
    spec = program.replay.spec
    of_step = {ir.name: ir.is_transition for ir in spec.invariant_irs}
    return (
        tuple(invariant for invariant in spec.invariants if of_step[invariant.id]),
        tuple(invariant for invariant in spec.invariants if not of_step[invariant.id]),
    )


def _reach(schema: Schema, state: State, replicas: int) -> dict[str, int]:
    """For each sort the largest member that the state uses: quantifiers need to go no further."""
    reach: dict[str, int] = defaultdict(int)
    for var in schema.vars.values():
        table = state.tables.get(var.name, {})
        sorts = [(sort, [index[place] for index in table]) for place, sort in enumerate(var.index)]
        if var.values.sort is not None:
            sorts.append((var.values.sort, list(table.values())))
        for sort, members in sorts:
            name = sort.ends_with or sort.name
            reach[name] = max(reach[name], sort.lo, *members)
    reach["Replica"] = replicas - 1
    return dict(reach)


@dataclass
class Client:
    """A client with at most one request outstanding."""

    number: int
    sessions: bool
    request: int = 0
    session: int = 0
    incarnation: int = 0
    clock: int = 0
    outstanding: Request | None = None

    def next(self) -> Request:
        """The outstanding request again, else the next one: a register first, where clients register."""
        if self.outstanding is None:
            if self.sessions and not self.session:
                self.incarnation += 1
                self.outstanding = Request(self.number, 0, b"", 0, self.incarnation, self.clock)
            else:
                self.request += 1
                body = encode_operation(Append(b"k", b"%d.%d;" % (self.number, self.request)))
                self.outstanding = Request(self.number, self.request, body, self.session, 0, self.clock)
        return self.outstanding

    def take(self, message: Reply | Eviction) -> None:
        """An answer arrives."""
        self.clock = max(self.clock, message.clock)
        waits = self.outstanding
        if waits is None or message.request != waits.request:
            return
        if isinstance(message, Eviction):
            if message.session == waits.session:
                self.session = self.request = 0
                self.outstanding = None
        elif waits.request == 0:
            if message.session > self.session:
                self.session, self.request, self.outstanding = message.session, 0, None
        elif message.session == waits.session:
            self.outstanding = None


@dataclass(frozen=True)
class Setup:
    """A cluster to build: replicas, clients, how they are remembered, features of each member, mistakes switched on."""

    replicas: int = 3
    clients: int = 2
    table: ClientTableConfig = field(default_factory=ClientTableConfig)
    supports: tuple[int, ...] = ()
    checkpoint_interval: int = 0
    faults: frozenset[str] = frozenset()


class World:
    """Replicas, disks, clients and messages in flight; each method is one thing that happens.

    Raises DivergedError as soon as the specification and a replica part.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.follower = Follower()
        self.clients = [Client(number + 1, setup.table.sessions) for number in range(setup.clients)]
        self.requests: list[Request] = []
        self.messages: list[tuple[int, Message]] = []
        self.replicas: dict[int, Replica] = {}
        self._clocks = [(0, 0)] * setup.replicas
        self.disks = [
            SimStorage(
                superblock_formatted(1, node, setup.replicas, None, setup.table),
                SimProfile(slow_write=0.0),
                Random(0),
                defaultdict(int),
            )
            for node in range(setup.replicas)
        ]
        for node in range(setup.replicas):
            self.restart(node)

    def restart(self, node: int) -> None:
        """A replica that is down boots over its disk."""
        supports = self.setup.supports[node] if self.setup.supports else 0
        config = ReplicaConfig(
            run="lockstep",
            supports=supports,
            checkpoint_interval=self.setup.checkpoint_interval,
        )
        seq, clock = self._clocks[node]
        parts = parts_with(self.setup.faults, node)
        disk = self.disks[node]
        source = disk.segments
        self.replicas[node] = Replica(disk.recover(), config, seq=seq, clock=clock, parts=parts, source=source)
        self._carry_out(node, self.replicas[node].boot())

    def crash(self, node: int, torn: int) -> None:
        """A replica's process dies; `torn` decides what of its writes in flight reaches the disk."""
        del self.replicas[node]
        self.disks[node].random = Random(torn)
        self.disks[node].crash()

    def finish_all(self, node: int) -> None:
        """The writes in flight of one replica become durable, and those that follow from them."""
        while self.writes(node):
            self.finish(node, 0)

    def finish(self, node: int, number: int) -> None:
        """A write in flight becomes durable."""
        io = self.writes(node)[number]
        self.disks[node].finish(io)
        self._carry_out(node, self.replicas[node].on_io_done(io))

    def fail(self, node: int, number: int) -> None:
        """A write in flight fails, and nothing of it counts; one of the superblock ends the process, too."""
        io = self.writes(node)[number]
        self.disks[node].fail(io)
        if isinstance(io, WriteSuperblock):
            self.crash(node, 0)
        else:
            self._carry_out(node, self.replicas[node].on_io_failed(io, "disk full"))

    def writes(self, node: int) -> list[IoEffect]:
        """Writes in flight."""
        return self.disks[node].in_flight

    def request(self, client: int, to: int) -> None:
        """The client's outstanding request, or its next one, arrives at a replica."""
        request = self.clients[client].next()
        self.requests.append(request)
        self._arrive(to, request)

    def repeat_request(self, number: int, to: int) -> None:
        """A copy of any earlier request arrives."""
        self._arrive(to, self.requests[number])

    def deliver(self, number: int) -> None:
        """A message in flight arrives."""
        self._arrive(*self.messages.pop(number))

    def repeat(self, number: int) -> None:
        """A message in flight arrives, and a copy of it stays."""
        self._arrive(*self.messages[number])

    def deliver_all(self, to: int) -> None:
        """All messages in flight to one replica arrive, in the order in which they were sent."""
        arriving = [message for target, message in self.messages if target == to]
        self.messages = [(target, message) for target, message in self.messages if target != to]
        for message in arriving:
            self._arrive(to, message)

    def drop(self, number: int) -> None:
        """A message in flight is lost."""
        del self.messages[number]

    def wait(self, node: int) -> None:
        """Time passes at one replica until it does something."""
        for _ in range(PATIENCE_TICKS):
            effects = self.replicas[node].on_tick()
            if effects:
                self._carry_out(node, effects)
                return

    def calm(self) -> None:
        """Messages arrive in the order in which they were sent, and writes finish, until nothing moves."""
        while True:
            for node in sorted(self.replicas):
                self.finish_all(node)
            if not self.messages:
                return
            self.deliver(0)

    def _arrive(self, to: int, message: Message) -> None:
        if to in self.replicas:
            self._carry_out(to, self.replicas[to].on_message(message))

    def _carry_out(self, node: int, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Emit):
                self._clocks[node] = (effect.event.seq, effect.event.clock)
                self.follower.feed(effect.event)
            elif isinstance(effect, Send):
                self.messages.append((effect.to, effect.message))
            elif isinstance(effect, SendClient):
                self.clients[effect.client - 1].take(effect.message)
            else:
                self.disks[node].start(effect)
