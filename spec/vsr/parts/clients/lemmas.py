"""Lemmas about a client table with slots and sessions: why no request is executed twice, and why all replicas hold and
evict the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Predicate,
    Truth,
    all_of,
    any_of,
    between,
    count,
    exists,
    forall,
    implies,
    invariant,
    not_,
    value_of,
    where,
)
from viewproof.spec.vsr.core.lemmas.words import each_replica, each_view_entry
from viewproof.spec.vsr.core.state import Client, Entry, Op, Replica, View, client_of, entry_of_view, request_of
from viewproof.spec.vsr.parts.clients.invariants import incarnation_at, session_at, slot
from viewproof.spec.vsr.parts.clients.state import Clients
from viewproof.spec.vsr.parts.clients.table import is_register, session_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def in_log(s: Clients, v: View, o: Op) -> Bool:
    """Is there an entry at op o of view v's log: in its start_view, or prepared in it?"""
    return any_of(o <= s.sv[v].op, s.prepare[v, o].client != 0)


def each_log_entry(s: Clients, body: Callable[[View, Op, Entry], Truth]) -> Bool:
    """For every view and op at which its log has an entry: body(view, op, entry)."""
    return each_view_entry(lambda v, o: implies(in_log(s, v, o), lambda: body(v, o, entry_of_view(s, v, o))))


def is_request(s: Clients, entry: Entry, o: Op) -> Bool:
    """Is the entry a request: no register, no control entry?"""
    return request_of(s, entry, o) != 0


def same_client(s: Clients, a: Entry, o: Op, b: Entry, p: Op) -> Bool:
    """Are entries a (at o) and b (at p) of one client? Control entries are of none."""
    same = client_of(s, a, o) == client_of(s, b, p)
    return all_of(client_of(s, a, o) != 0, same) if s.cfg.features else same


def same_session(s: Clients, a: Entry, o: Op, b: Entry, p: Op) -> Bool:
    """Are entries a (at o) and b (at p) of one client and one session?"""
    same = same_client(s, a, o, b, p)
    return all_of(same, session_of(s, a, o) == session_of(s, b, p)) if s.cfg.client_table.sessions else same


@invariant("table.prepare_fields", "a prepare is a request or a register")
def prepare_fields(s: Clients) -> Bool:
    """A request that was prepared has a number and the session of an earlier op; a register only an incarnation; a
    prepare that was not sent has neither.
    """
    return each_view_entry(
        lambda v, o: where(
            s.prepare[v, o].client == 0,
            all_of(s.prepare[v, o].request == 0, s.prepare[v, o].session == 0, s.prepare[v, o].incarnation == 0),
            where(
                s.prepare[v, o].request == 0,
                all_of(s.prepare[v, o].session == 0, s.prepare[v, o].incarnation != 0),
                all_of(s.prepare[v, o].session != 0, s.prepare[v, o].session < o, s.prepare[v, o].incarnation == 0),
            ),
        )
    )


@invariant("table.not_executed", "an op that nobody executed has no history")
def not_executed(s: Clients) -> Bool:
    """What is kept of the first execution of an op, and of its replies, is empty before; a reply names the entry."""
    return forall(
        Op,
        lambda o: all_of(
            any_of(s.first_executed[o] != NONE, all_of(not_(s.recorded[o]), s.evicted_at[o] == 0)),
            any_of(s.first_reply[o] == NONE, s.first_reply[o] == s.first_executed[o]),
        ),
    )


@invariant("table.slots", "slots are counted, and above evicted_to")
def slots(s: Clients) -> Bool:
    """`slots_used` is the number of clients with a slot; every slot has an op above `evicted_to`."""
    return each_replica(lambda r: slots_counted(s, r))


def slots_counted(s: Clients, r: Replica) -> Bool:
    """Does r count its slots, and are they above what was evicted?"""
    return all_of(
        s.slots_used[r] == count(Client, lambda c: s.table_op[r, c] != 0),
        s.evicted_to[r] <= s.commit_min[r],
        forall(Client, lambda c: any_of(s.table_op[r, c] == 0, s.evicted_to[r] < s.table_op[r, c])),
    )


@invariant("table.one_unexecuted", "a client has one unexecuted entry in a log")
def one_unexecuted(s: Clients) -> Bool:
    """Of two entries of one client in a view's log the earlier one was executed."""
    return each_log_entry(
        s,
        lambda v, o, a: forall(
            between(Op, 1, o - 1),
            lambda p: any_of(
                not_(same_client(s, a, o, entry_of_view(s, v, p), p)),
                s.first_executed[p] == entry_of_view(s, v, p),
            ),
        ),
    )


@invariant("table.requests_rise", "request numbers rise along a log")
def requests_rise(s: Clients) -> Bool:
    """Of two requests of one session in a view's log the later one has the larger number."""
    return each_log_entry(
        s,
        lambda v, o, a: forall(
            between(Op, 1, o - 1),
            lambda p: rises(s, a, o, entry_of_view(s, v, p), p),
        ),
    )


def rises(s: Clients, a: Entry, o: Op, b: Entry, p: Op) -> Bool:
    """If entry a at o and b at p are requests of one session, a's number is larger."""
    return implies(
        all_of(is_request(s, a, o), is_request(s, b, p), same_session(s, a, o, b, p)),
        lambda: request_of(s, b, p) < request_of(s, a, o),
    )


@invariant("table.no_gap", "request numbers have no gap in a log")
def no_gap(s: Clients) -> Bool:
    """Before a request of a session that is not its first, a view's log has the one with the number below."""
    return each_log_entry(
        s,
        lambda v, o, a: any_of(
            request_of(s, a, o) <= 1,
            lambda: exists(
                between(Op, 1, o - 1),
                lambda p: all_of(
                    same_session(s, a, o, entry_of_view(s, v, p), p),
                    request_of(s, entry_of_view(s, v, p), p) + 1 == request_of(s, a, o),
                ),
            ),
        ),
    )


@invariant("table.fresh_register", "a register is newer than its client's slot")
def fresh_register(s: Clients) -> Bool:
    """A register in a view's log has an incarnation above that of its client's slot after the last executed op m
    before it, if the client has no entry since.
    """
    return each_log_entry(
        s,
        lambda v, o, a: implies(
            all_of(client_of(s, a, o) != 0, is_register(s, a, o)),
            lambda: forall(between(Op, 1, o - 1), lambda m: implies(since(s, v, o, a, m), lambda: above(s, a, o, m))),
        ),
    )


def since(s: Clients, v: View, o: Op, a: Entry, m: Op) -> Bool:
    """Was the entry at m of view v's log the last executed one before o; and has the client of entry a at o no entry
    between?
    """
    return all_of(
        s.first_executed[m] != NONE,
        s.first_executed[m] == entry_of_view(s, v, m),
        any_of(m + 1 == o, lambda: s.first_executed[m + 1] == NONE),
        forall(between(Op, m + 1, o - 1), lambda q: client_of(s, entry_of_view(s, v, q), q) != client_of(s, a, o)),
    )


def above(s: Clients, a: Entry, o: Op, m: Op) -> Bool:
    """Is the incarnation of register a at o above that of its client's slot after op m, if it has one?"""
    return forall(
        between(Op, 1, m),
        lambda p: implies(
            slot(s, m, client_of(s, a, o)) == p,
            lambda: incarnation_at(s, session_at(s, p)) < s.prepare[value_of(a), o].incarnation,
        ),
    )


@invariant("table.answered_before", "a request follows the answer to the one before")
def answered_before(s: Clients) -> Bool:
    """A client sent a request only after the answer to the one `in_flight` before it."""
    return each_view_entry(
        lambda v, o: any_of(
            s.prepare[v, o].client == 0,
            lambda: s.prepare[v, o].request <= s.replies[s.prepare[v, o].client] + s.cfg.client_table.in_flight,
        )
    )


def lemmas(cfg: Config) -> tuple[Predicate, ...]:
    """The lemmas that make sense under a configuration."""
    table = cfg.client_table
    found: tuple[Predicate, ...] = (not_executed, one_unexecuted, *(() if table.forgets else (requests_rise,)))
    if table.sessions:
        found += (prepare_fields, no_gap, fresh_register)
    elif table.in_flight:
        found += (answered_before,)
    return (*found, slots) if table.slots else found
