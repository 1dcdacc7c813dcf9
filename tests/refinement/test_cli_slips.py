"""Slips on the command line: refused at once, by name, and never taken for something else that was not meant."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from viewproof.refinement.cli import cli

VSR = "from viewproof.refinement.cli import main; main()"
EMPTY = "the path is empty"
BREAKS = ("check", "core", "--fault", "state.getstate_truncates")
HUGE = str(10**22)


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (("audit", ""), EMPTY),
        (("audit", "t", "--json", ""), EMPTY),
        (("audit", "t", "--state", ""), EMPTY),
        (("audit", "t", "--baseline", ""), EMPTY),
        (("simulate", "--out", ""), EMPTY),
        (("cluster", ""), EMPTY),
        (("record", ""), EMPTY),
        (("inspect", ""), EMPTY),
        (("diff-audit", ":", ":", ""), EMPTY),
        (("check", "core", "--fault", "commit.out_of_ordr"), "did you mean commit.out_of_order or"),
        (("explore", "core", "--fault", "nope", "--no-open"), "'nope' is no mistake that is known here (all of them:"),
        (("simulate", "--fault", "table"), "did you mean table."),
        (("explore", "", "--no-open"), "'' is not one of"),
        (("audit", "t", "--json", "-"), "that is /dev/stdout"),
        (("audit", "t", "--engine", "spark", "--workers", "2"), "--workers is for --engine local"),
        (("check", "core", "--size", "nope=1"), "--size is for a model of one's own"),
        (("check", "core", "--replicas", HUGE), "is not in the range"),
        (("simulate", "--clients", HUGE), "is not in the range"),
        (("authority", "a", "--addresses", "127.0.0.1:1", "--days", HUGE), "is not in the range"),
        (("record", "r", "--replicas", "999"), "is not in the range"),
        (("record", "r", "--run", "../out"), "is not the name of one directory"),
        (("cluster", "c", "--run", "a/b"), "is not the name of one directory"),
        (("format", "/dev/full", "--replica", "0"), "/dev/full is no directory"),
        (("export", "tla", "core", "--out", "/dev/full"), "/dev/full is no directory"),
        (("mutate", "core", "--part", "nope", "--states", "1"), "no mutant of core is in a file or folder nope"),
    ],
)
def test_a_slip_is_refused_by_name(
    words: tuple[str, ...], refused: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(cli, list(words))
    assert answer.exit_code == 2
    assert refused in " ".join(answer.output.split())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("option", ["--json", "--itf", "--html"])
def test_a_disk_that_is_full_is_told_with_the_name_of_the_file_and_the_break_is_still_shown(option: str) -> None:
    answer = CliRunner().invoke(cli, [*BREAKS, option, "/dev/full"])
    assert answer.exit_code == 2
    assert "No space left on device: '/dev/full'" in answer.output
    assert "violated: I3 honest_ack" in answer.output


def test_standard_output_that_is_full_is_told_as_that() -> None:
    with open("/dev/full", "wb") as full:
        ended = subprocess.run([sys.executable, "-c", VSR, *BREAKS], stdout=full, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 2
    assert b"No space left on device: 'standard output'" in ended.stderr


def test_a_locale_that_knows_no_utf_8_changes_nothing_but_the_signs() -> None:
    settings = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    ended = subprocess.run([sys.executable, "-c", VSR, *BREAKS], capture_output=True, env=settings, check=False)
    assert ended.returncode == 1, ended.stderr
    assert b"violated: I3 honest_ack, after 8 steps" in ended.stdout


def test_a_cache_that_cannot_be_written_to_is_told_and_nothing_else_changes(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way of a directory")
    settings = {**os.environ, "VSR_CACHE": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", VSR, "check", "core", "--replicas", "2", "--views", "1", "--ops", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, env=settings, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "it is kept for this process only" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(("words", "code"), [("audit -", 4), ("repl --addresses 127.0.0.1:1", 2)])
def test_standard_input_that_was_closed_is_empty(words: str, code: int) -> None:
    command = f'exec "$0" -c "{VSR}" {words} <&-'
    ended = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False)
    assert ended.returncode in (code, 0)
    assert "NoneType" not in ended.stderr + ended.stdout
