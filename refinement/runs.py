"""From the files of a unit to verdicts on its runs: the part that every engine shares.

An engine only decides where this runs: in this process, in a pool, or in Spark's executors.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator

from refinement.facts import Contradiction, RunFacts, merge_facts
from refinement.ordering import NotStreamableError, SequenceGuard, merge_sorted, order_key
from refinement.reading import ProblemLog, Unit, first_run, read_rows
from refinement.schema import Row
from refinement.verdict import AuditOptions, CheckRun, RunVerdict, UnitResult

Judged = tuple[RunVerdict | None, list[Contradiction], list[str]]
"""The replay's verdict (None where it failed or the input is malformed), the broken facts, and tool errors."""

STREAM_BYTES = 64 << 20
"""Units above this size are merged from their files as streams instead of being sorted in memory."""


def judge_run(
    run_id: str,
    rows: Iterable[Row],
    options: AuditOptions,
    check_run: CheckRun,
    log: ProblemLog,
    *,
    with_facts: bool = True,
) -> Judged:
    """Replay one run's rows (in replay order) and, unless the caller does that elsewhere, gather its facts.

    Returns the replay's verdict (None if it failed or the input is malformed), the broken facts, and tool errors.
    The rows are consumed to the end, also where the replay stops early.
    """
    guard, facts = SequenceGuard(log), RunFacts(run_id)
    problems_before = len(log.problems) + log.more
    guarded = guard.watch(rows)
    stream = facts.watch(guarded) if with_facts else guarded
    verdict: RunVerdict | None = None
    errors: list[str] = []
    try:
        verdict = check_run(run_id, stream, options)
    except NotStreamableError:
        raise
    except Exception as error:
        if os.environ.get("VSR_DEBUG"):
            raise
        errors.append(f"run {run_id}: the checker failed: {type(error).__name__}: {error}")
    for _ in stream:
        pass
    if len(log.problems) + log.more > problems_before:
        return None, [], errors
    if verdict is not None:
        verdict = verdict.with_missing(guard.missing())
    return verdict, facts.contradictions(), errors


def judge_unit(unit: Unit, options: AuditOptions, check_run: CheckRun) -> UnitResult:
    """Read a unit's files, and judge every run found in them."""
    if unit.size > STREAM_BYTES and (run_id := _single_run(unit)) is not None:
        try:
            return _judge_streaming(unit, run_id, options, check_run)
        except NotStreamableError:
            pass
    return _judge_sorted(unit, options, check_run)


def _single_run(unit: Unit) -> str | None:
    runs = {first_run(file) for file in unit.files}
    return runs.pop() if len(runs) == 1 else None


def _judge_streaming(unit: Unit, run_id: str, options: AuditOptions, check_run: CheckRun) -> UnitResult:
    log, empty = ProblemLog(), list[str]()
    streams = [_noting_empty(file, log, empty) for file in unit.files]
    judged = judge_run(run_id, merge_sorted(streams, run_id), options, check_run, log)
    return result_of(unit.name, [run_id], [judged], options, log, empty)


def _noting_empty(file: str, log: ProblemLog, empty: list[str]) -> Iterator[Row]:
    """A file's rows; a file without any, and without a problem of its own, is noted as empty."""
    seen = False
    problems_before = len(log.problems) + log.more
    for row in read_rows(file, log):
        seen = True
        yield row
    if not seen and len(log.problems) + log.more == problems_before:
        empty.append(f"{file}: the file holds no event")


def _judge_sorted(unit: Unit, options: AuditOptions, check_run: CheckRun) -> UnitResult:
    log, empty = ProblemLog(), list[str]()
    runs: dict[str, list[Row]] = {}
    collecting = gc.isenabled()
    gc.disable()  # rows hold no cycles; the collector would only walk them again and again
    try:
        for file in unit.files:
            for row in _noting_empty(file, log, empty):
                runs.setdefault(row[0], []).append(row)
    finally:
        if collecting:
            gc.enable()
    judged, run_ids = [], sorted(runs)
    if not log:
        for run_id in run_ids:
            rows = runs.pop(run_id)
            rows.sort(key=order_key)
            judged.append(judge_run(run_id, rows, options, check_run, log))
    return result_of(unit.name, run_ids, judged, options, log, empty)


def result_of(
    unit: str,
    runs: Iterable[str],
    judged: Iterable[Judged],
    options: AuditOptions,
    log: ProblemLog,
    empty: Iterable[str] = (),
) -> UnitResult:
    """Merge replay verdicts and facts into the unit's result."""
    verdicts, errors = [], []
    for verdict, contradictions, failures in judged:
        errors += failures
        if verdict is None:
            continue
        merged, disagreement = merge_facts(verdict, contradictions, options)
        verdicts.append(merged)
        if disagreement:
            errors.append(disagreement)
    return UnitResult(unit, tuple(runs), tuple(verdicts), tuple(log.problems), log.more, tuple(empty), tuple(errors))
