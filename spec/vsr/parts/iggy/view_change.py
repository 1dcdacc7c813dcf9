"""Iggy's view changes: do_view_changes with nack and present bits, a merged log that is fetched before the view starts,
a head that backups adopt before they have the bodies below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    action,
    all_of,
    any_of,
    as_index,
    between,
    count,
    each,
    exists,
    forall,
    largest,
    not_,
    require,
    smallest,
    some,
    unsent,
    where,
)
from viewproof.spec.vsr.core import view_change as core
from viewproof.spec.vsr.core.state import (
    NORMAL,
    RECOVERING,
    VIEW_CHANGE,
    Entry,
    Length,
    Log,
    Op,
    Replica,
    StartView,
    View,
    entry_of_view,
    primary,
)
from viewproof.spec.vsr.parts.iggy.journal import cut_journal, forget_pipeline
from viewproof.spec.vsr.parts.recovery import superblock
from viewproof.spec.vsr.parts.repair.state import BitMessages, BitsOffered, WithBits, leading

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@action
def start_view_change(state: WithBits, r: Replica, v: View) -> None:
    """A replica enters a later view, durably: the next one (its primary is silent, or probes it, or its own probes
    stay unanswered), or one that another asks for; while it recovers, it hears no one.
    """
    require(any_of(v == state.view[r] + 1, state.status[r] != RECOVERING))
    core.start_view_change.fn(state, r, v)


def others_needed(cfg: Config) -> int:
    """f: so many others must have sent start_view_change. It decides when a do_view_change goes out; what is counted
    for the log are those.
    """
    return int((cfg.replicas - 1) // 2)


@action
def do_view_change(state: WithBits, r: Replica) -> None:
    """On start_view_changes of f others, or as the new primary on any do_view_change, a replica offers its log: per op
    the header, whether it never had it (nack), and whether its journal holds it (present).
    """
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(state.log_view[r] < v)
    require(not_(state.dvc[v, r].sent))
    asked = count(Replica, lambda q: all_of(q != r, received.svc[v, q])) >= others_needed(state.cfg)
    offered = exists(Replica, lambda q: all_of(q != r, received.dvc[v, q].sent))
    require(any_of(asked, all_of(primary(state, v) == r, offered)))
    offer_log(state, r, v)


def offer_log(state: WithBits, r: Replica, v: View) -> None:
    """Send do_view_change: log_view, op, commit_max as far as the log reaches, and the log with its bits.

    What its journal lacks, its own prepare on the way there included, it nacks; but of an entry that its view started
    with, and that it adopted without the body, it says neither that it has it nor that it never had it.
    """
    known = smallest(state.commit_max[r], state.op[r])
    ops = between(Op, 1, state.op[r])
    low = largest(known, state.sv[state.log_view[r]].op)
    state.dvc[v, r] = BitsOffered(
        log_view=state.log_view[r],
        op=state.op[r],
        commit=known,
        low=as_index(Op, 1),
        entry=each(ops, lambda o: state.entry[r, o]),
        nack=each(ops, lambda o: all_of(o > low, not_(state.written[r, o]))),
        present=each(ops, lambda o: state.written[r, o]),
    )


@action
def merge(state: WithBits, r: Replica, b: Replica, n: Length) -> None:
    """The new primary decides the log of its view, once, as `superblock.merge` does. It keeps its own log and its
    log_view until that one is in its journal; what differs from it there, and is not executed, is gone.
    """
    v = state.view[r]
    received = state.received(r)
    superblock.require_quorum(state, r, b)
    superblock.require_decision(state, r, v, b, n, superblock.is_kept)

    def header(o: Op) -> Entry:
        return superblock.canonical_header(received, v, b, o)

    require(forall(between(Op, 1, n), lambda o: header(o) != NONE))
    require(no_conflict(received, v, b, n))
    take_decision(state, r, n, superblock.commit_point(received, v, b), header)


def take_decision(state: WithBits, r: Replica, n: Op, known: Op, header: Log) -> None:
    """The log that new primary r decided for its view ends at n, and `known` ops of it are committed; r's own log, and
    its log_view, stay, but what differs from the merged one is cut from its journal.
    """
    v = state.view[r]
    state.merged[r] = some(v)
    state.commit_max[r] = largest(state.commit_max[r], known)
    state.sv[v] = unsent(StartView(op=n, entry=each(between(Op, 1, n), header)))
    cut_journal(state, r, state.commit_min[r] + 1, n, header)
    state.written.update(
        (r, between(Op, state.commit_min[r] + 1, state.op[r])),
        lambda o: all_of(o <= n, lambda: state.entry[r, o] == header(o), lambda: state.written[r, o]),
    )
    forget_pipeline(state, r)


def no_conflict(received: BitMessages, v: View, b: Replica, n: Op) -> Bool:
    """Do those with b's log_view name no two headers at any op up to n?"""
    return forall(
        between(Op, 1, n),
        lambda o: forall(
            Replica,
            lambda q: any_of(
                not_(superblock.is_canonical(received, v, q, b)),
                received.dvc[v, q].entry[o] == NONE,
                lambda: received.dvc[v, q].entry[o] == superblock.canonical_header(received, v, b, o),
            ),
        ),
    )


@action
def start_view(state: WithBits, r: Replica) -> None:
    """The new primary starts its view once its journal holds the merged log, all that it has not executed; log_view
    rises here, and its pipeline has an acknowledgement of its own for each op.
    """
    v = state.view[r]
    require(leading(state, r))
    require(holds_merged(state, r, state.commit_min[r] + 1))
    core.install_log(state, r, v, state.sv[v].op, lambda o: state.sv[v].entry[o])
    core.send_start_view(state, v, state.sv[v].op, lambda o: state.sv[v].entry[o], state.commit_max[r])


def holds_merged(state: WithBits, r: Replica, low: Op) -> Bool:
    """Does r's journal hold the merged log from that op on?"""
    v = state.view[r]
    return forall(between(Op, low, state.sv[v].op), lambda o: state.body[r, o] == state.sv[v].entry[o])


@action
def on_start_view(state: WithBits, r: Replica, v: View, n: Length) -> None:
    """A backup adopts the headers of a started view up to op n, which is that of start_view or, in an answer to a probe
    or a heartbeat of an older view, a later one. It acknowledges what its journal holds of them; view and log_view, and
    the headers that the view started with, are durable before.
    """
    require_start_view(state, r, v, n)
    received = state.received(r)
    adopt(state, r, v, n, lambda o: entry_of_view(received, v, o))


def require_start_view(state: WithBits, r: Replica, v: View, n: Op) -> None:
    """Backup r received a start_view of view v with a log up to op n, which does not end below what r may have
    acknowledged there.
    """
    core.require_started(state, r, v)
    require(any_of(v > state.view[r], all_of(v == state.view[r], lambda: not_below(state, r, n))))
    core.require_log(state, r, v, n)


def not_below(state: WithBits, r: Replica, n: Op) -> Bool:
    """Does n, the end of a log of r's view, leave nothing of that view's log that r has above it?"""
    return any_of(
        state.log_view[r] < state.view[r],
        where(state.status[r] == NORMAL, n > state.op[r], n >= state.op[r]),
    )


def adopt(state: WithBits, r: Replica, v: View, n: Op, header: Log) -> None:
    """These headers up to op n are the log of r, a normal backup of view v; it acknowledges what it holds of them."""
    install_headers(state, r, v, n, header)
    state.ack.update(
        (v, r, between(Op, state.commit_min[r] + 1, n)),
        lambda o: where(state.body[r, o] == header(o), header(o), state.ack[v, r, o]),
    )


def install_headers(state: WithBits, r: Replica, v: View, n: Op, header: Log) -> None:
    """These headers up to op n are the log of r, a normal backup of view v; its journal keeps what they name."""
    low = state.commit_min[r] + 1
    core.enter_view(state, r, v, n)
    changed = between(Op, low, largest(n, state.op[r]))
    state.entry.update((r, changed), lambda o: where(o <= n, lambda: header(o), NONE))
    state.written.update((r, changed), lambda o: all_of(o <= n, lambda: state.body[r, o] == header(o)))
    cut_journal(state, r, low, n, header)
    forget_pipeline(state, r)
