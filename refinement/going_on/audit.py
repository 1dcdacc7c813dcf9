"""An audit that goes on from what was kept: take the new files, judge the runs that they hold, keep all or nothing.

Who takes and judges may be another than this process (`Judged`); what counts is changed here alone.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from viewproof.refinement.adapter import adapter, rows_of
from viewproof.refinement.discovery import Inputs
from viewproof.refinement.going_on.directory import Directory, Index, StateError, Taken, opened
from viewproof.refinement.going_on.in_files import InFiles
from viewproof.refinement.going_on.inputs import New, classify
from viewproof.refinement.going_on.runs import Run
from viewproof.refinement.going_on.subject import asked, differs, subject
from viewproof.refinement.judging import STREAM_BYTES, by_run, no_collector
from viewproof.refinement.local import Progress, result_of_inputs
from viewproof.refinement.packing import Spill
from viewproof.refinement.parquet import holds_nothing
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import LINE_INDEX, Row
from viewproof.refinement.verdict import AuditOptions, AuditReport, RunVerdict, UnitResult

BUCKETS_MAX = 256
Log = Callable[[str], None]
Judged = Callable[[Directory, Inputs, AuditOptions, Progress | None, Log], Iterator[UnitResult]]
"""Takes what is new of the inputs and judges their runs, from what the directory has of them: new files of them, and
what is to be changed in its index, which counts only later. A result with problems ends it, and nothing is changed.
"""


def audit(
    inputs: Inputs, options: AuditOptions, state: Path, *, progress: Progress | None = None,
    log: Log = lambda text: None, judged: Judged | None = None, engine: str = "local",
) -> AuditReport:  # fmt: skip
    """Audit the new files among the inputs together with what is kept in the directory `state`, and keep the result.

    The report is on all runs ever taken. Nothing is kept where the input is malformed, or the audit is interrupted.
    Raises `StateError` for a directory that cannot be used. `judged` does the work, by default in this process.
    """
    started = time.monotonic()
    judged, is_asked_only = judged or _judged, not (inputs.files or inputs.remote)
    if is_asked_only and not (state / "index.json").exists():
        raise StateError(f"{state}: there is no state yet: name the files of the first audit")
    begun = Index(subject(options), options=asked(options))
    with opened(state, begun, partial(differs, options=options)) as directory:
        told = dict(directory.index.told)
        try:
            new = () if is_asked_only else judged(directory, inputs, options, progress, log)
            results = [result_of_inputs(inputs), *new]
            stopped = ""
        except KeyboardInterrupt:
            directory.changed.clear()
            results, stopped = (
                [],
                f"interrupted: the state in {state} is as it was; the same command goes on from it",
            )
        now = {verdict.run_id: digest(verdict) for result in results for verdict in result.verdicts}
        malformed = any(one.problems or one.problems_more for one in results)
        failed = any(len(one.verdicts) < len(one.runs) for one in results)
        if not (stopped or malformed or failed):
            directory.index.told |= now
            directory.commit()
        else:
            directory.sweep()
        if malformed or failed:
            why = "the input is malformed" if malformed else "a run was not judged"
            log(f"the state in {state} is as it was: {why}")
        results.append(UnitResult("kept", verdicts=tuple(_others(directory, results, options))))
        index = directory.index
        empty = tuple(text for _, text in sorted(index.empty.items()))
        results.append(UnitResult("state", empty=empty, carried=index.carried, unrecognised=index.unrecognised))
    report = AuditReport.combine(engine, options, results, seconds=time.monotonic() - started, stopped=stopped)
    return replace(report, since={one.run_id: _since(one.run_id, now, told) for one in report.verdicts})


def digest(verdict: RunVerdict) -> str:
    """What is the same of a verdict as long as nothing new is to be told: where it is from, and for which reasons."""
    broken = [(one.rule_fingerprint, one.node, one.seq) for one in verdict.violations]
    said = msgspec.json.encode((verdict.verdict, broken, verdict.missing))
    return hashlib.blake2b(said, digest_size=8).hexdigest()


def _since(run: str, now: Mapping[str, str], told: Mapping[str, str]) -> str:
    """`new`, `changed` or `as before`: a run beside what was said of it last."""
    if run not in told:
        return "new"
    return "changed" if now.get(run, told[run]) != told[run] else "as before"


def _judged(
    directory: Directory, inputs: Inputs, options: AuditOptions, progress: Progress | None, say: Log
) -> Iterator[UnitResult]:
    new = list(_new_files(directory, inputs, say))
    log, empty, taken = ProblemLog(), dict[str, str](), list[Taken]()
    size = sum(file.size for file in new)
    buckets = min(BUCKETS_MAX, size // STREAM_BYTES + 1)
    with Spill(buckets, adapter(options.adapter).system.table) as spill, no_collector():
        for file in new:
            for _ in spill.put(_rows(file, options, log, empty, taken)):
                pass
        if log:
            yield UnitResult("read", problems=tuple(log.problems), problems_more=log.more)
            return
        for number, rows in enumerate(spill.buckets(), 1):
            yield _judge_bucket(directory, rows, options, log)
            if progress:
                progress(number, buckets, f"{number} of {buckets} parts")
    for one in taken:
        take(directory.index, one, empty.get(one.path, ""))
    directory.index.carried = {**log.carried, **directory.index.carried}
    directory.index.unrecognised |= log.unknown


def take(index: Index, file: Taken, empty: str) -> None:
    """From now on the file counts as taken; `empty` says that it holds no event, if it does not."""
    index.files.append(file)
    index.empty.pop(file.path, None)
    if empty:
        index.empty[file.path] = empty


def _new_files(directory: Directory, inputs: Inputs, say: Log) -> Iterator[New]:
    same = 0
    for name in inputs.files:
        found = classify(name, directory.index.files)
        if isinstance(found, New):
            yield found
        else:
            same += 1
    say_same(same, say)


def say_same(files: int, say: Log) -> None:
    """Say that so many files are not read."""
    if files:
        say(f"{files} file{'s' if files > 1 else ''} of these were taken before, and are not read again")


def _rows(
    file: New, options: AuditOptions, log: ProblemLog, empty: dict[str, str], taken: list[Taken]
) -> Iterator[Row]:
    last = file.after_line
    for row in rows_of(file.path, log, options):
        if row[LINE_INDEX] > file.after_line:
            last = row[LINE_INDEX]
            yield row
    if last == 0 and not log and not holds_nothing(file.path):
        empty[file.path] = f"{file.path}: the file holds no event"
    taken.append(Taken(file.path, file.size, file.digest, last))


def _judge_bucket(directory: Directory, rows: Iterator[Row], options: AuditOptions, log: ProblemLog) -> UnitResult:
    runs = by_run(rows)
    run_ids = sorted(runs)
    verdicts: list[RunVerdict] = []
    errors: list[str] = []
    for run_id in run_ids:
        verdict, said = Run.load(run_id, InFiles(run_id, directory, options), options).go_on(runs.pop(run_id), log)
        errors += said
        if verdict is not None:
            verdicts.append(verdict)
    return UnitResult("runs", tuple(run_ids), tuple(verdicts), tuple(log.problems), log.more, tool_errors=tuple(errors))


def _others(directory: Directory, results: list[UnitResult], options: AuditOptions) -> Iterator[RunVerdict]:
    """The verdicts on runs that have no new events."""
    judged = {verdict.run_id for result in results for verdict in result.verdicts}
    for run_id in directory.index.runs:
        if run_id not in judged and (kept := InFiles(run_id, directory, options).load()) is not None:
            yield kept[0].verdict
