"""The compiled audit of one kind of configuration over flat memory: one call for a batch of events.

It only ever says that everything plainly holds up to some event. `drive` stops at the first that does not, that lacks a
column, that reads a cell which was let go, or that cannot be said here; then the run is judged by the replays of
`checker`, from its beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewproof.refinement.events.system import System
from viewproof.refinement.flat.compile import compile_kind, keep_shape, kept_shape, shape_file
from viewproof.refinement.flat.shape import STOPPED, Shape
from viewproof.refinement.flat.terms import NULL
from viewproof.spec.engines.llvm.objects import cache_dir, function, kept, link, objects
from viewproof.spec.lang import SpecError

Words = NDArray[np.int64]
WINDOW_MAX = 1 << 18
"""Elements that a window holds at most, where a run is streamed: it lets go of its first ones then, and a run with an
event that needs them is left to the other replay.
"""
MEMORY_MAX = 4 << 30


@dataclass(frozen=True, eq=False)
class FlatProgram:
    """The compiled audit of a kind; `compiled` functions were not in the cache, and took `seconds`."""

    system: System
    shape: Shape
    drive: Callable[..., int]
    begin: Callable[..., int]
    release: Callable[..., int]
    engine: Any
    compiled: int
    seconds: float

    def place(self, stopped: int, code: int) -> str:
        """Why `drive` stopped: in words, for whoever wants to know why a run was not judged here."""
        if stopped in STOPPED:
            return STOPPED[stopped]
        event = list(self.shape.judged)[code]
        sites = self.shape.sites[event]
        return f"{event}: {sites[stopped - 1]}" if stopped <= len(sites) else event

    def new_run(self, first: Mapping[str, int | None], numbers: Mapping[str, int], *, streamed: bool) -> FlatRun:
        """A run whose configuration its first boot shows."""
        shape = self.shape
        words = np.zeros(shape.words, np.int64)
        words[5] = MEMORY_MAX
        words[8] = WINDOW_MAX if streamed else 0
        for place, count, initial in shape.first:
            words[place : place + count] = initial
        for name, value in numbers.items():
            words[shape.at[f"g_{name}"]] = value
        for column, name in shape.configured.items():
            shown = first[column]
            words[shape.at[name]] = NULL if shown is None else shown
        return FlatRun(self, words)


class FlatRun:
    """The memory of one run, and how far it came. A context manager: its windows are gone at the end."""

    def __init__(self, program: FlatProgram, words: Words) -> None:
        self.program = program
        self.words = words
        self.events = 0
        self.stopped = 0
        self.place = ""
        program.begin(words)

    def __enter__(self) -> FlatRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.program.release(self.words)

    def take(self, columns: Words, facts: Words, order: Words, first: int, last: int) -> bool:
        """Take the events order[first] .. order[last - 1]; False where one does not plainly hold (`stopped`, `place`).

        `columns` and `facts` are addresses of columns.
        """
        self.stopped = self.program.drive(self.words, columns, facts, order, first, last)
        self.events = int(self.words[6])
        if self.stopped:
            self.place = self.program.place(self.stopped, int(self.words[7]))
        return self.stopped == 0

    def counted(self, area: str, names: Mapping[str, int]) -> dict[str, int]:
        """What was counted, by name."""
        at = self.program.shape.at[area]
        return {name: int(self.words[at + number]) for name, number in names.items()}

    @property
    def coverage(self) -> dict[str, int]:
        """Steps taken, by action."""
        return self.counted("coverage", self.program.shape.coverage)

    @property
    def judged(self) -> dict[str, int]:
        """Events taken, by name."""
        return self.counted("judged", self.program.shape.judged)

    @property
    def all_began(self) -> bool:
        """Has every replica an event?"""
        at = self.program.shape.at["last_seq"]
        return bool(self.words[at : at + self.program.shape.members].all())

    @property
    def bytes(self) -> int:
        """Memory that windows take."""
        return int(self.words[4])


@lru_cache(maxsize=1 << 12)
def _kept(directory: Path, key: str) -> bytes | None:
    """The object code of that name, which most kinds have in common; None if it is not in the cache there."""
    return kept(key)


@lru_cache(maxsize=64)
def flat_program(
    system: System, cfg: Any, given: tuple[str, ...], *, optional: bool, has_facts: bool, own: bool, compiles: bool
) -> FlatProgram:
    """The audit for all configurations of one kind (`Profile.kind`): loaded, or compiled. `own`: the system is one of
    the package, so that what was made of it before is known by its name.

    Raises `SpecError`, naming the word, for what there is no compiled form of, and, unless it `compiles`, where a
    function is not in the cache.
    """
    started = time.perf_counter()
    file = shape_file(system, cfg, given, optional, has_facts) if own else None
    shape = kept_shape(file) if file is not None else None
    codes = [_kept(cache_dir(), key) for key in shape.keys] if shape is not None else []
    compiled = 0
    if shape is None or None in codes:
        _kept.cache_clear()
        shape, units, _ = compile_kind(system, cfg, given, optional=optional, has_facts=has_facts)
        if not compiles and any(kept(key) is None for key in shape.keys):
            raise SpecError("this kind of configuration is not compiled yet, and the input is not large")
        codes[:], compiled = objects(units)
        if file is not None:
            keep_shape(file, shape)
    engine = link([code for code in codes if code is not None], shape.symbols)
    return FlatProgram(
        system,
        shape,
        function(engine, "drive", 6),
        function(engine, "begin", 1),
        function(engine, "release", 1),
        engine,
        compiled,
        time.perf_counter() - started,
    )
