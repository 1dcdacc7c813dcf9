"""State of one shard: what each data server holds, what the coordinator decided, what was sent, and history.

An entry of a log is named by the term whose leader proposed it, 0 for none: (term, offset) names an entry for ever.
Offsets count from 1 here, so that 0 stands for Oxia's -1, "none". The leader of a term is whom the coordinator elects,
so what a leader sends is indexed by the term and by the leader.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import Schema, Sort, all_of, any_of, enum, require, up_to, where, within
from viewproof.spec.oxia.config import Config

Replica = Sort("Replica")
Term = Sort("Term", lo=1)
Offset = Sort("Offset", lo=1)
Length = Sort("Length", ends_with="Offset")
"""Length of a log: 0 or an offset."""
Restart = Sort("Restart", lo=1)

FENCED, FOLLOWER, ELECTED, LEADER = 0, 1, 2, 3
STATUS = enum("fenced", "follower", "elected", "leader")
"""`elected`: it was told to lead, and waits until all of its log is committed (Oxia calls that FENCED, too)."""
ENTRY = up_to(Term)
"""An entry: 0 none, else the term that proposed it."""
ONE_MORE = up_to(Offset, plus=1)
"""0 for "not yet", else 1 + an offset (or 0)."""


def declare(s: Schema, cfg: Config) -> None:
    """Declare the variables of the core."""
    _servers(s)
    _messages(s)
    _history(s)


def _servers(s: Schema) -> None:
    s.state("election", (), up_to(Term), doc="the coordinator's durable term")
    s.state("elected", (Term,), up_to(Replica, plus=1), doc="1 + the leader that the coordinator chose for a term")
    s.state("status", (Replica,), STATUS, doc="fenced, follower, elected or leader")
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
    s.register("stream", (Term, Replica, Replica), ONE_MORE, sender=second, doc="append: 1 + where the stream begins")
    s.watermark("commit_sent", (Term, Replica), up_to(Offset), sender=second, doc="append: the leader's commit offset")
    s.register("truncated", (Term, Replica), ONE_MORE, sender=second, doc="truncate_response: 1 + the new head")
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
    return s.elected[t] - 1


def has_leader(s: Any, r: Any) -> Any:
    """Does r's term have a leader?"""
    return all_of(s.term[r] >= 1, lambda: s.elected[s.term[r]] != 0)


def entry_at_head(s: Any, r: Any) -> Any:
    """The entry at the end of r's log; 0 if it is empty."""
    return where(s.head[r] == 0, 0, lambda: s.entry[r, s.head[r]])


def acknowledged(s: Any, messages: Any, t: Any, leader: Any, q: Any, o: Any) -> Any:
    """Does term t's leader count q as holding offset o: below where q's stream began, or acknowledged (all acks are
    cumulative)?
    """
    return all_of(s.stream[t, leader, q] != 0, lambda: any_of(o < s.stream[t, leader, q], o <= messages.ack[t, q]))


def append_own(state: Any, r: Any) -> None:
    """The leader's log has a next entry, of its own term."""
    o = state.head[r] + 1
    require(within(Offset, o))
    state.head[r] = o
    state.entry[r, o] = state.term[r]
