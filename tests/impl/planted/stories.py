"""Fault stories of other systems, planted in the replica as a developer would make the mistake; none has a switch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class Story:
    """A mistake and a run in which the audit rejects it: profile ("": drawn), seed, replicas, and at which step."""

    plant: Plant
    step: str
    profile: str = ""
    seed: int = 0
    replicas: int = 3


STORIES: dict[str, Story] = {}


def story(what: str, step: str, profile: str = "", seed: int = 0, replicas: int = 3) -> Callable[[Plant], Plant]:
    """Adds a story by what goes wrong in it."""

    def add(plant: Plant) -> Plant:
        STORIES[what] = Story(plant, step, profile, seed, replicas)
        return plant

    return add
