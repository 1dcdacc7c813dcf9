"""Replay a run whose evidence has holes, or decide about an event that the plain replay refused: Kleene replay.

The same rules, over cells that are known or not (`spec.engines.replay.partial`). An event is refused only if something
came out false whatever is unknown: then no completion of the evidence conforms. What was open is taken, and named.
"""

from __future__ import annotations

import copy
from itertools import groupby
from typing import Any

from viewproof.refinement.checker.histories import Histories
from viewproof.refinement.checker.naming import Naming
from viewproof.refinement.checker.owed import values_owed
from viewproof.refinement.checker.state import Frame, Reject
from viewproof.refinement.events.lines import (
    Agrees,
    Check,
    Configured,
    Freed,
    Havoc,
    Holds,
    InJournal,
    Journaled,
    Let,
    Line,
    Log,
    Named,
    Owes,
    Range,
    Received,
    Rule,
    Step,
)
from viewproof.refinement.schema import INDEX, Row
from viewproof.spec.engines.guards import Span, Value
from viewproof.spec.engines.replay.partial import Steps
from viewproof.spec.lang.expr import Expr

_NODE, _SEQ, _EVENT = INDEX["node"], INDEX["seq"], INDEX["event"]


class PartialRun(Histories, Naming):
    """The Kleene replay of one run; `event` takes its events in order."""

    def event(self, row: Row) -> None:
        """Judge one event. Raises `Reject` where it is refused for certain."""
        self.row = row
        node, event, seq = row[_NODE], row[_EVENT], row[_SEQ]
        if node >= self.state.replicas:
            raise Reject("event.node", f"node {node} is not one of {self.state.replicas} replicas")
        self.state.check_first(seq, event)
        self.state.check_members(row)
        rule = self.rules.get(event)
        if rule is None:
            cause = self._no_such_event(event)
            self._open(cause, "")
            self._forget(node, cause)
        else:
            self.judged[event] += 1
            self._by_rule(rule, row)
        self.state.events += 1
        self.state.last_seq[node] = seq
        self._after(node, seq)

    def _no_such_event(self, event: str) -> str:
        """Why the event stands for nothing in the configuration of this run: a column lacks, or says so."""
        column = self.system.needed_by[event]
        shown = self.evidence.shown_of(column)
        if shown is None:
            return f"{column} of the first event; without it there is no {event}: event"
        return f"a meaning of {event}, in the configuration that the first event shows ({column} {shown}): event"

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
        columns = self.columns = dict(zip(self.system.names, row, strict=False))
        self.steps.cause = self.missing_here = ""
        self.truths.clear()
        self.lets = {} if rule.aside else values_owed(rule, self.state, row[_NODE])
        owing: list[Frame | None] = []
        if rule.receives:
            self._match_sent(rule.receives)
        for name, expr in rule.infer.items():
            if columns[name] is None:
                value = self._value(expr)
                columns[name] = None if isinstance(value, Span) else value
        for each, group in groupby(rule.lines, key=lambda line: line.each):
            lines = list(group)
            try:
                if each is None:
                    self._line(rule, owing, *lines)
                else:
                    self._range(rule, each, lines)
            except Reject as reject:
                reject.place = None if self.line is None else self.line.source
                reject.lets = dict(self.lets)
                raise
        if owing:
            self.state.due[row[_NODE]][0:0] = owing
        self._observe()
        if rule.sends:
            fields, index = self.system.messages[rule.sends], self.system.index
            self.state.sent[row[_NODE]][row[_SEQ]] = (rule.sends, *(row[index[name]] for name in fields))

    def _match_sent(self, kinds: str) -> None:
        """Compare with the event that sent the message, and fill columns that this event does not show."""
        columns, names = self.columns, tuple(kinds.split("|"))
        sender, seq = columns["m_from"], columns["m_seq"]
        if sender is None and seq is not None:
            self._open(f"m_from of {self.row[_EVENT]}", f"whose event {seq} sent its message")
        if sender is None or seq is None:
            return
        sent = self.state.sent[sender].get(seq) if sender < self.state.replicas else None
        if sent is None and sender < self.state.replicas and not self.evidence.is_shown(sender, seq):
            cause = self._hole_of(sender, seq)
            self._open(cause, f"it received a message of event {seq} of node {sender}")
            return
        if sender in self.evidence.anew and not self._fits(sent, names):
            cause = self.evidence.holes_after[sender, 0]
            self._open(cause, f"it received a message of an event {seq} of node {sender} that was before")
            return
        if sent is None or sent[0] not in names:
            raise self.state.never_sent(kinds, sender, seq)
        for position, name in enumerate(self.system.messages[names[0]], 1):
            if columns[name] is None:
                columns[name] = sent[position]
            elif sent[position] is None:
                self.unshown.pop((sender, seq, name), None)
            elif columns[name] != sent[position]:
                raise self.state.altered(name, sent[position], columns[name], sender, seq)

    def _fits(self, sent: tuple[Any, ...] | None, kinds: tuple[str, ...]) -> bool:
        """May this be the message that was received?"""
        if sent is None or sent[0] not in kinds:
            return False
        shown = zip(self.system.messages[kinds[0]], sent[1:], strict=True)
        return all(value is None or self.columns[name] in (None, value) for name, value in shown)

    def _hole_of(self, node: int, seq: int) -> str:
        """Why an event of a node is not there."""
        last = self.evidence.ends.get(node, 0)
        if node not in self.evidence.ends:
            return f"node {node} has no event in the input"
        if seq > last:
            return f"the trace of node {node} ends at event {last}"
        before = max((s for n, s in self.evidence.holes_after if n == node and s < seq), default=0)
        return self.evidence.holes_after.get((node, before), f"event {seq} of node {node} is not in the input")

    def _line(self, rule: Rule, owing: list[Frame | None], *lines: Line) -> None:
        """Lines that stand in no range."""
        for line in lines:
            self.line = line
            applies = self._applies(line.only_if)
            if applies is False:
                continue
            if applies is None and not isinstance(line, (Step, Received, Havoc, Let)):
                self._open(self.missing_here or self._any_cause(), "whether it must hold: it stands under a condition")
            match line:
                case Check():
                    self._check(rule, line, applies)
                case Holds() if applies:
                    self._holds(line, {})
                case Configured() if applies:
                    self._configured(line)
                case Received():
                    self._receive_if(rule, line, {}, applies)
                case Step():
                    if line.unless is None or self._truth(line.unless) is not True:
                        self._one_step(line, {}, maybe=applies is None)
                case Named() if applies:
                    self._named(rule, line)
                case Log() if applies:
                    self._log(rule, line)
                case Agrees():
                    self._agrees(line)
                case Journaled() if applies:
                    self._journal_body(line)
                case Havoc():
                    self._havoc(line, {})
                case Let():
                    self.lets[line.name.name] = self._value(line.value)
                case Owes():
                    values = tuple(self._value(value) for value in line.values)
                    owing.append((line.events, values) if applies else None)
                case Freed():
                    self._free(line, applies)
                case _:
                    self._nested(rule, line, {})

    def _free(self, line: Freed, applies: bool | None) -> None:
        node = self.columns["node"] if line.by is None else self._value(line.by)
        if not isinstance(node, Span):
            self.state.due[node] = [] if applies else [None]
            return
        for queue in self.state.due:
            queue[:] = [None]

    def _range(self, rule: Rule, each: Range, lines: list[Line]) -> None:
        """Lines that stand in a range: for each member in turn."""
        self.line = lines[0]
        applies = self._applies(lines[0].only_if)
        if applies is False:
            return
        members, unknown = self._members(each)
        for line in lines:
            self._before_range(rule, line, each, members, unknown, applies)
        for member in members:
            env: dict[str, Value] = {each.name.name: member}
            for line in lines:
                self.line = line
                truth = self._all(line.if_each, env)
                self._in_range(rule, line, member, env, applies if truth else truth)
        if unknown is not None and not members:
            env = {each.name.name: Span(1, None)}
            for line in lines:
                self.line = line
                if isinstance(line, Step):
                    self._one_step(line, env, maybe=True, args=self._args(line, env))
                elif isinstance(line, Havoc):
                    self._havoc(line, env)

    def _before_range(
        self, rule: Rule, line: Line, each: Range, members: range, unknown: Expr | None, applies: bool | None
    ) -> None:
        self.line = line
        match line:
            case Received() if unknown is not None or applies is None:
                self._receive_if(rule, line, {each.name.name: Span()}, None)
            case Holds() if unknown is not None:
                self._open_value(unknown, line.message, {})
            case Step() if unknown is not None:
                self._open_value(unknown, f"which {line.action} it stands for", {})
            case Step() if each.at_least and not members and applies:
                self._nothing(line, each)
            case Journaled():
                self._before_journaled(line, unknown)
            case InJournal() if unknown is not None:
                self._open_value(unknown, "which entries are installed", {})

    def _in_range(self, rule: Rule, line: Line, member: int, env: dict[str, Value], applies: bool | None) -> None:
        if applies is False:
            return
        match line:
            case Received():
                self._receive_if(rule, line, env, applies)
            case Step() if line.unless is None or self._truth(line.unless, env) is not True:
                self._one_step(line, env, maybe=applies is None)
            case Holds() if applies:
                self._holds(line, env)
            case Havoc():
                self._havoc(line, env)
            case Journaled():
                self._journaled(line, member, env)
            case InJournal() if applies:
                self._in_journal(line, member, env)
            case Check() | Named() | Log() | Agrees() | Configured():
                raise TypeError(f"{type(line).__name__} does not stand in a range")


__all__ = ["PartialRun"]
