"""Election: the coordinator raises the term, fences a majority, and tells the server with the highest head to lead; the
leader truncates and attaches the others, and leads once all of its log is committed.
"""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Bool,
    action,
    all_of,
    any_of,
    between,
    count,
    maximum,
    not_,
    point,
    require,
    some,
    where,
    within,
)
from viewproof.spec.oxia.state import (
    ELECTED,
    FENCED,
    FOLLOWER,
    LEADER,
    NewTermResponse,
    Offset,
    Replica,
    Shard,
    Term,
    append_own,
    entry_at_head,
    has_leader,
    leader_of,
    leads,
)


@action
def start_election(state: Shard) -> None:
    """The coordinator begins a new term, stored before anyone hears of it, for whatever reason."""
    require(within(Term, state.election + 1))
    state.election = state.election + 1


@action
def on_new_term(state: Shard, r: Replica, t: Term) -> None:
    """A server accepts a higher term: it is fenced, stops what it did in the term before, and answers with its head.

    Safe beyond the build: what is appended is made durable first, so that the answer tells of all that the log holds.
    """
    require_new_term(state, r, t)
    fence(state, r, t)
    state.synced[r] = state.head[r]
    answer(state, r, t, state.head[r])


@point
def require_new_term(state: Shard, r: Replica, t: Term) -> None:
    """The coordinator began term t, which is new to server r."""
    require(t <= state.election)
    require(t > state.term[r])


def fence(state: Shard, r: Replica, t: Term) -> None:
    """Server r is fenced in term t; that is durable."""
    state.term[r] = t
    state.status[r] = FENCED


def answer(state: Shard, r: Replica, t: Term, head: Offset) -> None:
    """Server r answers the new term t with its log's entry at `head`."""
    state.fenced[t, r] = NewTermResponse(head=head, entry=where(head == 0, 0, lambda: state.entry[r, head]))


@action
def elect(state: Shard, r: Replica) -> None:
    """The coordinator chooses the server with the highest head of a majority that answered: by term, then offset."""
    t = state.election
    require(t >= 1)
    require(state.elected[t] == NONE)
    require(state.fenced[t, r].sent)
    below = count(Replica, lambda q: all_of(state.fenced[t, q].sent, lambda: not_higher(state, t, q, r)))
    require(below >= state.cfg.fencing_quorum)
    choose(state, r, t)


@point
def choose(state: Shard, r: Replica, t: Term) -> None:
    """The coordinator's choice for term t is r."""
    state.elected[t] = some(r)


def not_higher(state: Shard, t: Term, q: Replica, r: Replica) -> Bool:
    """Did q answer term t with a head no higher than r's?"""
    return any_of(
        state.fenced[t, q].entry < state.fenced[t, r].entry,
        all_of(
            state.fenced[t, q].entry == state.fenced[t, r].entry, state.fenced[t, q].head <= state.fenced[t, r].head
        ),
    )


@action
def become_leader(state: Shard, r: Replica) -> None:
    """A fenced server hears, once, that it is to lead its term: its head is fixed, and what its database holds counts
    as committed.
    """
    t = state.term[r]
    require(state.status[r] == FENCED)
    require(has_leader(state, r))
    require(leader_of(state, t) == r)
    require(not_(state.takes_over[t, r]))
    require(state.synced[r] == state.head[r])
    state.status[r] = ELECTED
    state.takes_over[t, r] = True
    state.commit_max[r] = state.commit_min[r]
    state.commit_sent[t, r] = state.commit_min[r]
    state.log.update((t, r, between(Offset, 1, state.head[r])), lambda o: state.entry[r, o])


@action
def on_truncate(state: Shard, r: Replica) -> None:
    """A fenced server cuts its log back to the last entry that it has in common with the leader of its term.

    Safe beyond the build: leader and follower compare entries until one is equal. All rounds of that are one step here.
    """
    require_truncation(state, r)
    truncate(state, r, last_common(state, r))


def require_truncation(state: Shard, r: Replica) -> None:
    """The leader of r's term took over, r answered the term, and the leader does not have the entry at r's head."""
    t = state.term[r]
    require(state.status[r] == FENCED)
    require(has_leader(state, r))
    require(state.fenced[t, r].sent)
    require(state.received(r).takes_over[t, leader_of(state, t)])
    require(state.truncated[t, r] == NONE)
    require(state.stream[t, leader_of(state, t), r] == NONE)
    require(not_(has_head_of(state, leader_of(state, t), t, r)))


def has_head_of(state: Shard, leader: Replica, t: Term, q: Replica) -> Bool:
    """Does the log of term t's leader hold the entry that q answered the term with?"""
    head = state.fenced[t, q].head
    return any_of(head == 0, lambda: state.log[t, leader, head] == state.fenced[t, q].entry)


def last_common(state: Shard, r: Replica) -> Offset:
    """Last offset at which r's log holds the same entry as the log of its term's leader; 0 if none."""
    t = state.term[r]
    leader, received = leader_of(state, t), state.received(r)

    def same(o: Offset) -> Bool:
        return state.entry[r, o] == received.log[t, leader, o]

    return maximum(between(Offset, 1, state.head[r]), lambda o: where(same(o), o, 0))


def truncate(state: Shard, r: Replica, head: Offset) -> None:
    """Server r's log ends at `head`, durably, and r is a follower."""
    state.status[r] = FOLLOWER
    state.head[r] = head
    state.synced[r] = head
    state.entry.update((r, between(Offset, head + 1, state.head[r])), lambda o: 0)
    state.truncated[state.term[r], r] = some(head)


@action
def add_follower(state: Shard, r: Replica, q: Replica) -> None:
    """The leader attaches a follower that answered its term, from the follower's head, which it counts as acknowledged.

    Until it leads it knows only of answers that it was chosen from; later the coordinator tells of all.
    """
    t = state.term[r]
    received = state.received(r)
    require(q != r)
    require(leads(state, r))
    require(received.fenced[t, q].sent)
    require(state.stream[t, r, q] == NONE)
    require(any_of(state.status[r] == LEADER, lambda: not_higher(state, t, q, r)))
    require(any_of(received.truncated[t, q] != NONE, lambda: has_head_of(state, r, t, q)))
    truncated = received.truncated[t, q]
    state.stream[t, r, q] = where(truncated != NONE, truncated, lambda: some(received.fenced[t, q].head))


@action
def open_term(state: Shard, r: Replica) -> None:
    """An elected leader appends an entry of its own term, a control entry that changes nothing, to a log that may hold
    entries not committed: these are committed with it.

    Safe beyond the build, which counts acknowledgements of old entries (VR Revisited §4.2 renames the log by view;
    Raft §5.4.2 commits by counting only in the leader's own term).
    """
    require(state.status[r] == ELECTED)
    require(state.head[r] > state.commit_max[r])
    require(entry_at_head(state, r) != state.term[r])
    append_own(state, r)


@action
def start_leading(state: Shard, r: Replica) -> None:
    """An elected leader whose whole log is committed and applied serves clients, who may read all of it."""
    require(state.status[r] == ELECTED)
    require(state.commit_max[r] == state.head[r])
    require(state.commit_min[r] == state.head[r])
    serve(state, r)


def serve(state: Shard, r: Replica) -> None:
    """Server r is leader, and what its database holds can be read."""
    applied = between(Offset, 1, state.commit_min[r])
    state.status[r] = LEADER
    state.seen.update((applied,), lambda o: where(state.seen[o] == 0, state.entry[r, o], state.seen[o]))
    state.seen_in.update((applied,), lambda o: where(state.seen[o] == 0, state.term[r], state.seen_in[o]))
