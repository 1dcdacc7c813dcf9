"""What the lines of the July 2026 logs stand for, second part: messages."""

from __future__ import annotations

from typing import Any, Final

from viewproof.refinement.events import bit, check, each, event, holds, let, owed, owes, step, text_of, when
from viewproof.refinement.tigerbeetle.said import (
    answers_prepare,
    asks,
    flag,
    leading,
    one_header,
    prepare,
    primary_of,
    quotes_acknowledged,
    quotes_prepare,
    replies,
    shows,
)
from viewproof.spec.lang import all_of, any_of, between, largest, not_, number_of
from viewproof.spec.vsr.tigerbeetle import messages_2026, normal_2026, view_2026
from viewproof.spec.vsr.tigerbeetle.headers import is_named
from viewproof.spec.vsr.tigerbeetle.sorts import Op, Prepare
from viewproof.spec.vsr.tigerbeetle.state_2026 import KIND, SUFFIX, Status

_COMPOSED: Final = ("prepare", "prepare_ok", "commit", "exit_view", "join_view", "view", "get_view", "headers")
"""Kinds whose messages have an action of their own."""
_OF_OTHERS: Final = ("prepare", "request", "reply", "block")
"""Commands of messages that are passed on in the name of another replica."""


@event()
def receive(state: Any, e: Any) -> None:
    """A message reaches a replica."""
    check(e.view, state.view[e.node])
    check(e.status, text_of(Status, state.status[e.node]))
    check(e.mark_status, text_of(Status, state.status[e.node]))
    check(e.mark_leads, flag(leading(state, e)))
    step(normal_2026.receive, r=e.node, m=e.message)


@event(aside=True)
def client_send(state: Any, e: Any) -> None:
    """A client sends a message."""
    holds(e.m_command == e.command, "the header is of another kind", e.command)
    holds(e.to < state.cfg.replicas, "there is no such replica", e.to)
    one_header(state, e)
    with when(e.kind == KIND["request"]):
        asks(state, e, e.m_session)
    step(messages_2026.client_send, m=e.message, q=e.to, k=e.kind)


@event()
def send_client(state: Any, e: Any) -> None:
    """A replica sends a message to a client."""
    holds(e.m_command == e.command, "the header is of another kind", e.command)
    with when(e.command == "reply"):
        made = let(state.canonical[e.m_op])
        check(e.m_commit, e.m_op)
        of_view = all_of(state.p_view[made] <= e.m_view, e.m_view <= state.view[e.node])
        holds(of_view, "it names a view that it cannot be of", e.m_view)
        own = any_of(e.m_from == e.node, e.m_from == primary_of(state, state.p_view[made]))
        holds(own, "it is in the name of another replica", e.m_from)
        answers_prepare(state, e, made)
    one_header(state, e)
    step(messages_2026.tell_client, r=e.node, m=e.message)


@event(aside=True)
def client_receive(state: Any, e: Any) -> None:
    """A client receives a message."""
    holds(state.replied_to[e.message], "no replica sent this to a client", e.message)


@event()
def send(state: Any, e: Any) -> None:
    """A replica sends a message to a replica."""
    _, acknowledged = owed(Prepare, must=False)
    holds(e.to < state.cfg.nodes, "there is no such replica", e.to)
    holds(e.m_command == e.command, "the header is of another kind", e.command)
    passed_on = any_of(*(e.command == command for command in _OF_OTHERS))
    holds(any_of(e.m_from == e.node, passed_on), "it sends in its own name", e.m_from)
    one_header(state, e)
    with when(e.kind == KIND["prepare"]):
        _send_prepare(state, e)
    with when(e.kind == KIND["prepare_ok"]):
        _send_prepare_ok(state, e, acknowledged)
    with when(e.kind == KIND["commit"]):
        shows(state, e, m_view="view", m_commit="commit_max")
        holds(
            any_of(is_named(state, state.canonical[e.m_commit], e.m_prepare), e.m_commit == 0),
            "the checksum is not that of the prepare at the commit number",
            e.m_prepare,
        )
        step(messages_2026.send_commit, r=e.node, m=e.message, e=e.m_prepare)
    with when(e.kind == KIND["exit_view"]):
        check(e.m_view, state.view[e.node])
        step(view_2026.exit_view, r=e.node, m=e.message)
    with when(e.kind == KIND["join_view"]):
        _send_join_view(state, e)
    with when(e.kind == KIND["view"]):
        _send_view(state, e)
    with when(e.kind == KIND["get_view"]):
        step(messages_2026.ask_view, r=e.node, m=e.message, v=e.m_view, n=e.m_nonce)
    with when(e.kind == KIND["headers"]):
        check(e.m_view, state.view[e.node])
        step(messages_2026.send_headers, r=e.node, m=e.message)
    with when(all_of(e.kind == KIND["request"], state.request_of[e.m_checksum] == 0)):
        holds(e.m_client == 0, "no client sent this request", e.m_client)
        asks(state, e, e.m_session)
    with when(not_(any_of(*(e.kind == KIND[command] for command in _COMPOSED)))):
        _send_plain(state, e)
    step(messages_2026.address, r=e.node, m=e.message, q=e.to)
    _may_be_held_back(state, e)


def _send_prepare(state: Any, e: Any) -> None:
    made = prepare(state, e.m_checksum)
    holds(e.m_from == primary_of(state, state.p_view[made]), "it is in the name of another replica", e.m_from)
    quotes_prepare(state, e, made)
    step(messages_2026.send_prepare, r=e.node, m=e.message, e=made)


def _send_prepare_ok(state: Any, e: Any, acknowledged: Any) -> None:
    holds(acknowledged != 0, "an acknowledgement is sent when it is made", e.message)
    made = prepare(state, e.m_prepare)
    holds(acknowledged == made, "another prepare was acknowledged", e.m_prepare)
    quotes_acknowledged(state, e, made)
    holds(e.to == primary_of(state, state.view[e.node]), "it is not sent to the primary", e.to)
    check(e.m_view, state.view[e.node])
    check(e.m_op, state.p_op[made])
    check(e.m_commit_min, state.commit_min[e.node])
    step(messages_2026.send_prepare_ok, r=e.node, m=e.message, e=made)


def _send_join_view(state: Any, e: Any) -> None:
    check(e.m_view, state.view[e.node])
    shows(state, e, m_log_view="log_view", m_op="list_op", m_commit_min="commit_min", m_checkpoint="checkpoint")
    whole = all_of(e.m_headers > 0, e.m_headers <= number_of(e.m_op) + 1, e.m_rest == 0)
    holds(whole, "it does not carry whole headers", e.m_headers)
    low, head = let(e.m_op + 1 - e.m_headers), let(state.list_op[e.node])
    step(view_2026.join_view, r=e.node, m=e.message, low=low)
    with each(between(Op, low, head)) as o:
        place = head - o + 1
        step(
            view_2026.join_view_bits, r=e.node, m=e.message, o=o,
            b=flag(bit(e.m_nacks, place)), p=flag(bit(e.m_copies, place)),
        )  # fmt: skip


def _send_view(state: Any, e: Any) -> None:
    shows(state, e, m_view="view", m_op="op", m_commit_max="commit_max", m_checkpoint="checkpoint")
    low = largest(0, state.op[e.node] - SUFFIX + 1)
    step(view_2026.send_view, r=e.node, m=e.message, low=low, n=e.m_nonce)


def _send_plain(state: Any, e: Any) -> None:
    step(messages_2026.send_plain, r=e.node, m=e.message, v=e.m_view, k=e.kind)
    with when(e.kind == KIND["get_prepare"]):
        holds(any_of(e.m_view == 0, e.m_view == state.view[e.node]), "it names a view it is not in", e.m_view)
    with when(e.kind == KIND["get_headers"]):
        step(messages_2026.ask_headers, r=e.node, m=e.message, lo=e.m_low, hi=e.m_high)
    probes = any_of(*(e.kind == KIND[command] for command in ("ping", "pong", "get_headers")))
    with when(probes):
        holds(e.m_view <= state.view[e.node], "it names a view it is not in", e.m_view)


def _may_be_held_back(state: Any, e: Any) -> None:
    """What another replica is told of a view is held back until the view is durable, as the next line says then."""
    to_others = all_of(e.to != e.node, e.m_from == e.node)
    early = messages_2026.claims_view(state, e.node, e.kind, e.m_view)
    with when(all_of(to_others, early)):
        owes("drop")
    with when(all_of(to_others, not_(early), messages_2026.claims_log(state, e.node, e.kind))):
        owes("drop_log")


def _hold_back(state: Any, e: Any) -> None:
    step(messages_2026.hold_back, r=e.node, m=state.sent_last[e.node], q=state.sent_to[e.node])


@event()
def drop(state: Any, e: Any) -> None:
    """What was to be sent is held back: its view is not durable."""
    owed()
    check(e.durable, state.durable_view[e.node])
    check(e.view, state.m_view[state.sent_last[e.node]])
    _hold_back(state, e)


@event()
def drop_log(state: Any, e: Any) -> None:
    """The same: its log_view is not durable."""
    owed()
    shows(state, e, durable="durable_log_view", view="log_view")
    _hold_back(state, e)


@event()
def reply(state: Any, e: Any) -> None:
    """The reply to what was executed is made."""
    replies(state, e)
