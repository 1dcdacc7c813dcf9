"""Annotations and a summary for a run inside GitHub Actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from viewproof.refinement.verdict import AuditReport

ANNOTATIONS_MAX = 10
"""GitHub shows ten annotations a step."""


def escape(text: str, *, value: bool = False) -> str:
    """Escape the text of a workflow command, or one of its property values."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if value else text


def error_lines(report: AuditReport) -> Iterator[str]:
    """`::error` lines for malformed input and violations, the first `ANNOTATIONS_MAX`."""
    places = [(p.file, p.line, str(p)) for p in report.problems]
    places += [(v.file, v.line, f"{v.rule_id}: {v.message}") for v in report.violations]
    for file, line, text in places[:ANNOTATIONS_MAX]:
        yield f"::error file={escape(file, value=True)},line={max(1, line)}::{escape(text)}"


def write_summary(report: AuditReport, environment: Mapping[str, str]) -> None:
    """Append a table of verdicts to the step's summary, where GitHub asks for one."""
    target = environment.get("GITHUB_STEP_SUMMARY")
    if not target:
        return
    rows = [f"| {name} | {report.count(name)} |" for name in ("conforms", "violates", "inconclusive")]
    text = [
        f"### Audit: {report.verdict}",
        "",
        f"{report.events:,} events checked",
        "",
        "| verdict | runs |",
        "|---|---|",
    ]
    text += ["", *(f"Judged without `{name}`, as if it were never shown." for name in report.options.without)]
    with Path(target).open("a", encoding="utf-8") as stream:
        stream.write("\n".join([*text, *rows, ""]) + "\n")
