"""Recovery from the superblock (TigerBeetle, later): view and log_view are durable before anything says so.

A replica moves in memory first; `update_superblock` makes view, log_view and the headers of its log durable and sends
what waited for that. With the view of a view change it fixes the do_view_change: the same one is sent again after a
crash, and in later views as long as log_view stays.
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
    largest,
    maximum,
    not_,
    require,
    some,
    tagged,
    up_to,
    where,
    within,
)
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core.restart import load_state
from viewproof.spec.vsr.core.state import (
    ENTRY,
    NORMAL,
    RECOVERING,
    VIEW_CHANGE,
    Length,
    Op,
    Replica,
    Restart,
    View,
    is_prepared,
    primary,
)
from viewproof.spec.vsr.parts.repair.nacks import quorum_nack
from viewproof.spec.vsr.parts.repair.state import declare_bits, leading, set_headers, set_log
from viewproof.spec.vsr.parts.repair.view_change import install_headers, is_repaired


def declare(s: Schema, cfg: Config) -> None:
    """Declare the bits of a do_view_change, and what a replica that is unsure of its head asks for."""
    second = lambda *index: index[1]  # noqa: E731
    declare_bits(s)
    s.state("nonce", (Replica,), up_to(Restart), doc="nonce of its request_start_view; 0 = it never crashed")
    s.state("head_limit", (Replica,), up_to(Op), doc="highest op that it may have acknowledged, if unsure of its head")
    s.register("told_view", (Restart, Replica), ENTRY, sender=second, doc="start_view for a nonce: 1 + view; 0 = none")
    s.register("told_op", (Restart, Replica), up_to(Op), sender=second, doc="start_view for a nonce: op")


def asks_first(s: Any) -> bool:
    """No start_view_change is sent: the do_view_change stands for it."""
    return False


@action(r=Replica, v=View)
def start_view_change(state: Any, r: Any, v: Any) -> None:
    """A replica enters a later view in memory: on timeout, or one that another's superblock has (exit_view, join_view,
    ping).
    """
    require(within(View, v))
    require(state.status[r] != RECOVERING)
    require(v > state.view[r])
    require(any_of(v == state.view[r] + 1, exists(Replica, lambda q: state.durable_view[q] >= v)))
    state.view[r] = v
    state.status[r] = VIEW_CHANGE


@action(r=Replica)
def update_superblock(state: Any, r: Any) -> None:
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
    state.sv_op[x] = where(decides, state.op[r], state.sv_op[x])
    state.sv_entry.update(
        (x, between(Op, 1, state.op[r])), lambda o: where(decides, state.entry[r, o], state.sv_entry[x, o])
    )


def offer(state: Any, r: Any, v: Any, offers: Any) -> None:
    """Fill and send the do_view_change of r for view v: log and log_view of the last one if that offered the same
    log_view, else of its journal; what r holds of it, as it is now.
    """
    u = state.durable_view[r]
    again = all_of(state.durable_log_view[r] == state.log_view[r], state.durable_log_view[r] < u)
    op = where(again, state.dvc_op[u, r], state.op[r])
    ops = between(Op, 1, op)

    def entry(o: Any) -> Any:
        return where(again, state.dvc_entry[u, r, o], state.entry[r, o])

    def kept(old: Any, new: Any) -> Any:
        return where(offers, new, old)

    state.dvc[v, r] = any_of(offers, state.dvc[v, r])
    state.dvc_log_view[v, r] = kept(state.dvc_log_view[v, r], state.log_view[r])
    state.dvc_op[v, r] = kept(state.dvc_op[v, r], op)
    state.dvc_commit[v, r] = kept(state.dvc_commit[v, r], where(again, state.dvc_commit[u, r], state.commit_min[r]))
    state.dvc_low[v, r] = kept(state.dvc_low[v, r], 1)
    state.dvc_entry.update((v, r, ops), lambda o: kept(state.dvc_entry[v, r, o], entry(o)))
    state.dvc_nack.update((v, r, ops), lambda o: kept(state.dvc_nack[v, r, o], never_had(state, r, o, entry(o))))
    state.dvc_present.update((v, r, ops), lambda o: kept(state.dvc_present[v, r, o], holds(state, r, o, entry(o))))


def never_had(state: Any, r: Any, o: Any, entry: Any) -> Any:
    """Did r never acknowledge that entry at o (0: any): its journal does not hold it, and lost nothing there? A prepare
    in the journal whose header is in no log of r's may be one that it acknowledged.
    """
    return all_of(
        not_(state.faulty[r, o]), where(entry == NONE, state.body[r, o] == NONE, lambda: state.body[r, o] != entry)
    )


def holds(state: Any, r: Any, o: Any, entry: Any) -> Any:
    """Does r hold the prepare that an entry at o names?"""
    return all_of(entry != NONE, any_of(state.body[r, o] == entry, state.memory[r, o] == entry))


@action(r=Replica, b=Replica, n=Length)
def merge(state: Any, r: Any, b: Any, n: Any) -> None:
    """The new primary makes one log of a quorum of do_view_changes: the headers of those with the highest log_view,
    b's, up to op n, before the first that q_n nack; above the commit point, each has a copy somewhere. log_view is
    the new view, in memory (Iggy, later: the merge).
    """
    require_quorum(state, r, b)
    require_decision(state, r, state.view[r], b, n, is_kept)
    take_decision(state, r, state.view[r], b, n)


def require_quorum(state: Any, r: Any, b: Any) -> None:
    """New primary r has a quorum of do_view_changes, its own among them, with no log_view above b's; it merged none
    yet.
    """
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(primary(state, v) == r)
    require(state.merged[r] != some(v))
    require(state.log_view[r] < v)
    require(received.dvc[v, r])
    require(received.dvc[v, b])
    require(count(Replica, lambda q: counted(received, v, q, b)) >= state.cfg.quorum_view_change)


def require_decision(state: Any, r: Any, v: Any, b: Any, n: Any, stays: Any) -> None:
    """The do_view_changes decide that the log ends at n: up to there every op above the commit point `stays`, and n is
    the last op, or the next is nacked.
    """
    received = state.received(r)
    last = maximum(Replica, lambda q: where(is_canonical(received, v, q, b), received.dvc_op[v, q], 0))
    known = commit_point(received, v, b)
    require(n >= known)
    require(n <= last)
    require(forall(between(Op, known + 1, n), lambda o: stays(state, received, v, b, o)))
    require(any_of(n == last, lambda: is_nacked(state, received, v, b, n + 1)))


def commit_point(received: Any, v: Any, b: Any) -> Any:
    """Largest commit number in the do_view_changes that count with b's."""
    return maximum(Replica, lambda q: where(counted(received, v, q, b), received.dvc_commit[v, q], 0))


def take_decision(state: Any, r: Any, v: Any, b: Any, n: Any) -> None:
    """The canonical headers up to n are r's log, and the new view its log_view, in memory."""
    received = state.received(r)

    def header(o: Any) -> Any:
        sent = canonical_header(received, v, b, o)
        return where(sent == NONE, state.entry[r, o], sent)

    set_log(state, r, state.commit_min[r] + 1, n, header)
    state.commit_max[r] = largest(state.commit_max[r], commit_point(received, v, b))
    state.log_view[r] = v
    state.merged[r] = some(v)


def counted(received: Any, v: Any, q: Any, b: Any) -> Any:
    """Was q's do_view_change received, with a log_view not above b's?"""
    return all_of(received.dvc[v, q], received.dvc_log_view[v, q] <= received.dvc_log_view[v, b])


def is_canonical(received: Any, v: Any, q: Any, b: Any) -> Any:
    """Was q's do_view_change received, with b's log_view?"""
    return all_of(received.dvc[v, q], received.dvc_log_view[v, q] == received.dvc_log_view[v, b])


def canonical_header(received: Any, v: Any, b: Any, o: Any) -> Any:
    """The header at o in the do_view_changes with b's log_view; 0 if none knows it."""
    return maximum(Replica, lambda q: where(is_canonical(received, v, q, b), received.dvc_entry[v, q, o], NONE))


def is_nacked(state: Any, received: Any, v: Any, b: Any, o: Any) -> Any:
    """Do q_n do_view_changes say that their sender never had the canonical prepare at o: its op is below o, its nack
    bit is set, or it names another one? One that does not cover o says nothing.
    """
    entry = canonical_header(received, v, b, o)
    nacks = count(
        Replica,
        lambda q: all_of(
            counted(received, v, q, b),
            any_of(
                received.dvc_op[v, q] < o,
                received.dvc_nack[v, q, o],
                all_of(received.dvc_entry[v, q, o] != NONE, received.dvc_entry[v, q, o] != entry),
            ),
        ),
    )
    return nacks >= quorum_nack(state.cfg)


def is_kept(state: Any, received: Any, v: Any, b: Any, o: Any) -> Any:
    """Does op o stay: its header is known, no nack quorum has spoken against it, and a copy of it is somewhere?"""
    return all_of(
        canonical_header(received, v, b, o) != NONE,
        not_(is_nacked(state, received, v, b, o)),
        is_present(received, v, b, o),
    )


def is_present(received: Any, v: Any, b: Any, o: Any) -> Any:
    """Does a sender of a do_view_change hold the canonical prepare at o?"""
    entry = canonical_header(received, v, b, o)
    return exists(
        Replica,
        lambda q: all_of(
            counted(received, v, q, b), received.dvc_entry[v, q, o] == entry, received.dvc_present[v, q, o]
        ),
    )


@action(r=Replica)
def send_start_view(state: Any, r: Any) -> None:
    """The new primary sends start_view once the merged log is durable in its superblock."""
    v = state.view[r]
    require(primary(state, v) == r)
    require(state.merged[r] == some(v))
    require(state.durable_log_view[r] == v)
    require(not_(state.sv[v]))
    state.sv[v] = True
    state.commit_sent[v] = state.commit_max[r]


@action(r=Replica)
def start_view(state: Any, r: Any) -> None:
    """The new primary is normal once its headers are connected and their prepares in its journal."""
    require(leading(state, r))
    require(is_repaired(state, r))
    state.status[r] = NORMAL


@action(r=Replica, v=View, n=Length)
def on_start_view(state: Any, r: Any, v: Any, n: Any) -> None:
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


def require_sent(state: Any, r: Any, v: Any, n: Any) -> None:
    """Backup r received a start_view of view v with a log up to op n."""
    received = state.received(r)
    require(primary(state, v) != r)
    require(any_of(v == 0, received.sv[v]))
    require(n >= received.sv_op[v])
    require(forall(between(Op, received.sv_op[v] + 1, n), lambda o: is_prepared(state, v, o, received)))


def tells_head(state: Any, r: Any, v: Any, n: Any) -> Any:
    """Does a start_view of r's own view up to op n leave nothing open about r's head: it reaches the highest op that r
    may have acknowledged, or answers r's nonce?
    """
    x, p = state.nonce[r], primary(state, v)
    received = state.received(r)
    return all_of(
        v == state.view[r],
        any_of(n >= state.head_limit[r], all_of(received.told_view[x, p] == some(v), n >= received.told_op[x, p])),
    )


@tagged("recovery")
@action(r=Replica, x=Restart)
def answer_request_start_view(state: Any, r: Any, x: Any) -> None:
    """A normal primary answers the request_start_view of a replica that is unsure of its head, with its nonce x."""
    v = state.view[r]
    require(state.status[r] == NORMAL)
    require(primary(state, v) == r)
    require(any_of(v == 0, state.sv[v]))
    require(exists(Replica, lambda q: all_of(state.nonce[q] == x, state.status[q] == RECOVERING)))
    require(any_of(state.told_view[x, r] != some(v), state.told_op[x, r] != state.op[r]))
    state.told_view[x, r] = some(v)
    state.told_op[x, r] = state.op[r]


@tagged("crash")
@action(r=Replica)
def restart(state: Any, r: Any) -> None:
    """A replica crashes and recovers view and log_view from its superblock, and its log from there and its journal.

    With log_view below view it goes on with the view change, by the do_view_change that it sent. Else a broken slot
    above its log makes it unsure of its head; if it is sure, a backup is normal, and a primary waits for the next view.
    """
    require(within(Restart, state.restarts + 1))
    v, x = state.durable_view[r], state.durable_log_view[r]
    known = where(x < v, state.dvc_op[v, r], state.sv_op[x])
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


def recovered(state: Any, r: Any, v: Any, x: Any, o: Any) -> Any:
    """The header at o after a crash: what the superblock says, and above that what view x prepared and the journal
    holds; 0 for none.
    """
    from_journal = where(state.body[r, o] == some(x), some(x), NONE)
    return where(
        x < v,
        state.dvc_entry[v, r, o],
        lambda: where(o <= state.sv_op[x], lambda: state.sv_entry[x, o], from_journal),
    )
