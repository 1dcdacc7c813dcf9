"""Segments under a running replica: exchanged, cut, refused by the disk, fetched by many across views."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from tests.impl.power import FileStorage, PowerLink, isolate
from tests.impl.test_checkpoint import CONFIG as KEYS_CONFIG
from tests.impl.test_partition_power_cuts import CONFIG as CUT_CONFIG
from tests.impl.test_partition_power_cuts import PartitionLink, judge, steps_of
from tests.impl.test_power_cuts import require_conforms, run_cut
from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.messages import Message, Request, RequestSegment, SegmentChunk
from viewproof.impl.machine.partitions import AppendMessages
from viewproof.impl.machine.state_machine import encode_operation
from viewproof.impl.replica import Status
from viewproof.impl.storage.segments import segments_named

NAMESPACES = (3, 9)
CONFIG = replace(KEYS_CONFIG, plane=Plane.PARTITIONS, segment_bytes=200, snapshot_chunk_bytes=60)


class TwinLink(PowerLink):
    """Requests append in turn to two partitions, whose messages are equally long: all their offsets are the same."""

    def body(self, client: int, number: int) -> bytes:
        return encode_operation(AppendMessages(NAMESPACES[number % 2], (b"%04d" % number,)))


def with_messages(count: int) -> TwinLink:
    link = TwinLink(CONFIG)
    for _ in range(count):
        link.ask(1)
    link.settle()
    return link


def paths(storage: FileStorage, namespace: int) -> list[str]:
    return sorted(path for path in storage.files.files if f"segment-{namespace:016x}" in path and path.endswith(".log"))


def exchange(storage: FileStorage, at: int) -> tuple[str, str]:
    """Two segments of equal size, of two partitions, get each other's name."""
    one, other = (paths(storage, namespace)[at] for namespace in NAMESPACES)
    files = storage.files.files
    assert len(files[one].content) == len(files[other].content)
    for content in ("content", "durable"):
        first, second = (bytearray(getattr(files[path], content)) for path in (one, other))
        setattr(files[one], content, second)
        setattr(files[other], content, first)
    return one, other


def require_all(link: TwinLink, directory: Path) -> None:
    """Every replica has all messages of both partitions, in order, and the traces conform."""
    count = link.number[1]
    for replica in link.replicas.values():
        for turn, namespace in enumerate(NAMESPACES):
            found = replica.state.state_machine.partitions.read(namespace, 0, 9999)
            assert list(found) == [b"%04d" % number for number in range(1, count + 1) if number % 2 == turn]
    require_conforms(link, directory)


@pytest.mark.parametrize("node", [0, 2])
def test_last_segments_that_were_exchanged_are_written_again_before_anything_is_added(
    node: int, tmp_path: Path
) -> None:
    link = with_messages(12)
    storage = link.file_storages[node]
    data = storage.data
    assert data is not None
    exchanged = exchange(storage, -1)
    for _ in range(8):
        link.ask(1)
    link.settle()
    for path in exchanged:
        assert [text for text in data.problems if path in text and "written again" in text], data.problems
    for ref in segments_named(data.durable_state().snapshot):
        assert len(data.segments.read(ref)) == ref.size
    link.stop(node)
    link.start(node)
    assert link[node].state.status is not Status.RECOVERING
    link.settle()
    assert not link.messages(SegmentChunk)
    require_all(link, tmp_path)


def test_closed_segments_that_were_exchanged_are_fetched_when_they_are_read(tmp_path: Path) -> None:
    link = with_messages(24)
    exchange(link.file_storages[1], 0)
    for namespace in NAMESPACES:
        link[1].state.state_machine.partitions.cache._kept.clear()
        ref = link[1].state.state_machine.partitions.logs[namespace].sealed[0]
        assert link[1].segments._content(ref) == b""
    link.settle()
    link.tick(20)
    assert not link[1].segments.lost
    assert len({chunk.ref for chunk in link.messages(SegmentChunk) if isinstance(chunk, SegmentChunk)}) == 2
    require_all(link, tmp_path)


@pytest.mark.parametrize("changes", [1, 6])
def test_a_replica_that_lacks_fifty_segments_gets_them_while_views_change(changes: int, tmp_path: Path) -> None:
    """Each time that some of the segments came, another primary takes over, and takes more requests."""
    link = with_messages(8)
    link.lose = isolate(2)
    for _ in range(300):
        link.ask(1)
    came: set[object] = set()
    again: list[object] = []

    def lose(source: int, to: int, message: Message) -> bool:
        if isinstance(message, SegmentChunk) and message.offset + len(message.data) == message.ref.size:
            again.extend([message.ref] if message.ref in came else [])
            came.add(message.ref)
        return 2 in (source, to) and isinstance(message, RequestSegment) and len(came) >= limit

    limit = 0
    link.lose = lose
    for turn in range(changes):
        limit = 50 * (turn + 1) // (changes + 1)
        link.tick(120)
        link.change_view(1 - link[0].state.view % 2)
        link.ask(1)
        link.ask(1)
    limit = 10_000
    link.settle()
    assert len(came) >= 50
    assert not again, "no segment comes twice"
    require_all(link, tmp_path)


@pytest.mark.parametrize("when", ["requests", "a transfer", "boot"])
@pytest.mark.parametrize("full", [(0,), (2,), (0, 1), (0, 1, 2)])
def test_disks_that_are_full_for_long_lose_nothing_and_go_on_once_there_is_room(
    full: tuple[int, ...], when: str, tmp_path: Path
) -> None:
    link = with_messages(9)
    victim = full[0]
    if when == "boot":
        link.stop(victim)
    if when != "requests":
        link.lose = isolate(victim)
        for _ in range(30):
            link.ask(1)
    for node in full:
        link.file_storages[node].files.fuse.full = True
    link.lose = lambda source, to, message: False
    if when == "boot":
        link.start(victim)
    number = link.number[1] = link.number[1] + 1
    for turn in range(40):
        link.deliver(turn % 3, Request(1, number, link.body(1, number)))
        link.run()
        link.tick(4)
    assert "went on" in link.outcomes
    for node in full:
        link.file_storages[node].files.fuse.full = False
    link.number[1] = number - 1
    for _ in range(9):
        link.ask(1)
    link.settle()
    require_all(link, tmp_path)


@pytest.mark.parametrize("victim", range(3))
@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_an_error_at_any_io_loses_nothing(victim: int, every: int, error: int, tmp_path: Path) -> None:
    """Of a segment, an index, a snapshot, the journal, the superblock."""
    what = steps_of(victim)
    outcomes: set[str] = set()
    for point in range(1 + (victim + error) % every, len(what) + 1, every):
        link = PartitionLink(CUT_CONFIG, victim, point, error=error)
        run_cut(f"replica {victim}, error at I/O {point}", tmp_path, link, judge)
        assert bool(link.outcomes) == (what[point - 1] != "mark"), point
        outcomes |= set(link.outcomes)
    assert outcomes >= {"went on", "stopped"}
