"""Verdicts on logs that are read together: their runs as rows, and the audit that all runs go through."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from viewproof.refinement.adapter import Adapter
from viewproof.refinement.discovery import Unit
from viewproof.refinement.joined.source import LoggedRun, Reading, lines_of
from viewproof.refinement.judging import Judged, Spent, judge_run, no_collector, result_of
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import INDEX, Row, check_record
from viewproof.refinement.verdict import AuditOptions, CheckRun, RunVerdict, Step, UnitResult, Violation

_NODE = INDEX["node"]
TEXT_SHOWN = 300
"""Characters of a line that a report shows."""


def apart(units: Iterable[Unit], adapter: Adapter) -> tuple[Unit, ...]:
    """The units of an adapter whose files are read together: a file with the lines of several processes is one by
    itself, those of single processes are one by directory.
    """
    found: list[Unit] = []
    for unit in units:
        whole = [file for file in unit.files if _is_whole(file, adapter)]
        parts = tuple(file for file in unit.files if file not in whole)
        found += [Unit(file, (file,)) for file in whole]
        if parts:
            found.append(Unit(parts[0] if len(parts) == 1 else unit.name, parts))
    return tuple(found)


def _is_whole(file: str, adapter: Adapter) -> bool:
    assert adapter.joined is not None
    try:
        return adapter.joined.whole(file)
    except OSError:
        return True


def judge_joined(
    unit: Unit, adapter: Adapter, options: AuditOptions, check_run: CheckRun, *, again: bool = True
) -> UnitResult:
    """Read the files of a unit together, and judge every run found in them; with `again` one that violates is judged
    as partial, too, to say whether missing lines would explain it.
    """
    assert adapter.joined is not None
    log, clock = ProblemLog(), Spent()
    judged: list[Judged] = []
    with no_collector():
        try:
            reading = adapter.joined.read(unit.files, options.partial)
        except OSError as error:
            log.add(str(error.filename or unit.name), 0, "", "a readable file", error.strerror or str(error))
            reading = Reading()
        for problem in reading.problems:
            log.add(problem.file, problem.line, problem.field, problem.expected, problem.got)
        if not reading.runs and not log:
            begins = next((line.text for line in lines_of(unit.files[0]) if line.text.strip()), "")
            got = f"no such line; it begins with: {begins[:100]}" if begins else "an empty file"
            log.add(unit.files[0], 0, "", f"{adapter.doc}, as they print them, with nothing in front", got)
        runs = [(run, rows_of(run, adapter, options, log)) for run in reading.runs]
        clock.until_now("read")
        if not log:
            judged += [_judge(run, rows, reading, options, check_run, log) for run, rows in runs]
            if again and not options.partial and any(verdict and verdict.violations for verdict, *_ in judged):
                judged = _as_partial(unit, judged, adapter, options, check_run)
            clock.until_now("check")
    return result_of(unit.name, [run.run_id for run in reading.runs], judged, options, log, (), clock.seconds)


def _judge(
    run: LoggedRun, rows: list[Row], reading: Reading, options: AuditOptions, check_run: CheckRun, log: ProblemLog
) -> Judged:
    missing = [*run.missing, *reading.missing]
    if run.unknown.counts:
        missing.append(f"{sum(run.unknown.counts.values())} lines of the protocol that no pattern knows")
    if not rows:
        missing = missing or ["no line of the protocol was judged"]
        notes = (*run.notes, *reading.notes)
        return RunVerdict(run.run_id, "inconclusive", 0, missing=tuple(missing), notes=notes), [], []
    verdict, facts, errors = judge_run(run.run_id, rows, options, check_run, log)
    if verdict is None:
        return None, facts, errors
    summary = (
        f"{run.lines:,} lines, {len(rows):,} are of the protocol, "
        f"{sum(run.unknown.counts.values()):,} of it are not known"
    )
    texts = {(record.file, record.line): record.text for record in run.records}
    found = tuple(
        replace(
            v,
            carried={"line": _line(texts, v), **v.carried},
            story=tuple(replace(step, shows={**step.shows, "line": _line(texts, step)}) for step in v.story),
        )
        for v in verdict.violations
    )
    notes = (*verdict.notes, summary, *run.notes, *reading.notes, *run.unknown.texts())
    return replace(verdict.with_missing(missing), violations=found, notes=notes), facts, errors


def _as_partial(
    unit: Unit, judged: list[Judged], adapter: Adapter, options: AuditOptions, check_run: CheckRun
) -> list[Judged]:
    """The verdicts; of each violation it is said whether it would be one, too, if lines were missing."""
    assert adapter.joined is not None
    partial, log = replace(options, partial=True), ProblemLog()
    runs = {run.run_id: run for run in adapter.joined.read(unit.files, True).runs}
    found: list[Judged] = []
    for verdict, facts, errors in judged:
        if verdict is not None and verdict.violations and verdict.run_id in runs:
            at = verdict.violations[0]
            rows = rows_of(runs[verdict.run_id], adapter, options, log)
            end = next((n for n, row in enumerate(rows, 1) if row[-2:] == (at.file, at.line)), len(rows))
            other = judge_run(verdict.run_id, rows[:end], partial, check_run, log)[0]
            refused = other is not None and other.verdict == "violates"
            text = "whatever lines are missing" if refused else "as the log is taken to be complete (else: --partial)"
            verdict = replace(verdict, notes=(*verdict.notes, f"refused {text}"))
        found.append((verdict, facts, errors))
    return found


def _line(texts: Mapping[tuple[str, int], str], place: Violation | Step) -> str:
    """The line that stands there."""
    return texts.get((place.file, place.line), "")[:TEXT_SHOWN]


def rows_of(run: LoggedRun, adapter: Adapter, options: AuditOptions, log: ProblemLog) -> list[Row]:
    """The records of a run as rows; what is wrong with them goes to the log."""
    return list(_numbered(run, adapter, {*options.without}, log))


def _numbered(run: LoggedRun, adapter: Adapter, gone: set[str], log: ProblemLog) -> Iterator[Row]:
    """The records as rows: their place in the order is the clock, and each node's are numbered. Of a log that begins
    late, or a node whose lines do, the first number is missing.
    """
    seqs: Counter[int] = Counter()
    system = adapter.system
    configuration = run.configuration
    for clock, record in enumerate(run.records, 1):
        node = record.node if record.node >= 0 else record.about
        seqs[node] += 1
        late = run.late or node in run.late_nodes
        shown = {name: value for name, value in record.columns.items() if value is not None}
        base = {"run": run.run_id, "node": node, "seq": seqs[node] + late, "clock": clock, "event": record.event}
        values = {**configuration, **shown, **base}
        configuration = {}
        for problem in check_record(values, system.table):
            log.add(record.file, record.line, problem.field, problem.expected, problem.got)
        yield (*(None if n in gone else values.get(n) for n in system.names), os.fspath(record.file), record.line)
