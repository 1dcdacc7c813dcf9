"""The verdicts of a unit whose runs all plainly conform, by the compiled audit over columns.

It says that a run conforms, with what was covered, or nothing: then the replays of `checker` judge the unit from its
beginning, so every other verdict, its first event and its explanation are theirs alone.

`VSR_REPLAY` says how: `auto` (default) compiles what is not in the cache only where the input is large; `compiled` does
so always, and writes to standard error why a unit was left to the other replay; `python` never looks here.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
import pyarrow as pa
import zstandard

from viewproof.refinement.adapter import NATIVE, adapter
from viewproof.refinement.bounds import LineTooLongError
from viewproof.refinement.checker import check_run as replayed
from viewproof.refinement.discovery import Unit
from viewproof.refinement.flat.columns import Table, read, runs_of
from viewproof.refinement.flat.dictionary import NotPlain, Words
from viewproof.refinement.flat.starting import conforms, started
from viewproof.refinement.flat.streaming import Hands, judge
from viewproof.refinement.flat.tables import judge_tables
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.verdict import AuditOptions, CheckRun, RunVerdict

SMALL_BYTES = 256 << 10
"""A unit below this size is judged before its kind of audit would be loaded."""
LARGE_BYTES = 256 << 20
"""From so much input on, kinds of configurations that are not in the cache are compiled: seconds for each."""
KEPT_BYTES = 256 << 20
"""Most freed memory that is kept."""
_TRIM, _MAPPED, _ARENAS = -1, -3, -8
"""The numbers of `mallopt` in glibc."""
_UNREADABLE = (NotPlain, LineTooLongError, OSError, EOFError, zlib.error, zstandard.ZstdError, pa.ArrowException)


@cache
def _keep_freed_memory() -> None:
    """Have the C library keep what is freed for what comes next: columns are megabytes, and getting each page of them
    anew from the system takes as long as reading them. Where there is another C library this changes nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENAS, 1)  # others give back what is free, whatever the next number says
        mallopt(_TRIM, KEPT_BYTES)
        mallopt(_MAPPED, KEPT_BYTES // 4)


def how() -> str:
    """`auto`, `compiled` or `python`."""
    return os.environ.get("VSR_REPLAY", "auto")


def applies(options: AuditOptions, check_run: CheckRun) -> bool:
    """May runs be judged here, under these options?"""
    plain = AuditOptions(profile=options.profile)
    return how() != "python" and check_run is replayed and options == plain and options.adapter == NATIVE


def conforming(
    unit: Unit, options: AuditOptions, log: ProblemLog, spent: Callable[[str], None], total: int
) -> list[RunVerdict] | None:
    """The verdicts on a unit's runs, of an input of so many bytes; None where they are for the other replay to judge.

    `spent(phase)` is told when one ends. The options are such that it `applies`.
    """
    large = is_large(total)
    if not large and unit.size < SMALL_BYTES:
        return None

    def verdicts(carried: ProblemLog) -> list[RunVerdict]:
        table = read(unit.files, adapter(options.adapter).system, carried)
        spent("read")
        return [_judge(table, name, order, large, spent) for name, order in runs_of(table)]

    return _unless_left(unit.name, log, verdicts)


def streamed(
    unit: Unit,
    run_id: str,
    options: AuditOptions,
    log: ProblemLog,
    spent: Callable[[str], None],
    total: int,
    hands: Hands,
) -> list[RunVerdict] | None:
    """The same for a large unit that holds one run, whose files are each in order."""
    return _unless_left(
        unit.name,
        log,
        lambda carried: [
            judge(
                unit.files,
                run_id,
                adapter(options.adapter).system,
                carried,
                spent,
                large=is_large(total),
                hands=hands,
            )
        ],
    )


def of_tables(
    run_id: str, tables: Iterable[pa.Table], options: AuditOptions, check_run: CheckRun, total: int
) -> RunVerdict | None:
    """The verdict on one run whose events come as tables in replay order (`judge_tables`), of an input of so many
    bytes; None where the run is for the other replay to judge, from its beginning.
    """

    if not applies(options, check_run):
        return None

    def verdicts(carried: ProblemLog) -> list[RunVerdict]:
        return [judge_tables(run_id, tables, adapter(options.adapter).system, carried, is_large(total))]

    found = _unless_left(run_id, ProblemLog(), verdicts)
    return found[0] if found else None


def is_large(total: int) -> bool:
    """Is an input of so many bytes worth compiling for?"""
    return how() == "compiled" or total >= LARGE_BYTES


def _unless_left(
    name: str, log: ProblemLog, verdicts: Callable[[ProblemLog], list[RunVerdict]]
) -> list[RunVerdict] | None:
    """The verdicts, unless the unit is left to the other replay: None then."""
    _keep_freed_memory()
    carried = ProblemLog()
    try:
        found = verdicts(carried)
    except _UNREADABLE as why:
        if how() == "compiled":
            sys.stderr.write(f"{name}: not judged by compiled code: {why}\n")
        return None
    for column, place in carried.carried.items():
        log.carry(column, place)
    return found


def _judge(table: Table, run_id: str, order: Words, large: bool, spent: Callable[[str], None]) -> RunVerdict:
    spent("sort")
    began = time.monotonic()
    first = table.record(int(order[0]))
    with started(table.system, first, large) as run:
        whole = run.take(table.addresses(), table.facts(), np.ascontiguousarray(order), 0, len(order))
        spent("check")
        if not whole:
            raise NotPlain(f"{run_id}: event {run.events + 1} of {len(order)}: {run.place}")
        return conforms(run, run_id, first, began)
