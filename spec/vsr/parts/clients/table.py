"""Client table with a fixed number of slots: outcome of a request, what executing records, eviction (seed 000)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Label,
    Spec,
    Truth,
    all_of,
    any_of,
    as_index,
    between,
    forall,
    not_,
    point,
    require,
    some,
    value_of,
    where,
)
from viewproof.spec.vsr.core.state import Client, Entry, Op, Replica, Request, client_of, request_of
from viewproof.spec.vsr.parts.clients.options import ClientTable
from viewproof.spec.vsr.parts.clients.state import Clients

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


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
EVICTING = (NO_SESSION, FENCED)


def is_on(cfg: Config) -> bool:
    """Does the table differ from the core's: one slot per client, no sessions, one request of a client at a time?"""
    return cfg.client_table != ClientTable()


def has_slots_for_all(s: Spec) -> bool:
    """Has the table a slot for each client of a bounded instance?"""
    slots: int = s.cfg.client_table.slots
    return len(s.instance.members(Client)) <= slots


def unexecuted(state: Clients, r: Replica, c: Client) -> Bool:
    """Does r's log hold an entry of client c that it has not executed?"""
    return not_(
        forall(between(Op, state.commit_min[r] + 1, state.op[r]), lambda p: client_of(state, state.entry[r, p], p) != c)
    )


@point
def by_number(state: Clients, r: Replica, c: Client, s: Request) -> Outcome:
    """Outcome of request number s of a client that has a slot, in its session."""
    t = state.table[r, c]
    above = NEW if state.cfg.client_table.gaps else where(s == t + 1, NEW, GAP)
    return where(s < t, STALE, where(s == t, DUPLICATE, above))


def outcome(state: Clients, r: Replica, c: Client, s: Request) -> Outcome:
    """What primary r does with request s of client c, without sessions (first match, in the order of seed 000)."""
    if not is_on(state.cfg):
        has_slot = state.table[r, c] != 0
    else:
        has_slot = state.table_op[r, c] != 0
    return where(unexecuted(state, r, c), IN_PROGRESS, where(has_slot, by_number(state, r, c, s), NEW))


def on_the_wire(state: Clients, c: Client, s: Request) -> Truth:
    """May a copy of request s of client c arrive: is it one of `in_flight` after the last answered one, or older?"""
    ahead = state.cfg.client_table.in_flight
    return True if ahead == 0 or not is_on(state.cfg) else s <= state.replies[c] + ahead


def is_one_of(y: Outcome, outcomes: tuple[Outcome, ...]) -> Bool:
    """Is the outcome among these?"""
    return any_of(*(y == wanted for wanted in outcomes))


def is_register(state: Clients, entry: Entry, o: Op) -> Bool:
    """Does the prepare that an entry of a client names open a session?"""
    return request_of(state, entry, o) == 0


def session_of(state: Clients, entry: Entry, o: Op) -> Op:
    """The session of an entry of a client: a register's is its own op."""
    return where(is_register(state, entry, o), o, state.prepare[value_of(entry), o].session)


def in_table(state: Clients, r: Replica, o: Op, entry: Entry) -> Truth:
    """Does executing the entry change the table: always without sessions; with them a register, or a request in its
    client's session.
    """
    if not state.cfg.client_table.sessions:
        return True
    c = client_of(state, entry, o)
    return any_of(
        is_register(state, entry, o),
        all_of(state.table_op[r, c] != 0, state.table_session[r, c] == state.prepare[value_of(entry), o].session),
    )


def needs_slot(state: Clients, r: Replica, o: Op, entry: Entry) -> Bool:
    """Does executing the entry give a slot to a client that has none?"""
    without = state.table_op[r, client_of(state, entry, o)] == 0
    return all_of(is_register(state, entry, o), without) if state.cfg.client_table.sessions else without


def has_room(state: Clients, r: Replica, o: Op, entry: Entry) -> Truth:
    """Can the entry be executed without an eviction?"""
    slots = state.cfg.client_table.slots
    return True if slots == 0 else any_of(state.slots_used[r] < slots, not_(needs_slot(state, r, o, entry)))


def require_table_slot(state: Clients, r: Replica, o: Op) -> None:
    """Op o can be executed without an eviction."""
    require(has_room(state, r, o, state.entry[r, o]))


@point
def slot_number(state: Clients, r: Replica, c: Client, s: Request) -> Request:
    """The request number that the slot of client c has once its request s (0: a register) is executed."""
    return s


@point
def slot_op(state: Clients, r: Replica, o: Op) -> Op:
    """The op that the slot of the client of op o is given."""
    return o


def record(state: Clients, r: Replica, o: Op, entry: Entry) -> None:
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
            opens, state.prepare[value_of(entry), o].incarnation, state.table_incarnation[r, c]
        )
    if table.slots:
        takes = all_of(needs_slot(state, r, o, entry), state.slots_used[r] < table.slots)
        state.slots_used[r] = where(takes, state.slots_used[r] + 1, state.slots_used[r])


@point
def named_entry(state: Clients, r: Replica, entry: Entry) -> Entry:
    """The entry that the bytes of a reply name, when r replies to one: itself, whoever answers, in whatever view."""
    return entry


def reply(state: Clients, r: Replica, o: Op, entry: Entry, sends: Truth) -> None:
    """Where `sends` holds, the client of the entry that is executed at o is sent the reply."""
    c, s = client_of(state, entry, o), request_of(state, entry, o)
    session = session_of(state, entry, o) if state.cfg.client_table.sessions else as_index(Op, 0)
    note_reply(state, sends, c, session, s, o, named_entry(state, r, entry))


def note_reply(state: Clients, sends: Truth, c: Client, x: Op, s: Request, p: Op, names: Entry) -> None:
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
def evict(state: Clients, r: Replica, o: Op, c: Client) -> None:
    """Client c loses its slot on r to the entry that is executed at o."""
    state.table[r, c] = 0
    state.evicted_to[r] = state.table_op[r, c]
    state.table_op[r, c] = 0
    state.evicted_at[o] = where(state.first_executed[o] == NONE, c, state.evicted_at[o])
    if state.cfg.client_table.sessions:
        state.table_session[r, c] = 0
        state.table_incarnation[r, c] = 0


def slot_at(state: Clients, r: Replica, p: Op) -> Bool:
    """Is the entry at p of r's log, executed, one that a slot still holds?"""
    c = client_of(state, state.entry[r, p], p)
    return all_of(c != 0, lambda: state.table_op[r, c] == p) if state.cfg.features else state.table_op[r, c] == p
