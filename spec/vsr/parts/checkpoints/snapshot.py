"""What a snapshot holds, and its way: made durable, sent with a start_view, loaded at a restart."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from viewproof.spec.lang import Bool, Cells, Schema, State, all_of, between, largest, message, point, variable, where
from viewproof.spec.vsr.core.state import (
    EXECUTED,
    NORMAL,
    Messages,
    Op,
    Replica,
    View,
    by_primary,
    copy,
    executed_state,
    loaded_apart,
    primary,
)
from viewproof.spec.vsr.parts.protocol import Protocol

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


class Checkpoint(State):
    """The checkpoint."""

    checkpoint: Cells[Replica, Op] = variable("op of its durable snapshot; its journal holds what is above")


class DrainedLater(State):
    """A journal that is not drained at once."""

    drained: Cells[Replica, Op] = variable("op up to which its journal is drained")


class SentSnapshots(Messages):
    """The snapshots sent; their fields follow from what replicas execute (`declare`)."""

    snapshot: Cells[tuple[View, Op], Bool] = message(
        by_primary, to="a backup", title="snapshot", doc="start_view sent with the snapshot of that op"
    )


class Checkpoints(SentSnapshots, Checkpoint, DrainedLater, Protocol):
    """The state with checkpoints."""

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> SentSnapshots:
            """The messages that a replica has received."""


def states(cfg: Config) -> tuple[type[State], ...]:
    """Whether a journal is drained later is the configuration's to say."""
    return (Checkpoint, *((DrainedLater,) if cfg.drains_later else ()), SentSnapshots)


def declare(s: Schema, cfg: Config) -> None:
    """Declare what a snapshot holds, and what one that is sent does: all that follows from what was executed."""
    for name in s.tagged(EXECUTED):
        var = s.vars[name]
        s.state(f"saved_{name}", var.index, var.values, doc=f"snapshot: {var.doc}")
        s.field("snapshot", name, var.index[1:], var.values, partial(by_primary, cfg), doc=f"snapshot sent: {var.doc}")


def save(state: Checkpoints, r: Replica, o: Op) -> None:
    """The snapshot of what r has executed is durable, as that of op o."""
    v = state.view[r]
    sends = all_of(state.status[r] == NORMAL, primary(state, v) == r)
    sent = between(Op, where(sends, o, o + 1), o)
    state.checkpoint[r] = o
    state.snapshot.update((v, sent), lambda p: True)
    for name in executed_state(state):
        copy(state, (f"saved_{name}", r), (name, r))
        copy(state, (f"snapshot_{name}", v, sent), (name, r))


def drain(state: Checkpoints, r: Replica, o: Op) -> None:
    """The journal of r holds nothing up to op o."""
    state.written.update((r, between(Op, drained(state, r) + 1, o)), lambda p: False)
    if state.cfg.drains_later:
        state.drained[r] = o


def drained(state: Checkpoints, r: Replica) -> Op:
    """The op up to which r's journal is drained."""
    return state.drained[r] if state.cfg.drains_later else state.checkpoint[r]


def send_snapshot(state: Checkpoints, r: Replica, v: View) -> None:
    """The start_view of view v goes out with r's snapshot, if it has one."""
    o = state.checkpoint[r]
    sent = between(Op, largest(o, 1), o)
    state.snapshot.update((v, sent), lambda p: True)
    for name in executed_state(state):
        copy(state, (f"snapshot_{name}", v, sent), (f"saved_{name}", r))


def load_state(state: Checkpoints, r: Replica) -> None:
    """What a replica has executed is what its snapshot says."""
    for name in executed_state(state):
        if name not in loaded_apart(state):
            copy(state, (name, r), (f"saved_{name}", r))


@point
def install_state(state: Checkpoints, r: Replica, v: View, k: Op) -> None:
    """What r has executed, and its own snapshot, are the snapshot of op k that was sent with view v's start_view."""
    state.checkpoint[r] = k
    if state.cfg.drains_later:
        state.drained[r] = k
    state.commit_min[r] = k
    for name in executed_state(state):
        copy(state, (name, r), (f"snapshot_{name}", v, k))
        copy(state, (f"saved_{name}", r), (f"snapshot_{name}", v, k))
