"""Replication: propose, append, sync, acknowledge, commit, apply; and a server's restart."""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    action,
    all_of,
    any_of,
    between,
    count,
    largest,
    point,
    require,
    some,
    tagged,
    where,
    within,
)
from viewproof.spec.oxia.state import (
    FENCED,
    FOLLOWER,
    LEADER,
    Length,
    Offset,
    Replica,
    Restart,
    Shard,
    acknowledged,
    append_own,
    has_leader,
    leader_of,
    leads,
)


@action
def propose(state: Shard, r: Replica) -> None:
    """The leader appends a client's write to its log; it is not durable yet."""
    require(state.status[r] == LEADER)
    append_own(state, r)


@action
def sync_proposals(state: Shard, r: Replica) -> None:
    """What a leader appended becomes durable, and only then is sent to followers."""
    t = state.term[r]
    require(leads(state, r))
    require(state.synced[r] < state.head[r])
    state.synced[r] = state.head[r]
    state.log.update((t, r, between(Offset, state.synced[r] + 1, state.head[r])), lambda o: state.entry[r, o])


@action
def on_append(state: Shard, r: Replica, k: Length) -> None:
    """A server takes the next entry of its term's leader into its log, and the commit offset k that came with it, which
    may be lower than one before.
    """
    require_stream(state, r)
    take(state, r, state.head[r] + 1, k)


def require_stream(state: Shard, r: Replica) -> None:
    """Server r is fenced or a follower, and the leader of its term has opened a stream to it."""
    require(any_of(state.status[r] == FENCED, state.status[r] == FOLLOWER))
    require(has_leader(state, r))
    t = state.term[r]
    require(state.received(r).stream[t, leader_of(state, t), r] != NONE)


def take(state: Shard, r: Replica, o: Offset, k: Offset) -> None:
    """Server r appends the entry at o of its term's leader; k is a commit offset that the leader sent."""
    t, received = state.term[r], state.received(r)
    leader = leader_of(state, t)
    require(within(Offset, o))
    require(received.log[t, leader, o] != 0)
    require(k <= received.commit_sent[t, leader])
    state.status[r] = FOLLOWER
    state.head[r] = o
    state.entry[r, o] = received.log[t, leader, o]
    state.commit_max[r] = k


@action
def on_duplicate(state: Shard, r: Replica, o: Offset) -> None:
    """An entry arrives at an offset that the log has: it is dropped, and if that is durable, all that is durable is
    acknowledged again.
    """
    require_stream(state, r)
    t, received = state.term[r], state.received(r)
    leader = leader_of(state, t)
    require(o <= state.head[r])
    require(some(o) > received.stream[t, leader, r])
    require(received.log[t, leader, o] != 0)
    state.status[r] = FOLLOWER
    acked = where(o <= state.synced[r], state.synced[r], 0)
    state.ack[t, r] = largest(state.ack[t, r], acked)


@action
def sync(state: Shard, r: Replica) -> None:
    """What a server appended becomes durable; a follower then acknowledges its head, and with it all below."""
    require(any_of(state.status[r] == FENCED, state.status[r] == FOLLOWER))
    require(state.synced[r] < state.head[r])
    t = state.term[r]
    state.synced[r] = state.head[r]
    state.ack[t, r] = where(state.status[r] == FOLLOWER, state.head[r], state.ack[t, r])


@action
def commit(state: Shard, r: Replica, o: Offset) -> None:
    """A leader commits an entry of its own term, and all below, that enough followers acknowledged.

    Safe beyond the build, which commits entries of earlier terms by counting, too.
    """
    require_acknowledged(state, r, o)
    require(state.entry[r, o] == state.term[r])
    advance(state, r, o)


def require_acknowledged(state: Shard, r: Replica, o: Offset) -> None:
    """Offset o is above r's commit offset, durable in r's log, and in those of enough followers."""
    t, received = state.term[r], state.received(r)
    require(leads(state, r))
    require(o > state.commit_max[r])
    require(o <= state.synced[r])
    acks = count(Replica, lambda q: all_of(q != r, lambda: acknowledged(state, received, t, r, q, o)))
    require(acks >= state.cfg.follower_acks)


def advance(state: Shard, r: Replica, o: Offset) -> None:
    """Leader r's commit offset is o."""
    state.commit_max[r] = o
    state.commit_sent[state.term[r], r] = o


@action
def apply(state: Shard, r: Replica) -> None:
    """A server applies the next committed entry of its durable log to its database, and clients of a leader see it."""
    o = state.commit_min[r] + 1
    require(o <= state.commit_max[r])
    require(o <= state.synced[r])
    execute(state, r, o)


@point
def execute(state: Shard, r: Replica, o: Offset) -> None:
    """Effects of applying the entry at o: server r's database is there, and clients of a leader may have read it."""
    entry = state.entry[r, o]
    sees = all_of(state.status[r] == LEADER, state.seen[o] == 0)
    state.commit_min[r] = o
    state.executed[r, o] = entry
    state.seen[o] = where(sees, entry, state.seen[o])
    state.seen_in[o] = where(sees, state.term[r], state.seen_in[o])


@tagged("crash")
@action
def restart(state: Shard, r: Replica, n: Length, c: Length) -> None:
    """A server crashes and starts again, fenced, with its log up to n: all that was durable, and of the rest what
    reached the disk.

    Its term is what it was. Its database, which has no log of its own, is as it was at some flush before: at c.
    """
    require_restart(state, r, n, c)
    start_fenced(state, r, n, c)


def require_restart(state: Shard, r: Replica, n: Offset, c: Offset) -> None:
    """Server r may crash, and start again with a log up to n and a database at c."""
    require(within(Restart, state.restarts + 1))
    require(n >= state.synced[r])
    require(n <= state.head[r])
    require(c <= state.commit_min[r])


@point
def start_fenced(state: Shard, r: Replica, n: Offset, c: Offset) -> None:
    """Server r is back, fenced, with a log up to n and a database at c."""
    state.restarts = state.restarts + 1
    state.status[r] = FENCED
    state.commit_min[r] = c
    state.commit_max[r] = c
    state.head[r] = n
    state.synced[r] = n
    state.entry.update((r, between(Offset, n + 1, state.head[r])), lambda o: 0)
