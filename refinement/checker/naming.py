"""Lines of a rule about checksums and journals, and what an event shows of its node, over cells not all known."""

from __future__ import annotations

from typing import Any

from viewproof.refinement.checker.holding import Holding, may_equal, named_entry, span_text
from viewproof.refinement.checker.state import Reject
from viewproof.refinement.mapping import Agrees, InJournal, Journaled, Log, Named, Rule
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
        self._name(line.checksum, checksum, self.terms.of(line.entry), self.terms.of(line.op), {})

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
        top = self._eval(line.top)
        if isinstance(top, Span):
            self._open_value(self.terms.of(line.top), f"which ops {line.column} lists", {})
            return
        if len(checksums) > top:
            raise self.state.broken(line.column, "the log has more entries than ops")
        entry, op = self.terms.of(line.entry), self.terms.of("o")
        for o, checksum in enumerate(checksums, top - len(checksums) + 1):
            self._name(line.column, checksum, entry, op, {"o": o})

    def _agrees(self, line: Agrees) -> None:
        if self._truth(line.only_if) is False:
            return
        node, value = self.columns["node"], self.columns[line.column]
        if value is None:
            self.state.unseen[node].setdefault(line.column, self.columns["seq"])
            return
        self.state.unseen[node].pop(line.column, None)
        op = self._eval(line.op)
        if isinstance(op, Span):
            self._open_value(self.terms.of(line.op), f"the op of {line.column}", {})
            return
        agreed = self.state.agreed.setdefault((line.column, op), value)
        if agreed != value:
            raise self.state.disagrees(line.rule, line.column, agreed, value)

    def _journaled(self, line: Journaled) -> None:
        node = self.columns["node"]
        if line.checksum:
            checksum, op = self.columns[line.checksum], self._eval(line.op)
            if checksum is None or isinstance(op, Span):
                self._open(f"{line.checksum if checksum is None else line.op} of {self.row[_EVENT]}", "")
                self.journal_open.setdefault(node, f"{line.checksum} of {self.row[_EVENT]}")
            elif checksum not in self.state.names and self.cells.open_inbox:
                self._open(next(iter(self.cells.open_inbox.values())), f"which prepare has the checksum {checksum}")
                self.state.journaled[node].add((None, op))
            else:
                self.state.journal_body(node, checksum, op)
            return
        if line.afresh:
            self.state.journaled[node].clear()
            self.journal_open.pop(node, None)
        _, members, unknown = self._ranges(line.each, {})
        if unknown:
            self.journal_open.setdefault(node, self._any_cause())
        for o in members:
            entry = self._eval(line.entry, {"o": o})
            self.state.journaled[node].add((None if isinstance(entry, Span) else entry, o))

    def _in_journal(self, line: InJournal) -> None:
        node = self.columns["node"]
        journaled = self.state.journaled[node]
        _, members, unknown = self._ranges(line.each, {})
        if unknown:
            self._open_value(self.terms.of(unknown), "which entries are installed", {})
        for o in members:
            entry = self._eval(line.entry, {"o": o})
            if (None, o) in journaled or (not isinstance(entry, Span) and (entry, o) in journaled):
                continue
            if isinstance(entry, Span):
                self._open_value(self.terms.of(line.entry), f"which entry is installed at op {o}", {"o": o})
            elif node in self.journal_open:
                self._open(self.journal_open[node], f"is the body at op {o} in the journal?")
            else:
                raise self.state.not_in_journal(entry, o)

    def _observe(self) -> None:
        """Compare what the event shows of its node with the state; what is not known is known from here on."""
        node, seq, columns = self.columns["node"], self.columns["seq"], self.columns
        unseen = self.state.unseen[node]
        for column, text in self.observed:
            shown = columns[column]
            if shown is None:
                unseen.setdefault(column, seq)
                continue
            unseen.pop(column, None)
            if column in ("head", "digest", "table"):
                getattr(self, f"_observe_{column}")(shown)
                continue
            expr = self.terms.of(text)
            value = self.labels.index(shown) if column == "status" else shown
            expected = self._value(expr)
            if not may_equal(expected, value):
                self._differs(column, expected, shown)
            elif isinstance(expected, Span):
                self._learn(expr, value, {})

    def _differs(self, column: str, expected: Value, shown: Any) -> None:
        if isinstance(expected, Span):
            text: Any = span_text(expected)
        else:
            text = self.labels[expected] if column == "status" else expected
        raise self.state.not_observed(column, text, shown, self.row)

    def _observe_head(self, shown: str) -> None:
        op = self._eval("spec.op[node]")
        if isinstance(op, Span):
            return
        if not op or not shown:
            if bool(op) == bool(shown):
                return
            raise self.state.not_observed("head", self._label_of(op), shown, self.row)
        entry = self._eval("spec.entry[node, spec.op[node]]")
        if not isinstance(entry, Span):
            known = self.state.labels.get((entry, op))
            if known is not None and known != shown:
                raise self.state.not_observed("head", known, shown, self.row)
        elif shown not in self.state.names:
            return
        self._name("head", shown, self.terms.of("spec.entry[node, spec.op[node]]"), self.terms.of("spec.op[node]"), {})

    def _label_of(self, op: int) -> str:
        entry = self._eval("spec.entry[node, spec.op[node]]") if op else 0
        return "" if isinstance(entry, Span) else self.state.labels.get((entry, op), "")

    def _observe_digest(self, shown: str) -> None:
        at = self._eval("spec.commit_min[node]")
        if isinstance(at, Span):
            return
        known = self.state.digests.get(at)
        if known is None:
            self.state._bind_digest(at, shown)
        elif known != shown:
            table = self.state.tables.get(at)
            if self.columns["table"] is not None and table not in (None, self.columns["table"]):
                raise self.state.not_observed("table", table, self.columns["table"], self.row)
            raise self.state.not_observed("digest", known, shown, self.row)

    def _observe_table(self, shown: str) -> None:
        at = self._eval("spec.commit_min[node]")
        if isinstance(at, Span):
            return
        known = self.state.tables.setdefault(at, shown)
        if known != shown:
            raise self.state.not_observed("table", known, shown, self.row)
