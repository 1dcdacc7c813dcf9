"""View change and state transfer (VR Revisited §4.2, §5.2; log_view as in TigerBeetle and Iggy)."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import (
    NONE,
    action,
    all_of,
    any_of,
    between,
    count,
    exists,
    forall,
    joined,
    largest,
    maximum,
    not_,
    point,
    require,
    where,
    within,
)
from viewproof.spec.vsr.core.normal import require_slot
from viewproof.spec.vsr.core.state import (
    NORMAL,
    VIEW_CHANGE,
    Length,
    Op,
    Replica,
    View,
    entry_of_view,
    is_prepared,
    primary,
)


@action(r=Replica, v=View)
def start_view_change(state: Any, r: Any, v: Any) -> None:
    """A replica enters a later view: on timeout the next one, or one that another replica asks for (VR Revisited
    §4.2, step 1).

    The view is durable before the message is sent. The message that made it move is not kept, so any that was sent
    counts.
    """
    require(within(View, v))
    require(v > state.view[r])
    require(
        any_of(
            v == state.view[r] + 1,
            exists(Replica, lambda q: all_of(q != r, any_of(state.svc[v, q], state.dvc[v, q]))),
        )
    )
    state.view[r] = v
    state.durable_view[r] = v
    state.status[r] = VIEW_CHANGE
    state.svc[v, r] = True


@action(r=Replica)
def do_view_change(state: Any, r: Any) -> None:
    """On start_view_changes of a quorum a replica offers its log to the new primary, once per view (VR Revisited
    §4.2, step 2).

    commit_min stands for the paper's commit number (seed 000).
    """
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(state.log_view[r] < v)
    require(not_(state.dvc[v, r]))
    require(count(Replica, lambda q: received.svc[v, q]) >= state.cfg.quorum_view_change)
    offer_log(state, r, v)


def offer_log(state: Any, r: Any, v: Any) -> None:
    """Send do_view_change: log_view, op, commit_min and the log."""
    state.dvc[v, r] = True
    state.dvc_log_view[v, r] = state.log_view[r]
    state.dvc_op[v, r] = state.op[r]
    state.dvc_commit[v, r] = state.commit_min[r]
    state.dvc_entry.update((v, r, between(Op, 1, state.op[r])), lambda o: state.entry[r, o])


def offered_by(state: Any, r: Any, v: Any, q: Any, b: Any) -> Any:
    """Has r received q's do_view_change, and is its log no larger than b's: (log_view, op) in lexicographic order?"""
    received = state.received(r)
    return all_of(
        received.dvc[v, q],
        any_of(
            received.dvc_log_view[v, q] < received.dvc_log_view[v, b],
            all_of(
                received.dvc_log_view[v, q] == received.dvc_log_view[v, b],
                received.dvc_op[v, q] <= received.dvc_op[v, b],
            ),
        ),
    )


@action(r=Replica, b=Replica)
def start_view(state: Any, r: Any, b: Any) -> None:
    """The new primary starts its view with b's log, the largest of a quorum of do_view_changes (VR Revisited §4.2,
    step 3).

    The log, view and log_view are durable before start_view is sent; log_view rises only here, when the view starts.
    """
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(primary(state, v) == r)
    require(state.log_view[r] < v)
    require(not_(state.sv[v]))
    require(received.dvc[v, b])
    require(count(Replica, lambda q: offered_by(state, r, v, q, b)) >= state.cfg.quorum_view_change)
    n = received.dvc_op[v, b]
    known = largest(state.commit_max[r], offered_commit(state, r, b))
    require_fits(state, r, n, known)
    install_log(state, r, v, n, lambda o: received.dvc_entry[v, b, o])
    state.commit_max[r] = known
    send_start_view(state, v, n, lambda o: received.dvc_entry[v, b, o], known)
    go_with_start_view(state, r, v)


@joined(largest)
def offered_commit(state: Any, r: Any, b: Any) -> Any:
    """The largest commit number of the do_view_changes that r received for its view, b's log being the largest."""
    v = state.view[r]
    return maximum(Replica, lambda q: where(offered_by(state, r, v, q, b), state.received(r).dvc_commit[v, q], 0))


@point
def require_fits(state: Any, r: Any, n: Any, known: Any) -> None:
    """There is room at new primary r for a log of n ops, of which the first `known` are known to be committed."""
    require_slot(state, r, n)


def send_start_view(state: Any, v: Any, n: Any, entry: Any, known: Any) -> None:
    """start_view of view v goes out, with a log of n ops and the commit number that is known."""
    state.sv[v] = True
    state.sv_op[v] = n
    state.sv_entry.update((v, between(Op, 1, n)), entry)
    state.commit_sent[v] = known


@point
def go_with_start_view(state: Any, r: Any, v: Any) -> None:
    """What primary r sends together with the start_view of view v."""


def install_log(state: Any, r: Any, v: Any, n: Any, entry: Any) -> None:
    """Make a view's log up to op n the replica's own, durably, with view and log_view, in one step; status normal.

    The replica acknowledges the entries that it has not executed (VR Revisited §4.2, step 5).
    """
    enter_view(state, r, v, n)
    changed = between(Op, state.commit_min[r] + 1, largest(n, state.op[r]))
    state.entry.update((r, changed), lambda o: where(o <= n, lambda: entry(o), NONE))
    state.written.update((r, changed), lambda o: o <= n)
    state.ack.update((v, r, between(Op, state.commit_min[r] + 1, n)), entry)


def enter_view(state: Any, r: Any, v: Any, n: Any) -> None:
    """Replica r is normal in view v, with a log of n ops; its view and log_view are durable."""
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    state.durable_view[r] = v
    state.durable_log_view[r] = v
    state.op[r] = n


@action(r=Replica, v=View, n=Length)
def on_start_view(state: Any, r: Any, v: Any, n: Any) -> None:
    """A backup installs the log of a started view up to op n (VR Revisited §4.2, step 5, and §5.2 state transfer
    done right).

    n is the start_view's own op, or a later one when the primary answers request_start_view. Until it is installed
    the replica keeps its view, its log_view and its whole log.
    """
    received = state.received(r)
    require_start_view(state, r, v, n)
    require_slot(state, r, n)
    install_log(state, r, v, n, lambda o: entry_of_view(received, v, o))


def require_start_view(state: Any, r: Any, v: Any, n: Any) -> None:
    """Backup r received a start_view of view v with a log up to op n, and it tells r something new."""
    require_started(state, r, v)
    require(
        any_of(
            v > state.view[r],
            all_of(v == state.view[r], state.status[r] == VIEW_CHANGE),
            all_of(v == state.view[r], state.status[r] == NORMAL, n > state.op[r]),
        )
    )
    require_log(state, r, v, n)


def require_started(state: Any, r: Any, v: Any) -> None:
    """Backup r of view v received its start_view."""
    require(primary(state, v) != r)
    require(any_of(v == 0, state.received(r).sv[v]))


def require_log(state: Any, r: Any, v: Any, n: Any) -> None:
    """What r received of view v makes a log up to op n."""
    received = state.received(r)
    require(n >= received.sv_op[v])
    require(forall(between(Op, received.sv_op[v] + 1, n), lambda o: is_prepared(state, v, o, received)))
