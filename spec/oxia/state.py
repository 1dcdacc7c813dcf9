"""State of one shard: what each data server holds, what the coordinator decided, what was sent, and history.

An entry of a log is named by the term whose leader proposed it, 0 for none: (term, offset) names an entry for ever.
Offsets count from 1 here, so that 0 stands for Oxia's -1, "none". The leader of a term is whom the coordinator elects,
so what a leader sends is indexed by the term and by the leader.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import (
    NONE,
    Index,
    Label,
    Schema,
    all_of,
    any_of,
    one_of,
    optional,
    require,
    some,
    up_to,
    value_of,
    where,
    within,
)
from viewproof.spec.oxia.config import Config


class Replica(Index):
    """A member of the cluster, numbered from 0."""


class Term(Index, lo=1):
    """A term; the coordinator elects its leader."""


class Offset(Index, lo=1):
    """Place of an entry in the log."""


class Length(Offset, lo=0, ends_with="Offset"):
    """Length of a log: 0 or an offset."""


class Restart(Index, lo=1):
    """Number of a crash and restart."""


class Status(Label):
    """What a server is. Elected: told to lead, it waits until its whole log is committed (FENCED too, in Oxia)."""

    FENCED: Status
    FOLLOWER: Status
    ELECTED: Status
    LEADER: Status


FENCED, FOLLOWER, ELECTED, LEADER = Status.FENCED, Status.FOLLOWER, Status.ELECTED, Status.LEADER
ENTRY = up_to(Term)
"""An entry: 0 none, else the term that proposed it."""


def declare(s: Schema, cfg: Config) -> None:
    """Declare the variables of the core."""
    _servers(s)
    _messages(s)
    _history(s)


def _servers(s: Schema) -> None:
    s.state("election", (), up_to(Term), doc="the coordinator's durable term")
    s.state("elected", (Term,), optional(Replica), doc="the leader that the coordinator chose for a term")
    s.state("status", (Replica,), one_of(Status), doc="fenced, follower, elected or leader")
    s.state("term", (Replica,), up_to(Term), doc="highest term accepted, durable before it is answered; 0 = no member")
    s.state("head", (Replica,), up_to(Offset), doc="last offset appended to its log")
    s.state("synced", (Replica,), up_to(Offset), doc="last offset of its log that is durable")
    s.state("entry", (Replica, Offset), ENTRY, doc="entry at that offset of its log")
    s.state("commit_min", (Replica,), up_to(Offset), doc="last offset applied to its database, and stored with it")
    s.state(
        "commit_max", (Replica,), up_to(Offset), doc="leader: last offset committed; follower: last that it was told of"
    )


def _messages(s: Schema) -> None:
    s.register("fenced", (Term, Replica), sender=second, doc="new_term_response: the server is fenced in the term")
    s.register("fenced_entry", (Term, Replica), ENTRY, sender=second, doc="new_term_response: entry at its head")
    s.register("fenced_head", (Term, Replica), up_to(Offset), sender=second, doc="new_term_response: its head offset")
    s.register("takes_over", (Term, Replica), sender=second, doc="append: the leader of the term knows that it leads")
    s.register("log", (Term, Replica, Offset), ENTRY, sender=second, doc="append: the log of the term's leader")
    s.register(
        "stream", (Term, Replica, Replica), optional(Offset), sender=second, doc="append: where the stream begins"
    )
    s.watermark("commit_sent", (Term, Replica), up_to(Offset), sender=second, doc="append: the leader's commit offset")
    s.register("truncated", (Term, Replica), optional(Offset), sender=second, doc="truncate_response: the new head")
    s.watermark("ack", (Term, Replica), up_to(Offset), sender=second, doc="ack: all up to here is durable")


def second(term: Any, r: Any, *_: Any) -> Any:
    """The sender of a message that is indexed by term and server."""
    return r


def _history(s: Schema) -> None:
    s.ghost("executed", (Replica, Offset), ENTRY, doc="entry that the server applied there last")
    s.ghost("seen", (Offset,), ENTRY, doc="entry that the first leader applied there whose clients could read it")
    s.ghost("seen_in", (Offset,), up_to(Term), doc="term of that leader")
    s.ghost("restarts", (), up_to(Restart), doc="crashes and restarts so far (bounds a finite model)")


def leads(s: Any, r: Any) -> Any:
    """Is r elected or leader, in its term?"""
    return any_of(s.status[r] == ELECTED, s.status[r] == LEADER)


def leader_of(s: Any, t: Any) -> Any:
    """The leader that the coordinator chose for term t (which must have one)."""
    return value_of(s.elected[t])


def has_leader(s: Any, r: Any) -> Any:
    """Does r's term have a leader?"""
    return all_of(s.term[r] >= 1, lambda: s.elected[s.term[r]] != NONE)


def entry_at_head(s: Any, r: Any) -> Any:
    """The entry at the end of r's log; 0 if it is empty."""
    return where(s.head[r] == 0, 0, lambda: s.entry[r, s.head[r]])


def acknowledged(s: Any, messages: Any, t: Any, leader: Any, q: Any, o: Any) -> Any:
    """Does term t's leader count q as holding offset o: below where q's stream began, or acknowledged (all acks are
    cumulative)?
    """
    return all_of(
        s.stream[t, leader, q] != NONE, lambda: any_of(some(o) <= s.stream[t, leader, q], o <= messages.ack[t, q])
    )


def append_own(state: Any, r: Any) -> None:
    """The leader's log has a next entry, of its own term."""
    o = state.head[r] + 1
    require(within(Offset, o))
    state.head[r] = o
    state.entry[r, o] = state.term[r]
