"""Ctrl-C and SIGTERM: what was judged so far, the command that goes on, and no traceback at any moment."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.refinement import fakes
from viewproof.impl.groups.group import Group
from viewproof.impl.sim.groups import simulate_groups
from viewproof.impl.sim.run import SimResult
from viewproof.impl.sim.run import simulate as simulate_run
from viewproof.refinement import interrupts, local
from viewproof.refinement.cli import cli, output
from viewproof.refinement.discovery import discover
from viewproof.refinement.schema import Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

ROOT = Path(__file__).parents[2]
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def interrupt_at_last(run_id: str, events: Iterable[Row], options: AuditOptions) -> RunVerdict:
    """The stand-in, interrupted when it comes to the run `last`."""
    if run_id == "last":
        raise KeyboardInterrupt
    return fakes.check_run(run_id, events, options)


@pytest.mark.parametrize(("broken", "code", "verdict"), [(False, 4, "inconclusive"), (True, 1, "violates")])
def test_an_interrupted_audit_reports_what_it_has_judged(tmp_path: Path, broken: bool, code: int, verdict: str) -> None:
    from viewproof.refinement.cli.audit import Dependencies

    for run in ("a", "b", "last", "z"):
        records = fakes.records(run)
        if broken and run == "b":
            records[3]["head"] = fakes.BAD_HEAD
        fakes.write_run(tmp_path / "t", records)
    words = ["audit", str(tmp_path / "t"), "--html", str(tmp_path / "h")]
    result = CliRunner().invoke(cli, words, obj=Dependencies(interrupt_at_last))
    assert result.exit_code == code, result.output
    assert f"interrupted: 2 of 4 directories judged; not judged, the first: {tmp_path}/t/last" in result.stdout
    assert "2 runs: " in result.stdout
    assert f"verdict: {verdict}" in result.stdout
    assert ("fake.head" in result.stdout) == broken
    assert "interrupted: 2 of 4" in (tmp_path / "h").read_text()


def test_a_run_whose_other_pieces_are_not_read_is_not_judged(tmp_path: Path) -> None:
    first, second = fakes.records("split"), fakes.records("last")
    fakes.write_lines(tmp_path / "a" / "x.ndjson", first[:12])
    fakes.write_run(tmp_path, fakes.records("b"))
    fakes.write_run(tmp_path, second)
    fakes.write_lines(tmp_path / "z" / "x.ndjson", first[12:])
    report = local.audit(discover([str(tmp_path)]), AuditOptions(), interrupt_at_last)
    assert [verdict.run_id for verdict in report.verdicts] == ["b"]
    assert report.exit_code == 4


def test_an_interrupted_simulation_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def simulate(seed: int, **options: Any) -> dict[Group, SimResult]:
        if seed == 5 and not resumed:
            raise KeyboardInterrupt
        return simulate_groups(seed, **options)

    resumed = False
    monkeypatch.setattr("viewproof.api.simulate.simulate_groups", simulate)
    words = ["simulate", "--seed", "3", "--runs", "4", "--requests", "10", "--replicas", "2", "--clients", "2"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 4, result.output
    assert "2 runs, 0 failed" in result.stdout
    found = re.search("interrupted: 2 of 4 seeds have run; to go on: vsr (.*)", result.stdout)
    assert found
    resumed = True
    result = CliRunner().invoke(cli, shlex.split(found[1]))
    assert result.exit_code == 0
    assert "2 runs, 0 failed" in result.stdout


def test_an_interrupted_simulation_that_failed_is_exit_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def results(*_: Any) -> Iterator[list[SimResult]]:
        for seed in range(1, 40):
            result = simulate_run(seed, requests=60, faults=frozenset({"commit.apply_at_replicate"}))
            yield [result]
            if not result.ok:
                raise KeyboardInterrupt

    monkeypatch.setattr("viewproof.refinement.cli.simulate.run_seeds", results)
    result = CliRunner().invoke(cli, shlex.split("simulate --runs 50 --requests 60 --fault commit.apply_at_replicate"))
    assert result.exit_code == 1, result.output
    assert "replay: vsr simulate" in result.stdout
    assert "--fault commit.apply_at_replicate" in result.stdout.splitlines()[-1]


def held_twice(number: signal.Signals, done: list[str]) -> None:
    with interrupts.held():
        with interrupts.held():
            signal.raise_signal(number)
            done.append("inner")
        done.append("outer")


def test_a_signal_is_held_until_it_does_no_harm() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    try:
        interrupts.install()
        for number in SIGNALS:
            done: list[str] = []
            with pytest.raises(KeyboardInterrupt):
                held_twice(number, done)
            assert done == ["inner", "outer"]
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


def test_a_long_command_that_is_interrupted_says_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        with output.steps("proving") as progress:
            progress(12, 44, "start_view(r=1)")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert capsys.readouterr().err == "proving: interrupted, 12 of 44 done\n"


def stopped(words: list[str], number: signal.Signals, seconds: float) -> subprocess.CompletedProcess[str]:
    """The command, with the signal sent to all of its processes after some time."""
    process = subprocess.Popen(
        [sys.executable, "-m", "viewproof", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(seconds)
    os.killpg(process.pid, number)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return subprocess.CompletedProcess(words, process.returncode, out, err)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("seconds", [0.3, 0.8, 2.5])
def test_no_traceback_whenever_it_comes(workers: str, number: signal.Signals, seconds: float) -> None:
    result = stopped(["simulate", "--runs", "100000", "--workers", workers], number, seconds)
    assert result.returncode == 4, result
    assert "Traceback" not in result.stderr
    assert "to go on: vsr simulate --seed " in result.stdout or "stopped" in result.stderr


@pytest.mark.long
@pytest.mark.spark
def test_an_interrupted_audit_in_spark_reports_what_it_has_judged_and_ends_soon(tmp_path: Path) -> None:
    """Ended within 3 seconds on a machine that does nothing else (`docs/spark.md`); the test waits longer."""
    runs = 60
    for number in range(runs):
        for file in sorted((ROOT / "traces/recorded/kill-primary").iterdir()):
            to = tmp_path / "t" / f"run-{number}" / file.name
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(file.read_text().replace('"run":"kill-primary"', f'"run":"run-{number}"'))
    (tmp_path / "tmp").mkdir()
    words = ["audit", "--engine", "spark", "--master", "local[2]", str(tmp_path / "t"), "--json", str(tmp_path / "r")]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "VSR_REPLAY": "python"}
    process = subprocess.Popen(
        [sys.executable, "-m", "viewproof", *words], env=environment, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    end = time.monotonic() + 300
    while not [f for f in (tmp_path / "tmp").glob("viewproof-told-*/*.ndjson") if f.stat().st_size]:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    out, said = process.communicate(timeout=60)
    took = time.monotonic() - began
    assert process.returncode == 4, (said, out)
    report = json.loads((tmp_path / "r").read_text())
    assert "Traceback" not in said
    assert 0 < len(report["verdicts"]) < runs
    assert {run["verdict"] for run in report["verdicts"]} == {"conforms"}
    assert re.search(rf"interrupted: \d+ of {runs} directories judged", out)
    assert took < 20, took
    sys.stdout.write(f"{took:.1f} s after the signal\n")
