"""What the lines of the June 2022 logs stand for, second part: messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewproof.refinement.events import agrees, check, event, holds, of_row, owed, step, text_of, when
from viewproof.refinement.tigerbeetle.said import (
    asks,
    leading,
    one_header,
    prepare,
    primary_of,
    quotes_acknowledged,
    quotes_prepare,
    replies,
    shows,
)
from viewproof.spec.lang import any_of, as_index, largest, where
from viewproof.spec.vsr.tigerbeetle import messages_2022, normal_2022, recovery_2022, repair_2022, view_2022
from viewproof.spec.vsr.tigerbeetle.headers import is_named
from viewproof.spec.vsr.tigerbeetle.sorts import Count, Op, Prepare
from viewproof.spec.vsr.tigerbeetle.state_2022 import HEADERS_ASKED, KIND, Status


def newest(row: Mapping[int, int], top: int, limit: int) -> int:
    """The lowest of the `limit` highest cells up to top that are set."""
    found = top
    while limit > 0 and top >= 0:
        if row.get(top):
            found = top
            limit -= 1
        top -= 1
    return found


@event()
def receive(state: Any, e: Any) -> None:
    """A message reaches a replica."""
    check(e.view, state.view[e.node])
    check(e.status, text_of(Status, state.status[e.node]))
    step(normal_2022.receive, r=e.node, m=e.message)


@event(aside=True)
def client_send(state: Any, e: Any) -> None:
    """A client sends a message."""
    holds(e.m_command == e.command, "the header is of another kind", e.command)
    holds(e.to < state.cfg.replicas, "there is no such replica", e.to)
    one_header(state, e)
    with when(e.kind == KIND["request"]):
        asks(state, e, 0)
    step(messages_2022.client_send, m=e.message, q=e.to, k=e.kind)


@event(aside=True)
def client_receive(state: Any, e: Any) -> None:
    """A client receives a message: a reply is the one of its op."""
    with when(e.m_command == "reply"):
        agrees(e.m_reply, e.m_op, rule="I8")


@event()
def send(state: Any, e: Any) -> None:
    """A replica sends a message to a replica."""
    _, acknowledged = owed(Prepare, must=False)
    holds(e.to < state.cfg.replicas, "there is no such replica", e.to)
    holds(e.m_command == e.command, "the header is of another kind", e.command)
    passed_on = any_of(e.kind == KIND["prepare"], e.kind == KIND["request"])
    holds(any_of(e.m_from == e.node, passed_on), "a replica sends in its own name", e.m_from)
    holds(e.m_unused == 0, "a field that has no meaning here is not 0", e.m_unused)
    one_header(state, e)
    with when(any_of(e.kind == KIND["ping"], e.kind == KIND["pong"])):
        step(messages_2022.probe, r=e.node, m=e.message, v=e.m_view)
    with when(e.kind == KIND["request"]):
        _to_primary(state, e)
        step(messages_2022.forward, r=e.node, m=e.message)
    with when(e.kind == KIND["prepare"]):
        made = prepare(state, e.m_checksum)
        quotes_prepare(state, e, made)
        step(messages_2022.send_prepare, r=e.node, m=e.message, e=made)
    with when(e.kind == KIND["prepare_ok"]):
        _send_prepare_ok(state, e, acknowledged)
    with when(e.kind == KIND["commit"]):
        shows(state, e, m_view="view", m_commit="commit_max")
        named = is_named(state, state.entry[e.node, e.m_commit], e.m_prepare)
        holds(named, "the checksum is not that of the prepare at the commit number", e.m_prepare)
        step(messages_2022.send_commit, r=e.node, m=e.message, e=e.m_prepare)
    _send_of_view_change(state, e)
    _send_of_recovery(state, e)
    _send_of_repair(state, e)
    step(messages_2022.address, r=e.node, m=e.message, q=e.to)


def _to_primary(state: Any, e: Any) -> None:
    holds(e.to == primary_of(state, state.view[e.node]), "it is not sent to the primary", e.to)


def _send_prepare_ok(state: Any, e: Any, acknowledged: Any) -> None:
    holds(acknowledged != 0, "an acknowledgement is sent when it is made", e.message)
    made = prepare(state, e.m_prepare)
    holds(acknowledged == made, "another prepare was acknowledged", e.m_prepare)
    quotes_acknowledged(state, e, made)
    _to_primary(state, e)
    check(e.m_view, state.view[e.node])
    check(e.m_op, state.p_op[made])
    check(e.m_commit, state.p_commit[made])
    step(messages_2022.send_prepare_ok, r=e.node, m=e.message, e=made)


def _carried(state: Any, e: Any) -> dict[str, Any]:
    """How many headers of its log a replica sends, by the size of the message, and the lowest op of them."""
    low = of_row(newest, state.entry, e.node, state.op[e.node], e.m_headers, sort=Op)
    return {"low": low, "h": as_index(Count, e.m_headers)}


def _send_of_view_change(state: Any, e: Any) -> None:
    with when(e.kind == KIND["start_view_change"]):
        check(e.m_view, state.view[e.node])
        step(messages_2022.send_start_view_change, r=e.node, m=e.message)
    with when(e.kind == KIND["do_view_change"]):
        _to_primary(state, e)
        shows(state, e, m_view="view", m_op="op", m_commit="commit_max", m_log_view="log_view")
        step(view_2022.do_view_change, r=e.node, m=e.message, **_carried(state, e))
    with when(e.kind == KIND["start_view"]):
        shows(state, e, m_view="view", m_op="op")
        step(view_2022.send_start_view, r=e.node, m=e.message, k=e.m_commit, **_carried(state, e))
    with when(e.kind == KIND["request_start_view"]):
        holds(e.to == primary_of(state, e.m_view), "it is not sent to the primary", e.to)
        step(messages_2022.ask_start_view, r=e.node, m=e.message, v=e.m_view)


def _send_of_recovery(state: Any, e: Any) -> None:
    with when(e.kind == KIND["recovery"]):
        check(e.m_nonce, state.nonce[e.node])
        step(messages_2022.send_recovery, r=e.node, m=e.message)
    with when(e.kind == KIND["recovery_response"]):
        shows(state, e, m_view="view", m_op="op", m_commit="commit_max")
        step(recovery_2022.answer_recovery, r=e.node, m=e.message, n=e.m_nonce, **_carried(state, e))


def _send_of_repair(state: Any, e: Any) -> None:
    asked = state.current[e.node]
    with when(e.kind == KIND["request_headers"]):
        check(e.m_view, state.view[e.node])
        step(messages_2022.ask_headers, r=e.node, m=e.message, lo=e.m_commit, hi=e.m_op)
    with when(e.kind == KIND["request_prepare"]):
        check(e.m_view, state.view[e.node])
        with when(e.m_prepare != 0):
            prepare(state, e.m_prepare)
        named = where(e.m_prepare == state.root, 1, e.m_prepare)
        step(messages_2022.ask_prepare, r=e.node, m=e.message, o=e.m_op, e=named)
    with when(e.kind == KIND["headers"]):
        check(e.m_view, state.view[e.node])
        holds(e.to == state.m_from[asked], "it is not sent to who asked", e.to)
        low = of_row(newest, state.entry, e.node, state.m_op[asked], HEADERS_ASKED, sort=Op)
        step(repair_2022.send_headers, r=e.node, m=e.message, low=largest(low, state.m_commit[asked]))
    with when(e.kind == KIND["nack_prepare"]):
        check(e.m_view, state.view[e.node])
        _to_primary(state, e)
        made = prepare(state, e.m_prepare)
        step(repair_2022.send_nack, r=e.node, m=e.message, o=e.m_op, e=made)


@event()
def reply(state: Any, e: Any) -> None:
    """The primary replies to what it has just executed."""
    owed(Prepare)
    holds(leading(state, e), "only the primary of the view replies", e.node)
    replies(state, e)
