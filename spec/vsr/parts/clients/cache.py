"""A slot keeps its client's last few replies, and the largest request number over all of its sessions, the *watermark*
(Iggy, later).

A number above the watermark is new, whatever lies between. One at or below it was executed: its reply is sent again if
it is kept, else the request is refused as already applied (outcome `stale`). A new session goes on with the numbers, so
a request that is sent again in it is known; only an eviction forgets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Change,
    Part,
    Schema,
    Truth,
    action,
    all_of,
    at,
    between,
    exists,
    forall,
    largest,
    maximum,
    not_,
    replaces,
    require,
    up_to,
    value_of,
    where,
    witness,
)
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import (
    EXECUTED,
    NORMAL,
    Client,
    Entry,
    Op,
    Replica,
    Request,
    client_of,
    primary,
    request_of,
)
from viewproof.spec.vsr.parts.clients import invariants, lemmas, sessions, table
from viewproof.spec.vsr.parts.clients.invariants import is_of
from viewproof.spec.vsr.parts.clients.options import ClientTable
from viewproof.spec.vsr.parts.clients.state import Clients
from viewproof.spec.vsr.parts.clients.table import Outcome

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def declare(s: Schema, cfg: Config) -> None:
    """Declare the replies that a slot keeps; the newest is that of `table_op`."""
    for k in older(cfg):
        doc = f"client table: op of the entry whose reply is the {k}. last that the slot keeps; 0 = none"
        s.state(f"cached_{k}", (Replica, Client), up_to(Op), doc=doc, tags=(EXECUTED,))


def older(cfg: Config) -> range:
    """The places in a slot of the replies before the newest."""
    return range(2, cfg.client_table.cached + 1)


def kept(state: Clients, r: Replica, c: Client, k: int) -> Op:
    """The op of the k-th last reply in r's slot of client c."""
    return state.table_op[r, c] if k == 1 else getattr(state, f"cached_{k}")[r, c]


def reply_to(state: Clients, r: Replica, c: Client, s: Request) -> Op:
    """The op of the kept reply to request s of client c; 0 for none."""

    def answers(p: Op) -> Bool:
        return all_of(p != 0, lambda: request_of(state, state.entry[r, p], p) == s)

    places = (kept(state, r, c, k) for k in (1, *older(state.cfg)))
    return largest(*(where(answers(p), p, 0) for p in places))


def by_number(state: Clients, r: Replica, c: Client, s: Request) -> Outcome:
    """Outcome of request number s of a client that has a slot: above the watermark it is new."""
    known = where(reply_to(state, r, c, s) != 0, table.DUPLICATE, table.STALE)
    return where(s > state.table[r, c], table.NEW, known)


def slot_number(state: Clients, r: Replica, c: Client, s: Request) -> Request:
    """The watermark does not fall, and a register leaves it."""
    return largest(state.table[r, c], s)


def keep_reply(state: Clients, r: Replica, o: Op, entry: Entry) -> None:
    """The reply of the entry that is executed at o is the newest of its slot."""
    c = client_of(state, entry, o)
    changes = table.in_table(state, r, o, entry)
    for k in older(state.cfg):
        getattr(state, f"cached_{k}")[r, c] = where(changes, kept(state, r, c, k - 1), kept(state, r, c, k))


def forget_replies(state: Clients, r: Replica, c: Client) -> None:
    """An evicted slot keeps none."""
    for k in older(state.cfg):
        getattr(state, f"cached_{k}")[r, c] = 0


def answered(state: Clients, c: Client, x: Op) -> Request:
    """The number up to which client c has answers: a session goes on where the one before ended."""
    replies = state.session_replies
    return maximum(Op, lambda y: where(replies[c, y] != NONE, lambda: value_of(replies[c, y]), 0))


@action
def resend_cached(state: Clients, r: Replica, c: Client, s: Request) -> None:
    """The primary answers a repeated request from an older reply of the client's slot."""
    p = reply_to(state, r, c, s)
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(p != 0)
    require(p != state.table_op[r, c])
    require(not_(table.unexecuted(state, r, c)))
    table.note_reply(state, True, c, state.table_session[r, c], s, p, table.named_entry(state, r, state.entry[r, p]))


def in_slot(s: Clients, c: Client, p: Op, m: Op) -> Bool:
    """Did the table take the executed entry at p into a slot of client c that was not evicted up to op m?"""
    return all_of(
        s.recorded[p],
        lambda: is_of(s, p, c),
        lambda: forall(between(Op, p + 1, m), lambda q: s.evicted_at[q] != c),
    )


def number_at(s: Clients, c: Client, p: Op) -> Request:
    """The watermark of client c's slot, whose last entry is that at p."""
    return maximum(
        between(Op, 1, p),
        lambda q: where(in_slot(s, c, q, p), lambda: request_of(s, s.first_executed[q], q), 0),
    )


def replies_told(s: Clients, r: Replica, c: Client, p: Op) -> tuple[Bool, ...]:
    """Are the older replies of r's slot those before the entry at p that the slot took in?"""
    found, last = [], p
    for k in older(s.cfg):
        last = before(s, c, last)
        found.append(kept(s, r, c, k) == last)
    return tuple(found)


def before(s: Clients, c: Client, p: Op) -> Op:
    """The op of the entry before that at p that client c's slot took in; 0 for none."""
    return maximum(between(Op, 1, p - 1), lambda q: where(in_slot(s, c, q, p), q, 0))


def not_evicted_between(s: Clients, o: Op, p: Op) -> Bool:
    """The client of the entry at o kept its slot since p: the watermark knows the number, whatever the session."""
    c = client_of(s, s.first_executed[o], o)
    return all_of(s.recorded[p], lambda: forall(between(Op, p + 1, o), lambda q: s.evicted_at[q] != c))


def answers_in_any(s: Clients, o: Op, x: Op) -> Truth:
    """A request that was executed is answered in every later session."""
    return True


@witness("I8.kept", "an older reply is sent again")
def older_reply_sent(s: Clients) -> Bool:
    """A normal primary has an older reply to a request, and may get it again."""
    return exists(
        Replica,
        lambda r: all_of(
            s.status[r] == NORMAL,
            primary(s, s.view[r]) == r,
            exists(
                Client,
                lambda c: exists(
                    Request,
                    lambda n: all_of(reply_to(s, r, c, n) != 0, lambda: reply_to(s, r, c, n) != s.table_op[r, c]),
                ),
            ),
        ),
    )


@witness("I8.applied", "a request is refused as already applied")
def refused_as_applied(s: Clients) -> Bool:
    """A number is at or below the watermark of a slot that does not keep its reply any more."""
    return exists(
        Replica,
        lambda r: exists(
            Client,
            lambda c: exists(
                Request,
                lambda n: all_of(s.table_op[r, c] != 0, lambda: by_number(s, r, c, n) == table.STALE),
            ),
        ),
    )


def changes(cfg: Config) -> tuple[Change, ...]:
    """What a number meets, and what a slot keeps."""
    return (
        replaces(table.by_number, by_number),
        replaces(table.slot_number, slot_number),
        at(normal.record, keep_reply),
        at(table.evict, forget_replies),
        replaces(sessions.answered, answered),
        replaces(invariants.number_at, number_at),
        at(invariants.more_of_slot, replies_told),
        at(invariants.in_one_session, not_evicted_between),
        replaces(invariants.answers_in, answers_in_any),
    )


CACHE = Part(
    "cache",
    lambda cfg: cfg.client_table.cached > 0,
    declare=declare,
    actions=lambda cfg: (resend_cached,) if cfg.client_table.cached > 1 else (),
    changes=changes,
    witnesses=lambda cfg: (refused_as_applied, *((older_reply_sent,) if cfg.client_table.cached > 1 else ())),
    untrue=lambda cfg, crashes: {lemma.id for lemma in lemmas.lemmas(cfg)},
    models={
        "iggy_clients": Model(
            Bounds(views=2, ops=4, clients=2, requests=1, incarnations=2),
            {"client_table": ClientTable(slots=1, sessions=True, gaps=True, cached=2)},
            replicas=2,
        )
    },
)
