"""Mistakes in the commit path: what is acknowledged, committed, executed, checkpointed, and in which order."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import action, all_of, any_of, between, count, forall, require, without
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core import normal, view_change
from viewproof.spec.vsr.core.state import NORMAL, Length, Op, Replica, View, entry_of_view, primary
from viewproof.spec.vsr.faults.kinds import Fault, instead_of
from viewproof.spec.vsr.parts import pipeline
from viewproof.spec.vsr.parts.checkpoints import checkpoint, snapshot


@action(r=Replica, o=Op)
def commit_out_of_order(state: Any, r: Any, o: Any) -> None:
    """The primary executes any prepare that has a quorum, not the committable prefix [seed 000]."""
    v, received = state.view[r], state.received(r)
    require(state.status[r] == NORMAL)
    require(primary(state, v) == r)
    require(o > state.commit_max[r])
    require(o <= state.op[r])
    require(count(Replica, lambda q: received.ack[v, q, o] == state.entry[r, o]) >= state.cfg.quorum_replication)
    state.commit_max[r] = o
    state.commit_sent[v] = o
    normal.execute_request(state, r, o, state.entry[r, o])


@action(r=Replica, o=Op)
def on_prepare_fenced(state: Any, r: Any, o: Any) -> None:
    """A backup drops a prepare at or below commit_max, as if it had it [seed 000]."""
    require(o > state.commit_max[r])
    normal.on_prepare.fn(state, r, o)


def require_unfenced(state: Any, r: Any, n: Any, entry: Any) -> None:
    """Of the log up to op n, replica r holds all at or below its commit_max: a prepare sent to it again is dropped."""
    require(
        forall(
            between(Op, state.commit_min[r] + 1, n),
            lambda o: any_of(
                o > state.commit_max[r], all_of(o <= state.op[r], state.entry[r, o] == entry(o), state.written[r, o])
            ),
        )
    )


@action(r=Replica, v=View, n=Length)
def on_start_view_fenced(state: Any, r: Any, v: Any, n: Any) -> None:
    """A backup cannot fetch the bodies of a started view's log at or below its commit_max [seed 000]."""
    require_unfenced(state, r, n, lambda o: entry_of_view(state.received(r), v, o))
    view_change.on_start_view.fn(state, r, v, n)


@action(r=Replica, b=Replica)
def start_view_fenced(state: Any, r: Any, b: Any) -> None:
    """A new primary cannot fetch the bodies of the log it chose at or below its commit_max [seed 000]."""
    v, received = state.view[r], state.received(r)
    require_unfenced(state, r, received.dvc_op[v, b], lambda o: received.dvc_entry[v, b, o])
    view_change.start_view.fn(state, r, b)


@action(r=Replica, v=View, n=Length)
def on_start_view_false_ack(state: Any, r: Any, v: Any, n: Any) -> None:
    """A backup acknowledges the whole range of a start_view, without looking what its journal holds [seed 000]."""
    received = state.received(r)
    view_change.require_start_view(state, r, v, n)
    normal.require_slot(state, r, n)

    def entry(o: Any) -> Any:
        return entry_of_view(received, v, o)

    view_change.enter_view(state, r, v, n)
    changed = between(Op, state.commit_min[r] + 1, n)
    state.entry.update((r, changed), entry)
    state.written.update((r, changed), lambda o: all_of(state.written[r, o], state.entry[r, o] == entry(o)))
    state.ack.update((v, r, changed), entry)


@action(r=Replica)
def take_checkpoint_at_commit_max(state: Any, r: Any) -> None:
    """The snapshot is tagged with commit_max, and the journal drained up to there [seed 000]."""
    o = state.commit_max[r]
    require(o > state.checkpoint[r])
    checkpoint.require_flushed(state, r)
    snapshot.save(state, r, o)
    snapshot.drain(state, r, o)


@action(r=Replica, b=Replica)
def start_view_by_commit_min(state: Any, r: Any, b: Any) -> None:
    """The new primary takes the do_view_changes' commit_min for what is committed, and so rebuilds a pipeline that is
    too long [seed 000].
    """
    with without(pipeline.head_commit):
        view_change.start_view.fn(state, r, b)


def _needs_checkpoints(cfg: Config) -> str:
    return "" if cfg.checkpoints else "shows only with checkpoints"


def _needs_pipeline(cfg: Config) -> str:
    return "" if cfg.pipeline else "shows only with a pipeline that has a maximum"


FAULTS = (
    Fault(
        "commit.out_of_order",
        (instead_of(normal.commit, act=commit_out_of_order),),
        drops=("o == state.commit_max[r] + 1",),
    ),
    Fault(
        "commit.fence_on_commit_max",
        (
            instead_of(normal.on_prepare, act=on_prepare_fenced),
            instead_of(view_change.on_start_view, act=on_start_view_fenced),
            instead_of(view_change.start_view, act=start_view_fenced),
        ),
    ),
    Fault(
        "commit.false_ack_after_start_view",
        (instead_of(view_change.on_start_view, act=on_start_view_false_ack),),
    ),
    Fault(
        "commit.checkpoint_at_commit_max",
        (instead_of(checkpoint.take_checkpoint, act=take_checkpoint_at_commit_max),),
        refuses=_needs_checkpoints,
        drops=("o > state.checkpoint[r]",),
    ),
    Fault(
        "commit.dvc_carries_commit_min_only",
        (instead_of(view_change.start_view, act=start_view_by_commit_min),),
        refuses=_needs_pipeline,
        drops=("n - known <= state.cfg.pipeline",),
    ),
)
