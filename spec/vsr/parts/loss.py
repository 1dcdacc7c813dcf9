"""Disks that lose what a replica's promises rest on: its log, or all it has (docs/recovery.md).

The replica is then `recovering`: it takes part in nothing until it installs the log of a started view that holds
whatever it may have acknowledged. Without its log it still knows its view; without its superblock it begins with the
highest view that enough others know of (`lose_disk`), so that no promise is forgotten. The two steps of a recovery are
a loss, which is a crash, too, and an installation.

Which start_view will do (`covers`): one of a later view than that of its log; or one that is not older than all that it
had received of that view. The implementation knows the latter by a nonce, or by the highest op that its disk shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from viewproof.spec.lang import (
    NONE,
    Bool,
    Cells,
    Change,
    Part,
    Predicate,
    SpecError,
    State,
    action,
    all_of,
    any_of,
    at,
    before,
    between,
    count,
    exists,
    forall,
    implies,
    invariant,
    largest,
    maximum,
    not_,
    replaces,
    require,
    tagged,
    variable,
    where,
    within,
    witness,
)
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import invariants, restart, view_change
from viewproof.spec.vsr.core.lemmas.words import each_entry, each_replica, each_vote, each_vote_entry, started
from viewproof.spec.vsr.core.normal import require_slot
from viewproof.spec.vsr.core.restart import load_state
from viewproof.spec.vsr.core.state import (
    REBUILT,
    RECOVERING,
    VIEW_CHANGE,
    Length,
    Op,
    Replica,
    Restart,
    Status,
    View,
    copy,
    durable,
    entry_of_view,
    executed_state,
    primary,
    snapshot_op,
)
from viewproof.spec.vsr.core.view_change import install_log, require_log, require_started
from viewproof.spec.vsr.options import Options, option
from viewproof.spec.vsr.parts import discard
from viewproof.spec.vsr.parts.checkpoints import checkpoint
from viewproof.spec.vsr.parts.checkpoints.snapshot import Checkpoints, SentSnapshots
from viewproof.spec.vsr.parts.discard import Discards, Nacks

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@dataclass(frozen=True)
class LossOptions(Options):
    """The option of losses."""

    losses: bool = option(False, "a disk may lose the log, or all that it holds")

    def go_together(self: Any) -> None:
        """What is lost is a log without gaps, and a snapshot."""
        if self.losses and (self.repair.recovery or self.partitions.files):
            raise SpecError("losses do not go together with repair of journals or with segment files yet")


class Lost(State):
    """What is remembered of a loss."""

    lost_op: Cells[Replica, Op] = variable("highest op that its log held when it was lost; 0: nothing is lost")
    lost_view: Cells[Replica, View] = variable("highest view in a superblock that it lost")


class LossMessages(SentSnapshots, Nacks):
    """The messages that losses concern, where they are there."""


class Losses(LossMessages, Lost, Checkpoints, Discards):
    """The state with losses, and with what they concern, where it is there."""

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> LossMessages:
            """The messages that a replica has received."""


def takes_part(s: Losses, r: Replica) -> Bool:
    """Is r not waiting for what its disk lost?"""
    return s.status[r] != RECOVERING


def require_takes_part(state: Losses, r: Replica) -> None:
    """r is not waiting for what its disk lost."""
    require(takes_part(state, r))


@tagged("crash")
@action
def lose_log(state: Losses, r: Replica) -> None:
    """A replica crashes and starts again from superblock and snapshot, without the log above it."""
    require(takes_part(state, r))
    lose(state, r, True)
    keep_view(state, r)


@tagged("crash")
@action
def lose_snapshot(state: Losses, r: Replica) -> None:
    """A replica crashes and starts again from its superblock, without log and snapshot."""
    require(takes_part(state, r))
    lose(state, r, False)
    keep_view(state, r)


def keep_view(state: Losses, r: Replica) -> None:
    """View and log_view of r are those of its superblock."""
    state.view[r] = state.durable_view[r]
    state.log_view[r] = state.durable_log_view[r]


@tagged("crash")
@action
def lose_disk(state: Losses, r: Replica, m: View) -> None:
    """A replica crashes and loses all. Its new superblock has the highest view m of n - q_v + 1 others: enough to meet,
    for each view in which it sent a do_view_change, one whose start_view_change asked for that. One that lost the view
    in which it sent that does not count.
    """
    n, q_v = state.cfg.replicas, state.cfg.quorum_view_change
    others = count(Replica, lambda q: all_of(q != r, state.durable_view[q] <= m, state.lost_view[q] == 0))
    require(others >= n - q_v + 1)
    require(exists(Replica, lambda q: all_of(q != r, state.durable_view[q] == m)))
    begin_again(state, r, m)


def begin_again(state: Losses, r: Replica, m: View) -> None:
    """The superblock of r says that its promises were lost, and view m."""
    lose(state, r, False)
    state.lost_view[r] = largest(state.lost_view[r], state.durable_view[r])
    state.view[r] = m
    state.log_view[r] = m
    state.durable_view[r] = m
    state.durable_log_view[r] = m


def lose(state: Losses, r: Replica, snapshot: bool, status: Status = RECOVERING) -> None:
    """Effects of a crash after which r has its snapshot, if it had one, or not even that, and no log."""
    require(within(Restart, state.restarts + 1))
    k = snapshot_op(state, r) if snapshot else 0
    last = maximum(between(Op, 1, state.op[r]), lambda o: where(durable(state, r, o), o, 0))
    state.restarts = state.restarts + 1
    state.status[r] = status
    state.lost_op[r] = largest(state.lost_op[r], last)
    state.written.update((r, between(Op, 1, state.op[r])), lambda o: False)
    state.entry.update((r, between(Op, k + 1, state.op[r])), lambda o: NONE)
    state.op[r] = k
    state.commit_min[r] = k
    state.commit_max[r] = k
    if snapshot:
        load_state(state, r)
    else:
        lose_state(state, r)
    if state.cfg.drains_later:
        state.drained[r] = k


def lose_state(state: Losses, r: Replica) -> None:
    """Nothing is left of what a replica has executed, nor a snapshot of it."""
    for name in (*executed_state(state), *state.schema.tagged(REBUILT)):
        copy(state, (name, r), None)
    if state.cfg.checkpoints:
        state.checkpoint[r] = 0
        for name in executed_state(state):
            copy(state, (f"saved_{name}", r), None)


@action
def recover_log(state: Losses, r: Replica, v: View, n: Length) -> None:
    """A replica that lost its log installs that of a started view, up to op n, above the snapshot that it has."""
    require_recovery(state, r, v, n)
    require_slot(state, r, n)
    received = state.received(r)
    install_log(state, r, v, n, lambda o: entry_of_view(received, v, o))
    state.lost_op[r] = 0


@action
def recover_snapshot(state: Losses, r: Replica, v: View, n: Length, k: Op) -> None:
    """A replica that lost its log installs that of a started view, up to op n, with the primary's snapshot of op k.

    That may cover a part of the log that it lost, and be an older one than it had.
    """
    require_recovery(state, r, v, n)
    checkpoint.take_over(state, r, v, n, k)
    state.lost_op[r] = 0


def require_recovery(state: Losses, r: Replica, v: View, n: Op) -> None:
    """Replica r lost its log, and that of view v up to op n may take its place."""
    require(not_(takes_part(state, r)))
    require(v >= state.view[r])
    require_started(state, r, v)
    require_log(state, r, v, n)
    require(covers(state, r, v, n))


def covers(state: Losses, r: Replica, v: View, n: Op) -> Bool:
    """Does the log of view v up to op n hold all that r may have acknowledged in v: is v later than r's log, or had r
    received no prepare of v above n?
    """
    received = state.received(r)
    newer = forall(between(Op, n + 1, state.lost_op[r]), lambda o: not_(received.prepare[v, o].sent))
    return any_of(v > state.log_view[r], newer)


def waits(s: Losses, v: View, r: Replica, o: Op) -> Bool:
    """Did r lose its log: does it take part in nothing until it has one that holds what it acknowledged?"""
    return not_(takes_part(s, r))


def lost_its_view(s: Losses, r: Replica) -> Bool:
    """Did r lose its superblock in the step? It begins with no view below one that it knew to have started, or in which
    it offered its log, acknowledged or started.
    """
    return all_of(not_(takes_part(s.after, r)), s.after.restarts == s.restarts + 1)


def lost_it_twice(s: Losses, r: Replica) -> Bool:
    """Did r lose its superblock in the step while it waited? Its log_view was then the view that others had told it, of
    no log; asked again, fewer of them may tell it one that is earlier.
    """
    return all_of(not_(takes_part(s, r)), lost_its_view(s, r))


def is_promise_kept(s: Losses, v: View, r: Replica) -> Bool:
    """After the step: what r offered, acknowledged or started in view v is not above its durable view; only a
    start_view_change may be forgotten, as nothing rests on it.
    """
    started = all_of(primary(s, v) == r, s.after.sv[v].sent)
    promised = any_of(s.after.dvc[v, r].sent, started, exists(Op, lambda o: s.after.ack[v, r, o] != NONE))
    return all_of(
        implies(promised, v <= s.after.durable_view[r]),
        implies(s.after.svc[v, r], v <= largest(s.after.durable_view[r], s.after.lost_view[r])),
    )


def forgot_its_nack(s: Losses, q: Replica, w: View, o: Op) -> Bool:
    """Did q lose the view of its nack of the prepare (w, o)?"""
    return s.nack[q, w, o] <= s.lost_view[q]


@witness("I3.lost_log", "a replica lost what it acknowledged")
def acknowledged_and_lost(s: Losses) -> Bool:
    """A replica that lost its log had acknowledged an entry that no later view overruled."""
    return exists(
        Replica,
        lambda r: all_of(
            not_(takes_part(s, r)),
            exists(View, lambda v: exists(Op, lambda o: all_of(s.ack[v, r, o] != NONE, s.entry[r, o] == NONE))),
        ),
    )


@witness("I6.forgotten", "a view that a replica reached alone is forgotten")
def view_forgotten(s: Losses) -> Bool:
    """A replica lost its superblock, and takes part again in a view below that of a start_view_change of its own."""
    return exists(
        Replica, lambda r: all_of(takes_part(s, r), exists(View, lambda v: all_of(s.svc[v, r], v > s.durable_view[r])))
    )


@witness("I5.older_snapshot", "a replica came back with an older snapshot than it had")
def older_snapshot(s: Losses) -> Bool:
    """A replica that takes part has executed above commit_min before, and has a snapshot."""
    return exists(
        Replica,
        lambda r: all_of(
            takes_part(s, r),
            s.checkpoint[r] > 0,
            exists(Op, lambda o: all_of(o > s.commit_min[r], s.executed[r, o] != NONE)),
        ),
    )


def witnesses(cfg: Config) -> tuple[Predicate, ...]:
    """That of snapshots only where there are any."""
    common = (acknowledged_and_lost, view_forgotten)
    return (*common, older_snapshot) if cfg.checkpoints else common


def changes(cfg: Config) -> tuple[Change, ...]:
    """A replica that waits takes part in nothing, and is excused."""
    alive = (view_change.start_view_change, view_change.on_start_view, restart.restart)
    return (
        *(before(act, require_takes_part) for act in alive),
        *((before(checkpoint.install_snapshot, require_takes_part),) if cfg.checkpoints else ()),
        at(invariants.excused, waits),
        at(invariants.may_regress, lost_its_view),
        at(invariants.may_forget, lost_it_twice),
        replaces(invariants.is_promise_kept, is_promise_kept),
        at(discard.void, forgot_its_nack),
    )


@invariant("loss.status", "who is in a view change")
def status(s: Losses) -> Bool:
    """A backup in a view change has a log_view below its view."""
    return each_replica(
        lambda r: implies(all_of(s.status[r] == VIEW_CHANGE, s.log_view[r] == s.view[r]), primary(s, s.view[r]) == r)
    )


@invariant("loss.votes", "a vote is not above what its sender knows, or lost")
def votes(s: Losses) -> Bool:
    """A do_view_change is of an earlier view's log, and for a view up to its sender's; a quorum asked for it with
    start_view_changes, each for a view up to its sender's, or to one that it lost. A started view is up to its
    primary's.
    """
    return each_vote(
        lambda v, r: all_of(
            implies(s.svc[v, r], v <= largest(s.durable_view[r], s.lost_view[r])),
            implies(all_of(s.sv[v].sent, primary(s, v) == r), v <= s.durable_view[r]),
            implies(
                s.dvc[v, r].sent,
                all_of(
                    v <= s.durable_view[r],
                    s.dvc[v, r].log_view < v,
                    count(Replica, lambda q: s.svc[v, q]) >= s.cfg.quorum_view_change,
                ),
            ),
        )
    )


@invariant("loss.log_view_started", "a log_view is a started view")
def log_view_started(s: Losses) -> Bool:
    """The log_view of a replica that does not wait has started, and its log reaches what that view started with."""
    return each_replica(
        lambda r: any_of(not_(takes_part(s, r)), all_of(started(s, s.log_view[r]), s.sv[s.log_view[r]].op <= s.op[r]))
    )


@invariant("loss.log_durable", "what a replica acknowledged, and what its view began with, it holds")
def log_durable(s: Losses) -> Bool:
    """A replica that does not wait holds durably what it acknowledged in its log_view, and what that started with."""
    return each_entry(
        lambda r, o: any_of(
            not_(takes_part(s, r)),
            durable(s, r, o),
            all_of(s.ack[s.log_view[r], r, o] == NONE, o > s.sv[s.log_view[r]].op),
        )
    )


@invariant("loss.lost_acks", "what is lost was at most lost_op")
def lost_acks(s: Losses) -> Bool:
    """What a replica that waits had acknowledged is up to lost_op, or a view up to its log_view began without it."""
    return each_vote_entry(
        lambda v, r, o: any_of(
            takes_part(s, r),
            s.ack[v, r, o] == NONE,
            o <= s.lost_op[r],
            exists(
                between(View, v + 1, s.log_view[r]),
                lambda w: all_of(s.sv[w].sent, not_(invariants.carries(s, w, o, s.ack[v, r, o]))),
            ),
        )
    )


@invariant("loss.waits", "who waits has a snapshot at most")
def has_snapshot(s: Losses) -> Bool:
    """The log of a replica that waits ends with its snapshot, which it has executed, and is up to lost_op."""
    return each_replica(
        lambda r: any_of(
            takes_part(s, r),
            all_of(
                s.op[r] <= s.lost_op[r],
                s.commit_min[r] == s.op[r],
                s.commit_max[r] == s.op[r],
                snapshot_op(s, r) == s.op[r],
            ),
        )
    )


LEMMAS = (status, votes, log_view_started, log_durable, lost_acks, has_snapshot)

AFTER_LOSS = (
    "types.status",
    "messages.ack_durable",
    "messages.votes_below_view",
    "replicas.log_view_started",
    "replicas.start_durable",
)
"""Lemmas of the core that are false once a disk is lost: those of this part are in their place."""

LOSSES = Part(
    "losses",
    lambda cfg: cfg.losses,
    state=lambda cfg: (Lost,),
    actions=lambda cfg: (
        *(lose_log, lose_disk, recover_log),
        *((lose_snapshot, recover_snapshot) if cfg.checkpoints else ()),
    ),
    changes=changes,
    witnesses=witnesses,
    lemmas=lambda cfg: LEMMAS,
    untrue=lambda cfg, crashes: AFTER_LOSS,
    models={"loss": Model(Bounds(views=2, ops=1, requests=1, restarts=1), {"losses": True, "checkpoints": True})},
)
