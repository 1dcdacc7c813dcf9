"""A z3 session that holds the assumptions of a proof and refutes goals one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import z3

from spec.engines.smt.encode import Encoder
from spec.engines.smt.terms import Term, Terms


@dataclass(frozen=True)
class Answer:
    """`unsat`, `sat` with the values of the cells, or `unknown`."""

    status: str
    values: dict[int, int] = field(default_factory=dict)


class Session:
    """One incremental solver for finite domains."""

    def __init__(self, terms: Terms, cells: Iterable[int], assumptions: Iterable[Term], timeout_ms: int = 0) -> None:
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

    def check(self, *extra: Any) -> Answer:
        """Are the assumptions satisfiable?"""
        status = str(self.solver.check(*extra))
        if status != "sat":
            return Answer(status)
        model = self.solver.model()
        return Answer("sat", {n: self.encode.value(model, n) for n in self.cells})


@dataclass(frozen=True)
class Choice:
    """Which flags are on, and whether fewer were shown to be impossible."""

    flags: tuple[bool, ...]
    minimal: bool


class Chooser:
    """Finds a solution of facts in which as few flags as possible are on."""

    def __init__(self, terms: Terms, facts: Iterable[Term], timeout_ms: int = 0) -> None:
        self.session = Session(terms, range(len(terms.cells)), facts, timeout_ms)
        self.unknown = False

    def fewest(self, goal: Term, flags: Sequence[Term]) -> Choice | None:
        """A solution that also satisfies the goal; None if there is none (or, if `unknown` is set, none was found)."""
        encode, solver = self.session.encode, self.session.solver
        solver.add(encode(goal))
        literals = [encode(flag) for flag in flags]
        best: tuple[bool, ...] | None = None
        while True:
            status = str(solver.check())
            self.unknown |= status == "unknown"
            if status != "sat":
                return Choice(best, status == "unsat") if best is not None else None
            model = solver.model()
            best = tuple(z3.is_true(model.eval(literal, model_completion=True)) for literal in literals)
            solver.add(z3.PbLe([(literal, 1) for literal in literals], sum(best) - 1))


def version() -> str:
    """The solver's version."""
    return f"z3 {z3.get_full_version()}"
