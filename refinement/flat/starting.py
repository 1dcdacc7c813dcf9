"""Beginning the compiled replay of a run from its first event, and the verdict at its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from viewproof.refinement.adapter import NATIVE, adapter, has_facts
from viewproof.refinement.events.system import System
from viewproof.refinement.flat.dictionary import NotPlain
from viewproof.refinement.flat.program import FlatProgram, FlatRun, flat_program
from viewproof.refinement.verdict import RunVerdict
from viewproof.spec.lang import SpecError

_making = threading.Lock()
"""A kind is made by one thread; others that need it, too, wait."""


def started(system: System, first: Mapping[str, Any], large: bool, *, streamed: bool = False) -> FlatRun:
    """The run whose first event is that; its kind is compiled if it is not, where the input is `large`."""
    lacking = [name for name in system.profile.needed if first[name] is None]
    if lacking:
        raise NotPlain(f"{lacking[0]} is not in the first event")
    program, numbers = program_of(system, first, large)
    return program.new_run(first, numbers, streamed=streamed)


def conforms(run: FlatRun, run_id: str, first: Mapping[str, Any], began: float) -> RunVerdict:
    """The verdict on a run that was taken to its end. Raises `NotPlain` where a replica has no event."""
    if not run.all_began:
        raise NotPlain(f"{run_id}: a replica without events")
    profile = run.program.system.profile
    verdict = RunVerdict(
        run_id,
        "conforms",
        run.events,
        run.coverage,
        events_by_name=run.judged,
        recorded=run.events,
        notes=profile.weaknesses(first),
        configuration=run.program.system.configuration_of(first),
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
    with _making:
        found = _known(system, cfg, tuple(sorted(numbers)), optional, large)
    if isinstance(found, str):
        raise NotPlain(found)
    return found, numbers


@lru_cache(maxsize=128)
def _known(system: System, cfg: Any, given: tuple[str, ...], optional: bool, large: bool) -> FlatProgram | str:
    own = system is adapter(NATIVE).system
    try:
        return flat_program(system, cfg, given, optional=optional, has_facts=has_facts(NATIVE), own=own, compiles=large)
    except SpecError as error:
        return f"{system.name}: {error}"
