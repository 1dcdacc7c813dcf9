"""What many runs have in common: violations by cause, and missing evidence by its kind."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from viewproof.refinement.verdict import AuditReport, RunVerdict, Violation

_PLACE = re.compile(r"\S+:\d+")
_NUMBER = re.compile(r"\d[\d,]*")


@dataclass
class Cause:
    """One mistake, in however many runs: each run once, with its first violation of this cause."""

    id: str
    found: list[tuple[RunVerdict, Violation]] = field(default_factory=list)
    count: int = 0
    known: int = 0

    @property
    def first(self) -> Violation:
        """The violation that stands for all."""
        return self.found[0][1]


@dataclass
class Reason:
    """One kind of evidence that is missing: the first text of it, and the runs."""

    text: str
    runs: list[RunVerdict] = field(default_factory=list)


def causes(report: AuditReport) -> list[Cause]:
    """The causes of all violations: new ones first, then those in the most runs."""
    found: dict[str, Cause] = {}
    for run in report.verdicts:
        for violation in run.violations:
            cause = found.setdefault(violation.cause, Cause(violation.cause))
            cause.count += 1
            cause.known += report.known(violation) is not None
            if not cause.found or cause.found[-1][0] is not run:
                cause.found.append((run, violation))
    return sorted(found.values(), key=lambda cause: (cause.known == cause.count, -len(cause.found)))


def reasons(runs: Iterable[RunVerdict]) -> list[Reason]:
    """What was missing in runs that are inconclusive, whatever the numbers and places: in the most runs first."""
    found: dict[str, Reason] = {}
    for run in runs:
        if run.verdict != "inconclusive":
            continue
        for kind, text in {kind_of(text): text for text in reversed(run.missing)}.items():
            found.setdefault(kind, Reason(text)).runs.append(run)
    return sorted(found.values(), key=lambda reason: -len(reason.runs))


def kind_of(reason: str) -> str:
    """A reason without its places and numbers."""
    return _NUMBER.sub("N", _PLACE.sub("…", reason))
