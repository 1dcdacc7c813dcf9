"""What led to a violation: the rule in words, the last events of each replica, what changed there, and the run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from viewproof.refinement.events.lines import Observation
from viewproof.refinement.events.system import System
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.refinement.verdict import Lifeline, Mark, Step, Timeline
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.expr import Read

STEPS_SHOWN = 6
"""Events told of each replica."""
STEPS_KEPT = 300
"""Events of each replica among which the senders of their messages are looked for."""
MARKS_MAX = 300
"""Marks of a run's timeline."""

_NODE, _SEQ, _CLOCK, _EVENT = (INDEX[name] for name in ("node", "seq", "clock", "event"))


def rule_in_words(system: System, spec: Spec, rule: str, event: str) -> str:
    """What the rule that was broken says."""
    if rule in system.rules:
        return system.rules[rule]
    kind, _, name = rule.partition(".")
    if kind == "observed" and name in system.by_name:
        doc = system.by_name[name].doc
        return f"what a replica shows after an event is its state by the specification: {name}, {doc}"
    if kind == "message":
        return "a message arrives after it was sent, and as it was sent"
    action = rule.partition("/")[0]
    docs = {one.id: one.doc for one in spec.invariants} | {one.name: one.doc for one in spec.actions}
    if action in docs:
        return docs[action].partition("\n\n")[0].replace("\n", " ")
    return system.docs.get(event, "")


def columns_of_event(row: Row, system: System, observed: tuple[Observation, ...]) -> str:
    """What the event shows of its message or parameters: neither its node's state nor lists."""
    state = {one.column for one in observed}
    names = [column.name for column in system.columns if column.kind != "strings" and column.name not in state]
    shown = [f"{name} = {row[system.index[name]]}" for name in names if row[system.index[name]] is not None]
    return ", ".join(shown) or f"{row[_EVENT]} of node {row[_NODE]}"


@dataclass(frozen=True, slots=True)
class Told:
    """The last steps of each replica, what of the last one's node fell back or jumped on its line, and the run."""

    steps: tuple[Step, ...]
    changes: tuple[str, ...]
    timeline: Timeline


def tell(
    rows: Iterable[Row],
    events: int,
    system: System,
    observed: tuple[Observation, ...],
    unknown: Iterable[tuple[Row, str]] = (),
) -> Told:
    """What led to the event after so many, which was refused (if there is one), and the run as a whole; `unknown` are
    events with what they need and nothing shows.
    """
    last: dict[int, deque[Row]] = {}
    own: deque[Row] = deque()
    seen = Seen(system)
    for number, row in enumerate(rows):
        if number <= events:
            own = last.setdefault(row[_NODE], deque(maxlen=STEPS_KEPT))
            own.append(row)
        seen.take(row)
    steps = tuple(step_of(row, system, observed) for row in _chosen(last, system))
    changes = tuple(_changes(own[-2], own[-1], system, observed)) if len(own) > 1 else ()
    return Told(steps, changes, seen.timeline(unknown))


def _chosen(last: Mapping[int, Sequence[Row]], system: System) -> Iterator[Row]:
    """Of each node its last events, the last one that used a message, and those that sent what any of these used."""
    chosen = {(row[_NODE], row[_SEQ]) for rows in last.values() for row in list(rows)[-STEPS_SHOWN:]}
    for rows in last.values():
        used = next((row for row in reversed(rows) if sender_of(row, system)), None)
        if used is not None:
            chosen.add((used[_NODE], used[_SEQ]))
    all_rows = [row for node in sorted(last) for row in last[node]]
    chosen |= {sender_of(row, system) or (-1, 0) for row in all_rows if (row[_NODE], row[_SEQ]) in chosen}
    return (row for row in all_rows if (row[_NODE], row[_SEQ]) in chosen)


def sender_of(row: Row, system: System) -> tuple[int, int] | None:
    """The event (node, seq) that sent the message of this one, where the log shows it."""
    index = system.index
    if "m_from" not in index or "m_seq" not in index:
        return None
    sender, seq = row[index["m_from"]], row[index["m_seq"]]
    return None if sender is None or seq is None else (sender, seq)


class Seen:
    """Gathers a run's timeline from its rows, in order."""

    def __init__(self, system: System) -> None:
        self.boots = frozenset(system.profile.boots)
        self.view = system.index.get(system.profile.view)
        self.lines: dict[int, Lifeline] = {}
        self.seqs: dict[int, int] = {}
        self.views: dict[int, int | None] = {}
        self.marks: list[Mark] = []
        self.more = 0

    def take(self, row: Row) -> None:
        """The next event."""
        node, seq, clock = row[_NODE], row[_SEQ], row[_CLOCK]
        line = self.lines.get(node)
        if line is None:
            self.lines[node] = Lifeline(node, 1, clock, clock)
        else:
            self.lines[node] = Lifeline(node, line.events + 1, line.first, clock)
        before = self.seqs.get(node, 0)
        self.seqs[node] = seq
        if seq > before + 1:
            self._mark("gap", row, f"{seq - before - 1} events are missing before event {seq}")
        if line is not None and row[_EVENT] in self.boots:
            self._mark("boot", row, row[_EVENT])
        view = None if self.view is None else row[self.view]
        if view is not None and view != self.views.get(node):
            self.views[node] = view
            self._mark("view", row, str(view))

    def _mark(self, kind: Literal["boot", "view", "gap", "unknown"], row: Row, text: str) -> None:
        if len(self.marks) < MARKS_MAX:
            self.marks.append(Mark(kind, row[_NODE], row[_CLOCK], text, row[FILE_INDEX], row[LINE_INDEX]))
        else:
            self.more += 1

    def timeline(self, unknown: Iterable[tuple[Row, str]]) -> Timeline:
        """The run so far, with what is not known of it."""
        for row, text in unknown:
            self._mark("unknown", row, text)
        marks = sorted(self.marks, key=lambda mark: (mark.clock, mark.node))
        return Timeline(tuple(self.lines[node] for node in sorted(self.lines)), tuple(marks), self.more)


def step_of(row: Row, system: System, observed: tuple[Observation, ...]) -> Step:
    """An event as a step of a story."""
    text = f"clock {row[_CLOCK]}, {row[_EVENT]} ({columns_of_event(row, system, observed)})"
    state = {one.column for one in observed}
    shown = {
        column.name: row[place] if type(row[place]) in (int, str) else str(row[place])
        for place, column in enumerate(system.table)
        if place > _EVENT and column.kind != "strings" and row[place] is not None
    }
    return Step(
        row[_NODE],
        row[FILE_INDEX],
        row[LINE_INDEX],
        text,
        row[_EVENT],
        row[_SEQ],
        row[_CLOCK],
        {name: value for name, value in shown.items() if name not in state},
        {name: value for name, value in shown.items() if name in state},
        sender_of(row, system),
        row[_EVENT] in system.profile.boots,
    )


def _changes(before: Row, after: Row, system: System, observed: tuple[Observation, ...]) -> Iterator[str]:
    for one in observed:
        column = system.by_name[one.column]
        counts = column.kind == "int" and isinstance(one.value, Read)
        old, new = before[system.index[one.column]], after[system.index[one.column]]
        if counts and old is not None and new is not None and (new < old or new > old + 1):
            yield f"{one.column} {'fell back' if new < old else 'jumped'} from {old} to {new}"
