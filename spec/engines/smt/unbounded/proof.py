"""Inductive proofs without sizes: any number of views, ops, clients, requests and restarts, a number of replicas.

The assumptions of every query are the lemmas, as clauses; a goal is one conjunct of a lemma after a step. Goals of a
lemma and an action instance are asked for together.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from viewproof.spec.engines.smt.induction import RANGES
from viewproof.spec.engines.smt.processes import spread
from viewproof.spec.engines.smt.terms import Term
from viewproof.spec.engines.smt.unbounded.clauses import BEFORE, Clauses, Goals, Sight, Step, Symbols, cases, family
from viewproof.spec.engines.smt.unbounded.solve import (
    ATTEMPTS,
    ROUNDS_MAX,
    Answer,
    Attempt,
    Clause,
    Query,
    clause,
)
from viewproof.spec.engines.smt.unbounded.terms import numbers_of
from viewproof.spec.lang.definitions import Predicate, Spec
from viewproof.spec.lang.expr import ActionIR, PredicateIR, Quant, Read, SortMax, walk
from viewproof.spec.lang.record import record_predicate
from viewproof.spec.lang.sorts import Instance

INITIAL, FOLLOWS = "initial state", "follows from the others"
TOGETHER = 12
"""Rounds in which the goals of a question may be refuted all at once; one by one, each takes fewer facts."""


@dataclass(frozen=True)
class Question:
    """One query of a proof: an action instance (none: the initial state) and a lemma, or the ranges; or that a lemma
    `follows` from the others.
    """

    step: Step | None
    lemma: str
    follows: bool = False

    @property
    def label(self) -> str:
        """`on_prepare(r=1) keeps I3`."""
        if self.follows:
            return f"{FOLLOWS}: {self.lemma}"
        return f"{self.step.label if self.step else INITIAL} keeps {self.lemma}"


class Problem:
    """All of one proof: lemmas as clauses, and what would refute each goal."""

    def __init__(self, spec: Spec, lemmas: Sequence[Predicate], following: Sequence[Predicate] = ()) -> None:
        self.spec = spec
        self.symbols = Symbols(spec)
        self.terms = self.symbols.terms
        self.clauses = Clauses(self.symbols)
        self.goals = Goals(self.clauses)
        self.lemmas: dict[str, PredicateIR] = {
            p.id: record_predicate(p.id, p.title, p.fn, spec.schema, spec.cfg, p.doc)
            for p in (*spec.invariants, *lemmas)
        }
        self.following: dict[str, PredicateIR] = {
            p.id: record_predicate(p.id, p.title, p.fn, spec.schema, spec.cfg, p.doc) for p in following
        }
        self._compiled: dict[int, Clause] = {}

    @cached_property
    def inductive(self) -> list[Clause]:
        """The lemmas about a state that are proved step by step."""
        return self._clauses(self.lemmas)

    @cached_property
    def assumed(self) -> list[Clause]:
        """All lemmas about a state."""
        return [*self.inductive, *self._clauses(self.following)]

    def before(self, following: str) -> list[Clause]:
        """What a lemma that follows is shown from: the lemmas, and those that follow before it."""
        names = list(self.following)
        said = names[: names.index(following)]
        return [*self.inductive, *(one for one in self.assumed if one.lemma in said)]

    def _clauses(self, lemmas: Mapping[str, PredicateIR]) -> list[Clause]:
        return [
            self.compiled(term, id)
            for id, ir in lemmas.items()
            if not ir.is_transition
            for term in self.clauses.of(ir.cond, True, {}, BEFORE, id)
        ]

    def compiled(self, term: Term, lemma: str = "") -> Clause:
        """A clause that can be evaluated; made once."""
        if term.id not in self._compiled:
            self._compiled[term.id] = clause(term, lemma)
        return self._compiled[term.id]

    @cached_property
    def steps(self) -> list[Step]:
        """All action instances."""
        return [step for ir in self.spec.action_irs for step in self.instances(ir)]

    def instances(self, ir: ActionIR) -> Iterator[Step]:
        """An action with all arguments of bounded sorts."""
        bounded = [p for p in ir.params if self.symbols.is_bounded(p.sort)]
        names = [p for p in ir.params if not self.symbols.is_bounded(p.sort)]
        free = {p.name: self.symbols.member(f"{p.name} of {p.sort.name}", p.sort) for p in names}
        for values in itertools.product(*(self.spec.instance.members(p.sort) for p in bounded)):
            args = {p.name: v for p, v in zip(bounded, values, strict=True)}
            yield Step(ir, {**free, **{k: self.terms.const(v) for k, v in args.items()}}, args)

    def questions(self, number: int) -> list[Question]:
        """What a proof asks of the initial state (0), of any state (1), or of an action instance: not of lemmas about
        variables that the action leaves alone.
        """
        if number == 0:
            return [Question(None, id) for id, ir in self.lemmas.items() if not ir.is_transition]
        if number == 1:
            return [Question(None, id, follows=True) for id in self.following]
        step = self.steps[number - 2]
        changed = [id for id, ir in self.lemmas.items() if ir.reads() & step.ir.writes()]
        return [Question(step, RANGES), *(Question(step, id) for id in changed)]

    def refuting(self, question: Question) -> list[list[Term]]:
        """Per goal of a question the clauses that would refute it; goals that the step leaves as they are, not."""
        step, goals = question.step, self.goals
        if question.lemma == RANGES:
            assert step is not None
            found = list(goals.kept_in_range(step))
        else:
            ir = self.named(question.lemma)
            sight = BEFORE if question.follows else Sight(step, not ir.is_transition, step is None)
            found = [*goals.of(ir.cond, {}, sight), *goals.defined(ir.cond, {}, sight)]
            if step is not None and not ir.is_transition:
                same = {_ids(g) for g in (*goals.of(ir.cond, {}, BEFORE), *goals.defined(ir.cond, {}, BEFORE))}
                found = [g for g in found if _ids(g) not in same]
        unique = {_ids(g): g for g in found if self.terms.false not in g}
        return list(unique.values())

    def named(self, lemma: str) -> PredicateIR:
        """A lemma by its name."""
        return self.lemmas.get(lemma) or self.following[lemma]

    def spoken_of(self, question: Question) -> frozenset[str]:
        """The variables that a question's lemma, its step's guard and what the step makes of those speak of; for ranges
        all that the step reads.
        """
        step = question.step
        if question.lemma == RANGES:
            return step.ir.reads() if step else frozenset()
        found = self.named(question.lemma).reads()
        if step is None:
            return found
        said = [g.cond for g in step.ir.guards]
        said += [e for u in step.ir.updates if u.var.name in found for e in (u.value, *u.index)]
        return found | {n.var.name for e in said for n in walk(e) if isinstance(n, Read)}

    def guard(self, step: Step) -> list[Term]:
        """What a step's guard says."""
        return [c for g in step.ir.guards for c in self.clauses.of(g.cond, True, step.env, BEFORE, "guard")]


def _ids(terms: Sequence[Term]) -> frozenset[int]:
    return frozenset(t.id for t in terms)


@dataclass(frozen=True)
class Result:
    """What a question came to: `goals` that z3 was asked for, what its answers say together, in how many queries, with
    how many facts. `action`: the empty text for the initial state.
    """

    label: str
    action: str
    lemma: str
    goals: int
    status: str = "unsat"
    queries: int = 0
    facts: int = 0
    seconds: float = 0.0


def ask(
    problem: Problem, question: Question, timeout_ms: int = 0, attempts: Sequence[Attempt] = ATTEMPTS
) -> Result:  # fmt: skip
    """Ask one question: all its goals together, and if that does not refute them, case by case, in several attempts."""
    sets = problem.refuting(question)
    started = time.perf_counter()
    answers: list[Answer] = []
    statuses = ["unsat"]
    if sets:
        answers.append(assume(problem, question, sets, timeout_ms, rounds_max=TOGETHER))
        statuses = [answers[0].status]
    if statuses != ["unsat"]:
        statuses = []
        for case in (case for goal in sets for case in cases(problem.terms, goal)):
            tried = _attempts(problem, question, case, timeout_ms, attempts)
            answers += tried
            statuses.append(tried[-1].status)
            if statuses[-1] == "sat":
                break
    status = "sat" if "sat" in statuses else "unknown" if "unknown" in statuses else "unsat"
    action = question.step.ir.name if question.step else FOLLOWS if question.follows else ""
    return Result(
        question.label, action, question.lemma, len(sets), status, len(answers), sum(len(a.facts) for a in answers),
        time.perf_counter() - started,
    )  # fmt: skip


def _attempts(
    problem: Problem, question: Question, goal: list[Term], timeout_ms: int, attempts: Sequence[Attempt]
) -> list[Answer]:  # fmt: skip
    """Answers for one goal, up to the first that decides it. Once a state is found in which the goal is false, only the
    attempts are left in which the values of variables are numbers, too.
    """
    found: list[Answer] = []
    states: list[Answer] = []
    for attempt in attempts:
        if states and not attempt.deep:
            continue
        answer = assume(problem, question, [goal], timeout_ms, attempt)
        if attempt.focused and answer.status == "sat":  # what was not assumed may say no
            answer = replace(answer, status="unknown")
        found.append(answer)
        states += [answer] if answer.status == "sat" else []
        if answer.status == "unsat" or (attempt.deep and answer.status == "sat"):
            return found
    return [*found, *states]


def assume(
    problem: Problem, question: Question, sets: list[list[Term]], timeout_ms: int = 0,
    attempt: Attempt = ATTEMPTS[0], rounds_max: int = ROUNDS_MAX,
) -> Answer:  # fmt: skip
    """Can a state that satisfies the lemmas take the step of a question, and one of these sets of clauses be true?"""
    terms = problem.terms
    query = Query(terms, question.lemma, timeout_ms, attempt)
    local: list[Clause] = []

    def state(term: Term) -> None:
        made = problem.compiled(term)
        if not made.holes:
            query.add(term)
            return
        local.append(made)
        for kind, number in numbers_of(terms, term):
            query.speak_of(kind, number)

    boolean = terms.range(0, 1, True)
    chosen = [terms.app(f"goal {n}", (), (), boolean) for n in range(len(sets))] if len(sets) > 1 else [terms.true]
    state(terms.or_(chosen))
    for picked, clauses in zip(chosen, sets, strict=True):
        for term in clauses:
            state(terms.implies(picked, term))
    step = question.step
    if step is not None:
        for param in (p for p in step.ir.params if not step.env[p.name].is_const):
            query.speak_of(family(param.sort), step.env[param.name])
        for term in problem.guard(step) if question.lemma != RANGES else ():
            state(term)
    assumed = problem.before(question.lemma) if question.follows else problem.assumed if step is not None else []
    if attempt.focused:
        spoken_of = problem.spoken_of(question)
        assumed = [one for one in assumed if problem.named(one.lemma).reads() <= spoken_of]

    def clauses_now() -> list[Clause]:
        defined = (t for ts in list(problem.symbols.defined_here.values()) for t in ts)
        return [*local, *assumed, *(problem.compiled(t) for t in defined)]

    return query.refute(clauses_now, rounds_max)


def without_sizes(spec: Spec, lemmas: Sequence[Predicate]) -> Spec:
    """The specification with any number of members of each sort but those over which something is counted, or the
    largest is sought among all members; these stay as many as the instance has.
    """
    recorded = (record_predicate(p.id, p.title, p.fn, spec.schema, spec.cfg, p.doc).cond
                for p in (*spec.invariants, *lemmas))  # fmt: skip
    said = (e for ir in spec.action_irs for e in (*(g.cond for g in ir.guards), *(u.value for u in ir.updates)))
    found = (n for e in (*recorded, *said) for n in walk(e) if isinstance(n, Quant))
    kept = {family(q.binder.name.sort) for q in found if q.binder.name.sort is not None and _is_counted(q)}
    bounds = {name: top for name, top in spec.instance.bounds.items() if name in kept}
    return replace(spec, instance=Instance(bounds))


def _is_counted(node: Quant) -> bool:
    return node.kind == "count" or (node.kind == "max" and isinstance(node.binder.hi, SortMax))


@dataclass
class Unbounded:
    """A proof without sizes: its results, in the order of the questions. `counted`: sort → how many members it has."""

    spec: Spec
    counted: dict[str, int]
    results: list[Result] = field(default_factory=list)
    seconds: float = 0.0
    workers: int = 1

    @property
    def verdict(self) -> str:
        """proved; failed (a goal has a counterexample among the numbers that were tried); or unknown."""
        statuses = {r.status for r in self.results}
        return "failed" if "sat" in statuses else "unknown" if "unknown" in statuses else "proved"

    @property
    def open(self) -> list[Result]:
        """The questions that were not answered with yes."""
        return [r for r in self.results if r.status != "unsat"]


@dataclass(frozen=True)
class Worker:
    """Asks all questions of one action instance, each anew: what is found does not depend on what was asked before."""

    spec: Spec
    lemmas: tuple[Predicate, ...]
    following: tuple[Predicate, ...]
    timeout_ms: int
    asked: tuple[str, ...]

    def __call__(self, number: int) -> tuple[int, list[Result]]:
        """The results of an action instance, by its number (`Problem.questions`)."""
        return number, [
            self._ask(number, index)
            for index, question in enumerate(self._problem().questions(number))
            if not self.asked or question.lemma in self.asked
        ]

    def _problem(self) -> Problem:
        return Problem(self.spec, self.lemmas, self.following)

    def _ask(self, number: int, index: int) -> Result:
        problem = self._problem()
        return ask(problem, problem.questions(number)[index], self.timeout_ms)


def prove(
    spec: Spec, lemmas: Sequence[Predicate], following: Sequence[Predicate] = (), *, workers: int = 1,
    timeout_ms: int = 0, actions: Sequence[str] = (), lemmas_asked: Sequence[str] = (),
    progress: Callable[[int, int, str], None] = lambda done, total, name: None,
) -> Unbounded:  # fmt: skip
    """Are the invariants and lemmas together inductive, whatever the sizes? `timeout_ms` limits a query.

    Lemmas that are `following` hold in every state in which the others do: that is asked once, not step by step.
    With `actions` or `lemmas_asked` only these are asked about; then nothing is proved of the specification as a whole.
    """
    started = time.perf_counter()
    open_spec = without_sizes(spec, (*lemmas, *following))
    labels = [INITIAL, FOLLOWS, *(step.label for step in Problem(open_spec, lemmas).steps)]
    numbers = [n for n, label in enumerate(labels) if not actions or label.split("(")[0] in actions]
    proof = Unbounded(open_spec, {name: top + 1 for name, top in open_spec.instance.bounds.items()}, workers=workers)
    found: dict[int, list[Result]] = {}
    worker = Worker(open_spec, tuple(lemmas), tuple(following), timeout_ms, tuple(lemmas_asked))
    with spread(worker, numbers, workers) as outcomes:
        for done, (number, results) in enumerate(outcomes, start=1):
            found[number] = results
            progress(done, len(numbers), labels[number])
    proof.results = [result for number in sorted(found) for result in found[number]]
    proof.seconds = time.perf_counter() - started
    return proof
