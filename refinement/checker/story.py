"""What led to a violation: the rule in words, the last events of each replica, and what changed on the line."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from viewproof.refinement.invariants import INVARIANTS
from viewproof.refinement.mapping import OBSERVED, OBSERVED_MORE
from viewproof.refinement.schema import BY_NAME, EVENTS, FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.refinement.verdict import Step
from viewproof.spec.lang.definitions import Spec

STEPS_SHOWN = 6
"""Events told of each replica."""

_NODE, _SEQ, _CLOCK, _EVENT = (INDEX[name] for name in ("node", "seq", "clock", "event"))
_SHOWN = tuple(dict.fromkeys(column for column, *_ in (*OBSERVED, *OBSERVED_MORE) if BY_NAME[column].kind == "int"))

_RULES = {
    **INVARIANTS,
    "configuration": "a replica comes back with the configuration of the run's first boot",
}
"""Rules that the events show and no single action of the specification states."""


def rule_in_words(spec: Spec, rule: str, event: str) -> str:
    """What the rule that was broken says."""
    if rule in _RULES:
        return _RULES[rule]
    kind, _, name = rule.partition(".")
    if kind == "observed" and name in BY_NAME:
        return f"what a replica shows after an event is its state by the specification: {name}, {BY_NAME[name].doc}"
    if kind == "message":
        return "a message arrives after it was sent, and as it was sent"
    action = rule.partition("/")[0]
    for candidate in spec.actions:
        if candidate.name == action:
            return candidate.doc.partition("\n\n")[0].replace("\n", " ")
    return EVENTS[event].doc if event in EVENTS else ""


def columns_of_event(row: Row) -> str:
    """What the event shows of its message or parameters."""
    names = EVENTS[row[_EVENT]].columns if row[_EVENT] in EVENTS else ()
    shown = [f"{name} = {row[INDEX[name]]}" for name in names if row[INDEX[name]] is not None and name != "m_log"]
    return ", ".join(shown) or f"{row[_EVENT]} of node {row[_NODE]}"


def told(rows: Iterable[Row], events: int) -> tuple[tuple[Step, ...], tuple[str, ...]]:
    """The last steps of each replica up to the event after so many, which was refused; and what of its node fell back
    or jumped on that line.
    """
    last: dict[int, deque[Row]] = {}
    own: deque[Row] = deque()
    for row in islice(rows, events + 1):
        own = last.setdefault(row[_NODE], deque(maxlen=STEPS_SHOWN))
        own.append(row)
    steps = tuple(_step(row) for node in sorted(last) for row in last[node])
    return steps, tuple(_changes(own[-2], own[-1])) if len(own) > 1 else ()


def _step(row: Row) -> Step:
    text = f"clock {row[_CLOCK]}, {row[_EVENT]} ({columns_of_event(row)})"
    return Step(row[_NODE], row[FILE_INDEX], row[LINE_INDEX], text)


def _changes(before: Row, after: Row) -> Iterator[str]:
    for column in _SHOWN:
        old, new = before[INDEX[column]], after[INDEX[column]]
        if old is not None and new is not None and (new < old or new > old + 1) and column != "features":
            yield f"{column} {'fell back' if new < old else 'jumped'} from {old} to {new}"
