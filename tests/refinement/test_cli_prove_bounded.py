"""`vsr prove --bmc` and `--cover`: nothing found means none only in rounds that reach all states."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from viewproof.refinement.cli import cli

SIZES = ["--replicas", "2", "--views", "2", "--ops", "1", "--requests", "1", "--workers", "1"]


def run(*words: str) -> Result:
    """Run `vsr prove`."""
    return CliRunner().invoke(cli, ["prove", *words])


def test_cover_says_how_many_rounds_reach_all_states(tmp_path: Path) -> None:
    file = tmp_path / "cover.json"
    result = run("core", "--cover", *SIZES, "--json", str(file))
    found = json.loads(file.read_text())
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{found['rounds']} rounds cover all {found['states']:,} states")
    assert found["reached"][-1] == found["states"] > found["reached"][-2]


@pytest.mark.parametrize(("rounds", "code", "says"), [("1", 4, "inconclusive"), ("4", 0, "holds: ")])
def test_only_enough_rounds_mean_none(rounds: str, code: int, says: str) -> None:
    result = run("core", "--bmc", rounds, "--cover", *SIZES)
    assert result.exit_code == code
    assert result.stdout.startswith(says)
    assert "rounds cover all" in result.stdout


def test_without_a_cover_nothing_found_is_inconclusive() -> None:
    assert run("core", "--bmc", "4", *SIZES).exit_code == 4


def test_a_break_is_found_with_a_cover_too() -> None:
    result = run("core", "--bmc", "4", "--cover", "--fault", "commit.apply_at_replicate", *SIZES)
    assert result.exit_code == 1
    assert result.stdout.startswith("violated: I4")


def test_cover_goes_with_bounded_search_only() -> None:
    assert run("core", "--cover", "--induction").exit_code == 2
    assert run("core", "--used", "--bmc", "1").exit_code == 2


def test_without_a_number_a_fault_is_searched_in_the_rounds_it_needs(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    assert run("partitions", "--fault", "boot.offset_from_index", "--bmc", "--json", str(file)).exit_code == 1
    assert json.loads(file.read_text())["rounds"] == 3
    assert "no break in 2 rounds" in run("core", "--bmc", *SIZES).stdout
