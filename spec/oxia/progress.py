"""What can always be reached again: the tractable half of "an election ends" (L1) and "a write is answered" (L2).

The terms and offsets of a bounded instance end. So the premise of each goal is that the coordinator can begin another
term, and that every log has room for what the goal needs.
"""

from __future__ import annotations

from viewproof.spec.lang import Bool, Goal, Spec, all_of, exists, forall, invariant, within
from viewproof.spec.oxia.state import LEADER, Offset, Replica, Shard, Term


def _room(s: Shard, offsets: int) -> Bool:
    later = within(Term, s.election + 1)
    return all_of(later, forall(Replica, lambda r: within(Offset, s.head[r] + offsets)))


@invariant("room_for_one", "a later term exists, and room for an entry")
def room_for_one(s: Shard) -> Bool:
    """Another term can begin, and every log has room for the entry that opens it."""
    return _room(s, 1)


@invariant("room_for_two", "a later term exists, and room for two entries")
def room_for_two(s: Shard) -> Bool:
    """Another term can begin, and every log has room for the entry that opens it, and a write."""
    return _room(s, 2)


@invariant("has_leader", "the newest term has a leader that serves")
def newest_term_leads(s: Shard) -> Bool:
    """Some server leads in the coordinator's term."""
    return exists(Replica, lambda r: all_of(s.status[r] == LEADER, s.term[r] == s.election))


@invariant("answered", "a write of the newest term is applied")
def write_answered(s: Shard) -> Bool:
    """The leader of the coordinator's term applied all of its log, the last entry of which is of its term."""
    return exists(
        Replica,
        lambda r: all_of(
            s.status[r] == LEADER,
            s.term[r] == s.election,
            s.head[r] >= 1,
            s.commit_min[r] == s.head[r],
            lambda: s.entry[r, s.head[r]] == s.term[r],
        ),
    )


ELECTIONS_END = Goal("L1", "an election can always end", room_for_one, newest_term_leads)
WRITES_ANSWERED = Goal("L2", "a write can always be answered", room_for_two, write_answered)


def goals(spec: Spec) -> tuple[Goal, ...]:
    """The goals that make sense in a bounded instance: L2 needs a log of two entries."""
    return (ELECTIONS_END, WRITES_ANSWERED) if len(spec.instance.members(Offset)) >= 2 else (ELECTIONS_END,)
