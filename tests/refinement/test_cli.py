"""The command line's contract: exit codes, refusals by name, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refinement import fakes
from viewproof.refinement.cli import cli
from viewproof.refinement.cli.audit import Dependencies


@pytest.mark.parametrize(
    "words", [["nonsense"], ["audit"], ["audit", "x", "--engine", "flink"], ["audit", "--nonsense"]]
)
def test_usage_errors_are_exit_2(words: list[str]) -> None:
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 2
    assert "Error" in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--master", "local[2]"], "--master is for --engine spark"),
        (["--engine", "spark", "--master", "bogus"], "'bogus' is none of local, local[N]"),
        (["--engine", "spark", "--master", "local[0]"], "is none of"),
    ],
)
def test_a_wrong_master_is_refused_before_java_starts(tmp_path: Path, words: list[str], said: str) -> None:
    fakes.write_run(tmp_path, fakes.records("r"))
    result = CliRunner().invoke(cli, ["audit", str(tmp_path), *words], obj=Dependencies(fakes.check_run))
    assert result.exit_code == 2
    assert said in result.stderr


def test_help_and_version_are_exit_0() -> None:
    for words in (["--help"], ["--version"], ["audit", "--help"]):
        assert CliRunner().invoke(cli, words).exit_code == 0


def test_a_failure_is_one_line_and_exit_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes.write_run(tmp_path, fakes.records("r"))
    monkeypatch.setattr("viewproof.refinement.local.audit", lambda *a, **k: 1 / 0)
    result = CliRunner().invoke(cli, ["audit", str(tmp_path)], obj=Dependencies(fakes.check_run))
    assert result.exit_code == 2
    assert result.stderr == "error: ZeroDivisionError: division by zero (VSR_DEBUG=1 shows the traceback)\n"
    monkeypatch.setenv("VSR_DEBUG", "1")
    result = CliRunner().invoke(cli, ["audit", str(tmp_path)], obj=Dependencies(fakes.check_run))
    assert result.exit_code == 2
    assert "Traceback" in result.stderr


def test_an_output_file_that_cannot_be_written_is_exit_2(tmp_path: Path) -> None:
    fakes.write_run(tmp_path, fakes.records("r"))
    words = ["audit", str(tmp_path), "--json", str(tmp_path / "no" / "r.json")]
    result = CliRunner().invoke(cli, words, obj=Dependencies(fakes.check_run))
    assert result.exit_code == 2
    assert "--json" in result.stderr
    assert "there is no directory" in result.stderr
    assert not result.stdout
