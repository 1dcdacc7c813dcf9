"""Messages of the July 2026 build: who may send them when, and what is held back until a view is durable."""

from __future__ import annotations

from viewproof.spec.lang import (
    Bool,
    action,
    all_of,
    any_of,
    between,
    not_,
    require,
)
from viewproof.spec.vsr.tigerbeetle.normal_2026 import holds, may_promise, votes
from viewproof.spec.vsr.tigerbeetle.sorts import Message, Nonce, Op, Prepare, Replica, View
from viewproof.spec.vsr.tigerbeetle.state_2026 import (
    KIND,
    NORMAL,
    July,
    MessageKind,
    at,
    leads,
    primary,
)


@action
def client_send(state: July, m: Message, q: Replica, k: MessageKind) -> None:
    """A client sends a request or another message to a replica."""
    state.m_kind[m] = k
    state.sent[m, q] = True


@action
def address(state: July, r: Replica, m: Message, q: Replica) -> None:
    """A composed message is sent to q."""
    require(state.up[r])
    state.sent_before[r] = state.sent[m, q]
    state.sent_last[r] = m
    state.sent_to[r] = q
    state.sent[m, q] = True


def claims_view(state: July, r: Replica, k: MessageKind, v: View) -> Bool:
    """Does a message of r, of that kind and view, claim a view that is not durable (I6)? It is held back then."""
    return all_of(k != KIND["get_view"], v > state.durable_view[r])


def claims_log(state: July, r: Replica, k: MessageKind) -> Bool:
    """Does it claim a log_view that is not durable?"""
    of_log = any_of(k == KIND["join_view"], k == KIND["view"], k == KIND["prepare_ok"])
    return all_of(of_log, state.log_view[r] > state.durable_log_view[r])


@action
def hold_back(state: July, r: Replica, m: Message, q: Replica) -> None:
    """A message of a view that is not durable is not sent after all (I6); what was sent to q before, by r or another
    (a request by its client), stays.
    """
    require(
        any_of(
            state.m_view[m] > state.durable_view[r],
            state.log_view[r] > state.durable_log_view[r],
        )
    )
    state.sent[m, q] = state.sent_before[r]


@action
def send_prepare(state: July, r: Replica, m: Message, e: Prepare) -> None:
    """A replica sends a prepare that it has: its own, one it received, or one of its journal."""
    require(state.up[r])
    require(any_of(state.on_disk[r, e], holds(state, r, e)))
    state.m_kind[m] = KIND["prepare"]
    state.m_from[m] = primary(state, state.p_view[e])
    state.m_view[m] = state.p_view[e]
    state.m_op[m] = state.p_op[e]
    state.m_commit[m] = state.p_commit[e]
    state.m_prepare[m] = e


@action
def tell_client(state: July, r: Replica, m: Message) -> None:
    """A replica sends a message to a client."""
    state.replied_to[m] = True


@action
def send_prepare_ok(state: July, r: Replica, m: Message, e: Prepare) -> None:
    """What was acknowledged is told to the primary of the view."""
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(votes(state, r))
    require(any_of(state.acked[r, e], not_(may_promise(state, r))))
    state.m_kind[m] = KIND["prepare_ok"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_op[m] = state.p_op[e]
    state.m_prepare[m] = e


@action
def send_commit(state: July, r: Replica, m: Message, e: Prepare) -> None:
    """The primary tells its commit number, and the checksum of the prepare there."""
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(leads(state, r))
    state.m_kind[m] = KIND["commit"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_commit[m] = state.commit_max[r]
    state.m_prepare[m] = e


@action
def send_plain(state: July, r: Replica, m: Message, v: View, k: MessageKind) -> None:
    """A message without a claim: a question, a probe, a block."""
    require(state.up[r])
    state.m_kind[m] = k
    state.m_from[m] = r
    state.m_view[m] = v


@action
def ask_view(state: July, r: Replica, m: Message, v: View, n: Nonce) -> None:
    """A replica asks the primary of a view for its log, under the nonce that it drew at its start."""
    require(state.up[r])
    require(any_of(state.nonce[r] == 0, state.nonce[r] == n))
    state.nonce[r] = n
    state.m_kind[m] = KIND["get_view"]
    state.m_from[m] = r
    state.m_view[m] = v
    state.m_nonce[m] = n


@action
def ask_headers(state: July, r: Replica, m: Message, lo: Op, hi: Op) -> None:
    """A replica asks for headers."""
    require(state.up[r])
    state.m_commit[m] = lo
    state.m_op[m] = hi


@action
def send_headers(state: July, r: Replica, m: Message) -> None:
    """A replica answers get_headers with what its journal holds of the ops asked for."""
    asked = state.current[r]
    lo, hi = state.m_commit[asked], state.m_op[asked]
    require(state.up[r])
    require(state.m_kind[asked] == KIND["get_headers"])
    state.m_kind[m] = KIND["headers"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_header.update((m, between(Op, lo, hi)), lambda o: at(state, r, o))


ACTIONS = (
    client_send,
    address,
    hold_back,
    tell_client,
    send_prepare,
    send_prepare_ok,
    send_commit,
    send_plain,
    ask_view,
    ask_headers,
    send_headers,
)
