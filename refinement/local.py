"""The local engine: one unit after another, or several workers: threads where compiled code judges, which lets other
threads run, and processes for what is left to the replay that goes row by row.

Memory grows neither with the number of units nor with that of runs in one: a unit of any size is streamed, or dealt to
temporary files by run. Only a single large run whose files are not in order is sorted in memory as a whole.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from viewproof.refinement.adapter import first_run_of
from viewproof.refinement.discovery import Inputs, Unit
from viewproof.refinement.flat.streaming import Hands
from viewproof.refinement.judging import judge_by_rows, judge_plain, judge_unit
from viewproof.refinement.verdict import AuditOptions, AuditReport, CheckRun, RunVerdict, UnitResult
from viewproof.refinement.workers import in_processes, in_threads

Progress = Callable[[int, int, str], None]
"""`progress(done, total, name)`: called after each unit, and while a large one goes on. `name` says how many runs and
events there were so far, and where.
"""


def audit(
    inputs: Inputs, options: AuditOptions, check_run: CheckRun, *, workers: int = 1, progress: Progress | None = None
) -> AuditReport:
    """Audit all inputs and report; interrupted, report what is judged so far.

    `check_run` must be importable by name where `workers` is above 1.
    """
    started = time.monotonic()
    results = [result_of_inputs(inputs)]
    total, stopped = len(inputs.units), ""
    far = _Far(total, progress)
    try:
        for done, result in enumerate(_judge_all(inputs.units, options, check_run, workers, far), 1):
            results.append(result)
            far.judged(done, result)
        results = join_split_runs(inputs, results, options, check_run)
    except KeyboardInterrupt:
        results, stopped = until_interrupted(inputs, results)
        stopped += far.text(results)
    return AuditReport.combine("local", options, results, seconds=time.monotonic() - started, stopped=stopped)


class _Far:
    """How far the audit is: how many runs and events it judged, and how far it came in a large one that goes on."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total, self.progress = total, progress
        self.runs: set[str] = set()
        self.recorded = 0
        self.unit, self.events = "", 0

    def judged(self, done: int, result: UnitResult) -> None:
        """A unit is done."""
        self.runs.update(verdict.run_id for verdict in result.verdicts)
        self.recorded += sum(verdict.recorded for verdict in result.verdicts)
        self._tell(done, result.unit)

    def said(self, done: int, unit: str, events: int) -> None:
        """So many events of a run plainly conform so far."""
        self.unit, self.events = unit, events
        self._tell(done, unit, events)

    def seen(self, done: int, unit: str, events: int) -> None:
        """So many events of a run were read for the replay so far."""
        self._tell(done, unit, events)

    def _tell(self, done: int, unit: str, events: int = 0) -> None:
        if self.progress:
            runs = f"{len(self.runs):,} run{'' if len(self.runs) == 1 else 's'}"
            self.progress(done, self.total, f"{runs}, {self.recorded + events:,} events; {unit}")

    def text(self, results: Iterable[UnitResult]) -> str:
        """What is to be said of a run that was begun and not judged."""
        if not self.events or self.unit in {result.unit for result in results}:
            return ""
        return f"; its first {self.events:,} events conform"


def result_of_inputs(inputs: Inputs) -> UnitResult:
    """What is to be said of the inputs before any of them is read."""
    return UnitResult("inputs", problems=(*inputs.refused, *inputs.problems), empty=inputs.empty)


def until_interrupted(inputs: Inputs, results: list[UnitResult]) -> tuple[list[UnitResult], str]:
    """The results that stand, and how far the audit came.

    A run of which other directories hold pieces too is not judged: on the pieces read so far it may look wrong.
    """
    judged = {result.unit for result in results}
    waiting = [unit for unit in inputs.units if unit.name not in judged]
    pieces = {name for group in split_groups(results) for name in group}
    open_runs = {first_run_of(file, inputs.adapter) for unit in waiting for file in unit.files}
    open_runs |= {run for result in results if result.unit in pieces for run in result.runs}
    results = [replace(result, verdicts=_without(result.verdicts, open_runs)) for result in results]
    done = len(inputs.units) - len(waiting)
    text = f"interrupted: {done} of {len(inputs.units)} directories judged"
    return results, text + (f"; not judged, the first: {waiting[0].name}" if waiting else "")


def _without(verdicts: Iterable[RunVerdict], runs: set[str | None]) -> tuple[RunVerdict, ...]:
    return tuple(verdict for verdict in verdicts if verdict.run_id not in runs)


def _judge_all(
    units: tuple[Unit, ...],
    options: AuditOptions,
    check_run: CheckRun,
    workers: int,
    far: _Far,
) -> Iterator[UnitResult]:
    total = sum(unit.size for unit in units)
    if workers <= 1 or len(units) <= 1:
        for done, unit in enumerate(units):
            hands = Hands(workers, partial(far.said, done, unit.name), partial(far.seen, done, unit.name))
            yield judge_unit(unit, options, check_run, total, hands)
        return

    def plain(unit: Unit, stopped: threading.Event) -> UnitResult | None:
        return judge_plain(unit, options, check_run, total, Hands(1, partial(_go_on, stopped)))

    left = []
    for unit, result in in_threads(plain, sorted(units, key=lambda unit: -unit.size), min(workers, len(units))):
        if result is None:
            left.append(unit)
        else:
            yield result
    if left:
        by_rows = partial(judge_by_rows, options=options, check_run=check_run, total=total)
        yield from in_processes(by_rows, left, min(workers, len(left)), in_order=False)


def _go_on(stopped: threading.Event, events: int) -> None:
    """Nobody is told how far a large run beside others is; it is not judged to its end where all is interrupted."""
    if stopped.is_set():
        raise RuntimeError(f"stopped after {events:,} events")


def join_split_runs(
    inputs: Inputs, results: list[UnitResult], options: AuditOptions, check_run: CheckRun
) -> list[UnitResult]:
    """Judge again, together, units that turned out to hold pieces of the same run."""
    units = {unit.name: unit for unit in inputs.units}
    for group in split_groups(results):
        joined = Unit(" + ".join(group), tuple(file for name in group for file in units[name].files))
        results = [result for result in results if result.unit not in group]
        results.append(judge_unit(joined, options, check_run))
    return results


def split_groups(results: list[UnitResult]) -> list[list[str]]:
    """Groups of units that share a run id, directly or through others; units that share none are left out."""
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    owner: dict[str, str] = {}
    for result in results:
        for run_id in result.runs:
            other = owner.setdefault(run_id, result.unit)
            leader[find(result.unit)] = find(other)
    groups: dict[str, list[str]] = {}
    for name in leader:
        groups.setdefault(find(name), []).append(name)
    return [sorted(group) for group in groups.values() if len(group) > 1]
