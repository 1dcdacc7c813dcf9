"""Crash and restart from durable state (TigerBeetle, later: view and log_view live in the superblock)."""

from __future__ import annotations

from collections.abc import Callable

from viewproof.spec.lang import (
    NONE,
    Truth,
    action,
    all_of,
    any_of,
    between,
    forall,
    not_,
    point,
    require,
    tagged,
    where,
    within,
)
from viewproof.spec.vsr.core.state import (
    NORMAL,
    VIEW_CHANGE,
    Core,
    Length,
    Op,
    Replica,
    Restart,
    View,
    copy,
    executed_state,
    loaded_apart,
    primary,
    snapshot_op,
)


@tagged("crash")
@action
def restart(state: Core, r: Replica, n: Length) -> None:
    """A replica crashes and starts again with its log up to op n: all that was durable, and a prefix of what was
    being written.

    Being down is the same as being slow, so crash and restart are one step. Executed state is rebuilt by executing
    again.
    """
    recover(state, r, n, state.durable_view[r], state.durable_log_view[r])


def recover(
    state: Core,
    r: Replica,
    n: Op,
    view: View,
    log_view: View,
    commit_max: Op | None = None,
    survived: Callable[[Op], Truth] = lambda o: True,
) -> None:
    """Guard and effects of a restart that recovers the log up to op n, and this view and log_view.

    Of that log the journal holds what `survived`; what the snapshot holds is known to be committed, and what
    `commit_max` says.
    """
    require_restart(state, r, n)
    start_again(state, r, n, view, log_view, snapshot_op(state, r) if commit_max is None else commit_max, survived)


@point
def require_restart(state: Core, r: Replica, n: Op) -> None:
    """Replica r may crash, and start again with its log up to op n: nothing that was durable is above."""
    require(within(Restart, state.restarts + 1))
    require(n <= state.op[r])
    require(forall(between(Op, n + 1, state.op[r]), lambda o: not_(state.written[r, o])))


def start_again(
    state: Core,
    r: Replica,
    n: Op,
    view: View,
    log_view: View,
    commit_max: Op,
    survived: Callable[[Op], Truth] = lambda o: True,
    cut: bool = False,
) -> None:
    """Effects of a restart (`recover`); with `cut`, what was durable above n is gone.

    A backup with log_view = view is normal at once, and acknowledges what its journal holds.
    """
    base = snapshot_op(state, r)
    behind = any_of(log_view < view, primary(state, view) == r)
    state.restarts = state.restarts + 1
    state.view[r] = view
    state.log_view[r] = log_view
    state.status[r] = where(behind, VIEW_CHANGE, NORMAL)
    state.commit_min[r] = base
    state.commit_max[r] = commit_max
    load_state(state, r)
    state.entry.update((r, between(Op, n + 1, state.op[r])), lambda o: NONE)
    if cut:
        state.written.update((r, between(Op, base + 1, state.op[r])), lambda o: o <= n)
    else:
        state.written.update((r, between(Op, base + 1, n)), survived)
    state.ack.update(
        (view, r, between(Op, base + 1, n)),
        lambda o: where(all_of(not_(behind), survived(o)), state.entry[r, o], state.ack[view, r, o]),
    )
    state.op[r] = n


@point
def load_state(state: Core, r: Replica) -> None:
    """What r has executed is what a crash leaves of it: nothing, as it is not kept."""
    for name in executed_state(state):
        if name not in loaded_apart(state):
            copy(state, (name, r), None)
