"""Counterexamples to induction, made small: a state that satisfies the lemmas, a step from it that breaks one, and why.

The state before the step is as close to the initial state as a greedy search makes it. Its *leaves* are a few of its
cells that alone, whatever the other cells hold, make the step possible and the lemma false after it (no one of them can
be left out). So if any reachable state has those leaves, the protocol breaks the lemma; if none has, the lemma needs a
stronger companion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from viewproof.spec.engines.smt.induction import RANGES, Failure, Problem
from viewproof.spec.engines.smt.lower import Place
from viewproof.spec.engines.smt.solve import Session
from viewproof.spec.engines.smt.steps import StepTerms
from viewproof.spec.engines.smt.terms import Term, evaluate
from viewproof.spec.lang import Predicate, all_of, not_
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.sorts import Constant


@dataclass(frozen=True)
class Leaf:
    """A cell of the state before, and its value."""

    var: str
    index: tuple[int, ...]
    value: int


@dataclass(frozen=True)
class Counterexample:
    """A step that breaks a lemma; `after` is None if the step leaves a declared range."""

    failure: Failure
    label: str
    before: State
    after: State | None
    leaves: tuple[Leaf, ...]

    def avoided(self, id: str) -> Predicate:
        """The predicate that no state has these leaves: false in a reachable state, the lemma really breaks."""

        def fn(s: object) -> object:
            return not_(all_of(*(_cell(s, leaf) == _value(leaf, s) for leaf in self.leaves)))

        return Predicate(id, "no state has these leaves", fn, "The leaves of a counterexample to induction.")


def _cell(s: Any, leaf: Leaf) -> Any:
    cells = s.cells(leaf.var)
    if not leaf.index:
        return cells
    return cells[leaf.index if len(leaf.index) > 1 else leaf.index[0]]


def _value(leaf: Leaf, s: object) -> object:
    values = s.schema.vars[leaf.var].values  # type: ignore[attr-defined]
    return bool(leaf.value) if values.is_bool else Constant(leaf.value, values.kind)


def explain(problem: Problem, failure: Failure) -> Counterexample:
    """Make a failure of an action instance small and readable."""
    number = next(n for n, (ir, args) in enumerate(problem.work) if (ir.name, args) == (failure.action, failure.args))
    step = problem.step(number)
    goal = _goal_term(problem, step, failure)
    t = problem.low.terms
    breaks = t.not_(goal) if failure.goal == RANGES else t.and_((step.guard, t.not_(goal)))
    values = _closest(problem, breaks, failure.values)
    leaves = _leaves(problem, breaks, values)
    after = None
    if failure.goal != RANGES:
        memo: dict[int, int] = {}
        changed = {n: evaluate(value, values, memo) for n, value in step.changed.items()}
        after = problem.low.state_of(values | changed)
    return Counterexample(failure, step.label, problem.low.state_of(values), after, leaves)


def _goal_term(problem: Problem, step: StepTerms, failure: Failure) -> Term:
    values = failure.values
    for goal, term in problem.goals(step):
        if (goal.lemma, goal.names) == (failure.goal, failure.names) and not evaluate(term, values):
            return term
    raise ValueError(f"{failure.goal} holds after {step.label} here")


def _closest(problem: Problem, breaks: Term, values: dict[int, int]) -> dict[int, int]:
    """A state that breaks, with as many cells at their initial value as a greedy search finds, halves first."""
    low = problem.low
    initial = low.values_of(State.initial())
    session = Session(low.terms, low.number.values(), [g.term for g in problem.assumed])
    best = values
    with session.assuming(breaks) as solver:
        waiting = [[n for n in initial if values[n] != initial[n]]]
        while waiting:
            group = [n for n in waiting.pop() if best[n] != initial[n]]
            if not group:
                continue
            answer = solver.with_cells({n: initial[n] for n in group})
            if answer.status == "sat":
                best = answer.values
                solver.fix({n: initial[n] for n in group})
            elif len(group) > 1:
                half = len(group) // 2
                waiting += [group[half:], group[:half]]
    return best


def _leaves(problem: Problem, breaks: Term, values: dict[int, int]) -> tuple[Leaf, ...]:
    """A smallest (by leaving out) set of cells whose values alone imply the break."""
    low = problem.low
    cells = [n for n in low.number.values() if breaks.support >> n & 1]
    session = Session(low.terms, cells, [low.terms.not_(breaks)])
    needed = session.core({n: values[n] for n in cells})
    for number in list(needed):
        rest = [n for n in needed if n != number]
        if session.with_cells({n: values[n] for n in rest}).status == "unsat":
            needed = rest
    places: Sequence[Place] = low.places
    return tuple(Leaf(*places[n], values[n]) for n in sorted(needed))
