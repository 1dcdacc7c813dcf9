"""Recovery by nonce (VR Revisited §4.3; seed 002): a replica that restarts asks the others for the view and the log.

The promise of a do_view_change is kept over the crash: `durable_view` is a view that the replica took part in, and it
comes back in no earlier one (Michael et al. 2017). Of the log it keeps what its journal holds, and a slot that it finds
broken there counts as acknowledged. An empty journal is no sign of a first start: a primary may have sent prepares that
it did not write. Only the initial state is normal without recovery.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import (
    NONE,
    Schema,
    action,
    all_of,
    any_of,
    between,
    count,
    exists,
    forall,
    maximum,
    require,
    some,
    tagged,
    up_to,
    value_of,
    where,
    within,
)
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core.restart import load_state
from viewproof.spec.vsr.core.state import ENTRY, NORMAL, RECOVERING, Op, Replica, Restart, Rot, View, primary
from viewproof.spec.vsr.parts.recovery.storage import copied
from viewproof.spec.vsr.parts.repair.state import set_log


def declare(s: Schema, cfg: Config) -> None:
    """Declare nonces and answers. A nonce is the number of the crash: no two are equal."""
    sender = lambda nonce, replica, *_: replica  # noqa: E731
    s.state("nonce", (Replica,), up_to(Restart), doc="nonce of its recovery; 0 = it never crashed")
    s.state("wiped", (Replica,), doc="it lost its journal and has not recovered yet")
    s.register("answer_view", (Restart, Replica), ENTRY, sender=sender, doc="recovery_response: 1 + view; 0 = none")
    s.register("answer_op", (Restart, Replica), up_to(Op), sender=sender, doc="recovery_response: op")
    s.register("answer_commit", (Restart, Replica), up_to(Op), sender=sender, doc="recovery_response: commit_max")
    s.register("answer_entry", (Restart, Replica, Op), ENTRY, sender=sender, doc="recovery_response: headers")
    s.ghost("dvc_reworked", (View, Replica), doc="was the log offered one merged for a view that did not start?")


@tagged("crash")
@action(r=Replica)
def restart(state: Any, r: Any) -> None:
    """A replica crashes and asks all others for view and log, with a new nonce; it keeps what its journal holds."""
    crash(state, r, wiped=state.cfg.repair.diskless)


@tagged("crash", "fault")
@action(r=Replica)
def replace_disk(state: Any, r: Any) -> None:
    """A replica crashes and comes back with an empty journal, of which there are copies elsewhere; it is told so."""
    require(within(Rot, state.rots + 1))
    require(exists(between(Op, 1, state.op[r]), lambda o: state.body[r, o] != NONE))
    require(
        forall(between(Op, 1, state.op[r]), lambda o: any_of(state.body[r, o] == NONE, lambda: copied(state, r, o)))
    )
    crash(state, r, wiped=True)
    state.rots = state.rots + 1


def crash(state: Any, r: Any, *, wiped: bool) -> None:
    """Guard and effects of a crash: what was in memory is gone, and the journal too if it is wiped."""
    require(within(Restart, state.restarts + 1))
    log = between(Op, 1, state.op[r])
    state.restarts = state.restarts + 1
    state.nonce[r] = state.restarts + 1
    state.status[r] = RECOVERING
    state.view[r] = 0
    state.log_view[r] = 0
    state.merged[r] = NONE
    state.commit_min[r] = 0
    state.commit_max[r] = 0
    load_state(state, r)
    state.memory.update((r, log), lambda o: NONE)
    if wiped:
        state.wiped[r] = True
        state.body.update((r, log), lambda o: NONE)
        state.faulty.update((r, log), lambda o: False)
    state.entry.update((r, log), lambda o: NONE if wiped else state.body[r, o])
    state.written.update((r, log), lambda o: False if wiped else state.body[r, o] != NONE)


@tagged("recovery")
@action(r=Replica, x=Restart)
def answer_recovery(state: Any, r: Any, x: Any) -> None:
    """A normal replica answers the recovery message of nonce x with view, op, commit_max and headers (seed 002).

    A later answer stands in for an earlier one: it is never older in (view, op, commit).
    """
    require(state.status[r] == NORMAL)
    require(exists(Replica, lambda q: all_of(q != r, state.nonce[q] == x, state.status[q] == RECOVERING)))
    require(
        any_of(
            state.answer_view[x, r] != some(state.view[r]),
            state.answer_op[x, r] != state.op[r],
            state.answer_commit[x, r] != state.commit_max[r],
        )
    )
    state.answer_view[x, r] = some(state.view[r])
    state.answer_op[x, r] = state.op[r]
    state.answer_commit[x, r] = state.commit_max[r]
    state.answer_entry.update((x, r, between(Op, 1, state.op[r])), lambda o: state.entry[r, o])


@tagged("recovery")
@action(r=Replica, p=Replica)
def recover(state: Any, r: Any, p: Any) -> None:
    """With answers to its nonce from a view-change quorum of others, among them p, the primary of the highest view
    answered, a replica becomes its backup: p's op and headers; repair follows (seed 002).
    """
    x = state.nonce[r]
    require_primary(state, r, x, p)
    v = value_of(state.received(r).answer_view[x, p])
    require(is_newest(state, r, x, v))
    require(v >= state.durable_view[r])
    become_backup(state, r, x, p)


def require_primary(state: Any, r: Any, x: Any, p: Any) -> None:
    """Recovering r has a quorum of answers to nonce x, one of them from p as the primary of its own view."""
    received = state.received(r)
    require(state.status[r] == RECOVERING)
    require(p != r)
    require(received.answer_view[x, p] != NONE)
    require(primary(state, value_of(received.answer_view[x, p])) == p)
    require(answers(state, r, x) >= state.cfg.quorum_view_change)


def answers(state: Any, r: Any, x: Any) -> Any:
    """From how many others did r receive an answer to nonce x?"""
    return count(Replica, lambda q: all_of(q != r, state.received(r).answer_view[x, q] != NONE))


def is_newest(state: Any, r: Any, x: Any, v: Any) -> Any:
    """Is v the highest view in the answers to nonce x that r received?"""
    return some(v) == maximum(Replica, lambda q: state.received(r).answer_view[x, q])


def become_backup(state: Any, r: Any, x: Any, p: Any, *, keeps: Any = True) -> None:
    """Take view, op, commit_max and headers of p's answer to nonce x.

    Of a journal that was lost, every slot up to op may have held an acknowledged prepare: all are faulty. `keeps`: the
    faulty slots stay so.
    """
    received = state.received(r)
    v = value_of(received.answer_view[x, p])
    n = received.answer_op[x, p]
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    state.durable_view[r] = v
    state.commit_max[r] = received.answer_commit[x, p]

    def header(o: Any) -> Any:
        sent = received.answer_entry[x, p, o]
        return where(sent == NONE, state.entry[r, o], sent)

    set_log(state, r, 1, n, header, lost=state.wiped[r], keeps=keeps)
    state.wiped[r] = False
