"""Mistakes in Iggy's replication (docs/iggy.md): seven as the build has it, and others that it avoids."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    action,
    all_of,
    any_of,
    between,
    exists,
    forall,
    largest,
    maximum,
    not_,
    require,
    some,
    tagged,
    where,
)
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core import view_change as core
from viewproof.spec.vsr.core.state import (
    NORMAL,
    RECOVERING,
    VIEW_CHANGE,
    Entry,
    Length,
    Op,
    Replica,
    View,
    entry_of_view,
    primary,
)
from viewproof.spec.vsr.parts.iggy import restart, view_change
from viewproof.spec.vsr.parts.iggy.journal import replay
from viewproof.spec.vsr.parts.recovery import superblock
from viewproof.spec.vsr.parts.repair import view_change as repaired
from viewproof.spec.vsr.parts.repair.state import WithBits, leading
from viewproof.spec.vsr.stand_ins import Fault, beside, instead_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@action
def on_start_view_without_headers(state: WithBits, r: Replica, v: View, n: Length) -> None:
    """An answer to a probe, or to the heartbeat of an older view, has a head and no headers: what the journal has below
    is taken for the view's log [Iggy, later].
    """
    view_change.require_start_view(state, r, v, n)
    received = state.received(r)

    def believed(o: Op) -> Entry:
        return where(state.body[r, o] != NONE, state.body[r, o], entry_of_view(received, v, o))

    view_change.adopt(state, r, v, n, believed)


@action
def on_start_view_comparing_above_commit(state: WithBits, r: Replica, v: View, n: Length) -> None:
    """Of a start_view's headers only those above its commit number are compared: what the journal has at or below it is
    left there, and executed [Iggy, later].
    """
    view_change.require_start_view(state, r, v, n)
    received = state.received(r)
    known = maximum(Replica, lambda q: where(received.dvc[v, q].sent, received.dvc[v, q].commit, 0))

    def believed(o: Op) -> Entry:
        kept = all_of(o <= known, state.body[r, o] != NONE)
        return where(kept, state.body[r, o], entry_of_view(received, v, o))

    view_change.adopt(state, r, v, n, believed)


@action
def on_start_view_lowering_head(state: WithBits, r: Replica, v: View, n: Length) -> None:
    """A start_view of the replica's own view that is late, such as a second answer to its probe, lowers the head, and
    what is above it is dropped from the journal, if only it was not executed [Iggy, later].
    """
    core.require_started(state, r, v)
    require(v >= state.view[r])
    require(any_of(v != state.log_view[r], n >= state.commit_min[r]))
    core.require_log(state, r, v, n)
    received = state.received(r)
    view_change.adopt(state, r, v, n, lambda o: entry_of_view(received, v, o))


@tagged("crash")
@action
def restart_by_journal(state: WithBits, r: Replica, k: Length) -> None:
    """The headers of a view are kept in memory only: after a crash the log is what the journal holds, under a log_view
    that says more [Iggy, later].
    """
    restart.restart_knowing(state, r, k, lambda state, r, o: state.body[r, o])


@tagged("crash")
@action
def restart_without_journal(state: WithBits, r: Replica, k: Length) -> None:
    """The journal of a partition is in memory: after a crash it is empty, and the replica says of every op that it
    never had it [Iggy, later].
    """
    restart.restart_knowing(state, r, k, lambda state, r, o: NONE)


@tagged("recovery")
@action
def pass_over(state: WithBits, r: Replica) -> None:
    """A replica that comes back takes the largest commit number in its journal for its own, and passes over what its
    journal lacks below [Iggy, later].
    """
    o = state.commit_min[r] + 1
    require(state.status[r] == RECOVERING)
    require(o <= state.commit_max[r])
    require(not_(state.written[r, o]))
    require(exists(between(Op, o + 1, state.op[r]), lambda p: state.written[r, p]))
    state.commit_min[r] = o


@action
def start_view_over_hole(state: WithBits, r: Replica) -> None:
    """A view starts once the new primary holds the merged log from the commit point on: a hole below stays
    [Iggy, later].
    """
    v = state.view[r]
    n = state.sv[v].op
    low = state.commit_min[r] + 1

    def entry(o: Op) -> Entry:
        return state.sv[v].entry[o]

    require(leading(state, r))
    require(view_change.holds_merged(state, r, largest(state.commit_max[r], low)))
    core.enter_view(state, r, v, n)
    changed = between(Op, low, largest(n, state.op[r]))
    state.entry.update((r, changed), lambda o: where(o <= n, lambda: entry(o), NONE))
    state.written.update((r, changed), lambda o: all_of(o <= n, lambda: state.body[r, o] == entry(o)))
    state.ack.update((v, r, between(Op, state.commit_max[r] + 1, n)), entry)
    core.send_start_view(state, v, n, entry, state.commit_max[r])


@action
def execute_pipeline(state: WithBits, r: Replica) -> None:
    """A primary executes the head of its pipeline, whatever is missing below. When a view starts that is what is above
    the commit number, each with an acknowledgement of the primary's own [Iggy, later].
    """
    v, low = state.view[r], state.commit_min[r] + 1
    known = between(Op, low, state.commit_max[r])

    def missing(p: Op) -> Bool:
        return not_(any_of(state.written[r, p], state.memory[r, p] != NONE))

    def below_pipeline(p: Op) -> Bool:
        return forall(between(Op, low, p), lambda q: state.ack[v, r, q] == NONE)

    over_hole = all_of(primary(state, v) == r, exists(known, missing))
    head = maximum(known, lambda p: where(below_pipeline(p), p, 0))
    o = where(over_hole, head, state.commit_min[r]) + 1
    normal.require_ready(state, r, o)
    require(normal.is_request(state, state.entry[r, o], o))
    normal.require_table_slot(state, r, o)
    normal.execute_request(state, r, o, state.entry[r, o])


@action
def merge_one_offer(state: WithBits, r: Replica, b: Replica, n: Length) -> None:
    """The new primary decides the log on one do_view_change: b's, which holds all of it."""
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == VIEW_CHANGE)
    require(primary(state, v) == r)
    require(state.merged[r] != some(v))
    require(state.log_view[r] < v)
    require(received.dvc[v, b].sent)
    require(n == received.dvc[v, b].op)
    require(forall(between(Op, 1, n), lambda o: received.dvc[v, b].present[o]))
    view_change.take_decision(state, r, n, received.dvc[v, b].commit, lambda o: received.dvc[v, b].entry[o])


@action
def merge_cutting_at_first_nack(state: WithBits, r: Replica, b: Replica, n: Length) -> None:
    """The merged log ends before the first op that any one replica never had."""
    v = state.view[r]
    received = state.received(r)
    known = superblock.commit_point(received, v, b)
    last = maximum(Replica, lambda q: where(superblock.is_canonical(received, v, q, b), received.dvc[v, q].op, 0))

    def lacks(q: Replica) -> Bool:
        return all_of(superblock.counted(received, v, q, b), received.dvc[v, q].op <= n)

    superblock.require_quorum(state, r, b)
    require(n >= known)
    require(n <= last)
    require(forall(between(Op, 1, n), lambda o: superblock.canonical_header(received, v, b, o) != NONE))
    require(forall(between(Op, known + 1, n), lambda o: superblock.is_present(received, v, b, o)))
    require(view_change.no_conflict(received, v, b, n))
    require(any_of(n == last, exists(Replica, lacks)))
    view_change.take_decision(state, r, n, known, lambda o: superblock.canonical_header(received, v, b, o))


@action
def merge_raising_log_view(state: WithBits, r: Replica, b: Replica, n: Length) -> None:
    """log_view is that of the new view, durably, from the merge on, while the log is still the old one
    [Iggy, later].
    """
    view_change.merge.fn(state, r, b, n)
    state.log_view[r] = state.view[r]
    state.durable_log_view[r] = state.view[r]


@action
def on_start_view_acknowledging_all(state: WithBits, r: Replica, v: View, n: Length) -> None:
    """All ops of a start_view are acknowledged, also those whose bodies the journal lacks."""
    view_change.require_start_view(state, r, v, n)
    received = state.received(r)
    view_change.install_headers(state, r, v, n, lambda o: entry_of_view(received, v, o))
    state.ack.update((v, r, between(Op, state.commit_min[r] + 1, n)), lambda o: entry_of_view(received, v, o))


@action
def start_view_change_in_memory(state: WithBits, r: Replica, v: View) -> None:
    """start_view_change is sent before the view is durable."""
    require(any_of(v == state.view[r] + 1, state.status[r] != RECOVERING))
    repaired.start_view_change.fn(state, r, v)


@action
def commit_on_one(state: WithBits, r: Replica, o: Op) -> None:
    """A single acknowledgement makes a quorum."""
    v = state.view[r]
    require(state.status[r] == NORMAL)
    require(primary(state, v) == r)
    require(o == state.commit_max[r] + 1)
    require(o <= state.op[r])
    require(exists(Replica, lambda q: state.received(r).ack[v, q, o] == state.entry[r, o]))
    state.commit_max[r] = o
    state.commit_sent[v] = o


def _needs_probe(cfg: Config) -> str:
    if cfg.repair.recovery == "probe" and cfg.replicas > 1:
        return ""
    return "is a mistake of Iggy's replication; see the model iggy_views"


of_iggy = partial(Fault, refuses=_needs_probe)
FAULTS = (
    of_iggy(
        "iggy.answers_without_headers", (instead_of(view_change.on_start_view, act=on_start_view_without_headers),)
    ),
    of_iggy(
        "iggy.compares_above_commit", (instead_of(view_change.on_start_view, act=on_start_view_comparing_above_commit),)
    ),
    of_iggy(
        "iggy.start_view_lowers_head",
        (instead_of(view_change.on_start_view, act=on_start_view_lowering_head),),
        drops=("any_of(v > state.view[r], all_of(v == state.view[r], lambda: not_below(state, r, n)))",),
    ),
    of_iggy("iggy.headers_in_memory", (instead_of(restart.restart, act=restart_by_journal),)),
    of_iggy("iggy.journal_in_memory", (instead_of(restart.restart, act=restart_without_journal),)),
    of_iggy("iggy.replays_over_hole", comes_on_top=(beside(replay, pass_over),)),
    of_iggy(
        "iggy.starts_over_hole",
        (
            instead_of(view_change.start_view, act=start_view_over_hole),
            instead_of(normal.execute, act=execute_pipeline),
        ),
        drops=(
            "all_of(o <= state.op[r], lambda: state.written[r, o])",
            "has_room(state, r, o, state.entry[r, o])",
            "holds_merged(state, r, state.commit_min[r] + 1)",
            "o <= state.commit_max[r]",
        ),
    ),
    of_iggy(
        "iggy.merges_one_offer",
        (instead_of(view_change.merge, act=merge_one_offer),),
        drops=(
            "any_of(n == last, lambda: is_nacked(state, received, v, b, n + 1))",
            "count(Replica, lambda q: counted(received, v, q, b)) >= state.cfg.quorum_view_change",
            "forall(between(Op, 1, n), lambda o: header(o) != NONE)",
            "forall(between(Op, known + 1, n), lambda o: stays(state, received, v, b, o))",
            "n <= last",
            "n >= known",
            "no_conflict(received, v, b, n)",
            "received.dvc[v, r].sent",
        ),
    ),
    of_iggy(
        "iggy.cuts_at_first_nack",
        (instead_of(view_change.merge, act=merge_cutting_at_first_nack),),
        drops=(
            "any_of(n == last, lambda: is_nacked(state, received, v, b, n + 1))",
            "forall(between(Op, known + 1, n), lambda o: stays(state, received, v, b, o))",
        ),
    ),
    of_iggy("iggy.log_view_at_merge", (instead_of(view_change.merge, act=merge_raising_log_view),)),
    of_iggy("iggy.acknowledges_all", (instead_of(view_change.on_start_view, act=on_start_view_acknowledging_all),)),
    of_iggy("iggy.view_in_memory", (instead_of(view_change.start_view_change, act=start_view_change_in_memory),)),
    of_iggy(
        "iggy.commits_on_one",
        (instead_of(normal.commit, act=commit_on_one),),
        drops=("count(Replica, lambda q: received.ack[v, q, o] == state.entry[r, o]) >= state.cfg.quorum_replication",),
    ),
)
