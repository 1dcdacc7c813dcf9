"""The README: short, its picture is what its command draws, and its commands do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from viewproof.refinement.cli import cli
from viewproof.refinement.cli.root import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
LINES_MAX = 120
PICTURE = "docs/images/counterexample.svg"


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, list(words))
    return done.exit_code, done.stdout


def test_it_is_short() -> None:
    assert len(README.splitlines()) < LINES_MAX


def test_the_picture_is_what_its_command_draws(tmp_path: Path) -> None:
    (fault,) = re.findall(r"`vsr check core --fault ([a-z_.]+)`", README)
    assert f"]({PICTURE})" in README
    code, _ = run("export", "svg", "core", "--fault", fault, "--out", str(tmp_path / "drawn.svg"))
    assert code == 0
    drawn = (tmp_path / "drawn.svg").read_text()
    assert drawn == (ROOT / PICTURE).read_text(), f"vsr export svg core --fault {fault} --out {PICTURE}"
    assert "prefers-color-scheme: dark" in drawn


def test_its_mistake_is_found_as_it_says(tmp_path: Path) -> None:
    lines = README.splitlines()
    (at,) = [number for number, line in enumerate(lines) if "vsr simulate" in line]
    simulate, audit = (shlex.split(line)[1:] for line in lines[at : at + 2])
    out = str(tmp_path / "broken")
    assert run(*[out if word == "/tmp/broken" else word for word in simulate])[0] in (0, 1)
    code, text = run(*[out if word == "/tmp/broken" else word for word in audit])
    assert code == 1
    (shown,) = re.findall(r"```\n(/tmp/broken/.*?)```", README, re.DOTALL)
    told = text.replace(out, "/tmp/broken")
    for line in shown.splitlines():
        assert line.strip() in told, line


def test_every_command_is_on_the_page_of_all_commands() -> None:
    page = (ROOT / "docs" / "README.md").read_text()
    shown = set(re.findall(r"`vsr ([a-z]+(?:-[a-z]+)*)", page))
    assert set(COMMANDS) <= shown
