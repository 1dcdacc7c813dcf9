"""The verdicts of a unit whose runs all plainly conform, by the compiled audit over columns.

It says that a run conforms, with what was covered, or nothing: then the replays of `checker` judge the unit from its
beginning, so every other verdict, its first event and its explanation are theirs alone.

`VSR_REPLAY` says how: `auto` (default) compiles what is not in the cache only where the input is large; `compiled` does
so always, and writes to standard error why a unit was left to the other replay; `python` never looks here.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import zstandard

from viewproof.refinement.adapter import NATIVE, adapter, has_facts
from viewproof.refinement.checker import check_run as replayed
from viewproof.refinement.discovery import Unit
from viewproof.refinement.events.system import System
from viewproof.refinement.flat.columns import NotPlain, Table, Words, read, runs_of
from viewproof.refinement.flat.program import FACTS, FlatProgram, flat_program
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.verdict import AuditOptions, CheckRun, RunVerdict
from viewproof.spec.lang import SpecError

SMALL_BYTES = 256 << 10
"""A unit below this size is judged before its kind of audit would be loaded."""
LARGE_BYTES = 64 << 20
"""From so much input on, kinds of configurations that are not in the cache are compiled."""
_UNREADABLE = (NotPlain, OSError, EOFError, zlib.error, zstandard.ZstdError, pa.ArrowException)


def how() -> str:
    """`auto`, `compiled` or `python`."""
    return os.environ.get("VSR_REPLAY", "auto")


def conforming(
    unit: Unit, options: AuditOptions, check_run: CheckRun, log: ProblemLog, spent: Callable[[str], None], total: int
) -> list[RunVerdict] | None:
    """The verdicts on a unit's runs, of an input of so many bytes; None where they are for the other replay to judge.

    `spent(phase)` is told when one ends.
    """
    mode = how()
    plain = AuditOptions(profile=options.profile)
    if mode == "python" or check_run is not replayed or options != plain or options.adapter != NATIVE:
        return None
    large = mode == "compiled" or total >= LARGE_BYTES
    if not large and unit.size < SMALL_BYTES:
        return None
    carried = ProblemLog()
    try:
        table = read(unit.files, adapter(options.adapter).system, carried)
        spent("read")
        verdicts = [_judge(table, name, order, large, spent) for name, order in runs_of(table)]
    except _UNREADABLE as why:
        if mode == "compiled":
            sys.stderr.write(f"{unit.name}: not judged by compiled code: {why}\n")
        return None
    for name, place in carried.carried.items():
        log.carry(name, place)
    return verdicts


def _judge(table: Table, run_id: str, order: Words, large: bool, spent: Callable[[str], None]) -> RunVerdict:
    system = table.system
    profile = system.profile
    spent("sort")
    began = time.monotonic()
    first = table.record(int(order[0]))
    lacking = [name for name in profile.needed if first[name] is None]
    if lacking:
        raise NotPlain(f"{run_id}: {lacking[0]} is not in its first event")
    program, numbers = program_of(system, first, large)
    with program.new_run(first, numbers) as run:
        whole = run.take(table.addresses(), table.facts(FACTS), np.ascontiguousarray(order), 0, len(order))
        spent("check")
        if not whole or not run.all_began:
            raise NotPlain(
                f"{run_id}: event {run.events + 1} of {len(order)}: {run.place or 'a replica without events'}"
            )
        verdict = RunVerdict(
            run_id,
            "conforms",
            run.events,
            run.coverage,
            events_by_name=run.judged,
            recorded=run.events,
            notes=profile.weaknesses(first),
            seconds=time.monotonic() - began,
        )
        return verdict.with_missing(profile.unshown(first, verdict.events_by_name))


def program_of(system: System, first: Mapping[str, Any], large: bool) -> tuple[FlatProgram, Mapping[str, int]]:
    """The compiled audit for the configuration that an event shows, and its numbers. Raises `NotPlain`."""
    try:
        cfg, numbers = system.profile.kind(system.profile.configure(first, frozenset()))
    except SpecError as error:
        raise NotPlain(str(error)) from error
    optional = any(first[column] is not None for column in system.optional)
    found = _known(system, cfg, tuple(sorted(numbers)), optional, large)
    if isinstance(found, str):
        raise NotPlain(found)
    return found, numbers


@lru_cache(maxsize=128)
def _known(system: System, cfg: Any, given: tuple[str, ...], optional: bool, large: bool) -> FlatProgram | str:
    try:
        return flat_program(system, cfg, given, optional=optional, has_facts=has_facts(NATIVE), compiles=large)
    except SpecError as error:
        return f"{system.name}: {error}"
