"""Segments of messages between replicas: only what is missing is fetched, one at a time, and verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.impl.power import FileStorage, PowerLink, isolate
from tests.impl.test_checkpoint import CONFIG as KEYS_CONFIG
from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.messages import Message, RequestSegment, SegmentChunk, SnapshotChunk, checksum_chunk
from viewproof.impl.machine.partition_log import SegmentLostError, SegmentRef
from viewproof.impl.machine.partitions import AppendMessages, Poll
from viewproof.impl.machine.snapshot import Snapshot
from viewproof.impl.machine.state_machine import encode_operation
from viewproof.impl.replica import Status
from viewproof.impl.storage.segments import segments_named

NAMESPACE = 9
CONFIG = replace(KEYS_CONFIG, plane=Plane.PARTITIONS, segment_bytes=200, snapshot_chunk_bytes=60)


class AppendLink(PowerLink):
    """Each request appends one message; those of client 2 poll the first nine."""

    def body(self, client: int, number: int) -> bytes:
        if client == 2:
            return encode_operation(Poll(NAMESPACE, 0, 9))
        return encode_operation(AppendMessages(NAMESPACE, (b"message %d" % number,)))


def with_messages(count: int) -> AppendLink:
    link = AppendLink(CONFIG)
    for _ in range(count):
        link.ask(1)
    link.settle()
    return link


def left_behind() -> AppendLink:
    """Replica 2 has the messages of 9 requests; the others have those of 20, drained."""
    link = with_messages(9)
    link.lose = isolate(2)
    for _ in range(11):
        link.ask(1)
    link.tick(4)
    return link


def reunite(link: AppendLink) -> None:
    link.lose = lambda source, to, message: False
    link.settle()


def chunks_of(link: AppendLink) -> list[SegmentChunk]:
    return [message for message in link.messages(SegmentChunk) if isinstance(message, SegmentChunk)]


def bytes_of(link: AppendLink, ref: SegmentRef) -> set[int]:
    """The offsets of all bytes of the segment that were sent."""
    chunks = [chunk for chunk in chunks_of(link) if chunk.ref == ref]
    return {at for chunk in chunks for at in range(chunk.offset, chunk.offset + len(chunk.data))}


def snapshot_of(link: AppendLink, node: int) -> Snapshot:
    snapshot = link[node].state.snapshot
    assert snapshot is not None
    return snapshot


def state_of(link: AppendLink, node: int) -> bytes:
    return link[node].state.state_machine.to_bytes()


def messages_of(link: AppendLink, node: int) -> tuple[bytes, ...]:
    return link[node].state.state_machine.partitions.read(NAMESPACE, 0, 99)


def test_memory_holds_the_last_segment_and_what_is_above_the_checkpoint() -> None:
    link = with_messages(21)
    for node in range(3):
        log = link[node].state.state_machine.partitions.logs[NAMESPACE]
        assert len(log.sealed) > 3
        assert next(segment.base for segment in log.segments) == segments_named(snapshot_of(link, node).data)[-1].base
        assert messages_of(link, node) == tuple(b"message %d" % number for number in range(1, 22))


def test_a_replica_left_behind_fetches_what_its_segments_lack() -> None:
    link = left_behind()
    late = link[2].state.state_machine.partitions.logs[NAMESPACE]
    held = {segment.base: len(segment.content) for segment in late.segments}
    sealed = set(late.sealed)
    assert held
    assert sealed
    snapshot = snapshot_of(link, 0)
    reunite(link)
    assert link[2].state.snapshot == snapshot
    for ref in segments_named(snapshot.data):
        own = ref.size if ref in sealed else min(ref.size, held.get(ref.base, 0))
        assert bytes_of(link, ref) == set(range(own, ref.size)), ref
    assert state_of(link, 2) == state_of(link, 0)
    assert messages_of(link, 2) == messages_of(link, 0)


def test_it_goes_on_where_it_was_when_chunks_are_lost() -> None:
    link = left_behind()
    seen: list[tuple[int, int]] = []

    def lose(source: int, to: int, message: Message) -> bool:
        if isinstance(message, SegmentChunk):
            seen.append((message.ref.base, message.offset))
        return isinstance(message, SegmentChunk | SnapshotChunk) and len(seen) % 3 == 1

    link.lose = lose
    link.settle()
    assert sorted(seen) == seen, "nothing is fetched again but what was lost"
    assert all(seen.count(each) <= 2 for each in seen)


def test_a_transfer_that_ends_half_way_goes_on_with_the_segments_that_came() -> None:
    link = left_behind()
    named = segments_named(snapshot_of(link, 0).data)
    link.lose = lambda source, to, message: isinstance(message, SegmentChunk) and message.ref == named[-1]
    link.tick(60)
    came = {ref for ref in named if bytes_of(link, ref)} - {named[-1]}
    assert came
    link.stop(2)
    link.start(2)
    link.sent.clear()
    reunite(link)
    assert not {chunk.ref for chunk in chunks_of(link)} & came
    assert messages_of(link, 2) == messages_of(link, 0)


def test_own_messages_that_are_not_those_of_the_others_are_fetched() -> None:
    link = left_behind()
    segment = link[2].state.state_machine.partitions.logs[NAMESPACE].segments[-1]
    segment.content[-1] ^= 1
    ref = next(ref for ref in segments_named(snapshot_of(link, 0).data) if ref.base == segment.base)
    reunite(link)
    assert link[2].state.snapshot == link[0].state.snapshot
    assert bytes_of(link, ref) == set(range(ref.size))


def test_a_source_with_a_bad_segment_is_left_for_another() -> None:
    """Its chunks are as they should be, but together they are not the segment."""
    link = left_behind()
    last = segments_named(snapshot_of(link, 0).data)[-1]

    def bad(message: RequestSegment) -> None:
        right = type(link[0].segments)._content(link[0].segments, message.ref)
        data = bytes(byte ^ 1 for byte in right[message.offset : message.offset + 60])
        fields = (message.ref, message.offset, data, checksum_chunk(0, message.offset, data), 0)
        link[0].out.send(message.replica, SegmentChunk(*fields))

    link[0]._handlers[RequestSegment] = bad
    reunite(link)
    assert link[2].state.snapshot == link[0].state.snapshot
    assert "segment_chunk: the segment is bad" in link[2].out.ignored
    assert bytes_of(link, last) == set(range(last.size))


@pytest.mark.parametrize("chunk", ["another segment", "not the next", "too much", "empty", "wrong checksum"])
def test_a_chunk_that_is_not_the_one_asked_for_is_ignored(chunk: str) -> None:
    link = left_behind()
    named = segments_named(snapshot_of(link, 0).data)
    link.lose = lambda source, to, message: isinstance(message, SegmentChunk)
    link.tick(60)
    fetch = link[2].segments.fetch
    assert fetch is not None
    at, ref = len(fetch.received), fetch.ref
    data = {"too much": bytes(ref.size), "empty": b""}.get(chunk, b"x")
    checksum = "0" * 32 if chunk == "wrong checksum" else checksum_chunk(0, at, data)
    other = next(each for each in named if each != ref)
    link.deliver(
        2, SegmentChunk(other if chunk == "another segment" else ref, at + (chunk == "not the next"), data, checksum, 0)
    )
    assert len(fetch.received) == at
    assert any(reason.startswith("segment_chunk: not") for reason in link[2].out.ignored)


def segment_path(storage: FileStorage, number: int) -> str:
    return sorted(path for path in storage.files.files if path.endswith(".log"))[number]


def lose_manifest(storage: FileStorage) -> None:
    for path in [path for path in storage.files.files if "snapshot-" in path]:
        del storage.files.files[path]


def cut_second(storage: FileStorage) -> None:
    file = storage.files.files[segment_path(storage, 1)]
    file.truncate(file.size() - 3)


def flip(storage: FileStorage, number: int) -> None:
    file = storage.files.files[segment_path(storage, number)]
    file.write_at(file.size() - 3, bytes([file.read_at(file.size() - 3, 1)[0] ^ 1]))


def flip_last(storage: FileStorage) -> None:
    flip(storage, -1)


def lose_second(storage: FileStorage) -> None:
    del storage.files.files[segment_path(storage, 1)]


@pytest.mark.parametrize(
    ("damage", "fetched"),
    [(lose_manifest, ()), (cut_second, (1,)), (flip_last, (-1,)), (lose_second, (1,))],
)
def test_a_replica_whose_files_are_damaged_fetches_only_what_is_lost(
    damage: Callable[[FileStorage], None], fetched: tuple[int, ...]
) -> None:
    link = with_messages(12)
    snapshot = snapshot_of(link, 2)
    refs = segments_named(snapshot.data)
    assert len(refs) > 2
    link.stop(2)
    damage(link.file_storages[2])
    link.start(2)
    assert link[2].state.status is Status.RECOVERING
    link.settle()
    assert {chunk.ref for chunk in chunks_of(link)} == {refs[number] for number in fetched}
    link.stop(2)
    link.start(2)
    assert link[2].state.snapshot == snapshot
    assert messages_of(link, 2) == messages_of(link, 0)


def test_two_replicas_that_lack_different_segments_help_each_other() -> None:
    """The third is down; neither has booted."""
    link = with_messages(12)
    for node in range(3):
        link.stop(node)
    cut_second(link.file_storages[1])
    del link.file_storages[2].files.files[segment_path(link.file_storages[2], 0)]
    for node in (1, 2):
        link.start(node)
    link.tick(200)
    assert {link[node].state.status for node in (1, 2)} == {Status.NORMAL}
    assert messages_of(link, 1) == messages_of(link, 2)


@pytest.mark.parametrize("damage", [lambda storage: flip(storage, 0), lambda storage: flip(storage, 1), cut_second])
@pytest.mark.parametrize("node", [0, 1])
def test_a_poll_of_a_segment_that_went_bad_waits_until_it_is_here_again(
    damage: Callable[[FileStorage], None], node: int
) -> None:
    """At the primary and at a backup, which execute it alike; nothing is answered from what is wrong."""
    link = with_messages(14)
    damage(link.file_storages[node])
    link.ask(2)
    link.settle()
    assert len({chunk.ref for chunk in chunks_of(link)}) == 1
    assert [note for note in link[node].segments.notes if "fetched from the other replicas" in note]
    assert not link[node].segments.lost
    assert len({state_of(link, each) for each in range(3)}) == 1
    storage = link.file_storages[node]
    for ref in segments_named(snapshot_of(link, node).data):
        assert len(storage.segments.read(ref)) == ref.size


def test_a_segment_that_vanished_is_fetched_before_the_next_checkpoint_and_it_is_taken() -> None:
    link = with_messages(14)
    lose_second(link.file_storages[2])
    before = snapshot_of(link, 2).op
    for _ in range(8):
        link.ask(1)
    link.settle()
    assert snapshot_of(link, 2).op > before
    assert snapshot_of(link, 2) == snapshot_of(link, 0)
    assert len({chunk.ref for chunk in chunks_of(link)}) == 1


def test_who_is_asked_for_a_segment_that_went_bad_here_fetches_it_too() -> None:
    link = left_behind()
    flip(link.file_storages[0], 2)
    reunite(link)
    link.tick(60)
    assert messages_of(link, 2) == messages_of(link, 1)
    assert not link[0].segments.lost
    assert messages_of(link, 0) == messages_of(link, 1)


def test_without_others_it_is_an_error_of_the_process() -> None:
    link = with_messages(14)
    storage = link.file_storages[0]
    flip(storage, 0)
    link[0].state.others = ()
    with pytest.raises(SegmentLostError, match="its checksum is not the one in the snapshot"):
        link[0].segments.on_lost(
            SegmentLostError(
                link[0].state.state_machine.partitions.logs[NAMESPACE].sealed[:1],
                "its checksum is not the one in the snapshot",
            )
        )
