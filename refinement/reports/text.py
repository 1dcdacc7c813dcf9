"""The report as text on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterator

from refinement.reports.escape import printable
from refinement.verdict import AuditReport, RunVerdict, Violation

RUNS_SHOWN = 200
"""Conforming runs listed one by one; beyond that they are only counted. Others are always listed."""


def lines(report: AuditReport) -> Iterator[str]:
    """The whole report, line by line; control characters that come from the input are escaped."""
    return map(printable, _lines(report))


def _lines(report: AuditReport) -> Iterator[str]:
    yield from map(str, report.problems)
    if report.problems_more:
        yield f"… and {report.problems_more} more places with malformed input"
    for error in report.tool_errors:
        yield f"tool error: {error}"
    for text in report.empty:
        yield f"nothing to check: {text}"
    conforming = 0
    for verdict in report.verdicts:
        conforming += verdict.verdict == "conforms"
        if verdict.verdict != "conforms" or conforming <= RUNS_SHOWN:
            yield from _run(verdict)
    if conforming > RUNS_SHOWN:
        yield f"… and {conforming - RUNS_SHOWN} more runs that conform"
    yield from _summary(report)


def _run(verdict: RunVerdict) -> Iterator[str]:
    yield f"{verdict.verdict:<13}{verdict.run_id}  ({verdict.events} events)"
    for violation in verdict.violations:
        yield from violation_lines(violation)
    for reason in verdict.missing:
        yield f"    missing: {reason}"
    for fault, count in _allowed(verdict).items():
        first = next(use for use in verdict.allowed_uses if use.fault == fault)
        yield f"    allowed: {fault}, used {count} times, first at {first.file}:{first.line}"


def _allowed(verdict: RunVerdict) -> dict[str, int]:
    counts: dict[str, int] = {}
    for use in verdict.allowed_uses:
        counts[use.fault] = counts.get(use.fault, 0) + 1
    return counts


def violation_lines(violation: Violation) -> Iterator[str]:
    """One violation: place, message, expected and observed, accepted prefix, state before, why not."""
    yield f"    {violation.file}:{violation.line}: {violation.rule_id}: {violation.message}"
    yield f"        event: {violation.action}, node {violation.node}, seq {violation.seq}"
    if violation.expected or violation.observed:
        yield f"        expected: {violation.expected}"
        yield f"        observed: {violation.observed}"
    if violation.prefix_length:
        yield f"        accepted before it: {violation.prefix_length} events"
    if violation.state_before:
        yield "        state before it (what the accepted events changed):"
        for leaf, value in violation.state_before.items():
            yield f"            {leaf} = {value if isinstance(value, str) else json.dumps(value, default=str)}"
    if violation.why_not:
        yield "        why not:"
        for reason in violation.why_not:
            yield f"            {reason}"


def _summary(report: AuditReport) -> Iterator[str]:
    if report.coverage:
        yield "coverage (events or steps explained, per action):"
        width = max(map(len, report.coverage))
        for action, count in report.coverage.items():
            yield f"    {action:<{width}}  {count:>10,}"
    counts = ", ".join(f"{report.count(name)} {name}" for name in ("conforms", "violates", "inconclusive"))
    yield f"{len(report.verdicts)} runs: {counts}; {report.events:,} events checked"
    if not report.events and not report.problems and not report.tool_errors:
        yield "nothing was checked"
    if report.stopped:
        yield report.stopped
    yield f"verdict: {report.verdict} (exit code {report.exit_code})"
