"""Lines of a rule that compare, receive and take steps, over cells that are not all known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewproof.refinement.checker.holding import Holding, least, may_equal, numbers, span_text
from viewproof.refinement.checker.state import Missing
from viewproof.refinement.checker.terms import ANY
from viewproof.refinement.mapping import Check, Configured, Holds, Received, Rule, Step
from viewproof.refinement.schema import INDEX
from viewproof.spec.engines.guards import Span, Value, guard_text
from viewproof.spec.engines.guards.cells import ends, span
from viewproof.spec.engines.replay.cells import hull
from viewproof.spec.engines.replay.compile import TAKEN
from viewproof.spec.lang.schema import Var

_EVENT = INDEX["event"]


class Stepping(Holding):
    """Takes the lines `Check`, `Holds`, `Configured`, `Received` and `Step`."""

    def _check(self, rule: Rule, line: Check) -> None:
        applies = self._truth(line.only_if)
        if applies is False:
            return
        value, expr = self.columns[line.column], self.terms.of(line.expected)
        if value is None:
            if not (line.when.startswith("-") or line.column == "m_type"):
                self._unshown(rule, line.column)
            return
        expected = self._value(expr)
        if not may_equal(expected, value):
            if applies is None:
                return
            if isinstance(expected, Span):
                expected = span_text(expected)
            raise self.state.differs(line.column, expected, value, line.rule)
        if isinstance(expected, Span) and applies:
            self._learn(expr, value, {})
            if isinstance(self._value(expr), Span):
                self._open_value(expr, f"{line.column} is {value}", {})

    def _holds(self, line: Holds) -> None:
        if self._truth(line.only_if) is not True:
            return
        truth = self._truth(line.cond)
        if truth is False:
            raise self.state.broken(line.column, line.message, line.rule)
        if truth is None:
            expr = self.terms.of(line.cond)
            self._open_value(expr, line.message, {})
            self._assume(expr)

    def _configured(self, line: Configured) -> None:
        column = line.column
        if self.columns[column] != self.state.configured[column]:
            try:
                self.state.configure(column, self.columns[column])
            except Missing as missing:
                self._open(f"{missing.column} of {self.row[_EVENT]}", "")

    def _received(self, rule: Rule, line: Received) -> None:
        name, members, unknown = self._ranges(line.each, {})
        node = self.columns["node"]
        inside = bool(name) and line.only_if and name in line.only_if
        if not inside and (applies := self._truth(line.only_if)) is not True:
            if applies is None:
                self._may_have_received(node)
            return
        if unknown:
            self._may_have_received(node)
        for member in members:
            env: dict[str, Value] = {name: member} if name else {}
            if inside and (truth := self._truth(line.only_if, env)) is not True:
                if truth is None:
                    self._may_have_received(node)
                continue
            self._receive(rule, line, env, node)

    def _may_have_received(self, node: int) -> None:
        self.cells.open_inbox.setdefault(node, self.missing_here or self._any_cause())

    def _receive(self, rule: Rule, line: Received, env: dict[str, Value], node: int) -> None:
        var = self.spec.schema.vars[line.var]
        index = tuple(self._eval(i, env) for i in line.index)
        if any(isinstance(i, Span) for i in index):
            for text in line.index:
                if text in self.columns and self.columns[text] is None:
                    self._unshown(rule, text)
            self._may_have_received(node)
            return
        value = self._eval(line.value, env) if line.value else ANY
        if line.value in self.columns and self.columns[line.value] is None:
            self._unshown(rule, line.value)
            value = self._as_sent(line.value, var, index)
        cell = self.cells.read(var, index)
        key = index[0] if len(index) == 1 else index
        if var.kind == "watermark":
            self._receive_up_to(var.name, index, value, cell, node)
            return
        if not isinstance(value, Span):
            if not may_equal(cell, value):
                raise self.state.unsent(line.var, key, value, least(cell))
            self.cells.narrow(var, index, None, value)
        if line.some:
            if ends(cell)[1] is not None and ends(cell)[1] == 0:
                raise self.state.unsent(line.var, key, None, 0)
            self.cells.narrow(var, index, None, Span(1, None))
        self.cells.deliver(var, index, self.cells.read(var, index), node, self.cells.cause(var, index))

    def _as_sent(self, column: str, var: Var, index: tuple[int, ...]) -> Value:
        """A column of a message that nothing shows: what was sent; a commit number that the receiver did not have yet
        is what it knows afterwards, an older one tells it nothing.
        """
        value: Value = self.cells.read(var, index)
        if var.kind == "watermark":
            known, after = self._eval("spec.commit_max[node]"), self.columns["commit_max"]
            if column != "m_commit" or after is None or isinstance(known, Span) or self.row[_EVENT] == "recover":
                return ANY
            value = after if known < after else 0
        if not isinstance(value, Span):
            self.columns[column] = value
        return value

    def _receive_up_to(self, name: str, index: tuple[int, ...], value: Value, cell: Value, node: int) -> None:
        var = self.spec.schema.vars[name]
        key: Any = index[0] if len(index) == 1 else index
        top = ends(cell)[1]
        inbox = self.cells._received(var, index, node)
        if isinstance(value, Span):
            least, most = ends(inbox)[0], ends(hull(inbox, cell))[1]
            self.cells.deliver(var, index, span(least, most), node, self.missing_here)
            return
        if top is not None and value > top:
            raise self.state.unsent(name, key, value, top)
        self.cells.narrow(var, index, None, Span(value, None))
        low, high = ends(inbox)
        if low is not None and value > low:
            self.cells.deliver(var, index, span(value, None if high is None else max(value, high)), node)

    def _step(self, rule: Rule, line: Step) -> None:
        env: dict[str, Value] = {}
        name, members, unknown = self._ranges(line.each, env)
        inside = bool(name) and line.only_if and name in line.only_if
        applies = True if inside else self._truth(line.only_if)
        if applies is False or (line.unless and self._truth(line.unless) is True):
            return
        if line.each:
            if unknown:
                self._open_value(self.terms.of(unknown), f"which {line.action} it stands for", env)
            elif not members:
                self._nothing(line, env)
        for member in members:
            inner: dict[str, Value] = {name: member} if name else {}
            truth = self._truth(line.only_if, inner) if inside else applies
            if truth is not False:
                self._one_step(rule, line, inner, maybe=truth is None)
        if line.each and unknown and not members:
            args = self._args(line, {name: Span(1, None)})
            self._one_step(rule, line, {name: Span(1, None)}, maybe=True, args=args)

    def _nothing(self, line: Step, env: dict[str, Value]) -> None:
        assert line.each is not None
        name, lo_text, hi_text = line.each
        lo, hi = self._eval(lo_text, env), self._eval(hi_text, env)
        if lo <= hi or line.only_if:
            return
        args = {n: self._eval(t, {name: hi}) for n, t in line.args.items()}
        var = lo_text.removeprefix("spec.").partition("[node] + 1")
        taken = var[0] if var[1] and not var[2] else ""
        raise self.state.nothing(line.action, taken, args, lo, hi)

    def _args(self, line: Step, env: dict[str, Value]) -> dict[str, Value]:
        args: dict[str, Value] = {}
        for name, text in line.args.items():
            column = text.rstrip("?")
            if column != text and (not column or self.columns[column] is None):
                args[name] = Span(0, self.state.replicas - 1)
            else:
                args[name] = self._eval(column, env)
        return args

    def _one_step(
        self, rule: Rule, line: Step, env: dict[str, Value], *, maybe: bool, args: dict[str, Value] | None = None
    ) -> None:
        args = self._args(line, env) if args is None else args
        ir = self.irs[line.action]
        args = self.steps.solve(ir, args)
        tried = next(
            (p.name for p in ir.params if p.sort.name == self.cells.actors and isinstance(args[p.name], Span)), ""
        )
        if tried:
            args = self._candidate(line, args, tried, maybe)
        open_args = [n for n, v in args.items() if isinstance(v, Span)]
        self._take(line.action, args, maybe=maybe)
        if open_args and not maybe:
            self._open(self.missing_here or self._any_cause(), f"{', '.join(open_args)} of {line.action}")
        if line.journals and (maybe or isinstance(env["o"], Span)):
            self.journal_open.setdefault(self.columns["node"], self.missing_here or self._any_cause())
        elif line.journals:
            entry = self._eval(line.journals, env)
            self.state.journaled[self.columns["node"]].add((None if isinstance(entry, Span) else entry, env["o"]))
        self.steps.cause = self.missing_here

    def _candidate(self, line: Step, args: dict[str, Value], tried: str, maybe: bool) -> dict[str, Value]:
        """The one value of a parameter over replicas for which the step is not refused; open if there are several."""
        ir = self.irs[line.action]
        conjunct, left = 0, []
        for x in range(self.state.replicas):
            one = {**args, tried: x}
            if line.tried_if and self._truth(line.tried_if, {"x": x}) is False:
                continue
            failed = self.steps.refused(ir, one)
            if failed is None:
                left.append(one)
            else:
                conjunct, args = failed, {**args, tried: x}
        certain = [one for one in left if self._is_enabled(line.action, one)]
        if certain:
            return certain[0]
        if not left and not maybe:
            raise self.state.refused(line.action, conjunct, numbers(args))
        return left[0] if len(left) == 1 else {**args, tried: Span(0, self.state.replicas - 1)}

    def _is_enabled(self, action: str, args: Mapping[str, Value]) -> bool:
        number, opened = self.steps.evaluator().first_false(self.irs[action], args)
        return number is None and not opened

    def _take(self, action: str, args: dict[str, Value], *, maybe: bool) -> None:
        name = self.swap[1] if action == self.swap[0] else action
        if maybe:
            self.cells.trail = []
        failed, opened = self.steps.take(self.irs[name], args)
        if maybe:
            if failed != TAKEN:
                self.cells.undo()
                return
            cause = self.missing_here or self._any_cause()
            self.cells.join(cause)
            self._open(cause, f"whether {action} was taken")
            return
        if name != action:
            self.state.allowed(name)
        if failed != TAKEN:
            for other in self.by_action.get(action, ()):
                again, opened = self.steps.take(self.irs[other], args)
                if again == TAKEN:
                    self.state.allowed(other)
                    failed = TAKEN
                    break
        if failed != TAKEN:
            raise self.state.refused(action, failed, numbers(args))
        for one in opened:
            guard = self.irs[one.action].guards[one.conjunct]
            self._open(self._cause(one.readings), f"{action}: {guard_text(guard.source)}")
        self.state.coverage[action] += 1
