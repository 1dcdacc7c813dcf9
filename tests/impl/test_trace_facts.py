"""What the trace shows for the audit: replies, repaired bodies, what moved a replica, what is not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.impl.link import Link, is_append
from viewproof.impl.interface.effects import AppendPrepares, Emit, WriteSuperblock
from viewproof.impl.interface.messages import DoViewChange, Prepare, Reply, StartView, StartViewChange, reply_checksum
from viewproof.impl.machine.state_machine import Get, Put
from viewproof.impl.replica.normal import stamped
from viewproof.impl.sim import simulate
from viewproof.impl.trace.events import TraceEvent, decode_line

PUT = Put(b"k", b"v")


def events_of(directory: Path) -> list[TraceEvent]:
    return [decode_line(line) for path in sorted(directory.glob("*.ndjson")) for line in path.read_bytes().splitlines()]


# m_reply


def test_every_replica_shows_the_checksum_of_the_reply_that_is_sent() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.request(0, 2, 1, Get(b"k"))
    link.tick(20)
    replies = {reply.op: reply_checksum(reply) for reply in link.replies}
    assert len(set(replies.values())) == 2
    for node in range(3):
        assert {event.m_op: event.m_reply for event in link.of(node, "execute")} == replies


def test_a_reply_sent_again_shows_the_checksum_of_its_bytes() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.request(0, 1, 1, PUT)
    first, again = link.replies
    shown = link.of(0, "resend_reply")[0].m_reply
    assert shown == reply_checksum(again)
    assert (first.op, first.body) == (again.op, again.body)


def test_the_checksum_of_a_reply_covers_every_number_and_the_result() -> None:
    known = Reply(client=1, session=2, request=3, op=4, body=b"r", view=5, replica=0)
    changes: tuple[dict[str, Any], ...] = (
        {"client": 9},
        {"session": 9},
        {"request": 9},
        {"op": 9},
        {"view": 9},
        {"body": b""},
    )
    found = {reply_checksum(known)} | {reply_checksum(replace(known, **change)) for change in changes}
    assert len(found) == 7
    assert {len(text) for text in found} == {32}


def test_replies_of_one_op_agree_in_runs_with_faults(tmp_path: Path) -> None:
    for seed in range(6):
        result = simulate(seed, requests=80, out=tmp_path)
        assert result.trace is not None
        replies: dict[int | None, set[str | None]] = {}
        for event in events_of(result.trace):
            if event.event in ("execute", "resend_reply") and event.m_client:
                replies.setdefault(event.m_op, set()).add(event.m_reply)
        assert all(len(found) == 1 and None not in found for found in replies.values())


# digest


def test_different_commit_mins_never_share_a_digest_and_equal_ones_do(tmp_path: Path) -> None:
    for seed in range(6):
        result = simulate(seed, requests=80, out=tmp_path)
        assert result.trace is not None
        pairs = {(event.commit_min, event.digest) for event in events_of(result.trace)}
        assert len({at for at, _ in pairs}) == len({digest for _, digest in pairs}) == len(pairs)
        assert (0, "0" * 32) in pairs


def test_operations_that_change_nothing_change_the_digest() -> None:
    link = Link(count=1)
    for number in range(1, 6):
        link.request(0, 1, number, Get(b"absent"))
    digests = [event.digest for event in link.of(0, "execute")]
    assert len({"0" * 32, *digests}) == 6


# repair


def installed_after_isolation() -> Link:
    """Node 2 misses three requests and a view change, then hears of view 1."""
    link = Link()
    link.lose = lambda source, to, message: 2 in (source, to)
    for number in range(1, 4):
        link.request(0, 1, number, PUT)
    link.crash(0)
    link.lose = lambda source, to, message: False
    return link


def test_each_fetched_body_is_an_event_before_the_log_is_installed() -> None:
    link = installed_after_isolation()
    link.change_view(1)
    names = link.names(2)
    assert names.count("repair") == 3
    installed = link.of(2, "on_start_view")[0]
    repairs = link.of(2, "repair")
    assert [event.m_op for event in repairs] == [1, 2, 3]
    assert tuple(event.m_checksum for event in repairs) == (installed.m_log or ())[-3:]
    assert all(event.seq < installed.seq for event in repairs)
    assert all(event.op == 0 and event.durable_log_view == 0 for event in repairs)


def test_repair_is_emitted_when_the_write_is_durable_and_before_the_superblock_is_written() -> None:
    link = installed_after_isolation()
    link.hold = lambda node, io: isinstance(io, AppendPrepares) and io.repair
    link.change_view(1)
    assert link.of(2, "repair") == []
    link.hold = lambda node, io: False
    link.run()
    kinds = [
        "repair" if isinstance(effect, Emit) else "superblock"
        for node, effect in link.order
        if node == 2
        and (
            (isinstance(effect, Emit) and effect.event.event == "repair")
            or (isinstance(effect, WriteSuperblock) and effect.superblock.log_view == 1)
        )
    ]
    assert kinds == ["repair", "repair", "repair", "superblock"]


def known_not_durable() -> Link:
    """Node 2 knows three prepares of view 0; the write of the first is in flight, the others wait for it."""
    link = Link()
    link.hold = lambda node, io: node == 2 and is_append(node, io)
    for client in range(1, 4):
        link.request(0, client, 1, PUT)
    assert (link[2].state.op, link[2].state.durable_op) == (3, 0)
    link.crash(0)
    return link


def test_a_log_known_but_not_durable_is_appended_or_repaired_before_it_is_installed() -> None:
    link = known_not_durable()
    # Node 2 hears nothing of the view change but its start_view, so that its journal is still behind then.
    link.lose = lambda source, to, message: to == 2 and not isinstance(message, StartView)
    link.deliver(1, StartViewChange(1, 2, 1, 1))
    link.run()
    chain = [prepare.header for prepare in link[1].state.log]
    link.deliver(2, StartView(1, 3, 0, tuple(chain), 1, link[1].state.clock, 1))
    link.run()
    assert link.of(2, "on_start_view") == []
    link.hold = lambda node, io: False
    link.run()
    names = link.names(2)
    before = names[: names.index("on_start_view")]
    appended = [event.m_op or 0 for event in link.of(2, "append")]
    repaired = [event.m_op for event in link.of(2, "repair")]
    assert before.count("append") + before.count("repair") >= 2
    assert set(range(1, max(appended) + 1)) | set(repaired) == {1, 2, 3}


# start_view_change


def test_a_timeout_names_no_message() -> None:
    link = Link()
    link.change_view(1)
    event = link.of(1, "start_view_change")[0]
    assert (event.m_from, event.m_seq) == (None, None)


def test_a_start_view_change_names_the_one_that_moved_the_replica() -> None:
    link = Link()
    link.change_view(1)
    cause = link.of(1, "start_view_change")[0]
    moved = link.of(2, "start_view_change")[0]
    assert (moved.m_from, moved.m_seq, moved.m_view) == (1, cause.seq, cause.m_view)
    assert moved.clock > cause.clock


def test_a_start_view_change_names_the_do_view_change_that_moved_the_replica() -> None:
    link = Link()
    link.lose = lambda source, to, message: to == 1 and not isinstance(message, DoViewChange)
    link.change_view(2)
    cause = next(event for event in link.events if event.event == "do_view_change" and event.node != 1)
    moved = link.of(1, "start_view_change")[0]
    assert (moved.m_from, moved.m_seq) == (cause.node, cause.seq)


# What is not known


def test_a_prepare_of_which_the_sender_knows_no_event_has_no_m_seq() -> None:
    link = Link()
    link.lose = lambda source, to, message: to == 2
    link.request(0, 1, 1, PUT)
    known = link[0].state.log[1]
    link.deliver(2, Prepare(known.header, known.body, 0, known.clock))
    event = link.of(2, "on_prepare")[0]
    assert (event.m_from, event.m_seq) == (0, None)


def test_a_recovered_prepare_sent_again_names_its_sender() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    sent = link[0].state.log[1]
    assert stamped(sent, 0, 1) is sent
    recovered = stamped(Prepare(sent.header, sent.body), 1, 9)
    assert (recovered.replica, recovered.seq, recovered.header) == (1, 0, sent.header)
