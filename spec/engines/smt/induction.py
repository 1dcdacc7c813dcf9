"""Inductive proofs: the initial state satisfies the lemmas, and each action instance keeps each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from viewproof.spec.engines.smt.lower import Lowering
from viewproof.spec.engines.smt.solve import Session
from viewproof.spec.engines.smt.steps import StepTerms, instances, lower_action
from viewproof.spec.engines.smt.terms import Term
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Predicate, Spec
from viewproof.spec.lang.expr import ActionIR
from viewproof.spec.lang.record import record_predicate

RANGES = "ranges"
"""Name of the goal that no update leaves its declared range and no guard reads outside a sort."""


@dataclass(frozen=True)
class Goal:
    """One conjunct of a lemma: what is shown for every action instance."""

    lemma: str
    names: tuple[tuple[str, int], ...]
    term: Term

    @property
    def label(self) -> str:
        """`types.log_view[r=1]`."""
        return self.lemma + (f"[{', '.join(f'{k}={v}' for k, v in self.names)}]" if self.names else "")


@dataclass(frozen=True)
class Failure:
    """A goal that an action instance may break (`sat`, with the values of all cells), or one that was not decided."""

    action: str
    args: dict[str, int]
    goal: str
    names: tuple[tuple[str, int], ...]
    status: str
    values: dict[int, int] = field(default_factory=dict, repr=False)


@dataclass
class Tally:
    """Goals of one lemma or action: how many, how many needed the solver, and the seconds that took (and at most)."""

    queries: int = 0
    solved: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def took(self, seconds: float) -> None:
        """Count a visit to the solver."""
        self.seconds += seconds
        self.longest = max(self.longest, seconds)

    def add(self, other: Tally) -> None:
        """Sum of two."""
        self.queries += other.queries
        self.solved += other.solved
        self.seconds += other.seconds
        self.longest = max(self.longest, other.longest)


@dataclass
class Outcome:
    """What was found for one action instance; `used` (if asked for): the lemmas that each lemma needs."""

    label: str
    tallies: dict[str, Tally] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    used: dict[str, frozenset[str]] = field(default_factory=dict)
    seconds: float = 0.0


class Problem:
    """All of one proof, without a solver: lemmas as assumptions and goals, action instances as terms."""

    def __init__(self, spec: Spec, lemmas: Sequence[Predicate]) -> None:
        self.spec = spec
        self.low = Lowering(spec)
        self.lemmas = tuple(lemmas)
        self.assumed: list[Goal] = []
        self.step_goals: list[Goal] = []
        self.titles: dict[str, str] = {RANGES: "no declared range is left"}
        for lemma in self.lemmas:
            ir = record_predicate(lemma.id, lemma.title, lemma.fn, spec.schema, spec.cfg, lemma.doc)
            self.titles[lemma.id] = lemma.title
            goals = [Goal(lemma.id, p.names, p.term) for p in self.low.split(ir.cond)]
            (self.step_goals if ir.is_transition else self.assumed).extend(goals)

    @cached_property
    def work(self) -> list[tuple[ActionIR, dict[str, int]]]:
        """All action instances."""
        return [(ir, args) for ir in self.spec.action_irs for args in instances(self.low, ir)]

    @cached_property
    def known(self) -> frozenset[int]:
        """The assumptions, as ids of terms."""
        return frozenset(g.term.id for g in self.assumed)

    @cached_property
    def by_lemma(self) -> dict[str, Term]:
        """The assumptions, one per lemma."""
        parts: dict[str, list[Term]] = {}
        for goal in self.assumed:
            parts.setdefault(goal.lemma, []).append(goal.term)
        return {lemma: self.low.terms.and_(terms) for lemma, terms in parts.items()}

    def step(self, number: int) -> StepTerms:
        """The terms of an action instance."""
        ir, args = self.work[number]
        return lower_action(self.low, ir, args)

    def initially_false(self) -> list[Failure]:
        """Goals that the initial state does not satisfy."""
        values = self.low.values_of(State.initial())
        constant = {n: self.low.terms.const(v, self.low.terms.cells[n].is_bool) for n, v in values.items()}
        mask = sum(1 << n for n in constant)
        memo: dict[int, Term] = {}
        true = self.low.terms.true
        return [
            Failure("initial state", {}, goal.lemma, goal.names, "sat", values)
            for goal in self.assumed
            if self.low.terms.substitute(goal.term, constant, mask, memo) is not true
        ]

    def goals(self, step: StepTerms) -> Iterator[tuple[Goal, Term]]:
        """The goals of a step, over the state before it."""
        t = self.low.terms
        for need in step.obligations:
            yield Goal(RANGES, (), need.term), need.term
        mask = sum(1 << n for n in step.changed)
        memo: dict[int, Term] = {}
        for goal in self.assumed:
            yield goal, t.substitute(goal.term, step.changed, mask, memo)
        yield from self._over_step(step)

    def _over_step(self, step: StepTerms) -> Iterator[tuple[Goal, Term]]:
        t = self.low.terms
        both = dict(step.changed)
        for before, after in self.low.after.items():
            both[after] = step.changed.get(before, t.cells[before])
        mask = sum(1 << n for n in self.low.after.values())
        memo: dict[int, Term] = {}
        for goal in self.step_goals:
            yield goal, self.low.terms.substitute(goal.term, both, mask, memo)

    def step_goal_terms(self, step: StepTerms) -> Iterator[tuple[Goal, Term]]:
        """What a step has to keep by itself: the ranges, and what compares the states before and after it."""
        for need in step.obligations:
            yield Goal(RANGES, (), need.term), need.term
        yield from self._over_step(step)

    def is_known(self, term: Term) -> bool:
        """Is the goal true, or an assumption, as it stands?"""
        if term.kind == "and":
            return all(a.id in self.known or a is self.low.terms.true for a in term.args) or term.id in self.known
        return term is self.low.terms.true or term.id in self.known


def prove_step(problem: Problem, number: int, session: Callable[[], Session]) -> Outcome:
    """All goals of one action instance."""
    started = time.perf_counter()
    step = problem.step(number)
    outcome = Outcome(step.label)
    open_goals: dict[str, list[tuple[Goal, Term]]] = {}
    for goal, term in problem.goals(step):
        tally = outcome.tallies.setdefault(goal.lemma, Tally())
        tally.queries += 1
        if step.guard is not problem.low.terms.false and not problem.is_known(term):
            tally.solved += 1
            open_goals.setdefault(goal.lemma, []).append((goal, term))
    if open_goals:
        with session().assuming(step.guard) as solver:
            for lemma, goals in open_goals.items():
                checked = time.perf_counter()
                outcome.failures += _refute(problem, step, goals, solver)
                outcome.tallies[lemma].took(time.perf_counter() - checked)
    outcome.seconds = time.perf_counter() - started
    return outcome


def lemmas_used(problem: Problem, number: int, session: Callable[[], Session]) -> dict[str, frozenset[str]]:
    """Per lemma whose goals an action instance keeps and the solver is needed for: lemmas that together are enough.

    None of them can be left out alone. `session` holds the assumptions under the names of their lemmas.
    """
    step = problem.step(number)
    open_goals: dict[str, list[Term]] = {}
    for goal, term in problem.goals(step):
        if step.guard is not problem.low.terms.false and not problem.is_known(term):
            open_goals.setdefault(goal.lemma, []).append(term)
    found = {}
    if open_goals:
        with session().assuming(step.guard) as solver:
            for lemma, terms in open_goals.items():
                used = _needed(solver, problem.low.terms.and_(terms))
                if used is not None:
                    found[lemma] = used
    return found


def _needed(solver: Session, goal: Term) -> frozenset[str] | None:
    """Named assumptions that are enough, and of which none can be left out; None if all are not enough."""
    answer, core = solver.refute_with(goal, solver.marks)
    if answer.status != "unsat":
        return None
    for name in sorted(core):
        if name in core:
            answer, smaller = solver.refute_with(goal, core - {name})
            core = smaller if answer.status == "unsat" else core
    return core


def _refute(problem: Problem, step: StepTerms, goals: list[tuple[Goal, Term]], solver: Session) -> list[Failure]:
    """Goals of one lemma that fail. They are asked for together; only if that fails, one by one."""
    together = solver.refute(problem.low.terms.and_(term for _, term in goals))
    if together.status == "unsat":
        return []
    found = []
    for goal, term in goals:
        answer = solver.refute(term) if len(goals) > 1 else together
        if answer.status != "unsat":
            found.append(Failure(step.action, step.args, goal.lemma, goal.names, answer.status, answer.values))
    return found
