"""What a search by strides is given: runs of a specification's steps, each taken as one (`spec.engines.strides`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from viewproof.spec.lang.definitions import Action, Spec

Choice = tuple[int, ...]


class World(Protocol):
    """A state, of which a stride takes steps."""

    def at(self, name: str, *index: int) -> int:
        """The value of a cell."""

    def need(self, condition: bool) -> None:
        """The stride is not enabled unless the condition holds."""

    def can(self, action: str, **args: int) -> bool:
        """Would that step be taken now?"""

    def do(self, action: str, **args: int) -> None:
        """Take a step; if it may not be taken, the stride is not enabled."""

    def claim(self, condition: bool, at: str, text: str) -> None:
        """What the step `at` must not have made false: if it did, the search stops, and names the text."""

    def count(self, name: str, most: int) -> None:
        """One more of what happens at most so often; if it happened so often, the stride is not enabled."""


@dataclass(frozen=True)
class Stride:
    """A run of steps. `choices(world)` are the arguments that are tried; `take(world, *choice)` takes the steps."""

    name: str
    choices: Callable[[World], Iterable[Choice]]
    take: Callable[..., None]


@dataclass(frozen=True)
class Model:
    """What is searched. `start` takes the steps to the first state.

    A guard that reads one of `history` is a claim: it must hold wherever all other guards of its step do; but for
    actions in `conditions` it is a guard like any other. Variables in `passing` are initial between strides.
    `lacks` are guards that steps do without: the action, and what the guard's text has. `instead` stand in for the
    actions of their names. `counters` are what `World.count` counts.
    """

    spec: Spec
    start: Callable[[World], None]
    strides: tuple[Stride, ...]
    history: frozenset[str]
    conditions: frozenset[str] = frozenset()
    passing: tuple[str, ...] = ()
    lacks: tuple[tuple[str, str], ...] = ()
    instead: tuple[Action, ...] = ()
    counters: tuple[str, ...] = ()


@dataclass
class Names:
    """Numbers for what steps make (messages, prepares), by what each is, so that one thing has one number."""

    first: int = 1
    numbers: dict[tuple[str, Hashable], int] = field(default_factory=dict)
    kinds: dict[str, list[int]] = field(default_factory=dict)

    def __call__(self, kind: str, *what: Hashable) -> int:
        """The number of that thing."""
        found = self.numbers.get((kind, what))
        if found is None:
            found = self.numbers[kind, what] = self.first + len(self.numbers)
            self.kinds.setdefault(kind, []).append(found)
        return found
