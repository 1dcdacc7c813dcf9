"""Normal operation of the June 2022 build: prepares that may jump ahead, acknowledgements, commits (seed 002)."""

from __future__ import annotations

from viewproof.spec.lang import (
    Bool,
    Number,
    action,
    all_of,
    any_of,
    between,
    count,
    forall,
    implies,
    largest,
    not_,
    number_of,
    require,
    where,
)
from viewproof.spec.vsr.tigerbeetle.headers import compose, was_made
from viewproof.spec.vsr.tigerbeetle.journal_2022 import put_header
from viewproof.spec.vsr.tigerbeetle.sorts import Client, Count, Digest, Message, Op, Prepare, Replica, View
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


def leads(state: June, r: Replica) -> Bool:
    """Is r the primary of its view?"""
    return primary(state, state.view[r]) == r


def is_clean(state: June, r: Replica, o: Op, e: Prepare) -> Bool:
    """Is that prepare durable in r's journal?"""
    return all_of(state.entry[r, o] == e, not_(state.dirty[r, o]))


def chained(state: June, r: Replica, lo: Op, hi: Op) -> Bool:
    """Are the headers of ops lo..hi all there, each the parent of the next?"""
    return all_of(
        state.entry[r, hi] != 0,
        forall(between(Op, lo, hi - 1), lambda o: state.entry[r, o] == state.p_parent[state.entry[r, o + 1]]),
    )


@action
def receive(state: June, r: Replica, m: Message) -> None:
    """A message that was sent to the replica reaches it; it may go through the headers that it brings."""
    require(state.up[r])
    require(state.sent[m, r])
    state.current[r] = m
    walk(state, r, m)


def walk(state: June, r: Replica, m: Message) -> None:
    """The replica goes through the headers of a message now, in whatever order."""
    state.walk_of[r] = m
    state.walk_top[r] = state.m_op[m]
    state.walk_left[r] = state.m_count[m]
    state.walked.update((r, Op), lambda o: 0)


@action
def on_request(state: June, r: Replica, e: Prepare) -> None:
    """The primary prepares a request, the one at hand: the next op, chained to its head (I7: one each).

    A session starts with a register, for a client without an entry; its requests count up from it.
    """
    one_prepare(state, state.view[r], state.op[r] + 1)
    may_prepare(state, r, e)
    compose_prepare(state, r, e)


def may_prepare(state: June, r: Replica, e: Prepare) -> None:
    """Guard of preparing the request at hand, I7 aside."""
    m, o = state.current[r], state.op[r] + 1
    c, s = state.m_client[m], state.m_request[m]
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(leads(state, r))
    require(state.commit_min[r] == state.commit_max[r])
    require(o < SLOTS)
    require(any_of(state.pipeline_hi[r] < state.pipeline_lo[r], state.pipeline_hi[r] == state.op[r]))
    require(o - state.commit_max[r] <= PIPELINE)
    require(not_(was_made(state, e)))
    require(
        forall(between(Op, state.commit_max[r] + 1, state.op[r]), lambda p: state.p_client[state.pipeline[r, p]] != c)
    )
    require(
        where(
            state.m_register[m],
            all_of(s == 0, state.session[r, c] == 0),
            all_of(state.session[r, c] != 0, s == state.answered[r, c] + 1),
        )
    )


def one_prepare(state: June, v: View, o: Op) -> None:
    """No prepare of that view and op exists yet (I7)."""
    require(state.prepared[v, o] == 0)


def compose_prepare(state: June, r: Replica, e: Prepare) -> None:
    """Effects of preparing the request at hand."""
    v, o = state.view[r], state.op[r] + 1
    state.prepared[v, o] = e
    state.took_part[r] = any_of(state.took_part[r], state.cfg.replicas > 1)
    compose(state, e, state.current[r], v, o, state.entry[r, state.op[r]], state.commit_max[r])
    state.pipeline[r, o] = e
    state.pipeline_lo[r] = where(state.pipeline_hi[r] < state.pipeline_lo[r], o, state.pipeline_lo[r])
    state.pipeline_hi[r] = o
    forget_oks(state, r, o)
    state.op[r] = o
    put_header(state, r, o, e)


@action
def jump_ahead(state: June, r: Replica, o: Op) -> None:
    """A backup that receives a prepare above the next op takes the head just below it, and leaves a gap."""
    m = state.current[r]
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(not_(leads(state, r)))
    require(state.m_kind[m] == KIND["prepare"])
    require(state.p_view[state.m_prepare[m]] == state.view[r])
    require(state.p_op[state.m_prepare[m]] == o + 1)
    require(o > state.op[r])
    state.op[r] = o


@action
def on_prepare(state: June, r: Replica) -> None:
    """A backup takes the next prepare of its view as the head of its log; it is not durable yet."""
    m = state.current[r]
    e = state.m_prepare[m]
    o = state.p_op[e]
    before = state.entry[r, o - 1]
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(not_(leads(state, r)))
    require(state.m_kind[m] == KIND["prepare"])
    require(state.p_view[e] == state.view[r])
    require(o == state.op[r] + 1)
    require(o > state.commit_min[r])
    require(o < SLOTS)
    require(implies(all_of(before != 0, state.p_view[before] == state.view[r]), state.p_parent[e] == before))
    state.op[r] = o
    put_header(state, r, o, e)


@action
def learn_commit(state: June, r: Replica, k: Op) -> None:
    """A backup learns a commit number from a prepare or commit message of its view; it may be above its log."""
    m = state.current[r]
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(not_(leads(state, r)))
    require(any_of(state.m_kind[m] == KIND["prepare"], state.m_kind[m] == KIND["commit"]))
    require(state.m_view[m] == state.view[r])
    require(state.m_commit[m] == k)
    require(k > state.commit_max[r])
    state.commit_max[r] = k


@action
def replay(state: June, r: Replica, k: Op) -> None:
    """A cluster of one takes its journal up to the highest op as committed: it acknowledged nothing beyond it."""
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(state.cfg.replicas == 1)
    require(state.journal_ready[r])
    require(state.entry[r, k] != 0)
    require(forall(between(Op, k + 1, SLOTS - 1), lambda o: state.entry[r, o] == 0))
    state.op[r] = k
    state.commit_max[r] = k


@action
def acknowledge(state: June, r: Replica, o: Op, e: Prepare) -> None:
    """A replica acknowledges a prepare of its log that is durable here, to the primary of its view (I3)."""
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(o <= state.op[r])
    require(o > state.commit_max[r])
    require(is_clean(state, r, o, e))
    require(state.disk_body[r, o] == e)
    state.acked[r, e] = True
    state.promise[r, o] = e
    state.took_part[r] = True


@action
def on_prepare_ok(state: June, r: Replica, q: Replica, e: Prepare) -> None:
    """The primary counts an acknowledgement of its view for a prepare in its pipeline."""
    m = state.current[r]
    o = state.p_op[e]
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(leads(state, r))
    require(state.m_kind[m] == KIND["prepare_ok"])
    require(state.m_view[m] == state.view[r])
    require(state.m_from[m] == q)
    require(state.m_prepare[m] == e)
    require(in_pipeline(state, r, o, e))
    state.ok_from[r, o, q] = True
    state.ok_ever[r, o, q] = True


def in_pipeline(state: June, r: Replica, o: Op, e: Prepare) -> Bool:
    """Is e the prepare at o in r's pipeline?"""
    return all_of(state.pipeline_lo[r] <= o, o <= state.pipeline_hi[r], state.pipeline[r, o] == e)


def forget_oks(state: June, r: Replica, o: Op) -> None:
    """A new pipeline entry has no acknowledgement."""
    here = (r, between(Op, o, o), Replica)
    state.ok_from.update(here, lambda p, q: False)
    state.ok_ever.update(here, lambda p, q: False)


def oks(state: June, r: Replica, o: Op) -> Number:
    """How many acknowledgements are counted for the pipeline entry at o."""
    return count(Replica, lambda q: state.ok_from[r, o, q])


@action
def prepare_oks(state: June, r: Replica, o: Op, k: Count) -> None:
    """k replicas, the primary included, acknowledged the prepare at o in this view."""
    at_primary(state, r, o)
    require(oks(state, r, o) == number_of(k))


@action
def prepare_quorum(state: June, r: Replica, o: Op) -> None:
    """Enough replicas acknowledged the prepare at o in this view."""
    at_primary(state, r, o)
    require(oks(state, r, o) >= state.cfg.quorum_replication)


def at_primary(state: June, r: Replica, o: Op) -> None:
    """r is a normal primary with o in its pipeline."""
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(leads(state, r))
    require(all_of(state.pipeline_lo[r] <= o, o <= state.pipeline_hi[r]))


@action
def commit(state: June, r: Replica, e: Prepare) -> None:
    """The primary executes the head of its pipeline, on a quorum of acknowledgements of this view, and replies."""
    require(oks(state, r, state.commit_min[r] + 1) >= state.cfg.quorum_replication)
    commit_head(state, r, e)


def commit_head(state: June, r: Replica, e: Prepare) -> None:
    """The rest of commit, quorum aside."""
    o = state.commit_min[r] + 1
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(leads(state, r))
    require(state.commit_min[r] == state.commit_max[r])
    require(state.pipeline_lo[r] == o)
    require(o <= state.pipeline_hi[r])
    require(state.pipeline[r, o] == e)
    require(state.p_parent[e] == state.entry[r, state.commit_min[r]])
    run(state, r, o, e)
    state.commit_max[r] = o
    state.pipeline_lo[r] = o + 1


@action
def execute(state: June, r: Replica, e: Prepare) -> None:
    """A backup, a primary that repairs its log, or a cluster of one at its start executes the next committed op."""
    o = state.commit_min[r] + 1
    require(state.up[r])
    require(
        any_of(
            all_of(state.status[r] == NORMAL, not_(leads(state, r))),
            all_of(state.status[r] == VIEW_CHANGE, leads(state, r)),
            all_of(state.status[r] == RECOVERING, state.cfg.replicas == 1),
        )
    )
    require(o <= state.commit_max[r])
    require(o <= state.op[r])
    require(state.entry[r, o] == e)
    require(state.body[r, o] == e)
    require(any_of(not_(state.dirty[r, o]), state.faulty[r, o]))
    require(state.p_parent[e] == state.entry[r, state.commit_min[r]])
    run(state, r, o, e)


def run(state: June, r: Replica, o: Op, e: Prepare) -> None:
    """Effects of executing e at o; whoever executed o before executed the same (I1)."""
    c = state.p_client[e]
    require(any_of(state.canonical[o] == 0, state.canonical[o] == e))
    state.commit_min[r] = o
    state.canonical_view[o] = where(state.canonical[o] == 0, state.view[r], state.canonical_view[o])
    state.canonical[o] = e
    state.executed_top = largest(state.executed_top, o)
    state.session[r, c] = where(state.p_register[e], o, state.session[r, c])
    state.answered[r, c] = state.p_request[e]
    state.replied[r, c] = o
    state.client_top = largest(state.client_top, c)


@action
def show_digest(state: June, r: Replica, a: Digest, b: Digest) -> None:
    """Executing took the state machine from state a to b: a is where it was, b is the same everywhere (I14)."""
    own = where(state.digest[r] != 0, state.digest[r], state.digest_first)
    o = state.commit_min[r]
    require(any_of(own == 0, a == own))
    require(any_of(state.digest_at[o] == 0, state.digest_at[o] == b))
    state.digest_first = where(state.digest_first == 0, a, state.digest_first)
    state.digest[r] = b
    state.digest_at[o] = b


@action
def show_empty(state: June, r: Replica, a: Digest, b: Digest) -> None:
    """A replica that started again has the state of an empty log: noticed once, from the state it had."""
    require(state.digest_lost[r] != 0)
    require(a == state.digest_lost[r])
    require(b == state.digest_first)
    state.digest_lost[r] = 0


@action
def evict(state: June, r: Replica, c: Client) -> None:
    """The client table is full: the client whose last reply is oldest loses its entry (I9)."""
    require(state.session[r, c] != 0)
    require(
        forall(
            between(Client, 1, state.client_top),
            lambda x: implies(state.session[r, x] != 0, state.replied[r, c] <= state.replied[r, x]),
        )
    )
    state.session[r, c] = 0
    state.answered[r, c] = 0


ACTIONS = (
    receive,
    on_request,
    jump_ahead,
    on_prepare,
    learn_commit,
    replay,
    acknowledge,
    on_prepare_ok,
    prepare_oks,
    prepare_quorum,
    commit,
    execute,
    show_digest,
    show_empty,
    evict,
)
