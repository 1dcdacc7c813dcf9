"""What lines stand for that mean the same in both families: the actions of these names are each family's own."""

from __future__ import annotations

from typing import Any

from viewproof.refinement.events import check, event, holds, let, owed, owes, step, when
from viewproof.refinement.tigerbeetle.said import prepare_at
from viewproof.spec.lang import as_index, not_
from viewproof.spec.vsr.tigerbeetle.headers import is_named
from viewproof.spec.vsr.tigerbeetle.sorts import Count


@event()
def count_prepare_ok(state: Any, e: Any) -> None:
    """The primary counts an acknowledgement."""
    m = let(state.current[e.node])
    acked = let(state.m_prepare[m])
    holds(not_(state.ok_from[e.node, state.p_op[acked], state.m_from[m]]), "it is counted already", e.count)
    step("on_prepare_ok", r=e.node, q=state.m_from[m], e=acked)
    step("prepare_oks", r=e.node, o=state.p_op[acked], k=as_index(Count, e.count))
    with when(e.count == state.cfg.quorum_replication):
        owes("quorum_prepare_ok")


@event()
def quorum_prepare_ok(state: Any, e: Any) -> None:
    """Enough replicas acknowledged a prepare."""
    owed()
    m = state.current[e.node]
    holds(is_named(state, state.m_prepare[m], e.checksum), "another prepare was acknowledged", e.checksum)
    step("prepare_quorum", r=e.node, o=state.m_op[m])


@event()
def rot(state: Any, e: Any) -> None:
    """A read finds a slot broken."""
    made = prepare_at(state, e)
    step("find_rot", r=e.node, o=e.op, e=made)


@event(aside=True)
def panic(state: Any, e: Any) -> None:
    """The process stopped itself."""
    check(e.what, "", rule="panic")
