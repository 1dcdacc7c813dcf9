"""Segments on the disk are read though nobody asks for them; what is not right is mended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.impl.test_segment_transfer import CONFIG, NAMESPACE, AppendLink, chunks_of, cut_second, flip
from viewproof.impl.interface.effects import ReadSegment
from viewproof.impl.machine.partition_log import SegmentLostError, SegmentRef
from viewproof.impl.replica import ReplicaConfig
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.run import simulate
from viewproof.impl.storage.file import RealFileSystem
from viewproof.impl.storage.segments import SegmentStore, segments_named

SCRUBBED = replace(CONFIG, scrub_bytes_per_tick=50, scrub_pass_ticks_min=20)


def filled(count: int, config: ReplicaConfig = SCRUBBED) -> AppendLink:
    link = AppendLink(config)
    for _ in range(count):
        link.ask(1)
    link.settle()
    return link


def named(link: AppendLink, node: int) -> Sequence[SegmentRef]:
    snapshot = link[node].state.snapshot
    assert snapshot is not None
    return segments_named(snapshot.data)


def all_right(link: AppendLink, node: int) -> bool:
    """Every segment of the snapshot is on the disk as it is named."""
    store = link.file_storages[node].segments
    assert isinstance(store, SegmentStore)
    try:
        return all(len(store.read(ref)) == ref.size for ref in named(link, node))
    except SegmentLostError:
        return False


def one_pass(link: AppendLink, node: int) -> None:
    """Time passes until a pass over all segments that began from now on is over."""
    done = link[node].scrub.passes + 2
    for _ in range(400):
        if link[node].scrub.passes >= done:
            return
        link.tick(1)
    raise AssertionError("no pass ends")


def reads(link: AppendLink, node: int) -> list[SegmentRef]:
    return [io.ref for at, io in link.writes if at == node and isinstance(io, ReadSegment)]


@pytest.mark.parametrize("node", range(3))
def test_a_segment_that_rots_is_found_and_mended_though_nobody_reads_it(node: int) -> None:
    link = filled(14)
    assert all_right(link, node)
    flip(link.file_storages[node], 1)
    assert not all_right(link, node)
    link.sent.clear()
    one_pass(link, node)
    link.tick(20)
    assert all_right(link, node)
    assert link[node].scrub.found == 1
    assert {chunk.ref for chunk in chunks_of(link)} == {named(link, node)[1]}
    assert [note for note in link[node].segments.notes if note.endswith("whole again")]
    assert not link[node].segments.lost


def test_without_it_rot_stays() -> None:
    link = filled(14, CONFIG)
    flip(link.file_storages[1], 1)
    link.tick(400)
    assert not reads(link, 1)
    assert not all_right(link, 1)


def test_a_segment_that_was_cut_is_mended_before_a_checkpoint_meets_it() -> None:
    link = filled(14)
    cut_second(link.file_storages[2])
    one_pass(link, 2)
    link.tick(20)
    assert all_right(link, 2)


def test_each_segment_has_its_turn_and_so_many_bytes_are_read() -> None:
    link = filled(20)
    one_pass(link, 0)
    before, read = link[0].state.ticks, link[0].scrub.bytes_read
    known = len(reads(link, 0))
    for _ in range(3):
        one_pass(link, 0)
    ticks = link[0].state.ticks - before
    assert link[0].scrub.bytes_read - read <= 50 * ticks
    assert set(reads(link, 0)[known:]) == set(named(link, 0))


def test_another_process_begins_elsewhere() -> None:
    firsts = set()
    for nonce in (1, 2, 3):
        link = filled(20, replace(SCRUBBED, nonce=nonce, scrub_pass_ticks_min=5_000))
        known = len(reads(link, 0))
        link.tick(5_000)
        firsts.add(reads(link, 0)[known])
    assert len(firsts) == 3


def test_what_is_in_memory_is_written_again_by_the_next_checkpoint() -> None:
    """The last segment of a partition: nothing is fetched."""
    link = filled(14)
    flip(link.file_storages[0], -1)
    one_pass(link, 0)
    assert [note for note in link[0].segments.notes if "the next checkpoint writes it again" in note]
    assert not link[0].segments.lost
    for _ in range(6):
        link.ask(1)
    link.settle()
    assert all_right(link, 0)
    assert not chunks_of(link)


def test_a_segment_that_nobody_has_is_asked_for_and_the_others_are_read_on() -> None:
    link = filled(14)
    for node in range(3):
        flip(link.file_storages[node], 0)
    for node in range(3):
        one_pass(link, node)
        assert set(link[node].segments.lost) == {(NAMESPACE, 0)}
    before = link[0].state.checkpoint
    for _ in range(8):
        link.ask(1)
    link.settle()
    assert link[0].state.checkpoint > before, "checkpoints go on"
    flip(link.file_storages[0], 1)
    one_pass(link, 0)
    link.tick(40)
    assert set(link[0].segments.lost) == {(NAMESPACE, 0)}


def test_a_replica_without_others_goes_on_and_says_so_once() -> None:
    link = filled(14)
    flip(link.file_storages[0], 1)
    link[0].state.others = ()
    one_pass(link, 0)
    one_pass(link, 0)
    told = [note for note in link[0].segments.notes if "there is no other replica to fetch it from" in note]
    assert told == list(link[0].scrub.alone.values())
    assert not link[0].segments.lost
    flip(link.file_storages[0], 1)
    one_pass(link, 0)
    assert not link[0].scrub.alone


def test_a_real_file_is_read_from_the_medium(tmp_path: Path) -> None:
    """As far as the system lets itself be told: the call is one that it knows."""
    files = RealFileSystem()
    file = files.create(f"{tmp_path}/file")
    file.write_at(0, b"here")
    file.sync()
    file.forget_cached()
    assert file.read_at(0, 4) == b"here"
    file.close()


def test_in_the_simulator_rot_is_mended_before_a_run_ends_and_the_mistake_leaves_it() -> None:
    found = failed = 0
    for seed in range(6):
        result = simulate(seed, requests=60, profile=NAMED_PROFILES["unread"])
        assert result.ok, result.failures
        found += result.statistics.get("segments_scrubbed_failed", 0)
        wrong = simulate(
            seed, requests=60, profile=NAMED_PROFILES["unread"], faults=frozenset({"storage.never_scrubs"})
        )
        failed += any("rot stays at replicas" in str(failure) for failure in wrong.failures)
    assert found >= 6
    assert failed >= 2


def test_in_the_simulator_the_last_copy_of_a_segment_does_not_stay_down() -> None:
    """One replica had it altered, one was behind it, and the third would have stayed down for good."""
    result = simulate(64_012_681, requests=60, profile=NAMED_PROFILES["unread"])
    assert result.ok, result.failures
