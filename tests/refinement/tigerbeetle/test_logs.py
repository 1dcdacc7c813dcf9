"""Verdicts on the shipped logs, on cut and packed ones, and on files that are no such logs."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refinement.tigerbeetle.corruptions import Bench, Judge
from tests.refinement.tigerbeetle.logs import ACKS, CONFORMING, REJECTED, SOLO, judged, lines_of, shipped
from viewproof.api.audit import audit
from viewproof.refinement.cli import cli
from viewproof.refinement.tigerbeetle.reading import segments
from viewproof.refinement.verdict import AuditOptions
from viewproof.spec.lang import SpecError

QUICK = "tigerbeetle-2022-06/seed-12.log.zst"
"""A cluster of one that restarts seven times: 17,000 lines."""


def share_checked(summary: str) -> float:
    """Percentage of the lines that change a replica's state, of a run's summary."""
    found = re.search(r"\(([\d.]+) %\) are checked", summary)
    assert found is not None, summary
    return float(found[1])


def check_rejected(name: str) -> None:
    """It is rejected at its line, for the deviation that explains it; with that permitted it conforms."""
    line, fault = REJECTED[name]
    (verdict,) = judged(shipped(name)).verdicts
    (violation,) = verdict.violations
    assert violation.line == line
    assert any(fault in reason for reason in violation.why_not)
    (permitted,) = judged(shipped(name), fault).verdicts
    assert permitted.verdict == "conforms"
    assert share_checked(permitted.notes[0]) >= 95
    assert {use.fault for use in permitted.allowed_uses} == {fault}


def test_a_log_of_2022_with_a_known_mistake() -> None:
    check_rejected(QUICK)


@pytest.mark.parametrize("name", [CONFORMING[0], CONFORMING[4]])
def test_logs_that_conform(name: str) -> None:
    (verdict,) = judged(shipped(name)).verdicts
    assert verdict.verdict == "conforms"
    assert "0 are unexplained" in verdict.notes[0]
    assert share_checked(verdict.notes[0]) >= 95
    assert verdict.coverage["on_request"] > 20


@pytest.mark.long
@pytest.mark.parametrize("name", [*REJECTED])
def test_all_logs_with_known_mistakes(name: str) -> None:
    check_rejected(name)


@pytest.mark.long
@pytest.mark.parametrize("name", CONFORMING)
def test_all_logs_that_conform(name: str) -> None:
    (verdict,) = judged(shipped(name)).verdicts
    assert verdict.verdict == "conforms"
    assert "0 are unexplained" in verdict.notes[0]
    assert share_checked(verdict.notes[0]) >= 95


@pytest.mark.parametrize("count", [900, 1400, 1536, 1970, 2573])
def test_a_log_that_is_cut_off_is_judged_to_its_end(tmp_path: Path, count: int) -> None:
    lines = lines_of(QUICK, count)
    file = tmp_path / "cut.log"
    file.write_text("\n".join(lines) + "\n[debug] (replica): 0: commit_op: exec")
    (verdict,) = judged(file).verdicts
    assert verdict.verdict == "conforms"
    assert any("cut off" in note for note in verdict.notes)


def test_packed_logs_and_several_runs_in_one(tmp_path: Path) -> None:
    text = "\n".join([*lines_of(QUICK), ""]).encode()
    plain, packed = tmp_path / "two.log", tmp_path / "two.log.gz"
    plain.write_bytes(text * 2)
    packed.write_bytes(gzip.compress(text * 2))
    assert [part.ordinal for part in segments(str(plain))] == [1, 2]
    places = [[v.violations[0].line for v in judged(file).verdicts] for file in (plain, packed)]
    assert places[0] == [2574, 2574 + text.count(b"\n")]
    assert places[1] == places[0]


def test_a_panic_of_the_build_is_a_violation(tmp_path: Path) -> None:
    file = tmp_path / "panic.log"
    file.write_text("\n".join([*lines_of(QUICK, 1500), "thread 7 panic: reached unreachable code", ""]))
    (violation,) = judged(file).verdicts[0].violations
    assert (violation.rule_id, violation.line) == ("panic", 1501)


def test_a_specification_that_cannot_be_recorded_is_no_fault_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise SpecError("not recorded")

    monkeypatch.setattr("viewproof.refinement.checker.whole.compile_program", broken)
    report = judged(shipped(QUICK))
    assert (report.verdicts, report.exit_code) == ((), 2)
    assert "SpecError: not recorded" in report.tool_errors[0]


def test_a_file_that_is_no_log_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "other.log"
    file.write_text("hello\n")
    result = CliRunner().invoke(cli, ["audit", "--input", "tigerbeetle", str(file)])
    assert result.exit_code == 2
    assert "expected the debug log of a TigerBeetle simulator" in result.output
    assert CliRunner().invoke(cli, ["audit", "--input", "tigerbeetle", str(tmp_path / "no")]).exit_code == 2


def test_options_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    file.write_text("hello\n")
    unknown = CliRunner().invoke(cli, ["audit", "--input", "tigerbeetle", "--allow", "no.such", str(file)])
    assert unknown.exit_code == 2
    assert ACKS in unknown.output
    native = CliRunner().invoke(cli, ["audit", "--profile", "tigerbeetle-2022", str(file)])
    assert native.exit_code == 2


def test_the_wrong_profile_is_refused() -> None:
    result = audit(shipped(QUICK), input="tigerbeetle", profile="tigerbeetle-2026", allow=(SOLO,))
    assert "tigerbeetle-2026" in str(result.problems[0])


def test_the_report_goes_out_in_every_form(tmp_path: Path) -> None:
    names = {"json": "r.json", "junit": "r.xml", "sarif": "r.sarif", "html": "r.html", "violations": "r.ndjson"}
    options = [text for option, name in names.items() for text in (f"--{option}", str(tmp_path / name))]
    result = CliRunner().invoke(cli, ["audit", "--input", "tigerbeetle", shipped(QUICK), *options])
    assert result.exit_code == 1
    assert "of the protocol's" in result.output
    assert all((tmp_path / name).stat().st_size for name in names.values())
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["coverage"]["on_request"] == 4
    assert report["coverage"]["do_view_change"] == 0


@pytest.mark.long
@pytest.mark.spark
def test_spark_gives_the_same_verdicts() -> None:
    folder = str(Path(shipped(QUICK)).parent)
    runner = CliRunner()
    outputs = []
    for engine in ("local", "spark"):
        result = runner.invoke(cli, ["audit", "--input", "tigerbeetle", "--engine", engine, folder])
        assert result.exit_code == 1
        outputs.append([line for line in result.stdout.splitlines() if line[:9] in ("conforms ", "violates ")])
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) == 6


@pytest.mark.parametrize(("name", "count"), [(QUICK, 2560), (CONFORMING[3], 4500)])
@pytest.mark.parametrize("broken", [False, True])
def test_the_reference_interpreter_gives_the_same_verdict(tmp_path: Path, name: str, count: int, broken: bool) -> None:
    """Of the beginning of a log, and of one whose last step of a replica is told of another op."""
    lines = lines_of(name, count)
    if broken:
        at = max(n for n, line in enumerate(lines) if "executing view=" in line)
        lines[at] = re.sub(r" op=(\d+)", lambda found: f" op={int(found[1]) + 1}", lines[at])
    file = tmp_path / "head.log"
    file.write_text("\n".join([*lines, ""]))
    (compiled,), (slow,) = (
        audit(str(file), input="tigerbeetle", interp=interp).verdicts for interp in (False, True)
    )  # fmt: skip
    assert compiled.verdict == ("violates" if broken else "conforms")
    assert (compiled.events, compiled.coverage, compiled.missing) == (slow.events, slow.coverage, slow.missing)
    places = [[(v.line, v.rule_id, v.message, v.mapped_at) for v in one.violations] for one in (compiled, slow)]
    assert places[0] == places[1]


def test_a_violation_shows_the_values_of_the_guard() -> None:
    (verdict,) = judged(shipped(QUICK)).verdicts
    (violation,) = verdict.violations
    assert violation.rule.startswith("The primary prepares a request")
    assert violation.story[-1].line == violation.line
    file, _, line = violation.place.rpartition(":")
    assert file == "spec/vsr/tigerbeetle/normal_2022.py"
    assert Path(file).read_text().splitlines()[int(line) - 1].strip() == f"require({violation.expected})"
    assert re.fullmatch(r"view\[0\] = 0, op\[0\] = 1, prepared\[0, 2\] = \d{30,}", violation.observed)
    assert violation.state_before["commit_min[0]"] == "1"
    assert "(--allow view.solo_keeps_view)" in violation.why_not[1]


def test_every_rejection_is_told_in_words() -> None:
    """Of single changes of a log: rule, expected and observed are there, and a place in TigerBeetle's specification."""
    bench = Bench(shipped(QUICK), AuditOptions("core", (SOLO,)))
    told = 0
    for corruption in list(bench.corruptions(30, seed=5)):
        judge = Judge(bench.segment, bench.cluster, bench.options)
        if judge.feed(bench.corrupted(corruption)):
            continue
        found = judge.violation
        assert found is not None
        assert all((found.rule, found.expected, found.observed, found.story)), found
        assert found.place.startswith("spec/vsr/tigerbeetle/") or not found.place, found
        told += bool(found.place)
    assert told > 15
