"""A behaviour of one of the specifications that are here, told with its known mistakes by name."""

from __future__ import annotations

from collections.abc import Sequence

from viewproof.refinement.value_text import show_value
from viewproof.spec.engines import story
from viewproof.spec.lang import Spec
from viewproof.spec.lang.concrete import State
from viewproof.spec.protocols import FAULTS


def tell(
    spec: Spec, taken: Sequence[story.Taken], *, about: str, faults: Sequence[str] = (), broken: str | None = None,
    ending: story.Ending | None = None, start: State | None = None,
) -> story.Story:  # fmt: skip
    """The story of a behaviour that breaks the invariant `broken`, or ends as `ending` says; it begins in the state
    `start` (None: the initial one).
    """
    if broken is not None:
        states = [start or State.initial(), *(step.state for step in taken)]
        ending = story.broken(spec, broken, states, show_value)
    marks = {a.name: FAULTS[f].doc for f in faults for a in (*FAULTS[f].actions, *FAULTS[f].added)}
    texts = [f"{FAULTS[f].doc} ({f})" for f in faults]
    return story.tell(spec, taken, show=show_value, about=about, ending=ending, marks=marks, faults=texts, start=start)
