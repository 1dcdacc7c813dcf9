"""A recorded run that is looked at event by event: windows of its story, why not, and what might have been."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from viewproof.refinement.checker.recording import Event, Name, Recording, Taken, shown_value
from viewproof.refinement.explorer.subject import Subject
from viewproof.refinement.reports.audit.telling import Use, beat_of, message_of, refused
from viewproof.refinement.reports.behaviour import Scene, render_drawing
from viewproof.refinement.value_text import show_sizes, show_value
from viewproof.refinement.verdict import RunVerdict
from viewproof.spec.engines.guards import Evaluator, Span, refusal
from viewproof.spec.engines.replay.cells import PartialCells
from viewproof.spec.lang import SpecError
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Action, Spec, call_text
from viewproof.spec.lang.sorts import Instance, Sort

BEFORE, AFTER = 30, 15
"""Events of a window before and after the one that is looked at."""
LATELY = 150
"""Cells that were written within so many events are shown, and all that belong to a replica alone."""
NEAREST = 6
TRIED_MAX = 4_000
"""Instances of an action that are tried for an answer to why not."""
MEMBERS_TRIED = 4
"""Members of a sort that are tried: the largest that occur, and the next."""


@dataclass(eq=False)
class Trace:
    """A run, its verdict, and how it was replayed."""

    verdict: RunVerdict
    recording: Recording

    @property
    def spec(self) -> Spec:
        """The specification by which it is judged."""
        found: Spec = self.recording.spec
        return found

    @cached_property
    def lanes(self) -> tuple[int, ...]:
        """The replicas."""
        return tuple(range(self.recording.plain.replicas))

    @property
    def sort(self) -> str:
        """What a lane is called in the specification."""
        return str(self.recording.plain.program.replay.layout.actors)

    def begin(self) -> dict[str, Any]:
        """What the page needs at first."""
        found = self.recording
        return {
            "run": self.verdict.run_id,
            "verdict": self.verdict.verdict,
            "first": found.first + 1,
            "total": found.total,
            "refused": found.total if found.refused else None,
            "recorded": len(found.rows),
            "nodes": [step.step.node for step in found.events],
            "marks": self._marks(),
        }

    def _marks(self) -> list[dict[str, Any]]:
        """Events to jump to: those that the timeline marks."""
        places = {(e.step.file, e.step.line): n for n, e in enumerate(self.recording.events, self.recording.first + 1)}
        marks = self.recording.timeline.marks
        return [
            {"kind": mark.kind, "node": mark.node, "text": mark.text, "event": places[mark.file, mark.line]}
            for mark in marks
            if (mark.file, mark.line) in places
        ]

    def event(self, number: int) -> Event:
        """An event by its number, from 1. Raises `SpecError` where it is not kept."""
        first = self.recording.first
        if not first < number <= self.recording.total:
            raise SpecError(f"there is no event {number}: those kept are {first + 1} … {self.recording.total}")
        return self.recording.events[number - first - 1]

    def window(self, number: int) -> dict[str, Any]:
        """The story around an event, its drawing, and which events these are."""
        self.event(number)
        low = max(self.recording.first + 1, number - BEFORE)
        high = min(self.recording.total, number + AFTER)
        events = [self.event(n) for n in range(low, high + 1)]
        before = self.recording.cells_after(low - 1)
        cells = self._cells(before, low, high)
        numbers = {(event.step.node, event.step.seq): n for n, event in enumerate(events, 1)}
        uses = [_uses(event, numbers, self) for event in events]
        position = {name: n for n, name in enumerate(cells)}
        beats = []
        for n, (event, used) in enumerate(zip(events, uses, strict=True), 1):
            broken = self.recording.refused is not None and low + n - 1 == self.recording.total
            beats.append(replace(beat_of(n, event.step, used), broken=broken, shown=str(low + n - 1)))
        steps = [
            self._step(low + n, n + 1, event, used, position)
            for n, (event, used) in enumerate(zip(events, uses, strict=True))
        ]
        return {
            "from": low,
            "to": high,
            "drawing": render_drawing(Scene("node", self.lanes, tuple(beats))),
            "story": self._document(before, cells, steps),
        }

    def _document(self, before: PartialCells, cells: Sequence[Name], steps: list[dict[str, Any]]) -> dict[str, Any]:
        variables = self.spec.schema.vars
        names = dict.fromkeys(name for name, _, _ in cells)
        return {
            "model": self.verdict.run_id,
            "ending": None,
            "lanes": {"sort": self.sort, "members": list(self.lanes)},
            "state_title": "State by the specification, after this event",
            "state_hint": f"all cells that the last {LATELY} events wrote",
            "vars": [
                {
                    "name": n,
                    "index": [s.name for s in variables[n].index],
                    "own": [s.name for s in variables[n].index] == [self.sort],
                    "doc": variables[n].doc,
                }
                for n in names
            ],
            "cells": [
                [name, list(index), shown_value(variables[name], before.read(variables[name], index))]
                for name, index, _ in cells
            ],
            "actions": {},
            "why_not": None,
            "asks": [action.name for action in self.spec.actions],
            "steps": steps,
        }

    def _cells(self, before: PartialCells, low: int, high: int) -> list[Name]:
        """Cells of a window: a replica's own, and those written lately, in the order of declaration."""
        first = self.recording.first
        lately = self.recording.events[max(0, low - first - LATELY) : high - first]
        written = {name for event in lately for name in event.changes if name[2] is None}
        own = {
            (var.name, (lane,), None)
            for var in before.schema.vars.values()
            if len(var.index) == 1 and var.index[0].name == self.sort
            for lane in self.lanes
        }
        order = {name: n for n, name in enumerate(before.schema.vars)}
        return sorted(written | own, key=lambda name: (order[name[0]], name[1]))

    def _step(
        self, number: int, place: int, event: Event, uses: tuple[Use, ...], position: Mapping[Name, int]
    ) -> dict[str, Any]:
        step, variables = event.step, self.spec.schema.vars
        told = {
            "number": place,
            "shown": number,
            "action": step.event,
            "args": {},
            "actor": step.node,
            "source": {"file": step.file, "line": step.line},
            "doc": self.recording.system.docs.get(step.event, ""),
            "tags": [],
            "mark": "",
            "facts": [
                ["clock", str(step.clock)],
                ["seq", str(step.seq)],
                *([n, str(v)] for n, v in step.shows.items()),
            ],
            "stands_for": [_taken(one) for one in event.taken],
            "unknown": list(event.unknown),
            "guards": [],
            "changes": [
                [position[name], shown_value(variables[name[0]], old), shown_value(variables[name[0]], new)]
                for name, (old, new) in event.changes.items()
                if name in position
            ],
            "sends": [],
            "uses": [vars(use) for use in uses],
        }
        if self.recording.refused is not None and number == self.recording.total:
            told["refused"] = refused(self.recording.refused)
        return told

    def why_not(self, number: int, action: str) -> list[dict[str, Any]]:
        """Why an action is not enabled after an event: of its instances the nearest first."""
        self.event(number)
        cells = self.recording.cells_after(number if not self._is_refused(number) else number - 1)
        found, ir = [], self.spec.ir(action)
        for args in itertools.islice(self._instances(self.spec.action(action), cells), TRIED_MAX):
            try:
                conjunct, opened = Evaluator(self.spec.instance, cells).first_false(ir, args)
            except SpecError:
                continue
            left = 0 if conjunct is None else len(ir.guards) - conjunct
            found.append((left, tuple(args.values()), args, conjunct, opened))
        return [
            self._answer(action, cells, args, conjunct, bool(opened))
            for _, _, args, conjunct, opened in sorted(found, key=lambda one: one[:2])[:NEAREST]
        ]

    def _is_refused(self, number: int) -> bool:
        return self.recording.refused is not None and number == self.recording.total

    def _answer(
        self, action: str, cells: PartialCells, args: dict[str, int], conjunct: int | None, opened: bool
    ) -> dict[str, Any]:
        call = call_text(action, args)
        if conjunct is None:
            text = f"{call} {'may be enabled: something that decides is not known' if opened else 'is enabled'}"
            return {"enabled": True, "text": text, "values": [], "place": ""}
        why = refusal(self.spec, cells, action, conjunct, args, show_value)
        return {"enabled": False, "text": f"{call}:  {why.guard}", "values": list(why.values), "place": why.place}

    def _instances(self, action: Action, cells: PartialCells) -> Iterator[dict[str, int]]:
        members = [self._members(p.sort, cells) for p in action.params]
        for values in itertools.product(*members):
            yield {p.name: value for p, value in zip(action.params, values, strict=True)}

    def _members(self, sort: Sort, cells: PartialCells) -> Sequence[int]:
        """Members of a sort worth trying: all of a bounded one, else the largest that occur and the one after."""
        top = self.spec.instance.hi(sort)
        if top is not None:
            return range(sort.lo, top + 1)
        most = _largest(self.spec, cells.known).get(_end(sort), sort.lo)
        return range(max(sort.lo, most + 2 - MEMBERS_TRIED), most + 2)

    def fork(self, number: int) -> Subject:
        """The model from the state after an event on. Raises `SpecError` where not all of the state is known."""
        self.event(number)
        if self._is_refused(number):
            number -= 1
        known = self.recording.state_after(number)
        state = State(known.tables)
        spec = replace(self.spec, instance=_bounded(self.spec, state))
        sizes = show_sizes(spec)
        return Subject(
            f"{self.verdict.run_id}-after-{number}",
            f"what if: any message that was sent may arrive from here on; {sizes}",
            lambda faults: spec,
            lambda *_: [],
            start=state,
            searches=False,
            far=True,
            back=f"/#event={number}",
        )


def _end(sort: Sort) -> str:
    return sort.ends_with or sort.name


def _largest(spec: Spec, tables: Mapping[str, Mapping[tuple[int, ...], Any]]) -> dict[str, int]:
    """The largest member of each sort that occurs in a state."""
    most: dict[str, int] = {}
    for name, table in tables.items():
        var = spec.schema.vars[name]
        for index, value in table.items():
            for sort, member in zip(var.index, index, strict=True):
                most[_end(sort)] = max(most.get(_end(sort), 0), member)
            if var.values.sort is not None and not isinstance(value, Span):
                end = _end(var.values.sort)
                most[end] = max(most.get(end, 0), value - var.values.plus)
    return most


def _bounded(spec: Spec, state: State) -> Instance:
    """An instance in which each sort has one member more than occurs."""
    most = _largest(spec, state.tables)
    sorts = {_end(s) for var in spec.schema.vars.values() for s in var.index}
    sorts |= {_end(var.values.sort) for var in spec.schema.vars.values() if var.values.sort is not None}
    sorts |= {_end(p.sort) for action in spec.actions for p in action.params}
    own = spec.instance.bounds
    return Instance({name: own[name] if name in own else most.get(name, 0) + 1 for name in sorted(sorts)})


def _uses(event: Event, numbers: Mapping[tuple[int, int], int], trace: Trace) -> tuple[Use, ...]:
    used = event.step.used
    if used is None or used not in numbers:
        return ()
    return (Use(message_of(event.step, trace.recording.system), used[0], numbers[used]),)


def _taken(one: Taken) -> dict[str, Any]:
    return {
        "call": one.call,
        "maybe": one.maybe,
        "source": {"file": one.source.file, "line": one.source.line},
        "guards": [
            {"text": g.text, "file": g.source.file, "line": g.source.line, "values": list(g.values)} for g in one.guards
        ],
    }
