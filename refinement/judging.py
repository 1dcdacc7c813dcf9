"""From the files of a unit to verdicts on its runs: the part that every engine shares.

An engine only decides where this runs: in this process, in a pool, or in Spark's executors.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, groupby
from operator import itemgetter

from viewproof.refinement.adapter import adapter, first_run_of, has_facts, rows_of
from viewproof.refinement.discovery import Unit
from viewproof.refinement.flat.judge import applies, conforming, streamed
from viewproof.refinement.flat.streaming import ONE, Hands
from viewproof.refinement.global_facts import Contradiction, RunFacts, merge_facts
from viewproof.refinement.ordering import NotStreamableError, SequenceGuard, Watched, merge_sorted, order_key
from viewproof.refinement.packing import Spill
from viewproof.refinement.parquet import holds_nothing
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import carried_at
from viewproof.refinement.schema import Row
from viewproof.refinement.verdict import AuditOptions, CheckRun, RunVerdict, UnitResult

Judged = tuple[RunVerdict | None, list[Contradiction], list[str]]
"""The replay's verdict (None where it failed or the input is malformed), the broken facts, and tool errors."""

STREAM_BYTES = 64 << 20
"""Units above this size are not sorted in memory: those of one run are merged from their files as streams, others are
dealt to temporary files by run first, each of about this size.
"""

BUCKETS_MAX = 256
TOLD_EVENTS = 100_000
"""How often it is told how many events of one large run were read."""


def judge_run(
    run_id: str,
    rows: Iterable[Row],
    options: AuditOptions,
    check_run: CheckRun,
    log: ProblemLog,
    *,
    with_facts: bool = True,
    before: tuple[Watched, RunFacts] | None = None,
) -> Judged:
    """Replay one run's rows (in replay order) and, unless the caller does that elsewhere, gather its facts.

    `before` is what was watched of the run's earlier events, if these are not all. Returns the replay's verdict (None
    if it failed or the input is malformed), the broken facts, and tool errors. The rows are consumed to the end, also
    where the replay stops early; it may go through them again.
    """
    guard, facts = SequenceGuard(log), RunFacts(run_id)
    if before is not None:
        guard.go_on(before[0])
        facts = before[1]
    problems_before = len(log.problems) + log.more
    guarded = guard.watch(rows)
    stream = _Watched(rows, facts.watch(guarded) if with_facts and has_facts(options.adapter) else guarded)
    verdict: RunVerdict | None = None
    errors: list[str] = []
    began = time.monotonic()
    try:
        verdict = check_run(run_id, stream, options)
    except NotStreamableError:
        raise
    except Exception as error:
        if os.environ.get("VSR_DEBUG"):
            raise
        errors.append(f"run {run_id}: the checker failed: {type(error).__name__}: {error}")
    for _ in stream.first:
        pass
    if len(log.problems) + log.more > problems_before:
        return None, [], errors
    if verdict is not None:
        verdict = replace(verdict.with_missing(guard.missing()), recorded=guard.events())
        verdict = replace(
            verdict,
            seconds=time.monotonic() - began,
            violations=tuple(replace(v, carried=carried_at(v.file, v.line)) for v in verdict.violations),
            notes=(*verdict.notes, *(f"judged without {name}, as if it were never shown" for name in options.without)),
        )
    return verdict, facts.contradictions(), errors


class _Watched:
    """Rows of which the first pass is watched."""

    def __init__(self, rows: Iterable[Row], first: Iterator[Row]) -> None:
        self.rows = rows
        self.first = first
        self.begun = False

    def __iter__(self) -> Iterator[Row]:
        again, self.begun = self.begun, True
        return iter(self.rows) if again else self.first


class _Merged:
    """The rows of files that hold one run each in order, merged; read again, what is wrong with them is not said
    again.
    """

    def __init__(
        self, unit: Unit, run_id: str, options: AuditOptions, log: ProblemLog, empty: list[str], hands: Hands = ONE
    ) -> None:
        self.unit = unit
        self.options = options
        self.run_id = run_id
        self.seen = hands.seen
        self.to: tuple[ProblemLog, list[str]] = (log, empty)

    def __iter__(self) -> Iterator[Row]:
        log, empty = self.to
        self.to = ProblemLog(), []
        rows = merge_sorted([_noting_empty(file, self.options, log, empty) for file in self.unit.files], self.run_id)
        for number, row in enumerate(rows, 1):
            if number % TOLD_EVENTS == 0:
                self.seen(number)
            yield row


def judge_unit(
    unit: Unit, options: AuditOptions, check_run: CheckRun, total: int = 0, hands: Hands = ONE
) -> UnitResult:
    """Read a unit's files, and judge every run found in them; a failure to do so is a tool error of this unit alone.

    `total` are the bytes of the whole input: a large one is worth compiling for. `hands` are for one large run.
    """
    plain = judge_plain(unit, options, check_run, total, hands)
    return plain or judge_by_rows(unit, options, check_run, hands, total)


def judge_plain(
    unit: Unit, options: AuditOptions, check_run: CheckRun, total: int, hands: Hands = ONE
) -> UnitResult | None:
    """The same where all runs plainly conform, by compiled code; None where they are to be judged row by row."""
    if not applies(options, check_run):
        return None
    try:
        return _judge_plain(unit, options, total, hands)
    except Exception as error:
        return _failed(unit, error)


def judge_by_rows(
    unit: Unit, options: AuditOptions, check_run: CheckRun, hands: Hands = ONE, total: int = 0
) -> UnitResult:
    """The same without compiled code, but for logs of which a file has whole runs."""
    try:
        return _judge_by_rows(unit, options, check_run, hands, total)
    except Exception as error:
        return _failed(unit, error)


def _failed(unit: Unit, error: Exception) -> UnitResult:
    if os.environ.get("VSR_DEBUG"):
        raise error
    return UnitResult(unit.name, tool_errors=(f"{unit.name}: {type(error).__name__}: {error}",))


def _judge_plain(unit: Unit, options: AuditOptions, total: int, hands: Hands) -> UnitResult | None:
    log, clock = ProblemLog(), Spent()
    verdicts: list[RunVerdict] | None = None
    if unit.size <= STREAM_BYTES:
        verdicts = conforming(unit, options, log, clock.until_now, total)
    elif (run_id := _single_run(unit, options.adapter)) is not None:
        verdicts = streamed(unit, run_id, options, log, clock.until_now, total, hands)
    if verdicts is None:
        return None
    judged: list[Judged] = [(verdict, [], []) for verdict in verdicts]
    return result_of(unit.name, [v.run_id for v in verdicts], judged, options, log, (), clock.seconds)


def _judge_by_rows(unit: Unit, options: AuditOptions, check_run: CheckRun, hands: Hands, total: int) -> UnitResult:
    found = adapter(options.adapter)
    if found.streamed is not None:
        from viewproof.refinement.streamed import judge_streamed

        return judge_streamed(unit, found, options, check_run, total)
    if found.joined is not None:
        from viewproof.refinement.joined.judging import judge_joined

        return judge_joined(unit, found, options, check_run)
    size = unit.size
    if size <= STREAM_BYTES:
        return _judge_sorted(unit, options, check_run)
    if (run_id := _single_run(unit, options.adapter)) is not None:
        try:
            return _judge_streaming(unit, run_id, options, check_run, hands)
        except NotStreamableError:
            pass
    return _judge_spilled(unit, options, check_run, min(BUCKETS_MAX, size // max(1, STREAM_BYTES) + 1))


def _single_run(unit: Unit, adapter: str) -> str | None:
    runs = {first_run_of(file, adapter) for file in unit.files}
    return runs.pop() if len(runs) == 1 else None


def _judge_streaming(unit: Unit, run_id: str, options: AuditOptions, check_run: CheckRun, hands: Hands) -> UnitResult:
    log, empty, clock = ProblemLog(), list[str](), Spent()
    judged = judge_run(run_id, _Merged(unit, run_id, options, log, empty, hands), options, check_run, log)
    clock.until_now("read, merge, check")
    return result_of(unit.name, [run_id], [judged], options, log, empty, clock.seconds)


def _noting_empty(file: str, options: AuditOptions, log: ProblemLog, empty: list[str]) -> Iterator[Row]:
    """A file's rows; a file without any, and without a problem of its own, is noted as empty."""
    problems_before = len(log.problems) + log.more
    rows = rows_of(file, log, options)
    first = next(rows, None)
    if first is not None:
        yield first
        yield from rows
    elif len(log.problems) + log.more == problems_before and not holds_nothing(file):
        empty.append(f"{file}: the file holds no event")


def _judge_sorted(unit: Unit, options: AuditOptions, check_run: CheckRun) -> UnitResult:
    log, empty, clock = ProblemLog(), list[str](), Spent()
    judged: list[Judged] = []
    with no_collector():
        runs = by_run(chain.from_iterable(_noting_empty(file, options, log, empty) for file in unit.files))
        run_ids = sorted(runs)
        clock.until_now("read")
        if not log:
            _judge_each(runs, judged, options, check_run, log, clock)
    return result_of(unit.name, run_ids, judged, options, log, empty, clock.seconds)


def _judge_spilled(unit: Unit, options: AuditOptions, check_run: CheckRun, buckets: int) -> UnitResult:
    """Deal the unit's rows to temporary files by run, then judge file by file."""
    log, empty, clock = ProblemLog(), list[str](), Spent()
    judged: list[Judged] = []
    with Spill(buckets, adapter(options.adapter).system.table) as spill, no_collector():
        run_ids = sorted({run for file in unit.files for run in spill.put(_noting_empty(file, options, log, empty))})
        clock.until_now("read")
        if not log:
            for rows in spill.buckets():
                runs = by_run(rows)
                clock.until_now("read")
                _judge_each(runs, judged, options, check_run, log, clock)
    return result_of(unit.name, run_ids, judged, options, log, empty, clock.seconds)


def by_run(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each run, in the order they come."""
    runs: dict[str, list[Row]] = {}
    for run, some in groupby(rows, key=itemgetter(0)):
        runs.setdefault(run, []).extend(some)
    return runs


def _judge_each(
    runs: dict[str, list[Row]],
    judged: list[Judged],
    options: AuditOptions,
    check_run: CheckRun,
    log: ProblemLog,
    clock: Spent,
) -> None:
    """Sort and judge run after run, letting go of the rows of each."""
    for run_id in sorted(runs):
        rows = runs.pop(run_id)
        rows.sort(key=order_key)
        clock.until_now("sort")
        judged.append(judge_run(run_id, rows, options, check_run, log))
        clock.until_now("check")


class Spent:
    """Processor seconds of this thread, by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.thread_time()

    def until_now(self, phase: str) -> None:
        """What went by since the last call (or the start) was spent on `phase`."""
        now = time.thread_time()
        self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._last
        self._last = now


@contextmanager
def no_collector() -> Iterator[None]:
    """Without the garbage collector: rows and the replay's tables hold no cycles, it would only walk them again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def result_of(
    unit: str,
    runs: Iterable[str],
    judged: Iterable[Judged],
    options: AuditOptions,
    log: ProblemLog,
    empty: Iterable[str] = (),
    spent: Mapping[str, float] | None = None,
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
    return UnitResult(
        unit,
        tuple(runs),
        tuple(verdicts),
        tuple(log.problems),
        log.more,
        tuple(empty),
        tuple(errors),
        dict(spent or {}),
        dict(log.carried),
        dict(log.unknown),
    )
