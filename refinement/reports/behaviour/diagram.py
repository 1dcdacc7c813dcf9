"""Layout of the sequence diagram: replicas as lanes, steps from top to bottom, messages as arrows.

Only numbers and texts; the template draws them. Lengths are in SVG user units (pixels at 100 %).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from viewproof.refinement.reports.behaviour.scene import Beat, Scene

MARGIN = 20
ROW = 58
BOX_HEIGHT = 36
TOP = 22


@dataclass(frozen=True)
class Widths:
    """Of a lane and of the box in it; and how many letters of a label and of a note fit there."""

    lane: int
    box: int
    label: int
    note: int


WIDE, NARROW = Widths(260, 200, 27, 29), Widths(196, 156, 20, 22)
LANES_WIDE = 3
"""Up to this many lanes are wide."""


@dataclass(frozen=True)
class Lane:
    """A replica: the middle of its line."""

    member: int
    x: int


@dataclass(frozen=True)
class Box:
    """A step: its place, its label, and what it sends."""

    beat: Beat
    x: int
    y: int
    width: int
    label: str
    note: str
    badges: str

    @property
    def left(self) -> float:
        """Left edge."""
        return self.x - self.width / 2

    @property
    def top(self) -> float:
        """Upper edge."""
        return self.y - BOX_HEIGHT / 2


@dataclass(frozen=True)
class Arrow:
    """A message: from the step that sent it to the step that used it, as an SVG path. `own`: to the sender itself."""

    number: int
    message: str
    first: int
    last: int
    own: bool
    path: str
    label: str
    label_x: float
    label_y: float
    anchor: str
    hue: int
    title: str


@dataclass(frozen=True)
class Diagram:
    """The whole drawing."""

    width: int
    height: int
    lanes: tuple[Lane, ...]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def draw(scene: Scene) -> Diagram:
    """Lay out a scene."""
    widths = WIDE if len(scene.lanes) <= LANES_WIDE else NARROW
    lanes = tuple(Lane(m, MARGIN + widths.lane // 2 + widths.lane * n) for n, m in enumerate(scene.lanes))
    at = {lane.member: lane.x for lane in lanes}
    width = 2 * MARGIN + widths.lane * max(1, len(lanes))
    boxes = tuple(_box(beat, at, width, widths) for beat in scene.beats)
    hues = _hues(scene)
    arrows: list[Arrow] = []
    for box in boxes:
        arrows += _arrows(box, boxes, len(arrows), hues)
    return Diagram(width, TOP + ROW * max(1, len(boxes)) + 10, lanes, boxes, tuple(arrows))


def _box(beat: Beat, at: dict[int, int], width: int, widths: Widths) -> Box:
    y = TOP + ROW * (beat.number - 1) + ROW // 2
    x = width // 2 if beat.lane is None else at[beat.lane]
    badges = "⚡" * beat.crash + "⚑" * beat.fault + "✗" * beat.broken
    label = _short(f"{beat.shown or beat.number}  {beat.label}", widths.label)
    return Box(beat, x, y, widths.box, label, _short(beat.note, widths.note - 3 * len(badges)), badges)


def _arrows(box: Box, boxes: tuple[Box, ...], number: int, hues: dict[str, int]) -> Iterable[Arrow]:
    """The messages that a step used. Those of one name that arrive from one side share a label."""
    named: dict[bool, list[str]] = {True: [], False: []}
    place = {True: 0, False: 0}
    for used in box.beat.uses:
        start = boxes[used.step - 1]
        own, rightwards = start.x == box.x, start.x < box.x
        label, label_y = "", box.top - 3
        if own:
            path = _loop(start, box)
        else:
            path = _line(start, box, box.y - 8 + 8 * min(place[rightwards], 2))
            place[rightwards] += 1
            if used.message not in named[rightwards]:
                label, label_y = used.message, box.top - 3 - 11 * len(named[rightwards])
                named[rightwards].append(used.message)
        yield Arrow(
            number,
            used.message,
            used.step,
            box.beat.number,
            own,
            path,
            label,
            box.x + (-1 if rightwards else 1) * (box.width / 2 + 3),
            label_y,
            "end" if rightwards else "start",
            hues[used.message],
            f"{used.message} from {used.sender}: sent in step {used.step}, used in step {box.beat.number}",
        )
        number += 1


def _line(start: Box, end: Box, end_y: float) -> str:
    """From the edge of one box to the facing edge of the other, in a soft curve."""
    side = 1 if end.x > start.x else -1
    x1, x2 = start.x + side * start.width / 2, end.x - side * (end.width / 2 + 7)
    bend = 26 * side
    return f"M{x1:g} {start.y} C{x1 + bend:g} {start.y} {x2 - bend:g} {end_y:g} {x2:g} {end_y:g}"


def _loop(start: Box, end: Box) -> str:
    """A message to itself: out and back on the right."""
    x = start.x + start.width / 2
    y1, y2 = start.y + 11, end.y + 11
    return f"M{x:g} {y1} C{x + 26:g} {y1} {x + 26:g} {y2} {x + 7:g} {y2}"


def _hues(scene: Scene) -> dict[str, int]:
    """A colour per message name, spread over the wheel in order of first use; red is left to faults."""
    names = list(dict.fromkeys(used.message for beat in scene.beats for used in beat.uses))
    return {name: 40 + round(290 * n / max(1, len(names))) for n, name in enumerate(names)}


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
