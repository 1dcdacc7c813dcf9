"""Replay a run whose evidence has holes, or decide about an event that the plain replay refused: Kleene replay.

The same rules, over cells that are known or not (`spec.engines.replay.partial`). An event is refused only if something
came out false whatever is unknown: then no completion of the evidence conforms. What was open is taken, and named.
"""

from __future__ import annotations

import copy
from typing import Any

from viewproof.refinement.checker.naming import Naming
from viewproof.refinement.checker.state import Reject
from viewproof.refinement.checker.stepping import Stepping
from viewproof.refinement.mapping import (
    MESSAGE_FIELDS,
    NEEDED_BY_EVENT,
    Agrees,
    Check,
    Configured,
    Holds,
    InJournal,
    Journaled,
    Line,
    Log,
    Named,
    Received,
    Rule,
    Step,
)
from viewproof.refinement.schema import COLUMNS, INDEX, Row
from viewproof.spec.engines.guards import Span
from viewproof.spec.engines.replay.partial import Steps

_NODE, _SEQ, _EVENT = INDEX["node"], INDEX["seq"], INDEX["event"]
_GUESSED = ("m_commit", "checkpoint", "m_log_view")
"""Columns that an event's own observations and the state do not give for certain."""


class PartialRun(Stepping, Naming):
    """The Kleene replay of one run; `event` takes its events in order."""

    def event(self, row: Row) -> None:
        """Judge one event. Raises `Reject` where it is refused for certain."""
        self.row = row
        node, event, seq = row[_NODE], row[_EVENT], row[_SEQ]
        if node >= self.state.replicas:
            raise Reject("event.node", f"node {node} is not one of {self.state.replicas} replicas")
        if seq == 1 and event != "start":
            raise Reject("event.event", "the first event of a node is start", "start", event)
        rule = self.rules.get(event)
        if rule is None:
            column = NEEDED_BY_EVENT[event]
            cause = f"{column} of the first event; without it there is no {event}: event"
            self._open(cause, "")
            self._forget(node, cause)
        else:
            self.judged[event] += 1
            self._by_rule(rule, row)
        self.state.events += 1
        self.state.last_seq[node] = seq
        self._after(node, seq)

    def _by_rule(self, rule: Rule, row: Row) -> None:
        others = self.deviations.get(rule.event, ())
        if not others:
            self._lines(rule, row)
            return
        before = copy.deepcopy((self.cells, self.state, self.obligations, self.unshown, self.journal_open))
        try:
            self._lines(rule, row)
        except Reject as reject:
            for swap in others:
                self._restore(copy.deepcopy(before))
                self.swap = swap
                try:
                    self._lines(rule, row)
                    return
                except Reject:
                    continue
                finally:
                    self.swap = ("", "")
            self._restore(before)
            raise reject

    def _restore(self, before: tuple[Any, ...]) -> None:
        self.cells, self.state, self.obligations, self.unshown, self.journal_open = before
        self.steps = Steps(self.cells, self._evaluator)

    def _lines(self, rule: Rule, row: Row) -> None:
        columns = self.columns = dict(zip(COLUMNS, row, strict=False))
        self.steps.cause = self.missing_here = ""
        if rule.receives:
            self._match_sent(rule.receives)
        for name, text in rule.infer.items():
            if columns[name] is None:
                columns[name] = self._inferred(name, text)
        for line in rule.lines:
            self._line(rule, line)
        self._observe()
        if rule.sends:
            fields = MESSAGE_FIELDS[rule.sends]
            self.state.sent[row[_NODE]][row[_SEQ]] = (rule.sends, *(row[INDEX[name]] for name in fields))

    def _inferred(self, name: str, text: str) -> Any:
        """What the event's own observations and the state say of a column that it does not show."""
        if name in _GUESSED:
            return None
        value = self._value(self.terms.of(text))
        return None if isinstance(value, Span) else value

    def _match_sent(self, kinds: str) -> None:
        """Compare with the event that sent the message, and fill columns that this event does not show."""
        columns, names = self.columns, tuple(kinds.split("|"))
        sender, seq = columns["m_from"], columns["m_seq"]
        if sender is None or seq is None:
            return
        sent = self.state.sent[sender].get(seq) if sender < self.state.replicas else None
        if sent is None and sender < self.state.replicas and not self.evidence.is_shown(sender, seq):
            cause = self._hole_of(sender, seq)
            self._open(cause, f"it received a message of event {seq} of node {sender}")
            return
        if sent is None or sent[0] not in names:
            raise self.state.never_sent(kinds, sender, seq)
        for position, name in enumerate(MESSAGE_FIELDS[names[0]], 1):
            if columns[name] is None:
                columns[name] = sent[position]
            elif sent[position] is None:
                self.unshown.pop((sender, seq, name), None)
            elif columns[name] != sent[position]:
                raise self.state.altered(name, sent[position], columns[name], sender, seq)

    def _hole_of(self, node: int, seq: int) -> str:
        """Why an event of a node is not there."""
        last = self.evidence.ends.get(node, 0)
        if node not in self.evidence.ends:
            return f"node {node} has no event in the input"
        if seq > last:
            return f"the trace of node {node} ends at event {last}"
        before = max((s for n, s in self.evidence.holes_after if n == node and s < seq), default=0)
        return self.evidence.holes_after.get((node, before), f"event {seq} of node {node} is not in the input")

    def _line(self, rule: Rule, line: Line) -> None:
        match line:
            case Check():
                self._check(rule, line)
            case Holds():
                self._holds(line)
            case Configured():
                self._configured(line)
            case Received():
                self._received(rule, line)
            case Step():
                self._step(rule, line)
            case Named():
                self._named(rule, line)
            case Log():
                self._log(rule, line)
            case Agrees():
                self._agrees(line)
            case Journaled():
                self._journaled(line)
            case InJournal():
                self._in_journal(line)


__all__ = ["PartialRun"]
