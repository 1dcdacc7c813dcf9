"""Normal operation of the July 2026 build."""

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
from viewproof.spec.vsr.tigerbeetle.node_2026 import alone, put_header
from viewproof.spec.vsr.tigerbeetle.sorts import Client, Count, Message, Op, Prepare, Replica, Request
from viewproof.spec.vsr.tigerbeetle.state_2026 import (
    KIND,
    NORMAL,
    PIPELINE,
    RECOVERING,
    SLOTS,
    VIEW_CHANGE,
    July,
    at,
    leads,
    prepare_max,
    slot_of,
)


def votes(state: July, r: Replica) -> Bool:
    """Is r a replica, and not a standby?"""
    return r < state.cfg.replicas


def is_clean(state: July, r: Replica, o: Op, e: Prepare) -> Bool:
    """Is that prepare durable in r's journal?"""
    return all_of(at(state, r, o) == e, not_(state.dirty[r, slot_of(o)]))


def chained(state: July, r: Replica, lo: Op, hi: Op) -> Bool:
    """Are the headers of ops lo..hi all there, each the parent of the next?"""
    return all_of(
        at(state, r, hi) != 0,
        forall(between(Op, lo, hi - 1), lambda o: at(state, r, o) == state.p_parent[at(state, r, o + 1)]),
    )


@action
def receive(state: July, r: Replica, m: Message) -> None:
    """A message that was sent to the replica reaches it; its own in the midst of another."""
    take_message(state, r, m)
    state.outer[r] = where(state.m_from[m] == r, state.current[r], m)


@action
def resume(state: July, r: Replica) -> None:
    """A vote is counted: the replica's own, or, once that is counted, that in the midst of which it handled its own."""
    now = state.current[r]
    own = all_of(state.m_from[now] == r, state.join_of[r, r] == now)
    take_message(state, r, where(own, state.outer[r], now))


def take_message(state: July, r: Replica, m: Message) -> None:
    """Guard and effects of handling a message that was sent to r."""
    e = state.m_prepare[m]
    require(state.up[r])
    require(state.sent[m, r])
    state.current[r] = m
    state.seen[r, e] = any_of(state.seen[r, e], state.m_kind[m] == KIND["prepare"])


@action
def take_request(state: July, r: Replica, h: Prepare, c: Client) -> None:
    """The primary takes up a request that reached it before, or that it makes itself."""
    m = state.request_of[h]
    require(m != 0)
    require(state.m_client[m] == c)
    state.asked[r] = m


@action
def on_request(state: July, r: Replica, e: Prepare) -> None:
    """The primary prepares the request taken up, a client's or the cluster's own: the next op (I7: one each).

    A request that waited in its queue is prepared although the session it came from was evicted meanwhile.
    """
    m = state.asked[r]
    c, s, register = state.m_client[m], state.m_request[m], state.m_register[m]
    v, o = state.view[r], state.op[r] + 1
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(leads(state, r))
    require(state.commit_min[r] == state.commit_max[r])
    require(all_of(state.durable_view[r] == v, state.durable_log_view[r] == v))
    require(o - state.commit_max[r] <= PIPELINE)
    require(o <= prepare_max(state.checkpoint[r]))
    require(state.prepared[v, o] == 0)
    require(not_(was_made(state, e)))
    require(
        any_of(
            c == 0,
            forall(
                between(Op, state.commit_max[r] + 1, state.op[r]), lambda p: state.p_client[state.pipeline[r, p]] != c
            ),
        )
    )
    require(
        any_of(
            c == 0,
            where(
                register,
                all_of(s == 0, state.session[r, c] == 0),
                any_of(all_of(state.session[r, c] != 0, s == state.answered[r, c] + 1), state.evicted[r, c]),
            ),
        )
    )
    state.prepared[v, o] = e
    compose(state, e, m, v, o, at(state, r, state.op[r]), state.commit_max[r])
    state.pipeline[r, o] = e
    state.ok_from.update((r, between(Op, o, o), Replica), lambda p, q: False)
    state.op[r] = o
    state.dirty[r, slot_of(o)] = True
    state.faulty[r, slot_of(o)] = all_of(state.header[r, slot_of(o)] == 0, state.faulty[r, slot_of(o)])
    state.header[r, slot_of(o)] = e
    state.promise[r, o] = 0


@action
def learn_commit(state: July, r: Replica, k: Op) -> None:
    """A backup learns a commit number from a prepare, commit or view message of its view; it may be above its log."""
    m = state.current[r]
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(not_(leads(state, r)))
    require(
        any_of(state.m_kind[m] == KIND["prepare"], state.m_kind[m] == KIND["commit"], state.m_kind[m] == KIND["view"])
    )
    require(state.m_view[m] == state.view[r])
    require(state.m_commit[m] == k)
    require(k > state.commit_max[r])
    listed = state.m_kind[m] == KIND["view"]
    state.commit_max[r] = k
    state.list_op[r] = where(listed, state.m_op[m], state.list_op[r])
    state.list_low[r] = where(listed, state.m_low[m], state.list_low[r])
    state.list_header.update(
        (r, between(Op, state.m_low[m], state.m_op[m])),
        lambda o: where(listed, state.m_header[m, o], state.list_header[r, o]),
    )


@action
def replay(state: July, r: Replica, k: Op) -> None:
    """A cluster of one takes its whole journal as committed."""
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(alone(state, r))
    require(k == state.op[r])
    state.commit_max[r] = k


@action
def jump_ahead(state: July, r: Replica, o: Op) -> None:
    """A backup that receives a prepare above the next op takes the head just below it, and leaves a gap."""
    m = state.current[r]
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(not_(leads(state, r)))
    require(state.m_kind[m] == KIND["prepare"])
    require(state.m_view[m] == state.view[r])
    require(state.m_op[m] == o + 1)
    require(o > state.op[r])
    state.op[r] = o


@action
def on_prepare(state: July, r: Replica) -> None:
    """A backup takes the next prepare of its view as the head of its log; it is not durable yet."""
    m = state.current[r]
    e, o = state.m_prepare[m], state.m_op[m]
    before = at(state, r, o - 1)
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(not_(leads(state, r)))
    require(state.m_kind[m] == KIND["prepare"])
    require(state.p_view[e] == state.view[r])
    require(o == state.op[r] + 1)
    require(o > state.commit_min[r])
    require(o - state.commit_min[r] <= SLOTS)
    require(implies(all_of(before != 0, state.p_view[before] == state.view[r]), state.p_parent[e] == before))
    state.op[r] = o
    put_header(state, r, o, e)


def may_promise(state: July, r: Replica) -> Bool:
    """Are view and log_view durable, or does the acknowledgement stay with r itself, who leads the view?"""
    return any_of(
        leads(state, r),
        all_of(state.view[r] <= state.durable_view[r], state.log_view[r] <= state.durable_log_view[r]),
    )


@action
def acknowledge(state: July, r: Replica, o: Op, e: Prepare) -> None:
    """A replica acknowledges a prepare of its log that is durable here (I3); a standby only says so to itself.

    One further ahead waits for the next checkpoint, which it would make look durable on a quorum (I5).
    What is held back until the view is durable is no promise yet.
    """
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(state.syncing[r] == 0)
    require(o <= state.op[r])
    require(o <= prepare_max(state.checkpoint[r]) - PIPELINE)
    require(is_clean(state, r, o, e))
    promised = all_of(votes(state, r), may_promise(state, r))
    state.acked[r, e] = any_of(promised, state.acked[r, e])
    state.promise[r, o] = where(promised, e, state.promise[r, o])


@action
def on_prepare_ok(state: July, r: Replica, q: Replica, e: Prepare) -> None:
    """The primary counts an acknowledgement of its view for a prepare in its pipeline."""
    m = state.current[r]
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(leads(state, r))
    require(state.m_kind[m] == KIND["prepare_ok"])
    require(state.m_view[m] == state.view[r])
    require(state.m_from[m] == q)
    require(votes(state, q))
    require(state.m_prepare[m] == e)
    require(state.pipeline[r, state.p_op[e]] == e)
    require(state.p_op[e] > state.commit_max[r])
    state.ok_from[r, state.p_op[e], q] = True


def oks(state: July, r: Replica, o: Op) -> Number:
    """How many acknowledgements are counted for the pipeline entry at o."""
    return count(Replica, lambda q: state.ok_from[r, o, q])


@action
def prepare_oks(state: July, r: Replica, o: Op, k: Count) -> None:
    """k replicas, the primary included, acknowledged the prepare at o in this view."""
    require(oks(state, r, o) == number_of(k))


@action
def prepare_quorum(state: July, r: Replica, o: Op) -> None:
    """Enough replicas acknowledged the prepare at o in this view."""
    require(oks(state, r, o) >= state.cfg.quorum_replication)
    state.agreed[r, state.pipeline[r, o]] = True


@action
def commit(state: July, r: Replica, e: Prepare) -> None:
    """The primary executes the head of its pipeline, on a quorum of acknowledgements of this view, and replies."""
    o = state.commit_min[r] + 1
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(leads(state, r))
    require(state.commit_min[r] == state.commit_max[r])
    require(o <= state.op[r])
    require(state.pipeline[r, o] == e)
    require(oks(state, r, o) >= state.cfg.quorum_replication)
    require(follows(state, r, e, o))
    run(state, r, o, e)


@action
def note_commit(state: July, r: Replica, o: Op) -> None:
    """A primary knows what it executed to be committed."""
    require(state.commit_min[r] == o)
    require(o > state.commit_max[r])
    state.commit_max[r] = o


def follows(state: July, r: Replica, e: Prepare, o: Op) -> Bool:
    """Is e's parent what was executed before it (as far as anyone executed it)?"""
    return any_of(state.canonical[o - 1] == 0, state.p_parent[e] == state.canonical[o - 1])


@action
def execute(state: July, r: Replica, e: Prepare) -> None:
    """A backup, a primary that repairs its log, or a cluster of one at its start executes the next committed op.

    A primary that began to commit an op executes it, too, if a view change comes in between. The body may be in memory.
    """
    o = state.commit_min[r] + 1
    require(state.up[r])
    require(
        any_of(
            all_of(state.status[r] == NORMAL, not_(leads(state, r))),
            state.status[r] == VIEW_CHANGE,
            all_of(state.status[r] == RECOVERING, alone(state, r)),
        )
    )
    require(any_of(o <= state.commit_max[r], all_of(o == state.commit_max[r] + 1, state.agreed[r, e])))
    require(state.p_op[e] == o)
    require(any_of(at(state, r, o) == e, at(state, r, o) == 0))
    require(any_of(state.on_disk[r, e], holds(state, r, e)))
    require(follows(state, r, e, o))
    run(state, r, o, e)


def run(state: July, r: Replica, o: Op, e: Prepare) -> None:
    """Effects of executing e at o; whoever executed o before executed the same (I1)."""
    c = state.p_client[e]
    require(any_of(state.canonical[o] == 0, state.canonical[o] == e))
    state.commit_min[r] = o
    state.canonical_view[o] = where(state.canonical[o] == 0, state.view[r], state.canonical_view[o])
    state.canonical[o] = e
    state.executed_top = largest(state.executed_top, o)
    state.session[r, c] = where(state.p_register[e], o, state.session[r, c])
    state.evicted[r, c] = all_of(not_(state.p_register[e]), state.evicted[r, c])
    state.answered[r, c] = where(c == 0, 0, state.p_request[e])
    state.replied[r, c] = o
    state.client_top = largest(state.client_top, c)


@action
def evict(state: July, r: Replica, c: Client) -> None:
    """The client table is full: the client whose last reply is oldest loses its entry (I9)."""
    require(state.session[r, c] != 0)
    require(
        forall(
            between(Client, 1, state.client_top),
            lambda x: implies(
                all_of(state.session[r, x] != 0, state.replied[r, x] != 0), state.replied[r, c] <= state.replied[r, x]
            ),
        )
    )
    state.session[r, c] = 0
    state.answered[r, c] = 0
    state.evicted[r, c] = True


def lacks_session(state: July, r: Replica, c: Client) -> Bool:
    """Has r no entry of the client in its table, which is that of a checkpoint?"""
    return all_of(c != 0, state.session[r, c] == 0, state.later[r])


@action
def load_session(state: July, r: Replica, c: Client, o: Op, s: Request) -> None:
    """A replica that started from a checkpoint has the client table of that checkpoint: an entry as others have it."""
    state.session[r, c] = o
    state.answered[r, c] = s
    state.replied[r, c] = 0


@action
def forget_clients(state: July, r: Replica) -> None:
    """A replica that jumps to a checkpoint drops its client table for that of the checkpoint."""
    require(state.up[r])
    state.later[r] = True
    state.session.update((r, Client), lambda c: 0)
    state.answered.update((r, Client), lambda c: 0)
    state.replied.update((r, Client), lambda c: 0)


def holds(state: July, r: Replica, e: Prepare) -> Bool:
    """Does r hold the prepare: in its pipeline, in its ring or on the way there, or in memory since it reached r?"""
    o = state.p_op[e]
    return any_of(state.pipeline[r, o] == e, state.body[r, slot_of(o)] == e, state.writing[r, e], state.seen[r, e])


ACTIONS = (
    receive,
    resume,
    take_request,
    on_request,
    learn_commit,
    replay,
    jump_ahead,
    on_prepare,
    acknowledge,
    on_prepare_ok,
    prepare_oks,
    prepare_quorum,
    commit,
    note_commit,
    execute,
    evict,
    load_session,
    forget_clients,
)
