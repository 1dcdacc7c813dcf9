"""Layout of a run's timeline: a lane per node, clocks from left to right, and what the run shows of each.

Only numbers and texts; the template draws them. Lengths are in SVG user units.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.refinement.verdict import Mark, RunVerdict, Timeline

WIDTH = 920
LEFT = 74
RIGHT = 14
LANE = 30
TOP = 16
BELOW = 18
SIGNS = {"boot": "⚡", "gap": "✂", "unknown": "?", "view": ""}
APART = 15
"""Signs that would stand nearer than this are one."""


@dataclass(frozen=True)
class Stretch:
    """A node while it is in one view: from where to where, the view, its parity, which the colour shows, and where its
    name is written: beside a sign (0: there is no room).
    """

    x: float
    width: float
    text: str
    odd: bool
    label: float


@dataclass(frozen=True)
class Sign:
    """A mark, or several of a kind that stand close together."""

    kind: str
    x: float
    sign: str
    title: str


@dataclass(frozen=True)
class Row:
    """A node: the middle of its lane, the stretches of its life, and what is marked on it."""

    node: int
    y: float
    events: int
    stretches: tuple[Stretch, ...]
    signs: tuple[Sign, ...]


@dataclass(frozen=True)
class Plan:
    """The whole drawing."""

    width: int
    height: int
    rows: tuple[Row, ...]
    first: int
    last: int
    more: int
    ends: tuple[float, str] | None


def plan(run: RunVerdict) -> Plan | None:
    """The timeline of a run, with where it was refused; None where there is none."""
    timeline = run.timeline
    if timeline is None or not timeline.lifelines:
        return None
    first = min(line.first for line in timeline.lifelines)
    last = max(line.last for line in timeline.lifelines)
    scale = (WIDTH - LEFT - RIGHT) / max(1, last - first)
    rows = []
    for n, line in enumerate(timeline.lifelines):
        signs = tuple(_signs(timeline, line.node, first, scale))
        stretches = tuple(_stretches(timeline, line.node, first, scale, signs))
        rows.append(Row(line.node, TOP + LANE * (n + 0.5), line.events, stretches, signs))
    height = TOP + LANE * len(rows) + BELOW
    return Plan(WIDTH, height, tuple(rows), first, last, timeline.more, _refusal(run, first, scale))


def _refusal(run: RunVerdict, first: int, scale: float) -> tuple[float, str] | None:
    for violation in run.violations:
        for step in violation.story:
            if step.seq and (step.node, step.seq) == (violation.node, violation.seq):
                return LEFT + (step.clock - first) * scale, f"{violation.rule_id}: clock {step.clock}, node {step.node}"
    return None


def _stretches(timeline: Timeline, node: int, first: int, scale: float, signs: tuple[Sign, ...]) -> list[Stretch]:
    line = next(line for line in timeline.lifelines if line.node == node)
    views = [mark for mark in timeline.marks if mark.node == node and mark.kind == "view"]
    begins = [(line.first, "")] if not views or views[0].clock > line.first else []
    begins += [(mark.clock, mark.text) for mark in views]
    found = []
    for (clock, text), (until, _) in zip(begins, [*begins[1:], (line.last, "")], strict=True):
        odd = text.isdecimal() and int(text) % 2 == 1
        x, width = LEFT + (clock - first) * scale, max(2.0, (until - clock) * scale)
        label = x + 4
        while near := next((sign.x for sign in signs if -6 < sign.x - label < 6 + 8 * (1 + len(text)) and text), 0):
            label = near + 11
            if label > x + width:
                break
        room = label + 8 * (1 + len(text)) <= x + width
        found.append(Stretch(x, width, text, odd, label if room else 0))
    return found


def _signs(timeline: Timeline, node: int, first: int, scale: float) -> list[Sign]:
    groups: list[tuple[float, list[Mark]]] = []
    for mark in timeline.marks:
        if mark.node != node or not SIGNS[mark.kind]:
            continue
        x = LEFT + (mark.clock - first) * scale
        near = next((marks for at, marks in groups if marks[0].kind == mark.kind and x - at < APART), None)
        if near is None:
            groups.append((x, [mark]))
        else:
            near.append(mark)
    return [Sign(marks[0].kind, x, SIGNS[marks[0].kind], _title(marks)) for x, marks in groups]


def _title(marks: list[Mark]) -> str:
    first = marks[0]
    more = f", and {len(marks) - 1} more close by" if len(marks) > 1 else ""
    return f"clock {first.clock}: {first.text} ({first.file}:{first.line}){more}"
