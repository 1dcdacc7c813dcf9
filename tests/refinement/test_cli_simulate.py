"""`vsr simulate` and the server commands: exit codes, what is printed, what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.refinement import fakes
from viewproof.refinement.cli import cli
from viewproof.refinement.cli.audit import Dependencies


def vsr(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)), obj=Dependencies(fakes.check_run))


def test_simulated_traces_are_valid_input(tmp_path: Path) -> None:
    result = vsr(
        "simulate", "--seed", 3, "--runs", 3, "--requests", 40, "--out", tmp_path / "t", "--json", tmp_path / "r"
    )
    assert result.exit_code == 0, result.output
    assert "3 runs, 0 failed" in result.stdout
    report = json.loads((tmp_path / "r").read_text())
    assert [run["seed"] for run in report["runs"]] == [3, 4, 5]
    assert vsr("audit", tmp_path / "t").exit_code == 0


def test_parquet_replaces_ndjson_and_audits_the_same(tmp_path: Path) -> None:
    for name, more in (("n", ()), ("p", ("--parquet",))):
        words = ("simulate", "--requests", 40, "--out", tmp_path / name, *more)
        assert vsr(*words).exit_code == 0
    assert not list((tmp_path / "p").rglob("*.ndjson"))
    reports = [vsr("audit", tmp_path / name).stdout for name in ("n", "p")]
    assert reports[0] == reports[1]


def test_a_fault_fails_with_its_seed_and_the_command_that_replays_it() -> None:
    result = vsr("simulate", "--runs", 20, "--requests", 60, "--fault", "commit.apply_at_replicate")
    assert result.exit_code == 1, result.output
    assert "replay: vsr simulate --seed " in result.stdout
    assert "--requests 60 --fault commit.apply_at_replicate --out replay" in result.stdout


def test_workers_give_the_same_runs(tmp_path: Path) -> None:
    for workers in ("1", "2"):
        vsr("simulate", "--runs", 2, "--requests", 20, "--workers", workers, "--json", tmp_path / workers)
    assert (tmp_path / "1").read_text() == (tmp_path / "2").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "--parquet"),
        ("simulate", "--fault", "no.such.fault"),
        ("simulate", "--runs", "0"),
        ("simulate", "--profile", "no-such-profile"),
        ("simulate", "--profile", "rot", "--no-rot"),
        ("status", "--addresses", "nonsense"),
        ("start", "/nonexistent", "--replica", "0", "--addresses", "127.0.0.1:1"),
    ],
)
def test_wrong_use_is_exit_2_with_one_clear_line(words: tuple[str, ...]) -> None:
    result = vsr(*words)
    assert result.exit_code == 2
    assert "rror: " in result.stderr
    assert "Traceback" not in result.output


def test_format_makes_a_data_directory_once(tmp_path: Path) -> None:
    words = ("format", tmp_path / "d", "--replica", "1")
    assert vsr(*words).exit_code == 0
    again = vsr(*words)
    assert again.exit_code == 2
    assert "refusing to format over it" in again.stderr


def test_status_of_replicas_that_do_not_answer_is_exit_4() -> None:
    result = vsr("status", "--addresses", "127.0.0.1:1,127.0.0.1:2", "--timeout", "0.2")
    assert result.exit_code == 4
    assert result.stdout.count("no answer") == 2


def test_inspect_shows_a_data_directory_and_its_damage(tmp_path: Path) -> None:
    vsr("format", tmp_path / "d", "--replica", "1")
    result = vsr("inspect", tmp_path / "d", "--json", tmp_path / "r")
    assert result.exit_code == 0, result.output
    assert "4 of 4 superblock copies valid" in result.stdout
    assert json.loads((tmp_path / "r").read_text())["opens"] is True
    superblock = next(file for file in (tmp_path / "d").iterdir() if "superblock" in file.name)
    superblock.write_bytes(b"\0" * superblock.stat().st_size)
    result = vsr("inspect", tmp_path / "d")
    assert result.exit_code == 1
    assert "problem: " in result.stdout
    assert vsr("inspect", tmp_path / "nowhere").exit_code == 2


def test_a_profile_that_may_shut_a_replica_out_needs_enough_others() -> None:
    result = vsr("simulate", "--replicas", 2, "--profile", "backups")
    assert result.exit_code == 2
    assert "one replica may be shut out under this profile: of 2, 2 are needed" in result.output
