"""Iggy's restart: a replica that comes back is mute and probes, until a start_view or an election brings it back."""

from __future__ import annotations

from collections.abc import Callable

from viewproof.spec.lang import NONE, action, between, largest, maximum, require, some, tagged, where, within
from viewproof.spec.vsr.core.restart import load_state
from viewproof.spec.vsr.core.state import RECOVERING, Entry, Length, Op, Replica, Restart
from viewproof.spec.vsr.parts.iggy.journal import cut_journal, forget_pipeline, journal_end
from viewproof.spec.vsr.parts.repair.state import WithBits, set_headers


@tagged("crash")
@action
def restart(state: WithBits, r: Replica, k: Length) -> None:
    """A replica crashes and comes back with view and log_view from its superblock, and k, the largest commit number
    that a prepare in its journal has. Whatever it is, it is recovering: it votes, acknowledges and answers nothing.
    """
    restart_knowing(state, r, k, recovered)


def restart_knowing(state: WithBits, r: Replica, k: Op, header: Callable[[WithBits, Replica, Op], Entry]) -> None:
    """Guard and effects of a restart that knows of its log what `header(state, r, o)` says."""
    require(within(Restart, state.restarts + 1))
    require(k <= state.commit_max[r])
    log = between(Op, 1, largest(journal_end(state, r), state.sv[state.durable_log_view[r]].op))
    n = maximum(log, lambda o: where(header(state, r, o) != NONE, o, 0))
    state.restarts = state.restarts + 1
    state.status[r] = RECOVERING
    state.view[r] = state.durable_view[r]
    state.log_view[r] = state.durable_log_view[r]
    state.merged[r] = NONE
    state.commit_min[r] = 0
    state.commit_max[r] = k
    load_state(state, r)
    set_headers(state, r, log, lambda o: header(state, r, o))
    cut_journal(state, r, 1, n, lambda o: header(state, r, o))
    forget_pipeline(state, r)
    state.op[r] = n


def recovered(state: WithBits, r: Replica, o: Op) -> Entry:
    """The entry that r's log has at o: of the log that its log_view started with, whose headers are durable with it, or
    above that a prepare of that view in its journal; 0 for none.
    """
    x = state.durable_log_view[r]
    appended = where(state.body[r, o] == some(x), some(x), NONE)
    return where(o <= state.sv[x].op, lambda: state.sv[x].entry[o], appended)
