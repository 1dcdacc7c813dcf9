"""The verdict on a log whose lines are owed (`Profile.whole`) if all of it plainly holds, by the compiled audit."""

from __future__ import annotations

import sys

from viewproof.refinement.adapter import BUILT_IN, WordsRun, adapter
from viewproof.refinement.checker import check_run as replayed
from viewproof.refinement.flat.dictionary import NotPlain
from viewproof.refinement.flat.judge import how, is_large
from viewproof.refinement.flat.whole import LinesProgram, LinesRun, lines_program
from viewproof.refinement.verdict import AllowedUse, AuditOptions, CheckRun, RunVerdict
from viewproof.spec.lang import SpecError


def compiled_applies(options: AuditOptions, check_run: CheckRun) -> bool:
    """May logs be judged here, under these options?"""
    return how() != "python" and check_run is replayed and not options.without


def conforming_log(run: WordsRun, options: AuditOptions, total: int) -> RunVerdict | None:
    """The verdict that the run conforms, of an input of so many bytes; None where it is to be judged row by row, from
    its beginning (`Run.again`).
    """
    try:
        return _judge(run, _program(run, options, is_large(total)))
    except NotPlain as why:
        if how() == "compiled":
            sys.stderr.write(f"{run.run_id}: not judged by compiled code: {why}\n")
        return None


def _program(run: WordsRun, options: AuditOptions, large: bool) -> LinesProgram:
    system = adapter(run.adapter).system
    first = {**dict.fromkeys(system.names), **run.shown}
    try:
        cfg = system.profile.configure(first, frozenset())
    except SpecError as error:
        raise NotPlain(str(error)) from error
    found = lines_program(system, cfg, tuple(sorted(options.allow)), run.adapter in BUILT_IN, large)
    if isinstance(found, str):
        raise NotPlain(found)
    return found


def _judge(run: WordsRun, program: LinesProgram) -> RunVerdict:
    shape = program.found.shape
    texts, lines = run.words(program.found.texts, shape.judged)
    with program.new_run(run.shown, texts) as memory:
        for rows in lines:
            if not memory.take(rows):
                raise NotPlain(f"event {memory.events + 1}: {memory.place}")
        if not memory.events:
            raise NotPlain("no event was judged")
        coverage = {name: count for name, count in memory.coverage.items() if "__" not in name}
        return RunVerdict(
            run.run_id,
            "conforms",
            memory.events,
            coverage,
            allowed_uses=_uses(memory, run),
            events_by_name=memory.judged,
            recorded=memory.events,
        )


def _uses(memory: LinesRun, run: WordsRun) -> tuple[AllowedUse, ...]:
    """The permitted deviations that were needed."""
    named = ((name.partition("__")[2].replace("_", ".", 1), node, seq) for name, node, seq in memory.uses())
    return tuple(AllowedUse(fault, run.file, seq, node, seq) for fault, node, seq in named)
