"""I15, offsets: ends and stored offsets are a function of the executed ops, at every replica; and its witnesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Option,
    Predicate,
    Truth,
    all_of,
    any_of,
    between,
    exists,
    forall,
    implies,
    invariant,
    maximum,
    not_,
    number_of,
    some,
    value_of,
    where,
    witness,
)
from viewproof.spec.vsr.core.state import Op, Replica
from viewproof.spec.vsr.parts.partitions.state import (
    APPEND,
    STORE,
    Asked,
    Offset,
    Partition,
    Partitioned,
    Reader,
    asked,
    partition_of,
)

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def executed_as(s: Partitioned, o: Op, kind: Asked) -> Bool:
    """Was op o executed, and does it ask that?"""
    return all_of(s.first_executed[o] != NONE, lambda: asked(s, s.first_executed[o], o) == kind)


def appends(s: Partitioned, o: Op, n: Partition) -> Bool:
    """Was op o executed as an append to partition n?"""
    return all_of(executed_as(s, o, APPEND), lambda: s.asked_partition[value_of(s.first_executed[o]), o] == n)


def end_after(s: Partitioned, n: Partition, k: Op) -> Offset:
    """The offset after the last one that ops 1..k gave to messages of partition n."""
    return maximum(
        between(Op, 1, k),
        lambda o: where(
            appends(s, o, n),
            lambda: value_of(s.first_given[o]) + number_of(s.asked_count[value_of(s.first_executed[o]), o]),
            0,
        ),
    )


def accepted(s: Partitioned, o: Op, g: Reader) -> Bool:
    """Was op o executed as an offset of reader g that is not above the end of its partition?"""
    return all_of(
        executed_as(s, o, STORE),
        lambda: s.asked_reader[value_of(s.first_executed[o]), o] == g,
        lambda: s.asked_offset[value_of(s.first_executed[o]), o] <= end_after(s, partition_of(s, g), o - 1),
    )


def stored_after(s: Partitioned, g: Reader, k: Op) -> Option[Offset]:
    """The offset of reader g after ops 1..k: that of the last one accepted."""
    last = maximum(between(Op, 1, k), lambda o: where(accepted(s, o, g), o, 0))
    return where(last == 0, NONE, lambda: some(s.asked_offset[value_of(s.first_executed[last]), last]))


def given_up(s: Partitioned, n: Partition) -> Truth:
    """Did the operator accept, and was told of, a loss of messages of partition n?"""
    return s.loss_accepted[n] if s.cfg.partitions.files and s.cfg.replicas == 1 else False


@invariant("I15", "offsets")
def offsets(s: Partitioned) -> Bool:
    """Offsets of a partition are unique, rising and without gaps along the executed ops, and every replica gives an op
    the same. The next offset is the number of messages held; it and the stored offsets are those of the ops that the
    replica executed, so replicas of equal commit_min have the same. A stored offset is never above the end, nor
    lowered, but by a loss of messages that the operator accepted.
    """
    return all_of(
        forall(Op, lambda o: implies(executed_as(s, o, APPEND), lambda: given_in_order(s, o))),
        forall(Replica, lambda r: forall(Partition, lambda n: ends_right(s, r, n))),
        forall(Replica, lambda r: forall(Reader, lambda g: all_of(stored_right(s, r, g), saved_right(s, r, g)))),
    )


def given_in_order(s: Partitioned, o: Op) -> Bool:
    """The append at op o was given the offsets from the end of the ops before it, by whoever executed it."""
    n = s.asked_partition[value_of(s.first_executed[o]), o]
    right = all_of(s.first_given[o] == some(end_after(s, n, o - 1)), s.last_given[o] == s.first_given[o])
    return any_of(given_up(s, n), right)


def ends_right(s: Partitioned, r: Replica, n: Partition) -> Bool:
    """The next offset of partition n at r is the number of messages it holds: those of the ops that r executed. Its
    segments hold what the snapshot names, as long as none went bad.
    """
    parts = [s.next_offset[r, n] == s.held[r, n], held_right(s, r, n)]
    if s.cfg.partitions.files:
        parts.append(any_of(s.rots > 0, s.segment[r, n] >= s.saved_held[r, n]))
    return all_of(*parts)


def held_right(s: Partitioned, r: Replica, n: Partition) -> Bool:
    """The messages of partition n at r are those of the ops that r executed; no more, if messages were given up."""
    end = end_after(s, n, s.commit_min[r])
    return all_of(s.held[r, n] <= end, any_of(given_up(s, n), s.held[r, n] == end))


def stored_right(s: Partitioned, r: Replica, g: Reader) -> Bool:
    """The offset of reader g at r is the one stored last; it is not above the end."""
    n = partition_of(s, g)
    return all_of(
        s.stored[r, g] <= some(s.held[r, n]),
        any_of(given_up(s, n), lambda: s.stored[r, g] == stored_after(s, g, s.commit_min[r])),
    )


def saved_right(s: Partitioned, r: Replica, g: Reader) -> Truth:
    """The offset of reader g in r's snapshot is not above the end there."""
    return s.saved_stored[r, g] <= some(s.saved_held[r, partition_of(s, g)]) if s.cfg.checkpoints else True


@witness("I15", "a partition holds the messages of two ops")
def appended_twice(s: Partitioned) -> Bool:
    """An op's messages were given offsets after those of another op."""
    return exists(Op, lambda o: s.first_given[o] > some(0))


@witness("I15.stored", "an offset above 0 is stored")
def offset_stored(s: Partitioned) -> Bool:
    """A reader has read a message."""
    return exists(Replica, lambda r: exists(Reader, lambda g: s.stored[r, g] > some(0)))


@witness("I15.refused", "an offset above the end was refused")
def offset_refused(s: Partitioned) -> Bool:
    """An op asked for it, was executed, and the reader has no stored offset."""
    return exists(
        Op,
        lambda o: all_of(
            executed_as(s, o, STORE),
            lambda: not_(exists(Reader, lambda g: accepted(s, o, g))),
        ),
    )


@witness("I15.index", "an index lags the messages")
def index_lags(s: Partitioned) -> Bool:
    """A segment holds a message that its index does not list."""
    return exists(Replica, lambda r: exists(Partition, lambda n: s.index[r, n] < s.segment[r, n]))


@witness("I15.between", "a crash came between a flush and the snapshot")
def crash_before_manifest(s: Partitioned) -> Bool:
    """After it, a segment holds messages of ops that are still to be executed again."""
    return exists(Replica, lambda r: exists(Partition, lambda n: s.segment[r, n] > s.held[r, n]))


@witness("I15.damaged", "a segment lacks messages that the snapshot names")
def segment_damaged(s: Partitioned) -> Bool:
    """The replica cannot start again with what it has."""
    return exists(Replica, lambda r: exists(Partition, lambda n: s.segment[r, n] < s.saved_held[r, n]))


@witness("I15.loss", "a loss was accepted, and a stored offset lowered")
def loss_lowered(s: Partitioned) -> Bool:
    """A reader's offset is at the end of what is left, and below the one that it stored last."""
    return exists(
        Replica,
        lambda r: exists(
            Reader,
            lambda g: all_of(s.stored[r, g] > NONE, s.stored[r, g] < stored_after(s, g, s.commit_min[r])),
        ),
    )


def witnesses(cfg: Config) -> tuple[Predicate, ...]:
    """Those of files only where they are modelled, and of a loss where it can be accepted."""
    files = (index_lags, crash_before_manifest, segment_damaged, *((loss_lowered,) if cfg.replicas == 1 else ()))
    return (appended_twice, offset_stored, offset_refused, *(files if cfg.partitions.files else ()))
