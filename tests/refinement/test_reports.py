"""The report's forms are well formed and say the same as the verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from junitparser import Error, Failure, JUnitXml

from tests.refinement import fakes
from viewproof.refinement.cli import cli
from viewproof.refinement.cli.audit import Dependencies
from viewproof.refinement.reports.github import escape
from viewproof.refinement.reports.junit import clean
from viewproof.refinement.reports.text import coverage_rows
from viewproof.refinement.verdict import VIOLATION_COLUMNS, AuditOptions, AuditReport, RunVerdict, UnitResult, natural


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Three runs: good, violating, with a gap."""
    directory = tmp_path / "traces"
    runs = [fakes.records(name) for name in ("good", "bad<i>", "gap")]
    runs[1][7]["head"] = fakes.BAD_HEAD
    del runs[2][9]
    for records in runs:
        fakes.write_run(directory, records)
    return directory


def audit(*arguments: Any, env: dict[str, str] | None = None) -> Result:
    words = ["audit", *map(str, arguments)]
    return CliRunner().invoke(cli, words, obj=Dependencies(fakes.check_run), env=env)


def test_text(traces: Path) -> None:
    result = audit(traces)
    assert result.exit_code == 1
    assert f"{traces}/bad<i>/replica-0.ndjson:8: fake.head: the head is bad" in result.stdout
    for text in ("expected: good", "observed: bad", "op = 3", "execute: commit_min 2 ≥ 3 is false", "on_prepare "):
        assert text in result.stdout
    assert "3 runs: 1 conforms, 1 violates, 1 inconclusive" in result.stdout
    assert "verdict: violates (exit code 1)" in result.stdout
    assert "local engine" in result.stderr


def test_text_says_how_far_a_run_was_judged_and_names_files_written(traces: Path, tmp_path: Path) -> None:
    result = audit(traces, "--json", tmp_path / "r.json", "--html", tmp_path / "r.html")
    assert "bad<i>  (stopped after 21 of 36 events)" in result.stdout
    assert "good  (36 events)" in result.stdout
    assert f"--json written: {tmp_path / 'r.json'}" in result.stderr
    assert f"--html written: {tmp_path / 'r.html'}" in result.stderr
    assert "stopped after 21 of 36 events" in (tmp_path / "r.html").read_text()


def test_missing_evidence_comes_before_the_violation_that_may_follow_from_it(tmp_path: Path) -> None:
    records = fakes.records("both")
    records[7]["head"] = fakes.BAD_HEAD
    del records[3]
    fakes.write_run(tmp_path / "traces", records)
    result = audit(tmp_path / "traces", "--html", tmp_path / "r.html")
    assert result.exit_code == 1
    gap, violation = result.stdout.index("evidence is missing: seq 4 of node 0"), result.stdout.index("fake.head")
    assert gap < violation
    assert "the violation below may follow from it" in result.stdout
    assert "1 run: 0 conforms, 1 violates" in result.stdout
    assert "evidence is missing: seq 4 of node 0" in (tmp_path / "r.html").read_text()


def test_coverage_has_spec_steps_and_events_by_name() -> None:
    run = RunVerdict("r", "conforms", 3, {"execute": 1, "commit": 1_000}, events_by_name={"execute": 2, "repair": 1})
    report = AuditReport.combine("local", AuditOptions(), [UnitResult("u", verdicts=(run,))])
    assert coverage_rows(report) == [("commit", "1,000", "–"), ("execute", "1", "2"), ("repair", "–", "1")]
    assert report.to_dict()["coverage"] == {"commit": 1_000, "execute": 1}
    assert report.to_dict()["events_by_name"] == {"execute": 2, "repair": 1}


def test_runs_are_in_natural_order() -> None:
    names = ["seed-10", "seed-2", "", "7", "seed-02", "a" * 3, "9" * 5000]
    assert sorted(names, key=natural) == ["", "7", "9" * 5000, "aaa", "seed-02", "seed-2", "seed-10"]


def test_json(traces: Path, tmp_path: Path) -> None:
    audit(traces, "--json", tmp_path / "r.json")
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["verdict"], report["exit_code"]) == ("violates", 1)
    assert report["counts"] == {"conforms": 1, "violates": 1, "inconclusive": 1}
    violation = next(run for run in report["verdicts"] if run["run_id"] == "bad<i>")["violations"][0]
    assert set(VIOLATION_COLUMNS) <= set(violation)
    assert violation["state_before"] == {"op": 3, "log": ["a", "b"]}


def test_junit(traces: Path, tmp_path: Path) -> None:
    audit(traces, "--junit", tmp_path / "r.xml")
    xml = JUnitXml.fromfile(str(tmp_path / "r.xml"))
    cases = {case.name: case for suite in xml for case in suite}
    assert set(cases) == {"input", "good", "bad<i>", "gap"}
    assert not cases["good"].result
    assert not cases["input"].result
    (failure,) = cases["bad<i>"].result
    assert isinstance(failure, Failure)
    assert "the head is bad" in failure.text
    (error,) = cases["gap"].result
    assert isinstance(error, Error)
    assert (xml.tests, xml.failures, xml.errors) == (4, 1, 1)


def test_sarif(traces: Path, tmp_path: Path) -> None:
    audit(traces, "--sarif", tmp_path / "r.sarif")
    log = json.loads((tmp_path / "r.sarif").read_text())
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    (result,) = run["results"]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule["id"] == result["ruleId"] == "fake.head"
    assert {"shortDescription", "fullDescription", "help"} <= set(rule)
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].endswith("/traces/bad%3Ci%3E/replica-0.ndjson")
    assert place["region"] == {"startLine": 8}
    (related,) = result["relatedLocations"]
    spec = related["physicalLocation"]["artifactLocation"]
    assert spec == {"uri": "spec/vsr/core/normal.py", "uriBaseId": "VIEWPROOF"}
    assert spec["uriBaseId"] in run["originalUriBaseIds"]
    (step,) = result["codeFlows"][0]["threadFlows"][0]["locations"]
    trace = step["location"]["physicalLocation"]
    assert trace["artifactLocation"]["uri"].startswith("file:///")
    assert trace["region"] == {"startLine": 8}
    assert result["partialFingerprints"]["viewproof/v2"]
    notices = [notice["message"]["text"] for notice in run["invocations"][0]["toolExecutionNotifications"]]
    assert any("seq 10 of node 0" in notice for notice in notices)


def test_html_is_escaped_and_self_contained(traces: Path, tmp_path: Path) -> None:
    audit(traces, "--html", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "the head is bad &lt;b&gt;&amp;" in page
    assert "bad<i>" not in page
    assert "http://" not in page
    assert "https://" not in page


@pytest.mark.parametrize("name", ["v.parquet", "v.ndjson"])
def test_violations_table(traces: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    audit(traces, "--violations", file)
    if name.endswith(".parquet"):
        rows = pq.read_table(file).to_pylist()
    else:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [list(row) for row in rows] == [list(VIOLATION_COLUMNS)]
    assert (rows[0]["run_id"], rows[0]["line"], rows[0]["rule_fingerprint"]) == ("bad<i>", 8, "f00d")


def test_violations_table_of_another_kind_is_refused(traces: Path, tmp_path: Path) -> None:
    assert audit(traces, "--violations", tmp_path / "v.csv").exit_code == 2


def test_github_annotations_and_summary(traces: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    result = audit(traces, env={"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)})
    place = f"::error file={escape(str(traces), value=True)}/bad<i>/replica-0.ndjson,line=8,title=fake.head::fake.head"
    assert place in result.stdout
    assert "### Audit: violates" in summary.read_text()


def test_places_are_below_the_repository_where_a_code_host_says_which(traces: Path, tmp_path: Path) -> None:
    result = audit(
        traces, "--sarif", tmp_path / "r.sarif", env={"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path)}
    )
    assert "::error file=traces/bad<i>/replica-0.ndjson,line=8" in result.stdout
    (found,) = json.loads((tmp_path / "r.sarif").read_text())["runs"][0]["results"]
    uri = found["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "traces/bad%3Ci%3E/replica-0.ndjson"


def test_a_known_violation_does_not_count_and_is_said(traces: Path, tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    assert audit(traces, "--write-baseline", file).exit_code == 1
    result = audit(traces, "--baseline", file, "--junit", tmp_path / "r.xml", "--sarif", tmp_path / "r.sarif")
    assert result.exit_code == 4  # another run has a gap
    assert "known; what comes after it in this run is not judged" in result.stdout
    assert "0 violations new, 1 known by the baseline" in result.stdout
    assert JUnitXml.fromfile(str(tmp_path / "r.xml")).skipped == 1
    (found,) = json.loads((tmp_path / "r.sarif").read_text())["runs"][0]["results"]
    assert (found["baselineState"], found["level"]) == ("unchanged", "note")
    assert audit(traces, "--baseline", file, "--write-baseline", file).exit_code == 4
    assert len(json.loads(file.read_text())["known"]) == 1


def known_for(traces: Path, file: Path, runs: str) -> Any:
    """Writes what is found as known for some runs; the content of the file."""
    audit(traces, "--write-baseline", file)
    content = json.loads(file.read_text())
    content["known"][0] |= {"runs": runs, "reason": "issue 7"}
    file.write_text(json.dumps(content))
    return content


def test_a_baseline_may_name_runs_and_says_what_no_run_showed(traces: Path, tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    known_for(traces, file, "nightly-*")
    result = audit(traces, "--baseline", file)
    assert result.exit_code == 1
    assert "1 violation new, 0 known" in result.stdout
    assert "(runs nightly-*); no run showed it" in result.stdout


def test_what_is_known_for_some_runs_is_not_written_for_all(traces: Path, tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    content = known_for(traces, file, "bad*")
    assert audit(traces, "--baseline", file, "--write-baseline", file).exit_code == 4
    assert json.loads(file.read_text()) == content


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expected a baseline"),
        ('{"format": "viewproof.baseline/9", "known": []}', "format: expected viewproof.baseline/1"),
        ('{"format": "viewproof.baseline/1", "known": [{"cause": 1}]}', "known"),
        ('{"format": "viewproof.baseline/1", "known": [], "x": 1}', "unknown field"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(traces: Path, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "b.json").write_text(text)
    result = audit(traces, "--baseline", tmp_path / "b.json")
    assert result.exit_code == 2
    assert said in result.stderr
    assert not result.stdout


def test_a_baseline_that_is_not_there_is_refused(traces: Path, tmp_path: Path) -> None:
    assert audit(traces, "--baseline", tmp_path / "none.json").exit_code == 2


def test_escaping() -> None:
    assert escape("50%\r\na:b,c") == "50%25%0D%0Aa:b,c"
    assert escape("a:b,c", value=True) == "a%3Ab%2Cc"
    assert clean("a\x00b\ud800\uffff\n") == "a�b��\n"


def test_exit_codes_of_a_report() -> None:
    def code(*verdicts: str, **more: Any) -> int:
        runs = tuple(RunVerdict(str(n), verdict, 1) for n, verdict in enumerate(verdicts))  # type: ignore[arg-type]
        return AuditReport.combine("local", AuditOptions(), [UnitResult("u", verdicts=runs, **more)]).exit_code

    assert code("conforms") == 0
    assert code("conforms", "violates", "inconclusive") == 1
    assert code("conforms", "inconclusive") == 4
    assert code() == 4
    assert code("conforms", empty=("x",)) == 4
    assert code("violates", problems_more=1) == 2
    assert code("conforms", tool_errors=("x",)) == 2
    no_events = UnitResult("u", verdicts=(RunVerdict("r", "conforms", 0),))
    assert AuditReport.combine("local", AuditOptions(), [no_events]).exit_code == 4
