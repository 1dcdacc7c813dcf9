"""What led to a violation: the rule in words, the last events of each replica, and what changed on the line."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from viewproof.refinement.events.lines import Observation
from viewproof.refinement.events.system import System
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.refinement.verdict import Step
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.expr import Read

STEPS_SHOWN = 6
"""Events told of each replica."""

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
    for candidate in spec.actions:
        if candidate.name == action:
            return candidate.doc.partition("\n\n")[0].replace("\n", " ")
    return system.docs.get(event, "")


def columns_of_event(row: Row, system: System, observed: tuple[Observation, ...]) -> str:
    """What the event shows of its message or parameters: neither its node's state nor lists."""
    state = {one.column for one in observed}
    names = [column.name for column in system.columns if column.kind != "strings" and column.name not in state]
    shown = [f"{name} = {row[system.index[name]]}" for name in names if row[system.index[name]] is not None]
    return ", ".join(shown) or f"{row[_EVENT]} of node {row[_NODE]}"


def told(
    rows: Iterable[Row], events: int, system: System, observed: tuple[Observation, ...]
) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """The last steps of each replica up to the event after so many, which was refused; and what of its node fell back
    or jumped on that line.
    """
    last: dict[int, deque[Row]] = {}
    own: deque[Row] = deque()
    for row in islice(rows, events + 1):
        own = last.setdefault(row[_NODE], deque(maxlen=STEPS_SHOWN))
        own.append(row)
    steps = tuple(_step(row, system, observed) for node in sorted(last) for row in last[node])
    return steps, tuple(_changes(own[-2], own[-1], system, observed)) if len(own) > 1 else ()


def _step(row: Row, system: System, observed: tuple[Observation, ...]) -> Step:
    text = f"clock {row[_CLOCK]}, {row[_EVENT]} ({columns_of_event(row, system, observed)})"
    return Step(row[_NODE], row[FILE_INDEX], row[LINE_INDEX], text)


def _changes(before: Row, after: Row, system: System, observed: tuple[Observation, ...]) -> Iterator[str]:
    for one in observed:
        column = system.by_name[one.column]
        counts = column.kind == "int" and isinstance(one.value, Read)
        old, new = before[system.index[one.column]], after[system.index[one.column]]
        if counts and old is not None and new is not None and (new < old or new > old + 1):
            yield f"{one.column} {'fell back' if new < old else 'jumped'} from {old} to {new}"
