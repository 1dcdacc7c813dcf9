"""View change of the June 2022 build: votes, merge of the logs, discards, start of the view (seed 002)."""

from __future__ import annotations

from collections.abc import Callable

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
from viewproof.spec.vsr.tigerbeetle.journal_2022 import SLOT, keep_promises, remove_from, was_lost
from viewproof.spec.vsr.tigerbeetle.normal_2022 import chained, in_pipeline, leads
from viewproof.spec.vsr.tigerbeetle.sorts import Count, Message, Op, Prepare, Replica, View
from viewproof.spec.vsr.tigerbeetle.state_2022 import (
    KIND,
    NORMAL,
    PIPELINE,
    RECOVERING,
    SLOTS,
    VIEW_CHANGE,
    June,
    primary,
)


def move_to_view(state: June, r: Replica, v: View) -> None:
    """Effects of entering a view: what was collected for the view before is thrown away."""
    state.view[r] = v
    state.status[r] = VIEW_CHANGE
    drop_votes(state, r)


def drop_votes(state: June, r: Replica) -> None:
    """Forget the votes and nacks of a view change."""
    state.svc_from.update((r, Replica), lambda q: False)
    state.dvc_of.update((r, Replica), lambda q: 0)
    state.nack_from.update((r, Replica), lambda q: False)
    state.svc_quorum[r] = False
    state.dvc_quorum[r] = False
    state.installed[r] = False
    state.nack_op[r] = 0


def can_move(state: June, r: Replica, v: View) -> None:
    """Guard of entering a view: the next one on a timeout, or the one that a message of a view change names."""
    m = state.current[r]
    require(state.up[r])
    require(state.cfg.replicas > 1)
    require(state.status[r] != RECOVERING)
    require(v > state.view[r])
    require(
        any_of(
            v == state.view[r] + 1,
            all_of(
                state.m_view[m] == v,
                any_of(
                    state.m_kind[m] == KIND["start_view_change"],
                    state.m_kind[m] == KIND["do_view_change"],
                    state.m_kind[m] == KIND["start_view"],
                ),
            ),
        )
    )


@action
def start_view_change(state: June, r: Replica, v: View) -> None:
    """A replica enters a later view; acknowledgements of older views no longer count there."""
    can_move(state, r, v)
    move_to_view(state, r, v)
    state.ok_from.update((r, Op, Replica), lambda o, q: False)


@action
def on_start_view_change(state: June, r: Replica, q: Replica) -> None:
    """A start_view_change of the view, from another replica, is counted once."""
    m = state.current[r]
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(q != r)
    require(state.m_kind[m] == KIND["start_view_change"])
    require(state.m_from[m] == q)
    require(state.m_view[m] == state.view[r])
    require(not_(state.svc_from[r, q]))
    state.svc_from[r, q] = True


@action
def start_view_change_quorum(state: June, r: Replica) -> None:
    """With its own, a quorum wants the view: the replica may vote."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(not_(state.svc_quorum[r]))
    require(count(Replica, lambda q: state.svc_from[r, q]) + 1 >= state.cfg.quorum_view_change)
    state.svc_quorum[r] = True


@action
def do_view_change(state: June, r: Replica, m: Message, low: Op, h: Count) -> None:
    """A replica offers its log to the new primary: log_view, head, commit_max and the newest headers it has."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(state.svc_quorum[r])
    require(not_(state.dvc_quorum[r]))
    carry_headers(state, r, m, low, h, state.commit_max[r])
    state.m_kind[m] = KIND["do_view_change"]
    state.m_log_view[m] = state.log_view[r]
    state.promised[r] = state.view[r]
    state.took_part[r] = True


def carry_headers(state: June, r: Replica, m: Message, low: Op, h: Count, k: Op) -> None:
    """A message gets the view, head, commit number k and the newest h headers, of which op `low` has the oldest.

    How many a message carries is open: an op below `low` is one that the message says nothing of.
    """
    require(state.entry[r, state.op[r]] != 0)
    require(state.entry[r, low] != 0)
    require(number_of(h) == count(between(Op, low, state.op[r]), lambda o: state.entry[r, o] != 0))
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_op[m] = state.op[r]
    state.m_commit[m] = k
    state.m_low[m] = low
    state.m_count[m] = h
    state.m_header.update((m, between(Op, low, state.op[r])), lambda o: state.entry[r, o])


@action
def on_do_view_change(state: June, r: Replica, q: Replica) -> None:
    """The primary of the view keeps a vote for it, once it may vote itself."""
    m = state.current[r]
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(state.svc_quorum[r])
    require(state.m_kind[m] == KIND["do_view_change"])
    require(state.m_from[m] == q)
    require(state.m_view[m] == state.view[r])
    require(state.dvc_of[r, q] == 0)
    state.dvc_of[r, q] = m


@action
def do_view_change_quorum(state: June, r: Replica) -> None:
    """Votes of a quorum are there, the primary's own included."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(not_(state.dvc_quorum[r]))
    require(state.dvc_of[r, r] != 0)
    require(count(Replica, lambda q: state.dvc_of[r, q] != 0) >= state.cfg.quorum_view_change)
    require(
        forall(
            Replica, lambda q: implies(state.dvc_of[r, q] != 0, state.m_log_view[state.dvc_of[r, q]] < state.view[r])
        )
    )


def take_head(state: June, r: Replica, m: Message, k: Op) -> None:
    """The log ends as message m says from now on; commit_max is at least k (set_op_and_commit_max)."""
    op = state.m_op[m]
    latest = state.m_header[m, op]
    limit = where(largest(state.commit_max[r], k) < PIPELINE, 0, state.commit_max[r] - PIPELINE)
    require(latest != 0)
    require(op >= state.commit_max[r])
    require(op >= k)
    require(k >= limit)
    same = state.entry[r, op] == latest
    above = between(Op, op, SLOTS - 1)
    state.op[r] = op
    state.commit_max[r] = largest(state.commit_max[r], k)
    state.unsure.update((r, above), lambda o: all_of(o > op, was_lost(state, r, o)))
    state.dirty.update(
        (r, above),
        lambda o: all_of(o == op, any_of(not_(same), state.dirty[r, o])),
    )
    state.faulty.update(
        (r, above),
        lambda o: all_of(o == op, same, state.faulty[r, o]),
    )
    state.entry.update((r, above), lambda o: where(o == op, latest, 0))


@action
def merge_log(state: June, r: Replica, b: Replica, k: Op) -> None:
    """The new primary takes the head of the vote with the highest (log_view, op), commit_max of all votes."""
    m = state.dvc_of[r, b]
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(not_(state.dvc_quorum[r]))
    require(state.dvc_of[r, r] != 0)
    require(count(Replica, lambda q: state.dvc_of[r, q] != 0) >= state.cfg.quorum_view_change)
    require(m != 0)
    require(forall(Replica, lambda q: no_larger(state, state.dvc_of[r, q], m)))
    require(k == maximum(Replica, lambda q: state.m_commit[state.dvc_of[r, q]]))
    take_head(state, r, m, k)
    state.dvc_quorum[r] = True
    state.walk_of[r] = 0
    state.walk_top[r] = maximum(Replica, lambda q: state.m_op[state.dvc_of[r, q]])
    state.walk_left[r] = as_index(Count, total(state, r))
    state.walked.update((r, Op), lambda o: 0)


def total(state: June, r: Replica) -> Number:
    """How many headers the votes have, all together."""
    found = number_of(state.m_count[state.dvc_of[r, as_index(Replica, 0)]])
    for q in range(1, state.cfg.replicas):
        found = found + number_of(state.m_count[state.dvc_of[r, as_index(Replica, q)]])
    return found


def best_vote(state: June, r: Replica) -> Replica:
    """The first replica whose vote has the highest (log_view, op); none if there are no votes."""
    n = state.cfg.replicas
    best = maximum(
        Replica,
        lambda q: where(
            all_of(
                state.dvc_of[r, q] != 0,
                forall(Replica, lambda p: no_larger(state, state.dvc_of[r, p], state.dvc_of[r, q])),
            ),
            n - number_of(q),
            0,
        ),
    )
    return as_index(Replica, n - best)


def no_larger(state: June, a: Message, b: Message) -> Bool:
    """Is vote a absent, or is its (log_view, op) no larger than that of b?"""
    return any_of(
        a == 0,
        state.m_log_view[a] < state.m_log_view[b],
        all_of(state.m_log_view[a] == state.m_log_view[b], state.m_op[a] <= state.m_op[b]),
    )


def gap_nacks(state: June, r: Replica, o: Op) -> Number:
    """How many votes of others say that op o never was in their log: no header, although lower ones are there."""
    return count(Replica, lambda q: all_of(q != r, state.dvc_of[r, q] != 0, says_never(state, state.dvc_of[r, q], o)))


def says_never(state: June, m: Message, o: Op) -> Bool:
    """Does a vote count as a nack of an op without a header?"""
    return all_of(state.m_header[m, o] == 0, o >= state.m_low[m])


@action
def count_gap_nacks(state: June, r: Replica, o: Op, k: Count) -> None:
    """k votes of others say that the missing op was never prepared."""
    require(state.up[r])
    require(state.dvc_quorum[r])
    require(state.entry[r, o] == 0)
    require(gap_nacks(state, r, o) == number_of(k))


@action
def discard_header(state: June, r: Replica, o: Op) -> None:
    """Enough votes say that the missing op was never prepared: it, and what follows, was not committed."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(state.dvc_quorum[r])
    require(o > state.commit_max[r])
    require(o <= state.op[r])
    require(state.entry[r, o] == 0)
    require(gap_nacks(state, r, o) >= state.cfg.replicas - state.cfg.quorum_replication)
    require(state.canonical[o] == 0)
    state.op[r] = o - 1
    remove_from(state, r, o)


@action
def start_view(state: June, r: Replica) -> None:
    """The primary starts its view: log whole, durable, executed up to commit_max, the rest in the pipeline (I2)."""
    has_whole_log(state, r)
    require(
        forall(between(Op, state.commit_max[r] + 1, state.op[r]), lambda o: in_pipeline(state, r, o, state.entry[r, o]))
    )
    keeps_executed(state, r, lambda o: state.entry[r, o])
    lead_view(state, r)


def has_whole_log(state: June, r: Replica) -> None:
    """Guard of starting a view, pipeline and I2 aside: the merged log is there, durable, executed up to commit_max."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(state.dvc_quorum[r])
    require(state.commit_min[r] == state.commit_max[r])
    require(forall(SLOT, lambda o: not_(state.dirty[r, o])))
    require(chained(state, r, state.commit_min[r], state.op[r]))


def keeps_executed(state: June, r: Replica, log: Callable[[Op], Prepare]) -> None:
    """What was executed in older views is in the log that r starts its view with (I2)."""
    require(
        forall(
            between(Op, 0, state.executed_top),
            lambda o: implies(
                all_of(state.canonical[o] != 0, state.canonical_view[o] < state.view[r]),
                all_of(o <= state.op[r], any_of(o <= state.commit_min[r], lambda: log(o) == state.canonical[o])),
            ),
        )
    )


def lead_view(state: June, r: Replica) -> None:
    """Effects of starting a view."""
    state.status[r] = NORMAL
    state.log_view[r] = state.view[r]
    state.start_commit[r] = state.commit_max[r]
    state.start_message[r] = 0
    keep_promises(state, r)
    drop_votes(state, r)


@action
def send_start_view(state: June, r: Replica, m: Message, low: Op, h: Count, k: Op) -> None:
    """The primary of a started view tells its log, and what is committed of it.

    Its first start_view may be made as the view starts and sent after the primary has acknowledged its own tail, which
    may have committed some of it: then it tells the commit number from before.
    """
    is_first = any_of(state.start_message[r] == 0, state.start_message[r] == m)
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(leads(state, r))
    require(any_of(k == state.commit_max[r], all_of(is_first, k == state.start_commit[r])))
    carry_headers(state, r, m, low, h, k)
    state.m_kind[m] = KIND["start_view"]
    state.start_message[r] = where(is_first, m, state.start_message[r])


@action
def install_log(state: June, r: Replica) -> None:
    """A backup takes the head that the primary of the view it changes to tells."""
    m = state.current[r]
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(state.m_kind[m] == KIND["start_view"])
    require(state.m_view[m] == state.view[r])
    require(state.m_from[m] == primary(state, state.view[r]))
    require(not_(leads(state, r)))
    take_head(state, r, m, state.m_commit[m])
    state.installed[r] = True


@action
def follow_view(state: June, r: Replica) -> None:
    """With the head of the view's log installed it is a normal backup; older headers may still be missing."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(not_(leads(state, r)))
    require(state.installed[r])
    state.status[r] = NORMAL
    state.log_view[r] = state.view[r]
    keep_promises(state, r)
    drop_votes(state, r)


ACTIONS = (
    start_view_change,
    on_start_view_change,
    start_view_change_quorum,
    do_view_change,
    on_do_view_change,
    do_view_change_quorum,
    merge_log,
    count_gap_nacks,
    discard_header,
    start_view,
    send_start_view,
    install_log,
    follow_view,
)
