"""A behaviour taken step by step in the reference interpreter, and judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from viewproof.api.model import named_or_given
from viewproof.spec.engines.explicit.result import Result, Step
from viewproof.spec.engines.walk import judged, take
from viewproof.spec.lang import Spec
from viewproof.spec.lang.concrete import State


def replay(spec: Spec | str, steps: Iterable[tuple[str, Mapping[str, int]]]) -> Result:
    """Take `steps`, pairs of an action's name and its arguments, from the initial state of `spec` (or a model's name).

    The result is as that of a search in which only these states were met: `verdict` is violated where an invariant
    breaks (`broken`, `title`; `behaviour` ends there) and otherwise holds, which here is said of these states only.
    Raises `SpecError` for an unknown action or argument, and for a step that is not enabled, with the guard in its way.
    """
    named = named_or_given(spec)
    taken: list[Step] = []
    for name, args in steps:
        taken.append(take(named, taken[-1].state if taken else State.initial(), name, args, number=len(taken) + 1))
    return judged(named, taken)
