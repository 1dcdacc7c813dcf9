"""Runs an inductive proof over several processes and collects what it found.

Each process holds one solver with all assumptions and takes action instances as it is free. The result is the same
whatever the number of processes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from viewproof.spec.engines.smt.induction import Failure, Outcome, Problem, Tally, lemmas_used, prove_step
from viewproof.spec.engines.smt.processes import spread
from viewproof.spec.engines.smt.solve import Session
from viewproof.spec.lang.definitions import Predicate, Spec

Report = Callable[[int, int, str], None]
"""Progress: done, total, what was done last."""


@dataclass
class Proof:
    """Result of an inductive proof.

    `verdict` is `proved`; `failed` (a step from a state that satisfies the lemmas breaks one; `failures` hold it); or
    `unknown` (nothing failed, and some query was not decided). `used`: lemma → action → lemmas that the solver needed.
    """

    problem: Problem
    lemmas: dict[str, Tally] = field(default_factory=dict)
    actions: dict[str, Tally] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    used: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    seconds: float = 0.0
    workers: int = 1

    @property
    def verdict(self) -> str:
        """proved, failed or unknown."""
        if not self.failures:
            return "proved"
        return "failed" if any(f.status == "sat" for f in self.failures) else "unknown"

    def failed(self) -> dict[str, list[Failure]]:
        """Failures by lemma."""
        found: dict[str, list[Failure]] = {}
        for failure in self.failures:
            found.setdefault(failure.goal, []).append(failure)
        return found

    def take(self, action: str, outcome: Outcome) -> None:
        """Add what was found for an action instance."""
        for lemma, tally in outcome.tallies.items():
            self.lemmas.setdefault(lemma, Tally()).add(tally)
            self.actions.setdefault(action, Tally()).add(tally)
        self.failures += outcome.failures
        for lemma, names in outcome.used.items():
            by_action = self.used.setdefault(lemma, {})
            by_action[action] = by_action.get(action, frozenset()) | names


class Worker:
    """Proves action instances of one problem with one solver, which is made when it is first needed."""

    def __init__(self, problem: Problem, timeout_ms: int, used: bool = False) -> None:
        self.problem = problem
        self.timeout_ms = timeout_ms
        self.used = used
        self._session: Session | None = None
        self._named: Session | None = None

    def session(self) -> Session:
        """The solver."""
        if self._session is None:
            low = self.problem.low
            assumptions = (goal.term for goal in self.problem.assumed)
            self._session = Session(low.terms, low.number.values(), assumptions, self.timeout_ms)
        return self._session

    def named(self) -> Session:
        """A solver that holds each lemma as an assumption of its own."""
        if self._named is None:
            low = self.problem.low
            self._named = Session(low.terms, low.number.values(), (), self.timeout_ms, self.problem.by_lemma)
        return self._named

    def __call__(self, number: int) -> tuple[int, Outcome]:
        """Prove one action instance."""
        outcome = prove_step(self.problem, number, self.session)
        if self.used:
            outcome.used = lemmas_used(self.problem, number, self.named)
        return number, outcome


def processors() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def prove(
    spec: Spec,
    lemmas: Sequence[Predicate],
    *,
    workers: int = 1,
    timeout_ms: int = 0,
    stop_early: bool = False,
    used: bool = False,
    progress: Report = lambda done, total, name: None,
) -> Proof:
    """Are the spec's invariants and the lemmas together inductive in its instance?

    `timeout_ms` limits a query (0: no limit); one that meets the limit is unknown. `stop_early`
    ends the proof at the first action instance with a failure. `used` asks also which lemmas each lemma needs.
    """
    started = time.perf_counter()
    problem = Problem(spec, (*spec.invariants, *lemmas))
    proof = Proof(problem, {name: Tally() for name in problem.titles}, workers=workers)
    proof.failures += problem.initially_false()
    total = len(problem.work)
    with spread(Worker(problem, timeout_ms, used), range(total), workers) as outcomes:
        for done, (number, outcome) in enumerate(outcomes, start=1):
            proof.take(problem.work[number][0].name, outcome)
            progress(done, total, outcome.label)
            if stop_early and proof.failures:
                break
    order = {goal: n for n, goal in enumerate(problem.titles)}
    proof.failures.sort(key=lambda f: (order[f.goal], f.action, tuple(f.args.items()), f.names))
    proof.seconds = time.perf_counter() - started
    return proof
