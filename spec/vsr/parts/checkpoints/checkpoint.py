"""Checkpoints: a snapshot at commit_min, a journal drained up to it, restart and state transfer from it (seeds 000
and 003).

The journal holds what is above the checkpoint. A log still has its entries below: their checksums are chained up to
the snapshot's, so that a snapshot names the whole prefix. What a replica holds as a function of what it executed
(tag `EXECUTED`) is in the snapshot, under the prefix `saved_`, and, as sent with a start_view, `snapshot_`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Predicate,
    Truth,
    action,
    all_of,
    any_of,
    between,
    exists,
    forall,
    invariant,
    largest,
    not_,
    point,
    require,
    value_of,
    where,
    witness,
)
from viewproof.spec.vsr.core.invariants import chosen
from viewproof.spec.vsr.core.state import VIEW_CHANGE, Length, Log, Op, Replica, View, entry_of_view
from viewproof.spec.vsr.core.view_change import enter_view, require_start_view
from viewproof.spec.vsr.parts.checkpoints import snapshot
from viewproof.spec.vsr.parts.checkpoints.snapshot import Checkpoints, drain, install_state, save

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@action
def take_checkpoint(state: Checkpoints, r: Replica) -> None:
    """A replica makes a snapshot of what it has executed durable, and drains its journal up to there (seed 000).

    A normal primary sends it from now on with its start_view.
    """
    o = state.commit_min[r]
    require(o > state.checkpoint[r])
    require_flushed(state, r)
    save(state, r, o)
    if not state.cfg.drains_later:
        drain(state, r, o)


@point
def require_flushed(state: Checkpoints, r: Replica) -> None:
    """What r's snapshot names and does not hold itself is durable: it holds everything."""


@action
def drain_journal(state: Checkpoints, r: Replica) -> None:
    """A replica frees what its journal holds up to the checkpoint (seed 000)."""
    require(state.drained[r] < state.checkpoint[r])
    drain(state, r, state.checkpoint[r])


@action
def install_snapshot(state: Checkpoints, r: Replica, v: View, n: Length, k: Op) -> None:
    """A backup installs the log of a started view up to op n together with the primary's snapshot of op k, in place
    of the prepares up to k, which the primary's journal may no longer hold (seed 003: state transfer).
    """
    require_start_view(state, r, v, n)
    take_over(state, r, v, n, k)


def take_over(state: Checkpoints, r: Replica, v: View, n: Op, k: Op) -> None:
    """Guard and effects of installing the log of view v up to op n with the snapshot of op k that its primary sent."""
    received = state.received(r)
    require(received.snapshot[v, k])
    require(k <= n)
    require(k > state.commit_min[r])
    if state.cfg.journal_slots:
        require(n <= k + state.cfg.journal_slots)
    require_readable(state, r, v, k)
    install_log_above(state, r, v, n, k, lambda o: entry_of_view(received, v, o))
    state.commit_max[r] = largest(state.commit_max[r], k)
    install_state(state, r, v, k)


@point
def require_readable(state: Checkpoints, r: Replica, v: View, k: Op) -> None:
    """Replica r can do what the snapshot of op k, sent with view v's start_view, says that it must."""


def install_log_above(state: Checkpoints, r: Replica, v: View, n: Op, k: Op, entry: Log) -> None:
    """Make a view's log up to op n the replica's own (`view_change.install_log`); those up to op k, which a snapshot
    holds, are not in its journal.
    """
    enter_view(state, r, v, n)
    changed = between(Op, state.commit_min[r] + 1, largest(n, state.op[r]))
    journal = between(Op, snapshot.drained(state, r) + 1, largest(n, state.op[r]))
    state.entry.update((r, changed), lambda o: where(o <= n, lambda: entry(o), NONE))
    state.written.update((r, journal), lambda o: all_of(o > k, o <= n))
    state.ack.update((v, r, between(Op, k + 1, n)), entry)


def require_drained(state: Checkpoints, r: Replica, o: Op) -> None:
    """The slot of op o in the ring was drained."""
    require(o <= snapshot.drained(state, r) + state.cfg.journal_slots)


def require_snapshot(state: Checkpoints, r: Replica, n: Op) -> None:
    """The log up to op n reaches the snapshot."""
    require(n >= state.checkpoint[r])


def snapshot_op(s: Checkpoints, r: Replica) -> Op:
    """The op of r's snapshot."""
    return s.checkpoint[r]


def durable(s: Checkpoints, r: Replica, op: Op) -> Bool:
    """Is the op in r's snapshot, or in its journal?"""
    return any_of(op <= s.checkpoint[r], lambda: s.written[r, op])


def starts_afresh(s: Checkpoints, r: Replica) -> Bool:
    """Does the step make r start afresh: from its checkpoint at a restart, or from another's snapshot?"""
    return all_of(
        any_of(s.after.restarts == s.restarts + 1, s.after.checkpoint[r] > s.commit_min[r]),
        s.after.commit_min[r] == s.after.checkpoint[r],
    )


def is_executed(s: Checkpoints, r: Replica) -> Bool:
    """The checkpoint is of an op that was executed."""
    return s.checkpoint[r] <= s.commit_min[r]


def needs_no_later_view(s: Checkpoints) -> Truth:
    """Never surely: a primary whose ring is too small for the log that it should start with leaves the view to its
    timeout.
    """
    return False


def is_not_overwritten(s: Checkpoints, r: Replica) -> Bool:
    """The ring holds no op that overwrote one above the checkpoint."""
    last = s.checkpoint[r] + s.cfg.journal_slots
    return forall(Op, lambda o: any_of(o <= last, not_(s.written[r, o])))


@invariant("I13", "replay_safe")
def replay_safe(s: Checkpoints) -> Bool:
    """What a step executes, a restart included, is committed by a quorum, contiguous, and chained: all ops from the one
    after those executed before, or after the snapshot, up to commit_min.
    """
    return forall(
        Replica,
        lambda r: forall(
            between(Op, executed_before(s, r) + 1, s.after.commit_min[r]),
            lambda o: all_of(
                s.after.entry[r, o] != NONE,
                s.after.executed[r, o] == s.after.entry[r, o],
                lambda: exists(
                    View, lambda w: all_of(chosen(s, w, o), lambda: entry_of_view(s, w, o) == s.after.entry[r, o])
                ),
                lambda: (
                    s.prepare[value_of(s.after.entry[r, o]), o].parent
                    == where(o == 1, NONE, lambda: s.after.entry[r, o - 1])
                ),
            ),
        ),
    )


def executed_before(s: Checkpoints, r: Replica) -> Op:
    """The op up to which r had executed before the step; a restart or a snapshot starts from the checkpoint."""
    afresh = any_of(s.after.commit_min[r] < s.commit_min[r], s.after.checkpoint[r] > s.commit_min[r])
    return where(afresh, s.after.checkpoint[r], s.commit_min[r])


@witness("I5.drained", "a journal was drained while ops are above the checkpoint")
def drained(s: Checkpoints) -> Bool:
    """A replica has a checkpoint, and its journal holds an op above it."""
    return exists(Replica, lambda r: all_of(s.checkpoint[r] > 0, exists(Op, lambda o: s.written[r, o])))


@witness("I5.checkpoints_differ", "replicas have different checkpoints")
def checkpoints_differ(s: Checkpoints) -> Bool:
    """Two replicas have a checkpoint, one a later one."""
    return exists(
        Replica, lambda r: all_of(s.checkpoint[r] > 0, exists(Replica, lambda q: s.checkpoint[q] > s.checkpoint[r]))
    )


def transferred(s: Checkpoints, r: Replica) -> Bool:
    """Has r a snapshot that covers an op which it never executed itself?"""
    return exists(Op, lambda o: all_of(o <= s.checkpoint[r], s.executed[r, o] == NONE))


def goes_on(s: Checkpoints, r: Replica) -> Bool:
    """Has r executed an op above its checkpoint?"""
    return all_of(s.checkpoint[r] > 0, s.commit_min[r] > s.checkpoint[r])


@witness("I13", "a replica went on from another's snapshot")
def executed_after_transfer(s: Checkpoints) -> Bool:
    """A replica executed an op above a snapshot that it was sent."""
    return exists(Replica, lambda r: all_of(transferred(s, r), goes_on(s, r)))


@witness("I13.restart", "a replica went on from its snapshot after a restart")
def executed_after_restart(s: Checkpoints) -> Bool:
    """After a crash, a replica has executed an op above its checkpoint."""
    return all_of(s.restarts > 0, exists(Replica, lambda r: goes_on(s, r)))


@witness("I5.transfer", "a snapshot was installed in a later view than it was taken in")
def transfer_across_views(s: Checkpoints) -> Bool:
    """A replica has another's snapshot, and a log of a view that started later than view 0."""
    return exists(Replica, lambda r: all_of(transferred(s, r), s.log_view[r] > 0))


@witness("I5.race", "a transfer raced a view change")
def transfer_races_view_change(s: Checkpoints) -> Bool:
    """A replica has a snapshot of a view after which another one has started."""
    return exists(
        Replica,
        lambda r: all_of(transferred(s, r), exists(View, lambda v: all_of(v > s.view[r], s.sv[v].sent))),
    )


@witness("I5.wrap", "the ring wrapped")
def ring_wrapped(s: Checkpoints) -> Bool:
    """A journal holds an op in the slot of an earlier one."""
    return exists(Replica, lambda r: exists(Op, lambda o: all_of(o > s.cfg.journal_slots, s.written[r, o])))


@witness("I5.crash_before_drain", "a crash came between a checkpoint and the drain")
def crash_before_drain(s: Checkpoints) -> Bool:
    """A primary that restarted (it is in view_change in its log_view, and takes no checkpoint) has more to drain."""
    return exists(
        Replica,
        lambda r: all_of(s.status[r] == VIEW_CHANGE, s.log_view[r] == s.view[r], s.drained[r] < s.checkpoint[r]),
    )


def witnesses(cfg: Config) -> tuple[Predicate, ...]:
    """The ring's only where there is one."""
    common = (
        drained,
        checkpoints_differ,
        executed_after_transfer,
        executed_after_restart,
        transfer_across_views,
        transfer_races_view_change,
    )
    ring = (ring_wrapped,) if cfg.journal_slots else ()
    return (*common, *ring, *((crash_before_drain,) if cfg.drains_later else ()))
