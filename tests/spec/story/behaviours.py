"""Behaviours written by hand, for tests of what is told of them."""

from __future__ import annotations

from collections.abc import Iterable

from viewproof.spec.engines import interp
from viewproof.spec.lang import Spec
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS

Call = tuple[str, dict[str, int]]

GETSTATE: tuple[Call, ...] = (
    ("on_request", {"r": 0, "c": 1, "s": 1}),
    ("start_view_change", {"r": 0, "v": 1}),
    ("start_view_change", {"r": 1, "v": 1}),
    ("do_view_change", {"r": 0}),
    ("do_view_change", {"r": 1}),
    ("start_view", {"r": 1, "b": 0}),
    ("on_start_view", {"r": 2, "v": 0, "n": 1}),
    ("on_get_state", {"r": 2, "v": 1}),
)
"""The shortest counterexample of state.getstate_truncates: it breaks I3."""

BOOT: tuple[Call, ...] = (("start_view_change", {"r": 0, "v": 1}), ("restart", {"r": 0, "n": 0}))
"""The shortest counterexample of boot.view_from_last_prepare: it breaks I6, a transition invariant."""


def faulty(id: str) -> Spec:
    """The model in which a fault shows."""
    chosen = FAULT_MODELS[id]
    name = "core_restart" if chosen.bounds.restarts else "core"
    return model(name, replicas=chosen.replicas, faults=[id], bounds=chosen.bounds)


def taken(spec: Spec, calls: Iterable[Call]) -> list[interp.Step]:
    """Take the steps in the interpreter."""
    state, steps = State.initial(), list[interp.Step]()
    for name, args in calls:
        after = interp.step(spec, state, spec.action(name), args)
        assert isinstance(after, State), f"{name} {args}: guard {after} is false"
        steps.append(interp.Step(name, args, after))
        state = after
    return steps
