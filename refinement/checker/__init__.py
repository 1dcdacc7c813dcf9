"""Replay one run's events through the specification and judge it.

"violates": an event, a value or an invariant is false whatever the evidence does not show. "conforms": every event was
explained by steps of the spec, in the order of the Lamport clocks, every observation was equal to the spec's state (or
confirmed by a later one), and nothing that decides is missing. "inconclusive": something is, and it is named.

Two replays of the same rules: a plain one for events of which all is shown, compiled (`compile`), and Kleene's, over
cells that are known or not, from the first hole in the evidence on (`partial`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice, takewhile
from typing import Any

from viewproof.refinement.adapter import adapter
from viewproof.refinement.checker.begun import Begun, data_of
from viewproof.refinement.checker.compile import Program, compile_program
from viewproof.refinement.checker.evidence import Evidence
from viewproof.refinement.checker.explain import explain
from viewproof.refinement.checker.partial import PartialRun
from viewproof.refinement.checker.state import Missing, Reject, RunState
from viewproof.refinement.checker.story import tell
from viewproof.refinement.checker.whole import judge_whole
from viewproof.refinement.events.system import System
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.refinement.verdict import AllowedUse, AuditOptions, RunVerdict, Verdict, Violation
from viewproof.spec.engines.replay import Store
from viewproof.spec.engines.replay.cells import PartialCells
from viewproof.spec.lang import SpecError

_NODE, _SEQ, _CLOCK, _EVENT = (INDEX[name] for name in ("node", "seq", "clock", "event"))


def check_run(
    run_id: str, events: Iterable[Row], options: AuditOptions, *, engine: str = "replay", begun: Begun | None = None,
    whole: Iterable[Row] = (),
) -> RunVerdict:  # fmt: skip
    """Judge one run. `events` are rows with file and line, in (clock, node, seq) order, each valid by the schema; they
    are gone through more than once where evidence is missing (an iterator is held in memory for that).

    `engine` "interp" takes every step by the reference interpreter instead of the compiled replay. With `begun` the
    events are those after it, and `whole` are all. Raises `SpecError` for an option that the specification does not
    know (an unknown `--allow`).
    """
    system = adapter(options.adapter).system
    rows = list(events) if isinstance(events, Iterator) and not system.profile.whole else events
    stream = iter(rows)
    boot = begun.first if begun else next(stream, None)
    if boot is None:
        return RunVerdict(run_id, "inconclusive", 0, missing=("the run has no events",))
    if begun is None:
        stream = chain([boot], stream)
    if system.profile.whole:
        return judge_whole(run_id, stream, boot, options, system, engine)
    boot = configured(boot, rows, options, system)
    missing = [name for name in system.profile.needed if boot[system.index[name]] is None]
    if missing:
        texts = tuple(f"{n} is not in the first event, nor in any boot: say it with --set {n}=…" for n in missing)
        return RunVerdict(run_id, "inconclusive", 0, missing=texts)
    judge = Judge(run_id, rows, boot, options, engine, system, begun, whole if begun else rows)
    shown = {name: boot[at] for name, at in system.index.items()}
    notes = system.profile.weaknesses(shown)
    verdict = _judged(judge, boot, stream)
    if verdict.verdict != "violates":
        verdict = verdict.with_missing(system.profile.unshown(shown, verdict.events_by_name))
    unfit = (f"{id} is not permitted here: this run's specification does not have what it does" for id in judge.unfit)
    shown = dict(zip(system.names, judge.boot, strict=False))
    configuration = system.configuration_of(shown)
    return replace(verdict, notes=(*verdict.notes, *notes, *unfit), configuration=configuration)


def configured(first: Row, rows: Iterable[Row], options: AuditOptions, system: System) -> Row:
    """The event that shows the run's configuration, with what the options say of it."""
    index, needed = system.index, system.profile.needed
    boot = first
    if any(boot[index[name]] is None for name in needed):
        boot = Evidence.of(rows, system).boot or boot
    given = {name: value for name, value in options.configuration if boot[index[name]] is None}
    return _with(boot, given, system)


def _judged(judge: Judge, boot: Row, stream: Iterator[Row]) -> RunVerdict:
    """The verdict, which must hold whatever the run does not show of its configuration."""
    system = judge.system
    verdict = judge.verdict(boot, stream)
    if verdict.verdict != "violates":
        return verdict
    for shown, columns in _other_configurations(judge.boot, system):
        if judge.verdict(shown).verdict != "violates":
            texts = tuple(f"{column} of the first event: the verdict is about a run without it" for column in columns)
            found = verdict.violations[0]
            refused = f"a run without it is refused at {found.file}:{found.line}: {found.message}"
            return replace(verdict, verdict="inconclusive", violations=(), missing=(*texts, refused, *verdict.missing))
    return verdict


def _other_configurations(boot: Row, system: System) -> Iterator[tuple[Row, tuple[str, ...]]]:
    """What the configuration may have been, as the run does not show some of it: with each option that is not shown,
    and with all of them.
    """
    shown = system.profile.if_shown
    unshown = {column: value for column, value in shown.items() if boot[system.index[column]] is None}
    for some in ({column: value} for column, value in unshown.items()):
        yield _with(boot, some, system), tuple(some)
    if len(unshown) > 1:
        yield _with(boot, unshown, system), tuple(unshown)


def _with(row: Row, values: Mapping[str, int], system: System) -> Row:
    changed = list(row)
    for column, value in values.items():
        changed[system.index[column]] = value
    return tuple(changed)


class Judge:
    """Judges a run under one configuration or another."""

    def __init__(
        self, run_id: str, rows: Iterable[Row], boot: Row, options: AuditOptions, engine: str, system: System,
        begun: Begun | None, whole: Iterable[Row],
    ) -> None:  # fmt: skip
        self.run_id = run_id
        self.rows = rows
        self.begun = begun
        self.whole = whole
        self.system = system
        self.boot = boot
        self.allow = tuple(sorted(id for id in options.allow if id not in system.departures))
        self.options = options
        self.engine = engine
        self.unfit: tuple[str, ...] = ()

    def plain(self, shown: Row) -> Plain | RunVerdict:
        """The plain replay if the configuration is that of the row `shown`; or the verdict that there can be none."""
        configure = self.system.profile.configure
        record = dict(zip(self.system.names, shown, strict=False))
        permitted = self.system.profile.deviations(self.allow).configuration
        try:
            cfg = configure(record, permitted)
        except SpecError as error:
            violation = _configuration(self.run_id, shown, error)
            return RunVerdict(self.run_id, "violates", 0, violations=(violation,))
        uses: list[AllowedUse] = []
        try:
            cfg = configure(record, frozenset())
        except SpecError:
            uses = [_use(id, shown) for id in sorted(permitted)]
        program = program_for(self.system, cfg, self.boot, self.allow, self.engine)
        self.unfit = program.kind.unfit
        return Plain(self.run_id, program, cfg.replicas, uses, self.boot, self.options, self.begun)

    def verdict(self, shown: Row, stream: Iterator[Row] | None = None) -> RunVerdict:
        """The verdict if the configuration is that of the row `shown`; `stream` are the rows, if they are begun."""
        if self.begun is not None and not shown == self.boot == self.begun.first:
            self.begun, self.rows, stream = None, self.whole, None
        plain = self.plain(shown)
        if isinstance(plain, RunVerdict):
            return plain
        program, replicas = plain.program, plain.replicas
        verdict = plain.judge(stream or iter(self.rows))
        if verdict is not None:
            return self._told(verdict, plain)
        evidence = Evidence.of(self.rows, self.system, program.kind.rules, replicas, self.options.partial, self.begun)
        boot = evidence.configuration(self.boot)
        if boot == self.boot:
            return self._told(_judge_partial(plain, self.rows, evidence), plain)
        self.boot = boot
        return self.verdict(boot)

    def _told(self, verdict: RunVerdict, plain: Plain) -> RunVerdict:
        """The verdict with what led to it, if the run does not conform."""
        if verdict.verdict == "conforms":
            return verdict
        told = tell(self.whole, verdict.events, self.system, plain.program.kind.observed, plain.unknown)
        found = tuple(replace(v, story=told.steps, changes=told.changes) for v in verdict.violations)
        return replace(verdict, violations=found, timeline=told.timeline)


def program_for(system: System, cfg: Any, boot: Row, allow: tuple[str, ...] = (), engine: str = "replay") -> Program:
    """The compiled audit of a run with that configuration, whose first event is `boot`."""
    optional = any(boot[system.index[column]] is not None for column in system.optional)
    return compile_program(system, cfg, allow, engine, optional=optional)


def advance(run_id: str, rows: Iterable[Row], options: AuditOptions, begun: Begun | None = None) -> Begun | None:
    """The state of the plain replay after those events of a run that are final: later ones have greater clocks, as each
    replica has shown an event above them, and they lie before whatever is refused or not shown.

    `rows` are all events after `begun`, in replay order, gone through more than once. None: nothing is final yet, or
    the run's first event does not show the configuration.
    """
    system = adapter(options.adapter).system
    first = begun.first if begun else next(iter(rows), None)
    if first is None or system.profile.silent or options.partial:
        return begun
    if any(first[system.index[name]] is None for name in system.profile.needed):
        return begun
    plain = Judge(run_id, rows, first, options, "replay", system, begun, rows).plain(first)
    if isinstance(plain, RunVerdict):
        return begun
    last = {row[_NODE]: row[_CLOCK] for row in rows}
    if not set(range(plain.replicas)) <= last.keys():
        return begun
    until = min(last.values())
    events = plain.before + sum(1 for _ in takewhile(lambda row: row[_CLOCK] < until, rows))
    events = min(events, Evidence.of(rows, system, begun=begun).hole_at)
    try:
        plain.again(rows, events)
    except (Missing, Reject):
        plain.again(rows, plain.state.events)
    return plain.kept(rows, first) if plain.state.events > plain.before else begun


class Plain:
    """The replay of a run of which all is shown; it stops at the first event of which something is not."""

    def __init__(
        self, run_id: str, program: Program, replicas: int, uses: list[AllowedUse], boot: Row, options: AuditOptions,
        begun: Begun | None = None,
    ) -> None:  # fmt: skip
        self.run_id = run_id
        self.options = options
        self.begun = begun
        self.program = program
        self.replicas = replicas
        self.uses_before = uses
        self.boot = boot
        self.refused: Violation | None = None
        self.rejected = ""
        self.unknown: tuple[tuple[Row, str], ...] = ()
        self._begin()

    def _begin(self) -> None:
        self.uses = list(self.uses_before)
        self.state = self.program.new_run(self.boot)
        self.state.forbidden, self.state.permitted = frozenset(self.options.forbid), frozenset(self.options.allow)
        self.store: Store = self.program.replay.new_store()
        self.judged = dict.fromkeys(self.program.handlers, 0)
        if self.begun is not None:
            self.begun.restore(self.store, self.state)
            self.judged |= self.begun.judged
            self.uses = list(self.begun.uses)

    def judge(self, stream: Iterator[Row]) -> RunVerdict | None:
        """Consume the events up to the first that is refused; None: what was missing must be looked at.

        `refused` is set where an event is refused and the evidence is whole: only its order may be wrong then.
        `rejected` says of an event that it is refused as far as the evidence goes.
        """
        row: Row = ()
        if self.program.system.profile.silent or self.options.partial:
            return None
        try:
            for row in stream:
                self.take(row)
        except Missing:
            return None
        except Reject as reject:
            self.rejected = f"{row[FILE_INDEX]}:{row[LINE_INDEX]}: {reject.message}"
            if not self.program.kind.by_action and self._all_go_on(row, stream):
                self.program.locate(reject)
                self.refused = explain(self.run_id, self.program.replay.spec, self.cells(), self.state, row, reject)
            return None
        if not all(self.state.last_seq):
            return None
        unseen = tuple(self.state.missing())
        return self.verdict("inconclusive" if unseen else "conforms", missing=unseen)

    def take(self, row: Row) -> None:
        """Judge the next event. Raises `Missing` or `Reject`."""
        event, node = row[_EVENT], row[_NODE]
        state = self.state
        if node >= self.replicas:
            raise Reject("event.node", f"node {node} is not one of {self.replicas} replicas")
        if row[_SEQ] != state.last_seq[node] + 1:
            raise Missing("seq")
        if row[_SEQ] == 1:
            state.check_first(1, event)
            if self.program.system.profile.begins_late(event):
                raise Missing("seq")
        state.check_members(row)
        if event not in self.judged:
            raise Missing("event")
        self.judged[event] += 1
        self.program.handlers[event](state, self.store, row)
        if state.uses:
            self.uses += _uses(state, row)
        state.events += 1
        state.last_seq[node] = row[_SEQ]

    def _all_go_on(self, row: Row, later: Iterable[Row]) -> bool:
        """Is the evidence about every replica complete up to the event and beyond it, so that what it refutes is so?"""
        last, late = list(self.state.last_seq), self.program.system.profile.begins_late
        if row[_NODE] >= self.replicas:
            return True
        last[row[_NODE]] = row[_SEQ]
        waiting = set(range(self.replicas)) - {row[_NODE]}
        if self.program.system.profile.to_the_end:
            waiting -= {node for node, seq in enumerate(last) if seq}
        whole = True
        for other in later:
            node, seq = other[_NODE], other[_SEQ]
            if node < self.replicas:
                whole = whole and seq == last[node] + 1 and not (seq == 1 and late(other[_EVENT]))
                last[node] = seq
                waiting.discard(node)
        return whole and not waiting

    @property
    def before(self) -> int:
        """How many events were replayed before this began."""
        return self.begun.events if self.begun else 0

    def again(self, rows: Iterable[Row], events: int) -> None:
        """Begin again, and replay up to so many events."""
        self._begin()
        for row in islice(rows, events - self.before):
            self.take(row)

    def kept(self, rows: Iterable[Row], first: Row) -> Begun:
        """The state as a value; `rows` are the events that it went through, and later ones."""
        through = islice(rows, self.state.events - self.before)
        boots = [row for row in through if row[_EVENT] in self.program.system.profile.boots]
        store, state = data_of(self.store, self.state)
        return Begun(
            first, self.state.events, tuple(self.state.last_seq), store, state, dict(self.judged), tuple(self.uses),
            (*(self.begun.boots if self.begun else ()), *boots),
        )  # fmt: skip

    def cells(self) -> PartialCells:
        """The state as cells that are all known."""
        replay = self.program.replay
        return PartialCells.of(
            replay.layout.to_state(self.store), replay.spec.schema, replay.spec.instance, replay.layout.actors
        )

    def verdict(
        self, verdict: Verdict, *, violations: tuple[Violation, ...] = (), missing: tuple[str, ...] = ()
    ) -> RunVerdict:
        """The verdict on the events so far."""
        coverage = {a.name: self.state.coverage[a.name] for a in self.program.replay.spec.actions}
        return RunVerdict(
            self.run_id, verdict, self.state.events, coverage, violations, missing, tuple(self.uses), self.judged,
            open_guards=self.state.open_guards,
        )  # fmt: skip


def _judge_partial(plain: Plain, rows: Iterable[Row], evidence: Evidence) -> RunVerdict:
    """Kleene's replay, from where the plain one knew all."""
    if evidence.clocks:
        more = evidence.clock_problems - len(evidence.clocks)
        texts = (*evidence.clocks, *((f"{more} more such clocks",) if more else ()))
        return RunVerdict(plain.run_id, "inconclusive", 0, missing=(*texts, *evidence.missing(plain.replicas)))
    if plain.refused is not None:
        return plain.verdict("violates", violations=(plain.refused,))
    begin = min(plain.state.events, evidence.hole_at)
    plain.again(rows, begin)
    program = plain.program
    run = PartialRun(program, plain.cells(), plain.state, evidence)
    run.judged.update(plain.judged)
    plain.judged = run.judged
    row: Row = ()
    missing: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    try:
        for row in islice(rows, begin - plain.before, None):
            run.event(row)
            if run.state.uses:
                plain.uses += _uses(run.state, row)
    except Reject as reject:
        violations = (explain(plain.run_id, program.replay.spec, run.cells, run.state, row, reject),)
        missing = tuple(evidence.missing(plain.replicas))
    else:
        missing = (*evidence.missing(plain.replicas), *run.missing(), *run.state.missing())
        if plain.rejected and not missing:
            missing = (f"what nodes did after the end of their traces; without it {plain.rejected}",)
    plain.state = run.state
    plain.unknown = tuple((one.row, one.text) for one in run.obligations.values() if one.row)
    verdict: Verdict = "violates" if violations else "inconclusive" if missing else "conforms"
    return plain.verdict(verdict, violations=violations, missing=tuple(dict.fromkeys(missing)))


def _uses(state: RunState, row: Row) -> list[AllowedUse]:
    """The permitted deviations that were needed for the event."""
    names = [name for some in state.uses.values() for name in some]
    state.uses.clear()
    return [_use(n if "." in n else n.partition("__")[2].replace("_", ".", 1), row) for n in names]


def _use(id: str, row: Row) -> AllowedUse:
    return AllowedUse(id, row[FILE_INDEX], row[LINE_INDEX], row[_NODE], row[_SEQ])


def _configuration(run_id: str, row: Row, error: SpecError) -> Violation:
    return Violation(
        run_id,
        row[_SEQ],
        row[FILE_INDEX],
        row[LINE_INDEX],
        row[_NODE],
        row[_EVENT],
        "configuration",
        "error",
        error.message,
    )


__all__ = ["Begun", "advance", "check_run"]
