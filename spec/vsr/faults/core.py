"""Mistakes in normal operation, view change, restart and state transfer of the core."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from viewproof.spec.lang import NONE, action, between, instead, require, tagged, value_of, where, within
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core import normal, restart, view_change
from viewproof.spec.vsr.core.state import NORMAL, Length, Op, Replica, View, primary
from viewproof.spec.vsr.faults.kinds import Fault, beside, instead_of


@action(r=Replica)
def execute(state: Any, r: Any) -> None:
    """A replica executes an op as soon as it is in its log, not when it is committed [seed 000]."""
    with instead({normal.require_committed: require_in_log}):
        normal.execute.fn(state, r)


def require_in_log(state: Any, r: Any, o: Any) -> None:
    """Op o is in the log of normal replica r."""
    require(state.status[r] == NORMAL)
    require(o <= state.op[r])


@tagged("crash")
@action(r=Replica, n=Length)
def restart_view_from_last_prepare(state: Any, r: Any, n: Any) -> None:
    """At restart the view is inferred from the last prepare in the journal [seed 003]."""
    view = where(n == 0, 0, lambda: value_of(state.entry[r, n]))
    restart.recover(state, r, n, view, view)


@action(r=Replica, v=View)
def on_get_state(state: Any, r: Any, v: Any) -> None:
    """A replica that sees a later view truncates its log to the commit number and adopts the view at once [VR
    Revisited §5.2].
    """
    require(within(View, v))
    require(v > state.view[r])
    require(primary(state, v) != r)
    require(state.received(r).sv[v])
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    state.durable_view[r] = v
    state.durable_log_view[r] = v
    state.op[r] = state.commit_min[r]
    cut = between(Op, state.commit_min[r] + 1, state.op[r])
    state.entry.update((r, cut), lambda o: NONE)
    state.written.update((r, cut), lambda o: False)


def _even_quorum(cfg: Config) -> Config:
    q = (cfg.replicas - 1) // 2 + 1
    return replace(cfg, quorum_replication=q, quorum_view_change=q)


FAULTS = (
    Fault(
        "commit.apply_at_replicate",
        (instead_of(normal.execute, act=execute),),
        drops=(
            "all_of(o <= state.op[r], lambda: state.written[r, o])",
            "o <= state.commit_max[r]",
        ),
    ),
    Fault("view.even_quorum", configure=_even_quorum),
    Fault(
        "boot.view_from_last_prepare",
        (instead_of(restart.restart, act=restart_view_from_last_prepare),),
    ),
    Fault(
        "state.getstate_truncates",
        comes_on_top=(beside(view_change.on_start_view, on_get_state),),
    ),
)
