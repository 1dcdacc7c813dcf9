"""What each line of Oxia's logs means: steps of `spec.oxia`, and what must hold.

Silent, as no line shows them: a sync (of a follower, too, until an acknowledgement of it is received), a commit and an
apply at the leader. The coordinator's `start_election` is known by the term that the servers answer.
"""

from __future__ import annotations

from typing import Any

from viewproof.refinement.logs.record import Events, each, forget, hold, lose, receive, settle, silent, step, when
from viewproof.spec.lang import NONE, all_of, any_of, between, exists, forall, not_, some
from viewproof.spec.oxia import election, replication
from viewproof.spec.oxia.invariants import agrees_at, keeps_advertised, keeps_seen, of_advertised
from viewproof.spec.oxia.state import FENCED, Length, Offset, Replica, Term, leader_of, leads

EVENTS = Events()
event = EVENTS.event


@event(node=Replica, term=Term, entry=Term, head=Length)
def on_new_term(state: Any, e: Any) -> None:
    """A server answers a new term with its head; the coordinator has begun that term."""
    r, t = e.node, e.term
    each(between(Term, state.election + 1, t), lambda _: step(election.start_election))
    hold("I6", t >= state.term[r], "a server's term never falls")
    when(t > state.term[r], lambda: accepts(state, e, r, t))
    hold("I6", state.status[r] == FENCED, "only a fenced server answers a term again")
    hold("I3", state.fenced[t, r].head == e.head, "the head that it answers with is the end of its durable log")
    hold("I10", state.fenced[t, r].entry == e.entry, "the entry at that head is of the term that proposed it")


def accepts(state: Any, e: Any, r: Any, t: Any) -> None:
    """Server r accepts term t; what it appended above the head that it answers with may become durable later."""
    hold("I3", state.synced[r] == e.head, "the head that it answers with is the end of its durable log")
    step(election.on_new_term, r=r, t=t)
    silent(replication.sync, r=r)


@event(term=Term, leader=Replica)
def elected(state: Any, e: Any) -> None:
    """The coordinator chose the leader of a term."""
    hold("I7", state.election == e.term, "the coordinator elects in the newest term")
    step(election.elect, r=e.leader)


@event(node=Replica, term=Term)
def become_leader(state: Any, e: Any) -> None:
    """A server hears that it is to lead."""
    r = e.node
    hold("I6", state.term[r] == e.term, "it leads the term that it is fenced in")
    when(state.elected[e.term] == NONE, lambda: step(election.elect, r=r))
    step(election.become_leader, r=r)
    hold("I2_advertised", keeps_advertised(state, r), "what was advertised as committed is in the new leader's log")
    hold(
        "I2",
        of_advertised(state, r, lambda t, o: keeps_seen(state, r, o)),
        "what clients could read is in the new leader's log",
    )


@event(node=Replica, term=Term, follower=Replica, entry=Term, head=Length)
def truncated(state: Any, e: Any) -> None:
    """A follower cut its log, as the leader told it to."""
    r, q = e.node, e.follower
    receive(q, state.takes_over[e.term, r])
    step(election.on_truncate, r=q)
    hold("I10", state.head[q] == e.head, "the follower's log ends where the leader's rule cuts it")
    hold(
        "I10",
        any_of(e.head == 0, lambda: state.entry[q, e.head] == state.log[e.term, r, e.head]),
        "the follower's entry at the cut is the leader's",
    )


@event(node=Replica, term=Term, follower=Replica, entry=Term, head=Length)
def attached(state: Any, e: Any) -> None:
    """The leader attaches a follower; where its log ends counts as acknowledged."""
    r, q = e.node, e.follower
    hold("I6", state.term[r] == e.term, "a leader attaches followers in its own term")
    receive(r, state.fenced[e.term, q].sent)
    when(state.truncated[e.term, q] != NONE, lambda: receive(r, state.truncated[e.term, q]))
    when(
        state.stream[e.term, r, q] == NONE,
        lambda: step(election.add_follower, r=r, q=q),
    )
    hold("I3", state.stream[e.term, r, q] == some(e.head), "a stream begins where the follower's log ends")
    commits(state, r)


def commits(state: Any, r: Any) -> None:
    """The leader commits, and applies, all that it may."""
    each(between(Offset, state.commit_max[r] + 1, state.head[r]), lambda o: settle(replication.commit, r=r, o=o))
    each(between(Offset, state.commit_min[r] + 1, state.commit_max[r]), lambda o: applies_next(state, r, o))


def applies_next(state: Any, r: Any, o: Any) -> None:
    """Server r applies its next entry."""
    settle(replication.apply, r=r)
    hold("I1", agrees_at(state, r, o), "servers that applied an offset applied the same entry")


@event(node=Replica, term=Term, commit=Length, head=Length)
def applies_pending(state: Any, e: Any) -> None:
    """The elected leader has committed its whole log, and applies it."""
    hold("I4", state.commit_max[e.node] == state.head[e.node], "a leader begins when its whole log is committed")
    hold("I10", state.head[e.node] == e.head, "its head is the end of its log")


@event(node=Replica, term=Term, head=Length)
def started_leading(state: Any, e: Any) -> None:
    """The leader serves clients."""
    r = e.node
    hold("I7", all_of(state.term[r] == e.term, state.elected[e.term] == some(r)), "the coordinator chose it to lead")
    step(election.start_leading, r=r)
    hold("I10", state.head[r] == e.head, "its head is the end of its log")


@event(node=Replica, term=Term, offset=Offset)
def proposed(state: Any, e: Any) -> None:
    """The leader appends a proposal; it may be durable at any time from now on."""
    r = e.node
    hold("I6", state.term[r] == e.term, "a leader proposes in its own term")
    step(replication.propose, r=r)
    hold("I10", state.head[r] == e.offset, "proposals have no gaps")
    silent(replication.sync_proposals, r=r)


@event(node=Replica, term=Term, follower=Replica, offset=Offset, next=Offset)
def sent(state: Any, e: Any) -> None:
    """The leader sends an entry, which is durable by then."""
    r, t = e.node, e.term
    hold("I7", state.elected[t] == some(r), "it sends in a term that it was elected for")
    hold("I10", any_of(not_(e.has("next")), e.offset == e.next), "entries are sent in order")
    hold("I6", any_of(state.term[r] > t, all_of(state.term[r] == t, leads(state, r))), "a leader sends in its own term")
    hold("I3", any_of(state.term[r] > t, e.offset <= state.head[r]), "it sends what its log has")
    hold("I3", any_of(state.term[r] > t, e.offset <= state.synced[r]), "it sends what is durable")
    hold(
        "I3",
        any_of(state.term[r] > t, lambda: state.log[t, r, e.offset] == state.entry[r, e.offset]),
        "as its log has it",
    )


@event(node=Replica, term=Term, follower=Replica, offset=Offset, again=int)
def acked(state: Any, e: Any) -> None:
    """The leader receives an acknowledgement, which stands for all below; what enough sent is committed."""
    r, t, q = e.node, e.term, e.follower
    news = between(Offset, state.received(r).ack[t, q] + 1, e.offset)
    hold(
        "I3",
        forall(news, lambda o: any_of(state.term[q] != t, lambda: same(state, t, r, q, o))),
        "as its leader has it",
    )
    hold("I7", state.elected[t] == some(r), "it is acknowledged in a term that it was elected for")
    fresh = any_of(e.again == 1, e.offset > state.received(r).ack[t, q])
    hold("I3", fresh, "an acknowledgement says something new, unless entries were dropped as duplicates")
    receive(r, state.ack[t, q], up_to=e.offset)
    hold("I3", any_of(state.term[q] != t, e.offset <= state.synced[q]), "what is acknowledged is durable")
    when(all_of(state.term[r] == t, leads(state, r)), lambda: commits(state, r))


def same(state: Any, t: Any, r: Any, q: Any, o: Any) -> Any:
    """Does q hold at o what r, the leader of term t, sent there? Below where its stream began nothing was sent."""
    return any_of(some(o) <= state.stream[t, r, q], lambda: state.entry[q, o] == state.log[t, r, o])


@event(node=Replica, offset=Offset, commit=Length, dropped=int)
def added(state: Any, e: Any) -> None:
    """A follower takes an entry of its term's leader, or drops it as a duplicate; it may be durable from now on."""
    r = e.node
    t = state.term[r]
    when(state.elected[t] != NONE, lambda: takes(state, e, r, t))
    hold("I7", state.elected[t] != NONE, "only the leader of a term sends entries in it")


def takes(state: Any, e: Any, r: Any, t: Any) -> None:
    """The entry comes from the leader of r's term."""
    leader = leader_of(state, t)
    receive(r, state.stream[t, leader, r])
    receive(r, state.log[t, leader, e.offset])
    receive(r, state.commit_sent[t, leader], up_to=e.commit)
    when(
        e.dropped == 1,
        lambda: step(replication.on_duplicate, r=r, o=e.offset),
        lambda: appends(state, e, r),
    )


def appends(state: Any, e: Any, r: Any) -> None:
    """The follower appends the entry."""
    hold("I10", state.head[r] + 1 == e.offset, "appends have no gaps")
    step(replication.on_append, r=r, k=e.commit)
    silent(replication.sync, r=r)


@event(node=Replica, offset=Offset)
def duplicate(state: Any, e: Any) -> None:
    """A follower has the entry already."""
    hold("I10", e.offset <= state.head[e.node], "a duplicate is of an offset that the log has")


@event(node=Replica, below=Length, top=Length, head=Length)
def applies(state: Any, e: Any) -> None:
    """A follower begins to apply what it was told is committed."""
    r = e.node
    hold("I4", e.top <= state.commit_max[r], "a follower applies what a leader advertised")
    hold("I4", e.below == state.commit_min[r], "it goes on where it stopped")
    hold("I10", e.head <= state.head[r], "its head is in its log")


@event(node=Replica, offset=Offset)
def applied(state: Any, e: Any) -> None:
    """A follower reads an entry, to apply it if it was told that it is committed."""
    r = e.node
    hold("I4", e.offset <= state.commit_min[r] + 1, "entries are applied in order")
    told = all_of(e.offset == state.commit_min[r] + 1, e.offset <= state.commit_max[r])
    when(told, lambda: step(replication.apply, r=r))
    hold("I1", agrees_at(state, r, e.offset), "servers that applied an offset applied the same entry")


@event(node=Replica, term=Term, head=Length, commit=Length)
def created(state: Any, e: Any) -> None:
    """A server has become a follower: its term, its log, its database."""
    r = e.node
    hold("I6", state.term[r] == e.term, "a server's term is what it was")
    hold("I3", all_of(state.synced[r] <= e.head, e.head <= state.head[r]), "its log is what it was")
    hold("I5", e.commit <= state.commit_min[r], "its database has no more than what it applied")
    led = exists(between(Term, 1, state.term[r]), lambda t: state.elected[t] == some(r))
    hold("I5", any_of(state.commit_min[r] == e.commit, led), "its database is what it was")
    when(e.commit < state.commit_min[r], lambda: lose(state.commit_min[r], e.commit, e.commit))


@event(node=Replica, head=Length, commit=Length)
def started(state: Any, e: Any) -> None:
    """A server starts again, with all of its log that was durable."""
    when(state.term[e.node] >= 1, lambda: step(replication.restart, r=e.node, n=e.head, c=e.commit))


@event(node=Replica)
def replaced(state: Any, e: Any) -> None:
    """A snapshot takes the place of a server's log and database."""
    forget(e.node, "a snapshot takes the place of a server's log and database: what is in it is not shown")
