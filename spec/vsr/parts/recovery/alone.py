"""Restart of a cluster of one: no one could answer, so the journal decides (seed 002; TigerBeetle, later)."""

from __future__ import annotations

from viewproof.spec.lang import NONE, action, between, each, forall, maximum, not_, require, tagged, where, within
from viewproof.spec.vsr.core.restart import load_state
from viewproof.spec.vsr.core.state import NORMAL, Op, Replica, Restart, StartView, View
from viewproof.spec.vsr.parts.repair.state import Repaired, set_headers


@tagged("crash")
@action
def restart(state: Repaired, r: Replica) -> None:
    """The only replica crashes, finds no faulty slot, replays its journal, all of which counts as committed, and goes
    on in the next view.

    In the same view it could prepare another request at an op whose write was cut off.
    """
    v = state.durable_view[r] + 1
    require(within(View, v))
    start_alone(state, r, v)


def start_alone(state: Repaired, r: Replica, v: View) -> None:
    """Guard and effects of a restart that starts view v with what the journal holds; it stops at a faulty slot."""
    log = between(Op, 1, state.op[r])
    require(within(Restart, state.restarts + 1))
    require(forall(log, lambda o: not_(state.faulty[r, o])))
    n = maximum(log, lambda o: where(state.written[r, o], o, 0))
    state.restarts = state.restarts + 1
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    state.durable_view[r] = v
    state.durable_log_view[r] = v
    state.commit_min[r] = 0
    state.commit_max[r] = n
    load_state(state, r)
    state.memory.update((r, log), lambda o: NONE)
    set_headers(state, r, log, lambda o: where(o <= n, state.entry[r, o], NONE))
    state.op[r] = n
    state.sv[v] = StartView(op=n, entry=each(between(Op, 1, n), lambda o: state.entry[r, o]))
    state.commit_sent[v] = n
    state.ack.update((v, r, between(Op, 1, n)), lambda o: state.entry[r, o])
