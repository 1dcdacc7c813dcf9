"""Client table with a fixed number of slots: outcome of a request, what executing records, eviction (seed 000).

A slot is named by its client. `table` holds the number of the client's last executed request, `table_op` its op; 0
means no slot. With sessions (`sessions.py`) a slot also has the op and the incarnation of its register.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import (
    BOOL,
    NONE,
    Label,
    Schema,
    Values,
    all_of,
    any_of,
    between,
    forall,
    not_,
    point,
    require,
    some,
    up_to,
    value_of,
    where,
)
from viewproof.spec.vsr.config import ClientTable, Config
from viewproof.spec.vsr.core.state import ENTRY, EXECUTED, Client, Op, Replica, client_of, request_of


class Outcome(Label):
    """What a primary does with a request."""

    NEW: Outcome
    IN_PROGRESS: Outcome
    NO_SESSION: Outcome
    FENCED: Outcome
    STALE: Outcome
    DUPLICATE: Outcome
    GAP: Outcome


NEW, IN_PROGRESS, NO_SESSION, FENCED = Outcome.NEW, Outcome.IN_PROGRESS, Outcome.NO_SESSION, Outcome.FENCED
STALE, DUPLICATE, GAP = Outcome.STALE, Outcome.DUPLICATE, Outcome.GAP
DROPPED = (IN_PROGRESS, STALE, GAP)


def is_on(cfg: Config) -> bool:
    """Does the table differ from the core's: one slot per client, no sessions, one request of a client at a time?"""
    return cfg.client_table != ClientTable()


def declare(s: Schema, cfg: Config) -> None:
    """Declare what the table adds to the core."""
    slots = cfg.client_table.slots
    executed = (EXECUTED,)
    table_op = "client table: op of that request or register; 0 = no slot"
    s.state("table_op", (Replica, Client), up_to(Op), doc=table_op, tags=executed)
    if slots:
        evicted_to = "op of the slot evicted last: all slots have later ones"
        s.state("slots_used", (Replica,), Values(0, slots), doc="number of slots in use", tags=executed)
        s.state("evicted_to", (Replica,), up_to(Op), doc=evicted_to, tags=executed)
    s.ghost("recorded", (Op,), BOOL, doc="did the first execution of the op change the client table?")
    s.ghost("evicted_at", (Op,), up_to(Client), doc="client that lost its slot at the op's first execution; 0 = none")
    s.ghost("first_reply", (Op,), ENTRY, doc="entry that the first reply of the op names; 0 = not replied to")
    s.ghost("last_reply", (Op,), ENTRY, doc="entry that the latest reply of the op names")


def unexecuted(state: Any, r: Any, c: Any) -> Any:
    """Does r's log hold an entry of client c that it has not executed?"""
    return not_(
        forall(between(Op, state.commit_min[r] + 1, state.op[r]), lambda p: client_of(state, state.entry[r, p], p) != c)
    )


@point
def by_number(state: Any, r: Any, c: Any, s: Any) -> Any:
    """Outcome of request number s of a client that has a slot, in its session."""
    t = state.table[r, c]
    above = NEW if state.cfg.client_table.gaps else where(s == t + 1, NEW, GAP)
    return where(s < t, STALE, where(s == t, DUPLICATE, above))


def outcome(state: Any, r: Any, c: Any, s: Any) -> Any:
    """What primary r does with request s of client c, without sessions (first match, in the order of seed 000)."""
    if not is_on(state.cfg):
        has_slot = state.table[r, c] != 0
    else:
        has_slot = state.table_op[r, c] != 0
    return where(unexecuted(state, r, c), IN_PROGRESS, where(has_slot, by_number(state, r, c, s), NEW))


def on_the_wire(state: Any, c: Any, s: Any) -> Any:
    """May a copy of request s of client c arrive: is it one of `in_flight` after the last answered one, or older?"""
    ahead = state.cfg.client_table.in_flight
    return True if ahead == 0 or not is_on(state.cfg) else s <= state.replies[c] + ahead


def is_one_of(y: Any, outcomes: tuple[Outcome, ...]) -> Any:
    """Is the outcome among these?"""
    return any_of(*(y == wanted for wanted in outcomes))


def is_register(state: Any, entry: Any, o: Any) -> Any:
    """Does the prepare that an entry of a client names open a session?"""
    return request_of(state, entry, o) == 0


def session_of(state: Any, entry: Any, o: Any) -> Any:
    """The session of an entry of a client: a register's is its own op."""
    return where(is_register(state, entry, o), o, state.prepare_session[value_of(entry), o])


def in_table(state: Any, r: Any, o: Any, entry: Any) -> Any:
    """Does executing the entry change the table: always without sessions; with them a register, or a request in its
    client's session.
    """
    if not state.cfg.client_table.sessions:
        return True
    c = client_of(state, entry, o)
    return any_of(
        is_register(state, entry, o),
        all_of(state.table_op[r, c] != 0, state.table_session[r, c] == state.prepare_session[value_of(entry), o]),
    )


def needs_slot(state: Any, r: Any, o: Any, entry: Any) -> Any:
    """Does executing the entry give a slot to a client that has none?"""
    without = state.table_op[r, client_of(state, entry, o)] == 0
    return all_of(is_register(state, entry, o), without) if state.cfg.client_table.sessions else without


def has_room(state: Any, r: Any, o: Any, entry: Any) -> Any:
    """Can the entry be executed without an eviction?"""
    slots = state.cfg.client_table.slots
    return True if slots == 0 else any_of(state.slots_used[r] < slots, not_(needs_slot(state, r, o, entry)))


def require_table_slot(state: Any, r: Any, o: Any) -> None:
    """Op o can be executed without an eviction."""
    require(has_room(state, r, o, state.entry[r, o]))


@point
def slot_number(state: Any, r: Any, c: Any, s: Any) -> Any:
    """The request number that the slot of client c has once its request s (0: a register) is executed."""
    return s


@point
def slot_op(state: Any, r: Any, o: Any) -> Any:
    """The op that the slot of the client of op o is given."""
    return o


def record(state: Any, r: Any, o: Any, entry: Any) -> None:
    """What executing the entry at o does to the table of r."""
    c, s = client_of(state, entry, o), request_of(state, entry, o)
    table = state.cfg.client_table
    changes = in_table(state, r, o, entry)
    state.table[r, c] = where(changes, slot_number(state, r, c, s), state.table[r, c])
    state.table_op[r, c] = where(changes, slot_op(state, r, o), state.table_op[r, c])
    state.recorded[o] = where(state.first_executed[o] == NONE, changes, state.recorded[o])
    if table.sessions:
        opens = is_register(state, entry, o)
        state.table_session[r, c] = where(opens, o, state.table_session[r, c])
        state.table_incarnation[r, c] = where(
            opens, state.prepare_incarnation[value_of(entry), o], state.table_incarnation[r, c]
        )
    if table.slots:
        takes = all_of(needs_slot(state, r, o, entry), state.slots_used[r] < table.slots)
        state.slots_used[r] = where(takes, state.slots_used[r] + 1, state.slots_used[r])


@point
def named_entry(state: Any, r: Any, entry: Any) -> Any:
    """The entry that the bytes of a reply name, when r replies to one: itself, whoever answers, in whatever view."""
    return entry


def reply(state: Any, r: Any, o: Any, entry: Any, sends: Any) -> None:
    """Where `sends` holds, the client of the entry that is executed at o is sent the reply."""
    c, s = client_of(state, entry, o), request_of(state, entry, o)
    session = session_of(state, entry, o) if state.cfg.client_table.sessions else 0
    note_reply(state, sends, c, session, s, o, named_entry(state, r, entry))


def note_reply(state: Any, sends: Any, c: Any, x: Any, s: Any, p: Any, names: Any) -> None:
    """Where `sends` holds, client c is sent the reply of op p: request s (0: the register) of session x; its bytes name
    the entry `names`.
    """
    if state.cfg.client_table.sessions:
        old = state.session_replies[c, x]
        state.session_replies[c, x] = where(all_of(sends, old < some(s)), some(s), old)
    else:
        state.replies[c] = where(all_of(sends, state.replies[c] < s), s, state.replies[c])
    state.first_reply[p] = where(all_of(sends, state.first_reply[p] == NONE), names, state.first_reply[p])
    state.last_reply[p] = where(sends, names, state.last_reply[p])


@point
def evict(state: Any, r: Any, o: Any, c: Any) -> None:
    """Client c loses its slot on r to the entry that is executed at o."""
    state.table[r, c] = 0
    state.evicted_to[r] = state.table_op[r, c]
    state.table_op[r, c] = 0
    state.evicted_at[o] = where(state.first_executed[o] == NONE, c, state.evicted_at[o])
    if state.cfg.client_table.sessions:
        state.table_session[r, c] = 0
        state.table_incarnation[r, c] = 0


def slot_at(state: Any, r: Any, p: Any) -> Any:
    """Is the entry at p of r's log, executed, one that a slot still holds?"""
    c = client_of(state, state.entry[r, p], p)
    return all_of(c != 0, lambda: state.table_op[r, c] == p) if state.cfg.features else state.table_op[r, c] == p
