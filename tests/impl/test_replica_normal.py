"""Normal operation of the replica: claims on requests, durability, acknowledgement, commit, client table."""

from __future__ import annotations

import pytest

from tests.impl.link import Link, is_append
from viewproof.impl.interface.durable import ConfigurationError, Quorums
from viewproof.impl.interface.effects import AppendPrepares, Emit, Send
from viewproof.impl.interface.messages import (
    Commit,
    DoViewChange,
    Prepare,
    PrepareOk,
    Request,
    RequestStartView,
    StartView,
    StartViewChange,
    make_header,
)
from viewproof.impl.machine.state_machine import Append, Get, Put, Value, decode_result, encode_operation
from viewproof.impl.replica.target import window_error

PUT = Put(b"k", b"v")


def nobody_hears(source: int, to: int, message: object) -> bool:
    return True


def test_a_request_is_executed_and_answered_by_the_primary() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.request(0, 1, 2, Get(b"k"))
    assert [reply.request for reply in link.replies] == [1, 2]
    assert decode_result(link.replies[1].body) == Value(b"v")
    assert link[0].state.commit_min == 2


def test_events_of_a_request_have_the_names_and_the_order_of_the_contract() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    assert link.names(0) == ["start", "on_request", "append", "prepare_ok", "on_prepare_ok", "commit", "execute"]
    assert link.names(1) == ["start", "on_prepare", "append", "prepare_ok"]
    link.tick(10, 0)
    assert link.names(0)[-1] == "send_commit"
    assert link.names(1)[-2:] == ["on_commit", "execute"]
    assert link[0].state.digest == link[1].state.digest == link[2].state.digest


def test_the_primary_alone_commits_nothing() -> None:
    link = Link()
    link.lose = nobody_hears
    link.request(0, 1, 1, PUT)
    assert link[0].state.durable_op == 1
    assert link[0].state.commit_max == 0
    assert link.replies == []


def test_a_prepare_is_acknowledged_only_once_it_is_durable() -> None:
    link = Link()
    link.hold = lambda node, io: node != 0 and is_append(node, io)
    link.request(0, 1, 1, PUT)
    assert link.messages(PrepareOk) == []
    assert link[0].state.commit_max == 0
    link.hold = lambda node, io: False
    link.run()
    assert len(link.messages(PrepareOk)) == 2
    assert link[0].state.commit_min == 1


def test_the_primary_counts_its_own_acknowledgement_only_once_durable() -> None:
    link = Link(quorums=Quorums(3, 1))
    link.hold = lambda node, io: node == 0 and is_append(node, io)
    link.request(0, 1, 1, PUT)
    assert len(link.of(0, "on_prepare_ok")) == 2
    assert link[0].state.commit_max == 0
    link.hold = lambda node, io: False
    link.run()
    assert link[0].state.commit_max == 1


def test_prepares_that_arrive_during_an_append_are_appended_together() -> None:
    link = Link()
    link.hold = lambda node, io: node == 1 and is_append(node, io)
    for client in range(1, 5):
        link.request(0, client, 1, PUT)
    link.hold = lambda node, io: False
    link.run()
    groups = [len(io.prepares) for node, io in link.writes if node == 1 and isinstance(io, AppendPrepares)]
    assert groups == [1, 3]
    assert [event.m_op for event in link.of(1, "append")] == [1, 4]
    assert [event.m_op for event in link.of(1, "prepare_ok")] == [1, 2, 3, 4]


def test_an_event_precedes_the_sends_that_it_allows() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    own = [effect for node, effect in link.order if node == 1]
    position = next(i for i, e in enumerate(own) if isinstance(e, Send) and isinstance(e.message, PrepareOk))
    emitted = [e.event.event for e in own[:position] if isinstance(e, Emit)]
    assert emitted[-1] == "prepare_ok"


def test_a_message_names_the_event_that_sent_it_and_its_use_has_a_later_clock() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    sent = link.of(0, "on_request")[0]
    used = link.of(1, "on_prepare")[0]
    assert (used.m_from, used.m_seq) == (0, sent.seq)
    assert used.clock > sent.clock
    assert used.m_checksum == sent.m_checksum


def test_a_repeated_request_is_answered_again_and_not_executed_again() -> None:
    link = Link()
    link.request(0, 1, 1, Append(b"k", b"x"))
    link.request(0, 1, 1, Append(b"k", b"x"))
    assert [reply.body for reply in link.replies] == [link.replies[0].body] * 2
    assert link[0].state.op == 1
    assert link.of(0, "resend_reply")[0].m_op == 1


def test_a_request_in_progress_and_an_older_request_are_dropped() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.request(0, 1, 2, PUT)
    link.request(0, 1, 1, PUT)
    link.lose = nobody_hears
    link.request(0, 1, 3, PUT)
    link.request(0, 1, 3, PUT)
    assert link[0].state.op == 3
    assert [(event.m_request, event.m_outcome) for event in link.of(0, "drop_request")] == [
        (1, "stale"),
        (3, "in_progress"),
    ]


def test_a_backup_takes_no_request() -> None:
    link = Link()
    link.request(1, 1, 1, PUT)
    assert link[1].state.op == 0


def test_a_full_pipeline_makes_requests_wait_and_then_prepares_them() -> None:
    link = Link(pipeline_max=2)
    link.hold = is_append
    for client in range(1, 5):
        link.request(0, client, 1, PUT)
    assert link[0].state.op == 2
    link.hold = lambda node, io: False
    link.run()
    assert link[0].state.commit_min == 4
    assert sorted(reply.client for reply in link.replies) == [1, 2, 3, 4]


def test_a_lost_prepare_is_sent_again_until_a_quorum_acknowledged_it() -> None:
    link = Link()
    link.lose = nobody_hears
    link.request(0, 1, 1, PUT)
    link.lose = lambda source, to, message: False
    link.tick(15, 0)
    assert link[0].state.commit_min == 1


def test_a_lost_acknowledgement_is_sent_again_as_the_same_event() -> None:
    link = Link()
    link.lose = lambda source, to, message: isinstance(message, PrepareOk)
    link.request(0, 1, 1, PUT)
    link.lose = lambda source, to, message: False
    link.tick(15, 0)
    assert link[0].state.commit_min == 1
    assert len(link.of(1, "prepare_ok")) == 1
    assert link.of(0, "on_prepare_ok")[0].m_seq == link.of(1, "prepare_ok")[0].seq


def test_a_gap_in_the_own_view_is_filled_by_prepares() -> None:
    link = Link()
    link.lose = lambda source, to, message: to == 2
    for number in range(1, 6):
        link.request(0, 1, number, PUT)
    link.lose = lambda source, to, message: False
    link.tick(40)
    assert link[2].state.commit_min == 5
    assert [event.m_op for event in link.of(2, "on_prepare")] == [1, 2, 3, 4, 5]
    assert link.of(2, "on_start_view") == []


def test_prepares_that_arrive_out_of_order_are_accepted_in_order() -> None:
    link = Link()
    kept: list[Prepare] = []

    def lose(source: int, to: int, message: object) -> bool:
        if isinstance(message, Prepare) and to == 1:
            kept.append(message)
        return isinstance(message, Prepare)

    link.lose = lose
    for client in (1, 2, 3):
        link.request(0, client, 1, PUT)
    for prepare in reversed(kept):
        link.deliver(1, prepare)
    link.run()
    assert [event.m_op for event in link.of(1, "on_prepare")] == [1, 2, 3]


def test_a_cluster_of_one_commits_by_itself_and_leaves_its_view_at_restart() -> None:
    link = Link(1)
    link.request(0, 1, 1, PUT)
    assert link[0].state.commit_min == 1
    link.crash(0)
    link.boot(0)
    assert link[0].state.status == "view_change"
    link.change_view(0)
    assert (link[0].state.view, link[0].state.log_view, link[0].state.commit_max) == (1, 1, 1)
    link.request(0, 1, 2, Get(b"k"))
    assert decode_result(link.replies[-1].body) == Value(b"v")


@pytest.mark.parametrize("quorums", [Quorums(1, 2), Quorums(0, 3), Quorums(4, 1), Quorums(2, 1)])
def test_quorums_that_do_not_intersect_are_refused(quorums: Quorums) -> None:
    with pytest.raises(ConfigurationError):
        Link(3, quorums=quorums)


def test_the_even_quorum_fault_is_the_only_way_round_the_validation() -> None:
    assert Link(4, faults=["view.even_quorum"])[0].state.quorums == Quorums(2, 2)
    assert Link(4)[0].state.quorums == Quorums(3, 3)


HEADER = make_header(parent="", view=0, op=1, client=1, request=1, commit=0, body=b"x")
AFTER = make_header(parent=HEADER.checksum, view=0, op=2, client=1, request=2, commit=0, body=b"x")


@pytest.mark.parametrize(
    "message",
    [
        Prepare(HEADER, b"y", 0),
        Prepare(AFTER, b"x", 0),
        Prepare(HEADER, b"x", 9),
        Prepare(HEADER, b"x", 1),
        PrepareOk(0, 1, "00", 2),
        Commit(0, 7, 2),
        StartView(1, 2, 0, (HEADER,), 1),
        StartView(1, 1, 0, (HEADER,), 2),
        StartView(1, 1, 0, (), 1),
        DoViewChange(1, 1, 1, 0, (HEADER,), 2),
        DoViewChange(1, 0, 2, 0, (AFTER, HEADER), 2),
        StartViewChange(0, 2),
        RequestStartView(0, 1, 2),
        Request(0, 1, encode_operation(PUT)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_bad_message_is_ignored_with_a_reason(message: Prepare) -> None:
    link = Link()
    before = (link[1].state.view, link[1].state.op, link[1].state.commit_max, len(link.of(1, "start")))
    link.deliver(1, message)
    assert (link[1].state.view, link[1].state.op, link[1].state.commit_max, len(link.of(1, "start"))) == before
    assert sum(link[1].out.ignored.values()) == 1


def test_a_window_must_be_a_chain_that_ends_at_op() -> None:
    assert window_error((HEADER, AFTER), 2, 0) is None
    assert window_error((), 0, 0) is None
    assert window_error((), 1, 0) is not None
    assert window_error((HEADER,), 2, 0) is not None
    assert window_error((AFTER, HEADER), 1, 0) is not None
    assert window_error((make_header(parent="", view=3, op=1, client=1, request=1, commit=0, body=b""),), 1, 2)
