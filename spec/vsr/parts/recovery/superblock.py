"""Recovery from the superblock (TigerBeetle, later): view and log_view are durable before anything says so.

A replica moves in memory first; `update_superblock` makes view, log_view and the headers of its log durable and sends
what waited for that. With the view of a view change it fixes the do_view_change: the same one is sent again after a
crash, and in later views as long as log_view stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    BLANK,
    NONE,
    Bool,
    Cells,
    Message,
    Sent,
    State,
    action,
    all_of,
    any_of,
    as_index,
    between,
    count,
    each,
    exists,
    field,
    forall,
    largest,
    maximum,
    message,
    not_,
    only_if,
    require,
    some,
    tagged,
    unsent,
    variable,
    where,
    within,
)
from viewproof.spec.vsr.core.restart import load_state
from viewproof.spec.vsr.core.state import (
    NORMAL,
    RECOVERING,
    VIEW_CHANGE,
    Entry,
    Length,
    Op,
    Replica,
    Restart,
    StartView,
    View,
    by_replica,
    primary,
)
from viewproof.spec.vsr.parts.repair.nacks import quorum_nack
from viewproof.spec.vsr.parts.repair.state import BitMessages, BitsOffered, WithBits, leading, set_headers, set_log
from viewproof.spec.vsr.parts.repair.view_change import install_headers, is_repaired


class AnsweredStartView(Message):
    """A primary answers the request_start_view of a replica that is unsure of its head."""

    view: Entry = field("1 + view; 0 = none", marks=True)
    op: Op = field("op")


class Unsure(State):
    """What a replica that is unsure of its head asks for."""

    nonce: Cells[Replica, Restart] = variable("nonce of its request_start_view; 0 = it never crashed")
    head_limit: Cells[Replica, Op] = variable("highest op that it may have acknowledged, if unsure of its head")


class AnsweredMessages(BitMessages):
    """Start_views for a nonce."""

    told: Sent[tuple[Restart, Replica], AnsweredStartView] = message(
        by_replica, to="who asks", title="start_view for a nonce"
    )


class BySuperblock(Unsure, AnsweredMessages, WithBits):
    """The state with recovery by superblock."""

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> AnsweredMessages:
            """The messages that a replica has received."""


def asks_first(s: BySuperblock) -> bool:
    """No start_view_change is sent: the do_view_change stands for it."""
    return False


@action
def start_view_change(state: BySuperblock, r: Replica, v: View) -> None:
    """A replica enters a later view in memory: on timeout, or one that another's superblock has (exit_view, join_view,
    ping).
    """
    require(within(View, v))
    require(state.status[r] != RECOVERING)
    require(v > state.view[r])
    require(any_of(v == state.view[r] + 1, exists(Replica, lambda q: state.durable_view[q] >= v)))
    state.view[r] = v
    state.status[r] = VIEW_CHANGE


@action
def update_superblock(state: BySuperblock, r: Replica) -> None:
    """View and log_view become durable, and with them the headers of the log: do_view_change goes out while log_view
    is below view; a view whose log was merged here is decided (view_durable_update).
    """
    v, x = state.view[r], state.log_view[r]
    require(any_of(state.durable_view[r] != v, state.durable_log_view[r] != x))
    offers = all_of(x < v, state.durable_view[r] != v)
    decides = all_of(primary(state, x) == r, state.durable_log_view[r] != x)
    state.durable_view[r] = v
    state.durable_log_view[r] = x
    offer(state, r, v, offers)
    log = each(between(Op, 1, state.op[r]), lambda o: state.entry[r, o])
    state.sv[x] = unsent(only_if(decides, StartView(op=state.op[r], entry=log)))


def offer(state: BySuperblock, r: Replica, v: View, offers: Bool) -> None:
    """Fill and send the do_view_change of r for view v: log and log_view of the last one if that offered the same
    log_view, else of its journal; what r holds of it, as it is now.
    """
    u = state.durable_view[r]
    again = all_of(state.durable_log_view[r] == state.log_view[r], state.durable_log_view[r] < u)
    op = where(again, state.dvc[u, r].op, state.op[r])
    ops = between(Op, 1, op)

    def entry(o: Op) -> Entry:
        return where(again, state.dvc[u, r].entry[o], state.entry[r, o])

    message = BitsOffered(
        log_view=state.log_view[r],
        op=op,
        commit=where(again, state.dvc[u, r].commit, state.commit_min[r]),
        low=as_index(Op, 1),
        entry=each(ops, entry),
        nack=each(ops, lambda o: never_had(state, r, o, entry(o))),
        present=each(ops, lambda o: holds(state, r, o, entry(o))),
    )
    state.dvc[v, r] = only_if(offers, message)


def never_had(state: BySuperblock, r: Replica, o: Op, entry: Entry) -> Bool:
    """Did r never acknowledge that entry at o (0: any): its journal does not hold it, and lost nothing there? A prepare
    in the journal whose header is in no log of r's may be one that it acknowledged.
    """
    return all_of(
        not_(state.faulty[r, o]), where(entry == NONE, state.body[r, o] == NONE, lambda: state.body[r, o] != entry)
    )


def holds(state: BySuperblock, r: Replica, o: Op, entry: Entry) -> Bool:
    """Does r hold the prepare that an entry at o names?"""
    return all_of(entry != NONE, any_of(state.body[r, o] == entry, state.memory[r, o] == entry))


@action
def merge(state: BySuperblock, r: Replica, b: Replica, n: Length) -> None:
    """The new primary makes one log of a quorum of do_view_changes: the headers of those with the highest log_view,
    b's, up to op n, before the first that q_n nack; above the commit point, each has a copy somewhere. log_view is
    the new view, in memory (Iggy, later: the merge).
    """
    require_quorum(state, r, b)
    require_decision(state, r, state.view[r], b, n, is_kept)
    take_decision(state, r, state.view[r], b, n)


def require_quorum(state: WithBits, r: Replica, b: Replica) -> None:
    """New primary r has a quorum of do_view_changes, its own among them, with no log_view above b's; it merged none
    yet.
    """
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(primary(state, v) == r)
    require(state.merged[r] != some(v))
    require(state.log_view[r] < v)
    require(received.dvc[v, r].sent)
    require(received.dvc[v, b].sent)
    require(count(Replica, lambda q: counted(received, v, q, b)) >= state.cfg.quorum_view_change)


def require_decision(
    state: WithBits,
    r: Replica,
    v: View,
    b: Replica,
    n: Op,
    stays: Callable[[WithBits, BitMessages, View, Replica, Op], Bool],
) -> None:
    """The do_view_changes decide that the log ends at n: up to there every op above the commit point `stays`, and n is
    the last op, or the next is nacked.
    """
    received = state.received(r)
    last = maximum(Replica, lambda q: where(is_canonical(received, v, q, b), received.dvc[v, q].op, 0))
    known = commit_point(received, v, b)
    require(n >= known)
    require(n <= last)
    require(forall(between(Op, known + 1, n), lambda o: stays(state, received, v, b, o)))
    require(any_of(n == last, lambda: is_nacked(state, received, v, b, n + 1)))


def commit_point(received: BitMessages, v: View, b: Replica) -> Op:
    """Largest commit number in the do_view_changes that count with b's."""
    return maximum(Replica, lambda q: where(counted(received, v, q, b), received.dvc[v, q].commit, 0))


def take_decision(state: WithBits, r: Replica, v: View, b: Replica, n: Op) -> None:
    """The canonical headers up to n are r's log, and the new view its log_view, in memory."""
    received = state.received(r)

    def header(o: Op) -> Entry:
        sent = canonical_header(received, v, b, o)
        return where(sent == NONE, state.entry[r, o], sent)

    set_log(state, r, state.commit_min[r] + 1, n, header)
    state.commit_max[r] = largest(state.commit_max[r], commit_point(received, v, b))
    state.log_view[r] = v
    state.merged[r] = some(v)


def counted(received: BitMessages, v: View, q: Replica, b: Replica) -> Bool:
    """Was q's do_view_change received, with a log_view not above b's?"""
    return all_of(received.dvc[v, q].sent, received.dvc[v, q].log_view <= received.dvc[v, b].log_view)


def is_canonical(received: BitMessages, v: View, q: Replica, b: Replica) -> Bool:
    """Was q's do_view_change received, with b's log_view?"""
    return all_of(received.dvc[v, q].sent, received.dvc[v, q].log_view == received.dvc[v, b].log_view)


def canonical_header(received: BitMessages, v: View, b: Replica, o: Op) -> Entry:
    """The header at o in the do_view_changes with b's log_view; 0 if none knows it."""
    return maximum(Replica, lambda q: where(is_canonical(received, v, q, b), received.dvc[v, q].entry[o], NONE))


def is_nacked(state: WithBits, received: BitMessages, v: View, b: Replica, o: Op) -> Bool:
    """Do q_n do_view_changes say that their sender never had the canonical prepare at o: its op is below o, its nack
    bit is set, or it names another one? One that does not cover o says nothing.
    """
    entry = canonical_header(received, v, b, o)
    nacks = count(
        Replica,
        lambda q: all_of(
            counted(received, v, q, b),
            any_of(
                received.dvc[v, q].op < o,
                received.dvc[v, q].nack[o],
                all_of(received.dvc[v, q].entry[o] != NONE, received.dvc[v, q].entry[o] != entry),
            ),
        ),
    )
    return nacks >= quorum_nack(state.cfg)


def is_kept(state: WithBits, received: BitMessages, v: View, b: Replica, o: Op) -> Bool:
    """Does op o stay: its header is known, no nack quorum has spoken against it, and a copy of it is somewhere?"""
    return all_of(
        canonical_header(received, v, b, o) != NONE,
        not_(is_nacked(state, received, v, b, o)),
        is_present(received, v, b, o),
    )


def is_present(received: BitMessages, v: View, b: Replica, o: Op) -> Bool:
    """Does a sender of a do_view_change hold the canonical prepare at o?"""
    entry = canonical_header(received, v, b, o)
    return exists(
        Replica,
        lambda q: all_of(
            counted(received, v, q, b), received.dvc[v, q].entry[o] == entry, received.dvc[v, q].present[o]
        ),
    )


@action
def send_start_view(state: BySuperblock, r: Replica) -> None:
    """The new primary sends start_view once the merged log is durable in its superblock."""
    v = state.view[r]
    require(primary(state, v) == r)
    require(state.merged[r] == some(v))
    require(state.durable_log_view[r] == v)
    require(not_(state.sv[v].sent))
    state.sv[v] = StartView(op=BLANK, entry=BLANK)  # they were decided with log_view (`update_superblock`)
    state.commit_sent[v] = state.commit_max[r]


@action
def start_view(state: BySuperblock, r: Replica) -> None:
    """The new primary is normal once its headers are connected and their prepares in its journal."""
    require(leading(state, r))
    require(is_repaired(state, r))
    state.status[r] = NORMAL


@action
def on_start_view(state: BySuperblock, r: Replica, v: View, n: Length) -> None:
    """A backup takes the headers of a started view up to op n as its log, in memory.

    One that is unsure of its head takes only a start_view that says what may be above it: of a later view, up to the
    highest op it may have acknowledged, or sent in answer to its nonce.
    """
    if_sure = all_of(v == state.view[r], any_of(state.status[r] == VIEW_CHANGE, n > state.op[r]))
    if_unsure = all_of(state.status[r] == RECOVERING, lambda: tells_head(state, r, v, n))
    require(any_of(v > state.view[r], all_of(state.status[r] != RECOVERING, if_sure), if_unsure))
    require_sent(state, r, v, n)
    install_headers(state, r, v, n, top=state.head_limit[r])
    state.head_limit[r] = 0


def require_sent(state: BySuperblock, r: Replica, v: View, n: Op) -> None:
    """Backup r received a start_view of view v with a log up to op n."""
    received = state.received(r)
    require(primary(state, v) != r)
    require(any_of(v == 0, received.sv[v].sent))
    require(n >= received.sv[v].op)
    require(forall(between(Op, received.sv[v].op + 1, n), lambda o: received.prepare[v, o].sent))


def tells_head(state: BySuperblock, r: Replica, v: View, n: Op) -> Bool:
    """Does a start_view of r's own view up to op n leave nothing open about r's head: it reaches the highest op that r
    may have acknowledged, or answers r's nonce?
    """
    x, p = state.nonce[r], primary(state, v)
    received = state.received(r)
    return all_of(
        v == state.view[r],
        any_of(n >= state.head_limit[r], all_of(received.told[x, p].view == some(v), n >= received.told[x, p].op)),
    )


@tagged("recovery")
@action
def answer_request_start_view(state: BySuperblock, r: Replica, x: Restart) -> None:
    """A normal primary answers the request_start_view of a replica that is unsure of its head, with its nonce x."""
    v = state.view[r]
    require(state.status[r] == NORMAL)
    require(primary(state, v) == r)
    require(any_of(v == 0, state.sv[v].sent))
    require(exists(Replica, lambda q: all_of(state.nonce[q] == x, state.status[q] == RECOVERING)))
    require(any_of(state.told[x, r].view != some(v), state.told[x, r].op != state.op[r]))
    state.told[x, r] = AnsweredStartView(view=some(v), op=state.op[r])


@tagged("crash")
@action
def restart(state: BySuperblock, r: Replica) -> None:
    """A replica crashes and recovers view and log_view from its superblock, and its log from there and its journal.

    With log_view below view it goes on with the view change, by the do_view_change that it sent. Else a broken slot
    above its log makes it unsure of its head; if it is sure, a backup is normal, and a primary waits for the next view.
    """
    require(within(Restart, state.restarts + 1))
    v, x = state.durable_view[r], state.durable_log_view[r]
    known = where(x < v, state.dvc[v, r].op, state.sv[x].op)
    log = between(Op, 1, largest(state.op[r], state.head_limit[r], known))
    n = maximum(log, lambda o: where(recovered(state, r, v, x, o) != NONE, o, 0))
    limit = maximum(log, lambda o: where(all_of(o > n, state.faulty[r, o]), o, 0))
    state.restarts = state.restarts + 1
    state.nonce[r] = state.restarts + 1
    state.view[r] = v
    state.log_view[r] = x
    knows_head = any_of(x < v, limit == 0)
    leads = any_of(x < v, primary(state, v) == r)
    state.status[r] = where(knows_head, where(leads, VIEW_CHANGE, NORMAL), RECOVERING)
    state.head_limit[r] = where(x < v, 0, limit)
    state.merged[r] = NONE
    state.commit_min[r] = 0
    state.commit_max[r] = 0
    load_state(state, r)
    state.memory.update((r, between(Op, 1, state.op[r])), lambda o: NONE)
    set_headers(state, r, log, lambda o: recovered(state, r, v, x, o))
    state.op[r] = n


def recovered(state: BySuperblock, r: Replica, v: View, x: View, o: Op) -> Entry:
    """The header at o after a crash: what the superblock says, and above that what view x prepared and the journal
    holds; 0 for none.
    """
    from_journal = where(state.body[r, o] == some(x), some(x), NONE)
    return where(
        x < v,
        state.dvc[v, r].entry[o],
        lambda: where(o <= state.sv[x].op, lambda: state.sv[x].entry[o], from_journal),
    )
