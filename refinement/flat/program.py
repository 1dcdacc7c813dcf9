"""The compiled audit of one kind of configuration over flat memory: one call for a batch of events.

It only ever says that everything plainly holds up to some event. `drive` stops at the first that does not, that lacks a
column, that reads a cell which was let go, or that cannot be said here; then the run is judged by the replays of
`checker`, from its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from viewproof.refinement.events.system import System
from viewproof.refinement.flat.compile import compile_kind, keep_shape, kept_shape, shape_file
from viewproof.refinement.flat.dictionary import Words
from viewproof.refinement.flat.run import Code, Run, linked
from viewproof.refinement.flat.shape import Shape
from viewproof.spec.engines.llvm.objects import cache_dir, kept, objects
from viewproof.spec.lang import SpecError

WINDOW_MAX = 1 << 18
"""Elements that a window holds at most, where a run is streamed: it lets go of its first ones then, and a run with an
event that needs them is left to the other replay.
"""


@dataclass(frozen=True, eq=False)
class FlatProgram:
    """The compiled audit of a kind."""

    system: System
    code: Code

    def new_run(self, first: Mapping[str, int | None], numbers: Mapping[str, int], *, streamed: bool) -> FlatRun:
        """A run whose configuration its first boot shows."""
        return FlatRun(self, first, numbers, WINDOW_MAX if streamed else 0)


class FlatRun(Run):
    """The memory of one run, of which events come in columns."""

    def __init__(
        self, program: FlatProgram, first: Mapping[str, int | None], numbers: Mapping[str, int], window_max: int
    ) -> None:
        super().__init__(program.code, first, numbers, window_max)
        self.program = program

    def take(self, columns: Words, facts: Words, order: Words, first: int, last: int) -> bool:
        """Take the events order[first] .. order[last - 1]; False where one does not plainly hold (`place` says why).

        `columns` and `facts` are addresses of columns.
        """
        return self.taken(self.code.drive(self.words, columns, facts, order, first, last))

    @property
    def all_began(self) -> bool:
        """Has every replica an event?"""
        at = self.shape.at["last_seq"]
        return bool(self.words[at : at + self.shape.members].all())

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
    file = shape_file(system, cfg, given, optional, has_facts) if own else None
    shape = kept_shape(file, Shape)
    codes = [_kept(cache_dir(), key) for key in shape.keys] if shape is not None else []
    if shape is None or None in codes:
        _kept.cache_clear()
        shape, units, _ = compile_kind(system, cfg, given, optional=optional, has_facts=has_facts)
        if not compiles and any(kept(key) is None for key in shape.keys):
            raise SpecError("this kind of configuration is not compiled yet, and the input is not large")
        codes[:], _ = objects(units)
        if file is not None:
            keep_shape(file, shape)
    return FlatProgram(system, linked(shape, codes, 6, {}))
