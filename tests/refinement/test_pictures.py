"""The page on a fleet, and the picture of the README, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refinement.browser import browser, flaws, needs_browser
from viewproof.refinement.reports import fleet

ROOT = Path(__file__).resolve().parents[2]
VIOLATION = {
    "run": "cluster-7", "node": 1, "seq": 12, "action": "execute", "rule_id": "execute/1", "changes": [],
    "message": "execute at node 1: the specification does not allow execute here", "expected": "o <= commit_max[r]",
    "observed": "commit_min[1] = 0, commit_max[1] = 0", "why_not": ["execute(r=1): o <= state.commit_max[r] is false"],
    "place": "spec/vsr/core/normal.py:200",
    "rule": "A replica executes the next committed op.", "story": [], "carried": {"host": "db-3"},
}  # fmt: skip


@pytest.mark.long
@needs_browser
def test_in_a_browser_the_page_on_a_fleet_fits_and_can_be_read(tmp_path: Path) -> None:
    shares = tuple(fleet.Share(f"2026-11-{day}", {"conforms": 9, "violates": day % 3}) for day in range(20, 29))
    found = fleet.Fleet(
        {"conforms": 80, "violates": 9, "inconclusive": 2}, 12_345_678,
        (fleet.Cause(9, ("cluster-7", "cluster-8"), VIOLATION),), ((2, "cluster-9", "m_chain is not observed"),),
        (("execute", 4_000_000, 91), ("commit", 0, 0)), "day", shares,
    )  # fmt: skip
    file = tmp_path / "fleet.html"
    fleet.write(found, file)
    with browser() as driver:
        driver.get(file.as_uri())
        assert flaws(driver) == []


@pytest.mark.long
@needs_browser
def test_in_a_browser_the_picture_of_the_readme_can_be_read(tmp_path: Path) -> None:
    picture = (ROOT / "docs/images/counterexample.svg").read_text(encoding="utf-8")
    page = tmp_path / "page.html"
    style = "<style>svg { max-width: 100%; height: auto }</style>"
    page.write_text(f'<!doctype html><meta charset="utf-8">{style}<body>{picture}', encoding="utf-8")
    with browser() as driver:
        driver.get(page.as_uri())
        assert flaws(driver) == []
