"""What Kleene's replay of a run holds: cells, what is open and why, and the values of the mapping's expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewproof.refinement.checker.compile import Program
from viewproof.refinement.checker.evidence import Evidence
from viewproof.refinement.checker.state import Entry, RunState
from viewproof.refinement.checker.terms import TermEvaluator
from viewproof.refinement.events.lines import Condition, Line, Range, Rule
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.spec.engines.guards import Reading, Span, Value
from viewproof.spec.engines.guards.cells import ends
from viewproof.spec.engines.replay.cells import PartialCells, meet
from viewproof.spec.engines.replay.partial import Steps
from viewproof.spec.lang.expr import Expr

_NODE, _SEQ, _EVENT = INDEX["node"], INDEX["seq"], INDEX["event"]
RANGE_MAX = 4096
"""Members of a range whose ends are not known that are looked at one by one."""


@dataclass(slots=True)
class Obligation:
    """Something that evidence left open: what and at which event first, and how often."""

    text: str
    row: Row
    count: int = 1


class Holding:
    """The state of a Kleene replay, and what its evidence leaves open."""

    def __init__(self, program: Program, cells: PartialCells, state: RunState, evidence: Evidence) -> None:
        spec = program.replay.spec
        self.spec = spec
        self.system = program.system
        self.rules = program.rules
        self.observed = program.observed
        self.by_action = program.kind.by_action
        self.deviations = program.kind.deviations
        self.cells = cells
        self.steps = Steps(cells, self._evaluator)
        self.state = state
        self.evidence = evidence
        self.irs = {ir.name: ir for ir in spec.action_irs}
        self.obligations: dict[str, Obligation] = {}
        self.unshown: dict[tuple[int, int, str], tuple[str, str]] = {}
        self.journal_open: dict[int, str] = {}
        self.swap = ("", "")
        self.row: Row = ()
        self.line: Line | None = None
        self.columns: dict[str, Any] = {}
        self.missing_here = ""
        self.truths: dict[Condition, bool | None] = {}
        self.lets: dict[str, Any] = {}
        self.judged = dict.fromkeys(self.rules, 0)
        for name in self.system.profile.silent:
            cells.let_rise(name, f"{name} may change without a line")
        for node in range(state.replicas):
            if state.last_seq[node]:
                self._after(node, state.last_seq[node])
            elif node not in evidence.ends:
                self._forget(node, f"node {node} has no event in the input")
            elif (node, 0) in evidence.holes_after:
                self._forget(node, evidence.holes_after[node, 0])

    def _after(self, node: int, seq: int) -> None:
        """After that event there may be some that are not shown."""
        if (cause := self.evidence.holes_after.get((node, seq))) is not None:
            self._forget(node, cause)
        elif self.evidence.ends[node] == seq and not self.system.profile.to_the_end:
            self._forget(node, f"the trace of node {node} ends at event {seq}")

    def _open(self, cause: str, what: str) -> None:
        """Something that this event needs is not known for that cause."""
        known = self.obligations.get(cause)
        if known is not None:
            known.count += 1
            return
        place = f"{self.row[FILE_INDEX]}:{self.row[LINE_INDEX]}"
        own = cause.endswith(f" of {self.row[_EVENT]}")
        text = f"{cause} at {place}" if own or not what else f"{cause}; {self.row[_EVENT]} at {place}"
        text += f": {what}" if what else ""
        self.obligations[cause] = Obligation(text, self.row)

    def _open_value(self, expr: Expr, what: str, env: Mapping[str, Value]) -> None:
        evaluator = self._evaluator()
        evaluator.value(expr, {**self.lets, **env})
        self._note_absent(evaluator)
        self._open(self.missing_here if evaluator.absent else self._cause(evaluator.readings), what)

    def _note_absent(self, evaluator: TermEvaluator) -> None:
        if evaluator.absent:
            self.missing_here = self.steps.cause = f"{evaluator.absent[0]} of {self.row[_EVENT]}"

    def _cause(self, readings: Iterable[Reading]) -> str:
        for reading in readings:
            if isinstance(reading.value, Span):
                found = self.cells.cause(reading.var, reading.index, reading.receiver)
                if found:
                    return found
        return self.missing_here or next(iter(self.cells.open_inbox.values()), "") or "a value that is not known"

    def _any_cause(self) -> str:
        return next(iter(self.cells.open.values()), "") or next(iter(self.obligations), "a value that is not known")

    def _unshown(self, rule: Rule, column: str) -> None:
        """The event does not show a column that nothing else gives: the run does not conform for certain."""
        row = self.row
        self.missing_here = f"{column} of {row[_EVENT]}"
        self.steps.cause = self.missing_here
        if rule.sends and column in self.system.messages[rule.sends]:
            place = f"{row[FILE_INDEX]}:{row[LINE_INDEX]}"
            self.unshown[row[_NODE], row[_SEQ], column] = row[_EVENT], place
        else:
            self._open(f"{column} of {row[_EVENT]}", "")

    def _forget(self, node: int, cause: str) -> None:
        profile = self.system.profile
        self.cells.forget(node, cause, once=profile.once, rising=profile.rising)
        self.journal_open.setdefault(node, cause)
        self.state.due[node] = [None]

    def _evaluator(self) -> TermEvaluator:
        declared, schema = self.system.by_name, self.spec.schema
        return TermEvaluator(self.spec.instance, self.cells, schema, declared, self.columns, self.state.labels)

    def _value(self, expr: Expr, env: Mapping[str, Value] | None = None) -> Any:
        evaluator = self._evaluator()
        value = evaluator.value(expr, {**self.lets, **(env or {})})
        if isinstance(value, Span):
            self._note_absent(evaluator)
        return value

    def _truth(self, expr: Expr | None, env: Mapping[str, Value] | None = None) -> bool | None:
        if expr is None:
            return True
        evaluator = self._evaluator()
        truth = evaluator.truth(expr, {**self.lets, **(env or {})})
        if truth is None:
            self._note_absent(evaluator)
        return truth

    def _applies(self, conditions: tuple[Condition, ...]) -> bool | None:
        """Do all conditions of an event hold? Each is looked at once, before the first line that stands under it."""
        applies: bool | None = True
        for one in conditions:
            if one not in self.truths:
                self.truths[one] = self._truth(one.cond)
            truth = self.truths[one]
            if truth is False:
                return False
            applies = applies and truth
        return applies

    def _all(self, conditions: tuple[Condition, ...], env: Mapping[str, Value]) -> bool | None:
        """The same for a member of a range."""
        applies: bool | None = True
        for one in conditions:
            truth = self._truth(one.cond, env)
            if truth is False:
                return False
            applies = applies and truth
        return applies

    def _learn(self, expr: Expr, value: Any, env: Mapping[str, Value]) -> None:
        """The value of the expression is shown."""
        if isinstance(value, str):
            return
        self.steps.narrow(expr, value, {**self.lets, **env})

    def _assume(self, expr: Expr, env: Mapping[str, Value]) -> None:
        self.steps.assume(expr, True, {**self.lets, **env})

    def _members(self, each: Range) -> tuple[range, Expr | None]:
        """The certain members of a range, and the end of it that is not known, if there is one."""
        lo, hi = self._value(each.lo), self._value(each.hi)
        unknown = each.lo if isinstance(lo, Span) else each.hi if isinstance(hi, Span) else None
        lo_hi, hi_lo = ends(lo)[1], ends(hi)[0]
        certain = range(0) if lo_hi is None or hi_lo is None or isinstance(hi, Span) else range(lo_hi, hi_lo + 1)
        if len(certain) > RANGE_MAX and unknown is not None:
            certain = range(0)
        return certain, unknown

    def missing(self) -> list[str]:
        """What was left open, grouped by what evidence was missing."""
        columns: dict[str, list[str]] = {}
        for (_, _, column), (event, place) in self.unshown.items():
            columns.setdefault(f"{column} of {event}", []).append(place)
        texts = [f"{cause} at {places[0]} is not shown{more(len(places))}" for cause, places in columns.items()]
        return [*texts, *(f"{one.text}{more(one.count)}" for one in self.obligations.values())]


def more(count: int) -> str:
    return f", and {count - 1} more" if count > 1 else ""


def may_equal(a: Any, b: Any) -> bool:
    """Are two values, of which the first may be open, perhaps equal?"""
    if isinstance(a, Span):
        return isinstance(b, (str, Span)) or meet(a, int(b)) is not None
    return bool(a == b)


def least(value: Value) -> int:
    low = ends(value)[0]
    return 0 if low is None else low


def span_text(value: Span) -> str:
    if value.hi is None:
        return f"at least {value.lo}"
    return f"at most {value.hi}" if not value.lo else f"{value.lo} … {value.hi}"


def numbers(args: Mapping[str, Value]) -> dict[str, Any]:
    return dict(args)


def named_entry(key: Entry) -> str:
    return f"op {key[1]} of view {key[0] - 1}"
