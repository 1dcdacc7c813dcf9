"""Lines that hold lines (`events.nested`), over cells that are not all known.

Where it is not known which lines count, each way is taken by itself: one that is refused did not happen; cells in which
the others differ are not known afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from viewproof.refinement.checker.holding import Obligation
from viewproof.refinement.checker.nesting import fields_of
from viewproof.refinement.checker.state import Reject
from viewproof.refinement.checker.stepping import Stepping
from viewproof.refinement.events.lines import Havoc, Holds, Line, Received, Rule, Step
from viewproof.refinement.events.nested import Arrived, Branch, Departs, Forget, Loop, OneOf, all_lines
from viewproof.refinement.schema import INDEX
from viewproof.spec.engines.guards import Span, Value
from viewproof.spec.engines.guards.cells import ends
from viewproof.spec.engines.replay.cells import hull
from viewproof.spec.lang.expr import Expr

_EVENT = INDEX["event"]

Env = dict[str, Value]
Written = dict[Any, Value]


class Histories(Stepping):
    """Takes `Branch`, `Loop`, `OneOf`, `Arrived`, `Forget` and `Departs`, and the lines that these hold."""

    def _block(self, rule: Rule, lines: Sequence[Line], env: Env) -> None:
        for line in lines:
            self.line = line
            match line:
                case Holds():
                    self._holds(line, env)
                case Step() if line.unless is None or self._truth(line.unless, env) is not True:
                    self._one_step(line, env, maybe=False)
                case Received():
                    self._receive_if(rule, line, env, True)
                case Havoc():
                    self._havoc(line, env)
                case _:
                    self._nested(rule, line, env)

    def _nested(self, rule: Rule, line: Line, env: Env) -> None:
        match line:
            case Branch():
                truth = self._truth(line.cond, env)
                if truth is None:
                    self._one_of(rule, [(line.then, env), (line.other, env)])
                else:
                    self._block(rule, line.then if truth else line.other, env)
            case Loop():
                self._loop(rule, line, env)
            case OneOf():
                self._one_of(rule, [(body, env) for body in line.alternatives])
            case Arrived():
                self._arrived(line, env)
            case Forget():
                node = self._value(line.node, env)
                for one in range(self.state.replicas) if isinstance(node, Span) else (node,):
                    self._forget(one, line.cause)
                self._open(line.cause, "")
            case Departs():
                self._departs(line)

    def _departs(self, line: Departs) -> None:
        if self.state.departs(line.id):
            self._open(line.id, f"{self.system.departures[line.id]}; what follows from it is not judged")

    def _loop(self, rule: Rule, line: Loop, env: Env) -> None:
        lo, hi = self._value(line.over.lo, env), self._value(line.over.hi, env)
        if isinstance(lo, Span) or isinstance(hi, Span):
            self._open_value(line.over.lo if isinstance(lo, Span) else line.over.hi, "how far a range goes", env)
            self._unbounded(rule, line, env)
            return
        for member in range(lo, hi + 1):
            self._block(rule, line.body, {**env, line.over.name.name: member})

    def _unbounded(self, rule: Rule, loop: Loop, env: Env) -> None:
        """What a range that is not known may have done: any, or none, of it happened. Who takes steps in it may be
        anywhere now, who receives messages in it may have received any; what must hold in it is not judged.
        """
        lines = list(all_lines(loop.body))
        inner = [loop, *(one for one in lines if isinstance(one, Loop))]
        env = {**env, **{one.over.name.name: Span() for one in inner}}
        for one in lines:
            match one:
                case Arrived():
                    self._may_have_arrived(self._value(one.by, env))
                case Received():
                    self._receive_if(rule, one, env, None)
                case Havoc():
                    self._havoc(replace(one, least=None, most=None), env)
                case Forget():
                    self._nested(rule, one, env)
        for one in lines:
            if isinstance(one, Step):
                self._may_have_stepped(one, env)

    def _may_have_stepped(self, step: Step, env: Env) -> None:
        """A step was taken any number of times: who took it is not known, nor what a step of nobody writes."""
        ir, cause = self.irs[step.action], f"how many {step.action} there were before {self.row[_EVENT]}"
        self._open(cause, "")
        actors = (p.name for p in ir.params if p.sort.name == self.cells.actors)
        found = next((of for of in (step.args[name] for name in actors) if isinstance(of, Expr)), None)
        if found is not None:
            node = self._value(found, env)
            for one in range(self.state.replicas) if isinstance(node, Span) else (node,):
                self._forget(one, cause)
            return
        for var in (self.spec.schema.vars[name] for name in ir.writes()):
            if var.index:
                self.cells.lose(var, (Span(),) * len(var.index), cause)
            else:
                self.cells.loosen(var, (), cause, rising=var.name in self.system.profile.rising)

    # messages

    def _may_have_arrived(self, node: Value) -> None:
        for one in range(self.state.replicas) if isinstance(node, Span) else (node,):
            self._may_have_received(one)

    def _arrived(self, line: Arrived, env: Env) -> None:
        node, var = self._value(line.by, env), line.var
        index = tuple(self._value(i, env) for i in line.index)
        if isinstance(node, Span) or any(isinstance(i, Span) for i in index):
            self._may_have_arrived(node)
            return
        top = ends(self.cells.read(var, index))[1]
        if top is not None and top <= 0:
            raise self.state.unsent(var.name, index[0] if len(index) == 1 else index, None, 0)
        self.cells.narrow(var, index, None, Span(1, None))
        for field in fields_of(self.spec.schema, var):
            cells = [index] if len(field.index) == len(index) else list(self.cells.known[field.name])
            for cell in cells:
                if cell[: len(index)] == index:
                    self.cells.deliver(field, cell, self.cells.read(field, cell), node, self.cells.cause(field, cell))

    # histories

    def _one_of(self, rule: Rule, bodies: Sequence[tuple[Sequence[Line], Env]]) -> None:
        """Take the histories that are not refused; cells in which several differ are not known."""
        kept: list[tuple[Sequence[Line], Env]] = []
        results: list[tuple[Written, dict[str, Obligation], Counter[str], dict[int, list[str]]]] = []
        refused: Reject | None = None
        before = dict(self.obligations), Counter(self.state.coverage), {k: list(v) for k, v in self.state.uses.items()}
        for lines, env in bodies:
            self.obligations = {cause: replace(o) for cause, o in before[0].items()}
            outer = self.cells.begin()
            try:
                self._block(rule, lines, env)
                kept.append((lines, env))
                results.append((self.cells.written(), self.obligations, self.state.coverage, dict(self.state.uses)))
            except Reject as reject:
                refused = refused or reject
            self.cells.undo(outer)
            self.obligations, self.state.coverage = dict(before[0]), Counter(before[1])
            self.state.uses.clear()
            self.state.uses.update({at: list(names) for at, names in before[2].items()})
        if not kept:
            assert refused is not None
            raise refused
        if len(kept) == 1:
            self._block(rule, *kept[0])
            return
        for _, found, _, _ in results:
            self.obligations |= {cause: one for cause, one in found.items() if cause not in self.obligations}
        self.state.coverage = results[0][2]
        self.state.uses.update(results[0][3])
        self._between([written for written, *_ in results])

    def _between(self, results: Sequence[Written]) -> None:
        """The cells are as one of the results has them."""
        for name in dict.fromkeys(name for result in results for name in result):
            var, index, receiver = self.spec.schema.vars[name[0]], name[1], name[2]
            before = self.cells.read(var, index) if receiver is None else self.cells.inbox(var, index, receiver)
            values = [result.get(name, before) for result in results]
            found = values[0]
            for value in values[1:]:
                found = hull(found, value)
            if receiver is None:
                self.cells.write(var, index, found, self.row[_EVENT])
            else:
                self.cells.deliver(var, index, found, receiver, self.row[_EVENT])
