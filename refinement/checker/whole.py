"""Replay a log that is whole: the lines of all nodes in the order of events, of which none is missing before its end.

Nothing is open then: what the compiled replay refuses is a violation, at once, and what nodes did after the end of the
log does not matter. Rows are gone through once and not kept, so memory follows from the specification's state alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from viewproof.refinement.checker.compile import Program, compile_program
from viewproof.refinement.checker.explain import explain
from viewproof.refinement.checker.state import Missing, Reject, RunState
from viewproof.refinement.checker.story import tell
from viewproof.refinement.events.lines import Step
from viewproof.refinement.events.system import System
from viewproof.refinement.places import place_in
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.refinement.verdict import AllowedUse, AuditOptions, RunVerdict, Verdict, Violation
from viewproof.spec.engines.guards import Evaluator
from viewproof.spec.engines.replay import Store
from viewproof.spec.engines.replay.cells import PartialCells
from viewproof.spec.lang import SpecError

_NODE, _SEQ, _EVENT = INDEX["node"], INDEX["seq"], INDEX["event"]
RECENT = 400
"""Events that are kept to tell what led to a violation."""


def judge_whole(
    run_id: str, stream: Iterator[Row], boot: Row, options: AuditOptions, system: System, engine: str = "replay"
) -> RunVerdict:
    """The verdict on a run, whose configuration its first row shows; the rows are consumed up to a violation."""
    allow = tuple(sorted(options.allow))
    try:
        cfg = system.profile.configure(dict(zip(system.names, boot, strict=False)), frozenset())
    except SpecError as error:
        place = boot[_SEQ], boot[FILE_INDEX], boot[LINE_INDEX], boot[_NODE], boot[_EVENT]
        found = Violation(run_id, *place, "configuration", "error", error.message, rule="the configuration is possible")
        return RunVerdict(run_id, "violates", 0, violations=(found,))
    whole = Whole(run_id, compile_program(system, cfg, allow, engine), boot)
    whole.feed(stream)
    return whole.verdict()


class Whole:
    """The replay of one run; `feed` takes its rows in order."""

    def __init__(self, run_id: str, program: Program, boot: Row) -> None:
        self.run_id = run_id
        self.program = program
        self.state: RunState = program.new_run(boot)
        self.store: Store = program.replay.new_store()
        self.nodes = self.state.replicas
        self.judged = dict.fromkeys(program.handlers, 0)
        self.uses: list[AllowedUse] = []
        self.recent: deque[Row] = deque(maxlen=RECENT)
        self.violation: Violation | None = None
        self.missing = ""

    def feed(self, rows: Iterator[Row]) -> bool:
        """Judge rows; False once one is refused."""
        handlers, judged, state, store, recent = (
            self.program.handlers, self.judged, self.state, self.store, self.recent
        )  # fmt: skip
        nodes = self.nodes
        row: Row = ()
        try:
            for row in rows:
                event = row[4]
                recent.append(row)
                judged[event] += 1
                if row[1] >= nodes:
                    raise Reject("event.node", f"there is no node {row[1]}", f"a node below {nodes}", row[1])
                handlers[event](state, store, row)
                state.events += 1
                if state.uses:
                    self._note_uses(row)
        except Reject as reject:
            self.program.locate(reject)
            self.violation = self._explained(row, reject)
            return False
        except Missing as missing:
            self.missing = f"{missing.column} of {row[_EVENT]} at {row[FILE_INDEX]}:{row[LINE_INDEX]} is not shown"
            return False
        return True

    def _note_uses(self, row: Row) -> None:
        for names in self.state.uses.values():
            for name in names:
                fault = name.partition("__")[2].replace("_", ".", 1)
                self.uses.append(AllowedUse(fault, row[FILE_INDEX], row[LINE_INDEX], row[_NODE], row[_SEQ]))
        self.state.uses.clear()

    def _cells(self) -> PartialCells:
        replay = self.program.replay
        state = replay.layout.to_state(self.store)
        return PartialCells.of(state, replay.spec.schema, replay.spec.instance, replay.layout.actors)

    def _explained(self, row: Row, reject: Reject) -> Violation:
        cells = self._cells()
        found = explain(self.run_id, self.program.replay.spec, cells, self.state, row, reject)
        story = tell(self.recent, len(self.recent), self.program.system, self.program.kind.observed).steps
        why = (*found.why_not[:1], *self._known(cells, reject), *found.why_not[1:])
        return replace(found, story=story, why_not=why, place=found.place or self._place(row[_EVENT]))

    def _place(self, event: str) -> str:
        """The first action that the event may stand for."""
        rule = self.program.kind.rules[event]
        return place_in(self.program.replay.spec, *(line.action for line in rule.lines if isinstance(line, Step)))

    def _known(self, cells: PartialCells, reject: Reject) -> Iterator[str]:
        """Which known deviations would take the step that is refused."""
        if reject.refused is None:
            return
        action, _, args = reject.refused
        profile, spec = self.program.system.profile, self.program.replay.spec
        there = {one.name for one in spec.actions}
        for fault in profile.known:
            for of, act in profile.deviations((fault,)).added:
                if of != action or act.name in there:
                    continue
                ir = spec.with_actions({}, [act]).ir(act.name)
                if Evaluator(spec.instance, cells).first_false(ir, args)[0] is None:
                    yield f"the known deviation {fault} does it: {act.doc} (--allow {fault})"

    def verdict(self) -> RunVerdict:
        """The verdict on the rows so far."""
        coverage = {a.name: self.state.coverage[a.name] for a in self.program.replay.spec.actions if "__" not in a.name}
        violations = (self.violation,) if self.violation else ()
        missing = (self.missing,) if self.missing else () if self.state.events else ("no event was judged",)
        verdict: Verdict = "violates" if violations else "inconclusive" if missing else "conforms"
        uses: Any = tuple(self.uses)
        return RunVerdict(
            self.run_id, verdict, self.state.events, coverage, violations, missing, uses, self.judged,
            recorded=self.state.events,
        )  # fmt: skip
