"""Recovery of the June 2022 build: as new, alone, or by a nonce and the answers of others (seed 002)."""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Bool,
    action,
    all_of,
    any_of,
    between,
    count,
    forall,
    implies,
    maximum,
    not_,
    require,
    some,
)
from viewproof.spec.vsr.tigerbeetle.journal_2022 import SLOT, keep_promises
from viewproof.spec.vsr.tigerbeetle.normal_2022 import walk
from viewproof.spec.vsr.tigerbeetle.sorts import Count, Message, Nonce, Op, Replica
from viewproof.spec.vsr.tigerbeetle.state_2022 import (
    KIND,
    NORMAL,
    RECOVERING,
    SLOTS,
    June,
    primary,
)
from viewproof.spec.vsr.tigerbeetle.view_2022 import carry_headers, take_head

GAP, DIRTY, CONNECTS, OLDER = 0, 1, 2, 3


@action
def recover_empty(state: June, r: Replica) -> None:
    """A replica with an empty journal is new, and normal in view 0: only if it never took part (I6, I11)."""
    require(not_(state.took_part[r]))
    new_replica(state, r)


def new_replica(state: June, r: Replica) -> None:
    """Guard and effects of a start with an empty journal, as far as the journal shows it."""
    require(state.up[r])
    require(state.journal_ready[r])
    require(state.status[r] == RECOVERING)
    require(forall(between(Op, 1, SLOTS - 1), lambda o: all_of(state.entry[r, o] == 0, state.body[r, o] == 0)))
    require(forall(SLOT, lambda o: not_(state.faulty[r, o])))
    state.status[r] = NORMAL


@action
def recover_single(state: June, r: Replica) -> None:
    """A cluster of one has executed its whole journal again: it is normal, in view 0."""
    require(state.up[r])
    require(state.journal_ready[r])
    require(state.status[r] == RECOVERING)
    require(state.cfg.replicas == 1)
    require(state.op[r] > 0)
    require(all_of(state.commit_min[r] == state.commit_max[r], state.commit_min[r] == state.op[r]))
    state.status[r] = NORMAL


@action
def start_recovery(state: June, r: Replica, n: Nonce) -> None:
    """A replica asks all others for the state of the cluster, under a nonce that no recovery used before."""
    require(state.up[r])
    require(state.journal_ready[r])
    require(state.status[r] == RECOVERING)
    require(state.cfg.replicas > 1)
    require(any_of(state.nonce[r] == n, all_of(state.nonce[r] == 0, not_(state.nonce_used[n]))))
    state.nonce[r] = n
    state.nonce_used[n] = True


@action
def answer_recovery(state: June, r: Replica, m: Message, n: Nonce, low: Op, h: Count) -> None:
    """Only a normal replica answers, with the nonce asked under."""
    asked = state.current[r]
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(state.m_kind[asked] == KIND["recovery"])
    require(state.m_nonce[asked] == n)
    carry_headers(state, r, m, low, h, state.commit_max[r])
    state.m_kind[m] = KIND["recovery_response"]
    state.m_nonce[m] = n


@action
def on_answer(state: June, r: Replica, q: Replica) -> None:
    """An answer to this recovery's nonce is kept; another one of the same replica only if it is not older."""
    m, old = state.current[r], state.response_of[r, q]
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(q != r)
    require(state.m_kind[m] == KIND["recovery_response"])
    require(state.m_from[m] == q)
    require(all_of(state.nonce[r] != 0, state.m_nonce[m] == state.nonce[r]))
    require(any_of(old == 0, not_(older(state, m, old))))
    state.response_of[r, q] = m


def older(state: June, m: Message, old: Message) -> Bool:
    """Is m's (view, op, commit) below that of old?"""
    return any_of(
        state.m_view[m] < state.m_view[old],
        all_of(state.m_view[m] == state.m_view[old], state.m_op[m] < state.m_op[old]),
        all_of(
            state.m_view[m] == state.m_view[old],
            state.m_op[m] == state.m_op[old],
            state.m_commit[m] < state.m_commit[old],
        ),
    )


@action
def recover_log(state: June, r: Replica, b: Replica) -> None:
    """With answers of q_v others, one of them the primary of the highest view in that view: take its head."""
    m = state.response_of[r, b]
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(m != 0)
    require(count(Replica, lambda q: all_of(q != r, state.response_of[r, q] != 0)) >= state.cfg.quorum_view_change)
    require(b == primary(state, state.m_view[m]))
    require(
        forall(
            Replica,
            lambda q: implies(state.response_of[r, q] != 0, state.m_view[state.response_of[r, q]] <= state.m_view[m]),
        )
    )
    take_head(state, r, m, state.m_commit[m])
    state.installed[r] = True
    state.recovers_from[r] = some(b)
    walk(state, r, m)


@action
def answers_used(state: June, r: Replica) -> None:
    """The answers are no longer needed."""
    require(state.recovers_from[r] != NONE)
    state.recovers_from[r] = NONE


def best_answer(state: June, r: Replica) -> Replica:
    """The primary of the highest view among the answers."""
    return primary(state, maximum(Replica, lambda q: state.m_view[state.response_of[r, q]]))


@action
def finish_recovery(state: June, r: Replica, b: Replica) -> None:
    """The replica is a normal backup of the view answered by b, which is no lower than any view it voted in (I6)."""
    require(state.m_view[state.response_of[r, b]] >= state.promised[r])
    rejoin(state, r, b)


def rejoin(state: June, r: Replica, b: Replica) -> None:
    """Guard and effects of the end of a recovery."""
    v = state.m_view[state.response_of[r, b]]
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(state.installed[r])
    require(b == primary(state, v))
    require(b != r)
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    keep_promises(state, r)


ACTIONS = (
    recover_empty,
    recover_single,
    start_recovery,
    answer_recovery,
    on_answer,
    recover_log,
    answers_used,
    finish_recovery,
)
