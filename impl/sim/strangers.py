"""What strangers send: frames of all kinds from who may say none of them.

Whoever has no certificate of the cluster's authority does not get beyond the handshake, which the simulator has not;
the strangers here have one of a client, or have broken into the connection of a replica and send what no replica sends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from viewproof.impl.interface.messages import (
    Commit,
    DoViewChange,
    Message,
    Prepare,
    PrepareOk,
    PreVote,
    Request,
    StartView,
    StartViewChange,
    make_header,
)
from viewproof.impl.net.framing import PROTOCOL_VERSION, Hello, frame_control, frame_message
from viewproof.impl.replica import Replica

KINDS = ("no hello", "impostor", "client as replica", "another client", "far ahead", "garbled")
CLIENT = 1_000
"""A client that the load does not have."""

FAR = {"view": (1 << 32) + 1, "op": (1 << 44) + 1, "clock": (1 << 48) + 1}
"""Farther ahead than `impl.interface.ranges` lets it be."""


class StrangerTransport(asyncio.Transport):
    """A connection on which a certificate for `subject` was shown."""

    def __init__(self, subject: str) -> None:
        names = (("URI", f"viewproof:cluster/1/{subject}"),)
        super().__init__({"peercert": {"subjectAltName": names, "notAfter": "Jan  1 00:00:00 2100 GMT"}})
        self._closing = False

    def is_closing(self) -> bool:
        """True once the process has ended the connection."""
        return self._closing

    def close(self) -> None:
        """The process ends the connection."""
        self._closing = True

    abort = close

    def write(self, data: Any) -> None:
        """Nobody reads it."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """There is no buffer."""


def attack(
    random: Random, replica: Replica, hellos: Mapping[int, Hello], recent: Sequence[Message]
) -> tuple[str, str, list[bytes]]:
    """Kind, subject of the certificate shown, and the frames sent to `replica`.

    `hellos`: what the other replicas that run say of themselves; `recent`: messages that were sent before.
    """
    kind = random.choice(KINDS)
    state = replica.state
    other = random.choice([node for node in range(state.replica_count) if node != state.node] or [0])
    client = frame_control(Hello(PROTOCOL_VERSION, 1, "client", CLIENT))
    if kind == "no hello":
        return kind, "clients", [frame_message(_forged(random, replica, other))]
    if kind in ("impostor", "far ahead") and other not in hellos:
        kind = "client as replica"
    if kind == "impostor":
        return kind, "clients", [frame_control(hellos[other]), frame_message(_forged(random, replica, other))]
    if kind == "client as replica":
        return kind, "clients", [client, frame_message(_forged(random, replica, other))]
    if kind == "another client":
        victim = random.randint(1, 5)
        request = Request(victim, random.randint(1, 1 << 20), b"", clock=state.clock)
        return kind, f"client/{CLIENT}", [client, frame_message(request)]
    if kind == "far ahead":
        return kind, f"replica/{other}", [frame_control(hellos[other]), frame_message(_far(random, replica, other))]
    message = random.choice(recent) if recent else _forged(random, replica, other)
    data = bytearray(frame_message(message))
    for _ in range(random.randint(0, 4)):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return kind, f"client/{CLIENT}", [client, bytes(data[: random.randint(1, len(data))])]


def _forged(random: Random, replica: Replica, other: int) -> Message:
    """What would do harm if it were believed: of the present view, or the next one, in the name of another replica."""
    state = replica.state
    view, op, commit, clock = state.view, state.op, state.commit_max, state.clock
    header = make_header(parent=state.head, view=view, op=op + 1, client=CLIENT, request=1, commit=commit, body=b"")
    last = state.log.get(op)
    choices: list[Message] = [
        PrepareOk(view, op, state.head, other, clock),
        Commit(view, op, other, clock),
        Prepare(header, b"", state.primary, clock),
        StartViewChange(view + 1, other, clock),
        PreVote(view + 1, other, clock),
        DoViewChange(view + 1, view, op + 1, commit, (header,), other, clock),
        StartView(view + 1, op + 1, op + 1, (header,), other, clock),
    ]
    if last is not None:
        choices.append(PrepareOk(view, op, last.header.checksum, other, clock))
    return random.choice(choices)


def _far(random: Random, replica: Replica, other: int) -> Message:
    """A message of a replica with a number that is far ahead of what is known."""
    state = replica.state
    view, clock = state.view + FAR["view"], state.clock + FAR["clock"]
    op = max(state.op, state.commit_max) + FAR["op"]
    choices: list[Message] = [
        StartViewChange(view, other, state.clock),
        Commit(state.view, op, other, state.clock),
        Commit(view, state.commit_max, other, state.clock),
        PrepareOk(state.view, op, state.head, other, state.clock),
        PreVote(state.view + 1, other, clock),
    ]
    return msgspec.structs.replace(random.choice(choices))
