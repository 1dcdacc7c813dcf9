"""View changes, state transfer and restarts of the replica: claims on what is durable, offered, adopted and kept."""

from __future__ import annotations

from tests.impl.link import Link, is_append, is_superblock
from viewproof.impl.interface.durable import Quorums, SuperblockState
from viewproof.impl.interface.effects import AppendPrepares, WriteSuperblock
from viewproof.impl.interface.messages import (
    Commit,
    DoViewChange,
    Prepare,
    PrepareOk,
    RequestDoViewChange,
    RequestPrepare,
    RequestStartView,
    StartView,
    StartViewChange,
)
from viewproof.impl.machine.state_machine import Get, Put, Value, decode_result

PUT = Put(b"k", b"v")


def without(node: int):  # type: ignore[no-untyped-def]
    """A loss filter that isolates a replica."""
    return lambda source, to, message: node in (source, to)


def test_a_view_change_keeps_every_committed_op_and_its_name() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    name = link[0].state.log[1].header
    link.crash(0)
    link.change_view(1)
    assert (link[1].state.status, link[1].state.view, link[1].state.log_view) == ("normal", 1, 1)
    assert link[2].state.view == 1
    assert link[1].state.log[1].header == name
    assert name.view == 0
    link.request(1, 1, 2, Get(b"k"))
    assert decode_result(link.replies[-1].body) == Value(b"v")


def test_no_start_view_change_is_sent_before_the_view_is_durable() -> None:
    link = Link()
    link.hold = is_superblock
    link.change_view(1)
    assert link.messages(StartViewChange) == []
    assert link[1].state.view == 0
    assert link.of(1, "start_view_change") == []
    link.hold = lambda node, io: False
    link.run()
    assert link.messages(StartViewChange, 1) != []
    assert link.of(1, "start_view_change")[0].durable_view == 1


def test_protocol_messages_are_ignored_while_a_superblock_write_is_pending() -> None:
    link = Link()
    link.hold = is_superblock
    link.change_view(1)
    link.deliver(1, Commit(0, 1, 0))
    assert link[1].state.commit_max == 0
    assert link[1].out.ignored == {"any: a superblock write is pending": 1}


def test_no_start_view_is_sent_before_log_and_log_view_are_durable() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.crash(0)
    link.hold = lambda node, io: isinstance(io, WriteSuperblock) and io.superblock.log_view == 1
    link.change_view(1)
    assert link.messages(StartView) == []
    link.hold = lambda node, io: False
    link.run()
    assert link.of(1, "start_view")[0].durable_log_view == 1


def test_a_do_view_change_is_sent_once_per_view_and_repeated_with_the_same_content() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.crash(0)
    link.lose = lambda source, to, message: isinstance(message, DoViewChange)
    link.change_view(1)
    link.tick(25, 2)
    offers = link.messages(DoViewChange, 2)
    assert len(offers) > 1
    assert len(set(offers)) == 1
    assert len(link.of(2, "do_view_change")) == 1


def test_a_replica_restarted_in_a_view_change_offers_nothing_in_that_view() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.crash(0)
    link.lose = lambda source, to, message: isinstance(message, DoViewChange)
    link.change_view(1)
    link.crash(2)
    link.boot(2)
    before = len(link.messages(DoViewChange, 2))
    link.deliver(2, StartViewChange(1, 1))
    link.tick(20, 2)
    assert (link[2].state.view, link[2].state.status) == (1, "view_change")
    assert len(link.messages(DoViewChange, 2)) == before
    link.lose = lambda source, to, message: False
    link.change_view(2)
    assert link[2].state.view == 2
    assert link[2].state.status == "normal"


def test_a_restarted_primary_never_prepares_in_its_view_again() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.crash(0)
    link.boot(0)
    assert link.events[-1].event == "restart"
    assert (link[0].state.status, link[0].state.view, link[0].state.op, link[0].state.commit_min) == (
        "view_change",
        0,
        1,
        0,
    )
    link.request(0, 1, 2, PUT)
    assert link[0].state.op == 1
    link.change_view(0)
    assert link[0].state.view == 1
    assert link[1].state.status == "normal"


def test_a_primary_that_crashed_before_its_first_append_does_not_prepare_in_view_0_again() -> None:
    link = Link()
    link.hold = lambda node, io: node == 0 and is_append(node, io)
    link.request(0, 1, 1, PUT)
    link.crash(0)
    link.boot(0)
    assert link[1].state.op == 1
    assert (link[0].state.status, link[0].state.op) == ("view_change", 0)


def test_a_restarted_backup_is_normal_at_once_and_executes_again_only_what_is_committed() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.tick(10, 0)
    link.lose = without(1)
    link.request(0, 1, 2, PUT)
    link.crash(1)
    link.boot(1)
    assert (link[1].state.status, link[1].state.op, link[1].state.commit_min, link[1].state.commit_max) == (
        "normal",
        1,
        0,
        0,
    )
    link.lose = lambda source, to, message: False
    link.tick(40)
    assert link[1].state.commit_min == 2
    assert link[1].state.digest == link[0].state.digest


def test_of_a_torn_append_the_log_keeps_the_whole_records() -> None:
    link = Link()
    link.hold = lambda node, io: node == 1 and is_append(node, io)
    for client in (1, 2, 3):
        link.request(0, client, 1, PUT)
    link.crash(1)
    link.boot(1)
    assert link[1].state.op == 0
    link.hold = lambda node, io: False
    link.tick(40)
    assert link[1].state.commit_min == 3


def test_the_log_of_the_largest_log_view_and_op_is_adopted_with_bodies_fetched() -> None:
    link = Link()
    link.lose = without(1)
    for number in (1, 2, 3):
        link.request(0, 1, number, PUT)
    link.lose = lambda source, to, message: False
    link.crash(0)
    link.change_view(1)
    start = link.of(1, "start_view")[0]
    assert (start.m_from, start.op, start.log_view, start.durable_log_view) == (2, 3, 1, 1)
    assert link.messages(RequestPrepare, 1) != []
    assert link[1].state.commit_min == 3
    repairs = [io for node, io in link.writes if node == 1 and isinstance(io, AppendPrepares) and io.repair]
    assert [prepare.header.op for io in repairs for prepare in io.prepares] == [1, 2, 3]


def test_an_uncommitted_op_that_nobody_else_has_is_replaced_in_one_step() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.lose = without(0)
    link.request(0, 2, 1, Put(b"lost", b"x"))
    lost = link[0].state.log[2].header.checksum
    link.change_view(1)
    link.request(1, 3, 1, Put(b"new", b"y"))
    link.lose = lambda source, to, message: False
    link.tick(30)
    assert (link[0].state.status, link[0].state.view, link[0].state.log_view) == ("normal", 1, 1)
    assert link[0].state.log[2].header.checksum == link[1].state.log[2].header.checksum != lost
    assert link[0].state.digest == link[1].state.digest


def test_a_crash_before_the_superblock_write_of_a_start_view_leaves_the_old_log() -> None:
    link = Link()
    link.lose = without(0)
    link.crash(0)
    link.boot(0)
    link.change_view(1)
    assert link[2].state.view == 1
    link.crash(2)
    link.boot(2)
    link.request(1, 1, 1, PUT)
    link.hold = lambda node, io: node == 0 and is_superblock(node, io)
    link.lose = lambda source, to, message: isinstance(message, Prepare) and to == 0
    link.tick(12, 1)
    assert [io.repair for node, io in link.writes if node == 0 and isinstance(io, AppendPrepares)] == [True]
    assert (link[0].state.view, link[0].state.log_view, link[0].state.op) == (0, 0, 0)
    link.crash(0)
    link.boot(0)
    assert (link[0].state.view, link[0].state.log_view, link[0].state.op) == (0, 0, 0)


def test_bodies_of_a_log_not_yet_installed_do_not_extend_the_old_log() -> None:
    link = Link()
    link.lose = without(2)
    link.request(0, 1, 1, PUT)
    link.change_view(1)
    link.hold = lambda node, io: node == 2 and is_superblock(node, io)
    link.lose = lambda source, to, message: False
    link.tick(12, 1)
    records = link.storages[2].records
    assert [(record.prepare.header.view, record.repair) for record in records] == [(0, True)]
    link.crash(2)
    link.boot(2)
    assert (link[2].state.log_view, link[2].state.op) == (0, 0)


def test_a_replica_that_sees_a_later_view_keeps_its_own_until_the_log_is_durable() -> None:
    link = Link()
    link.lose = without(2)
    link.request(0, 1, 1, PUT)
    link.change_view(1)
    link.lose = lambda source, to, message: isinstance(message, StartView)
    link.tick(12, 1)
    assert link.messages(RequestStartView, 2) != []
    assert (link[2].state.view, link[2].state.log_view, link[2].state.status) == (0, 0, "normal")
    link.lose = lambda source, to, message: False
    link.tick(24, 1, 2)
    assert (link[2].state.view, link[2].state.log_view, link[2].state.commit_min) == (1, 1, 1)


def test_only_the_normal_primary_answers_request_start_view() -> None:
    link = Link()
    for node in (1, 2):
        link.deliver(node, RequestStartView(0, 1, 3 - node))
    assert link.messages(StartView) == []
    link.deliver(0, RequestStartView(0, 1, 2))
    assert len(link.messages(StartView)) == 1
    assert link.of(0, "send_start_view")[0].m_op == 0


def test_one_that_may_have_been_in_a_later_view_is_answered_by_a_view_change() -> None:
    link = Link()
    link.lose = lambda source, to, message: True
    link.deliver(0, RequestStartView(1, 1, 2))
    link.run()
    assert link.messages(StartView) == []
    assert (link[0].state.view, link[0].state.status) == (1, "view_change")


def test_one_that_was_in_a_much_later_view_moves_the_primary_to_the_next_one_only() -> None:
    link = Link()
    link.lose = lambda source, to, message: True
    link.deliver(0, RequestStartView(15, 1, 2))
    link.run()
    assert (link[0].state.view, link[0].state.status) == (1, "view_change")


def test_it_moves_the_primary_to_the_latest_view_that_another_has_voted_for() -> None:
    link = Link()
    link.lose = lambda source, to, message: True
    link.deliver(0, StartViewChange(5, 1, 0, 7))
    assert link[0].state.view == 0
    link.deliver(0, RequestStartView(15, 1, 2))
    link.run()
    moved = link.of(0, "start_view_change")[0]
    assert (moved.m_view, moved.m_from, moved.m_seq) == (5, 1, 7)


def test_a_window_that_does_not_connect_is_asked_for_again_longer() -> None:
    link = Link()
    link.lose = without(1)
    for number in range(1, 21):
        link.request(0, 1, number, PUT)
    link.tick(10, 0, 2)
    link.lose = lambda source, to, message: False
    link.crash(0)
    link.change_view(1)
    assert link.messages(RequestDoViewChange, 1) != []
    assert (link[1].state.status, link[1].state.commit_min) == ("normal", 20)
    assert len(link.of(1, "on_do_view_change")) == 1


def test_a_start_view_repeated_brings_a_lost_acknowledgement_again() -> None:
    link = Link()
    link.lose = without(1)
    link.request(0, 1, 1, PUT)
    link.lose = lambda source, to, message: isinstance(message, PrepareOk)
    link.crash(0)
    link.change_view(1)
    assert link[1].state.commit_max == 0
    link.lose = lambda source, to, message: False
    link.tick(15, 1)
    assert link[1].state.commit_min == 1
    assert len(link.of(2, "prepare_ok")) == 2


def test_a_primary_that_cannot_commit_steps_down() -> None:
    link = Link()
    link.lose = lambda source, to, message: to == 0
    link.request(0, 1, 1, PUT)
    link.tick(149, 0)
    assert link[0].state.view == 0
    link.tick(2, 0)
    assert link[0].state.view == 1


def test_a_view_change_with_one_replica_down_ends_without_its_primary() -> None:
    link = Link()
    link.crash(1)
    link.tick(400)
    link.request(0, 1, 1, PUT)
    assert link[0].state.commit_min == 1
    link.crash(0)
    link.boot(1)
    link.tick(600)
    assert {link[1].state.status, link[2].state.status} == {"normal"}
    assert link[1].state.view == link[2].state.view > 0


def test_recorded_uncommitted_numbers_lock_a_client_out() -> None:
    link = Link(faults=["table.record_uncommitted"])
    link.lose = without(0)
    link.request(0, 1, 1, PUT)
    link.change_view(1)
    link.lose = lambda source, to, message: False
    link.tick(30)
    assert link[0].state.op == 0
    link.change_view(2)
    link.change_view(0)
    assert (link[0].state.view, link[0].state.status) == (3, "normal")
    link.request(0, 1, 1, PUT)
    assert link.replies == []
    assert [event.m_outcome for event in link.of(0, "drop_request")] == ["stale"]


def test_the_first_event_of_a_node_is_start_whatever_dies_during_the_first_boot() -> None:
    fresh = Link()
    assert all(fresh.names(node) == ["start"] for node in range(3))
    superblock = fresh.storages[0].superblock
    assert (superblock.sequence, superblock.view) == (2, 0)
    never_marked = Link(1)
    never_marked.storages[0].superblock = SuperblockState(1, 0, 1, Quorums(1, 1))
    never_marked.crash(0)
    never_marked.boot(0)
    assert never_marked.names(0) == ["start", "restart"]
    assert never_marked[0].state.status == "view_change"


def test_a_restart_has_a_clock_above_the_message_that_the_durable_view_depends_on() -> None:
    link = Link()
    link.lose = without(2)
    link.request(0, 1, 1, PUT)
    link.change_view(1)
    link.hold = lambda node, io: node == 2 and is_superblock(node, io)
    link.lose = lambda source, to, message: False
    link.tick(12, 1)
    node, io = link.held[0]
    link.held.remove((node, io))
    link.storages[2].finish(io)
    link.crash(2)
    link.boot(2)
    assert (link[2].state.view, link[2].state.log_view) == (1, 1)
    assert link.events[-1].event == "restart"
    assert link.events[-1].clock > link.of(1, "start_view")[0].clock


def test_a_primary_restarted_in_a_view_change_does_not_start_that_view() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.lose = lambda source, to, message: isinstance(message, DoViewChange)
    link.change_view(1)
    link.crash(1)
    link.boot(1)
    link.lose = lambda source, to, message: False
    link.tick(15, 0, 2)
    assert (link[1].state.view, link[1].state.status) == (1, "view_change")
    assert link.of(1, "start_view") == []
