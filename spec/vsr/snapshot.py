"""What a snapshot holds, and its way: made durable, sent with a start_view, loaded at a restart."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import all_of, between, largest, where
from viewproof.spec.lang.vocabulary import Between
from viewproof.spec.vsr.partition_state import FROM_MESSAGES, Boot, take_messages
from viewproof.spec.vsr.state import NORMAL, Op, executed_state, primary


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


def load_state(state: Any, r: Any, boot: Boot = FROM_MESSAGES) -> None:
    """What a replica has executed is what its snapshot says; nothing, without one. Partitions come as `boot` says."""
    if state.cfg.partitions.count:
        boot.load(state, r)
    for name in executed_state(state):
        if name in boot.loads:
            continue
        copy(state, (name, r), (f"saved_{name}", r) if state.cfg.checkpoints else None)


def lose_state(state: Any, r: Any) -> None:
    """Nothing is left of what a replica has executed, nor a snapshot of it."""
    messages = ("next_offset",) if state.cfg.partitions.count else ()
    for name in (*executed_state(state), *messages):
        copy(state, (name, r), None)
    if state.cfg.checkpoints:
        state.checkpoint[r] = 0
        for name in executed_state(state):
            copy(state, (f"saved_{name}", r), None)


def install_state(state: Any, r: Any, v: Any, k: Any) -> None:
    """What r has executed, and its own snapshot, are the snapshot of op k that was sent with view v's start_view."""
    state.checkpoint[r] = k
    if state.cfg.drains_later:
        state.drained[r] = k
    state.commit_min[r] = k
    if state.cfg.partitions.count:
        take_messages(state, r, v, k)
    for name in executed_state(state):
        copy(state, (name, r), (f"snapshot_{name}", v, k))
        copy(state, (f"saved_{name}", r), (f"snapshot_{name}", v, k))


def copy(state: Any, to: tuple[Any, ...], source: tuple[Any, ...] | None) -> None:
    """Set all cells of a variable under an index prefix, `(name, *prefix)`, to those of another one; to 0 without.

    A member of the prefix may be a range: the update is then made for each of its members.
    """
    name, *prefix = to
    rest = state.schema.vars[name].index[len(prefix) :]
    ranges = sum(isinstance(p, Between) for p in prefix)

    def value(*bound: Any) -> Any:
        if source is None:
            return 0
        return getattr(state, source[0])[(*source[1:], *bound[ranges:])]

    if rest or ranges:
        getattr(state, name).update((*prefix, *rest), value)
    else:
        getattr(state, name)[tuple(prefix)] = value()
