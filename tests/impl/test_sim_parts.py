"""Parts of the simulator: each checker fails on a contradiction made by hand, the disk tears, paths are cut."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from tests.impl.link import Link
from viewproof.impl.interface.durable import superblock_formatted, superblock_next
from viewproof.impl.interface.effects import AppendPrepares, WriteSuperblock
from viewproof.impl.interface.messages import DoViewChange, Prepare, PrepareOk, make_header
from viewproof.impl.machine.state_machine import Get, Put, StateMachine, encode_operation
from viewproof.impl.sim.checkers import (
    AgreementChecker,
    AtMostOnceChecker,
    Checker,
    DigestsChecker,
    DurabilityChecker,
    FinalState,
    LivenessChecker,
    RepliesChecker,
    ViewsChecker,
)
from viewproof.impl.sim.clients import Answer
from viewproof.impl.sim.network import Network
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.storage import SimStorage, StorageError
from viewproof.impl.trace.events import TraceEvent

PUT = Put(b"k", b"v")


def chain(count: int, view: int = 0) -> list[Prepare]:
    prepares: list[Prepare] = []
    parent = ""
    for op in range(1, count + 1):
        body = encode_operation(Put(b"k", b"%d" % op))
        header = make_header(parent=parent, view=view, op=op, client=1, request=op, commit=op - 1, body=body)
        prepares.append(Prepare(header, body))
        parent = header.checksum
    return prepares


def executed(op: int, checksum: str = "a", request: int = 1, digest: str = "d") -> TraceEvent:
    return TraceEvent(
        run="r",
        node=0,
        seq=1,
        clock=1,
        event="execute",
        commit_min=op,
        digest=digest,
        m_op=op,
        m_checksum=checksum,
        m_client=1,
        m_request=request,
    )


def messages(checker: Checker) -> str:
    return "; ".join(failure.message for failure in checker.failures)


def final(link: Link, answers: list[Answer], entries: list[Prepare], *, finished: bool = True) -> FinalState:
    return FinalState(
        core=tuple(link[node] for node in sorted(link.replicas)),
        chain={prepare.header.op: prepare for prepare in entries},
        answers=tuple(answers),
        finished=finished,
        unanswered=() if finished else ((1, 2),),
        tick=9,
    )


def cluster_with_two_ops() -> tuple[Link, list[Answer]]:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.request(0, 1, 2, Get(b"k"))
    link.tick(20)
    machine = StateMachine()
    bodies = [encode_operation(PUT), encode_operation(Get(b"k"))]
    replies = [machine.apply(body) for body in bodies]
    return link, [Answer(1, i + 1, bodies[i], i + 1, replies[i], 10 * i, 10 * i + 5) for i in range(2)]


def test_right_answers_fail_no_checker() -> None:
    link, answers = cluster_with_two_ops()
    for checker in (DurabilityChecker(), RepliesChecker(), LivenessChecker()):
        checker.finish(final(link, answers, link[0].state.log))
        assert checker.failures == []


def test_agreement_fails_on_another_entry_a_skipped_op_and_a_broken_parent() -> None:
    link, _ = cluster_with_two_ops()
    checker = AgreementChecker()
    first = link[0].state.log[1].header.checksum
    checker.on_execute(0, link[0], executed(1, first))
    checker.on_execute(1, link[1], executed(1, "other"))
    assert "first executed was" in messages(checker)
    checker = AgreementChecker()
    checker.on_execute(0, link[0], executed(2))
    assert "op 2 after op 0" in messages(checker)
    assert "whose parent" in messages(checker)


def test_at_most_once_fails_on_a_request_at_two_ops() -> None:
    link, _ = cluster_with_two_ops()
    checker = AtMostOnceChecker()
    checker.on_execute(0, link[0], executed(1, request=1))
    checker.on_execute(1, link[1], executed(1, request=1))
    assert checker.failures == []
    checker.on_execute(0, link[0], executed(2, request=1))
    assert "request 1 at op 2, before at 1" in messages(checker)


def test_digests_fail_on_two_digests_at_one_op() -> None:
    link, _ = cluster_with_two_ops()
    checker = DigestsChecker()
    checker.on_execute(0, link[0], executed(1, digest="x"))
    checker.on_execute(1, link[1], executed(1, digest="y"))
    assert "another had x" in messages(checker)


def test_views_fail_on_a_view_not_durable_a_fall_and_two_offers() -> None:
    link, _ = cluster_with_two_ops()
    checker = ViewsChecker()
    checker.on_send(0, PrepareOk(3, 1, "a", 0), 2)
    assert "of view 3, durable is 2" in messages(checker)
    checker.on_boot(0, link[0])
    assert "booted in view 0" in messages(checker)
    checker = ViewsChecker()
    checker.on_send(1, DoViewChange(2, 1, 4, 0, (), 1), 2)
    checker.on_send(1, DoViewChange(2, 1, 5, 0, (), 1), 2)
    assert "two logs in view 2" in messages(checker)


def test_durability_fails_on_a_replied_op_that_a_log_lacks_or_holds_otherwise() -> None:
    link, answers = cluster_with_two_ops()
    checker = DurabilityChecker()
    link[1].state.log.truncate(link[1].state.op - 1)
    checker.finish(final(link, answers, link[0].state.log))
    assert "replica 1 has no op 2" in messages(checker)
    checker = DurabilityChecker()
    checker.finish(final(link, [Answer(7, 1, b"", 1, b"", 0, 1)], link[0].state.log))
    assert "replied to as (7, 1)" in messages(checker)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"reply": b"wrong"}, "the chain gives"),
        ({"op": 9}, "which nobody executed"),
        ({"request": 5}, "which is another request"),
        ({"body": b"other"}, "not what the client sent"),
        ({"called": 30, "returned": 31}, "called after op 2 was answered"),
    ],
)
def test_replies_fail_on_a_wrong_answer(change: dict[str, object], reason: str) -> None:
    link, (first, second) = cluster_with_two_ops()
    values = {name: getattr(first, name) for name in Answer.__slots__} | change
    checker = RepliesChecker()
    checker.finish(final(link, [Answer(**values), second], link[0].state.log))
    assert reason in messages(checker)


def test_liveness_fails_on_an_unanswered_request() -> None:
    link, answers = cluster_with_two_ops()
    checker = LivenessChecker()
    checker.finish(final(link, answers, link[0].state.log, finished=False))
    assert "unanswered [(1, 2)]" in messages(checker)


def storage(seed: int = 0) -> SimStorage:
    return SimStorage(superblock_formatted(1, 0, 3), SimProfile(), Random(seed), defaultdict(int))


def test_a_torn_append_leaves_a_prefix_of_whole_records() -> None:
    lengths = set()
    for seed in range(60):
        disk = storage(seed)
        disk.start(AppendPrepares(tuple(chain(3))))
        disk.crash()
        log = disk.recover().log
        assert [prepare.header.op for prepare in log] == list(range(1, len(log) + 1))
        lengths.add(len(log))
    assert lengths >= {0, 1, 2}


def test_a_superblock_write_in_flight_leaves_the_old_or_the_new_one() -> None:
    views = set()
    for seed in range(20):
        disk = storage(seed)
        new = superblock_next(disk.superblock, view=1, log_view=0, head_op=0, head_checksum="", clock=5)
        disk.start(WriteSuperblock(new))
        disk.crash()
        views.add(disk.recover().superblock.view)
    assert views == {0, 1}


def test_the_log_is_the_chain_of_the_superblock_and_not_the_newest_records() -> None:
    old, new = chain(3), chain(2, view=1)
    disk = storage()
    for io in (AppendPrepares(tuple(old)), AppendPrepares(tuple(new), repair=True)):
        disk.start(io)
        disk.finish(io)
    assert [prepare.header for prepare in disk.recover().log] == [prepare.header for prepare in old]
    head = new[1].header
    installed = superblock_next(disk.superblock, view=1, log_view=1, head_op=2, head_checksum=head.checksum, clock=1)
    io = WriteSuperblock(installed)
    disk.start(io)
    disk.finish(io)
    assert [prepare.header for prepare in disk.recover().log] == [prepare.header for prepare in new]


def test_a_log_head_that_is_not_in_the_journal_is_refused() -> None:
    disk = storage()
    disk.superblock = superblock_next(disk.superblock, view=1, log_view=1, head_op=1, head_checksum="ab", clock=1)
    with pytest.raises(StorageError, match="no record of op 1"):
        disk.recover()


def test_a_partition_cuts_both_ways_or_one_and_heals() -> None:
    one_way = 0
    for seed in range(30):
        network = Network(SimProfile(loss=0.0, repeat=0.0), Random(seed), defaultdict(int))
        network.partition(5)
        one_way += any((b, a) not in network.cut for a, b in network.cut)
        for source, to in network.cut:
            assert network.arrivals(10, source, to) == ()
        network.heal()
        assert all(tick > 10 for tick in network.arrivals(10, 0, 1))
    assert 0 < one_way < 30


def test_a_clogged_path_delivers_late_and_out_of_order() -> None:
    network = Network(SimProfile(loss=0.0, repeat=0.0, delay_ticks_mean=0.01), Random(1), defaultdict(int))
    network.clogged[(0, 1)] = 50
    late = network.arrivals(10, 0, 1)
    assert min(late) > 50 > max(network.arrivals(10, 1, 0))
    assert max(network.arrivals(60, 0, 1)) < 70
