"""Take recorded events over cells that are known or not: Kleene's replay.

A record is refused only if something is false whatever the unknown cells hold; then no completion of the evidence
conforms. What was open is taken, what it says of unknown cells is learnt, and it is named (`Obligation`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewproof.refinement.logs.record import (
    Each,
    Forget,
    Hold,
    Known,
    Lose,
    OneOf,
    Receive,
    Recorded,
    Statement,
    Take,
    When,
)
from viewproof.refinement.value_text import show_value
from viewproof.spec.engines.guards import Evaluator, Span, Value, guard_text
from viewproof.spec.engines.guards.cells import ends, span
from viewproof.spec.engines.guards.evaluate import Reading
from viewproof.spec.engines.guards.words import Words
from viewproof.spec.engines.replay import TAKEN
from viewproof.spec.engines.replay.cells import PartialCells, hull, meet
from viewproof.spec.engines.replay.partial import Steps
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import RangeError
from viewproof.spec.lang.expr import ActionIR, Expr, Name, walk

Env = Mapping[str, Value]


class Reject(Exception):  # noqa: N818 - no error of the program
    """A record that no completion of the evidence explains."""

    def __init__(
        self,
        rule: str,
        message: str,
        *,
        expected: str = "",
        observed: str = "",
        refused: tuple[str, int, Env] | None = None,
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.expected = expected
        self.observed = observed
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Obligation:
    """Something that had to hold and could not be decided: what, and the cells that were not known."""

    event: str
    what: str
    cells: tuple[str, ...]


@dataclass
class Run:
    """One run: the cells, what was taken, and what stayed open."""

    spec: Spec
    events: Mapping[str, Recorded]
    cells: PartialCells = field(init=False)
    coverage: Counter[str] = field(default_factory=Counter)
    judged: Counter[str] = field(default_factory=Counter)
    obligations: Counter[Obligation] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        actors = next(s.name for v in self.spec.schema.vars.values() for s in v.index if s.name == "Replica")
        self.cells = PartialCells.of(State.initial(), self.spec.schema, self.spec.instance, actors)
        self.steps = Steps(self.cells, self._evaluator)
        self.irs: dict[str, ActionIR] = {ir.name: ir for ir in self.spec.action_irs}
        self.event = ""
        self.place = ""
        self.first: dict[Obligation, str] = {}

    def _evaluator(self) -> Evaluator:
        return Evaluator(self.spec.instance, self.cells)

    def take(self, name: str, columns: Mapping[str, int | None], place: str = "") -> None:
        """Judge one record, the line at `place`. Raises `Reject`."""
        self.place = place
        event = self.events[name]
        self.event = name
        self.judged[name] += 1
        env: dict[str, Value] = {}
        for column in event.columns:
            value = columns.get(column)
            env[column] = Span(None, None) if value is None else int(value)
            env[f"{column}?"] = int(value is not None)
        self.steps.cause = name
        self._all(event.statements, env)

    def _all(self, statements: Sequence[Statement], env: Env) -> None:
        for statement in statements:
            match statement:
                case Take():
                    self._take(statement, env)
                case Hold():
                    self._hold(statement, env)
                case Receive():
                    self._receive(statement, env)
                case When():
                    self._when(statement, env)
                case Each():
                    self._each(statement, env)
                case Forget():
                    self._forget(statement, env)
                case Known():
                    self._open(statement.text, ())
                case Lose():
                    self._lose(statement, env)
                case OneOf():
                    self._one_of([(body, env) for body in statement.alternatives])

    def _forget(self, forget: Forget, env: Env) -> None:
        node = self.value(forget.node, env)
        assert not isinstance(node, Span)
        self.cells.forget(node, forget.text)
        self._open(forget.text, ())

    def value(self, expr: Expr, env: Env) -> Value:
        """What an expression is over the cells as they are."""
        return self._evaluator().value(expr, env)

    # steps

    def _take(self, take: Take, env: Env) -> None:
        ir = self.irs[take.action]
        args = self.steps.solve(ir, {name: self.value(arg, env) for name, arg in take.args.items()})
        tried = next((p.name for p in ir.params if p.sort.name == "Replica" and isinstance(args[p.name], Span)), "")
        if tried:
            sort = next(p.sort for p in ir.params if p.name == tried)
            members = [{**args, tried: member} for member in self.spec.instance.members(sort)]
            inner = Take(take.action, {p.name: Name(f" {p.name}") for p in ir.params}, take.how, take.source)
            self._one_of([((inner,), {f" {k}": v for k, v in member.items()}) for member in members])
            return
        if take.how == "must":
            self._must(take.action, args)
            return
        truth = self._enabled(ir, args)
        if truth is False:
            return
        if truth and take.how == "if":
            self._must(take.action, args)
            return
        outer = self._begin()
        failed, _ = self.steps.take(ir, args)
        if failed != TAKEN:
            self._undo(outer)
            return
        self._join(outer, f"whether {take.action} was taken ({self.event})")

    def _must(self, action: str, args: dict[str, Value]) -> None:
        ir = self.irs[action]
        try:
            failed, opened = self.steps.take(ir, args)
        except RangeError as error:
            raise Reject(action, error.message) from None
        if failed != TAKEN:
            raise Reject(action, f"{action} is not possible here", refused=(action, failed, args))
        self.coverage[action] += 1
        for one in opened:
            self._open(f"{action}: {guard_text(ir.guards[one.conjunct].source)}", one.readings)

    def _enabled(self, ir: ActionIR, args: Env) -> bool | None:
        try:
            number, opened = self._evaluator().first_false(ir, args)
        except RangeError:
            return False
        return False if number is not None else None if opened else True

    # conditions

    def _hold(self, hold: Hold, env: Env) -> None:
        evaluator = self._evaluator()
        truth = evaluator.truth(hold.cond, env)
        if truth is False:
            because = Words(self.spec.instance, self.cells, show_value).because(hold.cond, env)
            raise Reject(hold.rule, hold.text, expected=hold.text, observed=", ".join(because))
        if truth is None:
            if all(env.get(f"{n.name}?", 1) for n in walk(hold.cond) if isinstance(n, Name)):
                self._open(f"{hold.text}", tuple(r for r in evaluator.readings if isinstance(r.value, Span)))
            self.steps.assume(hold.cond, True, env)

    def _open(self, what: str, readings: Sequence[Reading]) -> None:
        names = tuple(dict.fromkeys(r.var.name for r in readings if isinstance(r.value, Span)))
        one = Obligation(self.event, what, names)
        self.obligations[one] += 1
        self.first.setdefault(one, self.place)

    def _when(self, when: When, env: Env) -> None:
        truth = self._evaluator().truth(when.cond, env)
        if truth is not None:
            self._all(when.then if truth else when.other, env)
            return
        self._one_of([(when.then, env), (when.other, env)])

    def _each(self, each: Each, env: Env) -> None:
        (lo, lo_most), (hi_least, hi) = (ends(self.value(end, env)) for end in (each.binder.lo, each.binder.hi))
        if lo is None or hi is None or lo != lo_most or hi != hi_least:
            self._unbounded(each, env)
            return
        for member in range(lo, hi + 1):
            self._all(each.body, {**env, each.binder.name.name: member})

    def _unbounded(self, each: Each, env: Env) -> None:
        """Steps of a range that is not known: whoever takes them may be anywhere now."""
        for statement in each.body:
            if isinstance(statement, Take) and "r" in statement.args:
                actor = self.value(statement.args["r"], env)
                if not isinstance(actor, Span):
                    cause = f"how many {statement.action} there were before {self.event}"
                    self.cells.forget(actor, cause)
                    self._open(cause, ())

    # messages

    def _receive(self, receive: Receive, env: Env) -> None:
        receiver = self.value(receive.receiver, env)
        var = receive.cell.var
        index = tuple(self.value(i, env) for i in receive.cell.index)
        known = tuple(i for i in index if not isinstance(i, Span))
        if isinstance(receiver, Span) or len(known) < len(index):
            if not isinstance(receiver, Span):
                self.cells.open_inbox.setdefault(receiver, self.event)
            return
        cell = self.cells.read(var, known)
        value = None if receive.value is None else self.value(receive.value, env)
        if var.kind == "watermark":
            self._receive_up_to(receive, known, value, receiver)
            return
        top = ends(cell)[1]
        if top is not None and top <= 0:
            raise Reject("causality", f"{_message(var.name)} {_index(known)} was received, and never sent")
        if value is not None and meet(cell, value) is None:
            sent = f"{_message(var.name)} {_index(known)}"
            raise Reject("causality", f"{sent} was not sent like that", expected=_shown(cell), observed=_shown(value))
        self.cells.narrow(var, known, None, Span(1, None) if value is None else value)
        first = var.name.partition("_")[0]
        for other in self.spec.schema.vars.values():
            same = other.is_message and other.kind != "watermark" and other.name.partition("_")[0] == first
            if same and [s.name for s in other.index[: len(known)]] == [s.name for s in var.index]:
                self._deliver(other, known, receiver)

    def _deliver(self, var: Any, prefix: tuple[int, ...], receiver: int) -> None:
        cells = [index for index in self.cells.known[var.name] if index[: len(prefix)] == prefix]
        for index in [prefix] if len(var.index) == len(prefix) else cells:
            self.cells.deliver(var, index, self.cells.read(var, index), receiver)

    def _receive_up_to(self, receive: Receive, index: tuple[int, ...], value: Value | None, receiver: int) -> None:
        var = receive.cell.var
        cell, inbox = self.cells.read(var, index), self.cells.read(var, index, receiver)
        (low, high), top = ends(inbox), ends(cell)[1]
        if value is None or isinstance(value, Span):
            most = None if high is None or top is None else max(high, top)
            self.cells.deliver(var, index, span(low, most), receiver, self.event)
            return
        if top is not None and value > top:
            raise Reject(
                "causality",
                f"{_message(var.name)} {_index(index)} up to {value} was received, and never sent",
                expected=f"at most {top}",
                observed=str(value),
            )
        self.cells.narrow(var, index, None, Span(value, None))
        if low is not None and value > low:
            self.cells.deliver(var, index, span(value, None if high is None else max(value, high)), receiver)

    def _lose(self, lose: Lose, env: Env) -> None:
        index = tuple(self.value(i, env) for i in lose.cell.index)
        if any(isinstance(i, Span) for i in index):
            return
        lo, hi = (None if end is None else self.value(end, env) for end in (lose.lo, lose.hi))
        low = None if lo is None else ends(lo)[0]
        high = None if hi is None else ends(hi)[1]
        self.cells.write(lose.cell.var, index, span(low, high), self.event)  # type: ignore[arg-type]

    # histories

    def _begin(self) -> Any:
        outer, self.cells.trail = self.cells.trail, []
        return outer

    def _undo(self, outer: Any) -> None:
        self.cells.undo()
        self.cells.trail = outer

    def _join(self, outer: Any, cause: str) -> None:
        written = list(self.cells.trail or ())
        self.cells.join(cause)
        self.cells.trail = outer
        if outer is not None:
            outer.extend(written)

    def _one_of(self, bodies: Sequence[tuple[Sequence[Statement], Env]]) -> None:
        """Take the histories that are not refused; cells in which several differ are not known."""
        kept: list[tuple[Sequence[Statement], Env]] = []
        results: list[dict[Any, Any]] = []
        left: Counter[Obligation] | None = None
        refused: Reject | None = None
        opened = Counter(self.obligations)
        for statements, env in bodies:
            outer = self._begin()
            try:
                self._all(statements, env)
                kept.append((statements, env))
                left = left or self.obligations
                results.append({id_: (table, index, table.get(index)) for id_, table, index in self._written()})
            except Reject as reject:
                refused = refused or reject
            self._undo(outer)
            self.obligations = Counter(opened)
        if not kept:
            assert refused is not None
            raise refused
        if len(kept) == 1:
            self._all(*kept[0])
            return
        assert left is not None
        self.obligations = left
        for id_ in dict.fromkeys(key for result in results for key in result):
            name, index, receiver = id_
            var = self.spec.schema.vars[name]
            before = self.cells.read(var, index, receiver)
            values = [
                before if id_ not in result else var.init if result[id_][2] is None else result[id_][2]
                for result in results
            ]
            found: Value = values[0]
            for value in values[1:]:
                found = hull(found, value)
            if receiver is None:
                self.cells.write(var, index, found, self.event)
            else:
                self.cells.deliver(var, index, found, receiver, self.event)

    def _written(self) -> list[tuple[Any, Any, Any]]:
        seen = {}
        for table, index, _, _, name in self.cells.trail or ():
            seen[name] = (name, table, index)
        return list(seen.values())


def _shown(value: Value) -> str:
    low, high = ends(value)
    return (
        str(value) if not isinstance(value, Span) else f"{'?' if low is None else low}..{'?' if high is None else high}"
    )


def _index(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _message(name: str) -> str:
    return name.partition("_")[0]
