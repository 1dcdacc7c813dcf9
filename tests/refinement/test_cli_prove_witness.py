"""`vsr prove --witness`: every part of every lemma has a reachable witness, and what is said where one has none."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from viewproof.refinement.cli import cli

SMALL = ["--views", "2", "--ops", "1", "--requests", "1", "--restarts", "1"]


def run(*words: str) -> Result:
    """Run `vsr prove … --witness`."""
    return CliRunner().invoke(cli, ["prove", *words, "--witness"])


def test_a_named_part_is_shown_step_by_step_by_either_engine(tmp_path: Path) -> None:
    file = tmp_path / "w.json"
    searched = run("core_restart", *SMALL, "--part", "messages.ack.1", "--json", str(file))
    assert searched.exit_code == 0
    assert "  1. on_request(r=0, c=1, s=1)" in searched.stdout
    assert "1 of 1 parts of invariants and lemmas have a reachable witness (1 by explicit)" in searched.stdout
    (part,) = json.loads(file.read_text())["parts"]
    assert (part["lemma"], part["part"], part["engine"]) == ("messages.ack", 1, "explicit")
    assert part["behaviour"][0]["action"] == "on_request"
    solved = run("core_restart", *SMALL, "--part", "messages.ack.1", "--reach", "0", "--rounds", "1")
    assert solved.exit_code == 0
    assert "(1 by z3)" in solved.stdout


def test_what_has_no_witness_is_named_and_inconclusive() -> None:
    searched = run("core_restart", *SMALL, "--part", "I12.1")
    assert searched.exit_code == 4
    assert "none: false in all reachable states" in searched.stdout
    few = run("core_restart", *SMALL, "--part", "I12.1", "--reach", "50", "--rounds", "0")
    assert few.exit_code == 4
    assert "none found" in few.stdout


def test_wrong_questions_are_refused() -> None:
    unknown = run("core_restart", *SMALL, "--part", "I12.77")
    assert unknown.exit_code == 2
    assert "no part I12.77: a part is LEMMA.NUMBER, the lemmas are I1, I2" in unknown.output
    other = CliRunner().invoke(cli, ["prove", "core", "--induction", "--rounds", "2"])
    assert other.exit_code == 2
    assert "--rounds does not apply to --induction; it is for --witness" in other.output


def test_an_interrupt_shows_what_was_found() -> None:
    command = [sys.executable, "-m", "viewproof", "prove", "repair", "--witness"]
    deep = ["--replicas", "5", "--views", "3", "--reach", "1000000000"]
    with subprocess.Popen([*command, *deep], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("witnesses:"):
                break
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 4
    assert "parts of invariants and lemmas have a reachable witness" in out
