"""Partitions: what an op asks of one, the messages a replica holds, the offsets it gives (seed 003; docs/groups.md).

A message is named by its partition and its place there, so a count says which ones a replica holds. Nobody looks into a
prepare before it is executed: what it asks becomes known with the first execution (`asked`), and is the same for all.
`next_offset` is what the next message gets; at a restart it is read from the messages. A reader is a consumer, or a
consumer group, of one partition: reader g of partition g modulo their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Cells,
    Index,
    Label,
    Option,
    State,
    all_of,
    as_index,
    forall,
    ghost,
    number_of,
    point,
    require,
    smallest,
    some,
    value_of,
    variable,
    where,
)
from viewproof.spec.vsr.core.state import EXECUTED, LOADED_APART, REBUILT, Entry, Op, Replica, Rot, View
from viewproof.spec.vsr.parts.protocol import Protocol

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


class Partition(Index):
    """A partition of messages."""


class Reader(Index):
    """A consumer, or a consumer group."""


class Count(Index, lo=1):
    """Number of messages of an append."""


class Offset(Index):
    """Place of a message in its partition, or the number of those before."""


class Asked(Label):
    """What a prepare asks of a partition."""

    UNKNOWN: Asked
    OTHER: Asked
    APPEND: Asked
    STORE: Asked


UNKNOWN, OTHER, APPEND, STORE = Asked.UNKNOWN, Asked.OTHER, Asked.APPEND, Asked.STORE


class Asking(State):
    """What ops ask."""

    asked: Cells[tuple[View, Op], Asked] = variable("what the prepare asks of a partition, as far as it is known")
    asked_partition: Cells[tuple[View, Op], Partition] = variable("append: its partition")
    asked_count: Cells[tuple[View, Op], Count] = variable("append: its number of messages")
    asked_reader: Cells[tuple[View, Op], Reader] = variable("stored offset: whose it is")
    asked_offset: Cells[tuple[View, Op], Offset] = variable("stored offset: everything below it was read")


class Contents(State):
    """The partitions of a replica."""

    held: Cells[tuple[Replica, Partition], Offset] = variable(
        "number of messages that the replica holds", tags=(EXECUTED, LOADED_APART)
    )
    next_offset: Cells[tuple[Replica, Partition], Offset] = variable(
        "offset that the next message gets", tags=(REBUILT,)
    )
    stored: Cells[tuple[Replica, Reader], Option[Offset]] = variable(
        "1 + the reader's stored offset; 0 = none", tags=(EXECUTED, LOADED_APART)
    )
    first_given: Cells[Op, Option[Offset]] = ghost("1 + the offset that the op's first execution gave")
    last_given: Cells[Op, Option[Offset]] = ghost("1 + the offset that its latest execution gave")


class Files(State):
    """Segments and indexes."""

    segment: Cells[tuple[Replica, Partition], Offset] = variable("number of messages durable in segment files")
    index: Cells[tuple[Replica, Partition], Offset] = variable("number of messages that the index files list")
    rots: Rot = ghost("segment files that went bad so far (bounds a finite model)")
    loss_accepted: Cells[Partition, Bool] = ghost("the operator gave up messages of it that no replica has")


class Partitioned(Asking, Contents, Files, Protocol):
    """The state with partitions, with files where they are modelled, and with what a snapshot holds of both."""

    saved_held: Cells[tuple[Replica, Partition], Offset]
    saved_stored: Cells[tuple[Replica, Reader], Option[Offset]]
    snapshot_held: Cells[tuple[View, Op, Partition], Offset]


def states(cfg: Config) -> tuple[type[State], ...]:
    """What is declared; files only where they are modelled."""
    return (Asking, Contents, *((Files,) if cfg.partitions.files else ()), Partitioned)


def partition_of(s: Partitioned, g: Reader) -> Partition:
    """The partition that reader g reads."""
    return as_index(Partition, g % s.cfg.partitions.count)


def asked(s: Partitioned, entry: Entry, o: Op) -> Asked:
    """What the prepare that an entry names asks."""
    return s.asked[value_of(entry), o]


def apply(state: Partitioned, r: Replica, o: Op, entry: Entry) -> None:
    """Replica r executes that entry at op o: messages get the next offsets; an offset above the end is not stored."""
    v, n, g = value_of(entry), state.asked_partition[value_of(entry), o], state.asked_reader[value_of(entry), o]
    count, x = number_of(state.asked_count[v, o]), state.asked_offset[v, o]
    given = where(state.asked[v, o] == APPEND, some(state.next_offset[r, n]), NONE)
    state.held[r, n] = state.held[r, n] + count
    state.next_offset[r, n] = state.next_offset[r, n] + count
    state.stored[r, g] = where(is_accepted(state, r, v, o), some(x), state.stored[r, g])
    state.first_given[o] = where(state.first_executed[o] == NONE, given, state.first_given[o])
    state.last_given[o] = given


def is_accepted(state: Partitioned, r: Replica, v: View, o: Op) -> Bool:
    """Does the op store an offset that is not above the end of the partition at r?"""
    n = partition_of(state, state.asked_reader[v, o])
    return all_of(state.asked[v, o] == STORE, state.asked_offset[v, o] <= state.next_offset[r, n])


def require_known(state: Partitioned, r: Replica, o: Op) -> None:
    """It is known what the op that r is to execute asks."""
    require(asked(state, state.entry[r, o], o) != UNKNOWN)


def require_flushed(state: Partitioned, r: Replica) -> None:
    """All messages of r are durable in its segments."""
    require(forall(Partition, lambda n: state.segment[r, n] >= state.held[r, n]))


def require_whole(state: Partitioned, r: Replica) -> None:
    """The segments of r hold every message that its snapshot names. A file that is missing or cut off is never made
    anew.
    """
    require(is_whole(state, r))


def is_whole(state: Partitioned, r: Replica) -> Bool:
    """Do r's segments hold every message that its snapshot names?"""
    return forall(Partition, lambda n: state.segment[r, n] >= state.saved_held[r, n])


def left(state: Partitioned, r: Replica, n: Partition) -> Offset:
    """How many of the messages that r's snapshot names are in its segments."""
    return smallest(state.segment[r, n], state.saved_held[r, n])


def lowered(state: Partitioned, r: Replica, g: Reader) -> Option[Offset]:
    """The reader's stored offset in r's snapshot, at most the end of what is left."""
    return smallest(state.saved_stored[r, g], some(left(state, r, partition_of(state, g))))


@point
def held_again(s: Partitioned, r: Replica, n: Partition) -> Offset:
    """How many messages r holds after a restart: those that its snapshot names; none without one."""
    return s.saved_held[r, n] if s.cfg.checkpoints else as_index(Offset, 0)


@point
def next_offset_again(s: Partitioned, r: Replica, n: Partition) -> Offset:
    """The next offset after a restart: it is recovered from the messages, not from the index (seed 003)."""
    return s.saved_held[r, n] if s.cfg.checkpoints else as_index(Offset, 0)


@point
def stored_again(s: Partitioned, r: Replica, g: Reader) -> Option[Offset]:
    """The reader's stored offset after a restart: that of r's snapshot."""
    return s.saved_stored[r, g] if s.cfg.checkpoints else NONE


def load_partitions(state: Partitioned, r: Replica) -> None:
    """The partitions of r after a restart; the index is made from the messages."""
    state.held.update((r, Partition), lambda n: held_again(state, r, n))
    state.next_offset.update((r, Partition), lambda n: next_offset_again(state, r, n))
    state.stored.update((r, Reader), lambda g: stored_again(state, r, g))
    if state.cfg.partitions.files:
        state.index.update((r, Partition), lambda n: state.segment[r, n])


def take_messages(state: Partitioned, r: Replica, v: View, k: Op) -> None:
    """Replica r takes the messages that come with the snapshot of op k, sent in view v, in place of its own."""
    names = ("next_offset", *(("segment", "index") if state.cfg.partitions.files else ()))
    for name in names:
        getattr(state, name).update((r, Partition), lambda n: state.snapshot_held[v, k, n])
