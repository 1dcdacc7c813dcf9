"""The clients of the simulator: they register where sessions are on, number their requests, and retry until answered.

One client has one request outstanding, or two where the profile lets it send ahead. It may restart, which loses its
session: it registers with the next incarnation, while its old instance may linger and go on with its last request. A
request whose session was evicted or fenced is abandoned: it may or may not have been executed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from typing import Protocol

from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.messages import Eviction, Reply, Request, register_result
from viewproof.impl.machine.state_machine import encode_operation
from viewproof.impl.replica import ReplicaConfig
from viewproof.impl.sim.network import Network
from viewproof.impl.sim.operations import draw_operation
from viewproof.impl.sim.profile import SimProfile

CLOCK_STEP = 8
"""How far a client's clock goes on from one process to the next, where clocks may be set back in between."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A request as its client saw it: `called` and `returned` are ticks of first sending and of the reply."""

    client: int
    request: int
    body: bytes
    op: int
    reply: bytes
    called: int
    returned: int
    session: int = 0


class World(Protocol):
    """What clients need of the simulated cluster."""

    now: int
    config: ReplicaConfig
    profile: SimProfile
    network: Network

    def at(self, tick: int, call: Callable[[], None]) -> None:
        """Schedules a call for a later tick."""

    def deliver_request(self, to: int, request: Request) -> None:
        """A request arrives at a replica now."""


class SimClient:
    """One instance of a client: `outstanding` is request number → (body, tick of first sending)."""

    def __init__(
        self,
        client: int,
        replica_count: int,
        random: Random,
        *,
        plane: Plane,
        namespace: int | None,
        sessions: bool,
        incarnation: int = 1,
    ) -> None:
        self.plane = plane
        self.namespace = namespace
        self.client = client
        self.replica_count = replica_count
        self.random = random
        self.incarnation = incarnation
        self.registered = not sessions
        self.registering = False
        self.lingers = False
        self.ended = False
        self.session = 0
        self.number = 0
        self.target = 0
        self.clock = 0
        self.attempt = 0
        self.outstanding: dict[int, tuple[bytes, int]] = {}

    @property
    def waits(self) -> bool:
        """True if something of this instance is outstanding."""
        return not self.ended and (self.registering or bool(self.outstanding))

    def register(self) -> None:
        """A register becomes outstanding."""
        self.registering = True
        self.attempt += 1

    def next_request(self, now: int, number: int) -> None:
        """Draws the next operation; it becomes outstanding under `number`."""
        self.number = number
        value = b"%d.%d.%d" % (self.client, self.session, number)
        operation = draw_operation(self.random, self.plane, value, self.namespace)
        self.outstanding[number] = (encode_operation(operation), now)
        self.attempt += 1

    def messages(self) -> list[Request]:
        """What is outstanding."""
        if self.registering:
            return [Request(self.client, 0, b"", 0, self.incarnation, self.clock)]
        return [
            Request(self.client, number, body, self.session, 0, self.clock)
            for number, (body, _) in self.outstanding.items()
        ]

    def rotate(self) -> None:
        """No answer in time: the next replica may be the primary."""
        self.target = (self.target + 1) % self.replica_count

    def on_registered(self, reply: Reply, source: int) -> bool:
        """True if the reply is to the outstanding register: the session is open."""
        self.clock = max(self.clock, reply.clock)
        if not self.registering or reply.request or reply.body != register_result(self.incarnation):
            return False
        self.registering = False
        self.registered = True
        self.session = reply.session
        self.number = 0
        self.target = source
        return True

    def on_reply(self, reply: Reply, source: int, now: int) -> Answer | None:
        """The answer, if the reply is to an outstanding request."""
        self.clock = max(self.clock, reply.clock)
        if reply.session != self.session or reply.request not in self.outstanding:
            return None
        body, called = self.outstanding.pop(reply.request)
        self.target = source
        return Answer(self.client, reply.request, body, reply.op, reply.body, called, now, reply.session)

    def give_up(self) -> int:
        """The session is gone: what is outstanding is abandoned; returns how many requests that is."""
        count = len(self.outstanding)
        self.outstanding = {}
        self.registered = False
        self.attempt += 1
        return count


class Clients:
    """All clients of a run; `requests_left` is how many requests they may still begin.

    `fenced_wrongly` names clients that were fenced by an incarnation that no process of theirs ever had; the highest
    that one had is in `registered_as`, all that it had in `had`.
    """

    def __init__(
        self,
        count: int,
        replica_count: int,
        requests: int,
        world: World,
        random: Random,
        statistics: dict[str, int],
    ) -> None:
        self.requests_left = requests
        self.answers: list[Answer] = []
        self.abandoned = 0
        self.fenced_wrongly: list[str] = []
        self.registered_as: dict[int, int] = {}
        self.had: defaultdict[int, set[int]] = defaultdict(set)
        self.world = world
        self.random = random
        self.statistics = statistics
        self.plane, self.namespace = world.config.plane, world.config.namespace
        self.sessions = world.profile.client_sessions
        self.replica_count = replica_count
        self.count = count
        self.instances = [
            SimClient(
                number + 1, replica_count, random, plane=self.plane, namespace=self.namespace, sessions=self.sessions
            )
            for number in range(count)
        ]

    def start(self) -> None:
        """The clients begin, one after the other."""
        for client in self.instances:
            self.world.at(1 + self.random.randrange(5), partial(self._next, client))

    @property
    def completed(self) -> int:
        """Requests that nobody waits for any more."""
        return len(self.answers) + self.abandoned

    @property
    def settled(self) -> bool:
        """Every request was begun, and is answered or abandoned."""
        return not self.requests_left and not any(client.waits for client in self.instances)

    @property
    def unanswered(self) -> tuple[tuple[int, int], ...]:
        """(client, request) of what is outstanding; request 0 is a register."""
        return tuple(
            (client.client, number)
            for client in self.instances
            if client.waits
            for number in (client.outstanding or (0,))
        )

    # What clients do

    def _next(self, client: SimClient) -> None:
        if client.ended or client.waits or not self.requests_left:
            return
        if not client.registered:
            client.register()
            self._send(client)
            return
        profile, random = self.world.profile, self.random
        self._begin_request(client)
        if profile.client_ahead and self.requests_left and random.random() < profile.client_ahead:
            self.statistics["requests_sent_ahead"] += 1
            self._begin_request(client)
        self._send(client)
        if profile.client_restart and random.random() < profile.client_restart:
            self.world.at(self.world.now + 1 + random.randrange(20), partial(self._restart, client))

    def _begin_request(self, client: SimClient) -> None:
        profile = self.world.profile
        number = client.number + 1
        if profile.client_skip and self.random.random() < profile.client_skip:
            self.statistics["requests_skipped"] += 1
            number += 1 + self.random.randrange(3)
        self.requests_left -= 1
        client.next_request(self.world.now, number)

    def _restart(self, client: SimClient) -> None:
        """The client's process begins anew; the old one lingers if it has a request to finish."""
        if client.ended or client.lingers or not client.registered:
            return
        self.statistics["client_restarts"] += 1
        client.lingers = bool(client.outstanding) and self.random.random() < 0.5
        if not client.lingers:
            client.ended = True
            self.abandoned += client.give_up()
        anew = SimClient(
            client.client,
            self.replica_count,
            self.random,
            plane=self.plane,
            namespace=self.namespace,
            sessions=True,
            incarnation=self._next_incarnation(client),
        )
        anew.clock = client.clock
        self.instances.append(anew)
        self._next(anew)

    def _next_incarnation(self, client: SimClient) -> int:
        """A later one, or an earlier one than the last, of a clock that was set back; but none that the client had: a
        clock in nanoseconds does not show one time twice.
        """
        back = self.world.profile.client_clock_back
        if back and client.incarnation > 1 and self.random.random() < back:
            free = set(range(1, client.incarnation)) - self.had[client.client]
            if free:
                self.statistics["client_clocks_back"] += 1
                return self.random.choice(sorted(free))
        return self._unused(client, client.incarnation + (CLOCK_STEP if back else 1))

    def _unused(self, client: SimClient, least: int) -> int:
        """The first incarnation from there on that no process of the client had."""
        return next(number for number in count(least) if number not in self.had[client.client])

    def _send(self, client: SimClient) -> None:
        if client.registering:
            self.had[client.client].add(client.incarnation)
            self.registered_as[client.client] = max(self.registered_as.get(client.client, 0), client.incarnation)
        world, random, profile = self.world, self.random, self.world.profile
        messages = client.messages()
        if len(messages) > 1 and random.random() < 0.5:
            messages.reverse()
        for message in messages:
            for tick in world.network.arrivals_of_client(world.now, client.client, client.target):
                world.at(tick, partial(world.deliver_request, client.target, message))
            if profile.client_echo and random.random() < profile.client_echo:
                self.statistics["client_echoes"] += 1
                late = world.now + random.randint(20, profile.client_echo_ticks_max)
                world.at(late, partial(world.deliver_request, random.randrange(self.replica_count), message))
        wait = profile.client_timeout_ticks + random.randrange(10)
        world.at(world.now + wait, partial(self._timeout, client, client.attempt))

    def _timeout(self, client: SimClient, attempt: int) -> None:
        if client.attempt != attempt or not client.waits:
            return
        self.statistics["client_timeouts"] += 1
        client.rotate()
        self._send(client)

    # What arrives

    def on_message(self, source: int, message: Reply | Eviction) -> None:
        """A reply or an eviction from replica `source` reaches every instance of its client."""
        for client in tuple(self.instances):
            if client.client != message.client or client.ended:
                continue
            if isinstance(message, Eviction):
                self._on_eviction(client, message)
            elif message.request == 0:
                if client.on_registered(message, source):
                    self.statistics["sessions_opened"] += 1
                    self._soon(client)
            else:
                self._on_reply(client, message, source)

    def _on_reply(self, client: SimClient, reply: Reply, source: int) -> None:
        answer = client.on_reply(reply, source, self.world.now)
        if answer is None:
            return
        self.answers.append(answer)
        for number in [number for number in client.outstanding if number < answer.request]:
            # The table keeps the latest reply only: this one was executed, and its reply is lost.
            del client.outstanding[number]
            self.abandoned += 1
            self.statistics["replies_lost"] += 1
        if not client.outstanding:
            client.ended = client.lingers
            self._soon(client)

    def _on_eviction(self, client: SimClient, message: Eviction) -> None:
        client.clock = max(client.clock, message.clock)
        if client.registering and not message.session and message.incarnation >= client.incarnation:
            self.statistics["registers_too_late"] += 1
            client.incarnation = self._unused(client, message.incarnation + 1)
            client.attempt += 1
            self._send(client)
            return
        if not client.registered or message.session != client.session:
            return
        self.statistics[f"clients_{message.reason}"] += 1
        self.abandoned += client.give_up()
        if client.lingers:
            client.ended = True
            return
        if message.reason == "fenced" and message.incarnation > client.incarnation:
            # A late register of a process before may do so, if its clock was ahead, and its slot was evicted since.
            if message.incarnation > self.registered_as.get(client.client, 0):
                self.fenced_wrongly.append(f"client {client.client} of incarnation {client.incarnation}: {message}")
            client.incarnation = message.incarnation
        client.incarnation = self._unused(client, client.incarnation + 1)
        self._soon(client)

    def _soon(self, client: SimClient) -> None:
        pause, mean = 1 + self.random.randrange(3), self.world.profile.client_pause_ticks_mean
        if mean:
            pause += int(self.random.expovariate(1.0 / mean))
        self.world.at(self.world.now + pause, partial(self._next, client))
