"""Verdicts on logs of which a file has whole runs, one after the other: each is judged as it is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from viewproof.refinement.adapter import Adapter, Run, WordsRun, without
from viewproof.refinement.adapter import adapter as find_adapter
from viewproof.refinement.discovery import Unit
from viewproof.refinement.flat.logs import compiled_applies, conforming_log
from viewproof.refinement.judging import Spent, no_collector
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.text_lines import Segment
from viewproof.refinement.verdict import AuditOptions, CheckRun, RunVerdict, UnitResult, Violation

TEXT_SHOWN = 300
"""Characters of a line that a report shows."""


def apart(units: Iterable[Unit], adapter: Adapter) -> tuple[Unit, ...]:
    """The parts of all files that can be read apart; of a file that cannot be read, itself."""
    assert adapter.streamed is not None
    found: list[Unit] = []
    for file in sorted({file for unit in units for file in unit.files}):
        try:
            parts = adapter.streamed.parts(file)
        except OSError:
            parts = [Segment(file)]
        found += [Unit(part.run_id, (file,), part) for part in parts]
    return tuple(found)


def judge_streamed(unit: Unit, adapter: Adapter, options: AuditOptions, check_run: CheckRun, total: int) -> UnitResult:
    """Judge the runs of a part of a file, of an input of so many bytes; where one of them is no log of the adapter,
    none of them is judged.
    """
    assert adapter.streamed is not None
    log, clock = ProblemLog(), Spent()
    verdicts: list[RunVerdict] = []
    part = unit.part or Segment(unit.files[0])
    try:
        with no_collector():
            runs = adapter.streamed.runs(part, options.profile, log)
            verdicts += [_judge(run, options, check_run, total) for run in runs]
    except OSError as error:
        log.add(part.file, 0, "", "a readable file", error.strerror or str(error))
    clock.until_now("read, check")
    return UnitResult(
        unit.name,
        tuple(verdict.run_id for verdict in verdicts),
        () if log else tuple(verdicts),
        tuple(log.problems),
        log.more,
        spent=clock.seconds,
    )


def _judge(run: Run, options: AuditOptions, check_run: CheckRun, total: int) -> RunVerdict:
    own = replace(options, adapter=run.adapter)
    if isinstance(run, WordsRun) and compiled_applies(own, check_run):
        verdict = conforming_log(run, own, total)
        if verdict is not None:
            verdict = replace(verdict.with_missing(run.missing()), notes=(*verdict.notes, *run.notes(violated=False)))
        else:
            verdict = _by_rows(run.again(), own, check_run)
    else:
        verdict = _by_rows(run, own, check_run)
    run.rest()
    return verdict


def _by_rows(run: Run, options: AuditOptions, check_run: CheckRun) -> RunVerdict:
    rows = run.rows
    if options.without:
        index = find_adapter(run.adapter).system.index
        rows = without(rows, {index[name] for name in options.without})
    verdict = check_run(run.run_id, rows, options)
    found = tuple(_with_texts(violation, run) for violation in verdict.violations)
    notes = (*verdict.notes, *run.notes(violated=bool(found)))
    notes = (*notes, *(f"judged without {name}, as if it were never shown" for name in options.without))
    if found and (doubt := run.doubt()):
        refused = f"{doubt} (line {found[0].line} is refused as it stands: {found[0].message})"
        verdict, found = replace(verdict, verdict="inconclusive", missing=(refused,), violations=()), ()
    return replace(verdict.with_missing(run.missing()), violations=found, notes=notes)


def _with_texts(violation: Violation, run: Run) -> Violation:
    """The violation with the texts of its lines."""
    story = tuple(replace(step, text=run.text(step.line)[:TEXT_SHOWN] or step.text) for step in violation.story)
    line = run.text(violation.line)[:TEXT_SHOWN]
    return replace(violation, story=story, carried={"line": line, **violation.carried})
