"""The local engine: one unit after another, in this process or in a pool of processes.

Memory grows neither with the number of units nor with that of runs in one: a unit of any size is streamed, or dealt to
temporary files by run. Only a single large run whose files are not in order is sorted in memory as a whole.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterator
from functools import partial

from refinement.reading import Inputs, Unit
from refinement.runs import judge_unit
from refinement.verdict import AuditOptions, AuditReport, CheckRun, UnitResult

Progress = Callable[[int, int, str], None]
"""`progress(done, total, name)`: called after each unit."""


def audit(
    inputs: Inputs, options: AuditOptions, check_run: CheckRun, *, workers: int = 1, progress: Progress | None = None
) -> AuditReport:
    """Audit all inputs and report.

    `check_run` must be importable by name where `workers` is above 1.
    """
    started = time.monotonic()
    results: list[UnitResult] = [UnitResult("inputs", empty=inputs.empty)]
    total = len(inputs.units)
    for done, result in enumerate(_judge_all(inputs.units, options, check_run, workers), 1):
        results.append(result)
        if progress:
            progress(done, total, result.unit)
    results = join_split_runs(inputs, results, options, check_run)
    return AuditReport.combine("local", options, results, seconds=time.monotonic() - started)


def _judge_all(
    units: tuple[Unit, ...], options: AuditOptions, check_run: CheckRun, workers: int
) -> Iterator[UnitResult]:
    judge = partial(judge_unit, options=options, check_run=check_run)
    if workers <= 1 or len(units) <= 1:
        yield from map(judge, units)
        return
    largest_first = sorted(units, key=lambda unit: -unit.size)
    with multiprocessing.get_context("spawn").Pool(min(workers, len(units))) as pool:
        yield from pool.imap_unordered(judge, largest_first)


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
