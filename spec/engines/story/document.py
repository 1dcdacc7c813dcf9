"""A story as one JSON document: what the HTML page embeds and `--json` writes.

Cells are named once (`cells`), steps refer to them by position; why-not refers to texts by position. So a page of
twenty steps with every instance of every action stays small.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.engines.guards import guard_text
from viewproof.spec.engines.story.behaviour import Ending, Story, StoryStep, all_cells
from viewproof.spec.engines.story.why_not import Reason
from viewproof.spec.lang.errors import Source

FORMAT = "viewproof.story/1"
WHY_NOT_MAX = 40_000
"""Up to this many instances over all steps, each is kept; above it only the nearest ones of each action."""
NEAREST = 6


def to_json(story: Story, *, with_why_not: bool = True) -> dict[str, Any]:
    """The document."""
    spec = story.spec
    cells = all_cells(spec)
    position = {(var.name, index): n for n, (var, index) in enumerate(cells)}
    initial = story.states[0]
    return {
        "format": FORMAT,
        "model": spec.name,
        "about": story.about,
        "faults": list(story.faults),
        "ending": None if story.ending is None else _ending(story.ending),
        "lanes": {"sort": story.lane_sort, "members": list(story.lanes)},
        "vars": [
            {"name": v.name, "index": [s.name for s in v.index], "kind": v.kind, "doc": v.doc}
            for v in spec.schema.vars.values()
        ],
        "cells": [[var.name, list(index), story.show(var, initial.get(var, index))] for var, index in cells],
        "actions": _actions(story),
        "steps": [_step(step, position) for step in story.steps],
        "why_not": _why_not(story) if with_why_not else None,
    }


def _source(source: Source | None) -> dict[str, Any] | None:
    return None if source is None else {"file": source.file, "line": source.line}


def _ending(ending: Ending) -> dict[str, Any]:
    return {
        "id": ending.id,
        "title": ending.title,
        "doc": ending.doc,
        "source": _source(ending.source),
        "broken": ending.broken,
        "members": [list(m) for m in ending.members],
        "values": list(ending.values),
    }


def _actions(story: Story) -> dict[str, Any]:
    return {
        ir.name: {
            "params": [p.name for p in ir.params],
            "doc": ir.doc,
            "source": _source(ir.source),
            "mark": story.marks.get(ir.name, ""),
            "guards": [{"text": guard_text(g.source), **(_source(g.source) or {})} for g in ir.guards],
        }
        for ir in story.spec.action_irs
    }


def _step(step: StoryStep, position: dict[tuple[str, tuple[int, ...]], int]) -> dict[str, Any]:
    return {
        "number": step.number,
        "action": step.action,
        "args": step.args,
        "actor": step.actor,
        "source": _source(step.source),
        "doc": step.doc,
        "tags": sorted(step.tags),
        "mark": step.mark,
        "guards": [
            {"text": guard_text(g.source), **(_source(g.source) or {}), "values": list(g.values)} for g in step.guards
        ],
        "changes": [[position[leaf.var, leaf.index], leaf.before, leaf.after] for leaf in step.leaves],
        "sends": [s.to_json() for s in step.sends],
        "uses": [u.to_json() for u in step.uses],
    }


def _why_not(story: Story) -> dict[str, Any]:
    """Per step and action `[arguments, conjunct, text]`, nearest first; conjunct -1: enabled, -2: out of bounds."""
    texts: dict[str, int] = {}
    size = 1
    rows: list[dict[str, Any]] = []
    for number in range(len(story.states)):
        answers = {action.name: story.why_not(number, action.name) for action in story.spec.actions}
        if number == 0:
            size = sum(map(len, answers.values())) * len(story.states)
        kept = {name: found if size <= WHY_NOT_MAX else found[:NEAREST] for name, found in answers.items()}
        rows.append({name: [_row(reason, texts) for reason in found] for name, found in kept.items()})
    return {"texts": list(texts), "complete": size <= WHY_NOT_MAX, "nearest": NEAREST, "steps": rows}


def _row(reason: Reason, texts: dict[str, int]) -> list[Any]:
    conjunct = -1 if reason.enabled else -2 if reason.conjunct is None else reason.conjunct
    text = reason.error or ", ".join(reason.values)
    return [list(reason.args.values()), conjunct, texts.setdefault(text, len(texts))]
