"""Mistakes in view changes over journals with gaps: what a view starts with, and whose acknowledgements count."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    action,
    all_of,
    between,
    count,
    each,
    exists,
    forall,
    largest,
    maximum,
    require,
    some,
    where,
)
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import NORMAL, RECOVERING, Entry, Length, Op, Replica, StartView, View, primary
from viewproof.spec.vsr.core.view_change import offered_by, require_start_view
from viewproof.spec.vsr.parts.repair import view_change as repaired
from viewproof.spec.vsr.parts.repair.state import Repaired, leading, set_headers, set_log
from viewproof.spec.vsr.parts.repair.view_change import is_repaired, require_merge
from viewproof.spec.vsr.stand_ins import Fault, instead_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@action
def commit_with_old_acks(state: Repaired, r: Replica, o: Op) -> None:
    """The primary counts acknowledgements of its entry from older views too, which it kept [seed 002]."""
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == NORMAL)
    require(primary(state, v) == r)
    require(o == state.commit_max[r] + 1)
    require(o <= state.op[r])
    acked = count(
        Replica,
        lambda q: exists(between(View, 0, v), lambda w: received.ack[w, q, o] == state.entry[r, o]),
    )
    require(acked >= state.cfg.quorum_replication)
    state.commit_max[r] = o
    state.commit_sent[v] = o


@action
def merge_up_to_hole(state: Repaired, r: Replica, b: Replica) -> None:
    """do_view_changes carry op and commit only; the new primary cuts its own log at the first op that it lacks
    [Iggy, later].
    """
    v = state.view[r]
    received = state.received(r)
    require_merge(state, r, b)
    n = maximum(
        between(Op, 1, state.op[r]),
        lambda o: where(forall(between(Op, 1, o), lambda p: state.written[r, p]), o, 0),
    )
    known = maximum(Replica, lambda q: where(offered_by(state, r, v, q, b), received.dvc[v, q].commit, 0))
    set_log(state, r, state.commit_min[r] + 1, n, lambda o: state.entry[r, o])
    state.commit_max[r] = largest(state.commit_max[r], known)
    state.merged[r] = some(v)


@action
def on_start_view_blind(state: Repaired, r: Replica, v: View, n: Length) -> None:
    """A backup sets op to that of start_view, without the entries [Iggy, later]."""
    require(state.status[r] != RECOVERING)
    require_start_view(state, r, v, n)
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    state.durable_view[r] = v
    set_log(state, r, state.commit_min[r] + 1, n, lambda o: state.entry[r, o])


@action
def start_view_with_stale_pipeline(state: Repaired, r: Replica) -> None:
    """The new primary proposes again what its pipeline holds, although the header there was repaired since
    [seed 002].
    """
    v = state.view[r]
    require(leading(state, r))
    require(is_repaired(state, r))

    def proposed(o: Op) -> Entry:
        stale = all_of(o > state.commit_max[r], state.memory[r, o] != NONE)
        return where(stale, state.memory[r, o], state.entry[r, o])

    log = between(Op, 1, state.op[r])
    state.status[r] = NORMAL
    state.log_view[r] = v
    state.durable_view[r] = v
    set_headers(state, r, log, proposed)
    state.sv[v] = StartView(op=state.op[r], entry=each(log, proposed))
    state.commit_sent[v] = state.commit_max[r]


def _needs_repair(cfg: Config) -> str:
    return "" if cfg.repair.recovery == "nonce" else "is a mistake of journals with gaps; see the model repair"


of_repair = partial(Fault, refuses=_needs_repair)
FAULTS = (
    of_repair(
        "view.acks_survive_view",
        (instead_of(normal.commit, act=commit_with_old_acks),),
        drops=("count(Replica, lambda q: received.ack[v, q, o] == state.entry[r, o]) >= state.cfg.quorum_replication",),
    ),
    of_repair("view.scalar_dvc_truncates_hole", (instead_of(repaired.merge, act=merge_up_to_hole),)),
    of_repair("view.blind_start_view_head", (instead_of(repaired.on_start_view, act=on_start_view_blind),)),
    of_repair("view.pipeline_after_repair", (instead_of(repaired.start_view, act=start_view_with_stale_pipeline),)),
)
