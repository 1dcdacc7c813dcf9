"""A z3 session that holds the assumptions of a proof and refutes goals one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import z3

from viewproof.spec.engines.smt.encode import Encoder
from viewproof.spec.engines.smt.terms import Term, Terms

NO_LIMIT_MS = 4294967295
"""z3's way to say: no time limit."""


@dataclass(frozen=True)
class Answer:
    """`unsat`, `sat` with the values of the cells, or `unknown`."""

    status: str
    values: dict[int, int] = field(default_factory=dict)


class Session:
    """One incremental solver for finite domains.

    Assumptions in `named` are on only where a call says so (`refute_with`), each under its name.
    """

    def __init__(
        self,
        terms: Terms,
        cells: Iterable[int],
        assumptions: Iterable[Term],
        timeout_ms: int = 0,
        named: Mapping[str, Term] | None = None,
    ) -> None:
        self.encode = Encoder(terms)
        self.cells = tuple(cells)
        self.solver: Any = z3.SolverFor("QF_FD")
        if timeout_ms:
            self.solver.set("timeout", timeout_ms)
        for cell in self.cells:
            limit = self.encode.limits(cell)
            if limit is not None:
                self.solver.add(limit)
        for term in assumptions:
            self.solver.add(self.encode(term))
        self.marks = {name: z3.Bool(f"named {name}") for name in named or {}}
        for name, term in (named or {}).items():
            self.solver.add(z3.Implies(self.marks[name], self.encode(term)))

    @contextmanager
    def assuming(self, term: Term) -> Iterator[Session]:
        """With a further assumption, for the time of a `with`."""
        self.solver.push()
        self.solver.add(self.encode(term))
        try:
            yield self
        finally:
            self.solver.pop()

    def refute(self, goal: Term) -> Answer:
        """Can the goal be false under the assumptions?"""
        self.solver.push()
        self.solver.add(z3.Not(self.encode(goal)))
        try:
            return self.check()
        finally:
            self.solver.pop()

    def refute_with(self, goal: Term, names: Iterable[str]) -> tuple[Answer, frozenset[str]]:
        """Can the goal be false under these named assumptions? If not, with a set of them that is enough."""
        self.solver.push()
        self.solver.add(z3.Not(self.encode(goal)))
        try:
            answer = self.check(*(self.marks[name] for name in names))
            core = {str(mark) for mark in self.solver.unsat_core()} if answer.status == "unsat" else set()
            return answer, frozenset(name for name, mark in self.marks.items() if str(mark) in core)
        finally:
            self.solver.pop()

    def _equal(self, number: int, value: int) -> Any:
        cell = self.encode.terms.cells[number]
        return self.encode(self.encode.terms.eq(cell, self.encode.terms.const(value, cell.is_bool)))

    def fix(self, values: Mapping[int, int]) -> None:
        """Assume these values of cells from now on (or to the end of the `assuming` at work)."""
        for number, value in values.items():
            self.solver.add(self._equal(number, value))

    def with_cells(self, values: Mapping[int, int]) -> Answer:
        """Are the assumptions satisfiable with these values of cells?"""
        self.solver.push()
        self.fix(values)
        try:
            return self.check()
        finally:
            self.solver.pop()

    def core(self, values: Mapping[int, int]) -> list[int]:
        """Cells whose values contradict the assumptions; all of them together must."""
        marks = {}
        self.solver.push()
        for number, value in values.items():
            marks[f"m{number}"] = number
            self.solver.add(z3.Implies(z3.Bool(f"m{number}"), self._equal(number, value)))
        status = _status(self.solver, *(z3.Bool(name) for name in marks))
        found = [marks[str(mark)] for mark in self.solver.unsat_core()] if status == "unsat" else list(values)
        self.solver.pop()
        return sorted(found)

    def check(self, *extra: Any) -> Answer:
        """Are the assumptions satisfiable?"""
        status = _status(self.solver, *extra)
        if status != "sat":
            return Answer(status)
        model = self.solver.model()
        return Answer("sat", {n: self.encode.value(model, n) for n in self.cells})


def _status(solver: Any, *extra: Any) -> str:
    """sat, unsat or unknown. z3 takes the first Ctrl-C while it works, and says unknown: it is raised here."""
    status = str(solver.check(*extra))
    if status == "unknown" and "interrupted" in str(solver.reason_unknown()):
        raise KeyboardInterrupt
    return status


class Chooser:
    """Finds solutions of facts and a goal in which few flags are on."""

    def __init__(self, terms: Terms, facts: Iterable[Term], goal: Term, flags: Sequence[Term]) -> None:
        self.session = Session(terms, range(len(terms.cells)), (*facts, goal))
        self.flags = [self.session.encode(flag) for flag in flags]

    def solve(self, at_most: int | None = None, timeout_ms: int = 0) -> tuple[str, tuple[bool, ...]]:
        """A solution with at most that many flags on: sat with the flags, unsat, or unknown (a time limit was met)."""
        solver = self.session.solver
        solver.set("timeout", timeout_ms or NO_LIMIT_MS)
        if at_most is not None:
            solver.add(z3.PbLe([(flag, 1) for flag in self.flags], at_most))
        status = _status(solver)
        if status != "sat":
            return status, ()
        model = solver.model()
        return status, tuple(z3.is_true(model.eval(flag, model_completion=True)) for flag in self.flags)


def version() -> str:
    """The solver's version."""
    return f"z3 {z3.get_full_version()}"
