"""Say why a line is refused: the guard that was false with its values, the state around it, the deviation that fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from viewproof.refinement.invariants import INVARIANTS
from viewproof.refinement.value_text import show_value
from viewproof.spec.engines.guards import Refusal, StateCells, refusal
from viewproof.spec.engines.replay import TAKEN, Replay
from viewproof.spec.lang import Spec

LEAVES_MAX = 40

_RULES = {
    "line.missing": "the lines of one step of a replica follow each other",
    "line.unexpected": "a line of a step that has begun follows the line that began it",
    "line.checksum": "a checksum names one header, and a header has one checksum",
    "line.id": "a data file is opened under an id that it was made with",
    "panic": "the build's own assertions hold",
    "configuration": "the configuration is one that the specification allows",
}


def rule_in_words(spec: Spec, rule: str) -> str:
    """What the rule says that a line breaks."""
    if (found := INVARIANTS.get(rule) or _RULES.get(rule)) is not None:
        return found
    kind, _, name = rule.partition(".")
    if kind == "line":
        return f"what a line shows is what the specification has: {name}"
    action = rule.partition("/")[0]
    for candidate in spec.actions:
        if candidate.name == action:
            return candidate.doc.partition("\n\n")[0].replace("\n", " ")
    return f"what a line of {kind} says agrees with the lines before it"


def refused(replay: Replay, store: Any, action: str, conjunct: int, args: Mapping[str, int]) -> Refusal:
    """The guard that stands in the way, in words with its values."""
    spec = replay.spec
    cells = StateCells(spec.instance, replay.layout.to_state(store))
    return refusal(spec, cells, action, conjunct, args, show_value)


def state_around(replay: Replay, store: Any, node: int, args: Mapping[str, int]) -> dict[str, str]:
    """Scalars of the replica, and the cells of its rows at the numbers that the step is about."""
    near = {value for name, value in args.items() if name != "r"}
    scalars: dict[str, str] = {}
    cells: dict[str, str] = {}
    for var in replay.spec.schema.vars.values():
        shape = replay.layout.shape(var)
        if shape == "list":
            value = getattr(store, f"v_{var.name}")[node]
            if value != var.init:
                scalars[f"{var.name}[{node}]"] = show_value(var, value)
        elif shape == "rows":
            for key, value in sorted(getattr(store, f"v_{var.name}")[node].items()):
                index = key if isinstance(key, tuple) else (key,)
                if index[0] in near and value != var.init:
                    cells[f"{var.name}[{', '.join(map(str, (node, *index)))}]"] = show_value(var, value)
    return dict(list({**scalars, **cells}.items())[:LEAVES_MAX])


def known_deviations(replay: Replay, store: Any, action: str, args: Mapping[str, int]) -> Iterator[str]:
    """Which known deviations would take the step. (The store is not used after.)"""
    for name, function in replay.functions.items():
        own, _, fault = name.partition("__")
        if own == action and fault and function(store, *args.values()) == TAKEN:
            id = fault.replace("_", ".", 1)
            yield f"the known deviation {id} does it: {replay.spec.action(name).doc} (--allow {id})"
