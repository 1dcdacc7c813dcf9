"""Recovery by nonce (VR Revisited §4.3; seed 002): a replica that restarts asks the others for the view and the log.

The promise of a do_view_change is kept over the crash: `durable_view` is a view that the replica took part in, and it
comes back in no earlier one (Michael et al. 2017). Of the log it keeps what its journal holds, and a slot that it finds
broken there counts as acknowledged. An empty journal is no sign of a first start: a primary may have sent prepares that
it did not write. Only the initial state is normal without recovery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Cells,
    Message,
    Number,
    Sent,
    State,
    Truth,
    action,
    all_of,
    any_of,
    between,
    count,
    each,
    exists,
    field,
    forall,
    ghost,
    maximum,
    message,
    require,
    some,
    tagged,
    value_of,
    variable,
    where,
    within,
)
from viewproof.spec.vsr.core.restart import load_state
from viewproof.spec.vsr.core.state import (
    NORMAL,
    RECOVERING,
    Entry,
    Op,
    Replica,
    Restart,
    Rot,
    View,
    by_replica,
    primary,
)
from viewproof.spec.vsr.parts.recovery.storage import copied
from viewproof.spec.vsr.parts.repair.state import Repaired, RepairMessages, set_log


class RecoveryResponse(Message):
    """A normal replica answers one that recovers (VR Revisited §4.3, step 2); a nonce is the number of the crash."""

    view: Entry = field("1 + view; 0 = none", marks=True)
    op: Op = field("op")
    commit: Op = field("commit_max")
    entry: Cells[Op, Entry] = field("headers")


class Nonces(State):
    """Nonces. A nonce is the number of the crash: no two are equal."""

    nonce: Cells[Replica, Restart] = variable("nonce of its recovery; 0 = it never crashed")
    wiped: Cells[Replica, Bool] = variable("it lost its journal and has not recovered yet")


class Answers(RepairMessages):
    """Answers to nonces."""

    answer: Sent[tuple[Restart, Replica], RecoveryResponse] = message(by_replica, to="who recovers")


class Reworked(State):
    """What is remembered of logs that were offered."""

    dvc_reworked: Cells[tuple[View, Replica], Bool] = ghost(
        "was the log offered one merged for a view that did not start?"
    )


class Recovering(Nonces, Answers, Reworked, Repaired):
    """The state with recovery by nonce."""

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> Answers:
            """The messages that a replica has received."""


@tagged("crash")
@action
def restart(state: Recovering, r: Replica) -> None:
    """A replica crashes and asks all others for view and log, with a new nonce; it keeps what its journal holds."""
    crash(state, r, wiped=state.cfg.repair.diskless)


@tagged("crash", "fault")
@action
def replace_disk(state: Recovering, r: Replica) -> None:
    """A replica crashes and comes back with an empty journal, of which there are copies elsewhere; it is told so."""
    require(within(Rot, state.rots + 1))
    require(exists(between(Op, 1, state.op[r]), lambda o: state.body[r, o] != NONE))
    require(
        forall(between(Op, 1, state.op[r]), lambda o: any_of(state.body[r, o] == NONE, lambda: copied(state, r, o)))
    )
    crash(state, r, wiped=True)
    state.rots = state.rots + 1


def crash(state: Recovering, r: Replica, *, wiped: bool) -> None:
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
@action
def answer_recovery(state: Recovering, r: Replica, x: Restart) -> None:
    """A normal replica answers the recovery message of nonce x with view, op, commit_max and headers (seed 002).

    A later answer stands in for an earlier one: it is never older in (view, op, commit).
    """
    require(state.status[r] == NORMAL)
    require(exists(Replica, lambda q: all_of(q != r, state.nonce[q] == x, state.status[q] == RECOVERING)))
    require(
        any_of(
            state.answer[x, r].view != some(state.view[r]),
            state.answer[x, r].op != state.op[r],
            state.answer[x, r].commit != state.commit_max[r],
        )
    )
    state.answer[x, r] = RecoveryResponse(
        view=some(state.view[r]),
        op=state.op[r],
        commit=state.commit_max[r],
        entry=each(between(Op, 1, state.op[r]), lambda o: state.entry[r, o]),
    )


@tagged("recovery")
@action
def recover(state: Recovering, r: Replica, p: Replica) -> None:
    """With answers to its nonce from a view-change quorum of others, among them p, the primary of the highest view
    answered, a replica becomes its backup: p's op and headers; repair follows (seed 002).
    """
    x = state.nonce[r]
    require_primary(state, r, x, p)
    v = value_of(state.received(r).answer[x, p].view)
    require(is_newest(state, r, x, v))
    require(v >= state.durable_view[r])
    become_backup(state, r, x, p)


def require_primary(state: Recovering, r: Replica, x: Restart, p: Replica) -> None:
    """Recovering r has a quorum of answers to nonce x, one of them from p as the primary of its own view."""
    received = state.received(r)
    require(state.status[r] == RECOVERING)
    require(p != r)
    require(received.answer[x, p].view != NONE)
    require(primary(state, value_of(received.answer[x, p].view)) == p)
    require(answers(state, r, x) >= state.cfg.quorum_view_change)


def answers(state: Recovering, r: Replica, x: Restart) -> Number:
    """From how many others did r receive an answer to nonce x?"""
    return count(Replica, lambda q: all_of(q != r, state.received(r).answer[x, q].view != NONE))


def is_newest(state: Recovering, r: Replica, x: Restart, v: View) -> Bool:
    """Is v the highest view in the answers to nonce x that r received?"""
    return some(v) == maximum(Replica, lambda q: state.received(r).answer[x, q].view)


def become_backup(state: Recovering, r: Replica, x: Restart, p: Replica, *, keeps: Truth = True) -> None:
    """Take view, op, commit_max and headers of p's answer to nonce x.

    Of a journal that was lost, every slot up to op may have held an acknowledged prepare: all are faulty. `keeps`: the
    faulty slots stay so.
    """
    received = state.received(r)
    v = value_of(received.answer[x, p].view)
    n = received.answer[x, p].op
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    state.durable_view[r] = v
    state.commit_max[r] = received.answer[x, p].commit

    def header(o: Op) -> Entry:
        sent = received.answer[x, p].entry[o]
        return where(sent == NONE, state.entry[r, o], sent)

    set_log(state, r, 1, n, header, lost=state.wiped[r], keeps=keeps)
    state.wiped[r] = False
