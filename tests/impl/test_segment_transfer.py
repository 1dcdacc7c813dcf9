"""State transfer between replicas that have segments of messages: only what is missing is fetched, and verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.impl.power import FileStorage, PowerLink, isolate
from tests.impl.test_checkpoint import CONFIG as KEYS_CONFIG
from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.messages import Message, RequestSnapshot, SnapshotChunk
from viewproof.impl.machine.partition_log import Segment
from viewproof.impl.machine.partitions import AppendMessages
from viewproof.impl.machine.snapshot import Snapshot, SnapshotError, checksum_snapshot
from viewproof.impl.machine.snapshot_outline import Outline, Part, checksum_part, decode_outline, encode_outline
from viewproof.impl.machine.state_machine import encode_operation
from viewproof.impl.replica import Status
from viewproof.impl.replica.arrival import OUTLINE, Arrival

NAMESPACE = 9
CONFIG = replace(KEYS_CONFIG, plane=Plane.PARTITIONS, segment_bytes=200, snapshot_chunk_bytes=60)


class AppendLink(PowerLink):
    """Each request appends one message."""

    def body(self, client: int, number: int) -> bytes:
        return encode_operation(AppendMessages(NAMESPACE, (b"message %d" % number,)))


def left_behind() -> AppendLink:
    """Replica 2 has the messages of 6 requests; the others have those of 20, drained."""
    link = AppendLink(CONFIG)
    for _ in range(6):
        link.ask(1)
    link.settle()
    link.lose = isolate(2)
    for _ in range(14):
        link.ask(1)
    link.tick(4)
    return link


def bytes_of(link: AppendLink) -> set[int]:
    """The offsets of all bytes of the snapshot that were sent."""
    chunks = [message for message in link.messages(SnapshotChunk) if isinstance(message, SnapshotChunk)]
    return {at for chunk in chunks if chunk.offset >= 0 for at in range(chunk.offset, chunk.offset + len(chunk.data))}


def snapshot_of(link: AppendLink, node: int) -> Snapshot:
    snapshot = link[node].state.snapshot
    assert snapshot is not None
    return snapshot


def parts_of(snapshot: Snapshot) -> list[Part]:
    return decode_outline(encode_outline(snapshot.data)).parts


def test_a_replica_left_behind_fetches_what_its_segments_lack() -> None:
    link = left_behind()
    late = link[2].state.state_machine.partitions.logs[NAMESPACE]
    held = {segment.base: len(segment.content) for segment in late.segments}
    assert len(held) > 1
    snapshot = snapshot_of(link, 0)
    own = {at for part in parts_of(snapshot) for at in range(part.at, part.at + min(part.size, held.get(part.base, 0)))}
    link.lose = lambda source, to, message: False
    link.settle()
    assert link[2].state.snapshot == snapshot
    assert bytes_of(link) == set(range(len(snapshot.data))) - own
    assert link[2].state.state_machine.to_bytes() == link[0].state.state_machine.to_bytes()


def test_it_goes_on_where_it_was_when_chunks_are_lost() -> None:
    link = left_behind()
    seen: list[int] = []

    def lose(source: int, to: int, message: Message) -> bool:
        if isinstance(message, SnapshotChunk):
            seen.append(message.offset)
        return isinstance(message, SnapshotChunk) and len(seen) % 3 == 1

    link.lose = lose
    link.settle()
    assert seen[:2] == [OUTLINE, OUTLINE]
    assert sorted(seen) == seen, "nothing is fetched again but what was lost"
    assert all(seen.count(offset) <= 2 for offset in seen)


def test_own_messages_that_are_not_those_of_the_others_are_fetched() -> None:
    link = left_behind()
    segment = link[2].state.state_machine.partitions.logs[NAMESPACE].segments[0]
    segment.content[-1] ^= 1
    link.lose = lambda source, to, message: False
    link.settle()
    assert link[2].state.snapshot == link[0].state.snapshot
    part = parts_of(snapshot_of(link, 0))[0]
    assert bytes_of(link) >= set(range(part.at, part.end))


def test_a_source_with_a_bad_segment_is_left_for_another() -> None:
    link = left_behind()
    right = snapshot_of(link, 0)
    last = parts_of(right)[-1]
    data = bytearray(right.data)
    data[last.end - 1] ^= 1
    link[0].transfer._outline_sent = (right.checksum, encode_outline(right.data))
    link[0].state.snapshot = Snapshot(right.op, right.checksum, bytes(data))
    link.lose = lambda source, to, message: False
    link.settle()
    assert link[2].state.snapshot == right
    asked = [message for message in link.messages(RequestSnapshot, 2) if isinstance(message, RequestSnapshot)]
    assert sum(message.offset == OUTLINE for message in asked) == 1, "only the segment was fetched again"


def test_a_source_with_a_bad_outline_is_left_for_another() -> None:
    for encoded in (b"?", encode_outline(snapshot_of(left_behind(), 0).data)[:-1] + b"\0"):
        link = left_behind()
        right = snapshot_of(link, 0)
        link[0].transfer._outline_sent = (right.checksum, encoded)
        link.lose = lambda source, to, message: False
        link.settle()
        assert link[2].state.snapshot == right


def segment_path(storage: FileStorage, number: int) -> str:
    return sorted(path for path in storage.files.files if path.endswith(".log"))[number]


def lose_manifest(storage: FileStorage) -> None:
    for path in [path for path in storage.files.files if "snapshot-" in path]:
        del storage.files.files[path]


def cut_second(storage: FileStorage) -> None:
    file = storage.files.files[segment_path(storage, 1)]
    file.truncate(file.size() - 3)


def flip_second(storage: FileStorage) -> None:
    file = storage.files.files[segment_path(storage, 1)]
    file.write_at(file.size() - 3, bytes([file.read_at(file.size() - 3, 1)[0] ^ 1]))


def lose_second(storage: FileStorage) -> None:
    del storage.files.files[segment_path(storage, 1)]


@pytest.mark.parametrize(
    ("damage", "fetched"),
    [(lose_manifest, ()), (cut_second, (1,)), (flip_second, (1,)), (lose_second, (1,))],
)
def test_a_replica_whose_files_are_damaged_fetches_only_what_is_lost(
    damage: Callable[[FileStorage], None], fetched: tuple[int, ...]
) -> None:
    link = AppendLink(CONFIG)
    for _ in range(13):
        link.ask(1)
    link.settle()
    snapshot = snapshot_of(link, 2)
    parts = parts_of(snapshot)
    assert len(parts) > 2
    link.stop(2)
    damage(link.file_storages[2])
    link.start(2)
    assert link[2].state.status is Status.RECOVERING
    link.settle()
    sent = bytes_of(link)
    for number, part in enumerate(parts):
        came = sent & set(range(part.at, part.end))
        assert bool(came) == (number in fetched), number
        assert len(came) <= part.size
    link.stop(2)
    link.start(2)
    assert link[2].state.snapshot == snapshot


def test_an_outline_names_every_segment() -> None:
    snapshot = snapshot_of(left_behind(), 0)
    outline = decode_outline(encode_outline(snapshot.data))
    assert outline.size == len(snapshot.data)
    for part in outline.parts:
        content = snapshot.data[part.at : part.end]
        assert content.startswith(Segment(NAMESPACE, part.base, CONFIG.segment_bytes).content)
        assert checksum_part(content) == part.checksum


def test_what_is_no_outline_is_refused() -> None:
    with pytest.raises(SnapshotError, match="too few"):
        encode_outline(b"")
    with pytest.raises(SnapshotError, match="does not decode"):
        decode_outline(b"?")
    bad: list[list[Part]] = [
        [Part(1, 0, 5, 6, b"")],
        [Part(1, 0, 0, 0, b"")],
        [Part(1, 0, 2, 4, b""), Part(1, 1, 5, 1, b"")],
    ]
    for parts in bad:
        with pytest.raises(SnapshotError, match="has a part at"):
            decode_outline(msgspec.msgpack.encode(Outline(10, parts)))


@given(data=st.data())
def test_an_arrival_ends_with_the_snapshot_whatever_is_here_already(data: st.DataObject) -> None:
    """Segments of drawn sizes; the own ones are whole, begun, wrong or absent; chunks of a drawn size, some wrong."""
    whole = bytearray()
    parts: list[Part] = []
    own: dict[int, bytes] = {}
    spared, wrong = 0, False
    for base, kind in enumerate(data.draw(st.lists(st.sampled_from(("absent", "whole", "begun", "more", "wrong"))))):
        whole += bytes(data.draw(st.integers(0, 2)))
        content = data.draw(st.binary(min_size=1, max_size=12))
        parts.append(Part(1, base, len(whole), len(content), checksum_part(content)))
        whole += content
        mine = {
            "whole": content,
            "more": content + b"?",
            "begun": content[: len(content) // 2 + 1],
            "wrong": bytes([content[0] ^ 1]) + content[1:],
        }.get(kind)
        if mine is not None:
            own[base] = mine
            spared += min(len(mine), len(content))
            wrong |= kind == "wrong"
    whole += bytes(data.draw(st.integers(1, 3)))
    arrival = Arrival()
    assert arrival.wanted == (OUTLINE, 0)
    arrival.take_outline(Outline(len(whole), parts), lambda _, base: own.get(base))
    came, bad = 0, 0
    for _ in range(500):
        if len(arrival.received) == len(whole):
            if arrival.digest() == checksum_snapshot(bytes(whole)):
                break
            arrival = Arrival.plain()
        offset, end = arrival.wanted
        chunk = bytearray(whole[offset : min(offset + 5, end or len(whole))])
        came += len(chunk)
        if bad < 2 and data.draw(st.booleans()):
            bad += 1
            chunk[0] ^= 1
        arrival.take(bytes(chunk), lambda _, base: own.get(base))
    assert arrival.received == whole
    if not bad and not wrong:
        assert (arrival.reused, came) == (spared, len(whole) - spared)
