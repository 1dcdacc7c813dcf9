"""The report as JUnit XML: one test case per run, and one for the input."""

from __future__ import annotations

from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from viewproof.refinement.reports.text import MISSING, violation_lines
from viewproof.refinement.verdict import AuditReport, RunVerdict


def write(report: AuditReport, file: Path) -> None:
    """Write JUnit XML: a violation is a failure, a known one is skipped, an inconclusive run and malformed input an
    error.
    """
    suite = TestSuite("viewproof audit")
    suite.add_testcase(_input_case(report))
    for verdict in report.verdicts:
        suite.add_testcase(_run_case(verdict, report))
    suite.time = round(report.seconds, 3)
    xml = JUnitXml("viewproof")
    xml.add_testsuite(suite)
    xml.update_statistics()
    xml.write(str(file), pretty=True)


def _input_case(report: AuditReport) -> TestCase:
    case = TestCase("input", classname="viewproof.input")
    texts = [
        *map(str, report.problems),
        *report.tool_errors,
        *report.empty,
        *([report.stopped] if report.stopped else ()),
    ]
    if report.problems_more:
        texts.append(f"{report.problems_more} more places with malformed input")
    if not texts and not report.events:
        texts.append("nothing was checked")
    if texts:
        case.result = [_with_body(Error(clean(texts[0]), "input"), "\n".join(texts))]
    return case


def _run_case(verdict: RunVerdict, report: AuditReport) -> TestCase:
    case = TestCase(clean(verdict.run_id), classname="viewproof.run", time=round(verdict.seconds, 3))
    if verdict.notes:
        case.system_out = clean("\n".join(verdict.notes))
    if verdict.violations:
        gaps = (f"{MISSING}: {reason}" for reason in verdict.missing)
        told = (line for violation in verdict.violations for line in violation_lines(violation, why=True))
        body = "\n".join([*gaps, *told])
        first = next((v for v in verdict.violations if report.known(v) is None), verdict.violations[0])
        if report.is_known(verdict):
            known = report.known(first)
            reason = f": {known.reason}" if known and known.reason else ""
            case.result = [_with_body(Skipped(clean(f"known violation{reason}: {first.message}"), "known"), body)]
            return case
        case.result = [_with_body(Failure(clean(first.message), clean(first.rule_id)), body)]
    elif verdict.verdict == "inconclusive":
        reasons = verdict.missing or ("inconclusive, without a named reason",)
        case.result = [_with_body(Error(clean(reasons[0]), "inconclusive"), "\n".join(reasons))]
    return case


def _with_body(result: Error | Failure | Skipped, body: str) -> Error | Failure | Skipped:
    result.text = clean(body)
    return result


def clean(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return "".join(c if _is_of_xml(c) else "�" for c in text)


def _is_of_xml(character: str) -> bool:
    if character in "\n\t":
        return True
    return ord(character) >= 32 and not 0xD800 <= ord(character) < 0xE000 and character not in "\ufffe\uffff"
