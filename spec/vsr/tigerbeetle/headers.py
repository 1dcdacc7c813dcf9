"""Headers of messages and prepares, as both families have them: a checksum names one, and what it says stays so.

Every checksum has a number; that of a prepare is its prepare's. The root's is known once a line tells it.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import Bool, Cells, State, action, all_of, any_of, require, variable, where
from viewproof.spec.vsr.tigerbeetle.sorts import (
    ROOT,
    Client,
    Message,
    Nonce,
    Op,
    Operation,
    Prepare,
    Replica,
    Request,
    Time,
    View,
)


class Headers(State):
    """Messages and prepares."""

    sent: Cells[tuple[Message, Replica], Bool] = variable("has the message been sent to that replica?")
    m_from: Cells[Message, Replica] = variable("the replica that composed it")
    m_view: Cells[Message, View] = variable("its view")
    m_op: Cells[Message, Op] = variable("its op")
    m_commit: Cells[Message, Op] = variable("its commit number; of a vote, or a question for headers, the lowest op")
    m_log_view: Cells[Message, View] = variable("a vote: log_view")
    m_prepare: Cells[Message, Prepare] = variable("the prepare it is, or is about; 0 = none or any")
    m_nonce: Cells[Message, Nonce] = variable("a question under a nonce, and its answer: nonce")
    m_low: Cells[Message, Op] = variable("lowest op of the headers in a row that it carries")
    m_header: Cells[tuple[Message, Op], Prepare] = variable("header it carries at that op; 0 = none or blank")
    m_checksum: Cells[Message, Prepare] = variable("request: its checksum")
    m_client: Cells[Message, Client] = variable("request: client; 0 = the cluster itself")
    m_request: Cells[Message, Request] = variable("request: number")
    m_session: Cells[Message, Op] = variable("request: session")
    m_operation: Cells[Message, Operation] = variable("request: what it asks for")
    m_register: Cells[Message, Bool] = variable("request: does it register a session?")
    request_of: Cells[Prepare, Message] = variable("the request with that checksum")
    requested: Cells[tuple[Client, Request], Message] = variable("the client's request of that number")
    replied_to: Cells[Message, Bool] = variable("did a replica send it to a client?")
    root: Prepare = variable("number of the root's checksum; 0 = not known yet")
    p_view: Cells[Prepare, View] = variable("prepare: view")
    p_op: Cells[Prepare, Op] = variable("prepare: op")
    p_parent: Cells[Prepare, Prepare] = variable("prepare: the one before it")
    p_commit: Cells[Prepare, Op] = variable("prepare: commit number of its primary")
    p_client: Cells[Prepare, Client] = variable("prepare: client; 0 = the cluster itself")
    p_request: Cells[Prepare, Request] = variable("prepare: request number")
    p_register: Cells[Prepare, Bool] = variable("prepare: does it register a session?")
    p_operation: Cells[Prepare, Operation] = variable("prepare: what the request asks for")
    p_asked: Cells[Prepare, Prepare] = variable("prepare: checksum of the request")
    p_time: Cells[Prepare, Time] = variable("prepare: timestamp, once a header shows it")


def header_of(state: Any, c: Prepare) -> Prepare:
    """The prepare that a checksum names; it may not have been made."""
    named: Prepare = where(all_of(c != 0, c == state.root), ROOT, c)
    return named


def was_made(state: Any, e: Prepare) -> Bool:
    """Is there such a prepare?"""
    return any_of(e == ROOT, state.p_op[e] != 0)


def is_named(state: Any, e: Prepare, c: Prepare) -> Bool:
    """Is that the checksum of prepare e? (The root's is not known before something stands on it.)"""
    return all_of(e != 0, any_of(header_of(state, c) == e, all_of(e == ROOT, state.root == 0)))


def answers(state: Any, e: Prepare, c: Client, s: Request, u: Operation, h: Prepare) -> Bool:
    """Does a reply to that client, request and checksum of a request answer prepare e?"""
    return all_of(
        state.p_op[e] != 0,
        state.p_client[e] == c,
        state.p_request[e] == s,
        state.p_operation[e] == u,
        state.p_asked[e] == h,
    )


def compose(state: Any, e: Prepare, m: Message, v: View, o: Op, parent: Prepare, k: Op) -> None:
    """Effects of making prepare e of view v and op o from request m."""
    state.p_view[e] = v
    state.p_op[e] = o
    state.p_parent[e] = parent
    state.p_commit[e] = k
    state.p_client[e] = state.m_client[m]
    state.p_request[e] = state.m_request[m]
    state.p_register[e] = state.m_register[m]
    state.p_operation[e] = state.m_operation[m]
    state.p_asked[e] = state.m_checksum[m]


@action
def ask(state: Any, m: Message, h: Prepare, c: Client, s: Request, x: Op, u: Operation, register: Request) -> None:
    """A request is made, by a client or (c = 0) the cluster itself: a client sends one again as it was."""
    require(any_of(c == 0, state.requested[c, s] == 0, state.requested[c, s] == m))
    state.requested[c, s] = m
    state.request_of[h] = m
    state.m_checksum[m] = h
    state.m_client[m] = c
    state.m_request[m] = s
    state.m_session[m] = x
    state.m_operation[m] = u
    state.m_register[m] = register == 1


@action
def learn_root(state: Any, c: Prepare) -> None:
    """The checksum of the root is told."""
    require(any_of(state.root == 0, state.root == c))
    state.root = c


@action
def quote_prepare(
    state: Any, e: Prepare, p: Prepare, v: View, o: Op, k: Op, c: Client, s: Request, u: Operation, h: Prepare, t: Time
) -> None:
    """A prepare's header is shown: its fields are those it was made with, its timestamp is above its parent's."""
    require(state.p_view[e] == v)
    require(state.p_op[e] == o)
    require(state.p_commit[e] == k)
    require(state.p_asked[e] == h)
    is_of(state, e, p, c, s, u, t)


@action
def quote_acknowledged(state: Any, e: Prepare, p: Prepare, c: Client, s: Request, u: Operation, t: Time) -> None:
    """An acknowledgement shows fields of its prepare."""
    is_of(state, e, p, c, s, u, t)


def is_of(state: Any, e: Prepare, p: Prepare, c: Client, s: Request, u: Operation, t: Time) -> None:
    """Guard and effect of showing fields of prepare e."""
    parent = state.p_parent[e]
    require(is_named(state, parent, p))
    require(state.p_client[e] == c)
    require(state.p_request[e] == s)
    require(state.p_operation[e] == u)
    require(any_of(state.p_time[e] == 0, state.p_time[e] == t))
    require(any_of(state.p_time[parent] == 0, state.p_time[parent] < t))
    state.p_time[e] = t


ACTIONS = (ask, learn_root, quote_prepare, quote_acknowledged)
