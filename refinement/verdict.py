"""What an audit answers: options in, violations, verdicts and the report out. Plain, frozen, JSON-serialisable data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from viewproof.refinement.baseline import Baseline, Known, cause
from viewproof.refinement.schema import Row

Verdict = Literal["conforms", "violates", "inconclusive"]
PROBLEM_LIMIT = 20
"""Malformed places shown in full; the rest is a number."""

VERDICTS: tuple[Verdict, ...] = ("conforms", "violates", "inconclusive")
Severity = Literal["error", "warning"]

EXIT_CONFORMS = 0
EXIT_VIOLATES = 1
EXIT_ERROR = 2
EXIT_INCONCLUSIVE = 4


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """How to judge: the profile of the spec, the named deviations (faults) that are permitted, the columns to judge
    without, as if they had never been there, who reads the input, and columns of the configuration that no boot shows.

    `forbid` are departures of the system (`System.departures`) that are refused, where they are else named and leave
    the run inconclusive. `partial`: lines may be missing anywhere, so nothing is concluded from one that is not there.
    """

    profile: str = "core"
    allow: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    adapter: str = "native"
    configuration: tuple[tuple[str, int], ...] = ()
    forbid: tuple[str, ...] = ()
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One of the steps that led to a violation: whose it is, its line, and what it was.

    Of an event that an adapter made: its name, its place in the order (`clock`, `seq`), what it shows of its message
    (`shows`) and of its node (`state`), by column; `used` is the event (node, seq) that sent the message it used;
    `boot` says that the node came up.
    """

    node: int
    file: str
    line: int
    text: str
    event: str = ""
    seq: int = 0
    clock: int = 0
    shows: Mapping[str, int | str] = field(default_factory=dict)
    state: Mapping[str, int | str] = field(default_factory=dict)
    used: tuple[int, int] | None = None
    boot: bool = False

    def __str__(self) -> str:
        who = f"node {self.node}" if self.node >= 0 else "clients"
        return f"{who}: {self.text} [{self.file}:{self.line}]"


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that a run shows of a node: it came up again (`boot`), its view changed (`view`), events are missing
    before this one (`gap`), or something that this event needs is not known (`unknown`).
    """

    kind: Literal["boot", "view", "gap", "unknown"]
    node: int
    clock: int
    text: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Lifeline:
    """A node in a run: how many events, and the clocks of the first and the last of them."""

    node: int
    events: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run at a glance, up to its end: its nodes, and marks in the order of the clocks; `more` are left out."""

    lifelines: tuple[Lifeline, ...] = ()
    marks: tuple[Mark, ...] = ()
    more: int = 0


@dataclass(frozen=True, slots=True)
class Violation:
    """The first event of a run that no behaviour of the spec explains, or an invariant broken, by name.

    `prefix_length` counts the events accepted before it; `state_before` holds the leaves of the spec state
    that the accepted prefix changed; `why_not` says, for the nearest actions, which guard was false with which values;
    `carried` are the columns of the event that the format does not have; `rule` is the rule that was broken, in words;
    `changes` says what of the node fell back or jumped on this line; `story` are the last steps of each replica;
    `place` (`file:line`, below the repository's root) is the guard, action or invariant that refuses the event;
    `mapped_at` is the line of the adapter's event function that refused (`file:line`), if one did.
    """

    run_id: str
    seq: int
    file: str
    line: int
    node: int
    action: str
    rule_id: str
    severity: Severity
    message: str
    expected: str = ""
    observed: str = ""
    rule_fingerprint: str = ""
    prefix_length: int = 0
    state_before: Mapping[str, Any] = field(default_factory=dict)
    why_not: tuple[str, ...] = ()
    carried: Mapping[str, Any] = field(default_factory=dict)
    rule: str = ""
    changes: tuple[str, ...] = ()
    story: tuple[Step, ...] = ()
    place: str = ""
    mapped_at: str = ""

    @property
    def cause(self) -> str:
        """What broke, whatever the values, the file and the run (`viewproof.refinement.baseline`)."""
        return cause(self.rule_id, self.rule_fingerprint or self.message, self.action)


VIOLATION_COLUMNS = (
    "run_id",
    "seq",
    "file",
    "line",
    "node",
    "action",
    "rule_id",
    "severity",
    "message",
    "expected",
    "observed",
    "rule_fingerprint",
)
"""The columns of the violations table (Parquet, NDJSON), in order."""


@dataclass(frozen=True, slots=True)
class AllowedUse:
    """One place where a permitted deviation was needed to explain an event."""

    fault: str
    file: str
    line: int
    node: int
    seq: int


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict on one run.

    `events` were accepted of those `recorded` (0: not counted); `coverage` counts the spec steps taken per action,
    `open_guards` those of them in which missing evidence left a guard open (action/number of the guard, from 0),
    `configuration` is what the run shows of it, by column; `events_by_name` the events judged (accepted, or the one
    refused); `missing` names the evidence that is missing; `notes` are what else a reader should know; `timeline` is
    that of a run which does not conform; `seconds` went by while it was judged.
    """

    run_id: str
    verdict: Verdict
    events: int
    coverage: Mapping[str, int] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    missing: tuple[str, ...] = ()
    allowed_uses: tuple[AllowedUse, ...] = ()
    events_by_name: Mapping[str, int] = field(default_factory=dict)
    recorded: int = 0
    notes: tuple[str, ...] = ()
    timeline: Timeline | None = None
    open_guards: Mapping[str, int] = field(default_factory=dict)
    configuration: Mapping[str, int] = field(default_factory=dict)
    seconds: float = field(default=0.0, compare=False)

    def with_missing(self, reasons: Iterable[str]) -> RunVerdict:
        """The same verdict with evidence found missing: `conforms` becomes `inconclusive`, `violates` stays."""
        missing = (*self.missing, *(reason for reason in reasons if reason not in self.missing))
        verdict: Verdict = "inconclusive" if missing and self.verdict == "conforms" else self.verdict
        return replace(self, missing=missing, verdict=verdict)

    def with_violations(self, found: Iterable[Violation]) -> RunVerdict:
        """The same verdict with more violations; any at all makes it `violates`."""
        violations = (*self.violations, *found)
        return replace(self, violations=violations, verdict="violates" if violations else self.verdict)


@dataclass(frozen=True, slots=True)
class InputProblem:
    """Malformed input: where it is, what was expected and what was there. `line` 0 means the whole file."""

    file: str
    line: int
    field: str
    expected: str
    got: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        field = f"{self.field}: " if self.field else ""
        return f"{place}: {field}expected {self.expected}, got {self.got}"


@dataclass(frozen=True, slots=True)
class UnitResult:
    """What the audit of one unit (the files of one or more runs) gave.

    `runs` are the ids of all runs seen in it, judged or not; `problems` is cut at a limit, `problems_more` counts those
    beyond; `empty` names inputs without an event; `tool_errors` are failures of the audit itself; `spent` are processor
    seconds by phase; `carried` are columns that the format does not have, with where each was first met;
    `unrecognised` are files with lines that their adapter does not know: how many, and the first.
    """

    unit: str
    runs: tuple[str, ...] = ()
    verdicts: tuple[RunVerdict, ...] = ()
    problems: tuple[InputProblem, ...] = ()
    problems_more: int = 0
    empty: tuple[str, ...] = ()
    tool_errors: tuple[str, ...] = ()
    spent: Mapping[str, float] = field(default_factory=dict)
    carried: Mapping[str, str] = field(default_factory=dict)
    unrecognised: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The verdicts of one audit, in order of run id, with all that stood in its way.

    `stopped` says how far an audit came that was interrupted; `baseline` are the known violations, which do not count
    against it.

    `since` says of each run how its verdict is to that of the state it goes on from: new, changed, as before.

    `seconds` went by; `spent` are processor seconds by phase (`read`, `sort`, `check`), over all processes that judge.
    """

    engine: str
    options: AuditOptions
    verdicts: tuple[RunVerdict, ...] = ()
    problems: tuple[InputProblem, ...] = ()
    problems_more: int = 0
    empty: tuple[str, ...] = ()
    tool_errors: tuple[str, ...] = ()
    stopped: str = ""
    seconds: float = 0.0
    spent: Mapping[str, float] = field(default_factory=dict)
    carried: Mapping[str, str] = field(default_factory=dict)
    unrecognised: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    baseline: Baseline | None = None
    since: Mapping[str, str] = field(default_factory=dict)

    @property
    def events(self) -> int:
        """Events that the replay consumed, over all runs."""
        return sum(verdict.events for verdict in self.verdicts)

    @property
    def coverage(self) -> dict[str, int]:
        """How often a step of each spec action was taken, over all runs, by name."""
        return _counts(verdict.coverage for verdict in self.verdicts)

    @property
    def events_by_name(self) -> dict[str, int]:
        """How many events of each name were judged, over all runs."""
        return _counts(verdict.events_by_name for verdict in self.verdicts)

    @property
    def violations(self) -> list[Violation]:
        """Every violation, in order of run."""
        return [violation for verdict in self.verdicts for violation in verdict.violations]

    def known(self, violation: Violation) -> Known | None:
        """The entry of the baseline that knows the violation, if any does."""
        return self.baseline.find(violation.cause, violation.run_id) if self.baseline else None

    def is_known(self, run: RunVerdict) -> bool:
        """Does the run violate, and only as the baseline knows?"""
        return bool(run.violations) and all(self.known(violation) for violation in run.violations)

    @property
    def new_violations(self) -> list[Violation]:
        """The violations that the baseline does not know."""
        return [violation for violation in self.violations if self.known(violation) is None]

    @property
    def unmet(self) -> list[Known]:
        """Entries of the baseline of which no run showed a violation."""
        met = {id(self.known(violation)) for violation in self.violations}
        return [one for one in (self.baseline.known if self.baseline else ()) if id(one) not in met]

    def count(self, verdict: Verdict) -> int:
        """Number of runs with that verdict."""
        return sum(run.verdict == verdict for run in self.verdicts)

    @property
    def exit_code(self) -> int:
        """2 malformed input or tool error · 1 a new violation · 4 inconclusive, empty or nothing checked · 0."""
        if self.problems or self.problems_more or self.tool_errors:
            return EXIT_ERROR
        if any(run.verdict == "violates" and not self.is_known(run) for run in self.verdicts):
            return EXIT_VIOLATES
        if self.count("inconclusive") or self.empty or self.stopped or not self.events:
            return EXIT_INCONCLUSIVE
        return EXIT_CONFORMS

    @property
    def verdict(self) -> str:
        """The verdict in one word: that of the worst run, or `error`; `known` if all that violate are known to."""
        if self.exit_code == EXIT_CONFORMS and self.violations:
            return "known"
        names = {EXIT_CONFORMS: "conforms", EXIT_VIOLATES: "violates", EXIT_INCONCLUSIVE: "inconclusive"}
        return names.get(self.exit_code, "error")

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data, for `--json`."""
        return {
            "format": "viewproof.audit/1",
            "verdict": self.verdict,
            "exit_code": self.exit_code,
            "events": self.events,
            "coverage": self.coverage,
            "events_by_name": self.events_by_name,
            "counts": {name: self.count(name) for name in VERDICTS},
            **dict(msgspec.to_builtins(self)),
        }

    @classmethod
    def combine(
        cls,
        engine: str,
        options: AuditOptions,
        results: Iterable[UnitResult],
        *,
        seconds: float = 0.0,
        stopped: str = "",
    ) -> AuditReport:
        """One report from the results of all units."""
        units = list(results)
        problems = sorted((p for unit in units for p in unit.problems), key=lambda p: (p.file, p.line))
        beyond = sum(unit.problems_more for unit in units) + max(0, len(problems) - PROBLEM_LIMIT)
        return cls(
            engine=engine,
            options=options,
            verdicts=tuple(sorted((v for unit in units for v in unit.verdicts), key=lambda v: natural(v.run_id))),
            problems=tuple(problems[:PROBLEM_LIMIT]),
            problems_more=beyond,
            empty=tuple(sorted(name for unit in units for name in unit.empty)),
            tool_errors=tuple(sorted(error for unit in units for error in unit.tool_errors)),
            stopped=stopped,
            seconds=seconds,
            spent=_sums(unit.spent for unit in units),
            carried={name: place for unit in reversed(units) for name, place in sorted(unit.carried.items())},
            unrecognised={file: found for unit in units for file, found in unit.unrecognised.items()},
        )


def natural(name: str) -> tuple[tuple[str | tuple[int, str], ...], str]:
    """Sorts names with the numbers in them by size: seed-2 before seed-10."""
    parts = re.split("([0-9]+)", name)
    numbers = (part.lstrip("0") for part in parts[1::2])
    key: list[str | tuple[int, str]] = list(parts)
    key[1::2] = [(len(number), number) for number in numbers]
    return tuple(key), name


def _counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))


def _sums(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return dict(sorted(total.items()))


CheckRun = Callable[[str, Iterable[Row], AuditOptions], RunVerdict]
"""`check_run(run_id, events, options)`: the replay. `events` are rows followed by (file, line), sorted, validated; they
can be gone through more than once."""
