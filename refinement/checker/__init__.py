"""Replay one run's events through the specification and judge it.

"conforms": every event was explained by steps of the spec, in the order of the Lamport clocks, and every observation
was equal to the spec's state (or confirmed by a later one). "violates": the first event that no step explains.
"inconclusive": a column that decides is not in the trace; it is named. The spec's state is one: native traces show
every choice that the protocol leaves open.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from itertools import chain

from viewproof.refinement.checker.compile import COLUMNS_MORE, Program, compile_program
from viewproof.refinement.checker.explain import explain
from viewproof.refinement.checker.state import Missing, Reject, RunState
from viewproof.refinement.mapping import CONFIGURED, NEEDED_BY_EVENT
from viewproof.refinement.mapping.boot import FEATURE_MAX
from viewproof.refinement.mapping.partitions import PARTITIONS
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.refinement.verdict import AllowedUse, AuditOptions, RunVerdict, Verdict, Violation
from viewproof.spec.lang import SpecError
from viewproof.spec.vsr import Config
from viewproof.spec.vsr.config import ClientTable, Partitions
from viewproof.spec.vsr.faults import fault

_CONFIGURATION = ("replicas", "quorum_replication", "quorum_view_change")
_NODE, _SEQ, _EVENT = INDEX["node"], INDEX["seq"], INDEX["event"]


def check_run(run_id: str, events: Iterable[Row], options: AuditOptions, *, engine: str = "replay") -> RunVerdict:
    """Judge one run. `events` are rows with file and line, in (clock, node, seq) order, each valid by the schema.

    `engine` "interp" takes every step by the reference interpreter instead of the compiled replay. Raises
    `SpecError` for an option that the specification does not know (an unknown `--allow`).
    """
    rows = iter(events)
    first = next(rows, None)
    if first is None:
        return RunVerdict(run_id, "inconclusive", 0, missing=("the run has no events",))
    missing = [name for name in _CONFIGURATION if first[INDEX[name]] is None]
    if missing:
        return RunVerdict(run_id, "inconclusive", 0, missing=tuple(f"{n} is not in the first event" for n in missing))
    allow = tuple(sorted(options.allow))
    permitted = frozenset(id for id in allow if fault(id).is_configuration)
    try:
        cfg = configuration(first, permitted)
    except SpecError as error:
        return RunVerdict(run_id, "violates", 0, violations=(_configuration(run_id, first, error),))
    uses: list[AllowedUse] = []
    try:
        cfg = configuration(first)
    except SpecError:
        uses = [_use(id, first) for id in sorted(permitted)]
    more = any(first[INDEX[column]] is not None for column in COLUMNS_MORE)
    run = _Run(run_id, compile_program(cfg, allow, engine, more=more), cfg.replicas, uses, first)
    return run.judge(chain([first], rows))


def configuration(first: Row, faults: frozenset[str] = frozenset()) -> Config:
    """The specification's configuration for a run, as its first event shows it. Raises `SpecError` for an impossible
    one.
    """
    replicas, q_r, q_v = (first[INDEX[name]] for name in _CONFIGURATION)
    slots, sessions, gaps, pipeline, journal_slots, partitions = (first[INDEX[name]] for name in CONFIGURED)
    table = ClientTable() if slots is None else ClientTable(slots, bool(sessions), bool(gaps), in_flight=0)
    checkpoints = bool(first[INDEX["checkpoint_interval"]])
    return Config(
        replicas,
        q_r,
        q_v,
        faults=faults,
        client_table=table,
        features=0 if first[INDEX["supports"]] is None else int(FEATURE_MAX),
        checkpoints=checkpoints,
        pipeline=pipeline or 0,
        failing_appends=slots is not None,
        fence=slots is not None,
        discards=bool(first[INDEX["ring"]]),
        losses=bool(first[INDEX["ring"]]),
        journal_slots=(journal_slots or 0) if checkpoints else 0,
        partitions=Partitions(PARTITIONS if partitions else 0),
    )


class _Run:
    """The replay of one run."""

    def __init__(self, run_id: str, program: Program, replicas: int, uses: list[AllowedUse], first: Row) -> None:
        self.run_id = run_id
        self.program = program
        self.state = RunState(replicas, program.replay.spec.schema, first)
        self.store = program.replay.new_store()
        self.replicas = replicas
        self.uses = uses
        self.judged = dict.fromkeys(program.handlers, 0)

    def judge(self, rows: Iterator[Row]) -> RunVerdict:
        """Consume the events up to the first that cannot be explained."""
        handlers, deviant = self.program.handlers, self.program.deviant
        state, store, judged = self.state, self.store, self.judged
        row: Row = ()
        try:
            for row in rows:
                event = row[_EVENT]
                if row[_NODE] >= self.replicas:
                    raise Reject("event.node", f"node {row[_NODE]} is not one of {self.replicas} replicas")
                if row[_SEQ] == 1 and event != "start":
                    raise Reject("event.event", "the first event of a node is start", "start", event)
                if event not in judged:
                    raise Missing(f"{NEEDED_BY_EVENT[event]} of the first event; without it there is no {event}: event")
                judged[event] += 1
                if event in deviant:
                    self._explain_with_deviations(row)
                    state, store = self.state, self.store
                else:
                    handlers[event](state, store, row)
                state.events += 1
                state.last_seq[row[_NODE]] = row[_SEQ]
                if state.uses:
                    self._note_uses(row)
        except Reject as reject:
            violation = explain(self.run_id, self.program, self.store, self.state, row, reject)
            cut = self._cut_off(reject, row, rows)
            if cut:
                return self._verdict("inconclusive", missing=(cut,))
            return self._verdict("violates", violations=(violation,))
        except Missing as missing:
            place = f"{row[FILE_INDEX]}:{row[LINE_INDEX]}"
            return self._verdict("inconclusive", missing=(f"{missing.column} of {row[_EVENT]} at {place}",))
        unseen = tuple(state.missing())
        return self._verdict("inconclusive" if unseen else "conforms", missing=unseen)

    def _cut_off(self, reject: Reject, row: Row, rows: Iterator[Row]) -> str:
        """Why a message that was never sent may be the trace's fault: the sender's trace ends before it was."""
        if reject.sender is None and not reject.lost_from:
            return ""
        last = list(self.state.last_seq)
        more = set()
        for later in rows:
            if later[_NODE] < self.replicas:
                last[later[_NODE]] = later[_SEQ]
                more.add(later[_NODE])
        event = f"{row[_EVENT]} at {row[FILE_INDEX]}:{row[LINE_INDEX]}"
        if reject.sender is not None:
            sender, seq = reject.sender
            if sender >= self.replicas or seq <= last[sender]:
                return ""
            return f"{_ends(sender, last)}; {event} received a message of its event {seq}"
        for sender in reject.lost_from:
            if sender < self.replicas and sender != row[_NODE] and sender not in more:
                return f"{_ends(sender, last)}; {event} needs a message that it sent later"
        return ""

    def _explain_with_deviations(self, row: Row) -> None:
        """Take the event by the normal rule; where that rejects, by each permitted deviation from the state before."""
        before = copy.deepcopy((self.state, self.store))
        try:
            self.program.handlers[row[_EVENT]](self.state, self.store, row)
            return
        except Reject as reject:
            for handler in self.program.deviant[row[_EVENT]]:
                state, store = copy.deepcopy(before)
                try:
                    handler(state, store, row)
                except Reject:
                    continue
                self.state, self.store = state, store
                return
            raise reject

    def _note_uses(self, row: Row) -> None:
        for names in self.state.uses.values():
            for name in names:
                fault = name.partition("__")[2].replace("_", ".", 1)
                self.uses.append(_use(fault, row))
        self.state.uses.clear()

    def _verdict(
        self, verdict: Verdict, *, violations: tuple[Violation, ...] = (), missing: tuple[str, ...] = ()
    ) -> RunVerdict:
        coverage = {a.name: self.state.coverage[a.name] for a in self.program.replay.spec.actions}
        return RunVerdict(
            self.run_id, verdict, self.state.events, coverage, violations, missing, tuple(self.uses), self.judged
        )


def _use(id: str, row: Row) -> AllowedUse:
    return AllowedUse(id, row[FILE_INDEX], row[LINE_INDEX], row[_NODE], row[_SEQ])


def _ends(node: int, last: list[int]) -> str:
    return f"the trace of node {node} ends at event {last[node]}"


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


__all__ = ["check_run"]
