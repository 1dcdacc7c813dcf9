"""Refutes clauses with z3: holes are filled with the numbers that the clauses speak of, as models ask for it.

A query starts with its facts. While z3 finds a model of them, the clauses are evaluated in it for all numbers at hand;
fillings that the model makes false are added. `unsat` is final: every filling follows from what is assumed. When no
filling is false the model stands, as far as these numbers go.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from viewproof.spec.engines.smt.encode import OPERATIONS
from viewproof.spec.engines.smt.terms import Term
from viewproof.spec.engines.smt.unbounded.terms import END, OpenTerms, holes, nodes

NO_LIMIT_MS = 4294967295
ROUNDS_MAX = 150
EFFORT = 3_000_000
"""Limit of one check, in z3's own count of what it did: the same on a machine that is busy (some seconds)."""


@dataclass(frozen=True)
class Attempt:
    """A way to look for a refutation: where one gets lost, another often does not.

    `per_clause`: fillings of a clause that are added in a round. `focused`: only the lemmas are assumed that speak of
    what the goal and the guard speak of, and of nothing else. `per_round`: fillings that are added in a round, those
    that speak of what was spoken of before; 0: of all clauses. `deep`: the values of variables are numbers, too;
    without that, facts that are consistent may still be refuted with it.
    """

    per_clause: int = 6
    focused: bool = False
    seed: int = 0
    per_round: int = 0
    deep: bool = False


ATTEMPTS = (
    Attempt(per_round=40),
    Attempt(per_round=40, deep=True),
    Attempt(),
    Attempt(focused=True),
    Attempt(per_round=20, seed=1),
    Attempt(3, seed=1),
    Attempt(per_round=20, deep=True, seed=2),
    Attempt(12, True, 2),
    Attempt(12, seed=3),
)


Chosen = tuple[tuple[int, int, Term], ...]
"""Numbers for the holes of a clause: value in a model, level, term."""
Numbers = Sequence[tuple[int, int, Term]]
"""The numbers of a family."""


class Encoder:
    """Terms as z3 expressions over integers and uninterpreted functions, in a memory of their own: what z3 finds does
    not depend on what it was asked before.
    """

    def __init__(self) -> None:
        self.context: Any = z3.Context()
        self._known: dict[int, Any] = {}
        self._functions: dict[str, Any] = {}

    def __call__(self, term: Term) -> Any:
        """The z3 expression of a term."""
        for node in nodes([term]):
            if node.id not in self._known:
                self._known[node.id] = self._encode(node)
        return self._known[term.id]

    def _encode(self, term: Term) -> Any:
        if term.kind == "const":
            value = z3.BoolVal if term.is_bool else z3.IntVal
            return value(bool(term.lo) if term.is_bool else term.lo, self.context)
        args = [self._known[a.id] for a in term.parts]
        if term.kind == "app":
            return self._function(term)(*args)
        if term.kind == "atleast":
            return z3.Or([z3.And(chosen) for chosen in itertools.combinations(args, term.args[0])])
        if term.kind == "count":
            return z3.Sum([z3.If(a, 1, 0) for a in args])
        if term.kind == "max":
            return functools.reduce(lambda best, one: z3.If(best <= one, one, best), args)
        return OPERATIONS[term.kind](*args)

    def _function(self, term: Term) -> Any:
        name = term.args[0]
        if name not in self._functions:
            number = z3.IntSort(self.context)
            result = z3.BoolSort(self.context) if term.is_bool else number
            self._functions[name] = z3.Function(name, *(number for _ in term.args[1:]), result)
        return self._functions[name]


@dataclass(frozen=True)
class Clause:
    """A term that holds however its holes are filled; `says` evaluates it for numbers in a model."""

    term: Term
    holes: tuple[Term, ...]
    says: Callable[..., bool]
    lemma: str = ""
    names_witness: bool = False
    places: Callable[..., tuple[tuple[str, tuple[int, ...]], ...]] = lambda *_: ()
    """The values that it speaks of for given numbers: functions with their arguments."""
    reaches: tuple[tuple[int, ...], ...] = ()
    """Per hole the places whose arguments it is in."""


def clause(term: Term, lemma: str = "") -> Clause:
    """A clause that can be evaluated."""
    found = tuple(holes(term))
    witness = any(node.kind == "app" and node.args[0].startswith(f"{lemma} ") for node in nodes([term]))
    apps = [node for node in nodes([term]) if node.kind == "app"]
    reaches = tuple(tuple(i for i, app in enumerate(apps) if hole in holes(app)) for hole in found)
    return Clause(
        term, found, _compiled(term, found), lemma, bool(lemma) and witness, _compiled(term, found, apps), reaches
    )


def _compiled(term: Term, params: tuple[Term, ...], places: Sequence[Term] | None = None) -> Callable[..., Any]:
    """A term as a Python function of the values of its holes and the tables of a model; or its `places`."""
    uses: dict[int, int] = {}
    order = list(nodes([term]))
    for node in order:
        for part in node.parts:
            uses[part.id] = uses.get(part.id, 0) + 1
    text = {hole.id: f"h{i}" for i, hole in enumerate(params)}
    lines: list[str] = []
    for node in order:
        if node.kind == "hole":
            continue
        text[node.id] = _text(node, text)
        if uses.get(node.id, 0) > 1 and not node.is_const:
            lines.append(f"    t{node.id} = {text[node.id]}")
            text[node.id] = f"t{node.id}"
    names = ", ".join(["F", *(f"h{i}" for i in range(len(params)))])
    result = text[term.id]
    if places is not None:
        said = (f"({app.args[0]!r}, ({''.join(text[a.id] + ', ' for a in app.parts)}))" for app in places)
        result = f"({''.join(one + ', ' for one in said)})"
    return _function("\n".join([f"def says({names}):", *lines, f"    return {result}"]))


@functools.cache
def _function(source: str) -> Callable[..., Any]:
    """The function that a text defines."""
    space: dict[str, Any] = {}
    exec(compile(source, "<clause>", "exec"), space)
    found: Callable[..., Any] = space["says"]
    return found


def _text(node: Term, text: Mapping[int, str]) -> str:
    if node.is_const:
        return str(bool(node.lo)) if node.is_bool else str(node.lo)
    args = [text[a.id] for a in node.parts]
    if node.kind == "app":
        return f"F({node.args[0]!r}, ({''.join(a + ', ' for a in args)}), {False if node.is_bool else node.lo})"
    if node.kind == "max":
        return f"max({', '.join(args)})"
    if node.kind == "atleast":
        return f"(({' + '.join(args)}) >= {node.args[0]})"
    joined = {"and": " and ", "or": " or ", "count": " + ", "add": " + ", "sub": " - ", "eq": " == ", "le": " <= "}
    if node.kind == "not":
        return f"(not {args[0]})"
    if node.kind == "ite":
        return f"({args[1]} if {args[0]} else {args[2]})"
    return f"({joined[node.kind].join(args)})"


@dataclass
class Answer:
    """`unsat` with the fillings that were enough, `sat` with the values of the functions, or `unknown`."""

    status: str
    rounds: int = 0
    facts: list[Term] = field(default_factory=list)
    values: dict[str, dict[tuple[int, ...], int]] = field(default_factory=dict)
    seconds: float = 0.0


class Query:
    """One question to z3: are these facts consistent with the clauses?"""

    def __init__(
        self, terms: OpenTerms, about: str, timeout_ms: int = 0, attempt: Attempt = ATTEMPTS[0]
    ) -> None:  # fmt: skip
        self.about = about
        self.terms = terms
        self.encode = Encoder()
        self.attempt = attempt
        self.solver: Any = z3.SolverFor("QF_UFIDL", ctx=self.encode.context)
        self.solver.set("rlimit", EFFORT)
        self.solver.set("random_seed", attempt.seed)
        self.timeout_ms = timeout_ms
        self.facts: list[Term] = []
        self._apps: dict[int, Term] = {}
        self._ground: dict[str, dict[int, tuple[int, Term]]] = {}
        self._added: set[int] = set()

    def add(self, term: Term, level: int = 0) -> None:
        """A fact without holes. Numbers that it speaks of first are of this level."""
        if term is self.terms.true or term.id in self._added:
            return
        self._added.add(term.id)
        self.facts.append(term)
        for node in nodes([term]):
            if node.kind == "app" and node.id not in self._apps:
                self._apps[node.id] = node
                self._note(node, level)
        self.solver.add(self.encode(term))

    def _note(self, app: Term, level: int) -> None:
        for kind, arg in zip(self.terms.families[app.args[0]], app.args[1:], strict=True):
            self._ground.setdefault(kind, {}).setdefault(arg.id, (level, arg))
        if app.args[0] in self.terms.names_number and (self.attempt.deep or len(app.args) == 1):
            kind = self.terms.names_number[app.args[0]]
            self._ground.setdefault(kind, {}).setdefault(app.id, (level + 1, app))
        for limit in limits(self.encode, app):
            self.solver.add(limit)

    def speak_of(self, kind: str, term: Term) -> None:
        """A number that holes are filled with."""
        self._ground.setdefault(kind, {}).setdefault(term.id, (0, term))
        for node in nodes([term]):
            if node.kind == "app" and node.id not in self._apps:
                self._apps[node.id] = node
                self._note(node, 0)

    def refute(self, clauses: Callable[[], Sequence[Clause]], rounds_max: int = ROUNDS_MAX) -> Answer:
        """Can all facts and clauses be true?"""
        started = time.perf_counter()
        stage = 0
        for number in range(1, rounds_max + 1):
            left = int(self.timeout_ms - (time.perf_counter() - started) * 1000)
            if self.timeout_ms and left <= 0:
                break
            self.solver.set("timeout", left if self.timeout_ms else NO_LIMIT_MS)
            status = str(self.solver.check())
            if status == "unknown" and "interrupted" in str(self.solver.reason_unknown()):
                raise KeyboardInterrupt
            if status != "sat":
                return Answer(status, number, self.facts, seconds=time.perf_counter() - started)
            model = Model(self, self.solver.model())
            while not self._fill(clauses(), model, stage):
                if stage // 2 <= self.deepest():
                    stage += 1
                    continue
                return Answer("sat", number, self.facts, model.tables, time.perf_counter() - started)
        return Answer("unknown", rounds_max, self.facts, seconds=time.perf_counter() - started)

    def deepest(self) -> int:
        """The largest level of a number."""
        return max((level for terms in self._ground.values() for level, _ in terms.values()), default=0)

    def _fill(self, clauses: Sequence[Clause], model: Model, stage: int) -> bool:
        """Add fillings that the model makes false; was there one? Numbers of a deeper level, and clauses that name a
        witness, are for later stages.
        """
        level = stage // 2
        numbers = {
            kind: model.distinct((own, term) for own, term in terms.values() if own <= level)
            for kind, terms in self._ground.items()
        }
        before = len(self.facts)
        if self.attempt.per_round:
            self._fill_near(clauses, model, numbers)
        else:
            self._fill_each(clauses, model, numbers, stage % 2 == 0)
        return len(self.facts) > before

    def _fill_each(
        self, clauses: Sequence[Clause], model: Model, numbers: Mapping[str, Numbers], without_witnesses: bool
    ) -> None:
        """A number of fillings of each clause."""
        found: list[tuple[Term, int]] = []
        for one in clauses:
            own = one.lemma == self.about
            if one.names_witness and not own and without_witnesses:
                continue
            false = itertools.islice(self._false(one, model, numbers), self.attempt.per_clause)
            found += [(self._filled(one, chosen), _deepest(chosen) + (1 if own else 2)) for chosen in false]
        for term, deeper in found:
            self.add(term, deeper)

    def _fill_near(self, clauses: Sequence[Clause], model: Model, numbers: Mapping[str, Numbers]) -> None:
        """Those fillings that say most of what was spoken of before: first those with each number in such a place."""
        found: list[tuple[tuple[int, int, int, int], Clause, Chosen]] = []
        for one in clauses:
            for chosen in self._false(one, model, numbers):
                places = one.places(model, *(value for value, _, _ in chosen))
                known = [args in model.tables.get(name, ()) for name, args in places]
                apart = sum(not any(known[i] for i in reach) for reach in one.reaches)
                found.append(((apart, known.count(False), len(known), _deepest(chosen)), one, chosen))
        found.sort(key=lambda filling: filling[0])
        before = len(self.facts)
        for rank, one, chosen in found:
            added = len(self.facts) - before
            if added >= self.attempt.per_round or (added and rank[0] > found[0][0][0]):
                break
            self.add(self._filled(one, chosen), _deepest(chosen) + 1)

    def _false(self, one: Clause, model: Model, numbers: Mapping[str, Numbers]) -> Iterator[Chosen]:
        """The fillings of a clause that are false in the model."""
        kinds = [self.terms.holes[hole.id] for hole in one.holes]
        for chosen in itertools.product(*(numbers.get(kind, ()) for kind in kinds)):
            if not one.says(model, *(value for value, _, _ in chosen)):
                yield chosen

    def _filled(self, one: Clause, chosen: Chosen) -> Term:
        terms = {hole.id: term for hole, (_, _, term) in zip(one.holes, chosen, strict=True)}
        return self.terms.fill(one.term, terms, {})


def _deepest(chosen: Chosen) -> int:
    return max((level for _, level, _ in chosen), default=-1)


class Model:
    """Values of functions where z3 was asked for them; elsewhere the smallest value of their range."""

    def __init__(self, query: Query, found: Any) -> None:
        self.tables: dict[str, dict[tuple[int, ...], int]] = {}
        self._found = found
        self._encode = query.encode
        self._values: dict[int, int] = {}
        for app in query._apps.values():
            args = tuple(self.value(a) for a in app.args[1:])
            self.tables.setdefault(app.args[0], {})[args] = self.value(app)

    def value(self, term: Term) -> int:
        """Value of a term of the query."""
        if term.id not in self._values:
            value = self._found.eval(self._encode(term), model_completion=True)
            self._values[term.id] = int(z3.is_true(value)) if term.is_bool else int(value.as_long())
        return self._values[term.id]

    def __call__(self, function: str, args: tuple[int, ...], otherwise: int) -> int:
        table = self.tables.get(function)
        return otherwise if table is None else table.get(args, otherwise)

    def distinct(self, terms: Iterable[tuple[int, Term]]) -> list[tuple[int, int, Term]]:
        """The values of terms, each with the first term of the smallest level that has it."""
        found: dict[int, tuple[int, Term]] = {}
        for level, term in sorted(terms, key=lambda pair: pair[0]):
            found.setdefault(self.value(term), (level, term))
        return [(value, level, term) for value, (level, term) in sorted(found.items())]


def limits(encode: Encoder, app: Term) -> Iterator[Any]:
    """The range of a function's value, as facts for z3 (as terms they are true)."""
    if not app.is_bool:
        yield encode(app) >= app.lo
        if app.hi < END:
            yield encode(app) <= app.hi
