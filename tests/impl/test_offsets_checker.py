"""What a client was told of is kept: each message can be read at some replica, and is the same at all that have it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from viewproof.impl.machine.partition_log import SegmentLostError
from viewproof.impl.machine.partitions import Appended, AppendMessages
from viewproof.impl.machine.state_machine import encode_operation
from viewproof.impl.sim.checkers.base import FinalState
from viewproof.impl.sim.checkers.offsets import OffsetsChecker
from viewproof.impl.sim.clients import Answer
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.run import simulate

MESSAGES = (b"a", b"b", b"c")


def replica(node: int, held: dict[int, bytes]) -> Any:
    """One that reads these messages, by offset, and no other."""

    def read(namespace: int, offset: int, count: int) -> tuple[bytes, ...]:
        if any(each not in held for each in range(offset, offset + count)):
            raise SegmentLostError((), "gone")
        return tuple(held[each] for each in range(offset, offset + count))

    machine = SimpleNamespace(partitions=SimpleNamespace(read=read))
    return SimpleNamespace(state=SimpleNamespace(node=node, state_machine=machine))


def judged(*held: dict[int, bytes]) -> list[str]:
    """What is said of replicas that read so much, where a client was told that three messages lie at 4."""
    body, reply = encode_operation(AppendMessages(0, MESSAGES)), msgspec.msgpack.encode(Appended(4, 3))
    answer = Answer(client=1, request=1, body=body, op=1, reply=reply, called=1, returned=2)
    checker = OffsetsChecker()
    core = tuple(replica(node, each) for node, each in enumerate(held))
    checker.finish(FinalState(core, {}, (answer,), finished=True, unanswered=(), tick=9))
    return [failure.message for failure in checker.failures]


ALL = dict(enumerate(MESSAGES, 4))


@pytest.mark.parametrize(
    "held", [(ALL, ALL), (ALL, {}), ({4: b"a"}, {5: b"b", 6: b"c"}), ({4: b"a", 6: b"c"}, {4: b"a", 5: b"b"})]
)
def test_each_message_is_read_at_some_replica_though_none_reads_all(held: tuple[dict[int, bytes], ...]) -> None:
    assert judged(*held) == []


def test_a_message_that_nobody_reads_is_told() -> None:
    assert judged({4: b"a"}, {6: b"c"}) == ["no replica can read the messages at offset 5 of 0"]
    assert len(judged({}, {})) == 3


def test_other_messages_are_told_also_where_only_a_part_is_read() -> None:
    assert judged(ALL, {**ALL, 5: b"x"}) == ["replica 1 has other messages at offset 4 of 0"]
    assert judged({4: b"a", 5: b"b"}, {5: b"x", 6: b"c"}) == ["replica 1 has other messages at offset 5 of 0"]


def test_of_two_replicas_each_has_lost_one_of_two_segments_that_an_append_lies_in() -> None:
    result = simulate(69_043_532, replicas=2, requests=60, profile=NAMED_PROFILES["vanishing"])
    assert result.ok, result.failures
