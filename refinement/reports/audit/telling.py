"""A violation as a story: the scene that is drawn, and the document that the page steps through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from viewproof.refinement.adapter import AdapterError, adapter
from viewproof.refinement.events.system import System
from viewproof.refinement.reports.behaviour import Beat, Scene
from viewproof.refinement.verdict import RunVerdict, Step, Violation

NOT_SHOWN = "?"
_ROUTE = ("m_type", "m_from", "m_seq")
"""Columns that say where a message comes from: the arrows show it."""


@dataclass(frozen=True)
class Use:
    """A message that a step uses."""

    message: str
    sender: int
    step: int


@dataclass(frozen=True)
class Telling:
    """A violation to be stepped through."""

    scene: Scene
    document: dict[str, Any]


def system_of(name: str) -> System | None:
    """The system whose events an adapter of that name gives; None where it has none."""
    try:
        return adapter(name).system
    except AdapterError:
        return None


def tell(run: RunVerdict, violation: Violation, system: System | None) -> Telling:
    """The last steps before a violation in their order, and the event itself as the last of them."""
    steps = ordered(violation)
    numbers = {(step.node, step.seq): number for number, step in enumerate(steps, 1) if step.seq}
    uses = [_uses(step, numbers, system) for step in steps]
    beats = [beat_of(n, step, used) for n, (step, used) in enumerate(zip(steps, uses, strict=True), 1)]
    beats[-1] = Beat(**{**vars(beats[-1]), "broken": True})
    lanes = lanes_of(run, steps)
    scene = Scene("node", lanes, tuple(beats))
    document = {
        "format": "viewproof.trace-story/1",
        "model": run.run_id,
        "about": violation.message,
        "faults": [],
        "ending": {
            "id": violation.rule_id, "title": violation.message, "doc": violation.rule, "source": None, "broken": True,
        },
        "lanes": {"sort": "Node", "members": list(lanes)},
        "state_title": "What the nodes have shown up to here",
        **_columns(steps, lanes, system),
        "actions": {},
        "why_not": None,
    }  # fmt: skip
    position = {(name, node): n for n, (name, (node,), _) in enumerate(document["cells"])}
    told, shown = [], dict[int, str]()
    for number, (step, used) in enumerate(zip(steps, uses, strict=True), 1):
        told.append(_step(number, step, used, _changes(step, position, shown), system))
    for one in told:
        users = (other for other in told if any(use["step"] == one["number"] for use in other["uses"]))
        one["sends"] = [{"message": use["message"]} for use in next(users, {"uses": []})["uses"][:1]]
    told[-1]["refused"] = refused(violation)
    return Telling(scene, {**document, "steps": told})


def ordered(violation: Violation) -> list[Step]:
    """The steps in the order of the replay; the event that is refused comes last, also if nothing led there."""
    steps = sorted(violation.story, key=lambda step: (step.clock, step.node if step.clock else 0, step.seq))
    own = [step for step in steps if (step.file, step.line) == (violation.file, violation.line)]
    if own:
        steps.remove(own[-1])
        return [*steps, own[-1]]
    last = Step(
        violation.node, violation.file, violation.line, violation.message, violation.action, violation.seq,
        shows=dict(violation.carried),
    )  # fmt: skip
    return [*steps, last]


def lanes_of(run: RunVerdict, steps: Iterable[Step]) -> tuple[int, ...]:
    """The nodes of the run."""
    known = run.timeline.lifelines if run.timeline else ()
    return tuple(sorted({line.node for line in known} | {step.node for step in steps if step.node >= 0}))


def beat_of(number: int, step: Step, uses: tuple[Use, ...]) -> Beat:
    """An event as it is drawn."""
    numbers = [
        f"{name.removeprefix('m_')} {value}"
        for name, value in step.shows.items()
        if isinstance(value, int) and name not in _ROUTE
    ]
    details = [f"{name} = {value}" for name, value in {**step.shows, **step.state}.items()]
    return Beat(
        number,
        step.node if step.node >= 0 else None,
        step.event or step.text,
        ", ".join(numbers),
        f"{step.event or step.text} ({step.file}:{step.line})",
        tuple(details),
        uses,
        crash=step.boot and step.seq > 1,
    )


def refused(violation: Violation) -> dict[str, Any]:
    """Why the event is refused: what the page shows at the last step."""
    rows = {
        "rule": violation.rule_id,
        "in words": violation.rule,
        "expected": violation.expected,
        "observed": violation.observed,
        "refused by": violation.place,
        "stands for it": violation.mapped_at,
        "accepted before it": f"{violation.prefix_length:,} events" if violation.prefix_length else "",
        **{name: str(value) for name, value in violation.carried.items()},
    }
    return {
        "rows": [[name, text] for name, text in rows.items() if text],
        "changes": list(violation.changes),
        "why_not": list(violation.why_not),
        "state": [[name, str(value)] for name, value in violation.state_before.items()],
    }


def _uses(step: Step, numbers: Mapping[tuple[int, int], int], system: System | None) -> tuple[Use, ...]:
    number = numbers.get(step.used) if step.used else None
    if step.used is None or number is None:
        return ()
    return (Use(message_of(step, system), step.used[0], number),)


def message_of(step: Step, system: System | None) -> str:
    """The kind of message that an event receives."""
    own = step.shows.get("m_type")
    if own:
        return str(own)
    declared = next((e for e in system.events if e.name == step.event), None) if system else None
    return declared.receives.partition("|")[0] if declared and declared.receives else "message"


def _columns(steps: list[Step], lanes: tuple[int, ...], system: System | None) -> dict[str, Any]:
    names = dict.fromkeys(name for step in steps for name in step.state)
    docs = {name: column.doc for name, column in system.by_name.items()} if system else {}
    return {
        "vars": [{"name": n, "index": ["Node"], "kind": "column", "doc": docs.get(n, "")} for n in names],
        "cells": [[name, [node], NOT_SHOWN] for name in names for node in lanes],
    }


def _changes(step: Step, position: Mapping[tuple[str, int], int], shown: dict[int, str]) -> list[list[Any]]:
    """What the event shows of its node that no step before it showed so; `shown` is brought up to date."""
    found: list[list[Any]] = []
    for name, value in step.state.items():
        cell, text = position.get((name, step.node)), str(value)
        if cell is None:
            continue
        before = shown.get(cell, NOT_SHOWN)
        if before != text:
            found.append([cell, before, text])
            shown[cell] = text
    return found


def _step(
    number: int, step: Step, uses: tuple[Use, ...], changes: list[list[Any]], system: System | None
) -> dict[str, Any]:
    return {
        "number": number,
        "action": step.event or step.text,
        "args": {},
        "actor": step.node,
        "source": {"file": step.file, "line": step.line},
        "doc": system.docs.get(step.event, "") if system else "",
        "tags": [],
        "mark": "",
        "facts": [["clock", str(step.clock)], ["seq", str(step.seq)], *([n, str(v)] for n, v in step.shows.items())]
        if step.event
        else [],
        "guards": [],
        "changes": changes,
        "sends": [],
        "uses": [vars(use) for use in uses],
    }
