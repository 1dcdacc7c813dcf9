"""The events of the core, and what every event shows of its node.

Silent steps (the trace cannot show them): `client_request` before `on_request`; those of `boot`.
"""

from __future__ import annotations

from typing import Any

from viewproof.refinement.events import (
    agrees,
    check,
    each,
    event,
    first_clear_of,
    holds,
    in_journal,
    inferred,
    journaled,
    mask_of,
    named,
    named_log,
    observe,
    observe_agreed,
    observe_name,
    received,
    shown,
    step,
    tried,
    when,
)
from viewproof.refinement.native.boot import commit_received, log_installed
from viewproof.refinement.native.configuration import has
from viewproof.refinement.native.partitions import asked, asks
from viewproof.spec.lang import NONE, all_of, any_of, between, not_, smallest, some, value_of, where
from viewproof.spec.vsr.core import normal, view_change
from viewproof.spec.vsr.core.state import NORMAL, VIEW_CHANGE, Op, Replica, primary


def observed(state: Any, e: Any) -> None:
    """What each event shows of its node. Equal commit_min must mean an equal digest (I14) and client table (I9)."""
    r = e.node
    observe(e.status, state.status[r])
    observe(e.view, state.view[r], monotone="I6")
    observe(e.log_view, state.log_view[r], monotone="I6")
    observe(e.durable_view, state.durable_view[r], monotone="I6")
    observe(e.durable_log_view, state.durable_log_view[r], monotone="I6")
    observe(e.op, state.op[r])
    observe_name(e.head, state.entry[r, state.op[r]], state.op[r])
    observe(e.commit_min, state.commit_min[r])
    observe(e.commit_max, state.commit_max[r])
    observe_agreed(e.digest, state.commit_min[r], rule="I14", distinct=True, covers="table")
    observe_agreed(e.table, state.commit_min[r], rule="I9")
    observe(e.features, mask_of(state.enabled_at, r) if has(state, "control") else 0)
    observe(e.checkpoint, state.checkpoint[r] if has(state, "checkpoints") else 0)


def by_normal_primary(state: Any, e: Any) -> None:
    """Only a primary in normal status does this."""
    cond = all_of(primary(state, state.view[e.node]) == e.node, state.status[e.node] == NORMAL)
    holds(cond, "only a normal primary sends this", e.node)


def log_in_journal(state: Any, e: Any) -> None:
    """What the node installed is durable in its journal."""
    with each(between(Op, state.commit_min[e.node] + 1, state.op[e.node])) as o:
        in_journal(state.entry[e.node, o])


def entry_is(state: Any, e: Any, view: Any, op: Any) -> None:
    """The columns of an entry are those of the prepare (view, op)."""
    check(e.m_client, state.prepare[view, op].client)
    check(e.m_request, state.prepare[view, op].request)
    if has(state, "sessions"):
        check(e.m_session, state.prepare[view, op].session)
        check(e.m_incarnation, state.prepare[view, op].incarnation)
    else:
        no_session(e)
    if has(state, "control"):
        check(e.m_feature, state.prepare[view, op].feature)
    else:
        check(e.m_feature, 0, if_shown=True)


def no_session(e: Any) -> None:
    """There are no sessions."""
    check(e.m_session, 0, if_shown=True)
    check(e.m_incarnation, 0, if_shown=True)


def of_primary(state: Any, e: Any) -> None:
    """The message is its view's primary's, who sends it itself. (Prepares may go down a chain: seed 000.)"""
    check(e.m_from, primary(state, e.m_view), if_shown=True)


def in_view_change(state: Any, e: Any) -> None:
    """The replica changes its view: it counts what others say of that."""
    holds(state.status[e.node] == VIEW_CHANGE, "only a replica in a view change counts this", e.node)


def message_is(e: Any, kind: str) -> None:
    """The type of the message, where the event shows it."""
    check(e.m_type, kind, if_shown=True)


@event(sends="prepare")
def on_request(state: Any, e: Any) -> None:
    """The primary has prepared a request or a register."""
    inferred(e.m_view, state.view[e.node])
    inferred(e.m_op, state.op[e.node] + 1)
    inferred(e.m_checksum, e.head)
    message_is(e, "request")
    check(e.m_view, state.view[e.node])
    check(e.m_op, state.op[e.node] + 1)
    check(e.m_commit, state.commit_max[e.node])
    if has(state, "sessions"):
        with when(e.m_request != 0):
            step(normal.on_request.name, r=e.node, c=e.m_client, x=e.m_session, s=e.m_request)
        with when(e.m_request == 0):
            step("on_register", r=e.node, c=e.m_client, n=e.m_incarnation)
    else:
        step(normal.on_request, r=e.node, c=e.m_client, s=e.m_request)
    entry_is(state, e, e.m_view, e.m_op)
    named(e.m_checksum, state.entry[e.node, e.m_op], e.m_op)
    named(e.m_parent, state.prepare[e.m_view, e.m_op].parent, e.m_op - 1)


@event(receives="prepare")
def on_prepare(state: Any, e: Any) -> None:
    """A backup accepted a prepare; not yet durable."""
    v, o = e.m_view, e.m_op
    inferred(e.m_view, state.view[e.node])
    inferred(e.m_op, state.op[e.node] + 1)
    message_is(e, "prepare")
    check(v, state.view[e.node])
    received(state.prepare[v, o].client, e.m_client, sent=not has(state, "control"))
    if has(state, "control"):
        received(state.prepare[v, o].feature, e.m_feature)
    else:
        check(e.m_feature, 0, if_shown=True)
    received(state.prepare[v, o].request, e.m_request)
    if has(state, "sessions"):
        received(state.prepare[v, o].session, e.m_session)
        received(state.prepare[v, o].incarnation, e.m_incarnation)
    else:
        no_session(e)
    if has(state, "pipeline"):
        received(state.prepare[v, o].commit, e.m_commit)
    received(state.prepare[v, o].parent)
    named(e.m_checksum, some(v), o)
    named(e.m_parent, state.prepare[v, o].parent, o - 1)
    commit_received(state, e)
    step(normal.on_prepare, r=e.node, o=o)
    with when(e.m_commit > state.commit_max[e.node]):
        step(normal.on_commit, r=e.node, k=e.m_commit)


@event()
def append(state: Any, e: Any) -> None:
    """Every prepare up to m_op is durable."""
    top = smallest(e.m_op, state.op[e.node])
    base = state.checkpoint[e.node] if has(state, "checkpoints") else None
    with each(between(Op, first_clear_of(state.written, e.node, top, base), e.m_op), at_least=1) as o:
        step(normal.append, r=e.node, o=o, journals=state.entry[e.node, o])


@event()
def repair(state: Any, e: Any) -> None:
    """A body of a log still to be installed is durable in the journal."""
    journaled(checksum=e.m_checksum, op=e.m_op)


@event(sends="prepare_ok")
def prepare_ok(state: Any, e: Any) -> None:
    """Acknowledgement sent (also the primary's own, to itself)."""
    ack = state.ack[e.m_view, e.node, e.m_op]
    inferred(e.m_view, state.view[e.node])
    message_is(e, "prepare_ok")
    check(e.m_view, state.view[e.node])
    holds(state.status[e.node] == NORMAL, "only a normal replica acknowledges", e.node)
    message = "a replica acknowledges, in its view, an entry that its journal holds and that it has not executed"
    holds(ack != NONE, message, e.m_op)
    named(e.m_checksum, ack, e.m_op)


@event(receives="prepare_ok")
def on_prepare_ok(state: Any, e: Any) -> None:
    """The primary received and counts another replica's."""
    ack = state.ack[e.m_view, e.m_from, e.m_op]
    inferred(e.m_view, state.view[e.node])
    message_is(e, "prepare_ok")
    check(e.m_view, state.view[e.node])
    by_normal_primary(state, e)
    received(ack, sent=True)
    named(e.m_checksum, ack, e.m_op)


@event()
def commit(state: Any, e: Any) -> None:
    """The primary raised commit_max to m_op on acknowledgement quorums."""
    inferred(e.m_op, e.commit_max)
    with each(between(Op, state.commit_max[e.node] + 1, e.m_op), at_least=1) as o:
        step(normal.commit, r=e.node, o=o)


@event(sends="commit")
def send_commit(state: Any, e: Any) -> None:
    """Commit number sent."""
    by_normal_primary(state, e)
    message_is(e, "commit")
    check(e.m_view, state.view[e.node])
    check(e.m_commit, state.commit_max[e.node])


@event(receives="commit")
def on_commit(state: Any, e: Any) -> None:
    """A backup raised commit_max by it."""
    inferred(e.m_view, state.view[e.node])
    message_is(e, "commit")
    check(e.m_view, state.view[e.node])
    of_primary(state, e)
    commit_received(state, e)
    step(normal.on_commit, r=e.node, k=e.m_commit)


@event()
def execute(state: Any, e: Any) -> None:
    """Op executed."""
    inferred(e.m_op, state.commit_min[e.node] + 1)
    check(e.m_op, state.commit_min[e.node] + 1)
    if has(state, "partitions"):
        asks(state, e)
    else:
        check(e.m_operation, "other", if_shown=True)
    _execution(state, e)
    entry = state.executed[e.node, e.m_op]
    named(e.m_checksum, entry, e.m_op)
    entry_is(state, e, value_of(entry), e.m_op)
    if has(state, "partitions"):
        asked(state, e)
    replies = all_of(e.m_type == "reply", primary(state, state.view[e.node]) == e.node)
    message = "the primary, and only the primary, replies when it executes"
    holds(any_of(not_(shown(e.m_type)), replies), message, e.m_type)
    if has(state, "control"):
        with when(e.m_feature == 0):
            agrees(e.m_reply, e.m_op, "I8", distinct=True)
        _checksum_chained(state, e)
    else:
        agrees(e.m_reply, e.m_op, "I8", distinct=True)
        check(e.m_chain_from, 0, if_shown=True)


def _checksum_chained(state: Any, e: Any) -> None:
    """The database checksum is chained from the op that enabled it on, and over each op since. Older traces, whose
    configuration shows no `feature_rounds`, do not show it.
    """
    older, chained = not has(state, "withdrawal"), state.chain_from[e.node] != 0
    check(e.m_chain_from, state.chain_from[e.node], rule="I14", if_shown=older)
    with when(all_of(chained, shown(e.m_chain)) if older else chained):
        agrees(e.m_chain, e.m_op, "I14", distinct=True)
    message = "there is a database checksum, and no op from which it is chained"
    holds(any_of(not_(shown(e.m_chain)), chained), message, e.m_chain, rule="I14")


def _execution(state: Any, e: Any) -> None:
    control, slots = has(state, "control"), bool(state.cfg.client_table.slots)
    plain = all_of(*([e.m_feature == 0] if control else []), *([e.m_evicted == 0] if slots else []))
    if control or slots:
        with when(plain):
            step(normal.execute, r=e.node)
    else:
        step(normal.execute, r=e.node)
    if slots:
        with when(e.m_evicted != 0):
            step("execute_evicting", r=e.node, c=e.m_evicted)
    if control:
        with when(e.m_feature != 0):
            step("execute_control", r=e.node)
    if not slots:
        check(e.m_evicted, 0, if_shown=True)


@event()
def resend_reply(state: Any, e: Any) -> None:
    """A duplicate was answered."""
    r, c = e.node, e.m_client
    by_normal_primary(state, e)
    message_is(e, "reply")
    check(e.m_request, state.table[r, c])
    if has(state, "clients"):
        step(normal.resend_reply, r=r, c=c)
        check(e.m_op, state.table_op[r, c])
    else:
        with when(state.table[r, c] > state.replies[c]):
            step(normal.resend_reply, r=r, c=c)
    if has(state, "sessions"):
        check(e.m_session, where(e.m_request != 0, state.table_session[r, c], 0))
        check(e.m_incarnation, where(e.m_request != 0, 0, state.table_incarnation[r, c]))
    else:
        no_session(e)
    holds(e.m_op <= state.commit_min[r], "the op of a cached reply has been executed", e.m_op)
    entry = value_of(state.entry[r, e.m_op]), e.m_op
    check(c, state.prepare[entry].client)
    check(e.m_request, state.prepare[entry].request)
    agrees(e.m_reply, e.m_op, "I8", distinct=True)


@event(sends="start_view_change", receives="start_view_change|do_view_change")
def start_view_change(state: Any, e: Any) -> None:
    """The new view is durable, message sent."""
    inferred(e.m_view, e.view)
    message_is(e, "start_view_change")
    with when(shown(e.m_from)):
        asked = any_of(state.svc[e.m_view, e.m_from], state.dvc[e.m_view, e.m_from].sent)
        holds(asked, "the replica that is named had not asked for this view", e.m_from)
    step(view_change.start_view_change, r=e.node, v=e.m_view)


@event(receives="start_view_change")
def on_start_view_change(state: Any, e: Any) -> None:
    """Received from another replica and counted."""
    inferred(e.m_view, state.view[e.node])
    message_is(e, "start_view_change")
    check(e.m_view, state.view[e.node])
    in_view_change(state, e)
    received(state.svc[e.m_view, e.m_from], sent=True)


@event(sends="do_view_change")
def do_view_change(state: Any, e: Any) -> None:
    """Sent (also to itself)."""
    v, r = e.m_view, e.node
    inferred(e.m_view, state.view[r])
    message_is(e, "do_view_change")
    step(view_change.do_view_change, r=r)
    check(v, state.view[r])
    check(e.m_log_view, state.dvc[v, r].log_view)
    check(e.m_op, state.dvc[v, r].op)
    check(e.m_commit, state.dvc[v, r].commit)
    named_log(e.m_log, Op, state.dvc[v, r].op, lambda o: state.dvc[v, r].entry[o])


@event(receives="do_view_change")
def on_do_view_change(state: Any, e: Any) -> None:
    """The primary received it from another replica and counts it."""
    v, x = e.m_view, e.m_from
    inferred(e.m_view, state.view[e.node])
    message_is(e, "do_view_change")
    check(v, state.view[e.node])
    holds(primary(state, v) == e.node, "only the primary of the view counts this", e.node)
    in_view_change(state, e)
    received(state.dvc[v, x].sent, sent=True)
    received(state.dvc[v, x].log_view, e.m_log_view)
    received(state.dvc[v, x].op, e.m_op)
    received(state.dvc[v, x].commit, e.m_commit)
    with each(between(Op, 1, state.dvc[v, x].op)) as o:
        received(state.dvc[v, x].entry[o])
    named_log(e.m_log, Op, state.dvc[v, x].op, lambda o: state.dvc[v, x].entry[o])


@event(sends="start_view")
def start_view(state: Any, e: Any) -> None:
    """The primary starts its view."""
    v = e.m_view
    inferred(v, state.view[e.node])
    message_is(e, "start_view")
    check(v, state.view[e.node])
    step(view_change.start_view, r=e.node, b=tried(e.m_from, sort=Replica))
    check(e.m_op, state.sv[v].op)
    check(e.m_commit, state.commit_max[e.node])
    named_log(e.m_log, Op, state.sv[v].op, lambda o: state.sv[v].entry[o])
    log_in_journal(state, e)


@event(sends="start_view")
def send_start_view(state: Any, e: Any) -> None:
    """Sent again with the current op, in answer to request_start_view."""
    by_normal_primary(state, e)
    message_is(e, "start_view")
    check(e.m_view, state.view[e.node])
    check(e.m_op, state.op[e.node])
    check(e.m_commit, state.commit_max[e.node])
    named_log(e.m_log, Op, state.op[e.node], lambda o: state.entry[e.node, o])


@event(receives="start_view")
def on_start_view(state: Any, e: Any) -> None:
    """Log installed, replica is a normal backup."""
    inferred(e.m_view, e.view)
    inferred(e.m_op, e.op)
    message_is(e, "start_view")
    of_primary(state, e)
    log_installed(state, e)
    named_log(e.m_log, Op, e.m_op, lambda o: state.entry[e.node, o])
    log_in_journal(state, e)


EVENTS = (
    on_request,
    on_prepare,
    append,
    repair,
    prepare_ok,
    on_prepare_ok,
    commit,
    send_commit,
    on_commit,
    execute,
    resend_reply,
    start_view_change,
    on_start_view_change,
    do_view_change,
    on_do_view_change,
    start_view,
    send_start_view,
    on_start_view,
)
