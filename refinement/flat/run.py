"""The memory of a run that compiled code judges, and the functions that work on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from viewproof.refinement.flat.dictionary import Words
from viewproof.refinement.flat.shape import Shape
from viewproof.refinement.flat.terms import NULL
from viewproof.spec.engines.llvm.objects import function, link

MEMORY_MAX = 4 << 30


@dataclass(frozen=True, eq=False)
class Code:
    """The functions of a configuration over memory of one shape; `engine` keeps them."""

    shape: Shape
    drive: Callable[..., int]
    begin: Callable[..., int]
    release: Callable[..., int]
    engine: Any


def linked(shape: Shape, codes: Iterable[bytes | None], drive_args: int, asked: Mapping[str, int]) -> Code:
    """Objects in memory; `drive` has so many arguments, and `asked` are addresses of functions that it may call."""
    engine = link([code for code in codes if code is not None], {**shape.symbols, **asked})
    drive, begin, release = (
        function(engine, name, args) for name, args in (("drive", drive_args), ("begin", 1), ("release", 1))
    )
    return Code(shape, drive, begin, release, engine)


class Run:
    """The memory of one run, and how far it came. A context manager: its windows are gone at the end."""

    def __init__(
        self, code: Code, first: Mapping[str, int | None], numbers: Mapping[str, int], window_max: int = 0
    ) -> None:
        """`first` are columns that show the configuration, `numbers` those that it leaves open; a window holds at most
        so many elements (0: any number).
        """
        self.code, self.shape = code, code.shape
        self.place = ""
        self.words: Words = np.zeros(self.shape.words, np.int64)
        self.words[5] = MEMORY_MAX
        self.words[8] = window_max
        for place, count, initial in self.shape.first:
            self.words[place : place + count] = initial
        for name, value in numbers.items():
            self.words[self.shape.at[f"g_{name}"]] = value
        for column, name in self.shape.configured.items():
            shown = first.get(column)
            self.words[self.shape.at[name]] = NULL if shown is None else shown
        code.begin(self.words)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.code.release(self.words)

    def taken(self, stopped: int) -> bool:
        """Note what `drive` said; False where an event does not plainly hold (`place` says why)."""
        if stopped:
            self.place = self.shape.place(stopped, int(self.words[7]))
        return stopped == 0

    @property
    def events(self) -> int:
        """How many events were taken."""
        return int(self.words[6])

    @property
    def coverage(self) -> dict[str, int]:
        """Steps taken, by action."""
        return self._counted("coverage", self.shape.coverage)

    @property
    def judged(self) -> dict[str, int]:
        """Events taken, by name."""
        return self._counted("judged", self.shape.judged)

    def _counted(self, area: str, names: Mapping[str, int]) -> dict[str, int]:
        at = self.shape.at[area]
        return {name: int(self.words[at + number]) for name, number in names.items()}
