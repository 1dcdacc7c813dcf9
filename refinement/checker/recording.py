"""A run as it was replayed, event by event: the steps each stood for, the cells they wrote, and what was not known.

The replay is Kleene's, by the same rules as the audit; where all is shown its cells are all known. Only the last events
are kept, and the cells of any of them can be had again.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from viewproof.refinement.checker import Judge, Plain, configured
from viewproof.refinement.checker.evidence import Evidence
from viewproof.refinement.checker.explain import explain
from viewproof.refinement.checker.partial import PartialRun
from viewproof.refinement.checker.state import Reject
from viewproof.refinement.checker.story import step_of, tell
from viewproof.refinement.events.system import System
from viewproof.refinement.schema import Row
from viewproof.refinement.value_text import show_value
from viewproof.refinement.verdict import AuditOptions, RunVerdict, Step, Timeline, Violation
from viewproof.spec.engines.guards import Span, Value, Words, guard_text
from viewproof.spec.engines.replay.cells import PartialCells
from viewproof.spec.lang import SpecError
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import call_text
from viewproof.spec.lang.errors import Source
from viewproof.spec.lang.schema import Var

Name = tuple[str, tuple[int, ...], int | None]
"""A cell: variable, index, and who received it (None: the cell itself)."""
KEPT_MAX = 20_000
"""Events that are kept, the last ones."""
SNAPSHOT_EVENTS = 200
"""After so many events the cells are kept as a whole."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """A guard of a step that was taken, and the values on which it was true."""

    text: str
    source: Source
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """A step of the specification that an event stood for; `maybe`: the evidence does not say whether it was taken."""

    action: str
    args: Mapping[str, str]
    maybe: bool
    source: Source
    guards: tuple[Grounds, ...]

    @property
    def call(self) -> str:
        """`on_prepare(r=1, o=3)`."""
        return call_text(self.action, self.args)


@dataclass(frozen=True, slots=True)
class Event:
    """An event that was replayed: the steps it stood for, the cells that changed (before, after), and in words what it
    needed and nothing shows.
    """

    step: Step
    taken: tuple[Taken, ...]
    changes: Mapping[Name, tuple[Value, Value]]
    unknown: tuple[str, ...]


@dataclass(eq=False)
class Recording:
    """A run: its events from `first` on (so many are before them), and the violation at which the replay stopped."""

    judge: Judge
    plain: Plain
    rows: Sequence[Row]
    first: int
    events: list[Event]
    snapshots: dict[int, PartialCells]
    refused: Violation | None
    hole_at: int
    timeline: Timeline = field(default_factory=Timeline)

    @property
    def system(self) -> System:
        """The kind of log."""
        return self.judge.system

    @property
    def spec(self) -> Any:
        """The specification it is judged by."""
        return self.plain.program.replay.spec

    @property
    def total(self) -> int:
        """Events that were accepted, and the one refused."""
        return self.first + len(self.events)

    def cells_after(self, number: int) -> PartialCells:
        """The cells after so many events of the run, at least `first` of them."""
        begin = max(at for at in self.snapshots if at <= number)
        cells = _copy(self.snapshots[begin])
        for event in self.events[begin - self.first : number - self.first]:
            for (name, index, receiver), (_, after) in event.changes.items():
                var = cells.schema.vars[name]
                if receiver is None:
                    cells.write(var, index, after)
                else:
                    cells.deliver(var, index, after, receiver)
        return cells

    def state_after(self, number: int) -> State:
        """The state after so many events. Raises `SpecError` where not all of it is known."""
        if number <= self.hole_at:
            try:
                self.plain.again(self.rows, number)
            except Exception as problem:
                raise SpecError(f"not all that this state holds is shown: {problem}") from problem
            return self.plain.program.replay.layout.to_state(self.plain.store)
        cells = self.cells_after(number)
        tables: dict[str, dict[tuple[int, ...], int]] = {}
        for name, table in cells.known.items():
            for index, value in table.items():
                if isinstance(value, Span):
                    cause = cells.cause(cells.schema.vars[name], index)
                    raise SpecError(f"{name}{list(index)} is not known here{f': {cause}' * bool(cause)}")
                tables.setdefault(name, {})[index] = value
        if cells.open:
            (name, owner), cause = next(iter(cells.open.items()))
            whose = f" of replica {owner}" if owner >= 0 else ""
            raise SpecError(f"{name}{whose} is not known here{f': {cause}' * bool(cause)}")
        return State(tables)


class RecordingRun(PartialRun):
    """Kleene's replay that notes the steps it takes."""

    taken: dict[tuple[str, tuple[Any, ...]], Taken]
    changes: dict[Name, tuple[Value, Value]]

    def _after(self, node: int, seq: int) -> None:
        """What the event wrote, before what may follow unseen."""
        before: dict[Name, Value] = {}
        for _, _, _, old, name in self.cells.trail or ():
            before.setdefault(name, old)
        now = {name: _read(self.cells, name) for name in before}
        self.changes = {name: (old, now[name]) for name, old in before.items() if now[name] != old}
        super()._after(node, seq)

    def _lines(self, rule: Any, row: Row) -> None:
        self.taken = {}
        super()._lines(rule, row)

    def _take(self, action: str, args: dict[str, Value], *, maybe: bool, silent: bool = False) -> None:
        ir = self.irs[action]
        words = Words(self.spec.instance, self.cells, show_value, self.steps.evaluator)
        guards = []
        for guard in ir.guards:
            try:
                values = words.because(guard.cond, args)
            except SpecError as problem:
                values = (problem.message,)
            guards.append(Grounds(guard_text(guard.source), guard.source, values))
        super()._take(action, args, maybe=maybe, silent=silent)
        shown = {name: shown_number(value) for name, value in args.items()}
        self.taken[action, tuple(shown.values())] = Taken(action, shown, maybe, ir.source, tuple(guards))


def record(run_id: str, rows: Sequence[Row], options: AuditOptions, system: System) -> Recording:
    """Replay a run, and keep its last events. Raises `SpecError` where it cannot be replayed at all."""
    assert not system.profile.whole, "such logs are gone through once"
    boot = configured(rows[0], rows, options, system)
    if missing := [name for name in system.profile.needed if boot[system.index[name]] is None]:
        raise SpecError(f"{missing[0]} is not in the first event, nor in any boot: say it with --set {missing[0]}=…")
    judge = Judge(run_id, rows, boot, options, "replay", system, None, rows)
    plain, evidence = _begun(judge, boot)
    boot = evidence.configuration(boot)
    if boot != judge.boot:
        judge.boot = boot
        plain, evidence = _begun(judge, boot)
    if evidence.clocks:
        raise SpecError(evidence.clocks[0])
    plain.judge(iter(rows))
    stopped = plain.state.events
    begin = max(0, min(stopped - KEPT_MAX, evidence.hole_at))
    plain.again(rows, begin)
    run = RecordingRun(plain.program, plain.cells(), plain.state, evidence)
    found = Recording(judge, plain, rows, begin, [], {begin: _copy(run.cells)}, None, min(stopped, evidence.hole_at))
    for row in islice(rows, begin, None):
        try:
            found.events.append(_event(run, row, found))
        except Reject as reject:
            found.refused = explain(run_id, found.spec, run.cells, run.state, row, reject)
            found.events.append(Event(step_of(row, system, run.observed), (), {}, ()))
            break
    unknown = [(one.row, one.text) for one in run.obligations.values() if one.row]
    found.timeline = tell(rows, found.total, system, run.observed, unknown).timeline
    return found


def _begun(judge: Judge, boot: Row) -> tuple[Plain, Evidence]:
    """The plain replay, and what the events show as a whole, under the configuration that a row shows."""
    plain = judge.plain(boot)
    if isinstance(plain, RunVerdict):
        raise SpecError(plain.violations[0].message)
    rules = plain.program.kind.rules
    return plain, Evidence.of(judge.rows, judge.system, rules, plain.replicas, judge.options.partial)


def _event(run: RecordingRun, row: Row, found: Recording) -> Event:
    """Replay an event, and note what it did."""
    known = set(run.obligations)
    opened = dict(run.cells.open)
    outer = run.cells.begin()
    run.taken = {}
    run.event(row)
    run.cells.trail = outer
    number = found.total + 1
    if run.cells.open != opened or number % SNAPSHOT_EVENTS == 0:
        found.snapshots[number] = _copy(run.cells)
    unknown = [one.text for cause, one in run.obligations.items() if cause not in known]
    unknown += sorted({cause for cell, cause in run.cells.open.items() if cell not in opened})
    return Event(step_of(row, run.system, run.observed), tuple(run.taken.values()), run.changes, tuple(unknown))


def _read(cells: PartialCells, name: Name) -> Value:
    var = cells.schema.vars[name[0]]
    return cells.read(var, name[1], name[2])


def _copy(cells: PartialCells) -> PartialCells:
    """A copy of what is known; the declarations are shared."""
    made = copy.copy(cells)
    made.known = {name: dict(table) for name, table in cells.known.items()}
    made.inboxes = {who: {name: dict(table) for name, table in inbox.items()} for who, inbox in cells.inboxes.items()}
    made.open, made.open_inbox, made.why = dict(cells.open), dict(cells.open_inbox), dict(cells.why)
    made.silent, made.trail = dict(cells.silent), None
    return made


def shown_number(value: Value) -> str:
    """A number as it is, or what is known of it."""
    if not isinstance(value, Span):
        return str(value)
    if value.lo is None and value.hi is None:
        return "?"
    return f"{'' if value.lo is None else value.lo}…{'' if value.hi is None else value.hi}"


def shown_value(var: Var, value: Value) -> str:
    """A cell's value as it is, or what is known of it."""
    return shown_number(value) if isinstance(value, Span) else show_value(var, value)
