"""The report as SARIF 2.1.0, for code hosts and editors.

A result's primary location is the line of the trace, below the repository that is worked on: that is where a code host
shows it. Related locations are the spec's guard, action or invariant that refuses it, and the line of the adapter that
says what it stands for; code flows hold the steps that led there. A code host takes only so many results: what is left
off is said in a notification.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from viewproof.refinement.places import spec_place
from viewproof.refinement.reports.paths import in_repository
from viewproof.refinement.reports.text import violation_lines
from viewproof.refinement.verdict import AuditReport, Violation

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RESULTS_MAX = 5_000
"""GitHub shows 5,000 results of a file, and refuses one with more than 25,000."""
STEPS_MAX = 1_000
"""GitHub shows as many locations of a thread flow."""
SPECIFICATION = "VIEWPROOF"
"""The base of places in Viewproof's own tree."""


def write(report: AuditReport, file: Path) -> None:
    """Write one SARIF run with a result per violation."""
    file.write_bytes(msgspec.json.format(msgspec.json.encode(to_dict(report)), indent=2))


def to_dict(report: AuditReport) -> dict[str, Any]:
    """The report as a SARIF log: rules, results, and what stood in the way as notifications."""
    shown = report.violations[:RESULTS_MAX]
    rules = sorted({violation.rule_id for violation in shown})
    notices = [*map(str, report.problems), *report.tool_errors]
    run = {
        "tool": {
            "driver": {
                "name": "viewproof",
                "semanticVersion": _version(),
                "rules": [_rule(rule, report) for rule in rules],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not notices,
                "exitCode": report.exit_code,
                "toolExecutionNotifications": [
                    {"level": level, "message": {"text": text}}
                    for level, texts in (
                        ("error", notices),
                        ("warning", [*report.empty, *_inconclusive(report)]),
                        ("note", [*_waivers(report), *_left_off(report)]),
                    )
                    for text in texts
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {SPECIFICATION: {"description": {"text": "the root of Viewproof's source"}}},
        "results": [_result(violation, rules.index(violation.rule_id), report) for violation in shown],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _inconclusive(report: AuditReport) -> list[str]:
    return [f"{verdict.run_id}: {reason}" for verdict in report.verdicts for reason in verdict.missing]


def _waivers(report: AuditReport) -> list[str]:
    """What was judged as if it were not there, or permitted."""
    without = [f"judged without {name}, as if it were never shown" for name in report.options.without]
    return [*without, *(f"the deviation {id} is permitted" for id in report.options.allow)]


def _left_off(report: AuditReport) -> list[str]:
    """What of the report is not in the file, or does not count."""
    more = len(report.violations) - RESULTS_MAX
    left = [f"{more} more violations are not in this file"] if more > 0 else []
    return [*left, *(f"the baseline knows {k.rule_id} at {k.action}; no run showed it" for k in report.unmet)]


def _version() -> str:
    try:
        return version("viewproof")
    except PackageNotFoundError:
        return "0.0.0"


def _rule(rule: str, report: AuditReport) -> dict[str, Any]:
    example = next(violation for violation in report.violations if violation.rule_id == rule)
    text = f"{rule}: {example.rule.rstrip('.') or f'no behaviour of the spec explains the event ({example.action})'}"
    return {
        "id": rule,
        "name": "".join(part.capitalize() for part in rule.replace(".", "_").split("_")),
        "shortDescription": {"text": f"{rule} is broken"},
        "fullDescription": {"text": text},
        "help": {
            "text": f"{text}. Profile {report.options.profile}. See {_document(report)} for what the spec allows."
        },
        "defaultConfiguration": {"level": "error"},
    }


def _document(report: AuditReport) -> str:
    own = any(violation.place.startswith("spec/vsr/tigerbeetle") for violation in report.violations)
    return "docs/tigerbeetle.md" if own else "docs/core-protocol.md"


def _result(violation: Violation, index: int, report: AuditReport) -> dict[str, Any]:
    what = f"{violation.action}, node {violation.node}, seq {violation.seq}"
    primary = _location(violation.file, violation.line, violation.message)
    primary["logicalLocations"] = [{"name": violation.action, "fullyQualifiedName": f"spec.{violation.action}"}]
    known = report.known(violation)
    return {
        "ruleId": violation.rule_id,
        "ruleIndex": index,
        "level": violation.severity if known is None else "note",
        "message": {"text": "\n".join(line.strip() for line in violation_lines(violation))},
        "locations": [primary],
        "relatedLocations": [*_refused_at(violation), *_mapped(violation)],
        "partialFingerprints": {"viewproof/v2": violation.cause},
        "codeFlows": [
            {
                "threadFlows": [
                    *_flows(violation),
                    {"locations": [{"location": _location(violation.file, violation.line, what)}]},
                ]
            }
        ],
        **({"baselineState": "new" if known is None else "unchanged"} if report.baseline else {}),
        **({"suppressions": [{"kind": "external", "justification": known.reason}]} if known else {}),
        "properties": {
            "run": violation.run_id,
            "node": violation.node,
            "seq": violation.seq,
            "rule": violation.rule,
            "changes": list(violation.changes),
            "story": [str(step) for step in violation.story],
        },
    }


def _flows(violation: Violation) -> Iterator[dict[str, Any]]:
    """The steps that led there, a flow per replica."""
    for node in dict.fromkeys(step.node for step in violation.story):
        steps = [step for step in violation.story if step.node == node][-STEPS_MAX:]
        yield {
            "id": f"node {node}" if node >= 0 else "clients",
            "locations": [{"location": _location(step.file, step.line, step.text)} for step in steps],
        }


def _refused_at(violation: Violation) -> list[dict[str, Any]]:
    """The guard, action or invariant of the specification that refuses the event."""
    place = spec_place(violation)
    if place is None:
        return []
    found = _location(*place, f"{violation.rule_id}: what the specification says")
    if not Path(place[0]).is_absolute():
        found["physicalLocation"]["artifactLocation"] = {"uri": place[0], "uriBaseId": SPECIFICATION}
    return [{"id": 1, **found}]


def _mapped(violation: Violation) -> list[dict[str, Any]]:
    """The line of the adapter that says what the event stands for, if it was that one which refused."""
    file, _, line = violation.mapped_at.rpartition(":")
    return [{"id": 2, **_location(file, int(line), f"what {violation.action} stands for")}] if file else []


def _location(file: str, line: int, text: str) -> dict[str, Any]:
    return {
        "message": {"text": text},
        "physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": max(1, line)}},
    }


def _uri(file: str) -> str:
    shown = in_repository(file)
    return Path(shown).as_uri() if Path(shown).is_absolute() else quote(shown)
