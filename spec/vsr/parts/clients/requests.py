"""Requests under a client table with slots, without sessions: the actions that differ from the core's (seed 000)."""

from __future__ import annotations

from viewproof.spec.lang import Bool, action, as_index, between, forall, not_, point, require
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import NORMAL, Client, Op, Replica, Request, client_of, primary
from viewproof.spec.vsr.parts.clients.state import Clients
from viewproof.spec.vsr.parts.clients.table import (
    DROPPED,
    NEW,
    Outcome,
    evict,
    is_one_of,
    named_entry,
    needs_slot,
    note_reply,
    on_the_wire,
    outcome,
    slot_at,
    unexecuted,
)


@action
def on_request(state: Clients, r: Replica, c: Client, s: Request) -> None:
    """The primary prepares a request whose outcome is `new` (VR Revisited §4.1, step 2; seed 000)."""
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(on_the_wire(state, c, s))
    require(outcome(state, r, c, s) == NEW)
    normal.require_room(state, r, state.op[r] + 1)
    normal.prepare_request(state, r, c, s)


@action
def drop_request(state: Clients, r: Replica, c: Client, s: Request, y: Outcome) -> None:
    """The primary drops a request; y is its outcome: in_progress, stale or gap."""
    require(is_one_of(y, DROPPED))
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(on_the_wire(state, c, s))
    require(outcome(state, r, c, s) == y)


@action
def execute_evicting(state: Clients, r: Replica, c: Client) -> None:
    """A replica executes the next op, whose client takes the slot of client c: that with the lowest op (seed 000).

    Slots have ops above `evicted_to`, so only those between it and c's are looked at.
    """
    o = require_eviction(state, r, c)
    require(is_lowest(state, r, c))
    normal.execute_request(state, r, o, state.entry[r, o])
    evict(state, r, o, c)


@point
def is_lowest(state: Clients, r: Replica, c: Client) -> Bool:
    """Is no op below that of client c's slot still in a slot?"""
    return forall(between(Op, state.evicted_to[r] + 1, state.table_op[r, c] - 1), lambda p: not_(slot_at(state, r, p)))


def require_eviction(state: Clients, r: Replica, c: Client) -> Op:
    """Replica r may execute its next op, which needs a slot, but none is free; client c has one. Returns the op."""
    o = state.commit_min[r] + 1
    normal.require_committed(state, r, o)
    require(normal.is_request(state, state.entry[r, o], o))
    require(state.slots_used[r] == state.cfg.client_table.slots)
    require(needs_slot(state, r, o, state.entry[r, o]))
    require(c != client_of(state, state.entry[r, o], o))
    require(state.table_op[r, c] != 0)
    return o


@action
def resend_reply(state: Clients, r: Replica, c: Client) -> None:
    """The primary answers a repeated request, or register, whose outcome is `duplicate`, from the client's slot.

    It names the entry that was executed, whoever answers, in whatever view (Iggy, later).
    """
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(state.table_op[r, c] != 0)
    require(not_(unexecuted(state, r, c)))
    p = state.table_op[r, c]
    session = state.table_session[r, c] if state.cfg.client_table.sessions else as_index(Op, 0)
    note_reply(state, True, c, session, state.table[r, c], p, named_entry(state, r, state.entry[r, p]))
