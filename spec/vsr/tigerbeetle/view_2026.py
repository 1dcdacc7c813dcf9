"""View change of the July 2026 build: exit_view, join_view with headers, nacks and copies, the merge, view."""

from __future__ import annotations

from viewproof.spec.lang import (
    Bool,
    Number,
    action,
    all_of,
    any_of,
    between,
    count,
    exists,
    forall,
    implies,
    largest,
    maximum,
    not_,
    number_of,
    require,
    where,
)
from viewproof.spec.vsr.tigerbeetle.node_2026 import head_is_certain, keep_promises, put_header, remove_above
from viewproof.spec.vsr.tigerbeetle.normal_2026 import chained, holds, votes
from viewproof.spec.vsr.tigerbeetle.sorts import Count, Message, Nonce, Op, Prepare, Replica, View
from viewproof.spec.vsr.tigerbeetle.state_2026 import (
    CHECKPOINT_OPS,
    KIND,
    NORMAL,
    PIPELINE,
    RECOVERING,
    RECOVERING_HEAD,
    SLOTS,
    SUFFIX,
    VIEW_CHANGE,
    July,
    at,
    leads,
    prepare_max,
    primary,
    slot_of,
)


@action
def exit_view(state: July, r: Replica, m: Message) -> None:
    """A replica says that it wants to leave its view."""
    require(state.up[r])
    require(votes(state, r))
    require(any_of(state.status[r] == NORMAL, state.status[r] == VIEW_CHANGE))
    state.m_kind[m] = KIND["exit_view"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]


@action
def on_exit_view(state: July, r: Replica, q: Replica) -> None:
    """An exit_view of the view is noted."""
    m = state.current[r]
    require(state.up[r])
    require(any_of(state.status[r] == NORMAL, state.status[r] == VIEW_CHANGE))
    require(state.m_kind[m] == KIND["exit_view"])
    require(state.m_from[m] == q)
    require(votes(state, q))
    require(state.m_view[m] == state.view[r])
    state.exit_from[r, q] = True


@action
def exit_quorum(state: July, r: Replica, k: Count) -> None:
    """k replicas want to leave the view: a quorum."""
    require(state.up[r])
    require(votes(state, r))
    require(k >= state.cfg.quorum_view_change)
    require(count(Replica, lambda q: state.exit_from[r, q]) >= number_of(k))
    state.exit_quorum[r] = True


def may_enter(state: July, r: Replica, v: View) -> Bool:
    """May r enter view v: after a quorum of exit_views, by a message of it, at a start, or as a lagging new primary?"""
    m = state.current[r]
    return any_of(
        all_of(state.exit_quorum[r], v == state.view[r] + 1),
        all_of(state.m_view[m] == v, v > state.view[r], state.m_kind[m] != KIND["none"]),
        all_of(state.status[r] == RECOVERING, state.log_view[r] < state.view[r], v == state.view[r]),
        all_of(
            state.status[r] == RECOVERING,
            state.log_view[r] == state.view[r],
            v == state.view[r] + 1,
            head_is_certain(state, r),
        ),
        all_of(
            state.status[r] == VIEW_CHANGE,
            leads(state, r),
            state.join_of[r, r] != 0,
            v > state.view[r],
            v < state.view[r] + state.cfg.replicas,
        ),
    )


@action
def start_view_change(state: July, r: Replica, v: View) -> None:
    """A replica enters a view that is to start; the headers it will vote with are those of the log it leaves (I12).

    A replica that jumps to a checkpoint does not lead: it goes one view further.
    """
    k, head = state.commit_max[r], largest(state.op[r], state.list_op[r])
    leading = all_of(state.status[r] == VIEW_CHANGE, state.log_view[r] == state.view[r])
    top = where(leading, state.op[r], head)
    anew = any_of(state.status[r] == NORMAL, state.log_view[r] == state.view[r])
    low = where(k < top, k, top)
    require(state.up[r])
    floor = where(top < SLOTS, 0, top - SLOTS + 1)
    require(any_of(state.cfg.replicas > 1, not_(votes(state, r))))
    require(state.status[r] != RECOVERING_HEAD)
    require(v >= state.view[r])
    require(v > state.log_view[r])
    require(
        any_of(
            may_enter(state, r, v),
            all_of(state.syncing[r] != 0, primary(state, v - 1) == r, may_enter(state, r, v - 1)),
        )
    )
    state.list_header.update(
        (r, between(Op, floor, top)),
        lambda o: where(
            not_(anew),
            state.list_header[r, o],
            where(
                at(state, r, o) != 0,
                at(state, r, o),
                where(all_of(not_(leading), state.list_low[r] <= o, o <= state.list_op[r]), state.list_header[r, o], 0),
            ),
        ),
    )
    state.list_op[r] = where(anew, top, state.list_op[r])
    state.list_low[r] = where(anew, low, state.list_low[r])
    state.list_floor[r] = where(anew, floor, state.list_floor[r])
    state.status[r] = VIEW_CHANGE
    state.view[r] = v
    drop_votes(state, r)


def drop_votes(state: July, r: Replica) -> None:
    """What was collected for the view before is thrown away."""
    state.exit_quorum[r] = False
    state.join_quorum[r] = False
    state.exit_from.update((r, Replica), lambda q: False)
    state.join_of.update((r, Replica), lambda q: 0)
    state.ok_from.update((r, Op, Replica), lambda o, q: False)


def nacked(state: July, r: Replica, o: Op) -> Bool:
    """May r say that it never had the prepare of its list at o: no trace of it, no fault that could hide one (I11)?"""
    listed, own = state.list_header[r, o], at(state, r, o)
    dirty, faulty = state.dirty[r, slot_of(o)], state.faulty[r, slot_of(o)]
    return any_of(
        all_of(own == 0, not_(faulty)),
        all_of(listed != 0, own == listed, dirty, not_(faulty)),
        all_of(listed != 0, own != 0, own != listed),
    )


@action
def join_view(state: July, r: Replica, m: Message, low: Op) -> None:
    """A replica offers its log: log_view, commit_min, and its headers with what it never had.

    How many headers is open, as long as every op is covered that it does not know to be committed.
    """
    require(state.up[r])
    require(votes(state, r))
    require(state.status[r] == VIEW_CHANGE)
    require(state.log_view[r] < state.view[r])
    require(not_(state.join_quorum[r]))
    require(all_of(state.list_floor[r] <= low, low <= state.list_op[r]))
    require(any_of(low <= state.list_low[r], low <= state.commit_max[r] + 1))
    rows = between(Op, low, state.list_op[r])
    state.m_kind[m] = KIND["join_view"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_log_view[m] = state.log_view[r]
    state.m_op[m] = state.list_op[r]
    state.m_commit[m] = state.commit_min[r]
    state.m_checkpoint[m] = state.checkpoint[r]
    state.m_low[m] = low
    state.m_header.update((m, rows), lambda o: state.list_header[r, o])
    state.m_nack.update((m, rows), lambda o: nacked(state, r, o))


@action
def join_view_bits(state: July, r: Replica, m: Message, o: Op, b: Op, p: Op) -> None:
    """Nack bit (b) and present bit (p) of one header: a nack is honest (I11), what is on disk is present."""
    held = all_of(
        state.list_header[r, o] != 0,
        any_of(state.body[r, slot_of(o)] == state.list_header[r, o], state.writing[r, state.list_header[r, o]]),
    )
    require((b == 1) == nacked(state, r, o))
    require(implies(b == 1, any_of(state.list_header[r, o] == 0, state.promise[r, o] != state.list_header[r, o])))
    require(implies(held, p == 1))
    require(implies(p == 1, all_of(state.list_header[r, o] != 0, holds(state, r, state.list_header[r, o]))))
    state.m_present[m, o] = p == 1


@action
def on_join_view(state: July, r: Replica, q: Replica) -> None:
    """The primary of the view keeps a vote; of the same replica, one with a higher (checkpoint, commit_min) instead."""
    m, old = state.current[r], state.join_of[r, q]
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(not_(state.join_quorum[r]))
    require(state.m_kind[m] == KIND["join_view"])
    require(state.m_from[m] == q)
    require(state.m_view[m] == state.view[r])
    newer = any_of(
        state.m_checkpoint[m] > state.m_checkpoint[old],
        all_of(state.m_checkpoint[m] == state.m_checkpoint[old], state.m_commit[m] > state.m_commit[old]),
    )
    state.join_of[r, q] = where(any_of(old == 0, newer), m, old)


def floor(state: July, r: Replica) -> Op:
    """Up to this op the votes say that all is committed."""
    return maximum(
        Replica,
        lambda q: where(
            state.join_of[r, q] == 0,
            0,
            largest(
                state.m_low[state.join_of[r, q]],
                state.m_op[state.join_of[r, q]] - PIPELINE,
                state.m_commit[state.join_of[r, q]],
                state.p_commit[state.m_header[state.join_of[r, q], state.m_op[state.join_of[r, q]]]],
            ),
        ),
    )


def best_log_view(state: July, r: Replica) -> View:
    """The highest log_view of the votes."""
    return maximum(Replica, lambda q: state.m_log_view[state.join_of[r, q]])


def is_canonical(state: July, r: Replica, q: Replica) -> Bool:
    """Is q's vote one of the highest log_view?"""
    return all_of(state.join_of[r, q] != 0, state.m_log_view[state.join_of[r, q]] == best_log_view(state, r))


def canonical_at(state: July, r: Replica, o: Op) -> Prepare:
    """The header that votes of the highest log_view have at o (they agree, I12); 0 = none."""
    return maximum(Replica, lambda q: where(is_canonical(state, r, q), state.m_header[state.join_of[r, q], o], 0))


def denied(state: July, r: Replica, o: Op, c: Prepare) -> Number:
    """Votes that say that canonical header c of op o was never prepared, or not committed, at their sender."""
    return count(Replica, lambda q: all_of(state.join_of[r, q] != 0, denies(state, state.join_of[r, q], o, c)))


def denies(state: July, m: Message, o: Op, c: Prepare) -> Bool:
    """Does one vote say so?"""
    own = state.m_header[m, o]
    return any_of(state.m_op[m] < o, o < state.m_low[m], state.m_nack[m, o], all_of(own != 0, own != c))


def copied(state: July, r: Replica, o: Op, c: Prepare) -> Bool:
    """Does some voter hold that prepare?"""
    return exists(
        Replica,
        lambda q: all_of(
            state.join_of[r, q] != 0,
            state.m_header[state.join_of[r, q], o] == c,
            state.m_present[state.join_of[r, q], o],
        ),
    )


def nack_quorum(state: July) -> int:
    """Nacks that prove that no replication quorum has a prepare (seed 002)."""
    return state.cfg.replicas - state.cfg.quorum_replication + 1


@action
def merge_log(state: July, r: Replica, h: Op, k: Op) -> None:
    """The new primary takes the canonical log up to h: above, a nack quorum denies the next, or there is none."""
    low = floor(state, r)
    top = maximum(Replica, lambda q: where(is_canonical(state, r, q), state.m_op[state.join_of[r, q]], 0))
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(not_(state.join_quorum[r]))
    require(state.join_of[r, r] != 0)
    require(count(Replica, lambda q: state.join_of[r, q] != 0) >= state.cfg.quorum_view_change)
    require(all_of(low <= h, h <= top))
    require(
        forall(
            between(Op, low, h),
            lambda o: all_of(
                canonical_at(state, r, o) != 0,
                denied(state, r, o, canonical_at(state, r, o)) < nack_quorum(state),
            ),
        )
    )
    require(forall(between(Op, low, h), lambda o: copied(state, r, o, canonical_at(state, r, o))))
    require(any_of(h == top, denied(state, r, h + 1, canonical_at(state, r, h + 1)) >= nack_quorum(state)))
    require(k == largest(state.commit_max[r], low))
    require(
        forall(
            between(Op, low, state.executed_top),
            lambda o: implies(
                all_of(state.canonical[o] != 0, state.canonical_view[o] < state.view[r]),
                all_of(o <= h, canonical_at(state, r, o) == state.canonical[o]),
            ),
        )
    )
    state.op[r] = h
    state.commit_max[r] = k
    state.join_quorum[r] = True
    state.log_view[r] = state.view[r]
    remove_above(state, r, h)


@action
def replace_header(state: July, r: Replica, o: Op, e: Prepare) -> None:
    """A header of the started view, or of a merged vote, takes its place in the log, whatever stood there."""
    m = state.current[r]
    carried = any_of(
        all_of(state.m_kind[m] == KIND["view"], state.m_header[m, o] == e),
        state.m_header[state.syncing[r], o] == e,
        exists(Replica, lambda q: state.m_header[state.join_of[r, q], o] == e),
    )
    require(state.up[r])
    require(carried)
    require(o <= state.op[r])
    require(state.p_view[e] <= state.view[r])
    require(any_of(state.canonical[o] == 0, state.canonical[o] == e, state.syncing[r] != 0))
    put_header(state, r, o, e)


def repair_min(state: July, r: Replica) -> Op:
    """From here on a primary has its log whole before it starts its view: all above the checkpoint that slots hold."""
    first = largest(state.checkpoint[r] + 1, where(state.op[r] < SLOTS, 0, state.op[r] + 1 - SLOTS))
    return where(first < state.op[r], first, state.op[r])


@action
def send_view(state: July, r: Replica, m: Message, low: Op, n: Nonce) -> None:
    """The primary tells the log of its view once its headers link up, bodies being repaired or not.

    Asked for it (`n` is the nonce of the question), it answers as a normal primary.
    """
    asked = state.current[r]
    rows = between(Op, low, state.op[r])
    hooks = (prepare_max(state.checkpoint[r]) - CHECKPOINT_OPS, prepare_max(state.checkpoint[r]) - 2 * CHECKPOINT_OPS)
    require(state.up[r])
    require(any_of(state.status[r] == NORMAL, state.status[r] == VIEW_CHANGE))
    require(leads(state, r))
    require(state.log_view[r] == state.view[r])
    require(low == largest(0, state.op[r] - SUFFIX + 1))
    require(
        any_of(
            n == 0,
            all_of(state.status[r] == NORMAL, state.m_kind[asked] == KIND["get_view"], state.m_nonce[asked] == n),
        )
    )
    require(chained(state, r, repair_min(state, r), state.op[r]))
    state.m_kind[m] = KIND["view"]
    state.m_nonce[m] = n
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_op[m] = state.op[r]
    state.m_commit[m] = state.commit_max[r]
    state.m_checkpoint[m] = state.checkpoint[r]
    state.m_low[m] = low
    state.m_header.update(
        (m, between(Op, largest(0, state.op[r] - SLOTS + 1), state.op[r])),
        lambda o: where(any_of(o >= low, o == hooks[0], o == hooks[1]), at(state, r, o), 0),
    )
    state.list_op[r] = state.op[r]
    state.list_low[r] = low
    state.list_header.update((r, rows), lambda o: at(state, r, o))


@action
def start_view(state: July, r: Replica) -> None:
    """The primary is normal in its view: log linked, executed up to commit_max, the rest is its pipeline (I2)."""
    rest = between(Op, state.commit_max[r] + 1, state.op[r])
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(state.join_quorum[r])
    require(state.log_view[r] == state.view[r])
    require(state.commit_min[r] == state.commit_max[r])
    require(chained(state, r, repair_min(state, r), state.op[r]))
    require(forall(between(Op, repair_min(state, r), state.op[r]), lambda o: not_(state.dirty[r, slot_of(o)])))
    state.status[r] = NORMAL
    state.pipeline.update((r, rest), lambda o: at(state, r, o))
    keep_promises(state, r)
    drop_votes(state, r)


ACTIONS = (
    exit_view,
    on_exit_view,
    exit_quorum,
    start_view_change,
    join_view,
    join_view_bits,
    on_join_view,
    merge_log,
    replace_header,
    send_view,
    start_view,
)
