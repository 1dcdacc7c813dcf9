"""Comparing lowered terms with the reference interpreter on one state."""

from __future__ import annotations

import random
from collections.abc import Iterable

from viewproof.spec.engines import interp
from viewproof.spec.engines.smt.lower import Lowering
from viewproof.spec.engines.smt.steps import StepTerms, instances, lower_action
from viewproof.spec.engines.smt.terms import Term, evaluate
from viewproof.spec.lang import Predicate, Spec, SpecError
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.record import record_predicate

RANGE, DISABLED = "range error", "disabled"
Outcome = str | State


def lowered_steps(low: Lowering) -> list[StepTerms]:
    """All action instances as terms."""
    return [lower_action(low, ir, args) for ir in low.spec.action_irs for args in instances(low, ir)]


def lowered_predicates(low: Lowering, predicates: Iterable[Predicate]) -> list[tuple[Predicate, bool, Term]]:
    """Predicates with whether they speak of a step, and as one term."""
    found = []
    for p in predicates:
        ir = record_predicate(p.id, p.title, p.fn, low.spec.schema, low.spec.cfg, p.doc)
        found.append((p, ir.is_transition, low.terms.and_(part.term for part in low.split(ir.cond))))
    return found


def about_steps(spec: Spec, predicates: Iterable[Predicate]) -> set[str]:
    """Ids of the predicates that compare the states before and after a step."""
    return {p.id for p, is_step, _ in lowered_predicates(Lowering(spec), predicates) if is_step}


def by_interp(spec: Spec, state: State, step: StepTerms) -> Outcome:
    """What the interpreter says of an action instance."""
    try:
        after = interp.step(spec, state, spec.action(step.action), step.args)
    except SpecError:
        return RANGE
    return after if isinstance(after, State) else DISABLED


def by_terms(low: Lowering, state: State, step: StepTerms) -> Outcome:
    """What the terms say of it."""
    values = low.values_of(state)
    memo: dict[int, int] = {}
    if not all(evaluate(need.term, values, memo) for need in step.obligations):
        return RANGE
    if not evaluate(step.guard, values, memo):
        return DISABLED
    return low.state_of(values | {n: evaluate(v, values, memo) for n, v in step.changed.items()})


def holds(spec: Spec, predicate: Predicate, state: State, after: State | None) -> bool:
    """The interpreter's view of a predicate; one without a value counts as false."""
    try:
        return interp.holds(spec, predicate, state, after)
    except SpecError:
        return False


def same_predicates(
    low: Lowering, predicates: list[tuple[Predicate, bool, Term]], state: State, after: State
) -> list[str]:
    """Ids of predicates on which interpreter and terms differ."""
    values = low.values_of(state, after)
    memo: dict[int, int] = {}
    return [
        p.id
        for p, is_step, term in predicates
        if bool(evaluate(term, values, memo)) != holds(low.spec, p, state, after if is_step else None)
    ]


def random_state(low: Lowering, choose: random.Random) -> State:
    """Any values within the declared ranges: mostly not a reachable state."""
    cells = low.terms.cells
    quiet = choose.random()
    values = {}
    for (name, _), number in low.number.items():
        init = low.spec.schema.vars[name].init
        values[number] = init if choose.random() < quiet else choose.randint(cells[number].lo, cells[number].hi)
    return low.state_of(values)


def random_walk(spec: Spec, choose: random.Random, steps: int) -> list[State]:
    """Reachable states: one behaviour of the interpreter."""
    states = [State.initial()]
    for _ in range(steps):
        options = [after for _, _, after in interp.successors(spec, states[-1])]
        if not options:
            break
        states.append(choose.choice(options))
    return states
