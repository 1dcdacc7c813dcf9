"""The replay's functions as the reference interpreter would take them: slow, and the judge of the compiled ones.

Each call turns the store into the interpreter's state, runs the action's own text on it and writes the result back.
"""

from __future__ import annotations

from dataclasses import replace

from viewproof.spec.engines.interp import Blocked, step
from viewproof.spec.engines.replay.compile import TAKEN, Replay, Step
from viewproof.spec.engines.replay.store import Store
from viewproof.spec.lang.definitions import Action


def by_interp(replay: Replay) -> Replay:
    """The same replay with every step taken by the reference interpreter."""
    return replace(replay, functions={a.name: _function(replay, a) for a in replay.spec.actions})


def _function(replay: Replay, action: Action) -> Step:
    names = [p.name for p in action.params]

    def take(store: Store, *args: int) -> int:
        before = replay.layout.to_state(store)
        after = step(replay.spec, before, action, dict(zip(names, args, strict=True)))
        if isinstance(after, Blocked):
            return after.conjunct
        replay.layout.load(store, after)
        return TAKEN

    return take
