"""Help with invariants: the largest inductive subset of candidates, generated candidates, and needless lemmas."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewproof.spec.engines import interp
from viewproof.spec.engines.smt.proof import Proof, prove
from viewproof.spec.lang import Predicate, Spec, any_of, forall
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.kinds import agree
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.sorts import Constant

Progress = Callable[[str], None]


@dataclass
class Kept:
    """The largest inductive subset: `dropped` says in which round a candidate failed, and at which action.

    `is_proved` says that no step leaves a declared range either; without that, nothing is proved of what was kept.
    """

    kept: list[Predicate]
    dropped: dict[str, tuple[int, str]] = field(default_factory=dict)
    rounds: int = 0
    proof: Proof | None = None

    @property
    def is_proved(self) -> bool:
        """Do all that were kept hold in every reachable state?"""
        return self.proof is not None and self.proof.verdict == "proved"


def largest_inductive(
    spec: Spec, candidates: Sequence[Predicate], *, workers: int = 1, progress: Progress = lambda text: None
) -> Kept:
    """Drop candidates (and invariants of the spec) that some step may break, until all that are left are inductive.

    What is left is the largest inductive subset; an invariant that was dropped lacks a companion among the candidates.
    """
    bare = _with_invariants(spec, ())
    result = Kept([*spec.invariants, *candidates])
    while True:
        result.rounds += 1
        result.proof = prove(bare, result.kept, workers=workers)
        failed = result.proof.failed()
        lost = {p.id: failed[p.id][0].action for p in result.kept if p.id in failed}
        progress(f"round {result.rounds}: {len(result.kept)} candidates, {len(lost)} fail")
        if not lost:
            return result
        result.dropped.update({name: (result.rounds, action) for name, action in lost.items()})
        result.kept = [p for p in result.kept if p.id not in lost]


def needed(
    spec: Spec, lemmas: Sequence[Predicate], *, workers: int = 1, progress: Progress = lambda text: None
) -> list[Predicate]:
    """A subset of the lemmas that still proves the spec's invariants, and none of which can be left out of it."""
    rest = list(lemmas)
    for lemma in lemmas:
        fewer = [p for p in rest if p is not lemma]
        holds = prove(spec, fewer, workers=workers, stop_early=True).verdict == "proved"
        progress(f"{lemma.id}: {'not needed' if holds else 'needed'}")
        if holds:
            rest = fewer
    return rest


def _with_invariants(spec: Spec, invariants: tuple[Predicate, ...]) -> Spec:
    return Spec(spec.name, spec.schema, spec.cfg, spec.actions, invariants, (), spec.instance)


def sample(spec: Spec, *, runs: int, length: int, seed: int = 1) -> list[State]:
    """States of random behaviours of at most `length` steps."""
    choose = random.Random(seed)
    states = [State.initial()]
    for _ in range(runs):
        state = State.initial()
        for _ in range(length):
            options = [after for _, _, after in interp.successors(spec, state)]
            if not options:
                break
            state = choose.choice(options)
            states.append(state)
    return states


def candidates(spec: Spec, states: Iterable[State]) -> list[Predicate]:
    """Generated candidates that hold in these states: how two variables of the same indices relate, cell by cell.

    x ≤ y and x = y where both are of one kind; "x is at its initial value, or y is not" for all.
    """
    shapes: dict[tuple[Any, ...], list[Var]] = {}
    for var in spec.schema.vars.values():
        shapes.setdefault(var.index, []).append(var)
    found = [p for group in shapes.values() for x, y in itertools.permutations(group, 2) for p in _relations(x, y)]
    for state in states:
        found = [p for p in found if interp.holds(spec, p, state)]
    return found


def _relations(x: Var, y: Var) -> Iterator[Predicate]:
    def cells(body: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
        return lambda s: _each(s, x, y, body)

    def predicate(text: str, body: Callable[[Any, Any], Any]) -> Predicate:
        return Predicate(f"candidate.{text}", text, cells(body), f"Generated: {text}.")

    comparable = agree(x.values.kind, y.values.kind)
    if comparable and not x.values.is_bool:
        yield predicate(f"{x.name} <= {y.name}", lambda a, b: a <= b)
    if comparable and x.name < y.name:
        yield predicate(f"{x.name} = {y.name}", lambda a, b: a == b)
    yield predicate(f"{x.name} only with {y.name}", lambda a, b: any_of(_is_init(a, x), lambda: _is_set(b, y)))


def _is_init(value: Any, var: Var) -> Any:
    return value == _initial(var)


def _is_set(value: Any, var: Var) -> Any:
    return value != _initial(var)


def _initial(var: Var) -> int:
    return bool(var.init) if var.values.is_bool else Constant(var.init, var.values.kind)


def _each(s: Any, x: Var, y: Var, body: Callable[[Any, Any], Any]) -> Any:
    """The body for all cells of two variables with the same indices."""

    def go(index: tuple[Any, ...]) -> Any:
        if len(index) == len(x.index):
            key = index if len(index) > 1 else index[0] if index else None
            a, b = s.cells(x.name), s.cells(y.name)
            return body(a, b) if key is None else body(a[key], b[key])
        sort: Any = x.index[len(index)]
        return forall(sort, lambda i: go((*index, i)))

    return go(())
