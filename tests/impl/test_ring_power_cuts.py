"""Power cuts and I/O errors at every I/O of a replica whose journal is a ring: append, header write, superblock,
checkpoint, transfer, boot (the run of `test_power_cuts`).
"""

from __future__ import annotations

import errno
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.impl.power import SURVIVAL, PowerLink
from tests.impl.test_power_cuts import CONFIG, judge, run_cut, run_script
from viewproof.impl.storage.ring_file import SECTOR, Geometry

RING = Geometry(slots=12, slot_size=2 * SECTOR)
SETTINGS = replace(CONFIG, ring=True)


def link_of(*args: object, error: int = 0) -> PowerLink:
    return PowerLink(SETTINGS, *args, error=error, ring=RING)  # type: ignore[arg-type]


def steps_of(victim: int) -> int:
    """The number of I/Os of a replica in a run without a cut."""
    link = link_of(victim)
    run_script(link)
    return link.file_storages[victim].files.fuse.count


def test_the_run_conforms(tmp_path: Path) -> None:
    link = link_of()
    run_script(link)
    judge(link, tmp_path)
    assert {event.event for event in link.events} >= {"start_view", "restart", "repair", "on_start_view", "checkpoint"}
    assert all(steps_of(victim) > 100 for victim in range(3))


@pytest.mark.parametrize("victim", range(3))
def test_power_cuts(victim: int, tmp_path: Path) -> None:
    cut(victim, tmp_path, every=5)


@pytest.mark.long
@pytest.mark.parametrize("victim", range(3))
def test_every_power_cut(victim: int, tmp_path: Path) -> None:
    cut(victim, tmp_path, every=1)


def cut(victim: int, directory: Path, *, every: int) -> None:
    """Cuts the power at every `every`-th I/O, with each kind of survival in turn, sometimes again while booting."""
    kinds = {**SURVIVAL, "a sector": partial(min, SECTOR), "a part of one": partial(min, 100)}
    points = range(1, steps_of(victim) + 1, every)
    cuts = 0
    for point in points:
        names = sorted(kinds)
        for kind in names if every == 1 else [names[point // every % len(names)]]:
            for again in (0, 1 + point % 5) if every == 1 else (point % 4,):
                name = f"replica {victim}, I/O {point}, {kind} survives, {again} I/Os later again"
                cuts += run_cut(name, directory, link_of(victim, point, kinds[kind], again))
    assert cuts >= len(points)


@pytest.mark.parametrize("victim", range(3))
def test_an_error_at_every_io(victim: int, tmp_path: Path) -> None:
    outcomes: set[str] = set()
    for point in range(1, steps_of(victim) + 1, 4):
        link = link_of(victim, point, error=(errno.ENOSPC, errno.EIO)[point // 4 % 2])
        run_cut(f"replica {victim}, error at I/O {point}", tmp_path, link)
        outcomes |= set(link.outcomes)
    assert outcomes >= {"went on", "stopped"}
