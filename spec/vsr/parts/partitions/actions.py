"""Partitions of messages: appends, stored offsets, segments and indexes (seed 003; docs/groups.md).

A checkpoint first appends to each segment what it lacks and flushes it, then writes the snapshot (the manifest): what
segments hold beyond it belongs to ops that are executed again. A segment that is missing or cut off is fetched from
another replica before its own starts again; a cluster of one may be told to accept the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    Action,
    action,
    any_of,
    instead,
    largest,
    not_,
    number_of,
    require,
    tagged,
    value_of,
    within,
    without,
)
from viewproof.spec.vsr.core.normal import require_ready
from viewproof.spec.vsr.core.restart import recover
from viewproof.spec.vsr.core.state import Length, Op, Replica, Rot, View
from viewproof.spec.vsr.parts.partitions.state import (
    APPEND,
    OTHER,
    STORE,
    UNKNOWN,
    Count,
    Offset,
    Partition,
    Partitioned,
    Reader,
    asked,
    held_again,
    is_whole,
    left,
    lowered,
    next_offset_again,
    partition_of,
    require_whole,
    stored_again,
)

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@action
def ask_append(state: Partitioned, r: Replica, n: Partition, m: Count) -> None:
    """The next op that r executes turns out to append m messages to partition n."""
    require(within(Offset, state.next_offset[r, n] + number_of(m)))
    v, o = require_unknown(state, r)
    state.asked[v, o] = APPEND
    state.asked_partition[v, o] = n
    state.asked_count[v, o] = m


@action
def ask_store(state: Partitioned, r: Replica, g: Reader, x: Offset) -> None:
    """The next op that r executes turns out to store offset x for reader g. (A bounded model needs no offset further
    above the end than by one.)
    """
    v, o = require_unknown(state, r)
    if state.cfg.partitions.files:
        require(x <= state.next_offset[r, partition_of(state, g)] + 1)
    state.asked[v, o] = STORE
    state.asked_reader[v, o] = g
    state.asked_offset[v, o] = x


@action
def ask_other(state: Partitioned, r: Replica) -> None:
    """The next op that r executes turns out to change no partition: it reads, say."""
    v, o = require_unknown(state, r)
    state.asked[v, o] = OTHER


def require_unknown(state: Partitioned, r: Replica) -> tuple[View, Op]:
    """What the next op of r asks is not known yet; returns its view and op. (In a bounded model r is about to execute
    it: to know it sooner changes nothing.)
    """
    o = state.commit_min[r] + 1
    require(o <= state.op[r])
    if state.cfg.partitions.files:
        require_ready(state, r, o)
    require(asked(state, state.entry[r, o], o) == UNKNOWN)
    return value_of(state.entry[r, o]), o


@action
def flush_segment(state: Partitioned, r: Replica, n: Partition) -> None:
    """A replica appends to the segments of a partition what they lack, and flushes them; the index is flushed only
    where a segment is closed, so it may lag (seed 003).
    """
    require(state.held[r, n] > state.segment[r, n])
    require(state.segment[r, n] >= state.saved_held[r, n])
    closed = state.held[r, n] - state.held[r, n] % state.cfg.partitions.segment
    state.segment[r, n] = state.held[r, n]
    state.index[r, n] = largest(state.index[r, n], closed)


@tagged("fault")
@action
def damage_segment(state: Partitioned, r: Replica, n: Partition, x: Offset) -> None:
    """Segments of a partition go bad: their first x messages are left; none, if the files are missing."""
    require(within(Rot, state.rots + 1))
    require(x < state.segment[r, n])
    state.rots = state.rots + 1
    state.segment[r, n] = x


@action
def fetch_segment(state: Partitioned, r: Replica, q: Replica, n: Partition) -> None:
    """Messages that r's snapshot names and its segments lack are fetched from q (seed 003): before r starts again."""
    require(q != r)
    require(state.segment[r, n] < state.saved_held[r, n])
    require(state.held[q, n] >= state.saved_held[r, n])
    state.segment[r, n] = state.saved_held[r, n]


@tagged("crash")
@action
def restart_accepting_loss(state: Partitioned, r: Replica, n: Length) -> None:
    """A replica without others starts, as the operator says, with the messages that are left, up to the first that is
    lost; offsets stored above the end are lowered to it. Each loss is reported; what is left is the snapshot.
    """
    require(not_(is_whole(state, r)))
    with without(require_whole), instead({held_again: left, next_offset_again: left, stored_again: lowered}):
        recover(state, r, n, state.durable_view[r], state.durable_log_view[r])
    state.loss_accepted.update(
        (Partition,), lambda p: any_of(state.loss_accepted[p], left(state, r, p) < state.saved_held[r, p])
    )
    state.saved_held.update((r, Partition), lambda p: left(state, r, p))
    state.saved_stored.update((r, Reader), lambda g: lowered(state, r, g))


def of(cfg: Config) -> tuple[Action, ...]:
    """The actions; those of files only where they are modelled."""
    asking = (ask_append, ask_store, ask_other)
    if not cfg.partitions.files:
        return asking
    return (*asking, flush_segment, damage_segment, restart_accepting_loss if cfg.replicas == 1 else fetch_segment)
