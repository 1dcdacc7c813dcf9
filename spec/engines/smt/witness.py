"""Witnesses: for each premise of a lemma a reachable state in which it is true, so that the lemma is not vacuous.

A lemma is taken apart into parts with a premise each (`premises`). Two engines look for a state in which it is true:
the bounded search, round after round, and the search of all states, level by level. Either way the behaviour is
replayed in the reference interpreter, which must find the premise true as well; a lemma about steps is witnessed by a
step. A part without a witness says nothing about the states that were looked at; in a larger instance, or after more
rounds, it may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.explicit.emit import PREDICATES_MAX
from viewproof.spec.engines.smt.chain import Chain, ChainError, round_blocks
from viewproof.spec.engines.smt.induction import Problem
from viewproof.spec.engines.smt.premises import Part, parts
from viewproof.spec.engines.smt.solve import Session
from viewproof.spec.engines.smt.terms import rebuild
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Predicate, Spec

Report = Callable[[int, int, str], None]
"""Progress: parts with a witness, parts in all, what is asked now."""


@dataclass
class Witness:
    """A part of a lemma; by which engine it was reached (`z3`, `explicit`; empty if it was not), and the steps."""

    part: Part
    engine: str = ""
    steps: list[interp.Step] = field(default_factory=list)
    unreachable: bool = False
    """Is it false in every reachable state?"""

    @property
    def reached(self) -> bool:
        """Is there a witness?"""
        return bool(self.engine)

    def take(self, spec: Spec, engine: str, steps: Sequence[interp.Step]) -> None:
        """Keep a behaviour that ends in a state or step with the premise, which the interpreter must confirm."""
        if not holds_last(spec, self.part, steps):
            raise ChainError(f"the premise of {self.part.label} is true for {engine}, but not in interp")
        self.engine, self.steps = engine, list(steps)


def unwitnessed(spec: Spec, lemmas: Iterable[Predicate]) -> list[Witness]:
    """The parts of these lemmas, none of them reached yet."""
    return [Witness(part) for lemma in lemmas for part in parts(spec, lemma)]


def witnesses(spec: Spec, lemmas: Iterable[Predicate], **options: Any) -> list[Witness]:
    """A witness of each part of each lemma, where one is found; see `search` for the options."""
    found = unwitnessed(spec, lemmas)
    search(spec, found, **options)
    return found


def search(
    spec: Spec,
    found: Sequence[Witness],
    *,
    max_states: int | None = None,
    rounds: int = 0,
    timeout_ms: int = 0,
    report: Report = lambda done, total, name: None,
) -> None:
    """Look for what is not reached among up to `max_states` states (None: all; 0: none), and then, unless that was all
    of them, in up to `rounds` rounds of bounded search (`timeout_ms` limits a query of it, 0: no limit).
    """
    if max_states != 0:
        by_states(spec, found, max_states=max_states, report=report)
    by_rounds(spec, found, rounds, timeout_ms=timeout_ms, report=report)


def holds_last(spec: Spec, part: Part, steps: Sequence[interp.Step]) -> bool:
    """Is the premise true in the last state (or over the last step)?"""
    states = [State.initial(), *(step.state for step in steps)]
    if part.of_step:
        return len(states) > 1 and interp.holds(spec, part.predicate(), *states[-2:])
    return interp.holds(spec, part.predicate(), states[-1])


def _met(spec: Spec, witness: Witness, found: Iterable[Witness], engine: str, steps: list[interp.Step]) -> None:
    """Take a behaviour whose last state has the premise, and what else is witnessed on it.

    A lemma about steps whose premise speaks of the state before also needs a step from there, if there is one.
    """
    if witness.part.of_step and not witness.part.reads_after:
        state = steps[-1].state if steps else State.initial()
        following = next(interp.successors(spec, state), None)
        if following is None:
            return
        steps = [*steps, interp.Step(following[0].name, following[1], following[2])]
    witness.take(spec, engine, steps)
    for other in found:
        for length in range(len(steps) + 1):
            if not other.reached and holds_last(spec, other.part, steps[:length]):
                other.take(spec, engine, steps[:length])


def by_rounds(
    spec: Spec, found: Sequence[Witness], rounds: int, *, timeout_ms: int = 0, report: Report = lambda *_: None
) -> None:
    """Ask the bounded search in 1, 2, … rounds for the parts that are not reached; not for premises about steps."""
    asked = [w for w in found if not w.reached and not w.unreachable and not w.part.reads_after]
    if not asked or not rounds:
        return
    problem = Problem(spec, ())
    blocks = round_blocks(problem)
    chain = Chain(problem)
    for number in range(1, rounds + 1):
        chain.round(blocks)
        if all(w.reached for w in asked):
            return
        session = Session(chain.terms, range(len(chain.terms.cells)), chain.facts, timeout_ms)
        for witness in asked:
            if not witness.reached:
                report(sum(w.reached for w in found), len(found), f"{witness.part.label} in {number} rounds")
                _ask(problem, chain, session, witness, found)


def _ask(problem: Problem, chain: Chain, session: Session, witness: Witness, found: Sequence[Witness]) -> None:
    low = problem.low
    premise = low.expr(witness.part.premise, {})
    term = low.terms.and_((premise.term, premise.ok))
    with session.assuming(rebuild(chain.terms, term, chain.now, {})) as solver:
        answer = solver.check()
    if answer.status != "sat":
        return
    state, steps = State.initial(), []
    for happens, step in chain.chosen:
        if not answer.values[happens.args[0]]:
            continue
        after = interp.step(problem.spec, state, problem.spec.action(step.action), step.args)
        if isinstance(after, interp.Blocked):
            raise ChainError(f"{step.label} is a step here, but not in interp: {after.source(problem.spec)}")
        steps.append(interp.Step(step.action, step.args, after))
        state = after
    _met(problem.spec, witness, found, "z3", steps)


def by_states(
    spec: Spec, found: Sequence[Witness], *, max_states: int | None = None, report: Report = lambda *_: None
) -> None:
    """Search the states, breadth first, for the parts that are not reached.

    First all of them are asked about at once, then a shortest behaviour to each is built. Those that are met nowhere
    although all states were searched are `unreachable`.
    """
    waiting = [w for w in found if not w.reached and not w.part.reads_after]
    met: list[Witness] = [w for w in found if not w.reached and w.part.reads_after]
    for first in range(0, len(waiting), PREDICATES_MAX):
        group = waiting[first : first + PREDICATES_MAX]
        asked = tuple(w.part.predicate() for w in group)
        result = _explore(replace(spec, invariants=(), witnesses=asked), found, max_states, report)
        for w in group:
            w.unreachable = result.complete and w.part.label in result.unwitnessed
        met += [w for w in group if w.part.label in result.witnessed]
    while met := [w for w in met if not w.reached]:
        group = met[:PREDICATES_MAX]
        nearest = _nearest(spec, group, found, max_states, report)
        met = [w for w in met if w is not nearest and (nearest or w not in group)]


def _explore(question: Spec, found: Sequence[Witness], max_states: int | None, report: Report) -> explicit.Result:
    """One search. The engine ends it in good order on an interrupt, which is raised again here."""

    def progress(standing: explicit.Progress) -> None:
        report(sum(w.reached for w in found), len(found), f"{standing.distinct:,} states, depth {standing.level}")

    result = explicit.explore(question, max_states=max_states, progress=progress, notify=lambda _: None)
    if result.reason.startswith("interrupted"):
        raise KeyboardInterrupt
    return result


def _nearest(
    spec: Spec, group: Sequence[Witness], found: Sequence[Witness], max_states: int | None, report: Report
) -> Witness | None:
    """The nearest of these parts, with a shortest behaviour to it; None if none is met."""
    question = replace(spec, invariants=tuple(w.part.predicate(negated=True) for w in group), witnesses=())
    result = _explore(question, found, max_states, report)
    if result.broken is None:
        for w in group:
            w.unreachable = w.unreachable or result.complete
        return None
    nearest = next(w for w in group if w.part.label == result.broken)
    steps = [interp.Step(s.action, dict(s.args), s.state) for s in result.behaviour]
    _met(spec, nearest, found, "explicit", steps)
    return nearest
