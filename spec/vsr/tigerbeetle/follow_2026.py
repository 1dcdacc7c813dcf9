"""Following a started view in the July 2026 build: its log, jumps to a checkpoint, repair of headers."""

from __future__ import annotations

from viewproof.spec.lang import Bool, action, all_of, any_of, between, forall, implies, largest, require, where
from viewproof.spec.vsr.tigerbeetle.node_2026 import keep_promises, put_header, remove_above
from viewproof.spec.vsr.tigerbeetle.normal_2026 import chained
from viewproof.spec.vsr.tigerbeetle.sorts import Message, Op, Prepare, Replica
from viewproof.spec.vsr.tigerbeetle.state_2026 import (
    KIND,
    NORMAL,
    RECOVERING_HEAD,
    SLOTS,
    VIEW_CHANGE,
    July,
    at,
    leads,
    prepare_max,
    primary,
    slot_of,
)
from viewproof.spec.vsr.tigerbeetle.view_2026 import drop_votes


def accepts_view(state: July, r: Replica, m: Message) -> Bool:
    """May r take the log of a view message: of its view or one it just entered, and not older than its own log?"""
    return all_of(
        state.m_kind[m] == KIND["view"],
        state.m_from[m] == primary(state, state.m_view[m]),
        state.m_from[m] != r,
        state.m_view[m] >= state.view[r],
        any_of(state.m_view[m] > state.log_view[r], state.m_op[m] >= state.op[r]),
    )


def tells_head(state: July, r: Replica, m: Message) -> Bool:
    """Was view message m surely sent after r started, if r is unsure of its head? An older one may end below what r
    acknowledged (I3).
    """
    return any_of(
        state.status[r] != RECOVERING_HEAD,
        m == state.syncing[r],
        state.m_view[m] > state.view[r],
        state.m_op[m] >= prepare_max(state.checkpoint[r]),
        all_of(state.nonce[r] != 0, state.m_nonce[m] == state.nonce[r]),
    )


def view_taken(state: July, r: Replica) -> Message:
    """The view message whose log r takes: the one whose checkpoint it jumps to, then newer ones as they come."""
    return where(all_of(state.syncing[r] != 0, state.taken[r] == 0), state.syncing[r], state.current[r])


@action
def install_log(state: July, r: Replica, h: Op, k: Op) -> None:
    """A backup takes the head that the primary of a started view tells, as far as its slots reach; or jumps with it to
    a later checkpoint.
    """
    m = view_taken(state, r)
    target = state.m_checkpoint[state.syncing[r]]
    base = where(state.syncing[r] != 0, largest(target, state.checkpoint[r]), state.checkpoint[r])
    require(state.up[r])
    require(any_of(state.status[r] == NORMAL, state.status[r] == VIEW_CHANGE, state.status[r] == RECOVERING_HEAD))
    require(accepts_view(state, r, m))
    require(tells_head(state, r, m))
    require(state.m_header[m, h] != 0)
    require(all_of(h <= state.m_op[m], h <= prepare_max(base)))
    require(
        forall(
            between(Op, h + 1, state.m_op[m]),
            lambda o: any_of(o > prepare_max(base), state.m_header[m, o] == 0),
        )
    )
    require(k == largest(state.commit_max[r], state.m_commit[m]))
    state.taken[r] = m
    state.view[r] = state.m_view[m]
    state.op[r] = h
    state.commit_max[r] = k
    state.commit_min[r] = where(state.syncing[r] != 0, largest(base, 0), state.commit_min[r])
    state.list_op[r] = state.m_op[m]
    state.list_low[r] = state.m_low[m]
    state.list_header.update((r, between(Op, state.m_low[m], state.m_op[m])), lambda o: state.m_header[m, o])
    remove_above(state, r, h)


@action
def follow_view(state: July, r: Replica) -> None:
    """With the view's log installed the replica is a normal backup of it; its log_view becomes durable next."""
    m = where(state.syncing[r] != 0, state.taken[r], state.current[r])
    require(state.up[r])
    require(any_of(state.status[r] == VIEW_CHANGE, state.status[r] == RECOVERING_HEAD))
    require(accepts_view(state, r, m))
    require(state.m_view[m] >= state.view[r])
    require(state.list_op[r] == state.m_op[m])
    state.status[r] = NORMAL
    state.view[r] = state.m_view[m]
    state.log_view[r] = state.m_view[m]
    keep_promises(state, r)
    drop_votes(state, r)


@action
def start_sync(state: July, r: Replica) -> None:
    """A replica that is far behind, or stuck, jumps to the checkpoint that a view message names."""
    m = state.current[r]
    require(state.up[r])
    require(state.m_kind[m] == KIND["view"])
    require(state.m_checkpoint[m] > state.checkpoint[r])
    require(tells_head(state, r, m))
    state.view[r] = where(state.status[r] == RECOVERING_HEAD, state.m_view[m], state.view[r])
    state.syncing[r] = m
    state.taken[r] = 0


@action
def end_sync(state: July, r: Replica) -> None:
    """The new checkpoint is durable."""
    require(state.up[r])
    require(state.syncing[r] != 0)
    require(state.checkpoint[r] == state.m_checkpoint[state.syncing[r]])
    state.syncing[r] = 0


@action
def repair_header(state: July, r: Replica, o: Op, e: Prepare, d: Op) -> None:
    """A header of the head's view, or linked to the head, takes its place below it; `d` = 1: it is there, dirty."""
    head = at(state, r, state.op[r])
    require(state.up[r])
    require(
        any_of(state.status[r] == NORMAL, all_of(state.status[r] == VIEW_CHANGE, leads(state, r), state.join_quorum[r]))
    )
    require(state.p_op[e] == o)
    require(state.p_view[e] <= state.view[r])
    require(any_of(o < state.op[r], all_of(o == state.op[r], at(state, r, o) == e)))
    require(o + SLOTS > state.op[r])
    require(implies(d == 1, all_of(at(state, r, o) == e, state.dirty[r, slot_of(o)])))
    require(implies(d == 0, at(state, r, o) != e))
    require(
        any_of(
            state.p_view[head] == state.p_view[e],
            all_of(
                state.p_parent[at(state, r, o + 1)] == e,
                chained(state, r, o + 1, state.op[r]),
            ),
            all_of(o == state.op[r], head == e),
        )
    )
    require(any_of(state.canonical[o] == 0, state.canonical[o] == e))
    put_header(state, r, o, e)


ACTIONS = (
    install_log,
    follow_view,
    start_sync,
    end_sync,
    repair_header,
)
