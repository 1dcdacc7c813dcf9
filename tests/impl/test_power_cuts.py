"""Power cuts at every I/O of one replica, in a run with appends, checkpoints, drains, transfers and view changes.

After each the replica boots over what is left and rejoins: nothing that was answered is lost, no replica stays down,
and the audit finds that the traces conform.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.impl.power import SURVIVAL, PowerLink, isolate
from tests.refinement.traces import load
from viewproof.impl.replica import ReplicaConfig
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

CONFIG = ReplicaConfig(
    run="test", checkpoint_interval=4, journal_slots=12, pipeline_max=4, snapshot_chunk_bytes=200, write_retry_ticks=2
)


def run_script(link: PowerLink) -> None:
    """Appends, checkpoints, a snapshot for a replica left behind, view changes, a restart."""
    for turn in range(5):
        link.ask(1 + turn % 2)
    link.lose = isolate(2)
    for turn in range(9):
        link.ask(1 + turn % 2)
    link.lose = lambda source, to, message: False
    link.settle()
    link.change_view(1)
    link.ask(1)
    link.settle()
    link.stop(0)
    for turn in range(5):
        link.ask(1 + turn % 2)
    link.start(0)
    link.settle()
    link.ask(2)
    link.settle()


def require_conforms(link: PowerLink, directory: Path) -> None:
    """The audit finds that the trace of the run conforms."""
    verdict = check_run("test", load(link.write_trace(directory)), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.missing, [str(item) for item in verdict.violations])


def judge(link: PowerLink, directory: Path) -> None:
    """Nothing answered is lost, the replicas agree, and the trace conforms."""
    values = {replica.state.state_machine.store[b"key"] for replica in link.replicas.values()}
    assert len(values) == 1
    written = values.pop().split(b";")
    expected = [b"%d.%d" % (client, number) for client, count in link.number.items() for number in range(1, count + 1)]
    assert sorted(written) == sorted([*expected, b""])
    require_conforms(link, directory)


def steps_of(victim: int) -> list[str]:
    """The I/Os of a replica in a run without a cut."""
    link = PowerLink(CONFIG, victim)
    run_script(link)
    return link.file_storages[victim].files.fuse.what


def test_the_run_reaches_all_of_it(tmp_path: Path) -> None:
    link = PowerLink(CONFIG)
    run_script(link)
    judge(link, tmp_path)
    assert {event.m_checkpoint for event in link.of(2, "on_start_view")} & {8, 12}
    assert [len(link.of(node, "checkpoint")) for node in range(3)] == [3, 5, 3]
    assert {event.event for event in link.events} >= {"start_view", "restart", "repair", "on_start_view", "checkpoint"}
    for victim in range(3):
        assert set(steps_of(victim)) >= {"write", "sync", "create", "rename", "remove", "sync_directory"}


@pytest.mark.parametrize("victim", range(3))
def test_power_cuts(victim: int, tmp_path: Path) -> None:
    cut(victim, tmp_path, every=3)


@pytest.mark.long
@pytest.mark.parametrize("victim", range(3))
def test_every_power_cut(victim: int, tmp_path: Path) -> None:
    cut(victim, tmp_path, every=1)


def cut(victim: int, directory: Path, *, every: int) -> None:
    """Cuts the power at every `every`-th I/O, with each kind of survival in turn, sometimes again while booting."""
    kinds = sorted(SURVIVAL)
    points = range(1, len(steps_of(victim)) + 1, every)
    cuts = 0
    for point in points:
        for kind in kinds if every == 1 else [kinds[point // every % len(kinds)]]:
            for again in (0, 1 + point % 5) if every == 1 else (point % 4,):
                name = f"replica {victim}, I/O {point}, {kind} survives, {again} I/Os later again"
                cuts += run_cut(name, directory, PowerLink(CONFIG, victim, point, SURVIVAL[kind], again))
    assert cuts >= len(points)


def run_cut(name: str, directory: Path, link: PowerLink, judge: Callable[[PowerLink, Path], None] = judge) -> int:
    """Runs the script with the link's cuts, judges it, and returns how many there were."""
    try:
        run_script(link)
        judge(link, directory / name)
    except BaseException as error:
        error.add_note(f"{name}: {link.cuts}")
        raise
    return len(link.cuts)


@pytest.mark.parametrize("victim", range(3))
def test_an_error_at_every_io(victim: int, tmp_path: Path) -> None:
    """Once, at any I/O: the replica goes on, or stops and boots again; nothing is lost either way.

    A mark of the journal that cannot be written is not missed.
    """
    outcomes: set[str] = set()
    what = steps_of(victim)
    for point in range(1, len(what) + 1, 2):
        link = PowerLink(CONFIG, victim, point, error=(errno.ENOSPC, errno.EIO)[point // 2 % 2])
        run_cut(f"replica {victim}, error at I/O {point}", tmp_path, link)
        assert bool(link.outcomes) == (what[point - 1] != "mark"), point
        outcomes |= set(link.outcomes)
    assert outcomes >= {"went on", "stopped"}


@pytest.mark.long
def test_bytes_of_the_last_write(tmp_path: Path) -> None:
    """Before the sync of an append, a superblock pair, a snapshot or a drained journal, some bytes of it are left."""
    what = steps_of(1)
    points = [point for point in range(2, len(what) + 1) if what[point - 2 : point] == ["write", "sync"]]
    sample = [*points[:6], *points[20:50:3]]
    for point in sample:
        for count in (1, 7, 16, 17, 60, 100, 150, 151, 300, 4095, 4096):
            run_cut(f"I/O {point}, {count} bytes", tmp_path, PowerLink(CONFIG, 1, point, partial(min, count)))
