"""Mistakes in the client table: eviction, sessions, request numbers, cached replies."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from viewproof.spec.lang import Bool, action, all_of, any_of, forall, instead, not_, require, some, where
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import NORMAL, Client, Entry, Op, Replica, Request, client_of, primary, request_of
from viewproof.spec.vsr.parts.clients import requests as clients
from viewproof.spec.vsr.parts.clients import sessions
from viewproof.spec.vsr.parts.clients import table as client_table
from viewproof.spec.vsr.parts.clients.state import Clients, Incarnation
from viewproof.spec.vsr.stand_ins import Fault, instead_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def commit_max(state: Clients, r: Replica, o: Op) -> Op:
    """With what a slot is stamped: commit_max, as the reply is."""
    return state.commit_max[r]


@action
def execute_at_commit_max(state: Clients, r: Replica) -> None:
    """The slot is given commit_max, as the reply is stamped with it, in place of the op of the prepare [seed 000]."""
    with instead({client_table.slot_op: commit_max}):
        normal.execute.fn(state, r)


@action
def evict_lowest_commit_max(state: Clients, r: Replica, c: Client) -> None:
    """The slot with the lowest stamp is evicted, ties to the lowest client; the stamps are commit_max [seed 000]."""
    with instead({client_table.slot_op: commit_max, clients.is_lowest: has_lowest_stamp}):
        clients.execute_evicting.fn(state, r, c)


def has_lowest_stamp(state: Clients, r: Replica, c: Client) -> Bool:
    """Has no slot a lower stamp than client c's, nor a lower client the same?"""
    return forall(
        Client,
        lambda d: any_of(
            state.table_op[r, d] == 0,
            state.table_op[r, c] < state.table_op[r, d],
            all_of(state.table_op[r, c] == state.table_op[r, d], c <= d),
        ),
    )


def is_any(state: Clients, r: Replica, c: Client) -> Bool | bool:
    """Whichever slot comes first in a replica's own order."""
    return True


@action
def evict_any(state: Clients, r: Replica, c: Client) -> None:
    """Any slot may be evicted: the order of a hash map is another on each replica [seed 000]."""
    with instead({clients.is_lowest: is_any}):
        clients.execute_evicting.fn(state, r, c)


def record_as_primary(state: Clients, r: Replica, o: Op, entry: Entry) -> None:
    """Only the primary's client table holds the request of the entry that is executed at o."""
    c = client_of(state, entry, o)
    leads = primary(state, state.view[r]) == r
    state.table[r, c] = where(leads, request_of(state, entry, o), state.table[r, c])


@action
def execute_recording_as_primary(state: Clients, r: Replica) -> None:
    """A backup executes the next op, and leaves its client table as it is [seed 000]."""
    with instead({normal.record: record_as_primary}):
        normal.execute.fn(state, r)


@action
def record_uncommitted(state: Clients, r: Replica, c: Client, s: Request) -> None:
    """The client table records the request number when the request is prepared [VR Revisited §4.1]."""
    (clients.on_request if client_table.is_on(state.cfg) else normal.on_request).fn(state, r, c, s)
    state.table[r, c] = s
    if client_table.is_on(state.cfg):
        state.table_op[r, c] = state.op[r] + 1


@action
def on_register_again(state: Clients, r: Replica, c: Client, n: Incarnation) -> None:
    """A register is prepared whatever the client's slot says: a delayed copy opens a session again [TigerBeetle]."""
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(not_(client_table.unexecuted(state, r, c)))
    sessions.prepare_register(state, r, c, n)


def own_view(state: Clients, r: Replica, entry: Entry) -> Entry:
    """The view of who replies, as an entry."""
    return some(state.view[r])


@action
def execute_naming_view(state: Clients, r: Replica) -> None:
    """The reply names the primary's view, not that of the prepare [Iggy, later]."""
    with instead({client_table.named_entry: own_view}):
        normal.execute.fn(state, r)


@action
def evict_naming_view(state: Clients, r: Replica, c: Client) -> None:
    """The reply of an op that evicts names the primary's view [Iggy, later]."""
    with instead({client_table.named_entry: own_view}):
        clients.execute_evicting.fn(state, r, c)


@action
def resend_naming_view(state: Clients, r: Replica, c: Client) -> None:
    """A reply that is sent again names the view in which it is sent again [Iggy, later]."""
    with instead({client_table.named_entry: own_view}):
        clients.resend_reply.fn(state, r, c)


def own_number(state: Clients, r: Replica, c: Client, s: Request) -> Request:
    """The number of the entry that is executed, 0 for a register."""
    return s


@action
def execute_resetting_watermark(state: Clients, r: Replica) -> None:
    """A register sets the watermark of its client's slot back: its numbers count from the start [Iggy, later]."""
    with instead({client_table.slot_number: own_number}):
        normal.execute.fn(state, r)


def _without_sessions(cfg: Config) -> Config:
    return replace(cfg, client_table=replace(cfg.client_table, sessions=False, cached=0, forgets=False))


def _with_gaps(cfg: Config) -> Config:
    return replace(cfg, client_table=replace(cfg.client_table, gaps=True))


def _needs_slots(cfg: Config) -> str:
    return "" if cfg.client_table.slots else "needs a client table with slots"


def _needs_cache(cfg: Config) -> str:
    return "" if cfg.client_table.cached else "needs a table that keeps several replies; see the model iggy_clients"


def _needs_sessions(cfg: Config) -> str:
    return "" if cfg.client_table.sessions else "needs sessions"


def _needs_none(cfg: Config) -> str:
    return "shows without sessions only" if cfg.client_table.sessions else ""


FAULTS = (
    Fault(
        "table.evict_by_commit_max",
        (
            instead_of(normal.execute, act=execute_at_commit_max),
            instead_of(clients.execute_evicting, act=evict_lowest_commit_max),
        ),
        refuses=_needs_slots,
        drops=("is_lowest(state, r, c)",),
    ),
    Fault(
        "table.evict_hash_order",
        (instead_of(clients.execute_evicting, act=evict_any),),
        refuses=_needs_slots,
        drops=("is_lowest(state, r, c)",),
    ),
    Fault(
        "table.primary_only",
        (instead_of(normal.execute, act=execute_recording_as_primary),),
        refuses=lambda cfg: "shows with a slot for every client only" if client_table.is_on(cfg) else "",
    ),
    Fault(
        "table.evict_forgets",
        configure=_without_sessions,
        refuses=_needs_slots,
    ),
    Fault("table.gap_accepted", configure=_with_gaps),
    Fault(
        "table.record_uncommitted",
        (instead_of(normal.on_request, clients.on_request, act=record_uncommitted),),
        refuses=_needs_none,
    ),
    Fault(
        "table.replayed_register",
        (instead_of(sessions.on_register, act=on_register_again),),
        refuses=_needs_sessions,
        drops=("register_outcome(state, r, c, n) == NEW",),
    ),
    Fault(
        "table.watermark_reset",
        (instead_of(normal.execute, act=execute_resetting_watermark),),
        refuses=_needs_cache,
    ),
    Fault(
        "table.reply_from_current_view",
        (
            instead_of(normal.execute, act=execute_naming_view),
            instead_of(clients.execute_evicting, act=evict_naming_view),
            instead_of(clients.resend_reply, act=resend_naming_view),
        ),
        refuses=_needs_slots,
    ),
)
