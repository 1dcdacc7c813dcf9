"""Parts of the input of which each is judged alone: here, in processes, or on Spark; one result each.

What the parts are, and how one is judged, is the caller's: the runs of TigerBeetle's logs, the units of other systems'.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from viewproof.refinement.verdict import AuditOptions, AuditReport, UnitResult
from viewproof.refinement.workers import in_processes

Part = TypeVar("Part")
Progress = Callable[[int, int, str], None]


def judge_here(
    find: Callable[[], Sequence[Part]], judge: Callable[[Part], UnitResult], options: AuditOptions, *, what: str,
    workers: int = 1, progress: Progress | None = None, before: Sequence[UnitResult] = (),
) -> AuditReport:  # fmt: skip
    """Judge the parts in this process, or in several; interrupted, report what is judged so far.

    `find` gives the parts; `before` is what was found before any was read; `what` is what they are called. `judge` must
    be importable by name where `workers` is above 1.
    """
    started, results, stopped = time.monotonic(), list[UnitResult](), ""
    parts = find()
    try:
        outcomes = (
            map(judge, parts)
            if workers <= 1 or len(parts) <= 1
            else in_processes(judge, parts, min(workers, len(parts)), in_order=False)
        )
        for done, result in enumerate(outcomes, 1):
            results.append(result)
            if progress:
                progress(done, len(parts), result.unit)
    except KeyboardInterrupt:
        stopped = f"interrupted: {len(results)} of {len(parts)} {what} judged"
    return AuditReport.combine(
        "local", options, [*before, *results], seconds=time.monotonic() - started, stopped=stopped
    )
