"""Fault stories of other systems, planted in the replica: the audit rejects a run of each, where it goes wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.impl.planted import clients, commits, views
from tests.impl.planted.stories import STORIES
from tests.refinement.traces import load
from viewproof.impl.sim import simulate
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

LOTS = (clients, commits, views)
RUNS_MAX = 10
"""From the seed of the story on; a run without an occasion for the mistake conforms."""
FEW = {"commit": 2, "start_view": 2}
"""How many of the stories that are rejected at a step are for every day, if not one; all are for long runs."""


def marked() -> list[object]:
    """The stories, in the order of the files; most are long."""
    met: dict[str, int] = {}
    found: list[object] = []
    for what, told in STORIES.items():
        number = met[told.step] = met.get(told.step, 0) + 1
        found.append(pytest.param(what, marks=() if number <= FEW.get(told.step, 1) else pytest.mark.long))
    return found


@pytest.mark.parametrize("what", marked())
def test_a_story_is_rejected_where_it_goes_wrong(what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = STORIES[what]
    told.plant(monkeypatch)
    profile = NAMED_PROFILES[told.profile] if told.profile else None
    for seed in range(told.seed, told.seed + RUNS_MAX):
        run = simulate(seed, replicas=told.replicas, requests=40, profile=profile, out=tmp_path / str(seed))
        assert run.trace is not None
        verdict = check_run(run.run, load(run.trace), AuditOptions())
        assert verdict.verdict != "inconclusive", verdict.missing
        if verdict.verdict == "violates" and verdict.violations[0].action == told.step:
            return
    pytest.fail(f"not rejected at {told.step} in {RUNS_MAX} runs")


def test_there_are_stories_of_each_lot() -> None:
    rooms = {told.plant.__module__ for told in STORIES.values()}
    assert rooms == {lot.__name__ for lot in LOTS}
    assert len(STORIES) > 40
