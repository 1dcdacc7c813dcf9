"""Power cuts at every I/O of a replica that repairs a damaged journal from the others: it is whole in the end, nothing
that was answered is lost, and the trace conforms.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.impl.damage import DamagedLink
from tests.impl.power import SURVIVAL, Choice, PowerLossError
from tests.impl.test_damage import judge


class CutLink(DamagedLink):
    """The power goes at the I/O number `point` after the damage (0: never)."""

    def __init__(self, victim: int, ring: bool, point: int = 0, survives: Choice = SURVIVAL["nothing"]) -> None:
        super().__init__(victim, ring)
        self.point = point
        self.survives = survives
        self.ios = 0

    def start(self, node: int) -> None:
        """Again, if the power goes meanwhile."""
        while True:
            try:
                return super().start(node)
            except PowerLossError:
                self._lose_power(node)

    def _start_again(self, name: str) -> str:
        fuse = self.file_storages[self.victim].files.fuse
        before = fuse.count
        fuse.at = before + self.point if self.point else 0
        outcome = super()._start_again(name)
        self.ios = fuse.count - before
        return outcome


REGIONS = ("journal: last append", "journal: record header", "ring: prepare")


def cut(victim: int, region: str, directory: Path, *, kinds: int) -> None:
    """Cuts at each I/O, with so many kinds of survival of what was not synced."""
    ring, place = region.startswith("ring"), 40
    whole = CutLink(victim, ring)
    assert whole.hurt(region, place) == "log repaired"
    judge(whole, directory / "whole")
    assert whole.ios > 10
    for point in range(1, whole.ios + 1):
        for turn in range(kinds):
            kind = sorted(SURVIVAL)[(point + turn) % len(SURVIVAL)]
            link = CutLink(victim, ring, point, SURVIVAL[kind])
            link.hurt(region, place)
            assert link.cuts, point
            try:
                judge(link, directory / f"{point}-{kind}")
            except AssertionError as error:
                error.add_note(f"{region}, I/O {point} of {whole.ios}, {kind} survives: {link.cuts}")
                raise


@pytest.mark.parametrize("victim", range(3))
@pytest.mark.parametrize("region", REGIONS)
def test_a_power_cut_at_any_io_of_a_repair(region: str, victim: int, tmp_path: Path) -> None:
    cut(victim, region, tmp_path, kinds=1)


@pytest.mark.long
@pytest.mark.parametrize("victim", range(3))
@pytest.mark.parametrize("region", REGIONS)
def test_every_power_cut_of_a_repair(region: str, victim: int, tmp_path: Path) -> None:
    cut(victim, region, tmp_path, kinds=len(SURVIVAL))
