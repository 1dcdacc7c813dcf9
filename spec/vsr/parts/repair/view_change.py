"""View change over journals with gaps: do_view_changes with headers, merged, repaired, then started (seed 002)."""

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
    largest,
    maximum,
    not_,
    require,
    some,
    where,
    within,
)
from viewproof.spec.vsr.core.state import (
    NORMAL,
    RECOVERING,
    VIEW_CHANGE,
    Entry,
    Length,
    Op,
    Replica,
    StartView,
    View,
    entry_of_view,
    primary,
)
from viewproof.spec.vsr.core.view_change import offered_by, require_start_view
from viewproof.spec.vsr.parts.repair.nacks import lowest_covered
from viewproof.spec.vsr.parts.repair.state import HeadersOffered, Repaired, chained, leading, set_log


@action
def start_view_change(state: Repaired, r: Replica, v: View) -> None:
    """A replica enters a later view, on timeout or as another asks; nothing of it is durable (VR Revisited §4.2,
    step 1).
    """
    require(within(View, v))
    require(state.status[r] != RECOVERING)
    require(v > state.view[r])
    require(
        any_of(
            v == state.view[r] + 1,
            exists(Replica, lambda q: all_of(q != r, any_of(state.svc[v, q], state.dvc[v, q].sent))),
        )
    )
    state.view[r] = v
    state.status[r] = VIEW_CHANGE
    state.svc[v, r] = True


@action
def do_view_change(state: Repaired, r: Replica) -> None:
    """On start_view_changes of a quorum a replica offers its log, as headers with gaps, to the new primary (seed 002).

    From then on it takes part in no earlier view: that it keeps, also over a crash.
    """
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(state.log_view[r] < v)
    require(not_(state.dvc[v, r].sent))
    require(count(Replica, lambda q: received.svc[v, q]) >= state.cfg.quorum_view_change)
    low = lowest_covered(state, r)
    require(low <= largest(state.op[r], 1))
    state.durable_view[r] = v
    state.dvc[v, r] = HeadersOffered(
        log_view=state.log_view[r],
        op=state.op[r],
        commit=state.commit_max[r],
        low=low,
        entry=each(between(Op, low, state.op[r]), lambda o: state.entry[r, o]),
    )
    state.dvc_reworked[v, r] = state.merged[r] > some(state.log_view[r])


@action
def merge(state: Repaired, r: Replica, b: Replica) -> None:
    """The new primary makes one log of a quorum of do_view_changes: that of b, the largest of them, and what others
    of its log_view know in its gaps. The view starts later, once the log is repaired (seed 002).
    """
    v = state.view[r]
    received = state.received(r)
    require_merge(state, r, b)
    known = maximum(Replica, lambda q: where(offered_by(state, r, v, q, b), received.dvc[v, q].commit, 0))
    n = received.dvc[v, b].op

    def header(o: Op) -> Entry:
        sent = canonical_header(state, r, v, b, o)
        return where(sent == NONE, where(o == n, NONE, state.entry[r, o]), sent)

    set_log(state, r, state.commit_min[r] + 1, n, header)
    state.commit_max[r] = largest(state.commit_max[r], known)
    state.merged[r] = some(v)


def require_merge(state: Repaired, r: Replica, b: Replica) -> None:
    """New primary r has a quorum of do_view_changes, its own among them, b's the largest; it merged none yet."""
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(primary(state, v) == r)
    require(state.merged[r] != some(v))
    require(received.dvc[v, r].sent)
    require(received.dvc[v, b].sent)
    require(count(Replica, lambda q: offered_by(state, r, v, q, b)) >= state.cfg.quorum_view_change)


def canonical_header(state: Repaired, r: Replica, v: View, b: Replica, o: Op) -> Entry:
    """The header at o that b, or another do_view_change of its log_view that r received, knows; 0 if none does."""
    received = state.received(r)
    return maximum(
        Replica,
        lambda q: where(
            all_of(offered_by(state, r, v, q, b), received.dvc[v, q].log_view == received.dvc[v, b].log_view),
            received.dvc[v, q].entry[o],
            NONE,
        ),
    )


@action
def start_view(state: Repaired, r: Replica) -> None:
    """The new primary starts its view once its headers are connected and their prepares in its journal (seed 002:
    start_view_as_the_new_leader). Its pipeline is what is uncommitted then; acknowledgements begin anew.
    """
    v = state.view[r]
    require(leading(state, r))
    require(is_repaired(state, r))
    state.status[r] = NORMAL
    state.log_view[r] = v
    state.durable_view[r] = v
    send_start_view(state, r, v)


def is_repaired(state: Repaired, r: Replica) -> Bool:
    """Is r's log above what it executed connected, and all of it in its journal?"""
    o = state.commit_min[r] + 1
    return all_of(
        state.op[r] >= state.commit_max[r],
        chained(state, r, o, state.op[r]),
        forall(between(Op, o, state.op[r]), lambda p: state.written[r, p]),
    )


def send_start_view(state: Repaired, r: Replica, v: View) -> None:
    """start_view goes out with r's log and commit_max."""
    log = between(Op, 1, state.op[r])
    state.sv[v] = StartView(op=state.op[r], entry=each(log, lambda o: state.entry[r, o]))
    state.commit_sent[v] = state.commit_max[r]


@action
def on_start_view(state: Repaired, r: Replica, v: View, n: Length) -> None:
    """A backup takes the headers of a started view up to op n as its log; it repairs the prepares afterwards (seed
    002). A header says nothing of what a faulty slot held: it stays faulty.
    """
    require(state.status[r] != RECOVERING)
    require_start_view(state, r, v, n)
    install_headers(state, r, v, n)
    state.durable_view[r] = v


def install_headers(state: Repaired, r: Replica, v: View, n: Op, *, top: Op | int = 0) -> None:
    """The headers of view v up to op n are r's log, and r is its normal backup (`top`: see `set_log`)."""
    received = state.received(r)
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    set_log(state, r, state.commit_min[r] + 1, n, lambda o: entry_of_view(received, v, o), top=top)
