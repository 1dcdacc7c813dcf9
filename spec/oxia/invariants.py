"""The invariants of the catalogue in Oxia's terms, and a reachable witness for each against vacuity."""

from __future__ import annotations

from collections.abc import Callable

from viewproof.spec.lang import (
    NONE,
    Bool,
    all_of,
    any_of,
    as_index,
    between,
    count,
    exists,
    forall,
    implies,
    invariant,
    not_,
    some,
    value_of,
    witness,
)
from viewproof.spec.oxia.state import (
    FOLLOWER,
    LEADER,
    Entry,
    Offset,
    Replica,
    Shard,
    Term,
    acknowledged,
    leads,
)


def holds(s: Shard, r: Replica, o: Offset, entry: Entry) -> Bool:
    """Does r's log hold that entry at o?"""
    return all_of(o <= s.head[r], lambda: s.entry[r, o] == entry)


FIRST, TERM_1 = as_index(Offset, 1), as_index(Term, 1)


@invariant("I1", "agreement")
def agreement(s: Shard) -> Bool:
    """Two servers that both applied an offset applied the same entry."""
    return forall(Replica, lambda r: forall(Offset, lambda o: agrees_at(s, r, o)))


def agrees_at(s: Shard, r: Replica, o: Offset) -> Bool:
    """Has everyone who applied offset o applied the same entry as r, if r applied it?"""
    return forall(
        Replica,
        lambda q: any_of(s.executed[r, o] == 0, s.executed[q, o] == 0, s.executed[r, o] == s.executed[q, o]),
    )


@invariant("I2", "durability")
def durability(s: Shard) -> Bool:
    """What clients of a leader could read, answers to their writes included, is in the log of every server that is
    elected later.
    """
    return forall(Replica, lambda r: forall(Offset, lambda o: keeps_seen(s, r, o)))


def keeps_seen(s: Shard, r: Replica, o: Offset) -> Bool:
    """Is what clients read at offset o in r's log, if r was elected later?"""
    elected_later = all_of(leads(s, r), s.seen[o] != 0, s.term[r] > s.seen_in[o])
    return implies(elected_later, lambda: holds(s, r, o, s.seen[o]))


@invariant("I2_advertised", "advertised_is_durable")
def advertised_is_durable(s: Shard) -> Bool:
    """An offset that a leader advertised as committed is in the log of every server that is elected later, with the
    entry that the leader had there.
    """
    return forall(Replica, lambda r: implies(leads(s, r), lambda: keeps_advertised(s, r)))


def keeps_advertised(s: Shard, r: Replica) -> Bool:
    """Does r's log hold all that leaders of terms before its own advertised?"""
    return of_advertised(s, r, lambda t, o: holds(s, r, o, s.log[t, value_of(s.elected[t]), o]))


def of_advertised(s: Shard, r: Replica, holds_at: Callable[[Term, Offset], Bool]) -> Bool:
    """Does it hold at every offset that a leader of a term before r's advertised?"""
    return forall(
        between(Term, 1, s.term[r] - 1),
        lambda t: implies(
            s.elected[t] != NONE,
            lambda: forall(between(Offset, 1, s.commit_sent[t, value_of(s.elected[t])]), lambda o: holds_at(t, o)),
        ),
    )


@invariant("I3", "honest_ack")
def honest_ack(s: Shard) -> Bool:
    """What a leader counts a follower as holding, by its acknowledgements or where its stream began, the follower holds
    durably, as the leader has it, until the leader of a later term attaches or truncates it.
    """
    return forall(Term, lambda t: implies(s.elected[t] != NONE, lambda: forall(Replica, lambda q: honest(s, t, q))))


def honest(s: Shard, t: Term, q: Replica) -> Bool:
    """Does q hold what the leader of term t counts it as holding, or has a later leader changed its log?"""
    leader = value_of(s.elected[t])
    return any_of(
        changed_later(s, t, q),
        lambda: forall(
            Offset,
            lambda o: implies(
                acknowledged(s, s, t, leader, q, o),
                lambda: all_of(o <= s.synced[q], s.entry[q, o] == s.log[t, leader, o]),
            ),
        ),
    )


def changed_later(s: Shard, t: Term, q: Replica) -> Bool:
    """Has the leader of a term above t that q accepted changed q's log?"""
    return exists(between(Term, t + 1, s.term[q]), lambda u: changed(s, u, q))


def changed(s: Shard, t: Term, q: Replica) -> Bool:
    """Has the leader of term t attached or truncated q, or does q itself lead it?"""
    return any_of(
        s.truncated[t, q] != NONE,
        all_of(
            s.elected[t] != NONE,
            lambda: any_of(s.elected[t] == some(q), s.stream[t, value_of(s.elected[t]), q] != NONE),
        ),
    )


@invariant("I4", "commit_in_order")
def commit_in_order(s: Shard) -> Bool:
    """A server applied all offsets up to its commit_min, and only what a leader of its term or before advertised."""
    return forall(
        Replica,
        lambda r: all_of(
            forall(Offset, lambda o: any_of(s.executed[r, o] != 0, o > s.commit_min[r])),
            any_of(s.commit_min[r] == 0, lambda: exists(between(Term, 1, s.term[r]), lambda t: advertised(s, t, r))),
        ),
    )


def advertised(s: Shard, t: Term, r: Replica) -> Bool:
    """Did the leader of term t advertise all that r applied?"""
    return all_of(s.elected[t] != NONE, lambda: s.commit_min[r] <= s.commit_sent[t, value_of(s.elected[t])])


@invariant("I5", "bounds")
def bounds(s: Shard) -> Bool:
    """commit_min ≤ synced ≤ head: no log is cut below what was applied."""
    return forall(Replica, lambda r: all_of(s.commit_min[r] <= s.synced[r], s.synced[r] <= s.head[r]))


@invariant("I6", "term_monotone")
def term_monotone(s: Shard) -> Bool:
    """A server's term never falls below one that it answered or acknowledged in, restarts included; none is above the
    coordinator's.
    """
    return forall(
        Replica,
        lambda r: all_of(
            s.term[r] <= s.election,
            forall(Term, lambda t: implies(any_of(s.fenced[t, r].sent, s.ack[t, r] != 0), t <= s.term[r])),
        ),
    )


@invariant("I7", "one_leader")
def one_leader(s: Shard) -> Bool:
    """A term has one leader, the one that the coordinator chose; and an entry is of a term that has one."""

    def of_led_term(entry: Entry) -> Bool:
        return any_of(entry == 0, lambda: s.elected[entry] != NONE)

    return all_of(
        forall(Term, lambda t: count(Replica, lambda r: s.takes_over[t, r]) <= 1),
        forall(Replica, lambda r: implies(leads(s, r), lambda: s.elected[s.term[r]] == some(r))),
        forall(Replica, lambda r: forall(Offset, lambda o: of_led_term(s.entry[r, o]))),
    )


@invariant("I10", "chain")
def chain(s: Shard) -> Bool:
    """Logs have no gaps, terms do not fall along a log, and two logs with the same entry at an offset are the same up
    to there.
    """
    return all_of(
        forall(Replica, lambda r: forall(Offset, lambda o: (s.entry[r, o] != 0) == (o <= s.head[r]))),
        forall(Replica, lambda r: forall(between(Offset, 2, s.head[r]), lambda o: s.entry[r, o - 1] <= s.entry[r, o])),
        forall(Replica, lambda r: forall(Replica, lambda q: same_below(s, r, q))),
    )


def same_below(s: Shard, r: Replica, q: Replica) -> Bool:
    """Where two logs have the same entry, do they have the same one before it?"""
    return forall(
        between(Offset, 2, s.head[r]),
        lambda o: implies(
            all_of(o <= s.head[q], lambda: s.entry[r, o] == s.entry[q, o]),
            lambda: s.entry[r, o - 1] == s.entry[q, o - 1],
        ),
    )


@witness("I1", "two servers applied an offset")
def both_applied(s: Shard) -> Bool:
    """All but at most one server applied offset 1."""
    return count(Replica, lambda r: s.executed[r, FIRST] != 0) + 1 >= s.cfg.replicas


@witness("I2", "a later leader serves what clients of an earlier one read")
def read_and_led_again(s: Shard) -> Bool:
    """Some leader's term is later than that in which offset 1 was first read."""
    return exists(Replica, lambda r: all_of(s.status[r] == LEADER, s.seen[FIRST] != 0, s.term[r] > s.seen_in[FIRST]))


@witness("I2_advertised", "a log outlives the leader that committed it")
def committed_and_led_again(s: Shard) -> Bool:
    """A server is elected after a leader of term 1 advertised offset 1."""
    return all_of(
        s.elected[TERM_1] != NONE,
        lambda: s.commit_sent[TERM_1, value_of(s.elected[TERM_1])] != 0,
        lambda: exists(Replica, lambda r: all_of(leads(s, r), s.term[r] > 1)),
    )


@witness("I3", "an acknowledgement binds beyond its term")
def acknowledged_and_fenced(s: Shard) -> Bool:
    """A follower acknowledged offset 1, and is fenced in a later term whose leader has not touched its log."""
    return exists(
        Replica,
        lambda q: exists(Term, lambda t: all_of(s.ack[t, q] != 0, s.term[q] > t, lambda: not_(changed_later(s, t, q)))),
    )


@witness("I4", "a follower applies all that it was told of, and more is committed")
def behind_the_leader(s: Shard) -> Bool:
    """A follower applied its commit offset, above 0, and its leader's is higher."""

    def leads_ahead(q: Replica, r: Replica) -> Bool:
        return all_of(leads(s, q), s.term[q] == s.term[r], s.commit_max[q] > s.commit_min[r])

    return exists(
        Replica,
        lambda r: all_of(
            s.status[r] == FOLLOWER,
            s.commit_min[r] > 0,
            s.commit_min[r] == s.commit_max[r],
            exists(Replica, lambda q: leads_ahead(q, r)),
        ),
    )


@witness("I5", "a commit offset falls below what is applied")
def told_less(s: Shard) -> Bool:
    """A follower was told of a commit offset below what it applied (it is taken as sent)."""
    return exists(Replica, lambda r: all_of(s.status[r] == FOLLOWER, s.commit_max[r] < s.commit_min[r]))


@witness("I6", "a leader of an old term is not fenced yet")
def deposed_leader(s: Shard) -> Bool:
    """Two servers lead, in different terms: what clients read from the older may be stale."""
    return exists(
        Replica,
        lambda r: all_of(
            s.status[r] == LEADER,
            exists(Replica, lambda q: all_of(s.status[q] == LEADER, s.term[q] > s.term[r])),
        ),
    )


@witness("I7", "every term has a leader")
def all_terms_led(s: Shard) -> Bool:
    """Servers took over every term of the model."""
    return forall(Term, lambda t: exists(Replica, lambda r: s.takes_over[t, r]))


@witness("I10", "a follower's log is truncated where it differs")
def truncated_in_term(s: Shard) -> Bool:
    """A follower's log was cut, and then took an entry of the leader there."""
    return exists(
        Replica,
        lambda r: exists(
            Term,
            lambda t: all_of(s.truncated[t, r] != NONE, lambda: some(s.head[r]) > s.truncated[t, r], s.term[r] == t),
        ),
    )


INVARIANTS = (
    agreement,
    durability,
    advertised_is_durable,
    honest_ack,
    commit_in_order,
    bounds,
    term_monotone,
    one_leader,
    chain,
)
WITNESSES = (
    both_applied,
    read_and_led_again,
    committed_and_led_again,
    acknowledged_and_fenced,
    behind_the_leader,
    told_less,
    deposed_leader,
    all_terms_led,
    truncated_in_term,
)
