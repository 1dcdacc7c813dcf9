"""Events that only a specification with options has: client table, control entries, checkpoints."""

from __future__ import annotations

from typing import Any

from viewproof.refinement.events import (
    bit,
    check,
    each,
    event,
    holds,
    inferred,
    label_of,
    mask_of,
    named,
    received,
    step,
    when,
)
from viewproof.refinement.native.columns import FEATURE_MAX
from viewproof.refinement.native.configuration import has, with_part
from viewproof.refinement.native.core import by_normal_primary, message_is, no_session
from viewproof.spec.lang import all_of, any_of, between, some, where
from viewproof.spec.vsr.core.state import Feature
from viewproof.spec.vsr.parts import append_failure, control, discard, fence, withdrawal
from viewproof.spec.vsr.parts.clients import sessions
from viewproof.spec.vsr.parts.clients.table import DROPPED, EVICTING, Outcome, is_one_of


@event(only=with_part("clients"), needs="client_slots")
def drop_request(state: Any, e: Any) -> None:
    """A normal primary dropped a request, and why."""
    r, c, why = e.node, e.m_client, label_of(Outcome, e.m_outcome)
    if not has(state, "sessions"):
        no_session(e)
        step("drop_request", r=r, c=c, s=e.m_request, y=why)
        return
    with when(all_of(e.m_request != 0, e.m_session != 0)):
        step("drop_request", r=r, c=c, x=e.m_session, s=e.m_request, y=why)
    with when(all_of(e.m_request != 0, e.m_session == 0)):
        of_no_session(state, e, DROPPED)
    check(e.m_incarnation, where(e.m_request != 0, 0, e.m_incarnation))
    check(e.m_session, where(e.m_request != 0, e.m_session, 0))
    with when(e.m_request == 0):
        step("drop_register", r=r, c=c, n=e.m_incarnation, y=why)


def of_no_session(state: Any, e: Any, among: tuple[Outcome, ...]) -> None:
    """A request that names no session: clients of the specification send none, but any client may. Nothing changes, and
    the outcome is the specification's.
    """
    by_normal_primary(state, e)
    why = label_of(Outcome, e.m_outcome)
    found = sessions.outcome(state, e.node, e.m_client, e.m_session, e.m_request)
    holds(
        all_of(is_one_of(why, among), found == why), "this is not what becomes of a request of no session", e.m_outcome
    )


@event(only=with_part("sessions"), needs="client_sessions")
def send_eviction(state: Any, e: Any) -> None:
    """A client was told that it has no session, or an older one."""
    check(e.m_incarnation, 0)
    why = label_of(Outcome, e.m_outcome)
    with when(e.m_session != 0):
        step("send_eviction", r=e.node, c=e.m_client, x=e.m_session, s=e.m_request, y=why)
    with when(e.m_session == 0):
        of_no_session(state, e, EVICTING)


@event(only=with_part("withdrawal"), needs="feature_rounds")
def ask_features(state: Any, e: Any) -> None:
    """The primary asks all members which features they support."""
    inferred(e.m_view, state.view[e.node])
    check(e.m_view, state.view[e.node])
    check(e.m_round, state.rounds_asked[e.m_view] + 1)
    step(withdrawal.ask_features, r=e.node)


@event(sends="supports", only=with_part("withdrawal"), needs="feature_rounds")
def say_features(state: Any, e: Any) -> None:
    """A backup answers that round."""
    message_is(e, "supports")
    inferred(e.m_view, state.view[e.node])
    check(e.m_view, state.view[e.node])
    check(e.m_features, mask_of(state.supports, e.node))
    received(state.rounds_asked[e.m_view], e.m_round)
    with each(between(Feature, 1, FEATURE_MAX)) as f, when(bit(e.m_features, f)):
        step(withdrawal.say_feature, r=e.node, k=e.m_round, f=f)


@event(receives="supports", only=with_part("control"), needs="supports")
def on_features(state: Any, e: Any) -> None:
    """Learned which features a member supports."""
    if has(state, "withdrawal"):
        message_is(e, "supports")
        inferred(e.m_view, state.view[e.node])
        check(e.m_view, state.view[e.node])
        by_normal_primary(state, e)
        with each(between(Feature, 1, FEATURE_MAX)) as f, when(bit(e.m_features, f)):
            received(state.said[e.m_view, e.m_round, e.m_from, f], sent=True)
    else:
        with each(between(Feature, 1, FEATURE_MAX)) as f, when(bit(e.m_features, f)):
            received(state.supports[e.m_from, f], sent=True)


@event(sends="prepare", only=with_part("control"), needs="supports")
def propose_feature(state: Any, e: Any) -> None:
    """The primary has prepared a control entry."""
    message_is(e, "request")
    inferred(e.m_view, state.view[e.node])
    inferred(e.m_op, state.op[e.node] + 1)
    inferred(e.m_checksum, e.head)
    check(e.m_client, 0)
    check(e.m_request, 0)
    for column in (e.m_session, e.m_incarnation):
        check(column, 0, if_shown=not has(state, "sessions"))
    check(e.m_view, state.view[e.node])
    check(e.m_op, state.op[e.node] + 1)
    check(e.m_commit, state.commit_max[e.node])
    step(control.propose_feature, r=e.node, f=e.m_feature)
    named(e.m_checksum, state.entry[e.node, e.m_op], e.m_op)
    named(e.m_parent, state.prepare[e.m_view, e.m_op].parent, e.m_op - 1)


@event(only=with_part("checkpoints"), needs="checkpoint_interval")
def checkpoint(state: Any, e: Any) -> None:
    """The snapshot at m_op is durable and the journal is drained up to it."""
    check(e.m_op, state.commit_min[e.node])
    step("take_checkpoint", r=e.node)


@event(receives="prepare", only=with_part("fence"), needs="client_slots")
def drop_prepare(state: Any, e: Any) -> None:
    """A prepare was dropped as old: executed here."""
    inferred(e.m_view, state.view[e.node])
    message_is(e, "prepare")
    check(e.m_view, state.view[e.node])
    received(state.prepare[e.m_view, e.m_op].client)
    if has(state, "control"):
        received(state.prepare[e.m_view, e.m_op].feature)
    step(fence.drop_prepare, r=e.node, o=e.m_op)


@event(only=with_part("discard"), needs="ring")
def nack(state: Any, e: Any) -> None:
    """A prepare asked for is not here; m_log_view is the view that prepared it. Said again in its view it is no step;
    in view 0 there is nothing to say it of.
    """
    inferred(e.m_view, state.view[e.node])
    message_is(e, "nack")
    check(e.m_view, state.view[e.node])
    with when(any_of(e.m_view == 0, e.m_view > state.nack[e.node, e.m_log_view, e.m_op])):
        step(discard.nack, r=e.node, o=e.m_op, w=e.m_log_view)
    named(e.m_checksum, some(e.m_log_view), e.m_op)


@event(only=with_part("append_failure"), needs="client_slots")
def append_failed(state: Any, e: Any) -> None:
    """The append of the prepares from m_op on failed; they are not in the log."""
    step(append_failure.append_failed, r=e.node, o=e.m_op)


EVENTS = (
    drop_request,
    send_eviction,
    ask_features,
    say_features,
    on_features,
    propose_feature,
    checkpoint,
    drop_prepare,
    nack,
    append_failed,
)
