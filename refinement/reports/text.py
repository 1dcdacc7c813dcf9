"""The report as text on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from viewproof.refinement.reports.escape import printable
from viewproof.refinement.schema import COLUMNS, nearest
from viewproof.refinement.verdict import AuditReport, RunVerdict, Violation

RUNS_SHOWN = 200
"""Conforming runs listed one by one; beyond that they are only counted. Others are always listed."""

OLD = "as before"
"""Said of a run whose verdict is that of the state that the audit goes on from, for the same reasons."""

MISSING = "evidence is missing"
"""Said of a run that violates, before its violations: what is missing may be what they follow from."""


def lines(report: AuditReport, *, why: bool = False) -> Iterator[str]:
    """The whole report, line by line; control characters that come from the input are escaped.

    `why`: with the steps of each replica that led to a violation.
    """
    return map(printable, _lines(report, why))


def _lines(report: AuditReport, why: bool) -> Iterator[str]:
    yield from map(str, report.problems)
    if report.problems_more:
        yield f"… and {report.problems_more} more places with malformed input"
    for error in report.tool_errors:
        yield f"tool error: {error}"
    for text in report.empty:
        yield f"nothing to check: {text}"
    for file, (count, first) in report.unrecognised.items():
        yield f"{file}: {number(count, 'line')} not recognised, the first is line {first}"
    conforming = 0
    for verdict in report.verdicts:
        conforming += verdict.verdict == "conforms"
        if verdict.verdict == "conforms" and conforming > RUNS_SHOWN:
            continue
        if why or report.since.get(verdict.run_id) != OLD:
            yield from _run(verdict, why, report)
        else:
            yield from _old(verdict)
    if conforming > RUNS_SHOWN:
        yield f"… and {conforming - RUNS_SHOWN} more runs that conform"
    yield from _summary(report)


def _old(verdict: RunVerdict) -> Iterator[str]:
    """A run of which all that is said was said before: each thing in one line."""
    yield f"{verdict.verdict:<13}{verdict.run_id}  ({how_far(verdict)}, {OLD})"
    for violation in verdict.violations:
        yield f"    {violation.file}:{violation.line}: {violation.rule_id}: {violation.message}"
    if not verdict.violations and verdict.missing:
        more = f", and {len(verdict.missing) - 1} more" if len(verdict.missing) > 1 else ""
        yield f"    missing: {verdict.missing[0]}{more}"


def _run(verdict: RunVerdict, why: bool, report: AuditReport) -> Iterator[str]:
    since = f", {report.since[verdict.run_id]}" if verdict.run_id in report.since else ""
    yield f"{verdict.verdict:<13}{verdict.run_id}  ({how_far(verdict)}{since})"
    if verdict.violations:
        for reason in verdict.missing:
            yield f"    {MISSING}: {reason}; the violation below may follow from it"
    for violation in verdict.violations:
        yield from violation_lines(violation, why=why)
        if known := report.known(violation):
            reason = f": {known.reason}" if known.reason else ""
            yield f"        known{reason}; what comes after it in this run is not judged"
    if not verdict.violations:
        for reason in verdict.missing:
            yield f"    missing: {reason}"
    for note in verdict.notes:
        yield f"    {note}"
    for fault, count in _allowed(verdict).items():
        first = next(use for use in verdict.allowed_uses if use.fault == fault)
        named = any(reason.startswith(f"{fault}; ") for reason in verdict.missing)
        what = "departs" if named else "allowed"
        yield f"    {what}: {fault}, used {number(count, 'time')}, first at {first.file}:{first.line}"


def how_far(verdict: RunVerdict) -> str:
    """`2,801 events`, or `stopped after 92 of 2,801 events`."""
    if verdict.events < verdict.recorded:
        return f"stopped after {verdict.events:,} of {number(verdict.recorded, 'event')}"
    if verdict.violations and not verdict.recorded:
        return f"stopped after {number(verdict.events, 'event')}"
    return number(verdict.events, "event")


def number(count: int, noun: str) -> str:
    """`1 run`, `2,000 runs`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def coverage_rows(report: AuditReport) -> list[tuple[str, str, str]]:
    """Per name of an action or event: spec steps taken and events judged; "–" where there is no such one."""
    steps, events = report.coverage, report.events_by_name

    def shown(counts: Mapping[str, int], name: str) -> str:
        return f"{counts[name]:,}" if name in counts else "–"

    return [(name, shown(steps, name), shown(events, name)) for name in sorted({*steps, *events})]


def _allowed(verdict: RunVerdict) -> dict[str, int]:
    counts: dict[str, int] = {}
    for use in verdict.allowed_uses:
        counts[use.fault] = counts.get(use.fault, 0) + 1
    return counts


def violation_lines(violation: Violation, *, why: bool = False) -> Iterator[str]:
    """One violation: place, message, rule, expected and observed, accepted prefix, state before, why not; and `why`."""
    yield f"    {violation.file}:{violation.line}: {violation.rule_id}: {violation.message}"
    yield f"        event: {violation.action}, node {violation.node}, seq {violation.seq}"
    if violation.mapped_at:
        yield f"        stands for it: {violation.mapped_at}"
    if violation.rule:
        yield f"        rule: {violation.rule}"
    if violation.expected or violation.observed:
        yield f"        expected: {violation.expected}"
        yield f"        observed: {violation.observed}"
    if violation.changes:
        yield f"        on this line: {', '.join(violation.changes)}"
    for name, value in violation.carried.items():
        yield f"        {name}: {value if isinstance(value, str) else json.dumps(value, default=str)}"
    if violation.prefix_length:
        yield f"        accepted before it: {number(violation.prefix_length, 'event')}"
    if violation.state_before:
        yield "        state before it (what the accepted events changed):"
        for leaf, value in violation.state_before.items():
            yield f"            {leaf} = {value if isinstance(value, str) else json.dumps(value, default=str)}"
    if violation.why_not:
        yield "        why not:"
        for reason in violation.why_not:
            yield f"            {reason}"
    if why and violation.story:
        yield "        what led there:"
        for step in violation.story:
            yield f"            {step}"


def _summary(report: AuditReport) -> Iterator[str]:
    rows = coverage_rows(report)
    if rows:
        width = max(len(name) for name, _, _ in rows)
        yield f"{'action or event':<{width + 4}}  {'spec steps taken':>16}  {'events judged':>13}"
        for name, steps, events in rows:
            yield f"    {name:<{width}}  {steps:>16}  {events:>13}"
    counts = ", ".join(f"{report.count(name)} {name}" for name in ("conforms", "violates", "inconclusive"))
    yield f"{number(len(report.verdicts), 'run')}: {counts}; {number(report.events, 'event')} checked"
    if report.since:
        words = {word: sum(one == word for one in report.since.values()) for word in ("new", "changed", OLD)}
        told = ", ".join(f"{count} {word}" for word, count in words.items() if count)
        yield f"since the state: {told}" + ("; --why tells the old ones again" if words[OLD] else "")
    if not report.events and not report.problems and not report.tool_errors:
        yield "nothing was checked"
    for name, place in report.carried.items():
        yield f"{name} is no column of the format{nearest(name, COLUMNS)}: carried along, not judged (first at {place})"
    if report.baseline:
        known = len(report.violations) - len(report.new_violations)
        yield f"{number(len(report.new_violations), 'violation')} new, {known} known by the baseline"
        for one in report.unmet:
            yield f"the baseline knows {one.rule_id} at {one.action} (runs {one.runs}); no run showed it"
    if report.stopped:
        yield report.stopped
    yield f"verdict: {report.verdict} (exit code {report.exit_code})"
