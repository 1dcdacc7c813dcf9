"""Power cuts at every I/O of a replica of partitions: segments that grow and roll, indexes, manifests, transfers."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from tests.impl.power import SURVIVAL, PowerLink
from tests.impl.test_power_cuts import CONFIG as KEYS_CONFIG
from tests.impl.test_power_cuts import require_conforms, run_cut, run_script
from viewproof.impl.groups.plane import Plane
from viewproof.impl.machine.partitions import AppendMessages, StoreOffset
from viewproof.impl.machine.state_machine import encode_operation

CONFIG = replace(KEYS_CONFIG, plane=Plane.PARTITIONS, segment_bytes=150)
NAMESPACES = (0, 9)


class PartitionLink(PowerLink):
    """Every request appends a message to one of two partitions; now and then one stores an offset instead."""

    def body(self, client: int, number: int) -> bytes:
        namespace = NAMESPACES[number % 2]
        if number % 4 == 3:
            return encode_operation(StoreOffset(namespace, client, 1, group=client == 2))
        return encode_operation(AppendMessages(namespace, (b"%d.%d" % (client, number),)))


def judge(link: PowerLink, directory: Path) -> None:
    """Every message that was acknowledged is there once, at one offset everywhere; the trace conforms."""
    expected = [
        b"%d.%d" % (client, number)
        for client, count in link.number.items()
        for number in range(1, count + 1)
        if number % 4 != 3
    ]
    states = set()
    for replica in link.replicas.values():
        partitions = replica.state.state_machine.partitions
        found = [partitions.read(namespace, 0, 99) for namespace in NAMESPACES]
        assert sorted(message for messages in found for message in messages) == sorted(expected)
        assert all(offset <= partitions.end(reader[0]) for reader, offset in partitions.offsets.items())
        states.add(replica.state.state_machine.to_bytes())
    assert len(states) == 1
    require_conforms(link, directory)


def steps_of(victim: int) -> list[str]:
    link = PartitionLink(CONFIG, victim)
    run_script(link)
    return link.file_storages[victim].files.fuse.what


def test_the_run_reaches_all_of_it(tmp_path: Path) -> None:
    link = PartitionLink(CONFIG)
    run_script(link)
    judge(link, tmp_path)
    assert {event.m_checkpoint for event in link.of(2, "on_start_view")} & {8, 12}
    for storage in link.file_storages:
        names = [path for path in storage.files.files if path.endswith(".log")]
        assert len(names) > 2 * len(NAMESPACES), "segments roll"


@pytest.mark.parametrize("victim", range(3))
def test_power_cuts(victim: int, tmp_path: Path) -> None:
    cut(victim, tmp_path, every=8)


@pytest.mark.long
@pytest.mark.parametrize("victim", range(3))
def test_every_power_cut(victim: int, tmp_path: Path) -> None:
    cut(victim, tmp_path, every=1)


def cut(victim: int, directory: Path, *, every: int) -> None:
    """Cuts the power at every `every`-th I/O, with each kind of survival in turn, sometimes again while booting."""
    kinds = sorted(SURVIVAL)
    points = range(1 + victim, len(steps_of(victim)) + 1, every)
    cuts = 0
    for point in points:
        for kind in kinds if every == 1 else [kinds[point % len(kinds)]]:
            link = PartitionLink(CONFIG, victim, point, SURVIVAL[kind], point % 4)
            cuts += run_cut(f"replica {victim}, I/O {point}, {kind} survives", directory, link, judge)
    assert cuts >= len(points)


@pytest.mark.parametrize("victim", range(3))
def test_an_error_at_every_sync(victim: int, tmp_path: Path) -> None:
    """A sync of a segment, an index, a manifest or the journal that fails is told: nothing that was answered rests on
    it.
    """
    outcomes: set[str] = set()
    syncs = [point for point, what in enumerate(steps_of(victim), 1) if what == "sync"]
    for point in syncs[victim::3]:
        link = PartitionLink(CONFIG, victim, point, error=errno.EIO)
        run_script(link)
        judge(link, tmp_path / str(point))
        outcomes |= set(link.outcomes)
    assert outcomes >= {"went on", "stopped"}
