"""View change and state transfer (VR Revisited §4.2, §5.2; log_view as in TigerBeetle and Iggy)."""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Bool,
    action,
    all_of,
    any_of,
    between,
    count,
    each,
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
    Core,
    DoViewChange,
    Length,
    Log,
    Op,
    Replica,
    StartView,
    View,
    entry_of_view,
    primary,
)


@action
def start_view_change(state: Core, r: Replica, v: View) -> None:
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
            exists(Replica, lambda q: all_of(q != r, any_of(state.svc[v, q], state.dvc[v, q].sent))),
        )
    )
    state.view[r] = v
    state.durable_view[r] = v
    state.status[r] = VIEW_CHANGE
    state.svc[v, r] = True


@action
def do_view_change(state: Core, r: Replica) -> None:
    """On start_view_changes of a quorum a replica offers its log to the new primary, once per view (VR Revisited
    §4.2, step 2).

    commit_min stands for the paper's commit number (seed 000).
    """
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(state.log_view[r] < v)
    require(not_(state.dvc[v, r].sent))
    require(count(Replica, lambda q: received.svc[v, q]) >= state.cfg.quorum_view_change)
    offer_log(state, r, v)


def offer_log(state: Core, r: Replica, v: View) -> None:
    """Send do_view_change: log_view, op, commit_min and the log."""
    state.dvc[v, r] = DoViewChange(
        log_view=state.log_view[r],
        op=state.op[r],
        commit=state.commit_min[r],
        entry=each(between(Op, 1, state.op[r]), lambda o: state.entry[r, o]),
    )


def offered_by(state: Core, r: Replica, v: View, q: Replica, b: Replica) -> Bool:
    """Has r received q's do_view_change, and is its log no larger than b's: (log_view, op) in lexicographic order?"""
    received = state.received(r)
    return all_of(
        received.dvc[v, q].sent,
        any_of(
            received.dvc[v, q].log_view < received.dvc[v, b].log_view,
            all_of(
                received.dvc[v, q].log_view == received.dvc[v, b].log_view,
                received.dvc[v, q].op <= received.dvc[v, b].op,
            ),
        ),
    )


@action
def start_view(state: Core, r: Replica, b: Replica) -> None:
    """The new primary starts its view with b's log, the largest of a quorum of do_view_changes (VR Revisited §4.2,
    step 3).

    The log, view and log_view are durable before start_view is sent; log_view rises only here, when the view starts.
    """
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(primary(state, v) == r)
    require(state.log_view[r] < v)
    require(not_(state.sv[v].sent))
    require(received.dvc[v, b].sent)
    require(count(Replica, lambda q: offered_by(state, r, v, q, b)) >= state.cfg.quorum_view_change)
    n = received.dvc[v, b].op
    known = largest(state.commit_max[r], offered_commit(state, r, b))
    require_fits(state, r, n, known)
    install_log(state, r, v, n, lambda o: received.dvc[v, b].entry[o])
    state.commit_max[r] = known
    send_start_view(state, v, n, lambda o: received.dvc[v, b].entry[o], known)
    go_with_start_view(state, r, v)


@joined(largest)
def offered_commit(state: Core, r: Replica, b: Replica) -> Op:
    """The largest commit number of the do_view_changes that r received for its view, b's log being the largest."""
    v = state.view[r]
    return maximum(Replica, lambda q: where(offered_by(state, r, v, q, b), state.received(r).dvc[v, q].commit, 0))


@point
def require_fits(state: Core, r: Replica, n: Op, known: Op) -> None:
    """There is room at new primary r for a log of n ops, of which the first `known` are known to be committed."""
    require_slot(state, r, n)


@point
def send_start_view(state: Core, v: View, n: Op, entry: Log, known: Op) -> None:
    """start_view of view v goes out, with a log of n ops and the commit number that is known."""
    state.sv[v] = StartView(op=n, entry=each(between(Op, 1, n), entry))
    state.commit_sent[v] = known


@point
def go_with_start_view(state: Core, r: Replica, v: View) -> None:
    """What primary r sends together with the start_view of view v."""


def install_log(state: Core, r: Replica, v: View, n: Op, entry: Log) -> None:
    """Make a view's log up to op n the replica's own, durably, with view and log_view, in one step; status normal.

    The replica acknowledges the entries that it has not executed (VR Revisited §4.2, step 5).
    """
    enter_view(state, r, v, n)
    changed = between(Op, state.commit_min[r] + 1, largest(n, state.op[r]))
    state.entry.update((r, changed), lambda o: where(o <= n, lambda: entry(o), NONE))
    state.written.update((r, changed), lambda o: o <= n)
    state.ack.update((v, r, between(Op, state.commit_min[r] + 1, n)), entry)


def enter_view(state: Core, r: Replica, v: View, n: Op) -> None:
    """Replica r is normal in view v, with a log of n ops; its view and log_view are durable."""
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    state.durable_view[r] = v
    state.durable_log_view[r] = v
    state.op[r] = n


@action
def on_start_view(state: Core, r: Replica, v: View, n: Length) -> None:
    """A backup installs the log of a started view up to op n (VR Revisited §4.2, step 5, and §5.2 state transfer
    done right).

    n is the start_view's own op, or a later one when the primary answers request_start_view. Until it is installed
    the replica keeps its view, its log_view and its whole log.
    """
    received = state.received(r)
    require_start_view(state, r, v, n)
    require_slot(state, r, n)
    install_log(state, r, v, n, lambda o: entry_of_view(received, v, o))


def require_start_view(state: Core, r: Replica, v: View, n: Op) -> None:
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


def require_started(state: Core, r: Replica, v: View) -> None:
    """Backup r of view v received its start_view."""
    require(primary(state, v) != r)
    require(any_of(v == 0, state.received(r).sv[v].sent))


def require_log(state: Core, r: Replica, v: View, n: Op) -> None:
    """What r received of view v makes a log up to op n."""
    received = state.received(r)
    require(n >= received.sv[v].op)
    require(forall(between(Op, received.sv[v].op + 1, n), lambda o: received.prepare[v, o].sent))
