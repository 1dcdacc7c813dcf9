"""Repair, nacks, and the pipeline across views, as the June 2022 build has them (seed 002)."""

from __future__ import annotations

from viewproof.spec.lang import (
    Bool,
    Number,
    action,
    all_of,
    any_of,
    as_index,
    between,
    count,
    forall,
    implies,
    largest,
    maximum,
    not_,
    number_of,
    require,
    where,
)
from viewproof.spec.vsr.tigerbeetle.journal_2022 import put_header, remove_from
from viewproof.spec.vsr.tigerbeetle.normal_2022 import chained, forget_oks, in_pipeline, is_clean, leads
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT, Count, Message, Op, Prepare, Replica
from viewproof.spec.vsr.tigerbeetle.state_2022 import (
    HEADERS_ASKED,
    KIND,
    NORMAL,
    PIPELINE,
    RECOVERING,
    VIEW_CHANGE,
    June,
    primary,
)

GAP, DIRTY, CONNECTS, OLDER = 0, 1, 2, 3


def repairs(state: June, r: Replica) -> Bool:
    """May r repair its log: is it normal, or the primary of a view whose votes it has merged?"""
    return any_of(
        state.status[r] == NORMAL,
        all_of(state.status[r] == VIEW_CHANGE, leads(state, r), state.dvc_quorum[r]),
        all_of(state.status[r] == VIEW_CHANGE, state.installed[r]),
    )


@action
def repair_header(state: June, r: Replica, o: Op, e: Prepare, g: Op) -> None:
    """A header that a message brought fills a gap (`g` 0), is dirty there (1), or replaces one that it shows wrong (2).

    It never changes or advances the head; the header above it, if known, must be its child.
    """
    here, above = state.entry[r, o], state.entry[r, o + 1]
    require(state.up[r])
    require(repairs(state, r))
    require(state.p_op[e] == o)
    require(state.p_view[e] <= state.view[r])
    require(brought(state, r, o, e))
    require(any_of(o < state.op[r], all_of(o == state.op[r], here == e)))
    require(implies(g == GAP, here == 0))
    require(implies(g == DIRTY, all_of(here == e, state.dirty[r, o])))
    require(implies(g == CONNECTS, all_of(here != 0, here != e, connects(state, r, o, e))))
    require(implies(g == OLDER, False))
    require(implies(above != 0, state.p_parent[above] == e))
    put_header(state, r, o, e)


@action
def find_break(state: June, r: Replica, lo: Op, hi: Op) -> None:
    """Headers of ops lo..hi are missing, or do not link the log above them to the log below."""
    require(state.up[r])
    require(repairs(state, r))
    require(all_of(state.commit_min[r] < lo, lo <= hi, hi < state.op[r]))
    require(not_(chained(state, r, lo - 1, hi + 1)))


@action
def repair_root(state: June, r: Replica) -> None:
    """A replica that recovered puts the root back, which all know."""
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(state.entry[r, as_index(Op, 0)] == 0)
    put_header(state, r, as_index(Op, 0), as_index(Prepare, ROOT))


def connects(state: June, r: Replica, o: Op, e: Prepare) -> Bool:
    """Would e at o be linked by parents to the head of the log?"""
    return all_of(
        state.p_parent[state.entry[r, o + 1]] == e,
        state.entry[r, state.op[r]] != 0,
        forall(
            between(Op, o + 1, state.op[r] - 1),
            lambda p: state.entry[r, p] == state.p_parent[state.entry[r, p + 1]],
        ),
    )


def brought(state: June, r: Replica, o: Op, e: Prepare) -> Bool:
    """Do the message at hand, the pipeline, a vote that was merged or an answer that was used hold that header?"""
    m = state.current[r]
    return any_of(
        state.m_header[m, o] == e,
        all_of(state.m_kind[m] == KIND["prepare"], state.m_prepare[m] == e),
        in_pipeline(state, r, o, e),
        exists_in(state, r, o, e),
    )


def exists_in(state: June, r: Replica, o: Op, e: Prepare) -> Bool:
    """Is the header in a vote or an answer that the replica holds?"""
    votes = count(Replica, lambda q: all_of(state.dvc_of[r, q] != 0, state.m_header[state.dvc_of[r, q], o] == e))
    answers = count(
        Replica, lambda q: all_of(state.response_of[r, q] != 0, state.m_header[state.response_of[r, q], o] == e)
    )
    return votes + answers > 0


@action
def send_headers(state: June, r: Replica, m: Message, low: Op) -> None:
    """A replica answers request_headers with what its ring holds of the ops asked for: all, or from `low` on the
    newest of them.
    """
    asked = state.current[r]
    lo, hi = state.m_commit[asked], state.m_op[asked]
    held = count(between(Op, low, hi), lambda o: state.entry[r, o] != 0)
    require(state.up[r])
    require(state.status[r] != RECOVERING)
    require(state.m_kind[asked] == KIND["request_headers"])
    require(state.m_view[asked] == state.view[r])
    require(all_of(lo <= low, held > 0, held <= HEADERS_ASKED))
    require(any_of(held == HEADERS_ASKED, forall(between(Op, lo, low - 1), lambda o: state.entry[r, o] == 0)))
    state.m_kind[m] = KIND["headers"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_op[m] = hi
    state.m_count[m] = as_index(Count, held)
    state.m_header.update((m, between(Op, low, hi)), lambda o: state.entry[r, o])


def brought_by_walk(state: June, r: Replica, o: Op) -> Number:
    """How many headers of that op the replica goes through."""
    m = state.walk_of[r]
    own = any_of(state.m_header[m, o] != 0, all_of(state.m_kind[m] == KIND["prepare"], state.m_op[m] == o))
    votes = count(Replica, lambda q: all_of(state.dvc_of[r, q] != 0, state.m_header[state.dvc_of[r, q], o] != 0))
    return where(m == 0, votes, where(own, 1, 0))


@action
def walk_header(state: June, r: Replica, o: Op) -> None:
    """The replica looks at a header of op o that it goes through, each as often as it was brought.

    With none left it is that of the prepare which the primary repairs for itself.
    """
    any_left = state.walk_left[r] != 0
    require(where(any_left, number_of(state.walked[r, o]) < brought_by_walk(state, r, o), o == state.pipeline_lo[r]))
    state.walked[r, o] = where(any_left, state.walked[r, o] + 1, state.walked[r, o])
    state.walk_left[r] = where(any_left, state.walk_left[r] - 1, state.walk_left[r])


@action
def walk_above(state: June, r: Replica) -> None:
    """The same of a header above the head of the log, of which no line shows the op."""
    top = maximum(
        between(Op, state.op[r] + 1, state.walk_top[r]),
        lambda o: where(number_of(state.walked[r, o]) < brought_by_walk(state, r, o), o, 0),
    )
    any_left = state.walk_left[r] != 0
    require(where(any_left, top > state.op[r], state.pipeline_lo[r] > state.op[r]))
    state.walked[r, top] = where(any_left, state.walked[r, top] + 1, state.walked[r, top])
    state.walk_left[r] = where(any_left, state.walk_left[r] - 1, state.walk_left[r])


@action
def send_nack(state: June, r: Replica, m: Message, o: Op, e: Prepare) -> None:
    """Asked by the primary of a view that is not started, a replica says that it never had the prepare (I11)."""
    never_acknowledged(state, r, o, e)
    deny(state, r, m, o, e)


def never_acknowledged(state: June, r: Replica, o: Op, e: Prepare) -> None:
    """What a replica acknowledged it may not deny, a faulty slot included, until a later log does without it (I11)."""
    require(state.promise[r, o] != e)


def deny(state: June, r: Replica, m: Message, o: Op, e: Prepare) -> None:
    """Guard and effects of a nack, I11 aside."""
    asked = state.current[r]
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(state.m_kind[asked] == KIND["request_prepare"])
    require(state.m_view[asked] == state.view[r])
    require(state.m_from[asked] == primary(state, state.view[r]))
    require(state.m_op[asked] == o)
    require(state.m_prepare[asked] == e)
    require(state.body[r, o] != e)
    require(not_(state.faulty[r, o]))
    require(not_(is_clean(state, r, o, e)))
    require(not_(in_pipeline(state, r, o, e)))
    state.m_kind[m] = KIND["nack_prepare"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_op[m] = o
    state.m_prepare[m] = e


@action
def await_nacks(state: June, r: Replica, o: Op) -> None:
    """The new primary asks all for an uncommitted prepare it has not got: one of them sends it, or enough deny it."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(state.dvc_quorum[r])
    require(o > state.commit_max[r])
    require(o <= state.op[r])
    require(state.entry[r, o] != 0)
    require(state.dirty[r, o])
    state.nack_op[r] = o
    state.nack_from.update((r, Replica), lambda q: where(state.nack_op[r] == o, state.nack_from[r, q], False))


@action
def stop_nacks(state: June, r: Replica) -> None:
    """The prepare arrived: the nacks for it no longer matter."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(state.nack_op[r] != 0)
    state.nack_op[r] = 0
    state.nack_from.update((r, Replica), lambda q: False)


@action
def on_nack(state: June, r: Replica, q: Replica) -> None:
    """A nack of this view for the prepare that is waited for is counted once per replica."""
    m = state.current[r]
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(state.m_kind[m] == KIND["nack_prepare"])
    require(state.m_view[m] == state.view[r])
    require(state.m_from[m] == q)
    require(state.nack_op[r] != 0)
    require(state.m_op[m] == state.nack_op[r])
    require(state.m_prepare[m] == state.entry[r, state.nack_op[r]])
    require(not_(state.nack_from[r, q]))
    state.nack_from[r, q] = True


def nacks_needed(state: June, r: Replica, o: Op) -> Number:
    """Nacks of others that prove that no replication quorum has the prepare; one more if the own copy is lost."""
    return state.cfg.replicas - state.cfg.quorum_replication + where(state.faulty[r, o], 1, 0)


@action
def nack_quorum(state: June, r: Replica, o: Op) -> None:
    """Enough nacks."""
    require(state.up[r])
    require(state.nack_op[r] == o)
    require(count(Replica, lambda q: state.nack_from[r, q]) >= nacks_needed(state, r, o))


@action
def discard_ops(state: June, r: Replica, o: Op) -> None:
    """An uncommitted prepare that cannot have been committed is discarded, with all above it."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(state.dvc_quorum[r])
    require(o > state.commit_max[r])
    require(o <= state.op[r])
    require(state.entry[r, o] != 0)
    require(state.dirty[r, o])
    require(chained(state, r, state.commit_min[r], state.op[r]))
    require(
        any_of(
            all_of(state.cfg.replicas == 2, not_(state.faulty[r, o])),
            all_of(
                state.nack_op[r] == o,
                count(Replica, lambda q: state.nack_from[r, q]) >= nacks_needed(state, r, o),
            ),
        )
    )
    require(state.canonical[o] == 0)
    state.op[r] = o - 1
    remove_from(state, r, o)
    state.nack_op[r] = 0
    state.nack_from.update((r, Replica), lambda q: False)


def pipeline_first(state: June, r: Replica) -> Op:
    """The lowest uncommitted op of the pipeline."""
    return largest(state.commit_max[r] + 1, state.pipeline_lo[r])


def pipeline_linked(state: June, r: Replica) -> Bool:
    """Is the parent of the lowest uncommitted prepare of the pipeline in the log?"""
    first = pipeline_first(state, r)
    return all_of(
        first <= state.pipeline_hi[r],
        state.p_parent[state.pipeline[r, first]] == state.entry[r, first - 1],
    )


def pipeline_kept(state: June, r: Replica) -> Op:
    """The highest uncommitted op that pipeline and log have alike; below `pipeline_first` if there is none."""
    return maximum(
        between(Op, pipeline_first(state, r), state.pipeline_hi[r]),
        lambda o: where(state.pipeline[r, o] == state.entry[r, o], o, 0),
    )


def keep_pipeline(state: June, r: Replica, keep: Bool) -> None:
    """Cut the pipeline to what the log has, or (`keep` is false) drop it."""
    lo, first, kept = state.commit_max[r] + 1, pipeline_first(state, r), pipeline_kept(state, r)
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    state.pipeline_lo[r] = where(all_of(keep, kept >= first), first, lo)
    state.pipeline_hi[r] = where(all_of(keep, kept >= first), kept, lo - 1)


@action
def pipeline_diff(state: June, r: Replica) -> None:
    """Of the pipeline of older views the new primary keeps what still is the uncommitted tail of its log."""
    keep_pipeline(state, r, pipeline_linked(state, r))


@action
def pipeline_reset(state: June, r: Replica, k: Op) -> None:
    """The first builds of June cut it once the votes are merged, before headers are repaired: k prepares stay."""
    require(state.dvc_quorum[r])
    require(any_of(k > 0, not_(pipeline_linked(state, r)), pipeline_kept(state, r) < pipeline_first(state, r)))
    keep_pipeline(state, r, k > 0)


@action
def pipeline_push(state: June, r: Replica, o: Op, e: Prepare) -> None:
    """The next prepare of the uncommitted tail is read from the journal into the pipeline, with no acknowledgement."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(o == where(state.pipeline_hi[r] < state.pipeline_lo[r], state.commit_max[r] + 1, state.pipeline_hi[r] + 1))
    require(o <= state.op[r])
    require(o - state.commit_max[r] <= PIPELINE)
    require(state.entry[r, o] == e)
    require(state.body[r, o] == e)
    state.pipeline[r, o] = e
    state.pipeline_lo[r] = where(state.pipeline_hi[r] < state.pipeline_lo[r], o, state.pipeline_lo[r])
    state.pipeline_hi[r] = o
    forget_oks(state, r, o)


ACTIONS = (
    repair_header,
    repair_root,
    find_break,
    walk_header,
    walk_above,
    send_headers,
    send_nack,
    await_nacks,
    stop_nacks,
    on_nack,
    nack_quorum,
    discard_ops,
    pipeline_diff,
    pipeline_reset,
    pipeline_push,
)
