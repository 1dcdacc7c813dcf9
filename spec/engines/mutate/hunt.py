"""Hunt mutants through bounded searches: which shape notices which, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viewproof.spec.engines.mutate.mutants import Mutant, mutants
from viewproof.spec.engines.portfolio import Shape, search
from viewproof.spec.lang.errors import SpecError


@dataclass(frozen=True)
class Ground:
    """What the specification itself does: states, steps, witnesses reached and actions taken of each shape; which of
    them are not searched to their end.
    """

    states: Mapping[str, int]
    steps: Mapping[str, int]
    bounded: frozenset[str]
    witnessed: Mapping[str, frozenset[str]]
    taken: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Death:
    """How a mutant was noticed: in which shape (empty: over all of them), by what, after how many steps."""

    shape: str
    by: str
    steps: int = 0
    states: int = 0

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Report:
    """A mutant and its fate (`death` None: no shape noticed it; then `effect` says what it did there)."""

    mutant: Mutant
    death: Death | None = None
    effect: str = ""


def survey(shapes: Sequence[Shape], workers: int | None = None) -> Ground:
    """Search every shape as it is. Raises `SpecError` if one is violated: its mutants would say nothing; and
    `KeyboardInterrupt` if a search was interrupted.
    """
    states: dict[str, int] = {}
    steps: dict[str, int] = {}
    bounded: set[str] = set()
    witnessed: dict[str, frozenset[str]] = {}
    taken: dict[str, frozenset[str]] = {}
    for shape in shapes:
        found, _ = search(shape, workers=workers)
        if found.verdict == "inconclusive" and found.broken.startswith("interrupted"):
            raise KeyboardInterrupt
        if found.verdict in ("violated", "range", "inconclusive"):
            raise SpecError(f"shape {shape.name}: {found.verdict} {found.broken} without any mutation".rstrip())
        states[shape.name], steps[shape.name] = found.distinct, found.generated
        bounded.update([shape.name] if found.verdict == "bounded" else [])
        witnessed[shape.name], taken[shape.name] = frozenset(found.witnessed), frozenset(found.taken)
    return Ground(states, steps, frozenset(bounded), witnessed, taken)


def all_mutants(shapes: Sequence[Shape], actions: frozenset[str] | None = None) -> dict[str, dict[str, Mutant]]:
    """Mutant id → shape → the mutant there: a shape without crashes has no mutants of the crash."""
    found: dict[str, dict[str, Mutant]] = {}
    for shape in shapes:
        for mutant in mutants(shape.spec, actions):
            found.setdefault(mutant.id, {})[shape.name] = mutant
    return found


def hunt(
    shapes: Sequence[Shape], ground: Ground, *, actions: frozenset[str] | None = None, workers: int | None = None,
    wanted: Callable[[Mutant], bool] = lambda mutant: True, explained: Callable[[Mutant], bool] = lambda mutant: False,
    progress: Callable[[int, int, Report], None] = lambda done, total, report: None,
) -> Iterator[Report]:  # fmt: skip
    """Each mutant's fate. Shapes are tried in the order given.

    A mutant that is `explained` (somebody wrote down why it is equivalent) is tried only in those that end; what it
    does not meet there is no loss, as the others may meet it.
    """
    every = [found for found in all_mutants(shapes, actions).values() if wanted(next(iter(found.values())))]
    ending = [shape for shape in shapes if shape.name not in ground.bounded]
    for number, by_shape in enumerate(every, start=1):
        mutant = next(iter(by_shape.values()))
        tried = ending if explained(mutant) else shapes
        death, effects = _death(tried, ground, by_shape, workers, loses=len(tried) == len(shapes))
        report = Report(mutant, death, "" if death else _effect(effects))
        progress(number, len(every), report)
        yield report


def _death(
    shapes: Iterable[Shape], ground: Ground, by_shape: Mapping[str, Mutant], workers: int | None, *, loses: bool
) -> tuple[Death | None, set[str]]:
    """How a mutant was noticed, and what it did where it was not; `loses`: also by what it does not meet."""
    effects: set[str] = set()
    witnessed: dict[str, frozenset[str]] = {}
    taken: dict[str, frozenset[str]] = {}
    ended: set[str] = set()
    for shape in shapes:
        mutant = by_shape.get(shape.name)
        spec = shape.spec if mutant is None else mutant.of(shape.spec)
        found, _ = search(Shape(shape.name, spec, shape.max_states), workers=workers)
        if found.verdict == "range":
            return Death(shape.name, "leaves its range", found.steps), effects
        if found.verdict == "violated":
            return Death(shape.name, found.broken, found.steps, found.distinct), effects
        if found.verdict == "inconclusive":
            raise SpecError(f"shape {shape.name} was not searched to its end or bound: more memory is needed")
        witnessed[shape.name], taken[shape.name] = frozenset(found.witnessed), frozenset(found.taken)
        ended.update([shape.name] if found.verdict != "bounded" else [])
        if shape.name not in ground.bounded:
            here = (found.distinct - ground.states[shape.name], found.generated - ground.steps[shape.name])
            effects.add("more" if max(here) > 0 else "fewer" if min(here) < 0 else "same")
    if not loses:
        return None, effects
    if lost := _lost(ground.witnessed, witnessed, ended):
        return Death("", f"witness of {', '.join(lost)} not reached"), effects
    if lost := _lost(ground.taken, taken, ended):
        return Death("", f"{', '.join(lost)} not taken"), effects
    return None, effects


def _lost(
    ground: Mapping[str, frozenset[str]], found: Mapping[str, frozenset[str]], ended: Iterable[str]
) -> list[str]:  # fmt: skip
    """What the specification meets in shapes in which the mutant was searched to the end, and the mutant in none that
    was tried: behind a bound it may come later, and in a shape that was not tried, too.
    """
    elsewhere = frozenset().union(*(met for name, met in ground.items() if name not in found))
    return sorted(frozenset().union(*(ground[name] for name in ended)) - elsewhere - frozenset().union(*found.values()))


def _effect(effects: set[str]) -> str:
    """What a mutant that nobody notices did in the shapes that end: `same`: as many states and steps in each; `fewer`:
    never more, in some fewer; `more`: more somewhere, none of them wrong.
    """
    return "more" if "more" in effects else "fewer" if "fewer" in effects else "same"
