"""Annotations and a summary for a run inside GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from viewproof.refinement.reports.paths import in_repository
from viewproof.refinement.verdict import AuditReport, Violation

LISTED = 20
"""Of each kind in a summary."""
ANNOTATIONS_MAX = 10
"""GitHub shows ten annotations a step."""


def escape(text: str, *, value: bool = False) -> str:
    """Escape the text of a workflow command, or one of its property values."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if value else text


def workflow_commands(report: AuditReport) -> Iterator[str]:
    """`::error` lines for malformed input and violations, the first `ANNOTATIONS_MAX`; `::warning` for known ones."""
    places = [("error", "malformed input", p.file, p.line, str(p)) for p in report.problems]
    new = [v for v in report.violations if report.known(v) is None]
    old = [v for v in report.violations if report.known(v) is not None]
    places += [("error", v.rule_id, v.file, v.line, f"{v.rule_id}: {v.message}") for v in new]
    places += [("warning", f"{v.rule_id}, known", v.file, v.line, f"{v.rule_id}: {v.message}") for v in old]
    for level, title, file, line, text in places[:ANNOTATIONS_MAX]:
        place = f"file={escape(in_repository(file), value=True)},line={max(1, line)}"
        yield f"::{level} {place},title={escape(title, value=True)}::{escape(text)}"


def _where(violation: Violation) -> str:
    place = f"{in_repository(violation.file)}:{violation.line}"
    return f"{violation.rule_id} in {violation.run_id} at {place}: {violation.message}"


def write_summary(report: AuditReport, environment: Mapping[str, str]) -> None:
    """Append a table of verdicts to the step's summary, where GitHub asks for one."""
    target = environment.get("GITHUB_STEP_SUMMARY")
    if not target:
        return
    rows = [f"| {name} | {report.count(name)} |" for name in ("conforms", "violates", "inconclusive")]
    known = [v for v in report.violations if report.known(v) is not None]
    text = [
        f"### Audit: {report.verdict}",
        "",
        f"{report.events:,} events checked",
        "",
        "| verdict | runs |",
        "|---|---|",
    ]
    text += [*rows, "", *(f"Malformed input: {problem}" for problem in report.problems[:LISTED])]
    text += [f"Tool error: {error}" for error in report.tool_errors[:LISTED]]
    text += [f"Violation: {_where(v)}" for v in report.new_violations[:LISTED]]
    text += [f"{len(known)} known.", *(f"Known: {_where(v)}" for v in known[:LISTED])] if known else []
    text += ["", *(f"Judged without `{name}`, as if it were never shown." for name in report.options.without)]
    with Path(target).open("a", encoding="utf-8") as stream:
        stream.write("\n".join([*text, ""]) + "\n")
