"""Messages of the June 2022 build that carry no log: who may send them when, and what they say."""

from __future__ import annotations

from viewproof.spec.lang import action, all_of, any_of, not_, require
from viewproof.spec.vsr.tigerbeetle.normal_2022 import in_pipeline, leads
from viewproof.spec.vsr.tigerbeetle.sorts import Message, Op, Prepare, Replica, View
from viewproof.spec.vsr.tigerbeetle.state_2022 import KIND, NORMAL, RECOVERING, VIEW_CHANGE, June, MessageKind, primary


@action
def client_send(state: June, m: Message, q: Replica, k: MessageKind) -> None:
    """A client sends a request or a ping to a replica."""
    require(any_of(k == KIND["request"], k == KIND["ping"]))
    state.m_kind[m] = k
    state.sent[m, q] = True


@action
def address(state: June, r: Replica, m: Message, q: Replica) -> None:
    """A composed message is sent to q."""
    require(state.up[r])
    require(state.m_kind[m] != KIND["none"])
    state.sent[m, q] = True


@action
def forward(state: June, r: Replica, m: Message) -> None:
    """A normal backup passes a client's request on to the primary."""
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(not_(leads(state, r)))
    require(state.current[r] == m)
    require(state.m_kind[m] == KIND["request"])


@action
def send_prepare(state: June, r: Replica, m: Message, e: Prepare) -> None:
    """A replica sends a prepare that it has: in its pipeline, its journal, or its hands."""
    o, now = state.p_op[e], state.current[r]
    require(state.up[r])
    require(state.status[r] != RECOVERING)
    require(
        any_of(
            in_pipeline(state, r, o, e),
            state.body[r, o] == e,
            state.disk_body[r, o] == e,
            all_of(state.m_kind[now] == KIND["prepare"], state.m_prepare[now] == e),
        )
    )
    state.m_kind[m] = KIND["prepare"]
    state.m_count[m] = 1
    state.m_from[m] = primary(state, state.p_view[e])
    state.m_view[m] = state.p_view[e]
    state.m_op[m] = o
    state.m_commit[m] = state.p_commit[e]
    state.m_prepare[m] = e


@action
def send_prepare_ok(state: June, r: Replica, m: Message, e: Prepare) -> None:
    """What was acknowledged is told to the primary of the view."""
    require(state.up[r])
    require(state.status[r] == NORMAL)
    require(state.acked[r, e])
    state.m_kind[m] = KIND["prepare_ok"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_op[m] = state.p_op[e]
    state.m_prepare[m] = e


@action
def send_commit(state: June, r: Replica, m: Message, e: Prepare) -> None:
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
def send_start_view_change(state: June, r: Replica, m: Message) -> None:
    """A replica that changes views tells all others: a promise."""
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    state.m_kind[m] = KIND["start_view_change"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.promised[r] = state.view[r]
    state.took_part[r] = True


@action
def send_recovery(state: June, r: Replica, m: Message) -> None:
    """A recovering replica asks under its nonce."""
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(state.nonce[r] != 0)
    state.m_kind[m] = KIND["recovery"]
    state.m_from[m] = r
    state.m_nonce[m] = state.nonce[r]


@action
def ask_start_view(state: June, r: Replica, m: Message, v: View) -> None:
    """A replica that met a message of a started view asks its primary for the log."""
    now = state.current[r]
    require(state.up[r])
    require(state.status[r] != RECOVERING)
    require(v >= state.view[r])
    require(any_of(state.m_kind[now] == KIND["prepare"], state.m_kind[now] == KIND["commit"]))
    require(state.m_view[now] == v)
    state.m_kind[m] = KIND["request_start_view"]
    state.m_from[m] = r
    state.m_view[m] = v


@action
def ask_headers(state: June, r: Replica, m: Message, lo: Op, hi: Op) -> None:
    """A replica asks for headers in a gap of its log."""
    require(state.up[r])
    require(state.status[r] != RECOVERING)
    require(all_of(state.commit_min[r] < lo, lo <= hi, hi < state.op[r]))
    state.m_kind[m] = KIND["request_headers"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_commit[m] = lo
    state.m_op[m] = hi


@action
def ask_prepare(state: June, r: Replica, m: Message, o: Op, e: Prepare) -> None:
    """A replica asks for a prepare that its log needs: by its header, or (e = 0) for whatever the primary has at o."""
    require(state.up[r])
    require(state.status[r] != RECOVERING)
    require(any_of(all_of(e == 0, o > state.op[r], o <= state.commit_max[r]), all_of(e != 0, state.entry[r, o] == e)))
    state.m_kind[m] = KIND["request_prepare"]
    state.m_from[m] = r
    state.m_view[m] = state.view[r]
    state.m_op[m] = o
    state.m_prepare[m] = e


@action
def probe(state: June, r: Replica, m: Message, v: View) -> None:
    """Pings and pongs tell the sender's view."""
    require(state.up[r])
    require(v == state.view[r])
    state.m_kind[m] = KIND["ping"]
    state.m_from[m] = r
    state.m_view[m] = v


ACTIONS = (
    client_send,
    address,
    forward,
    send_prepare,
    send_prepare_ok,
    send_commit,
    send_start_view_change,
    send_recovery,
    ask_start_view,
    ask_headers,
    ask_prepare,
    probe,
)
