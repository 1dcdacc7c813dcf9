"""Log windows, checkpoints, restarts from them, state transfer, and writes that fail, on a link under control."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.impl.link import Link
from viewproof.impl.interface.checks import InvariantError
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.interface.effects import AppendPrepares, DrainJournal, IoEffect, WriteSnapshot, WriteSuperblock
from viewproof.impl.interface.messages import (
    CHECKSUM_NONE,
    Message,
    Prepare,
    PreVote,
    Request,
    RequestSnapshot,
    SnapshotChunk,
    StartView,
    checksum_chunk,
    make_header,
)
from viewproof.impl.machine.snapshot import Snapshot, SnapshotError, checksum_snapshot, decode_snapshot
from viewproof.impl.machine.state_machine import Append, encode_operation
from viewproof.impl.replica import Replica, ReplicaConfig, Status
from viewproof.impl.replica.log import Log
from viewproof.impl.replica.state import LONG_AGO
from viewproof.impl.sim.storage import SimStorage

CONFIG = ReplicaConfig(
    run="test", checkpoint_interval=4, journal_slots=12, pipeline_max=4, snapshot_chunk_bytes=50, write_retry_ticks=3
)


def entries(count: int, first: int = 1, parent: str = CHECKSUM_NONE) -> list[Prepare]:
    made: list[Prepare] = []
    for op in range(first, first + count):
        header = make_header(parent=parent, view=0, op=op, client=1, request=op, commit=0, body=b"%d" % op)
        made.append(Prepare(header, b"%d" % op))
        parent = header.checksum
    return made


def requests(link: Link, to: int, first: int, last: int) -> None:
    for number in range(first, last + 1):
        link.request(to, 1, number, Append(b"k", b"%d;" % number))


def disk_of(link: Link, node: int) -> SimStorage:
    disk = link.storages[node]
    assert isinstance(disk, SimStorage)
    return disk


def a_request(number: int, client: int = 1) -> Request:
    return Request(client, number, encode_operation(Append(b"k", b"%d;" % number)))


# The log


@given(count=st.integers(1, 12), base=st.integers(0, 12), op=st.integers(-1, 14), truncated=st.integers(0, 12))
def test_a_log_above_a_base_is_the_end_of_the_whole_log(count: int, base: int, op: int, truncated: int) -> None:
    whole = entries(count)
    base = min(base, count)
    truncated = max(base, min(truncated, count))
    log = Log(whole)
    log.drain(base)
    assert (log.base, log.op, len(log)) == (base, count, count - base)
    log.truncate(truncated)
    assert log.op == truncated
    assert log.head == (whole[truncated - 1].header.checksum if truncated else CHECKSUM_NONE)
    inside = base < op <= truncated
    assert log.get(op) == (whole[op - 1] if inside else None)
    known = whole[op - 1].header.checksum if 1 <= op <= count and base <= op <= truncated else None
    assert log.checksum(op) == (CHECKSUM_NONE if op == base == 0 else known)
    if not inside:
        with pytest.raises(InvariantError, match="is not in the log"):
            log[op]
    window = log.headers(op)
    expected = whole[max(base + 1, min(op, truncated)) - 1 : truncated] or whole[:truncated][-1:]
    assert list(window) == [prepare.header for prepare in expected]


def test_a_log_takes_only_the_next_op() -> None:
    log = Log(entries(3))
    with pytest.raises(InvariantError, match="op 6 appended after op 3"):
        log.append(entries(6)[5])
    with pytest.raises(InvariantError, match="ends elsewhere"):
        Log(entries(3)[1:])


# Checkpoints


def test_every_replica_takes_the_same_snapshots_and_drains() -> None:
    link = Link(config=CONFIG)
    requests(link, 0, 1, 9)
    link.tick(20)
    for node in range(3):
        replica = link[node]
        assert (replica.state.checkpoint, replica.state.log.base, replica.state.commit_min) == (8, 8, 9)
        assert [event.m_op for event in link.of(node, "checkpoint")] == [4, 8]
        assert all(event.commit_min == event.m_op == event.checkpoint for event in link.of(node, "checkpoint"))
        assert {record.prepare.header.op for record in disk_of(link, node).records} == {9}
        assert replica.state.snapshot is not None
        assert len(replica.journal.held) == 1
    snapshots = {link[node].state.snapshot for node in range(3)}
    assert len(snapshots) == 1


def test_a_checkpoint_goes_in_order_and_nothing_is_executed_meanwhile() -> None:
    link = Link(config=CONFIG)
    kinds: tuple[type, ...] = (WriteSnapshot,)
    link.hold = lambda node, io: node == 0 and isinstance(io, kinds)
    requests(link, 0, 1, 4)
    link.deliver(0, a_request(5))
    link.run()
    primary = link[0]
    assert (primary.state.commit_min, primary.state.commit_max, primary.state.checkpoint) == (4, 5, 0)
    assert link.replies[-1].request == 4
    steps: list[type] = []
    while link.held:
        node, io = link.held[0]
        steps.append(type(io))
        kinds = (WriteSnapshot, WriteSuperblock, DrainJournal)
        link.finish(node, io)
        link.run()
    assert steps == [WriteSnapshot, WriteSuperblock, DrainJournal]
    assert (primary.state.commit_min, primary.state.checkpoint, link.replies[-1].request) == (5, 4, 5)


def test_messages_are_handled_while_a_checkpoint_is_referred_to_and_a_view_change_waits_for_it() -> None:
    link = Link(config=CONFIG)
    link.hold = lambda node, io: node == 1 and isinstance(io, WriteSuperblock)
    requests(link, 0, 1, 5)
    link.tick(20)
    backup = link[1]
    assert backup.writes.checkpoint_writing is not None
    assert (backup.writes.superblock_writing, backup.state.op, backup.state.commit_min) == (None, 5, 4)
    backup.state.timers.heard_at = LONG_AGO
    link.handle(1, backup.on_message(PreVote(1, 2)))
    link.handle(1, backup.on_tick())
    assert backup.writes.superblock_writing is not None
    assert [io for node, io in link.held if node == 1] == [WriteSuperblock(backup.writes.checkpoint_writing)]
    link.hold = lambda node, io: False
    link.run()
    assert backup.state.superblock.checkpoint == 4
    assert backup.state.superblock.view >= 1
    assert backup.state.superblock.head_op >= 4


def test_a_restart_begins_at_the_checkpoint_and_executes_only_what_is_committed() -> None:
    link = Link(config=CONFIG)
    requests(link, 0, 1, 4)
    link.lose = lambda source, to, message: type(message).__name__ in ("PrepareOk", "Commit")
    requests(link, 0, 5, 5)
    link.request(0, 2, 1, Append(b"k", b"x"))
    before = link[2].state.state_machine.store
    link.crash(2)
    link.boot(2)
    restarted = link[2]
    event = link.of(2, "restart")[-1]
    assert (event.commit_min, event.commit_max, event.checkpoint, event.op) == (4, 4, 4, 6)
    assert restarted.state.state_machine.store == {b"k": b"1;2;3;4;"} == before
    assert restarted.state.client_table.to_bytes() == link[1].state.client_table.to_bytes()
    link.lose = lambda source, to, message: False
    link.tick(30)
    assert {link[node].state.commit_min for node in range(3)} == {6}
    assert {link[node].state.digest for node in range(3)} == {link[0].state.digest}


def test_a_snapshot_that_is_not_the_superblocks_is_refused() -> None:
    link = Link(config=CONFIG)
    requests(link, 0, 1, 4)
    durable = link.storages[0].recover()
    for snapshot in (durable.snapshot[:-1], durable.snapshot[:-1] + b"?"):
        with pytest.raises(SnapshotError, match="snapshot of op 4: checksum"):
            Replica(replace(durable, snapshot=snapshot), CONFIG)
    with pytest.raises(SnapshotError, match="of cluster 1, expected 2"):
        Replica(replace(durable, superblock=replace(durable.superblock, cluster=2)), CONFIG)
    for data, reason in ((b"", "too few"), (b"x" * 30, "magic"), (durable.snapshot[:30], "does not decode")):
        with pytest.raises(SnapshotError, match=reason):
            decode_snapshot(data)


def test_a_lost_snapshot_is_fetched_before_the_replica_boots() -> None:
    link = Link(config=CONFIG)
    requests(link, 0, 1, 6)
    link.tick(20)
    right, op = link[2].state.snapshot, link[2].state.op
    disk = disk_of(link, 2)
    link.crash(2)
    assert disk.damage_snapshot()
    lost: list[Message] = []
    link.lose = lambda source, to, message: isinstance(message, SnapshotChunk) and not lost and not lost.append(message)
    link.boot(2)
    replica = link[2]
    assert (replica.state.status, replica.state.commit_min, replica.snapshot_recovery.lost is None) == (
        Status.RECOVERING,
        0,
        False,
    )
    assert link.of(2, "restart") == []
    link.deliver(2, SnapshotChunk(4, "ab", 0, b"x", checksum_chunk(4, 0, b"x"), 0))
    link.deliver(2, a_request(7))
    link.tick(40)
    assert len(lost) == 1
    assert (replica.state.status, replica.state.op, replica.state.checkpoint, replica.state.snapshot) == (
        Status.NORMAL,
        op,
        4,
        right,
    )
    assert [event.commit_min for event in link.of(2, "restart")] == [4]
    assert (replica.state.commit_min, replica.state.digest) == (6, link[0].state.digest)
    assert disk.recover().snapshot == (b"" if right is None else right.data)


def test_a_lost_snapshot_that_comes_bad_is_fetched_anew() -> None:
    link = Link(config=CONFIG)
    requests(link, 0, 1, 4)
    link.tick(20)
    right = link[0].state.snapshot
    assert right is not None
    link[0].state.snapshot = Snapshot(right.op, right.checksum, right.data[:-1] + b"?")
    link.crash(2)
    disk_of(link, 2).damage_snapshot()
    link.boot(2)
    link.run()
    assert link[2].state.status is Status.RECOVERING
    link.tick(80)
    assert (link[2].state.status, link[2].state.snapshot) == (Status.NORMAL, right)


def test_a_journal_that_cannot_hold_an_interval_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="journal_slots 10 must hold"):
        ReplicaConfig(checkpoint_interval=8, pipeline_max=4, journal_slots=10)


def test_a_full_journal_takes_nothing_more_until_it_is_drained() -> None:
    link = Link(config=replace(CONFIG, journal_slots=8))
    link.hold = lambda node, io: node != 2 and isinstance(io, WriteSnapshot)
    for number in range(1, 12):
        link.request(0, number, 1, Append(b"k", b"%d;" % number))
    primary = link[0]
    assert (primary.state.op, primary.state.commit_max, primary.state.commit_min) == (8, 8, 4)
    assert primary.journal.full
    link.hold = lambda node, io: False
    link.run()
    for number in range(1, 12):
        link.request(0, number, 1, Append(b"k", b"%d;" % number))
    assert (primary.state.op, primary.state.checkpoint) == (11, 8)


# State transfer


def left_behind(config: ReplicaConfig = CONFIG) -> Link:
    """A cluster whose replica 2 missed ops 3..10: the others have drained up to 8."""
    link = Link(config=config)
    requests(link, 0, 1, 2)
    link.lose = lambda source, to, message: 2 in (source, to)
    requests(link, 0, 3, 10)
    assert link[0].state.log.base == link[1].state.log.base == 8
    return link


def test_a_replica_left_behind_in_its_view_gets_the_snapshot() -> None:
    link = left_behind()
    link.lose = lambda source, to, message: False
    link.tick(40)
    late = link[2]
    assert (late.state.view, late.state.commit_min, late.state.checkpoint, late.state.log.base) == (0, 10, 8, 8)
    event = link.of(2, "on_start_view")[-1]
    assert (event.m_checkpoint, event.commit_min, event.checkpoint, event.status) == (8, 8, 8, "normal")
    assert late.state.digest == link[0].state.digest
    assert late.state.snapshot == link[0].state.snapshot
    assert len(link.messages(SnapshotChunk, 0)) > 2
    link.crash(2)
    link.boot(2)
    assert link[2].state.commit_min == 8


def test_a_transfer_survives_lost_and_damaged_chunks_and_resumes() -> None:
    link = left_behind()
    seen: list[int] = []

    def lose(source: int, to: int, message: Message) -> bool:
        if not isinstance(message, SnapshotChunk):
            return False
        seen.append(message.offset)
        return len(seen) in (2, 3)

    link.lose = lose
    for _ in range(60):
        wanted = None if link[2].state.target is None else link[2].state.target.snapshot
        if wanted is not None and wanted.received:
            break
        link.tick(1)
    assert wanted is not None
    bad = b"?" * 10
    chunk = SnapshotChunk(wanted.op, wanted.checksum, len(wanted.received), bad, "00", 0)
    before = len(wanted.received)
    for message in (
        chunk,
        SnapshotChunk(wanted.op, wanted.checksum, 0, bad, checksum_chunk(wanted.op, 0, bad), 0),
        SnapshotChunk(wanted.op, "ab", before, bad, checksum_chunk(wanted.op, before, bad), 0),
    ):
        link.deliver(2, message)
        assert len(wanted.received) == before
    link.tick(60)
    assert link[2].state.commit_min == 10
    assert seen.count(0) == 1
    assert sorted(set(seen)) == list(range(0, wanted.size, CONFIG.snapshot_chunk_bytes))


def test_a_snapshot_that_is_bad_as_a_whole_is_fetched_again() -> None:
    link = left_behind()
    right = link[0].state.snapshot
    assert right is not None
    wrong = Snapshot(right.op, right.checksum, right.data[:-1] + b"?")
    link[0].state.snapshot = wrong
    link.lose = lambda source, to, message: False
    link.tick(60)
    assert link[2].state.commit_min == 10
    assert any("checksum" in error for error in link[2].out.io_errors)
    assert link[2].out.ignored["snapshot_chunk: the snapshot is bad"] == 1
    assert link[2].state.snapshot == right


def test_a_snapshot_that_is_not_here_is_not_sent() -> None:
    link = left_behind()
    snapshot = link[0].state.snapshot
    assert snapshot is not None
    before = len(link.messages(SnapshotChunk))
    for op, checksum, offset in ((8, "ab", 0), (12, snapshot.checksum, 0), (8, snapshot.checksum, len(snapshot.data))):
        link.deliver(0, RequestSnapshot(op, checksum, offset, 1))
    assert len(link.messages(SnapshotChunk)) == before
    assert checksum_snapshot(snapshot.data) == snapshot.checksum


def test_a_stale_suffix_does_not_survive_a_snapshot() -> None:
    link = Link(config=CONFIG)
    requests(link, 0, 1, 2)
    link.lose = lambda source, to, message: 0 in (source, to)
    for client in (2, 3, 4):
        link.deliver(0, a_request(1, client))
        link.run()
    assert link[0].state.durable_op == 5
    stale = link[0].state.head
    link.change_view(1)
    requests(link, 1, 3, 10)
    link.lose = lambda source, to, message: False
    link.tick(80)
    old = link[0]
    assert (old.state.status, old.state.view, old.state.commit_min, old.state.checkpoint) == (Status.NORMAL, 1, 10, 8)
    assert link.of(0, "on_start_view")[-1].m_checkpoint == 8
    assert stale not in old.journal.held
    left = {record.prepare.header.checksum for record in disk_of(link, 0).records}
    assert left == {prepare.header.checksum for prepare in old.state.log}
    link.crash(0)
    link.boot(0)
    assert link[0].state.head == link[1].state.head


def test_windows_never_reach_below_the_base() -> None:
    link = left_behind()
    assert [header.op for header in link[0].state.log.headers(1)] == [9, 10]
    link[0].state.log.drain(10)
    assert [header.op for header in link[0].state.log.headers(1)] == [10]
    assert all(message.checkpoint < message.headers[0].op for message in starts(link) if message.headers)


def starts(link: Link) -> list[StartView]:
    return [message for message in link.messages(StartView) if isinstance(message, StartView)]


# Writes that fail


def fail(link: Link, node: int, kind: type) -> None:
    """The write of this kind that is held fails."""
    io = next(io for other, io in link.held if other == node and isinstance(io, kind))
    link.held.remove((node, io))
    link.storages[node].in_flight.remove(io)
    link.handle(node, link[node].on_io_failed(io, "disk full"))
    link.run()


def test_a_backup_whose_append_failed_forgets_the_entries_and_catches_up() -> None:
    link = Link(config=CONFIG)
    requests(link, 0, 1, 2)
    link.hold = lambda node, io: node == 2 and isinstance(io, AppendPrepares)
    requests(link, 0, 3, 3)
    head, acknowledged = link[2].state.log.checksum(2), len(link.of(2, "prepare_ok"))
    fail(link, 2, AppendPrepares)
    backup = link[2]
    event = link.of(2, "append_failed")[-1]
    assert (event.m_op, event.op, event.head) == (3, 2, head)
    assert (backup.state.op, backup.state.durable_op, backup.state.head, len(link.of(2, "prepare_ok"))) == (
        2,
        2,
        head,
        acknowledged,
    )
    requests(link, 0, 4, 4)
    assert backup.state.op == 2
    assert backup.out.ignored["prepare: the journal refuses"] >= 1
    link.hold = lambda node, io: False
    link.tick(40)
    assert (backup.state.op, backup.state.commit_min, backup.state.digest) == (4, 4, link[0].state.digest)


def test_a_primary_whose_append_failed_leaves_its_view_and_takes_nothing_new_for_a_while() -> None:
    link = Link(config=CONFIG)
    requests(link, 0, 1, 2)
    link.hold = lambda node, io: node == 0 and isinstance(io, AppendPrepares)
    link.lose = lambda source, to, message: isinstance(message, Prepare) and to == 2
    requests(link, 0, 3, 3)
    fail(link, 0, AppendPrepares)
    assert link.of(0, "append_failed")[-1].m_op == 3
    link.hold = lambda node, io: False
    link.lose = lambda source, to, message: False
    link.tick(40)
    assert {link[node].state.view for node in range(3)} == {1}
    names = link.names(0)
    assert names.index("start_view_change") == names.index("append_failed") + 1
    requests(link, 1, 3, 4)
    link.tick(20)
    assert {link[node].state.digest for node in range(3)} == {link[0].state.digest}
    assert link[0].state.state_machine.store == {b"k": b"1;2;3;4;"}


def test_a_single_replica_waits_for_space() -> None:
    link = Link(1, config=CONFIG)
    requests(link, 0, 1, 1)
    link.hold = lambda node, io: isinstance(io, AppendPrepares)
    link.request(0, 1, 2, Append(b"k", b"2;"))
    fail(link, 0, AppendPrepares)
    link.hold = lambda node, io: False
    link.run()
    replica = link[0]
    assert (replica.state.status, replica.state.view, replica.state.op) == (Status.NORMAL, 1, 1)
    link.request(0, 1, 2, Append(b"k", b"2;"))
    assert replica.state.op == 1
    assert replica.journal.refuses
    link.tick(CONFIG.write_retry_ticks)
    link.request(0, 1, 2, Append(b"k", b"2;"))
    assert replica.state.commit_min == 2


@pytest.mark.parametrize("kind", [WriteSnapshot, DrainJournal, WriteSuperblock])
def test_a_checkpoint_whose_write_failed_is_completed_later(kind: type[IoEffect]) -> None:
    link = Link(config=CONFIG)
    requests(link, 0, 1, 3)
    link.hold = lambda node, io: node == 0 and isinstance(io, kind)
    requests(link, 0, 4, 5)
    primary = link[0]
    assert primary.state.checkpoint == 0
    fail(link, 0, kind)
    assert (primary.state.checkpoint, primary.state.status, list(primary.out.io_errors)) == (
        0,
        Status.NORMAL,
        ["disk full"],
    )
    link.hold = lambda node, io: False
    link.tick(CONFIG.write_retry_ticks + 1)
    assert (primary.state.checkpoint, primary.state.commit_min, link.storages[0].recover().superblock.checkpoint) == (
        4,
        5,
        4,
    )


def test_an_installation_whose_bodies_could_not_be_written_goes_on_later() -> None:
    link = Link(config=CONFIG)
    requests(link, 0, 1, 2)
    link.lose = lambda source, to, message: 2 in (source, to)
    requests(link, 0, 3, 3)
    link.change_view(1)
    link.lose = lambda source, to, message: False
    link.hold = lambda node, io: node == 2 and isinstance(io, AppendPrepares) and io.repair
    for _ in range(60):
        if any(node == 2 for node, _ in link.held):
            break
        link.tick(1)
    fail(link, 2, AppendPrepares)
    assert link.of(2, "append_failed") == []
    assert link[2].state.op == 2
    link.hold = lambda node, io: False
    link.tick(40)
    assert (link[2].state.view, link[2].state.op, link[2].state.commit_min) == (link[1].state.view, 3, 3)
