"""State of one shard: what each data server holds, what the coordinator decided, what was sent, and history.

An entry of a log is named by the term whose leader proposed it, 0 for none: (term, offset) names an entry for ever.
Offsets count from 1 here, so that 0 stands for Oxia's -1, "none". The leader of a term is whom the coordinator elects,
so what a leader sends is indexed by the term and by the leader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Cells,
    Index,
    Label,
    Message,
    Option,
    Sent,
    State,
    all_of,
    any_of,
    field,
    ghost,
    message,
    require,
    some,
    value_of,
    variable,
    watermark,
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
Entry = Term
"""An entry: 0 none, else the term that proposed it."""


def by_server(cfg: Config, term: Term, r: Replica, *_: Index) -> Replica:
    """the server"""
    return r


class NewTermResponse(Message):
    """A server answers the coordinator that it is fenced in a term, with the end of its log."""

    entry: Entry = field("entry at its head")
    head: Offset = field("its head offset")


class Servers(State):
    """What the coordinator decided, and what each server holds."""

    cfg: Config
    election: Term = variable("the coordinator's durable term")
    elected: Cells[Term, Option[Replica]] = variable("the leader that the coordinator chose for a term")
    status: Cells[Replica, Status] = variable("fenced, follower, elected or leader")
    term: Cells[Replica, Term] = variable("highest term accepted, durable before it is answered; 0 = no member")
    head: Cells[Replica, Offset] = variable("last offset appended to its log")
    synced: Cells[Replica, Offset] = variable("last offset of its log that is durable")
    entry: Cells[tuple[Replica, Offset], Entry] = variable("entry at that offset of its log")
    commit_min: Cells[Replica, Offset] = variable("last offset applied to its database, and stored with it")
    commit_max: Cells[Replica, Offset] = variable("leader: last offset committed; follower: last that it was told of")


class Messages(State):
    """What was sent."""

    cfg: Config
    fenced: Sent[tuple[Term, Replica], NewTermResponse] = message(
        by_server, to="the coordinator", doc="new_term_response: the server is fenced in the term"
    )
    takes_over: Cells[tuple[Term, Replica], Bool] = message(
        by_server, to="its followers", title="append", doc="the leader of the term knows that it leads"
    )
    log: Cells[tuple[Term, Replica, Offset], Entry] = message(
        by_server, to="its followers", title="append", doc="the log of the term's leader"
    )
    stream: Cells[tuple[Term, Replica, Replica], Option[Offset]] = message(
        by_server, to="the follower", title="append", doc="where the stream begins"
    )
    commit_sent: Cells[tuple[Term, Replica], Offset] = watermark(
        by_server, to="its followers", title="append", doc="append: the leader's commit offset"
    )
    truncated: Cells[tuple[Term, Replica], Option[Offset]] = message(
        by_server, to="the leader", title="truncate_response", doc="the new head"
    )
    ack: Cells[tuple[Term, Replica], Offset] = watermark(
        by_server, to="the leader", title="ack", doc="ack: all up to here is durable"
    )


class History(State):
    """What only invariants and bounds read."""

    executed: Cells[tuple[Replica, Offset], Entry] = ghost("entry that the server applied there last")
    seen: Cells[Offset, Entry] = ghost("entry that the first leader applied there whose clients could read it")
    seen_in: Cells[Offset, Term] = ghost("term of that leader")
    restarts: Restart = ghost("crashes and restarts so far (bounds a finite model)")


class Shard(Servers, Messages, History):
    """The state of a shard."""

    cfg: Config

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> Messages:
            """The messages that a server has received."""


def leads(s: Shard, r: Replica) -> Bool:
    """Is r elected or leader, in its term?"""
    return any_of(s.status[r] == ELECTED, s.status[r] == LEADER)


def leader_of(s: Shard, t: Term) -> Replica:
    """The leader that the coordinator chose for term t (which must have one)."""
    return value_of(s.elected[t])


def has_leader(s: Shard, r: Replica) -> Bool:
    """Does r's term have a leader?"""
    return all_of(s.term[r] >= 1, lambda: s.elected[s.term[r]] != NONE)


def entry_at_head(s: Shard, r: Replica) -> Entry:
    """The entry at the end of r's log; 0 if it is empty."""
    return where(s.head[r] == 0, 0, lambda: s.entry[r, s.head[r]])


def acknowledged(s: Shard, messages: Messages, t: Term, leader: Replica, q: Replica, o: Offset) -> Bool:
    """Does term t's leader count q as holding offset o: below where q's stream began, or acknowledged (all acks are
    cumulative)?
    """
    return all_of(
        s.stream[t, leader, q] != NONE, lambda: any_of(some(o) <= s.stream[t, leader, q], o <= messages.ack[t, q])
    )


def append_own(state: Shard, r: Replica) -> None:
    """The leader's log has a next entry, of its own term."""
    o = state.head[r] + 1
    require(within(Offset, o))
    state.head[r] = o
    state.entry[r, o] = state.term[r]
