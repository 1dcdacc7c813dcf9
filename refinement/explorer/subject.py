"""What is explored: a bounded specification, its known mistakes, and where one stands after some steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from viewproof.refinement.reports.behaviour import render_drawing, scene_of, tell
from viewproof.refinement.value_text import show_value
from viewproof.spec.engines import interp
from viewproof.spec.engines.explicit.replay import changes
from viewproof.spec.engines.explicit.result import Step
from viewproof.spec.engines.story import Reason, Story, to_json, why_not
from viewproof.spec.engines.walk import first_broken, take
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.lang.concrete import State

Steps = Sequence[tuple[str, Mapping[str, int]]]
"""A behaviour as the page has it: names of actions, and their arguments."""


@dataclass(frozen=True)
class Goal:
    """Where a search is to lead: to a state that breaks the invariant of that id, or to its witness state."""

    id: str
    breaks: bool


@dataclass(frozen=True, eq=False)
class Subject:
    """`build` makes the specification with some of `faults` (id → what it does) switched on; raises `SpecError`.

    `search` finds the steps to a goal, within bounds: [] if there is no such state, None if a bound came first; it
    tells now and then how many states it has met.
    `python` gives the expression that makes the specification in a scenario test; None for a model of one's own.
    `begin` are steps to begin with, `switched` the mistakes that are on at first; `start` is the state in which all
    begins. Without `searches` nothing is searched for; with `far` a step's invariants are asked once it is taken.
    `back` is the address of the trace that this goes on from.
    """

    name: str
    sizes: str
    build: Callable[[tuple[str, ...]], Spec]
    search: Callable[[Spec, Goal, Callable[[int], None]], list[Step] | None]
    faults: Mapping[str, str] = field(default_factory=dict)
    python: Callable[[tuple[str, ...]], str] | None = None
    begin: tuple[tuple[str, dict[str, int]], ...] = ()
    switched: tuple[str, ...] = ()
    start: State = field(default_factory=State.initial)
    searches: bool = True
    far: bool = False
    back: str = ""


@lru_cache(maxsize=16)
def specification(subject: Subject, faults: tuple[str, ...]) -> Spec:
    """The specification with these mistakes. Raises `SpecError` where they cannot be together, or are unknown."""
    if unknown := [id for id in faults if id not in subject.faults]:
        raise SpecError(f"{unknown[0]} is no mistake of {subject.name}")
    return subject.build(faults)


def go(spec: Spec, steps: Steps, start: State) -> tuple[list[Step], str]:
    """As many of the steps as can be taken; and why the next cannot, if one is left."""
    taken: list[Step] = []
    for name, args in steps:
        try:
            taken.append(take(spec, _last(taken, start), name, args, number=len(taken) + 1))
        except SpecError as problem:
            return taken, problem.message
    return taken, ""


def stand(subject: Subject, faults: tuple[str, ...], steps: Steps) -> dict[str, Any]:
    """Where these steps lead, as the page shows it: the story, its drawing, and the steps that can be taken next."""
    spec = specification(subject, faults)
    taken, refused = go(spec, steps, subject.start)
    told = story(subject, spec, faults, taken)
    return {
        "story": document(subject, told),
        "drawing": render_drawing(scene_of(told)),
        "walk": [[step.action, step.args] for step in taken],
        "refused": refused,
        "next": list(_next(subject, spec, _last(taken, subject.start), told.marks)),
        "claims": _claims(spec, taken, subject.start),
    }


def document(subject: Subject, told: Story) -> dict[str, Any]:
    """The story as JSON; of one that does not begin in the initial state all that differs from that is shown."""
    found = to_json(told)
    if subject.back:
        declared = told.spec.schema.vars
        for var in found["vars"]:
            var["init"] = show_value(declared[var["name"]], declared[var["name"]].init)
    return found


def story(subject: Subject, spec: Spec, faults: tuple[str, ...], taken: Sequence[Step]) -> Story:
    """The behaviour told; its ending is the invariant that its last state, or step, breaks."""
    id = first_broken(spec, _last(taken[:-1], subject.start), _last(taken, subject.start))
    return tell(spec, taken, about=subject.sizes, faults=faults, broken=id, start=subject.start)


def _next(subject: Subject, spec: Spec, state: State, marks: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Per action in order: the steps of it that are enabled, with what they change and break."""
    for action in spec.actions:
        reasons = why_not(spec, state, action, show_value)
        enabled = [_choice(spec, state, reason, subject.far) for reason in reversed(reasons) if reason.enabled]
        yield {
            "action": action.name,
            "doc": action.doc,
            "mark": marks.get(action.name, ""),
            "actor": action.actor,
            "steps": sorted(enabled, key=lambda choice: list(choice["args"].values())),
            "nearest": next((reason.text() for reason in reasons if not reason.enabled), "no arguments are left"),
        }


def _choice(spec: Spec, state: State, reason: Reason, far: bool) -> dict[str, Any]:
    after = interp.step(spec, state, spec.action(reason.action), reason.args)
    assert isinstance(after, State)
    leaves = changes(spec, state, after)
    variables = spec.schema.vars
    return {
        "args": reason.args,
        "changes": [
            [c.var, list(c.index), show_value(variables[c.var], c.before), show_value(variables[c.var], c.after)]
            for c in leaves
        ],
        "breaks": None if far else first_broken(spec, state, after),
    }


def _claims(spec: Spec, taken: Sequence[Step], start: State) -> list[dict[str, Any]]:
    """Per invariant: does it hold after each of the steps, and has its witness been met?"""
    states = [start, *(step.state for step in taken)]
    transitions = {p.name for p in spec.invariant_irs if p.is_transition}
    witnesses = {w.id: w for w in spec.witnesses}
    claims = []
    for predicate in spec.invariants:
        pairs = zip([states[0], *states], states, strict=False)
        asked = ((before, after) if predicate.id in transitions else (after,) for before, after in pairs)
        first = next((n for n, over in enumerate(asked) if not interp.holds(spec, predicate, *over)), None)
        witness = witnesses.get(predicate.id)
        met = None if witness is None else any(interp.holds(spec, witness, state) for state in states)
        claims.append({
            "id": predicate.id, "title": predicate.title, "doc": predicate.doc, "broken": first, "met": met,
        })  # fmt: skip
    return claims


def _last(taken: Sequence[Step], start: State) -> State:
    return taken[-1].state if taken else start
