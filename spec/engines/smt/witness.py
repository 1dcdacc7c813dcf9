"""Witnesses: for each premise of a lemma a reachable state in which it is true, so that the lemma is not vacuous.

A lemma is taken apart into conjuncts; those that differ only in the values of quantified names have one *shape*. The
premise of a conjunct is that all but its last disjunct are false. A shape without a witness says nothing about the
states that the search looked at; in a larger instance, or after more rounds, it may.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spec.engines import interp
from spec.engines.smt.chain import Chain, ChainError, round_blocks
from spec.engines.smt.induction import Problem
from spec.engines.smt.solve import Session
from spec.engines.smt.terms import Term, evaluate, rebuild
from spec.lang.concrete import State
from spec.lang.definitions import Predicate, Spec
from spec.lang.record import record_predicate


@dataclass
class Witness:
    """A shape of a lemma: which lemma, the text of its conclusion, and the steps to a state in which it counts."""

    lemma: str
    shape: int
    reached: bool = False
    steps: list[interp.Step] = field(default_factory=list)


def witnesses(spec: Spec, lemmas: Sequence[Predicate], rounds: int = 1) -> list[Witness]:
    """Look for a witness of each shape of each lemma about single states, in behaviours of that many rounds."""
    problem = Problem(spec, spec.invariants)
    chain = Chain(problem)
    for _ in range(rounds):
        chain.round(round_blocks(problem))
    session = Session(chain.terms, range(len(chain.terms.cells)), chain.facts)
    found = []
    for lemma in lemmas:
        ir = record_predicate(lemma.id, lemma.title, lemma.fn, spec.schema, spec.cfg, lemma.doc)
        shapes: dict[int, list[Term]] = {}
        for part in problem.low.split(ir.cond) if not ir.is_transition else ():
            shapes.setdefault(part.shape, []).append(part.premise)
        for number, premises in enumerate(shapes.values(), start=1):
            witness = Witness(lemma.id, number)
            _find(problem, chain, session, problem.low.terms.or_(premises), witness)
            found.append(witness)
    return found


def _find(problem: Problem, chain: Chain, session: Session, premise: Term, witness: Witness) -> None:
    with session.assuming(rebuild(chain.terms, premise, chain.now, {})) as solver:
        answer = solver.check()
    if answer.status != "sat":
        return
    state = State.initial()
    for happens, step in chain.chosen:
        if not answer.values[happens.args[0]]:
            continue
        after = interp.step(problem.spec, state, problem.spec.action(step.action), step.args)
        if isinstance(after, interp.Blocked):
            raise ChainError(f"{step.label} is a step here, but not in interp: {after.source(problem.spec)}")
        witness.steps.append(interp.Step(step.action, step.args, after))
        state = after
    if not evaluate(premise, problem.low.values_of(state)):
        raise ChainError(f"the premise of {witness.lemma} is true here, but not in interp")
    witness.reached = True
