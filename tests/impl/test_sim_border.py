"""The simulated border: who is shut out, and that nothing of a stranger gets in."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewproof.impl.sim import SimResult, simulate
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.strangers import KINDS


def runs(profile: str, count: int, replicas: int = 3, out: Path | None = None) -> list[SimResult]:
    """So many runs without a fault; all are right."""
    results = [
        simulate(seed, replicas=replicas, requests=60, profile=NAMED_PROFILES[profile], out=out)
        for seed in range(count)
    ]
    assert [(result.seed, result.failures) for result in results if not result.ok] == []
    assert all(result.answered == 60 for result in results)
    return results


@pytest.mark.parametrize("replicas", [3, 5])
def test_a_replica_that_is_formatted_otherwise_takes_part_in_nothing(replicas: int, tmp_path: Path) -> None:
    for result in runs("misconfigured", 6, replicas, tmp_path):
        assert result.statistics["links_refused"] == replicas - 1
        assert result.trace is not None
        assert sum(not path.stat().st_size for path in result.trace.iterdir()) == 1


def test_a_replica_with_files_of_a_backup_is_shut_out() -> None:
    restored = [result.statistics for result in runs("backups", 8) if "backups_restored" in result.statistics]
    assert len(restored) >= 4
    assert all(statistics["links_refused"] == 2 for statistics in restored)


def test_who_is_formatted_otherwise_stays_shut_out_while_nobody_else_is_up() -> None:
    result = simulate(60_000_208, requests=60, profile=NAMED_PROFILES["misconfigured"])
    assert result.ok, result.failures


def test_a_backup_is_noticed_also_if_those_who_heard_of_newer_files_start_again_meanwhile() -> None:
    """Three of five restart within some ticks; until hellos said what was heard of others, it took part again."""
    result = simulate(31_405, replicas=5, requests=60, profile=NAMED_PROFILES["backups"])
    assert result.statistics["backups_restored"] == 1
    assert result.ok, result.failures


def test_a_backup_is_shut_out_also_if_one_that_it_spoke_with_is_down_when_it_boots() -> None:
    """Two of three are up, and the other one refuses it."""
    result = simulate(42_002_243, requests=60, profile=NAMED_PROFILES["backups"])
    assert result.statistics["backups_restored"] == 1
    assert result.ok, result.failures


def test_strangers_of_every_kind_are_not_heard() -> None:
    met = {name for result in runs("strangers", 6) for name in result.statistics if name.startswith("strangers")}
    refused = {f"strangers: {kind}, refused" for kind in KINDS if kind != "far ahead"}
    assert refused | {"strangers: far ahead, not heard"} <= met


def test_other_profiles_have_no_border_and_draw_as_before() -> None:
    assert [name for name, profile in NAMED_PROFILES.items() if profile.has_border] == [
        "misconfigured",
        "backups",
        "strangers",
    ]
