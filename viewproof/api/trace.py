"""A run of recorded traces as it was replayed, event by event."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from viewproof.api.audit import audit_options, judge_inputs, survey_inputs
from viewproof.refinement.adapter import adapter as load_adapter
from viewproof.refinement.checker import check_run
from viewproof.refinement.checker.recording import Recording, record
from viewproof.refinement.schema import Row
from viewproof.refinement.verdict import AuditOptions, AuditReport, RunVerdict
from viewproof.spec.lang import SpecError

_ORDER = {"violates": 0, "inconclusive": 1, "conforms": 2}


class TraceError(ValueError):
    """The traces hold no run to look at, or not the one that was asked for."""


def record_run(
    *paths: str | Path,
    run: str = "",
    input: str = "native",
    adapter: str = "",
    allow: Sequence[str] = (),
    configuration: Mapping[str, int] | None = None,
) -> tuple[RunVerdict, Recording]:
    """The verdict on one run of the traces under `paths`, and its last events as they were replayed.

    `run` names it; without, it is the first that violates, else one that is inconclusive, else the first. Raises
    `TraceError` where there is none, `AuditOptionError` for the other options, which are those of `audit`.
    """
    options = audit_options(input, "core", allow, (), adapter, configuration)
    system = load_adapter(options.adapter).system
    if system.profile.whole:
        text = f"logs of {system.name} are gone through once, and cannot be looked at event by event"
        raise TraceError(f"{text}; vsr audit --html FILE shows the events before a violation, step by step")
    kept = _Kept(run)
    report = judge_inputs(
        survey_inputs([str(path) for path in paths], options), options, kept.check, engine="local", master="", workers=1
    )
    if kept.verdict is None:
        raise TraceError(_why_none(report, run))
    verdict = next(one for one in report.verdicts if one.run_id == kept.verdict.run_id)
    try:
        return verdict, record(verdict.run_id, kept.rows, options, system)
    except SpecError as error:
        raise TraceError(f"run {verdict.run_id} cannot be replayed event by event: {error.message}") from None


class _Kept:
    """A replay that keeps the rows of the run that is wanted."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.verdict: RunVerdict | None = None
        self.rows: list[Row] = []

    def check(self, run_id: str, events: Iterable[Row], options: AuditOptions) -> RunVerdict:
        """Judge a run, and keep its rows if it is wanted."""
        rows = list(events)
        verdict = check_run(run_id, rows, options)
        best = self.verdict
        if self.wanted:
            better = run_id == self.wanted
        else:
            better = best is None or _ORDER[verdict.verdict] < _ORDER[best.verdict]
        if better and rows:
            self.verdict, self.rows = verdict, rows
        return verdict


def _why_none(report: AuditReport, run: str) -> str:
    if report.problems or report.tool_errors:
        return str([*report.problems, *report.tool_errors][0])
    if run and report.verdicts:
        names = ", ".join(verdict.run_id for verdict in report.verdicts[:8])
        return f"there is no run {run}; there are: {names}{', …' if len(report.verdicts) > 8 else ''}"
    return next(iter(report.empty), "the traces hold no event")
