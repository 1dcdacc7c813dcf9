"""A z3 session that holds the assumptions of a proof and refutes goals one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


def version() -> str:
    """The solver's version."""
    return f"z3 {z3.get_full_version()}"
