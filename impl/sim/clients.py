"""The clients of the simulator: one request outstanding each, retried until it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from impl.messages import Reply, Request
from impl.state_machine import Append, CompareAndSet, Delete, Get, Operation, Put, encode_operation

KEYS = tuple(b"key-%d" % number for number in range(8))


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


class SimClient:
    """Numbers its requests 1, 2, 3 …; sends to the replica it takes for the primary, the next one at each timeout."""

    def __init__(self, client: int, replica_count: int, random: Random) -> None:
        self.client = client
        self.replica_count = replica_count
        self.random = random
        self.number = 0
        self.target = 0
        self.clock = 0
        self.called = 0
        self.sent_at = 0
        self.body: bytes | None = None

    def next_request(self, now: int) -> None:
        """Draws the next operation; it becomes outstanding."""
        self.number += 1
        self.body = encode_operation(self._draw())
        self.called = now

    def message(self) -> Request:
        """The outstanding request."""
        return Request(self.client, self.number, self.body or b"", self.clock)

    def rotate(self) -> None:
        """No answer in time: the next replica may be the primary."""
        self.target = (self.target + 1) % self.replica_count

    def on_reply(self, reply: Reply, now: int) -> Answer | None:
        """The answer, if the reply is to the outstanding request."""
        self.clock = max(self.clock, reply.clock)
        if self.body is None or reply.request != self.number:
            return None
        answer = Answer(self.client, self.number, self.body, reply.op, reply.body, self.called, now)
        self.body = None
        self.target = reply.view % self.replica_count
        return answer

    def _draw(self) -> Operation:
        random = self.random
        key = KEYS[random.randrange(len(KEYS))]
        value = b"%d.%d" % (self.client, self.number)
        kind = random.randrange(10)
        if kind < 3:
            return Put(key, value)
        if kind < 5:
            return Get(key)
        if kind < 8:
            return Append(key, value) if random.random() < 0.8 else Put(key, b"")
        if kind < 9:
            return Delete(key)
        return CompareAndSet(key, None if random.random() < 0.5 else value, value)
