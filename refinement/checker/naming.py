"""Lines of a rule about checksums and journals, and what an event shows of its node, over cells not all known."""

from __future__ import annotations

from typing import Any

from viewproof.refinement.checker.holding import Holding, may_equal, named_entry, span_text
from viewproof.refinement.checker.state import Reject
from viewproof.refinement.events.lines import Agrees, InJournal, Journaled, Log, Named, Observation, Rule
from viewproof.refinement.events.terms import Column
from viewproof.refinement.schema import INDEX
from viewproof.spec.engines.guards import Span, Value
from viewproof.spec.lang.expr import Expr

_EVENT = INDEX["event"]


class Naming(Holding):
    """Takes the lines `Named`, `Log`, `Agrees`, `Journaled` and `InJournal`, and the observations."""

    def _named(self, rule: Rule, line: Named) -> None:
        checksum = self.columns[line.checksum]
        if checksum is None:
            self._unshown(rule, line.checksum)
            return
        self._name(line.checksum, checksum, line.entry, line.op, {})

    def _name(self, column: str, checksum: str, entry: Expr, op: Expr, env: dict[str, Value]) -> None:
        """A checksum names the entry at an op: what is known of the two must agree, and is learnt otherwise."""
        at, which = self._value(op, env), self._value(entry, env)
        known = self.state.names.get(checksum)
        if known is not None and (not may_equal(at, known[1]) or not may_equal(which, known[0])):
            if isinstance(at, Span) or isinstance(which, Span):
                message = "the checksum names another entry, before"
                raise Reject("I10", message, named_entry(known), checksum)
            self.state.name(column, checksum, which, at)
        if known is not None:
            self._learn(op, known[1], env)
            self._learn(entry, known[0], env)
            return
        if isinstance(at, Span) or isinstance(which, Span):
            self._open_value(entry if isinstance(which, Span) else op, f"which entry {column} names", env)
            return
        self.state.name(column, checksum, which, at)

    def _log(self, rule: Rule, line: Log) -> None:
        checksums = self.columns[line.column]
        if checksums is None:
            self._unshown(rule, line.column)
            return
        top = self._value(line.top)
        if isinstance(top, Span):
            self._open_value(line.top, f"which ops {line.column} lists", {})
            return
        if len(checksums) > top:
            raise self.state.broken(line.column, "the log has more entries than ops")
        for o, checksum in enumerate(checksums, top - len(checksums) + 1):
            self._name(line.column, checksum, line.entry, line.name, {line.name.name: o})

    def _agrees(self, line: Agrees) -> None:
        node, value = self.columns["node"], self.columns[line.column]
        if value is None:
            self.state.unseen[node].setdefault(line.column, self.columns["seq"])
            return
        self.state.unseen[node].pop(line.column, None)
        op = self._value(line.op)
        if isinstance(op, Span):
            self._open_value(line.op, f"the op of {line.column}", {})
            return
        agreed = self.state.agreed.setdefault((line.column, op), value)
        if agreed != value:
            raise self.state.disagrees(line.rule, line.column, agreed, value)
        if line.distinct:
            self.state.own_of(line.rule, line.column, op, value)

    def _journal_body(self, line: Journaled) -> None:
        node = self.columns["node"]
        assert line.op is not None
        checksum, op = self.columns[line.checksum], self._value(line.op)
        if checksum is None or isinstance(op, Span):
            absent = line.checksum if checksum is None else line.op.name if isinstance(line.op, Column) else "the op"
            self._open(f"{absent} of {self.row[_EVENT]}", "")
            self.journal_open.setdefault(node, f"{line.checksum} of {self.row[_EVENT]}")
        elif checksum not in self.state.names and self.cells.open_inbox:
            self._open(next(iter(self.cells.open_inbox.values())), f"which prepare has the checksum {checksum}")
            self.state.journaled[node].add((None, op))
        else:
            self.state.journal_body(node, checksum, op)

    def _before_journaled(self, line: Journaled, unknown: Expr | None) -> None:
        node = self.columns["node"]
        if line.afresh:
            self.state.journaled[node].clear()
            self.journal_open.pop(node, None)
        if unknown is not None:
            self.journal_open.setdefault(node, self._any_cause())

    def _journaled(self, line: Journaled, o: int, env: dict[str, Value]) -> None:
        assert line.entry is not None
        entry = self._value(line.entry, env)
        self.state.journaled[self.columns["node"]].add((None if isinstance(entry, Span) else entry, o))

    def _in_journal(self, line: InJournal, o: int, env: dict[str, Value]) -> None:
        node = self.columns["node"]
        journaled = self.state.journaled[node]
        entry = self._value(line.entry, env)
        if (None, o) in journaled or (not isinstance(entry, Span) and (entry, o) in journaled):
            return
        if isinstance(entry, Span):
            self._open_value(line.entry, f"which entry is installed at op {o}", env)
        elif node in self.journal_open:
            self._open(self.journal_open[node], f"is the body at op {o} in the journal?")
        else:
            raise self.state.not_in_journal(entry, o)

    def _observe(self) -> None:
        """Compare what the event shows of its node with the state; what is not known is known from here on."""
        node, seq, columns = self.columns["node"], self.columns["seq"], self.columns
        unseen = self.state.unseen[node]
        for one in self.observed:
            shown = columns[one.column]
            if shown is None:
                unseen.setdefault(one.column, seq)
                continue
            unseen.pop(one.column, None)
            if one.named:
                self._observe_name(one, shown)
            elif one.agreed:
                self._observe_agreed(one, shown)
            else:
                self._observe_value(one, shown)

    def _observe_value(self, one: Observation, shown: Any) -> None:
        assert one.value is not None
        value = one.labels.index(shown) if one.labels else shown
        expected = self._value(one.value)
        if not may_equal(expected, value):
            if isinstance(expected, Span):
                text: Any = span_text(expected)
            else:
                text = one.labels[expected] if one.labels else expected
            raise self.state.not_observed(one, text, shown, self.row)
        if isinstance(expected, Span):
            self._learn(one.value, value, {})

    def _observe_name(self, one: Observation, shown: str) -> None:
        assert one.value is not None
        assert one.at is not None
        op = self._value(one.at)
        if isinstance(op, Span):
            return
        if not op or not shown:
            if bool(op) == bool(shown):
                return
            raise self.state.not_observed(one, self._label_of(one.value, op), shown, self.row)
        entry = self._value(one.value)
        if not isinstance(entry, Span):
            known = self.state.labels.get((entry, op))
            if known is not None and known != shown:
                raise self.state.not_observed(one, known, shown, self.row)
        elif shown not in self.state.names:
            return
        self._name(one.column, shown, one.value, one.at, {})

    def _label_of(self, entry: Expr, op: int) -> str:
        value = self._value(entry) if op else 0
        return "" if isinstance(value, Span) else self.state.labels.get((value, op), "")

    def _observe_agreed(self, one: Observation, shown: str) -> None:
        assert one.at is not None
        at = self._value(one.at)
        if isinstance(at, Span):
            return
        known = self.state.shared[one.column].get(at)
        if known is None:
            self.state.share(one, at, shown)
        elif known != shown:
            differs = self.state.says_more(one, at, self.row, known, shown)
            raise self.state.not_observed(*differs, self.row)
