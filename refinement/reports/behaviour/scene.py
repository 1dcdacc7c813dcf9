"""What a sequence diagram shows: lanes, steps and the messages between them, of a behaviour or of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from viewproof.spec.engines.story import Story


class Message(Protocol):
    """A message that a step uses: its name, who sent it, and the number of the step that did."""

    @property
    def message(self) -> str:
        """Its name."""

    @property
    def sender(self) -> int:
        """Whose it is."""

    @property
    def step(self) -> int:
        """The step that sent it."""


@dataclass(frozen=True)
class Beat:
    """A step as it is drawn: whose lane (None: nobody's), its label and the line below, all of it in words, the
    messages that it uses, and what marks it; `shown` is the number that a reader sees, if it is another.
    """

    number: int
    lane: int | None
    label: str
    note: str
    title: str
    details: tuple[str, ...] = ()
    uses: Sequence[Message] = ()
    crash: bool = False
    fault: bool = False
    broken: bool = False
    shown: str = ""


@dataclass(frozen=True)
class Scene:
    """All that is drawn; `sort` is what a lane is called."""

    sort: str
    lanes: tuple[int, ...]
    beats: tuple[Beat, ...]


def scene_of(story: Story) -> Scene:
    """A behaviour of a specification."""
    beats = []
    for step in story.steps:
        alone = step.actor is None or step.actor not in story.lanes
        sends = ", ".join(dict.fromkeys(sent.message for sent in step.sends))
        last = step.number == len(story.steps) and story.ending is not None and story.ending.broken
        beats.append(
            Beat(
                step.number,
                None if alone else step.actor,
                step.call(with_actor=alone),
                f"sends {sends}" if sends else "",
                step.call(),
                tuple(leaf.text() for leaf in step.leaves),
                step.uses,
                "crash" in step.tags,
                bool(step.mark),
                last,
            )
        )
    return Scene(story.lane_sort.lower(), story.lanes, tuple(beats))
