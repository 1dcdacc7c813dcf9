"""The report as SARIF 2.1.0, for code hosts and editors.

A result's primary location is the spec action (or invariant) that was broken; the trace line is in its code flow.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec

from viewproof.refinement.places import spec_place
from viewproof.refinement.reports.text import violation_lines
from viewproof.refinement.verdict import AuditReport, Violation

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def write(report: AuditReport, file: Path) -> None:
    """Write one SARIF run with a result per violation."""
    file.write_bytes(msgspec.json.format(msgspec.json.encode(to_dict(report)), indent=2))


def to_dict(report: AuditReport) -> dict[str, Any]:
    """The report as a SARIF log: rules, results, and what stood in the way as notifications."""
    rules = sorted({violation.rule_id for violation in report.violations})
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
                        ("note", _waivers(report)),
                    )
                    for text in texts
                ],
            }
        ],
        "columnKind": "unicodeCodePoints",
        "results": [_result(violation, rules.index(violation.rule_id)) for violation in report.violations],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _inconclusive(report: AuditReport) -> list[str]:
    return [f"{verdict.run_id}: {reason}" for verdict in report.verdicts for reason in verdict.missing]


def _waivers(report: AuditReport) -> list[str]:
    """What was judged as if it were not there, or permitted."""
    without = [f"judged without {name}, as if it were never shown" for name in report.options.without]
    return [*without, *(f"the deviation {id} is permitted" for id in report.options.allow)]


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


def _result(violation: Violation, index: int) -> dict[str, Any]:
    trace = _location(violation.file, violation.line, f"{violation.action}, node {violation.node}, seq {violation.seq}")
    primary = _location(*(spec_place(violation) or (violation.file, violation.line)), violation.message)
    primary["logicalLocations"] = [{"name": violation.action, "fullyQualifiedName": f"spec.{violation.action}"}]
    identity = "|".join((violation.rule_id, violation.rule_fingerprint, violation.action, violation.expected))
    fingerprint = hashlib.blake2b(identity.encode(), digest_size=16)
    return {
        "ruleId": violation.rule_id,
        "ruleIndex": index,
        "level": violation.severity,
        "message": {"text": "\n".join(line.strip() for line in violation_lines(violation))},
        "locations": [primary],
        "relatedLocations": _mapped(violation),
        "partialFingerprints": {"viewproof/v1": fingerprint.hexdigest()},
        "codeFlows": [{"threadFlows": [*_flows(violation), {"locations": [{"location": trace}]}]}],
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
        steps = [step for step in violation.story if step.node == node]
        yield {
            "id": f"node {node}" if node >= 0 else "clients",
            "locations": [{"location": _location(step.file, step.line, step.text)} for step in steps],
        }


def _mapped(violation: Violation) -> list[dict[str, Any]]:
    """The line of the adapter that says what the event stands for, if it was that one which refused."""
    file, _, line = violation.mapped_at.rpartition(":")
    return [_location(file, int(line), f"what {violation.action} stands for")] if file else []


def _location(file: str, line: int, text: str) -> dict[str, Any]:
    return {
        "message": {"text": text},
        "physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": max(1, line)}},
    }


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else path.as_posix()
