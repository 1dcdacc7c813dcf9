"""Nack arithmetic: when an uncommitted prepare may be discarded (seed 002: the CTRL protocol during a view change).

A *nack* says that its sender never acknowledged a prepare and, having left the views in which it could, never will. A
prepare that q_n replicas nack cannot have a replication quorum, as q_n + q_r > n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Number,
    Truth,
    action,
    all_of,
    any_of,
    between,
    count,
    exists,
    maximum,
    not_,
    require,
    some,
    where,
)
from viewproof.spec.vsr.core.state import VIEW_CHANGE, Op, Replica, View, primary
from viewproof.spec.vsr.parts.repair.state import Repaired, RepairMessages, chained, leading

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def quorum_nack(cfg: Config) -> int:
    """q_n: so many replicas without a prepare that the others are no replication quorum."""
    return int(cfg.replicas - cfg.quorum_replication + 1)


def nacks_needed(state: Repaired, faulty: Truth) -> Number:
    """Nacks from others with which a new primary discards an op: it counts itself, unless its own copy is faulty."""
    return quorum_nack(state.cfg) - where(faulty, 0, 1)


@action
def nack(state: Repaired, r: Replica, o: Op, w: View) -> None:
    """During a view change a replica tells the new primary, which asked for the prepare (w, o), that it never had it.

    Silence where it has it, or where its slot is faulty: it may have acknowledged that (seed 002). A nack is a
    promise like a do_view_change: its sender takes part in no earlier view any more.
    """
    v, entry = state.view[r], some(w)
    require(state.status[r] == VIEW_CHANGE)
    require(primary(state, v) != r)
    require(w < v)
    require(state.prepare[w, o].sent)
    require(exists(Replica, lambda q: all_of(state.dvc[v, q].sent, state.dvc[v, q].entry[o] == entry)))
    require(not_(state.faulty[r, o]))
    require(state.body[r, o] != entry)
    require(not_(all_of(primary(state, w) == r, state.memory[r, o] == entry)))
    require(state.nack_sent[v, r, o] != entry)
    state.durable_view[r] = v
    state.nack_sent[v, r, o] = entry


@action
def discard(state: Repaired, r: Replica, o: Op) -> None:
    """A new primary discards an uncommitted op, and what follows it, that enough others nacked (seed 002:
    discard_uncommitted_headers for a gap, discard_uncommitted_ops_from for a dirty op).
    """
    discard_if(state, r, o, has_gap)


def discard_if(
    state: Repaired, r: Replica, o: Op, is_nacked: Callable[[RepairMessages, View, Replica, Op], Bool]
) -> None:
    """Guard and effects of a discard: a header that r does not know counts as nacked where `is_nacked` says so."""
    received = state.received(r)
    v, entry = state.view[r], state.entry[r, o]
    require(leading(state, r))
    require(o > state.commit_max[r])
    require(o <= state.op[r])
    require(not_(state.written[r, o]))
    require(any_of(entry == NONE, lambda: chained(state, r, state.commit_max[r] + 1, state.op[r])))
    others = count(
        Replica,
        lambda q: all_of(
            q != r,
            where(entry == NONE, lambda: is_nacked(received, v, q, o), lambda: received.nack_sent[v, q, o] == entry),
        ),
    )
    require(others >= nacks_needed(state, state.faulty[r, o]))
    gone = between(Op, o, state.op[r])
    state.entry.update((r, gone), lambda p: NONE)
    state.written.update((r, gone), lambda p: False)
    state.faulty.update((r, gone), lambda p: False)
    state.op[r] = o - 1


def has_gap(received: RepairMessages, v: View, q: Replica, o: Op) -> Bool:
    """Does q's do_view_change cover op o and name no header there? Below the lowest op that it covers it says nothing
    (seed 002).
    """
    return all_of(received.dvc[v, q].sent, o >= received.dvc[v, q].low, received.dvc[v, q].entry[o] == NONE)


def lowest_covered(state: Repaired, r: Replica) -> Op:
    """Lowest op that r's do_view_change covers: all above a faulty slot of which it knows no header, and no more
    headers than a message has room for.
    """
    unknown = maximum(
        between(Op, 1, state.op[r]),
        lambda o: where(all_of(state.faulty[r, o], state.entry[r, o] == NONE), o, 0),
    )
    room = state.cfg.repair.headers
    if not room:
        return unknown + 1
    return where(state.op[r] - room > unknown, state.op[r] - room, unknown) + 1
