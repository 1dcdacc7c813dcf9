"""Verdicts of log files: the units of an input, their runs judged record by record, and why one is refused."""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from viewproof.refinement.checker.explain import LEAVES_MAX
from viewproof.refinement.logs.order import Record
from viewproof.refinement.logs.record import Events
from viewproof.refinement.logs.replay import Reject, Run
from viewproof.refinement.logs.source import LoggedRun, Source
from viewproof.refinement.logs.systems import system as named
from viewproof.refinement.parts import Progress, judge_here
from viewproof.refinement.tigerbeetle.inputs import Logs
from viewproof.refinement.value_text import show_value
from viewproof.refinement.verdict import (
    AuditOptions,
    AuditReport,
    InputProblem,
    RunVerdict,
    Step,
    UnitResult,
    Violation,
)
from viewproof.spec.engines.guards import Span, refusal
from viewproof.spec.lang.definitions import Spec

STORY = 6
"""Last records of each node that a violation is told with."""
PANIC = "panic"
"""The event of a record that says that the system stopped itself: the run is judged up to it."""


@dataclass(frozen=True)
class System:
    """A system whose logs can be judged: how they are read, what their records mean, and the specification.

    `whole(file)` says whether a file is a run of its own (lines of several processes), or of one process; those of one
    directory are one run then. `build(config)` makes the specification of a run, `title(config)` names it.
    `changing` are the events that change a state, `fields` what their lines say of it (for `corrupt`).
    `unshown(config, judged)` names what no line of such a run shows, by the events that were judged.
    """

    name: str
    title: Callable[[Any], str]
    suffixes: tuple[str, ...]
    read: Source
    whole: Callable[[str], bool]
    events: Events
    build: Callable[[Any], Spec]
    changing: frozenset[str]
    fields: tuple[str, ...]
    unshown: Callable[[Any, Mapping[str, int]], tuple[str, ...]] = lambda config, judged: ()


def units(system: System, files: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The files that belong together: each that is a run, and those of one process each by directory."""
    found: list[tuple[str, ...]] = []
    parts: dict[str, list[str]] = {}
    for file in files:
        try:
            whole = system.whole(file)
        except OSError:
            whole = True
        if whole:
            found.append((file,))
        else:
            parts.setdefault(os.path.dirname(file), []).append(file)
    return found + [tuple(group) for group in parts.values()]


def judge_unit(files: tuple[str, ...], adapter: str) -> UnitResult:
    """Judge the runs of a unit; a failure to do so is a tool error of this unit alone."""
    started = time.thread_time()
    system = named(adapter)
    name = files[0] if len(files) == 1 else os.path.dirname(files[0]) or "."
    try:
        reading = system.read(files)
        for run in reading.runs:
            run.missing += tuple(reading.missing)
        verdicts = tuple(judge(run, system) for run in reading.runs)
    except OSError as error:
        problem = InputProblem(str(error.filename or name), 0, "", "a readable file", error.strerror or str(error))
        return UnitResult(name, problems=(problem,))
    except Exception as error:
        if os.environ.get("VSR_DEBUG"):
            raise
        return UnitResult(name, tool_errors=(f"{name}: {type(error).__name__}: {error}",))
    problems = tuple(reading.problems)
    if not verdicts and not problems:
        problems = (InputProblem(files[0], 0, "", f"logs of {system.name}", "no line that an adapter of it knows"),)
    return UnitResult(
        name,
        tuple(v.run_id for v in verdicts),
        verdicts,
        problems[:20],
        max(0, len(problems) - 20),
        spent={"read, check": time.thread_time() - started},
    )


def judge(logged: LoggedRun, system: System) -> RunVerdict:
    """Judge one run; without a configuration there is no specification to judge it by."""
    if logged.config is None:
        return RunVerdict(logged.run_id, "inconclusive", 0, {}, missing=logged.missing, notes=logged.notes)
    spec = system.build(logged.config)
    recorded = {name: event.record(spec.schema, spec.cfg) for name, event in system.events.by_name.items()}
    run = Run(spec, recorded)
    for node, cause in logged.silent.items():
        run.cells.forget(node, cause)
    last: dict[int, deque[Record]] = {}
    accepted = 0
    violation: Violation | None = None
    stopped = ""
    for record in logged.records:
        if record.event == PANIC:
            stopped = f"{record.file}:{record.line}: the build stopped itself, judged up to there: {record.text[:160]}"
            break
        last.setdefault(record.node, deque(maxlen=STORY)).append(record)
        try:
            place = f"{os.path.basename(record.file)}:{record.line}"
            run.take(record.event, {"node": record.node, **record.columns}, place)
        except Reject as reject:
            violation = _explain(logged, run, record, reject, accepted, last)
            break
        accepted += 1
    return _verdict(logged, system, run, accepted, violation, stopped)


def _verdict(
    logged: LoggedRun, system: System, run: Run, accepted: int, violation: Violation | None, stopped: str
) -> RunVerdict:
    missing = [*logged.missing, *([stopped] if stopped else []), *_open(run)]
    missing += system.unshown(logged.config, run.judged)
    if logged.unknown.counts:
        missing.append(f"{sum(logged.unknown.counts.values())} lines of the protocol that no pattern knows")
    if not accepted and violation is None:
        missing.append("no line of the protocol was judged")
    total = sum(run.judged.values())
    summary = (
        f"{system.title(logged.config)}: {logged.lines:,} lines, {total:,} are of the protocol and judged, "
        f"{sum(logged.unknown.counts.values()):,} are not known"
    )
    coverage = {a.name: run.coverage[a.name] for a in run.spec.actions}
    notes = (summary, *logged.notes, *logged.unknown.texts())
    return RunVerdict(
        logged.run_id,
        "violates" if violation else "inconclusive" if missing else "conforms",
        accepted,
        coverage,
        (violation,) if violation else (),
        () if violation else tuple(missing),
        (),
        dict(run.judged),
        recorded=len(logged.records),
        notes=notes,
    )


def _open(run: Run) -> Iterator[str]:
    """What stayed open, as one text for each condition."""
    for one, times in sorted(run.obligations.items(), key=lambda item: -item[1]):
        cells = f" ({', '.join(one.cells)} not shown)" if one.cells else ""
        many = f", {times} times, first" if times > 1 else ""
        yield f"{one.event}{many} at {run.first[one]}: {one.what}{cells}"


def _explain(
    logged: LoggedRun, run: Run, record: Record, reject: Reject, accepted: int, last: Mapping[int, deque[Record]]
) -> Violation:
    why: list[str] = []
    message, expected, observed = reject.message, reject.expected, reject.observed
    if reject.refused is not None:
        action, conjunct, args = reject.refused
        known = {name: value for name, value in args.items() if not isinstance(value, Span)}
        if len(known) == len(args):
            found = refusal(run.spec, run.cells, action, conjunct, known, show_value)
            expected, observed = found.guard, ", ".join(found.values)
            why.append(found.text())
        message += f": {run.spec.action(action).doc.partition(chr(10))[0]}"
    why.append(f"the line: {record.text}")
    shown = {name: value for name, value in record.columns.items() if value is not None}
    return Violation(
        run_id=logged.run_id,
        seq=record.line,
        file=record.file,
        line=record.line,
        node=record.node,
        action=record.event,
        rule_id=reject.rule,
        severity="error",
        message=f"{record.event}: {message}",
        expected=expected or reject.message,
        observed=observed or str(shown),
        rule_fingerprint=hashlib.blake2b(f"{record.event}|{reject.rule}".encode(), digest_size=8).hexdigest(),
        prefix_length=accepted,
        state_before=_state(run, record.node),
        why_not=tuple(why),
        rule=_rule(run.spec, reject.rule),
        story=tuple(_story(last)),
    )


def _rule(spec: Spec, rule: str) -> str:
    return next((p.doc for p in spec.invariants if p.id == rule), "")


def _state(run: Run, node: int) -> dict[str, str]:
    """Cells of a node that are not as at the beginning; of its log, the last few places."""
    found: dict[str, str] = {}
    for var in run.spec.schema.vars.values():
        if var.is_message or not var.index or var.index[0].name != run.cells.actors:
            continue
        cells = sorted((i, v) for i, v in run.cells.known[var.name].items() if i[0] == node)
        for index, value in cells[-4:]:
            if len(found) < LEAVES_MAX:
                text = "not known" if isinstance(value, Span) else show_value(var, value)
                found[f"{var.name}[{', '.join(map(str, index))}]"] = text
    return found


def _story(last: Mapping[int, deque[Record]]) -> Iterator[Step]:
    for node in sorted(last):
        for record in last[node]:
            shown = ", ".join(f"{n} {v}" for n, v in record.columns.items() if v is not None)
            yield Step(node, record.file, record.line, f"{record.event} {shown}")


def audit(logs: Logs, options: AuditOptions, *, workers: int = 1, progress: Progress | None = None) -> AuditReport:
    """Audit log files in this process, or in several; interrupted, report what is judged so far."""
    before = UnitResult("inputs", problems=logs.problems, empty=logs.empty)
    return judge_here(
        partial(units, named(options.adapter), logs.files), partial(judge_unit, adapter=options.adapter), options,
        what="units", workers=workers, progress=progress, before=(before,),
    )  # fmt: skip


__all__ = ["PANIC", "System", "audit", "judge", "judge_unit", "units"]
