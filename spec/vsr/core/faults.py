"""Mistakes in normal operation, view change, restart and state transfer of the core."""

from __future__ import annotations

from dataclasses import replace

from viewproof.spec.lang import (
    NONE,
    Truth,
    action,
    all_of,
    any_of,
    as_index,
    between,
    count,
    forall,
    instead,
    require,
    some,
    tagged,
    value_of,
    where,
    within,
)
from viewproof.spec.vsr.core import normal, restart, view_change
from viewproof.spec.vsr.core.options import Cluster
from viewproof.spec.vsr.core.state import (
    NORMAL,
    VIEW_CHANGE,
    Core,
    Entry,
    Length,
    Log,
    Op,
    Replica,
    View,
    entry_of_view,
    primary,
)
from viewproof.spec.vsr.core.view_change import offered_by
from viewproof.spec.vsr.stand_ins import Fault, beside, instead_of


@action
def execute(state: Core, r: Replica) -> None:
    """A replica executes an op as soon as it is in its log, not when it is committed [seed 000]."""
    with instead({normal.require_committed: require_in_log}):
        normal.execute.fn(state, r)


def require_in_log(state: Core, r: Replica, o: Op) -> None:
    """Op o is in the log of normal replica r."""
    require(state.status[r] == NORMAL)
    require(o <= state.op[r])


@tagged("crash")
@action
def restart_view_from_last_prepare(state: Core, r: Replica, n: Length) -> None:
    """At restart the view is inferred from the last prepare in the journal [seed 003]."""
    view = where(n == 0, 0, lambda: value_of(state.entry[r, n]))
    restart.recover(state, r, n, view, view)


def adopt_view_at_once(state: Core, r: Replica, v: View) -> None:
    """A replica that sees a later view is normal in it, without the log that it started with."""
    require(v > state.view[r])
    require(primary(state, v) != r)
    require(state.received(r).sv[v].sent)
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    state.durable_view[r] = v
    state.durable_log_view[r] = v


@action
def on_get_state(state: Core, r: Replica, v: View) -> None:
    """A replica that sees a later view truncates its log to the commit number and adopts the view at once [VR
    Revisited §5.2].
    """
    require(within(View, v))
    adopt_view_at_once(state, r, v)
    state.op[r] = state.commit_min[r]
    cut = between(Op, state.commit_min[r] + 1, state.op[r])
    state.entry.update((r, cut), lambda o: NONE)
    state.written.update((r, cut), lambda o: False)


def _even_quorum(cfg: Cluster) -> Cluster:
    q = (cfg.replicas - 1) // 2 + 1
    return replace(cfg, quorum_replication=q, quorum_view_change=q)


@tagged("crash")
@action
def restart_trusting_the_journal(state: Core, r: Replica, n: Length) -> None:
    """Replay takes the end of the journal for what is committed [seed 003]."""
    restart.recover(state, r, n, state.durable_view[r], state.durable_log_view[r], commit_max=n)


@tagged("crash")
@action
def restart_over_gap(state: Core, r: Replica, n: Length) -> None:
    """Of the prepares being written, a later one may have survived and an earlier one not; the journal's end is taken
    to be the last record, and not the one before the gap [seed 003].
    """
    views = state.durable_view[r], state.durable_log_view[r]
    restart.recover(state, r, n, *views, survived=lambda o: any_of(o == n, state.written[r, o]))


@action
def execute_over_gap(state: Core, r: Replica) -> None:
    """Replay goes on with the next op that the journal holds [seed 003]."""
    o = state.commit_min[r] + where(has_next(state, r), 1, 2)
    normal.require_committed(state, r, o)
    require(normal.is_request(state, state.entry[r, o], o))
    normal.require_table_slot(state, r, o)
    normal.execute_request(state, r, o, state.entry[r, o])


def has_next(state: Core, r: Replica) -> Truth:
    """Does r's journal hold the op after those executed, or end there?"""
    o = state.commit_min[r] + 1
    return any_of(o >= state.op[r], lambda: state.written[r, o])


@tagged("crash")
@action
def restart_without_view_file(state: Core, r: Replica, n: Length) -> None:
    """A view file that cannot be read counts as a first boot: view 0 [vsr-rs]."""
    restart.recover(state, r, n, as_index(View, 0), as_index(View, 0))


@action
def commit_out_of_order(state: Core, r: Replica, o: Op) -> None:
    """The primary executes any prepare that has a quorum, not the committable prefix [seed 000]."""
    v = state.view[r]
    require(state.status[r] == NORMAL)
    require(primary(state, v) == r)
    require(o > state.commit_max[r])
    require(o <= state.op[r])
    normal.require_acknowledged(state, r, o)
    state.commit_max[r] = o
    state.commit_sent[v] = o
    normal.execute_request(state, r, o, state.entry[r, o])


@action
def on_prepare_fenced(state: Core, r: Replica, o: Op) -> None:
    """A backup drops a prepare at or below commit_max, as if it had it [seed 000]."""
    require(o > state.commit_max[r])
    normal.on_prepare.fn(state, r, o)


def require_unfenced(state: Core, r: Replica, n: Op, entry: Log) -> None:
    """Of the log up to op n, replica r holds all at or below its commit_max: a prepare sent to it again is dropped."""
    require(
        forall(
            between(Op, state.commit_min[r] + 1, n),
            lambda o: any_of(
                o > state.commit_max[r], all_of(o <= state.op[r], state.entry[r, o] == entry(o), state.written[r, o])
            ),
        )
    )


@action
def on_start_view_fenced(state: Core, r: Replica, v: View, n: Length) -> None:
    """A backup cannot fetch the bodies of a started view's log at or below its commit_max [seed 000]."""
    require_unfenced(state, r, n, lambda o: entry_of_view(state.received(r), v, o))
    view_change.on_start_view.fn(state, r, v, n)


@action
def start_view_fenced(state: Core, r: Replica, b: Replica) -> None:
    """A new primary cannot fetch the bodies of the log it chose at or below its commit_max [seed 000]."""
    v, received = state.view[r], state.received(r)
    require_unfenced(state, r, received.dvc[v, b].op, lambda o: received.dvc[v, b].entry[o])
    view_change.start_view.fn(state, r, b)


@action
def on_start_view_false_ack(state: Core, r: Replica, v: View, n: Length) -> None:
    """A backup acknowledges the whole range of a start_view, without looking what its journal holds [seed 000]."""
    received = state.received(r)
    view_change.require_start_view(state, r, v, n)
    normal.require_slot(state, r, n)

    def entry(o: Op) -> Entry:
        return entry_of_view(received, v, o)

    view_change.enter_view(state, r, v, n)
    changed = between(Op, state.commit_min[r] + 1, n)
    state.entry.update((r, changed), entry)
    state.written.update((r, changed), lambda o: all_of(state.written[r, o], state.entry[r, o] == entry(o)))
    state.ack.update((v, r, changed), entry)


@action
def merge_early(state: Core, r: Replica, b: Replica) -> None:
    """On a quorum of do_view_changes the new primary raises its log_view; it installs the log, and starts the view,
    later [Iggy, later].
    """
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(primary(state, v) == r)
    require(state.log_view[r] < v)
    require(received.dvc[v, b].sent)
    require(count(Replica, lambda q: offered_by(state, r, v, q, b)) >= state.cfg.quorum_view_change)
    state.log_view[r] = v
    state.durable_log_view[r] = v


@action
def on_get_state_keeping_log(state: Core, r: Replica, v: View) -> None:
    """A replica that sees a later view adopts view and log_view when it asks for the state, before it has it
    [VR Revisited §5.2].
    """
    adopt_view_at_once(state, r, v)


@action
def commit_own_view_only(state: Core, r: Replica, o: Op) -> None:
    """A new primary knows no prepare of an older view in its pipeline: acknowledgements of them count for nothing
    [Iggy, later].
    """
    require(state.entry[r, o] == some(state.view[r]))
    normal.commit.fn(state, r, o)


FAULTS = (
    Fault(
        "commit.apply_at_replicate",
        (instead_of(normal.execute, act=execute),),
        drops=(
            "all_of(o <= state.op[r], lambda: state.written[r, o])",
            "o <= state.commit_max[r]",
        ),
    ),
    Fault("view.even_quorum", configure=_even_quorum),
    Fault(
        "boot.view_from_last_prepare",
        (instead_of(restart.restart, act=restart_view_from_last_prepare),),
    ),
    Fault(
        "state.getstate_truncates",
        comes_on_top=(beside(view_change.on_start_view, on_get_state),),
    ),
    Fault(
        "view.log_view_at_merge",
        comes_on_top=(beside(view_change.start_view, merge_early),),
    ),
    Fault(
        "state.view_before_newstate",
        comes_on_top=(beside(view_change.on_start_view, on_get_state_keeping_log),),
    ),
    Fault(
        "view.pipeline_not_rebuilt",
        (instead_of(normal.commit, act=commit_own_view_only),),
    ),
    Fault(
        "commit.out_of_order",
        (instead_of(normal.commit, act=commit_out_of_order),),
        drops=("o == state.commit_max[r] + 1",),
    ),
    Fault(
        "commit.false_ack_after_start_view",
        (instead_of(view_change.on_start_view, act=on_start_view_false_ack),),
    ),
    Fault(
        "boot.replays_uncommitted",
        (instead_of(restart.restart, act=restart_trusting_the_journal),),
    ),
    Fault(
        "boot.replays_over_gap",
        (instead_of(restart.restart, act=restart_over_gap), instead_of(normal.execute, act=execute_over_gap)),
        drops=(
            "all_of(o <= state.op[r], lambda: state.written[r, o])",
            "asked(state, state.entry[r, o], o) != UNKNOWN",
            "has_room(state, r, o, state.entry[r, o])",
            "is_request(state, state.entry[r, o], o)",
            "o <= state.commit_max[r]",
        ),
    ),
    Fault(
        "boot.view_file_unreadable_is_new",
        (instead_of(restart.restart, act=restart_without_view_file),),
    ),
)
