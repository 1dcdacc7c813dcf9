"""What each line of Oxia's logs means: steps of `spec.oxia`, and what must hold.

Silent, as no line shows them: a sync (of a follower, too, until an acknowledgement of it is received), a commit and an
apply at the leader. The coordinator's `start_election` is known by the term that the servers answer.
"""

from __future__ import annotations

from typing import Any

from viewproof.refinement.events import (
    arrived,
    each,
    event,
    forget,
    havoc,
    holds,
    may_step,
    otherwise,
    received,
    settle,
    shown,
    step,
    when,
)
from viewproof.spec.lang import NONE, all_of, any_of, between, exists, forall, not_, some
from viewproof.spec.oxia import election, replication
from viewproof.spec.oxia.invariants import agrees_at, keeps_advertised, keeps_seen, of_advertised
from viewproof.spec.oxia.state import FENCED, Offset, Term, leader_of, leads


@event()
def on_new_term(state: Any, e: Any) -> None:
    """A server answers a new term with its head; the coordinator has begun that term."""
    r, t = e.node, e.term
    with each(between(Term, state.election + 1, t)):
        step(election.start_election)
    holds(t >= state.term[r], "a server's term never falls", rule="I6")
    with when(t > state.term[r]):
        holds(state.synced[r] == e.head, "the head that it answers with is the end of its durable log", rule="I3")
        step(election.on_new_term, r=r, t=t)
        may_step(replication.sync, r=r)
    holds(state.status[r] == FENCED, "only a fenced server answers a term again", rule="I6")
    holds(state.fenced[t, r].head == e.head, "the head that it answers with is the end of its durable log", rule="I3")
    holds(state.fenced[t, r].entry == e.entry, "the entry at that head is of the term that proposed it", rule="I10")


@event()
def elected(state: Any, e: Any) -> None:
    """The coordinator chose the leader of a term, which it has begun: the servers that answered may have no lines."""
    with each(between(Term, state.election + 1, e.term)):
        step(election.start_election)
    holds(state.election == e.term, "the coordinator elects in the newest term", rule="I7")
    step(election.elect, r=e.node)


@event()
def become_leader(state: Any, e: Any) -> None:
    """A server hears that it is to lead."""
    r = e.node
    holds(state.term[r] == e.term, "it leads the term that it is fenced in", rule="I6")
    with when(state.elected[e.term] == NONE):
        step(election.elect, r=r)
    step(election.become_leader, r=r)
    kept = "what was advertised as committed is in the new leader's log"
    holds(keeps_advertised(state, r), kept, rule="I2_advertised")
    seen = of_advertised(state, r, lambda t, o: keeps_seen(state, r, o))
    holds(seen, "what clients could read is in the new leader's log", rule="I2")


@event()
def truncated(state: Any, e: Any) -> None:
    """A follower cut its log, as the leader told it to."""
    r, q = e.node, e.follower
    arrived(state.takes_over[e.term, r], by=q)
    step(election.on_truncate, r=q)
    holds(state.head[q] == e.head, "the follower's log ends where the leader's rule cuts it", rule="I10")
    same = any_of(e.head == 0, lambda: state.entry[q, e.head] == state.log[e.term, r, e.head])
    holds(same, "the follower's entry at the cut is the leader's", rule="I10")


@event()
def attached(state: Any, e: Any) -> None:
    """The leader attaches a follower; where its log ends counts as acknowledged."""
    r, q = e.node, e.follower
    holds(state.term[r] == e.term, "a leader attaches followers in its own term", rule="I6")
    arrived(state.fenced[e.term, q].sent)
    with when(state.truncated[e.term, q] != NONE):
        arrived(state.truncated[e.term, q])
    with when(state.stream[e.term, r, q] == NONE):
        step(election.add_follower, r=r, q=q)
    holds(state.stream[e.term, r, q] == some(e.head), "a stream begins where the follower's log ends", rule="I3")
    commits(state, r)


def commits(state: Any, r: Any) -> None:
    """The leader commits, and applies, all that it may."""
    with each(between(Offset, state.commit_max[r] + 1, state.head[r])) as o:
        settle(replication.commit, r=r, o=o)
    with each(between(Offset, state.commit_min[r] + 1, state.commit_max[r])) as o:
        settle(replication.apply, r=r)
        applied_alike(state, r, o)


def applied_alike(state: Any, r: Any, o: Any) -> None:
    """Servers that applied an offset applied the same entry."""
    holds(agrees_at(state, r, o), "servers that applied an offset applied the same entry", rule="I1")


@event()
def applies_pending(state: Any, e: Any) -> None:
    """The elected leader has committed its whole log, and applies it."""
    r = e.node
    holds(state.commit_max[r] == state.head[r], "a leader begins when its whole log is committed", rule="I4")
    holds(state.head[r] == e.head, "its head is the end of its log", rule="I10")


@event()
def started_leading(state: Any, e: Any) -> None:
    """The leader serves clients."""
    r = e.node
    chosen = all_of(state.term[r] == e.term, state.elected[e.term] == some(r))
    holds(chosen, "the coordinator chose it to lead", rule="I7")
    step(election.start_leading, r=r)
    holds(state.head[r] == e.head, "its head is the end of its log", rule="I10")


@event()
def proposed(state: Any, e: Any) -> None:
    """The leader appends a proposal; it may be durable at any time from now on."""
    r = e.node
    holds(state.term[r] == e.term, "a leader proposes in its own term", rule="I6")
    step(replication.propose, r=r)
    holds(state.head[r] == e.offset, "proposals have no gaps", rule="I10")
    may_step(replication.sync_proposals, r=r)


@event()
def sent(state: Any, e: Any) -> None:
    """The leader sends an entry, which is durable by then."""
    r, t = e.node, e.term
    holds(state.elected[t] == some(r), "it sends in a term that it was elected for", rule="I7")
    holds(any_of(not_(shown(e.next)), e.offset == e.next), "entries are sent in order", rule="I10")
    own = any_of(state.term[r] > t, all_of(state.term[r] == t, leads(state, r)))
    holds(own, "a leader sends in its own term", rule="I6")
    holds(any_of(state.term[r] > t, e.offset <= state.head[r]), "it sends what its log has", rule="I3")
    holds(any_of(state.term[r] > t, e.offset <= state.synced[r]), "it sends what is durable", rule="I3")
    as_is = any_of(state.term[r] > t, lambda: state.log[t, r, e.offset] == state.entry[r, e.offset])
    holds(as_is, "as its log has it", rule="I3")


@event()
def acked(state: Any, e: Any) -> None:
    """The leader receives an acknowledgement, which stands for all below; what enough sent is committed."""
    r, t, q = e.node, e.term, e.follower
    news = between(Offset, state.received(r).ack[t, q] + 1, e.offset)
    alike = forall(news, lambda o: any_of(state.term[q] != t, lambda: same(state, t, r, q, o)))
    holds(alike, "as its leader has it", rule="I3")
    holds(state.elected[t] == some(r), "it is acknowledged in a term that it was elected for", rule="I7")
    fresh = any_of(e.again == 1, e.offset > state.received(r).ack[t, q])
    holds(fresh, "an acknowledgement says something new, unless entries were dropped as duplicates", rule="I3")
    received(state.ack[t, q], e.offset)
    holds(any_of(state.term[q] != t, e.offset <= state.synced[q]), "what is acknowledged is durable", rule="I3")
    with when(all_of(state.term[r] == t, leads(state, r))):
        commits(state, r)


def same(state: Any, t: Any, r: Any, q: Any, o: Any) -> Any:
    """Does q hold at o what r, the leader of term t, sent there? Below where its stream began nothing was sent."""
    return any_of(some(o) <= state.stream[t, r, q], lambda: state.entry[q, o] == state.log[t, r, o])


@event()
def added(state: Any, e: Any) -> None:
    """A follower takes an entry of its term's leader, or drops it as a duplicate; it may be durable from now on."""
    r = e.node
    t = state.term[r]
    with when(state.elected[t] != NONE):
        leader = leader_of(state, t)
        arrived(state.stream[t, leader, r])
        arrived(state.log[t, leader, e.offset])
        received(state.commit_sent[t, leader], e.commit)
        with when(e.dropped == 1):
            step(replication.on_duplicate, r=r, o=e.offset)
        with otherwise():
            holds(state.head[r] + 1 == e.offset, "appends have no gaps", rule="I10")
            step(replication.on_append, r=r, k=e.commit)
            may_step(replication.sync, r=r)
    holds(state.elected[t] != NONE, "only the leader of a term sends entries in it", rule="I7")


@event()
def duplicate(state: Any, e: Any) -> None:
    """A follower has the entry already."""
    holds(e.offset <= state.head[e.node], "a duplicate is of an offset that the log has", rule="I10")


@event()
def applies(state: Any, e: Any) -> None:
    """A follower begins to apply what it was told is committed."""
    r = e.node
    holds(e.top <= state.commit_max[r], "a follower applies what a leader advertised", rule="I4")
    holds(e.below == state.commit_min[r], "it goes on where it stopped", rule="I4")
    holds(e.head <= state.head[r], "its head is in its log", rule="I10")


@event()
def applied(state: Any, e: Any) -> None:
    """A follower reads an entry, to apply it if it was told that it is committed."""
    r = e.node
    holds(e.offset <= state.commit_min[r] + 1, "entries are applied in order", rule="I4")
    with when(all_of(e.offset == state.commit_min[r] + 1, e.offset <= state.commit_max[r])):
        step(replication.apply, r=r)
    applied_alike(state, r, e.offset)


@event()
def created(state: Any, e: Any) -> None:
    """A server has become a follower: its term, its log, its database."""
    r = e.node
    holds(state.term[r] == e.term, "a server's term is what it was", rule="I6")
    holds(all_of(state.synced[r] <= e.head, e.head <= state.head[r]), "its log is what it was", rule="I3")
    holds(e.commit <= state.commit_min[r], "its database has no more than what it applied", rule="I5")
    led = exists(between(Term, 1, state.term[r]), lambda t: state.elected[t] == some(r))
    holds(any_of(state.commit_min[r] == e.commit, led), "its database is what it was", rule="I5")
    with when(e.commit < state.commit_min[r]):
        havoc(state.commit_min[r], least=e.commit, most=e.commit)


@event()
def started(state: Any, e: Any) -> None:
    """A server starts again, with all of its log that was durable."""
    with when(state.term[e.node] >= 1):
        step(replication.restart, r=e.node, n=e.head, c=e.commit)


@event()
def replaced(state: Any, e: Any) -> None:
    """A snapshot takes the place of a server's log and database."""
    forget(e.node, "a snapshot takes the place of a server's log and database: what is in it is not shown")


@event()
def unheard(state: Any, e: Any) -> None:
    """There are no lines of a server, or no more."""
    forget(e.node, "there are no lines of a server, or they end before those of the others")
