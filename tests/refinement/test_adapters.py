"""Logs of another system, read by an adapter from outside the package: a toy replica (docs/adapters.md)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from viewproof import audit
from viewproof.api.audit import AuditOptionError
from viewproof.refinement.adapter import Adapter, Record
from viewproof.refinement.verdict import AuditReport

TOY = "tests.refinement.toy.adapter:TOY"
REPLICA = Path(__file__).parent / "toy" / "replica.py"


def log_of(file: Path, seed: int, *words: str) -> Path:
    """The log of one run of the toy, a process of its own."""
    subprocess.run([sys.executable, str(REPLICA), str(file), str(seed), *words], check=True)
    return file


def judged(*paths: Path, **options: Any) -> AuditReport:
    return audit(*paths, adapter=TOY, **options)


@pytest.mark.parametrize("seed", range(5))
def test_the_toy_replica_conforms(seed: int, tmp_path: Path) -> None:
    report = judged(log_of(tmp_path / "run.toy", seed))
    assert (report.verdict, report.events) == ("conforms", 219), report.verdicts
    assert report.coverage["execute"] == 36


def test_its_mistake_is_found_and_the_line_named(tmp_path: Path) -> None:
    file = log_of(tmp_path / "run.toy", 1, "--hasty")
    (found,) = judged(file).violations
    assert found.action == "commit"
    assert "quorum_replication" in found.expected
    assert " agreed op=1 " in file.read_text().splitlines()[found.line - 1]


def test_a_log_with_lost_lines_is_judged_as_far_as_it_goes(tmp_path: Path) -> None:
    for mistake in ((), ("--hasty",)):
        file = log_of(tmp_path / f"run{len(mistake)}.toy", 2, *mistake)
        lines = [line for line in file.read_text().splitlines() if " took op=3 " not in line]
        file.write_text("\n".join(lines) + "\n")
    report = judged(tmp_path)
    assert [verdict.verdict for verdict in report.verdicts] == ["inconclusive", "violates"]
    assert "no such event in the input" in report.verdicts[0].missing[0]


def test_lines_that_the_adapter_does_not_know_are_counted(tmp_path: Path) -> None:
    file = log_of(tmp_path / "run.toy", 1)
    file.write_text(file.read_text() + "99 node0 99 yawned\n99 node0 99 yawned\n")
    report = judged(file)
    assert report.unrecognised == {str(file): (2, 221)}
    assert report.verdict == "conforms"


def test_workers_read_by_the_adapter_too(tmp_path: Path) -> None:
    for seed in range(3):
        (tmp_path / str(seed)).mkdir()
        log_of(tmp_path / str(seed) / f"run-{seed}.toy", seed)
    assert judged(tmp_path, workers=2).count("conforms") == 3


@pytest.mark.spark
def test_executors_read_by_the_adapter_too(tmp_path: Path, spark_session: Any) -> None:
    from viewproof.api.audit import audit_options, survey_inputs
    from viewproof.refinement import spark
    from viewproof.refinement.checker import check_run

    for seed in range(2):
        log_of(tmp_path / f"run-{seed}.toy", seed)
    options = audit_options("native", "core", (), (), TOY)
    report = spark.audit(survey_inputs([str(tmp_path)], options), options, check_run, session=spark_session)
    assert report.count("conforms") == 2, report


def broken_records(file: str) -> Iterator[tuple[int, Record | None]]:
    """An adapter's records with a mistake in them."""
    yield 1, {"run": "r", "node": 0, "seq": 1, "clock": 1, "event": "started", "x_own": 1}


BROKEN = Adapter("broken", "writes an event that there is none", suffixes=(".toy",), records=broken_records)


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        ("sum", "nodes that executed the same entries have the same digest"),
        ("answer", "the answer to an entry is the same, whoever gives it and however often"),
    ],
)
def test_what_differs_is_told_with_the_rule_that_it_breaks(word: str, rule: str, tmp_path: Path) -> None:
    log = log_of(tmp_path / "run.toy", 3)
    lines = log.read_text().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if " applied " in line and f"{word}=" in line)
    lines[last] = re.sub(rf"{word}=\w{{4}}", f"{word}=dead", lines[last])
    log.write_text("".join(lines))
    (violation,) = judged(log).violations
    assert violation.rule == rule


def failing_records(file: str) -> Iterator[tuple[int, Record | None]]:
    yield 7, None
    raise ValueError("no number")


FAILING = Adapter("failing", "fails after a line", suffixes=(".toy",), records=failing_records)


def test_an_adapter_that_fails_is_named_with_the_last_line_that_it_gave(tmp_path: Path) -> None:
    (tmp_path / "a.toy").write_text("\n")
    (problem,) = audit(tmp_path, adapter=f"{__name__}:FAILING").problems
    assert problem.line == 7
    assert f"expected after line 7, a log that the adapter {__name__}:FAILING can read, got ValueError" in str(problem)


def test_a_record_that_is_no_event_is_malformed_input(tmp_path: Path) -> None:
    (tmp_path / "a.toy").write_text("\n")
    report = audit(tmp_path, adapter=f"{__name__}:BROKEN")
    assert report.exit_code == 2
    assert "a.toy:1: event: expected a known event" in str(report.problems[0])
    assert "x_own" in report.carried


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nothing", "is not MODULE:NAME"),
        ("no_such_module:X", "cannot be imported"),
        (":X", "is not MODULE"),
        ("../a:X", "is not MODULE"),
        ("os:path", "is no Adapter"),
    ],
)
def test_what_is_no_adapter_is_refused_by_name(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(AuditOptionError, match=text):
        audit(tmp_path, adapter=name)


def test_an_adapter_that_fails_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_logs.py").write_text("x = 1\ny = x / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AuditOptionError, match=r"ZeroDivisionError.*failing_logs\.py:2"):
        audit(tmp_path, adapter="failing_logs:TOY")


def test_an_adapter_that_ends_the_program_does_not_make_it_conform(tmp_path: Path) -> None:
    (tmp_path / "ending_logs.py").write_text("import sys\nsys.exit(0)\n")
    log_of(tmp_path / "run.toy", 3)
    command = [str(Path(sys.executable).parent / "vsr"), "audit", "run.toy", "--adapter", "ending_logs:TOY"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, "cannot be imported: SystemExit" in result.stderr) == (2, True), result
    toy = (REPLICA.parent / "adapter.py").read_text()
    (tmp_path / "ending_logs.py").write_text(toy + ENDING)
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, "got SystemExit: 0" in result.stdout + result.stderr) == (2, True), result


ENDING = """

def _ending(file):
    yield from ()
    sys.exit(0)


import dataclasses
import sys

TOY = dataclasses.replace(TOY, records=_ending)
"""


def test_an_adapter_in_the_working_directory_is_found(tmp_path: Path) -> None:
    log_of(tmp_path / "run.toy", 3)
    own = (REPLICA.parent / "adapter.py").read_text()
    (tmp_path / "my_logs.py").write_text(own)
    command = [str(Path(sys.executable).parent / "vsr"), "audit", "run.toy", "--adapter", "my_logs:TOY"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert (result.returncode, "1 conforms" in result.stdout) == (0, True), result


@pytest.mark.skipif(shutil.which("go") is None, reason="no Go on this machine")
def test_the_same_adapter_reads_the_toy_replica_in_go(tmp_path: Path) -> None:
    built = tmp_path / "replica"
    env = {**os.environ, "GO111MODULE": "off", "GOCACHE": str(tmp_path / "cache"), "GOFLAGS": ""}
    subprocess.run(["go", "build", "-o", built, REPLICA.with_suffix(".go")], env=env, check=True)
    for seed in range(5):
        subprocess.run([built, tmp_path / "run.toy", str(seed)], check=True)
        assert judged(tmp_path / "run.toy").verdict == "conforms"
    subprocess.run([built, tmp_path / "run.toy", "1", "--hasty"], check=True)
    (found,) = judged(tmp_path / "run.toy").violations
    assert found.action == "commit"
