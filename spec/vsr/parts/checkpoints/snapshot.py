"""What a snapshot holds, and its way: made durable, sent with a start_view, loaded at a restart."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import all_of, between, largest, point, where
from viewproof.spec.vsr.core.state import NORMAL, Op, copy, executed_state, loaded_apart, primary


def save(state: Any, r: Any, o: Any) -> None:
    """The snapshot of what r has executed is durable, as that of op o."""
    v = state.view[r]
    sends = all_of(state.status[r] == NORMAL, primary(state, v) == r)
    sent = between(Op, where(sends, o, o + 1), o)
    state.checkpoint[r] = o
    state.snapshot.update((v, sent), lambda p: True)
    for name in executed_state(state):
        copy(state, (f"saved_{name}", r), (name, r))
        copy(state, (f"snapshot_{name}", v, sent), (name, r))


def drain(state: Any, r: Any, o: Any) -> None:
    """The journal of r holds nothing up to op o."""
    state.written.update((r, between(Op, drained(state, r) + 1, o)), lambda p: False)
    if state.cfg.drains_later:
        state.drained[r] = o


def drained(state: Any, r: Any) -> Any:
    """The op up to which r's journal is drained."""
    return state.drained[r] if state.cfg.drains_later else state.checkpoint[r]


def send_snapshot(state: Any, r: Any, v: Any) -> None:
    """The start_view of view v goes out with r's snapshot, if it has one."""
    o = state.checkpoint[r]
    sent = between(Op, largest(o, 1), o)
    state.snapshot.update((v, sent), lambda p: True)
    for name in executed_state(state):
        copy(state, (f"snapshot_{name}", v, sent), (f"saved_{name}", r))


def load_state(state: Any, r: Any) -> None:
    """What a replica has executed is what its snapshot says."""
    for name in executed_state(state):
        if name not in loaded_apart(state):
            copy(state, (name, r), (f"saved_{name}", r))


@point
def install_state(state: Any, r: Any, v: Any, k: Any) -> None:
    """What r has executed, and its own snapshot, are the snapshot of op k that was sent with view v's start_view."""
    state.checkpoint[r] = k
    if state.cfg.drains_later:
        state.drained[r] = k
    state.commit_min[r] = k
    for name in executed_state(state):
        copy(state, (name, r), (f"snapshot_{name}", v, k))
        copy(state, (f"saved_{name}", r), (f"snapshot_{name}", v, k))
