"""Sessions: a client registers through the log; its session is the op of the register (Iggy and TigerBeetle, later).

A client that begins anew registers with a higher incarnation, which fences its older session. A register has request
number 0. A client begins anew whenever it likes, and any copy it ever sent may arrive at any time.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import (
    NONE,
    Index,
    Schema,
    action,
    all_of,
    as_index,
    optional,
    point,
    require,
    up_to,
    value_of,
    where,
)
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import EXECUTED, NORMAL, Client, Op, Replica, Request, View, primary
from viewproof.spec.vsr.parts.clients.table import (
    DROPPED,
    DUPLICATE,
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


class Incarnation(Index, lo=1):
    """How often a client began anew."""


def is_on(cfg: Config) -> bool:
    """Do clients register?"""
    return cfg.client_table.sessions


def declare(s: Schema, cfg: Config) -> None:
    """Declare the variables of sessions."""
    by_primary = lambda view, *_: as_index(Replica, view % cfg.replicas)  # noqa: E731
    s.remove("replies")
    executed = (EXECUTED,)
    session, incarnation = "client table: session, the op of its register", "client table: the register's incarnation"
    s.state("table_session", (Replica, Client), up_to(Op), doc=session, tags=executed)
    s.state("table_incarnation", (Replica, Client), up_to(Incarnation), doc=incarnation, tags=executed)
    s.state(
        "session_replies",
        (Client, Op),
        optional(Request),
        doc="1 + number of the last request of the session that the client was sent a reply to; 0 = it has no session",
    )
    s.register("prepare_session", (View, Op), up_to(Op), sender=by_primary, doc="prepare: session of a request")
    s.register(
        "prepare_incarnation", (View, Op), up_to(Incarnation), sender=by_primary, doc="prepare: a register's; else 0"
    )


def on_the_wire(state: Any, c: Any, x: Any, s: Any) -> Any:
    """May a copy of request s of session x arrive: was the register answered, and is it one of `in_flight` after the
    last answered request, or older?
    """
    ahead = state.cfg.client_table.in_flight
    return (
        True if ahead == 0 else all_of(state.session_replies[c, x] != NONE, lambda: s <= answered(state, c, x) + ahead)
    )


@point
def answered(state: Any, c: Any, x: Any) -> Any:
    """The number up to which client c, in session x, has answers: each session counts from 1."""
    return value_of(state.session_replies[c, x])


def outcome(state: Any, r: Any, c: Any, x: Any, s: Any) -> Any:
    """What primary r does with request s of session x of client c (first match, docs/clients-and-control.md)."""
    session = state.table_session[r, c]
    with_slot = where(x < session, FENCED, where(x > session, IN_PROGRESS, by_number(state, r, c, s)))
    without = where(x > state.commit_min[r], IN_PROGRESS, NO_SESSION)
    return where(unexecuted(state, r, c), IN_PROGRESS, where(state.table_op[r, c] == 0, without, with_slot))


def register_outcome(state: Any, r: Any, c: Any, n: Any) -> Any:
    """What primary r does with the register of incarnation n of client c."""
    known = state.table_incarnation[r, c]
    with_slot = where(n < known, STALE, where(n == known, DUPLICATE, NEW))
    return where(unexecuted(state, r, c), IN_PROGRESS, where(state.table_op[r, c] == 0, NEW, with_slot))


@action(r=Replica, c=Client, x=Op, s=Request)
def on_request(state: Any, r: Any, c: Any, x: Any, s: Any) -> None:
    """The primary prepares a request of a session whose outcome is `new` (VR Revisited §4.1, step 2)."""
    v, o = state.view[r], state.op[r] + 1
    require(state.status[r] == NORMAL)
    require(primary(state, v) == r)
    require(on_the_wire(state, c, x, s))
    require(outcome(state, r, c, x, s) == NEW)
    normal.require_room(state, r, o)
    normal.prepare(state, r, v, o)
    state.prepare_client[v, o] = c
    state.prepare_session[v, o] = x
    state.prepare_request[v, o] = s


@action(r=Replica, c=Client, n=Incarnation)
def on_register(state: Any, r: Any, c: Any, n: Any) -> None:
    """The primary prepares a register whose outcome is `new`: it will open a session, and fence an older one."""
    v, o = state.view[r], state.op[r] + 1
    require(state.status[r] == NORMAL)
    require(primary(state, v) == r)
    require(register_outcome(state, r, c, n) == NEW)
    normal.require_room(state, r, o)
    normal.prepare(state, r, v, o)
    state.prepare_client[v, o] = c
    state.prepare_incarnation[v, o] = n


@action(r=Replica, c=Client, x=Op, s=Request, y=Outcome)
def drop_request(state: Any, r: Any, c: Any, x: Any, s: Any, y: Any) -> None:
    """The primary drops a request; y is its outcome: in_progress, stale or gap."""
    require(is_one_of(y, DROPPED))
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(on_the_wire(state, c, x, s))
    require(outcome(state, r, c, x, s) == y)


@action(r=Replica, c=Client, n=Incarnation, y=Outcome)
def drop_register(state: Any, r: Any, c: Any, n: Any, y: Any) -> None:
    """The primary drops a register; y is its outcome: in_progress or stale."""
    require(is_one_of(y, DROPPED))
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(register_outcome(state, r, c, n) == y)


@action(r=Replica, c=Client, x=Op, s=Request, y=Outcome)
def send_eviction(state: Any, r: Any, c: Any, x: Any, s: Any, y: Any) -> None:
    """The primary tells a client that its session is gone; y says how: no_session or fenced."""
    require(is_one_of(y, (NO_SESSION, FENCED)))
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(on_the_wire(state, c, x, s))
    require(outcome(state, r, c, x, s) == y)
