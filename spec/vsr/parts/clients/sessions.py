"""Sessions: a client registers through the log; its session is the op of the register (Iggy and TigerBeetle, later).

A client that begins anew registers with a higher incarnation, which fences its older session. A register has request
number 0. A client begins anew whenever it likes, and any copy it ever sent may arrive at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    BLANK,
    NONE,
    Spec,
    Truth,
    action,
    all_of,
    point,
    require,
    value_of,
    where,
)
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import NORMAL, Client, Op, Replica, Request, parent_of, primary
from viewproof.spec.vsr.parts.clients.state import Clients, Incarnation, SessionPrepare
from viewproof.spec.vsr.parts.clients.table import (
    DROPPED,
    DUPLICATE,
    EVICTING,
    FENCED,
    IN_PROGRESS,
    NEW,
    NO_SESSION,
    STALE,
    Outcome,
    by_number,
    is_one_of,
    unexecuted,
)

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def is_on(cfg: Config) -> bool:
    """Do clients register?"""
    return cfg.client_table.sessions


def registers(s: Spec) -> int:
    """How many ops of a bounded instance registers take, and the requests of all incarnations but the first."""
    incarnations, requests = s.instance.bounds[Incarnation.name], len(s.instance.members(Request))
    return len(s.instance.members(Client)) * (incarnations * (1 + requests) - requests)


def on_the_wire(state: Clients, c: Client, x: Op, s: Request) -> Truth:
    """May a copy of request s of session x arrive: was the register answered, and is it one of `in_flight` after the
    last answered request, or older?
    """
    ahead = state.cfg.client_table.in_flight
    return (
        True if ahead == 0 else all_of(state.session_replies[c, x] != NONE, lambda: s <= answered(state, c, x) + ahead)
    )


@point
def answered(state: Clients, c: Client, x: Op) -> Request:
    """The number up to which client c, in session x, has answers: each session counts from 1."""
    return value_of(state.session_replies[c, x])


def outcome(state: Clients, r: Replica, c: Client, x: Op, s: Request) -> Outcome:
    """What primary r does with request s of session x of client c (first match, docs/clients-and-control.md)."""
    session = state.table_session[r, c]
    with_slot = where(x < session, FENCED, where(x > session, IN_PROGRESS, by_number(state, r, c, s)))
    without = where(x > state.commit_min[r], IN_PROGRESS, NO_SESSION)
    return where(unexecuted(state, r, c), IN_PROGRESS, where(state.table_op[r, c] == 0, without, with_slot))


def register_outcome(state: Clients, r: Replica, c: Client, n: Incarnation) -> Outcome:
    """What primary r does with the register of incarnation n of client c."""
    known = state.table_incarnation[r, c]
    with_slot = where(n < known, STALE, where(n == known, DUPLICATE, NEW))
    return where(unexecuted(state, r, c), IN_PROGRESS, where(state.table_op[r, c] == 0, NEW, with_slot))


@action
def on_request(state: Clients, r: Replica, c: Client, x: Op, s: Request) -> None:
    """The primary prepares a request of a session whose outcome is `new` (VR Revisited §4.1, step 2)."""
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(on_the_wire(state, c, x, s))
    require(outcome(state, r, c, x, s) == NEW)
    o = state.op[r] + 1
    normal.require_room(state, r, o)
    message = SessionPrepare(parent=parent_of(state, r, o), client=c, session=x, request=s, incarnation=BLANK)
    normal.prepare(state, r, o, message)


@action
def on_register(state: Clients, r: Replica, c: Client, n: Incarnation) -> None:
    """The primary prepares a register whose outcome is `new`: it will open a session, and fence an older one."""
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(register_outcome(state, r, c, n) == NEW)
    prepare_register(state, r, c, n)


def prepare_register(state: Clients, r: Replica, c: Client, n: Incarnation) -> None:
    """Primary r, if there is room, takes the register of incarnation n of client c into its log, and sends it."""
    o = state.op[r] + 1
    normal.require_room(state, r, o)
    message = SessionPrepare(parent=parent_of(state, r, o), client=c, request=BLANK, session=BLANK, incarnation=n)
    normal.prepare(state, r, o, message)


@action
def drop_request(state: Clients, r: Replica, c: Client, x: Op, s: Request, y: Outcome) -> None:
    """The primary drops a request; y is its outcome: in_progress, stale or gap."""
    require(is_one_of(y, DROPPED))
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(on_the_wire(state, c, x, s))
    require(outcome(state, r, c, x, s) == y)


@action
def drop_register(state: Clients, r: Replica, c: Client, n: Incarnation, y: Outcome) -> None:
    """The primary drops a register; y is its outcome: in_progress or stale."""
    require(is_one_of(y, DROPPED))
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(register_outcome(state, r, c, n) == y)


@action
def send_eviction(state: Clients, r: Replica, c: Client, x: Op, s: Request, y: Outcome) -> None:
    """The primary tells a client that its session is gone; y says how: no_session or fenced."""
    require(is_one_of(y, EVICTING))
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(on_the_wire(state, c, x, s))
    require(outcome(state, r, c, x, s) == y)
