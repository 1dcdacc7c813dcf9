"""Bounded search: rounds in which every action instance may happen once, in one order.

A round goes through the *epochs* in ascending order (the members of the sort that indexes most messages: views); in
each epoch every action instance occurs once, optionally, the actions in the order of their dependencies. So one round
swallows whole view changes. A behaviour that is found is minimised in the number of its steps and replayed in the
reference interpreter.

**Violated** means: the replayed behaviour breaks the invariant. It is the shortest of the shape searched, which need
not be the shortest of all. **Nothing found** means only that no behaviour of that many rounds breaks one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from viewproof.spec.engines import interp
from viewproof.spec.engines.smt.constraints import Constraints
from viewproof.spec.engines.smt.induction import RANGES, Goal, Problem
from viewproof.spec.engines.smt.solve import Chooser
from viewproof.spec.engines.smt.steps import StepTerms
from viewproof.spec.engines.smt.terms import Term, Terms, rebuild
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Predicate, Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import ActionIR, Read, walk
from viewproof.spec.lang.sorts import Sort


class ChainError(Exception):
    """The solver's behaviour is not one of the reference interpreter: a fault of the tool, never a verdict."""


@dataclass
class Found:
    """Result of a bounded search: `steps` (empty if nothing was found) end in the break of `broken`."""

    rounds: int
    broken: str | None = None
    title: str = ""
    steps: list[interp.Step] = field(default_factory=list)
    minimal: bool = False
    seconds: float = 0.0
    positions: int = 0
    unknown: bool = False


def epoch_sort(spec: Spec) -> Sort | None:
    """The sort that indexes the most messages, the first of several, and is a parameter of an action; None if there is
    none.
    """
    counts: dict[Sort, int] = {}
    for var in spec.schema.vars.values():
        for sort in dict.fromkeys(var.index) if var.is_message else ():
            counts[sort] = counts.get(sort, 0) + 1
    candidates = [s for s in counts if any(p.sort == s for ir in spec.action_irs for p in ir.params)]
    return max(candidates, key=lambda s: counts[s], default=None)


def action_order(irs: Sequence[ActionIR]) -> list[ActionIR]:
    """Actions such that what one's guard reads is written before, where that has an order; else as declared."""
    needs = [{n.var.name for g in ir.guards for n in walk(g.cond) if isinstance(n, Read)} for ir in irs]
    count = range(len(irs))
    leads = {(i, j) for i in count for j in count if i != j and irs[i].writes() & needs[j]}
    for k in count:
        leads |= {(i, j) for i in count if (i, k) in leads for j in count if (k, j) in leads}
    waiting = list(count)
    order = []
    while waiting:
        ready = (j for j in waiting if not any((i, j) in leads and (j, i) not in leads for i in waiting))
        order.append(next(ready))
        waiting.remove(order[-1])
    return [irs[i] for i in order]


class Chain:
    """The behaviour so far as terms, with one Boolean per position that says whether its action instance happens."""

    def __init__(self, problem: Problem, *, partial_order: bool = False, symmetry: bool = False) -> None:
        self.problem = problem
        self.terms = Terms(track=False)
        self.constraints = Constraints(self.terms, problem.spec, partial_order=partial_order, symmetry=symmetry)
        values = problem.low.values_of(State.initial())
        self.now: dict[int, Term] = {
            n: self.terms.const(v, problem.low.terms.cells[n].is_bool) for n, v in values.items()
        }
        self.chosen: list[tuple[Term, StepTerms]] = []
        self.facts: list[Term] = []

    def round(self, blocks: Sequence[Sequence[StepTerms]]) -> None:
        """Append a round."""
        for block in blocks:
            for step in block:
                self._append(step)

    def _append(self, step: StepTerms) -> None:
        t = self.terms
        memo: dict[int, Term] = {}
        guard = rebuild(t, step.guard, self.now, memo)
        if guard is t.false:
            return
        happens = t.cell(0, 1, True)
        self.facts.append(t.implies(happens, guard))
        self.facts += self.constraints.append(happens, step)
        self.chosen.append((happens, step))
        after = {}
        for number, value in step.changed.items():
            new = t.ite(happens, rebuild(t, value, self.now, memo), self.now[number])
            after[number] = self._named(new, number)
        self.now.update(after)

    def _named(self, value: Term, number: int) -> Term:
        """A cell that equals the value, so that terms do not grow along the chain."""
        if value.is_const or value.kind == "cell":
            return value
        like = self.problem.low.terms.cells[number]
        lo, hi = max(like.lo, value.lo), min(like.hi, value.hi)
        fresh = self.terms.cell(lo, hi, like.is_bool)
        self.facts.append(self.terms.eq(fresh, value))
        return fresh


class Breaks:
    """What counts as a break: an invariant false now, or a last step that breaks a transition invariant or a range."""

    def __init__(self, problem: Problem, steps: Sequence[StepTerms]) -> None:
        self.problem = problem
        self.steps = steps

    @cached_property
    def last_steps(self) -> list[tuple[StepTerms, list[tuple[Goal, Term]]]]:
        """Per action instance the goals about its step that are not true as they stand."""
        true = self.problem.low.terms.true
        found = []
        for step in self.steps:
            goals = [(g, term) for g, term in self.problem.step_goal_terms(step) if term is not true]
            if goals:
                found.append((step, goals))
        return found

    def over(self, terms: Terms, now: Mapping[int, Term], happens: Sequence[Term]) -> Term:
        """Is something broken in this state, or by one of the last steps (chosen by `happens`) from it?"""
        memo: dict[int, Term] = {}
        state = [terms.not_(rebuild(terms, g.term, now, memo)) for g in self.problem.assumed]
        last = []
        for flag, (step, goals) in zip(happens, self.last_steps, strict=True):
            ranges = terms.and_(rebuild(terms, term, now, memo) for g, term in goals if g.lemma == RANGES)
            kept = terms.and_(rebuild(terms, term, now, memo) for g, term in goals if g.lemma != RANGES)
            breaks = terms.and_((rebuild(terms, step.guard, now, memo), terms.not_(kept)))
            last.append(terms.and_((flag, terms.or_((breaks, terms.not_(ranges))))))
        return terms.and_((terms.or_((*state, *last)), terms.not_(terms.atleast(2, happens))))


def search(
    spec: Spec,
    max_rounds: int,
    *,
    timeout_ms: int = 0,
    minimise_ms: int = 20_000,
    partial_order: bool = True,
    symmetry: bool = True,
) -> Found:
    """Look for a break of an invariant in 1, 2, … `max_rounds` rounds.

    `timeout_ms` limits the search of a round (0: no limit; a round that meets it leaves `unknown` set), `minimise_ms`
    each attempt to find a shorter behaviour of those rounds; `minimal` says that there is none. `partial_order` and
    `symmetry` leave out behaviours of which others are as good (see `constraints`).
    """
    started = time.perf_counter()
    problem = Problem(spec, spec.invariants)
    blocks = round_blocks(problem)
    breaks = Breaks(problem, list(_all_steps(problem)))
    chain = Chain(problem, partial_order=partial_order, symmetry=symmetry)
    last = [chain.terms.cell(0, 1, True) for _ in breaks.last_steps]
    found = Found(0)
    for rounds in range(1, max_rounds + 1):
        chain.round(blocks)
        found.rounds, found.positions = rounds, len(chain.chosen)
        flags = [*(flag for flag, _ in chain.chosen), *last]
        steps = [*(s for _, s in chain.chosen), *(s for s, _ in breaks.last_steps)]
        ordered = [
            fact
            for flag, (step, _) in zip(last, breaks.last_steps, strict=True)
            for fact in chain.constraints.in_order(flag, step)
        ]
        chooser = Chooser(chain.terms, [*chain.facts, *ordered], breaks.over(chain.terms, chain.now, last), flags)
        status, on = chooser.solve(timeout_ms=timeout_ms)
        found.unknown |= status == "unknown"
        if status == "sat":
            _shortest(spec, chooser, steps, on, found, minimise_ms)
            break
    found.seconds = time.perf_counter() - started
    return found


def _shortest(
    spec: Spec, chooser: Chooser, steps: Sequence[StepTerms], on: tuple[bool, ...], found: Found, minimise_ms: int
) -> None:
    """Shorten the behaviour: by leaving out steps it does not need, and by asking for a shorter one."""
    while True:
        picked = [step for step, flag in zip(steps, on, strict=True) if flag]
        best = replay(spec, picked)
        if best is None:
            raise ChainError(f"no invariant is broken in interp after {', '.join(s.label for s in picked)}")
        best = _without_needless(spec, best)
        if not best.length:
            status = "unsat"
            break
        status, on = chooser.solve(best.length - 1, minimise_ms)
        if status != "sat":
            break
    found.broken, found.title, found.steps = best.broken, best.title, best.steps
    found.minimal = status == "unsat"


def _all_steps(problem: Problem) -> Iterator[StepTerms]:
    false = problem.low.terms.false
    for number in range(len(problem.work)):
        step = problem.step(number)
        if step.guard is not false:
            yield step


def round_order(spec: Spec) -> list[tuple[str, dict[str, int]]]:
    """The action instances of a round, with their arguments, in order."""
    return [(step.action, step.args) for block in round_blocks(Problem(spec, ())) for step in block]


def round_blocks(problem: Problem) -> list[list[StepTerms]]:
    """Per epoch the action instances in order: one round. One that speaks of several epochs stands in the last."""
    return list(_blocks(problem))


def _blocks(problem: Problem) -> Iterator[list[StepTerms]]:
    spec, sort = problem.spec, epoch_sort(problem.spec)
    steps: dict[str, list[StepTerms]] = {}
    for step in _all_steps(problem):
        steps.setdefault(step.action, []).append(step)
    names = {ir.name: [p.name for p in ir.params if p.sort == sort] for ir in spec.action_irs}
    for epoch in spec.instance.members(sort) if sort else (0,):
        yield [
            step
            for ir in action_order(spec.action_irs)
            for step in steps.get(ir.name, ())
            if max((step.args[name] for name in names[ir.name]), default=epoch) == epoch
        ]


@dataclass
class Replayed:
    """A behaviour in the interpreter up to its first break."""

    picked: list[StepTerms]
    broken: str = ""
    title: str = ""
    steps: list[interp.Step] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Number of steps, the one that leaves a range included."""
        return len(self.picked)


def replay(spec: Spec, picked: Sequence[StepTerms]) -> Replayed | None:
    """Take the steps in the interpreter up to the first break; None if one is not enabled, or nothing breaks."""
    transition = {p.name for p in spec.invariant_irs if p.is_transition}
    state = State.initial()
    steps: list[interp.Step] = []
    broken = _broken(spec, [p for p in spec.invariants if p.id not in transition], state, None)
    if broken:
        return Replayed([], broken[0], f"{broken[1]} (in the initial state)", steps)
    for number, step in enumerate(picked, start=1):
        try:
            after = interp.step(spec, state, spec.action(step.action), step.args)
        except SpecError as problem:
            return Replayed(list(picked[:number]), RANGES, f"{step.label}: {problem}", steps)
        if isinstance(after, interp.Blocked):
            return None
        steps.append(interp.Step(step.action, step.args, after))
        broken = _broken(spec, [p for p in spec.invariants if p.id in transition], state, after)
        broken = broken or _broken(spec, [p for p in spec.invariants if p.id not in transition], after, None)
        if broken:
            return Replayed(list(picked[:number]), *broken, steps)
        state = after
    return None


def _broken(spec: Spec, predicates: Iterable[Predicate], state: State, after: State | None) -> tuple[str, str] | None:
    """Id and title of the first predicate that is false, or has no value because it reads outside a range."""
    for p in predicates:
        try:
            if not interp.holds(spec, p, state, after):
                return p.id, p.title
        except SpecError as problem:
            return p.id, f"{p.title} has no value: {problem}"
    return None


def _without_needless(spec: Spec, best: Replayed) -> Replayed:
    """Leave out steps, the last first, as long as something still breaks."""
    number = best.length - 1
    while number >= 0:
        shorter = replay(spec, [*best.picked[:number], *best.picked[number + 1 :]])
        if shorter is not None:
            best = shorter
        number = min(number, best.length) - 1
    return best
