"""What the client table must satisfy: I8, I9, and the half of L2 that a state can break.

The table after op m is a function of the executed prefix. It is told by two facts per op, kept by whoever executed it
first: did the table take it in, and whose slot did that cost. `slot` finds a client's slot from them.
"""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Bool,
    Truth,
    all_of,
    any_of,
    between,
    cases,
    count,
    exists,
    forall,
    implies,
    invariant,
    joined,
    maximum,
    not_,
    point,
    some,
    value_of,
    where,
    within,
)
from viewproof.spec.vsr.core.state import Client, Op, Replica, Request, client_of, request_of
from viewproof.spec.vsr.parts.clients.state import Clients, Incarnation
from viewproof.spec.vsr.parts.clients.table import is_register, session_of


def is_of(s: Clients, o: Op, c: Client) -> Bool:
    """Was op o executed, and is it an entry of client c?"""
    return all_of(s.first_executed[o] != NONE, lambda: client_of(s, s.first_executed[o], o) == c)


def slot(s: Clients, m: Op, c: Client) -> Op:
    """Op of client c's slot after op m: the last of its entries that the table took in, unless the slot was evicted
    since; 0 = no slot.
    """
    return maximum(
        between(Op, 1, m),
        lambda p: where(
            all_of(
                s.recorded[p],
                lambda: is_of(s, p, c),
                lambda: forall(between(Op, p + 1, m), lambda q: s.evicted_at[q] != c),
            ),
            p,
            0,
        ),
    )


def session_at(s: Clients, p: Op) -> Op:
    """Session of the executed entry at p."""
    return session_of(s, s.first_executed[p], p)


def incarnation_at(s: Clients, p: Op) -> Incarnation:
    """Incarnation of the executed register at p."""
    return s.prepare[value_of(s.first_executed[p]), p].incarnation


def register_at(s: Clients, o: Op) -> Truth:
    """Is the executed entry at o a register?"""
    return is_register(s, s.first_executed[o], o) if s.cfg.client_table.sessions else False


def same_request(s: Clients, o: Op, p: Op) -> Bool:
    """Are the executed entries at o and p one request of one client in one session?"""
    a, b = s.first_executed[o], s.first_executed[p]
    same = [client_of(s, a, o) == client_of(s, b, p), request_of(s, a, o) == request_of(s, b, p)]
    if s.cfg.client_table.sessions:
        same += [not_(is_register(s, a, o)), in_one_session(s, o, p)]
    if s.cfg.client_table.forgets:
        same.append(not_(was_forgotten(s, o, p)))
    return all_of(client_of(s, a, o) != 0, *same)


def was_forgotten(s: Clients, o: Op, p: Op) -> Bool:
    """Did the client of the executed entry at p lose its slot between p and o?"""
    return exists(between(Op, p + 1, o - 1), lambda q: s.evicted_at[q] == client_of(s, s.first_executed[p], p))


@joined(any_of)
def in_one_session(s: Clients, o: Op, p: Op) -> Bool:
    """Must a request be known at o from the execution at p: are both of one session?"""
    return session_at(s, o) == session_at(s, p)


def same_incarnation(s: Clients, o: Op, p: Op) -> Bool:
    """Were copies of one register executed at o and p?"""
    return all_of(
        s.first_executed[o] != NONE,
        s.first_executed[p] != NONE,
        lambda: client_of(s, s.first_executed[o], o) == client_of(s, s.first_executed[p], p),
        lambda: client_of(s, s.first_executed[o], o) != 0,
        lambda: register_at(s, o),
        lambda: register_at(s, p),
        lambda: incarnation_at(s, o) == incarnation_at(s, p),
    )


def are_different(s: Clients, o: Op, p: Op) -> Bool:
    """Are the executed entries at o and p different requests, or of different sessions?"""
    return not_(same_request(s, o, p))


def replies_the_same(s: Clients, o: Op) -> Bool:
    """A re-sent reply has the same bytes."""
    return s.last_reply[o] == s.first_reply[o]


def replies_in_order(s: Clients) -> tuple[Truth, ...]:
    """What is replied to, L2 says of each request up to the last one that was answered."""
    return ()


def newer_incarnation(s: Clients, o: Op) -> Bool:
    """If op o is a register of a client that has a slot, its incarnation is above that of the slot: a live session is
    replaced only by one of a newer incarnation.
    """
    return forall(
        Client,
        lambda c: implies(
            all_of(is_of(s, o, c), lambda: register_at(s, o)),
            lambda: forall(
                between(Op, 1, o - 1),
                lambda p: implies(
                    slot(s, o - 1, c) == p, lambda: incarnation_at(s, session_at(s, p)) < incarnation_at(s, o)
                ),
            ),
        ),
    )


def is_as_executed(s: Clients, r: Replica, c: Client) -> Bool:
    """Is r's slot of client c as `slot` tells after its commit_min?"""
    return as_told(s, r, c, slot(s, s.commit_min[r], c))


def as_determined(s: Clients) -> Bool:
    """Each op took in and evicted what the table before it determines."""
    return forall(Op, lambda o: implies(s.first_executed[o] != NONE, lambda: determined(s, o)))


def as_told(s: Clients, r: Replica, c: Client, p: Op) -> Bool:
    """Is r's slot of client c that of the entry executed at p; empty if p is 0?"""
    parts = [
        s.table_op[r, c] == p,
        s.table[r, c] == where(p == 0, 0, lambda: number_at(s, c, p)),
        *more_of_slot(s, r, c, p),
    ]
    if s.cfg.client_table.sessions:
        session = where(p == 0, 0, lambda: session_at(s, p))
        parts += [
            s.table_session[r, c] == session,
            s.table_incarnation[r, c] == where(p == 0, 0, lambda: incarnation_at(s, session_at(s, p))),
        ]
    return all_of(*parts)


@point
def number_at(s: Clients, c: Client, p: Op) -> Request:
    """The request number of client c's slot, whose last entry is that at p."""
    return request_of(s, s.first_executed[p], p)


@cases
def more_of_slot(s: Clients, r: Replica, c: Client, p: Op) -> tuple[Bool, ...]:
    """What else r's slot of client c has, whose last entry is that at p (0: there is none)."""
    return ()


def live(s: Clients, o: Op, c: Client) -> Bool:
    """Before op o, an entry of client c: is its session that of c's slot?"""
    p = slot(s, o - 1, c)
    return all_of(p != 0, lambda: session_at(s, p) == session_at(s, o))


def lowest(s: Clients, o: Op, d: Client) -> Bool:
    """Before op o: has client d a slot, and none a lower one?"""
    p = slot(s, o - 1, d)
    return all_of(p != 0, forall(Client, lambda c: any_of(slot(s, o - 1, c) == 0, p <= slot(s, o - 1, c))))


def determined(s: Clients, o: Op) -> Bool:
    """Op o was taken in if it is a register, or of its client's live session (any, without sessions). It evicted the
    slot with the lowest op if it needed one and none was free, else nothing.
    """
    slots, sessions = s.cfg.client_table.slots, s.cfg.client_table.sessions
    own = forall(
        Client,
        lambda c: implies(
            is_of(s, o, c),
            lambda: s.recorded[o] == (any_of(register_at(s, o), lambda: live(s, o, c)) if sessions else True),
        ),
    )
    if not slots:
        return all_of(own, s.evicted_at[o] == 0)
    full = count(Client, lambda c: slot(s, o - 1, c) != 0) == slots
    needs = exists(Client, lambda c: all_of(is_of(s, o, c), s.recorded[o], lambda: slot(s, o - 1, c) == 0))
    victim = exists(Client, lambda d: all_of(s.evicted_at[o] == d, lambda: lowest(s, o, d)))
    return all_of(own, where(all_of(full, needs), victim, s.evicted_at[o] == 0))


def was_executed(s: Clients, c: Client, x: Op | int, n: Request) -> Bool:
    """Was request n of client c executed, in session x if there are sessions?"""
    return exists(
        Op,
        lambda o: all_of(
            is_of(s, o, c),
            lambda: request_of(s, s.first_executed[o], o) == n,
            (lambda: answers_in(s, o, x)) if s.cfg.client_table.sessions else True,
        ),
    )


@point
def answers_in(s: Clients, o: Op, x: Op | int) -> Bool:
    """Does the execution of a request at o make the answer in session x good?"""
    return session_at(s, o) == x


def every_request_executed(s: Clients) -> Truth:
    """Every request of every client was executed."""
    return forall(Client, lambda c: forall(Request, lambda n: was_executed(s, c, 0, n)))


def every_session_answered(s: Clients) -> Truth:
    """Every client has a session in which its last request was answered, and all of them executed."""
    return forall(Client, lambda c: exists(Op, lambda x: session_answered(s, c, x)))


def session_answered(s: Clients, c: Client, x: Op) -> Truth:
    """Was client c sent the reply to the last request of session x, and were all of them executed?"""
    return all_of(
        s.session_replies[c, x] != NONE,
        lambda: not_(within(Request, value_of(s.session_replies[c, x]) + 1)),
        forall(Request, lambda n: was_executed(s, c, x, n)),
    )


@invariant("L2", "requests_answered")
def requests_answered(s: Clients) -> Bool:
    """Every request up to the last one that a client was sent a reply to was executed: none was refused for ever."""
    if s.cfg.client_table.sessions:
        return forall(
            Client,
            lambda c: forall(
                Op,
                lambda x: forall(
                    Request, lambda n: implies(some(n) <= s.session_replies[c, x], lambda: was_executed(s, c, x, n))
                ),
            ),
        )
    return forall(
        Client, lambda c: forall(Request, lambda n: implies(n <= s.replies[c], lambda: was_executed(s, c, 0, n)))
    )
