"""Lines of a rule that compare, receive and take steps, over cells that are not all known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewproof.refinement.checker.handlers import taken_by
from viewproof.refinement.checker.holding import Holding, least, may_equal, numbers, span_text
from viewproof.refinement.checker.state import Missing, Reject
from viewproof.refinement.checker.terms import ANY
from viewproof.refinement.events.lines import Check, Configured, Havoc, Holds, Range, Received, Rule, Step, Tried
from viewproof.refinement.events.terms import Column
from viewproof.refinement.schema import INDEX
from viewproof.spec.engines.guards import Span, Value, guard_text
from viewproof.spec.engines.guards.cells import ends, span
from viewproof.spec.engines.replay.cells import hull
from viewproof.spec.engines.replay.compile import TAKEN
from viewproof.spec.lang.errors import RangeError
from viewproof.spec.lang.expr import Expr
from viewproof.spec.lang.sorts import Sort

_EVENT = INDEX["event"]


class Stepping(Holding):
    """Takes the lines `Check`, `Holds`, `Configured`, `Received` and `Step`."""

    def _check(self, rule: Rule, line: Check, applies: bool | None) -> None:
        value, expr = self.columns[line.column], line.expected
        if value is None:
            if not line.if_shown:
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

    def _holds(self, line: Holds, env: dict[str, Value]) -> None:
        truth = self._truth(line.cond, env)
        if truth is False:
            raise self.state.broken(line.column, line.message, line.rule)
        if truth is None:
            self._open_value(line.cond, line.message, env)
            self._assume(line.cond, env)

    def _configured(self, line: Configured) -> None:
        column = line.column
        if self.columns[column] != self.state.configured[column]:
            try:
                self.state.configure(column, self.columns[column])
            except Missing as missing:
                self._open(f"{missing.column} of {self.row[_EVENT]}", "")

    def _havoc(self, line: Havoc, env: dict[str, Value]) -> None:
        index = tuple(self._value(i, env) for i in line.index)
        known = tuple(i for i in index if not isinstance(i, Span))
        cause = f"{line.var.name} may change without a line"
        if len(known) == len(index) and (line.least is not None or line.most is not None):
            low = None if line.least is None else ends(self._value(line.least, env))[0]
            high = None if line.most is None else ends(self._value(line.most, env))[1]
            self.cells.write(line.var, known, span(low, high), cause)
        elif len(known) == len(index):
            self.cells.loosen(line.var, known, cause, rising=line.rising)
        else:
            self.cells.lose(line.var, index, cause)

    def _may_have_received(self, node: int) -> None:
        self.cells.open_inbox.setdefault(node, self.missing_here or self._any_cause())

    def _receive_if(self, rule: Rule, line: Received, env: dict[str, Value], applies: bool | None) -> None:
        """The message is received, or may have been where it is not known whether the line counts."""
        node = self.columns["node"] if line.by is None else self._value(line.by, env)
        if isinstance(node, Span):
            for one in range(self.state.replicas):
                self._may_have_received(one)
        elif applies:
            self._receive(rule, line, env, node)
        else:
            self._may_have_received(node)

    def _receive(self, rule: Rule, line: Received, env: dict[str, Value], node: int) -> None:
        var = line.var
        index = tuple(self._value(i, env) for i in line.index)
        if any(isinstance(i, Span) for i in index):
            for one in line.index:
                if isinstance(one, Column) and self.columns[one.name] is None:
                    self._unshown(rule, one.name)
            self._may_have_received(node)
            return
        value = self._value(line.value, env) if line.value is not None else ANY
        if isinstance(line.value, Column) and self.columns[line.value.name] is None:
            self._unshown(rule, line.value.name)
            value = self._as_sent(line, line.value.name, index)
        cell = self.cells.read(var, index)
        least_sent = ends(cell)[0]
        if var.name in self.cells.silent and (least_sent is None or least_sent < max(1, least(value))):
            self._open(self.cells.silent[var.name], f"whether {var.name} was sent")
        key = index[0] if len(index) == 1 else index
        if var.kind == "watermark":
            self._receive_up_to(var.name, index, value, cell, node)
            return
        if not isinstance(value, Span):
            if not may_equal(cell, value):
                raise self.state.unsent(var.name, key, value, least(cell))
            self.cells.narrow(var, index, None, value)
        if line.sent:
            if ends(cell)[1] is not None and ends(cell)[1] == 0:
                raise self.state.unsent(var.name, key, None, 0)
            self.cells.narrow(var, index, None, Span(1, None))
        self.cells.deliver(var, index, self.cells.read(var, index), node, self.cells.cause(var, index))

    def _as_sent(self, line: Received, column: str, index: tuple[int, ...]) -> Value:
        """A column of a message that nothing shows: what the rule says it is then, or what was sent."""
        if line.var.kind == "watermark" and line.otherwise is None:
            return ANY
        value: Value = self.cells.read(line.var, index)
        if line.otherwise is not None:
            value = self._evaluator().value(line.otherwise, dict(self.lets))
        if not isinstance(value, Span):
            self.columns[column] = value
        return value

    def _receive_up_to(self, name: str, index: tuple[int, ...], value: Value, cell: Value, node: int) -> None:
        var = self.spec.schema.vars[name]
        key: Any = index[0] if len(index) == 1 else index
        top = ends(cell)[1]
        inbox = self.cells.inbox(var, index, node)
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

    def _nothing(self, line: Step, each: Range) -> None:
        lo, hi = self._value(each.lo), self._value(each.hi)
        if lo <= hi:
            return
        args = {n: self._value(v, {each.name.name: hi}) for n, v in line.args.items() if not isinstance(v, Tried)}
        raise self.state.nothing(line.action, taken_by(each.lo), args, lo, hi)

    def _args(self, line: Step, env: dict[str, Value]) -> dict[str, Value]:
        args: dict[str, Value] = {}
        for name, value in line.args.items():
            if not isinstance(value, Tried):
                args[name] = self._value(value, env)
            elif value.column is None or self.columns[value.column] is None:
                args[name] = Span(0, self.state.replicas - 1)
            else:
                args[name] = self.columns[value.column]
        return args

    def _one_step(
        self, line: Step, env: dict[str, Value], *, maybe: bool, args: dict[str, Value] | None = None
    ) -> None:
        trail = self.cells.trail
        try:
            self._step(line, env, args, maybe)
        except RangeError as error:
            self.cells.trail = trail
            if line.how == "must" and not maybe:
                raise Reject(line.action, error.message) from None

    def _step(self, line: Step, env: dict[str, Value], args: dict[str, Value] | None, maybe: bool) -> None:
        args = self._args(line, env) if args is None else args
        ir = self.irs[line.action]
        args = self.steps.solve(ir, args)
        outside = next((p for p in ir.params if self._is_outside(p.sort, args[p.name])), None)
        if outside is not None and maybe:
            return
        if outside is not None:
            raise self.state.outside(line.action, outside.name, numbers(args)[outside.name], outside.sort.name)
        if line.how == "if" and self.steps.refused(ir, args) is not None:
            return
        maybe = maybe or line.how == "may" or (line.how == "if" and not self._is_enabled(line.action, args))
        tried = next(
            (p.name for p in ir.params if p.sort.name == self.cells.actors and isinstance(args[p.name], Span)), ""
        )
        if tried:
            args = self._candidate(line, args, tried, maybe)
        open_args = [n for n, v in args.items() if isinstance(v, Span)]
        self._take(line.action, args, maybe=maybe, silent=line.how != "must")
        if open_args and not maybe:
            self._open(self.missing_here or self._any_cause(), f"{', '.join(open_args)} of {line.action}")
        if line.journals is not None and line.each is not None:
            self._journal_step(line.journals, env, env[line.each.name.name], maybe)
        self.steps.cause = self.missing_here

    def _journal_step(self, journals: Expr, env: dict[str, Value], o: Value, maybe: bool) -> None:
        node = self.columns["node"]
        if maybe or isinstance(o, Span):
            self.journal_open.setdefault(node, self.missing_here or self._any_cause())
            return
        entry = self._value(journals, env)
        self.state.journaled[node].add((None if isinstance(entry, Span) else entry, o))

    def _is_outside(self, sort: Sort, value: Value) -> bool:
        """Is a value that is known no member of the sort?"""
        return not isinstance(value, Span) and not self.spec.instance.contains(sort, value)

    def _candidate(self, line: Step, args: dict[str, Value], tried: str, maybe: bool) -> dict[str, Value]:
        """The one value of a parameter over replicas for which the step is not refused; open if there are several."""
        ir = self.irs[line.action]
        of = line.args[tried]
        conjunct, left = 0, []
        for x in range(self.state.replicas):
            one = {**args, tried: x}
            if isinstance(of, Tried) and of.where is not None and self._truth(of.where, {of.name.name: x}) is False:
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

    def _take(self, action: str, args: dict[str, Value], *, maybe: bool, silent: bool = False) -> None:
        name = self.swap[1] if action == self.swap[0] else action
        outer = self.cells.begin() if maybe else None
        failed, opened = self.steps.take(self.irs[name], args)
        if maybe:
            if failed != TAKEN:
                self.cells.undo(outer)
                return
            if silent:
                self.cells.join(f"{action} may be taken without a line", outer)
                return
            cause = self.missing_here or self._any_cause()
            self.cells.join(cause, outer)
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
            self._open(one.cause or self._cause(one.readings), f"{action}: {guard_text(guard.source)}")
            self.state.coverage[f"{one.action}/{one.conjunct}"] += 1
        self.state.coverage[action] += 1
