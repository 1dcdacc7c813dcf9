"""What the audit of one run remembers beside the spec state: names of entries, messages sent, what was not observed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from viewproof.refinement.events.lines import Observation
from viewproof.refinement.events.system import System
from viewproof.refinement.schema import Row
from viewproof.refinement.value_text import show_value
from viewproof.spec.lang import Schema
from viewproof.spec.lang.errors import Source
from viewproof.spec.lang.expr import Read

Entry = tuple[int, int]
"""(entry, op): 1 + the view that prepared it, and its op."""

Frame = tuple[tuple[str, ...], tuple[Any, ...]]
"""Events of which one must come next from a node, and what is handed on to it. In place of one, None: below, it is not
known what the node owes."""

NO_ENTRY = '"" (no entry)'


class Reject(Exception):  # noqa: N818 - a verdict on the trace, not an error of the program
    """An event that the specification does not explain.

    `rule` identifies what was broken (`on_prepare/3` a guard, `observed.op`, `message.m_op`, `name`), `expected` and
    `observed` are values. `own` is the step that the event stands for, where it was not tried.
    """

    def __init__(
        self,
        rule: str,
        message: str,
        expected: object = "",
        observed: object = "",
        refused: tuple[str, int, Mapping[str, int]] | None = None,
        own: tuple[str, Mapping[str, int]] | None = None,
    ) -> None:
        self.rule = rule
        self.message = message
        self.expected = expected
        self.observed = observed
        self.refused = refused
        self.own = own
        self.place: Source | None = None
        """The line of the event function that refused."""
        self.lets: dict[str, Any] = {}
        """Values that lines above had given names to."""
        super().__init__(message)


class Missing(Exception):  # noqa: N818 - evidence is missing; the run is inconclusive
    """A column that the trace does not show and that decides what happened."""

    def __init__(self, column: str) -> None:
        self.column = column
        super().__init__(column)


class RunState:
    """Bookkeeping of one run."""

    def __init__(
        self, replicas: int, schema: Schema, first: Row, system: System, observed: tuple[Observation, ...]
    ) -> None:
        self.replicas = replicas
        self.schema = schema
        self.system = system
        self.observed = observed
        self.labels: dict[Entry, str] = {(0, 0): ""}
        self.names: dict[str, Entry] = {"": (0, 0)}
        self.sent: list[dict[int, tuple[Any, ...]]] = [{} for _ in range(replicas)]
        self.shared: dict[str, dict[int, str]] = {one.column: {} for one in observed if one.agreed}
        self.owner: dict[str, dict[str, int]] = {one.column: {} for one in observed if one.distinct}
        self.unseen: list[dict[str, int]] = [{} for _ in range(replicas)]
        self.coverage: Counter[str] = Counter()
        """Steps by action; by action/number those of them that were taken although a guard was open."""
        self.uses: defaultdict[int, list[str]] = defaultdict(list)
        self.events = 0
        self.agreed: dict[tuple[str, int], str] = {}
        self.places: dict[tuple[str, str], int] = {}
        self.journaled: list[set[Entry]] = [set() for _ in range(replicas)]
        self.last_seq = [0] * replicas
        self.forbidden: frozenset[str] = frozenset()
        self.permitted: frozenset[str] = frozenset()
        self.due: list[list[Frame | None]] = [[] for _ in range(replicas)]
        self.configured = {column: first[system.index[column]] for column in system.profile.configuration}

    def check_first(self, seq: int, event: str) -> None:
        """The first event of a node is a boot, if this kind of log has them."""
        boots = self.system.profile.boots
        if seq == 1 and boots and event not in boots:
            raise Reject("event.event", f"the first event of a node is {boots[0]}", boots[0], event)

    def check_members(self, row: Row) -> None:
        """Replicas that the event names are some of the run's."""
        for place, name in self.system.members:
            value = row[place]
            if value is not None and value >= self.replicas:
                raise Reject(f"event.{name}", f"{name} {value} is not one of {self.replicas} replicas")

    def never_sent(self, kind: str, sender: int, seq: int) -> Reject:
        """No event of that sender with that seq, before this one, sent such a message."""
        message = f"no {kind} was sent by event {seq} of node {sender}"
        return Reject("message.sent", message, f"a {kind} sent before", "none")

    def overdue(self, node: int) -> Reject:
        """A line that had to come next from the node did not."""
        frame = self.due[node][0]
        events = " or ".join(frame[0]) if frame else ""
        message = f"node {node} had to go on with {events} before this line"
        return Reject("line.missing", message, events, "another line")

    def not_owed(self, event: str) -> Reject:
        """A line came that no line before led to."""
        return Reject("line.unexpected", f"nothing before leads to {event}", "a line that leads to it", event)

    def unsent(self, var: str, key: object, observed: int | None, sent: int) -> Reject:
        """The spec says another value was sent, or none yet."""
        declared = self.schema.vars[var]
        message = f"{var}[{_index(key)}] was not sent" + ("" if observed is None else " with this value")
        got = "received" if observed is None else show_value(declared, observed)
        return Reject(f"message.{var}", message, show_value(declared, sent), got)

    def differs(self, column: str, expected: object, observed: object, rule: str = "") -> Reject:
        """A column of the event does not agree with the spec state or the message sent."""
        return Reject(
            rule or f"event.{column}", f"{column} is {observed}, the spec says {expected}", expected, observed
        )

    def altered(self, column: str, sent: object, observed: object, sender: int, seq: int) -> Reject:
        """A column of a received message is not what its sender's event shows."""
        message = f"{column} is {observed}, but event {seq} of node {sender} sent {sent}"
        return Reject(f"message.{column}", message, sent, observed)

    def disagrees(self, rule: str, column: str, known: object, observed: object) -> Reject:
        """A value that must be the same wherever it is observed is not."""
        return Reject(rule, f"{column} is {observed}, and was {known} for the same op before", known, observed)

    def own_of(self, rule: str, column: str, op: int, value: str) -> None:
        """A value that no two ops share."""
        other = self.places.setdefault((column, value), op)
        if other != op:
            raise Reject(rule, f"the {column} of op {op} is that of op {other}, too", f"a {column} of its own", value)

    def journal_body(self, node: int, checksum: str, op: int) -> None:
        """The body of the prepare with that checksum is durable in the node's journal."""
        key = self.names.get(checksum)
        if key is None or key[1] != op:
            message = f"no prepare of op {op} has this checksum"
            raise Reject("event.m_checksum", message, "a prepare sent", checksum)
        self.journaled[node].add(key)

    def not_in_journal(self, entry: int, op: int) -> Reject:
        """A log is installed, and acknowledged, that the journal does not hold."""
        body = _entry((entry, op))
        return Reject("I3", f"the log is installed although the body of {body} is not durable in the journal", body)

    def departs(self, id: str) -> bool:
        """The system departs from what is safe: it is noted, and refused if it is forbidden. Is it not permitted?"""
        if id in self.forbidden:
            raise Reject(id, self.system.departures[id])
        self.uses[self.events].append(id)
        return id not in self.permitted

    def broken(self, column: str, message: str, rule: str = "") -> Reject:
        """A condition of the mapping does not hold."""
        return Reject(rule or f"event.{column}", message)

    def configure(self, column: str, observed: int | None) -> None:
        """A replica boots: the configuration is that of the run's first event. What is missing is 0, or not shown."""
        known = self.configured[column]
        if observed == known or not (observed or known):
            return
        if observed is None:
            raise Missing(column)
        if known is None:
            raise Missing(f"{column} of the first event ({observed} here); {column}")
        message = f"{column} is {observed}, and {known} in the first event of the run: it may not change"
        raise Reject("configuration", message, known, observed)

    def refused(self, action: str, conjunct: int, args: Mapping[str, int]) -> Reject:
        """The spec action is not enabled."""
        return Reject(
            f"{action}/{conjunct}", f"the specification does not allow {action} here", refused=(action, conjunct, args)
        )

    def outside(self, action: str, parameter: str, value: int, sort: str) -> Reject:
        """An argument of the step is no member of the parameter's sort."""
        message = f"{parameter} of {action} is {value}, which is no {sort}"
        return Reject(f"{action}/{parameter}", message, f"a {sort}", value)

    def nothing(self, action: str, var: str, args: Mapping[str, int], first: int, last: int) -> Reject:
        """The event stands for at least one step, and there is none to take: the steps up to `first` - 1 are taken.

        `var` is the spec variable that says so, "" if it is more than one.
        """
        taken = f"{var} is already {first - 1}" if var else f"all that the spec allows up to op {first - 1} is done"
        message = f"the event names op {last}, but {taken}: no {action} is left to take"
        return Reject(f"{action}/each", message, f"an op from {first} on", f"op {last}", own=(action, args))

    def allowed(self, action: str) -> int:
        """Note the use of a permitted deviation; returns "taken"."""
        self.uses[self.events].append(action)
        return -1

    def name(self, column: str, checksum: str, entry: int, op: int) -> None:
        """A checksum is used for (entry, op): bind it if both are new, else they must agree (I7, I10)."""
        key = (entry, op)
        if op and not entry:
            raise Reject(f"event.{column}", f"there is no entry at op {op} here", "an entry", checksum)
        known = self.labels.get(key)
        if known is not None and known != checksum:
            rule, what = ("I10", "parent") if column == "m_parent" else ("I7", "prepare")
            message = f"the {what} at op {op}, prepared in view {entry - 1}, has another checksum"
            raise Reject(rule, message, known, checksum or NO_ENTRY)
        other = self.names.get(checksum)
        if other is not None and other != key:
            raise Reject(
                "I10", f"checksum names op {op} of view {entry - 1}, and another entry before", _entry(other), checksum
            )
        self.labels[key] = checksum
        self.names[checksum] = key

    def observe(self, row: Row, state: tuple[Any, ...], marks: tuple[Any, ...]) -> None:
        """Compare observations one by one; note those that the trace does not show.

        `state` is what they must be, `marks` the entry and op that one names, or the place at which it agrees.
        """
        node, seq = row[1], row[2]
        unseen, index = self.unseen[node], self.system.index
        for one, expected, mark in zip(self.observed, state, marks, strict=True):
            column = one.column
            observed = row[index[column]]
            if observed is None:
                unseen.setdefault(column, seq)
                continue
            unseen.pop(column, None)
            if observed == expected:
                continue
            if one.agreed and expected == "":
                self.share(one, mark, observed)
            elif one.named and expected == "" and mark[1]:
                self.name(column, observed, *mark)
            else:
                raise self.not_observed(*self.says_more(one, mark, row, expected, observed), row)

    def says_more(
        self, one: Observation, at: Any, row: Row, expected: object, observed: object
    ) -> tuple[Observation, object, object]:
        """The observation that differs: in place of a digest, the one that it covers, where that differs, too."""
        if one.covers in self.shared:
            value, known = row[self.system.index[one.covers]], self.shared[one.covers].get(at)
            if value is not None and known not in (None, value):
                return next(o for o in self.observed if o.column == one.covers), known, value
        return one, expected, observed

    def not_observed(self, one: Observation, expected: object, observed: object, row: Row) -> Reject:
        """What the event shows of its node is not what the spec has."""
        column = one.column
        rule = one.rule or f"observed.{column}"
        if one.monotone and row[self.system.index["event"]] in self.system.profile.boots and _below(observed, expected):
            rule = one.monotone
        return Reject(rule, f"after the event {column} is {observed}, the spec says {expected}", expected, observed)

    def not_expected(self, row: Row, columns: list[str]) -> None:
        """An optional column in a run whose first event shows none of them."""
        column = next(name for name in columns if row[self.system.index[name]] is not None)
        raise Missing(f"{column} of the first event (event {row[2]} of node {row[1]} shows it); {column}")

    def share(self, one: Observation, at: int, value: str) -> None:
        """The first value seen at that place; of a digest that covers all, no other place may share it."""
        if one.distinct:
            other = self.owner[one.column].setdefault(value, at)
            if other != at:
                place = one.at.var.name if isinstance(one.at, Read) else "place"
                message = f"the {one.column} is that of {place} {other}, too"
                raise Reject(one.rule, message, f"a {one.column} of its own", value)
        self.shared[one.column][at] = value

    @property
    def open_guards(self) -> dict[str, int]:
        """In how many steps a guard was open."""
        return {name: count for name, count in self.coverage.items() if "/" in name}

    def missing(self) -> list[str]:
        """Observations that were left out and never confirmed by a later event of the node."""
        return [
            f"{column} of node {node} is not observed from event {seq} on"
            for node, unseen in enumerate(self.unseen)
            for column, seq in unseen.items()
        ]


def _below(observed: object, expected: object) -> bool:
    return isinstance(observed, int) and isinstance(expected, int) and observed < expected


def _index(key: object) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _entry(key: Entry) -> str:
    return f"op {key[1]} of view {key[0] - 1}"
