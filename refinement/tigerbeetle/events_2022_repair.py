"""What the lines of the June 2022 logs stand for, fourth part: repair, nacks, the pipeline."""

from __future__ import annotations

from typing import Any, Final

from viewproof.refinement.events import check, event, holds, let, of_row, owed, owes, step, when
from viewproof.refinement.tigerbeetle.events_2022_log import held
from viewproof.refinement.tigerbeetle.said import (
    ANOTHER,
    NO_PARENT,
    flag,
    prepare,
    set_cells,
    shows,
    shows_message,
)
from viewproof.spec.lang import all_of, any_of, as_index, not_, number_of, where
from viewproof.spec.vsr.tigerbeetle import journal_2022, repair_2022
from viewproof.spec.vsr.tigerbeetle.headers import is_named
from viewproof.spec.vsr.tigerbeetle.sorts import Op

_HEADER: Final = ("set_header", "header_breaks")
_IN_PIPELINE: Final = "the pipeline has another prepare"


def _walks(state: Any, e: Any) -> Any:
    """A header that a message brought is looked at; what is in its slot."""
    step(repair_2022.walk_header, r=e.node, o=e.op)
    return state.entry[e.node, e.op]


def _repairs(state: Any, e: Any, reason: int) -> None:
    owes(*_HEADER, values=(reason, e.op))


@event()
def header_clean(state: Any, e: Any) -> None:
    """The slot is clean."""
    here = _walks(state, e)
    holds(all_of(here != 0, not_(state.dirty[e.node, e.op])), "the slot is not clean", e.op)


@event()
def header_gap(state: Any, e: Any) -> None:
    """The slot is empty."""
    here = _walks(state, e)
    holds(here == 0, "the slot is not empty", e.op)
    _repairs(state, e, repair_2022.GAP)


@event()
def header_dirty(state: Any, e: Any) -> None:
    """The header is there, dirty."""
    here = _walks(state, e)
    holds(all_of(here != 0, state.dirty[e.node, e.op]), "the slot is not dirty", e.op)
    _repairs(state, e, repair_2022.DIRTY)


@event()
def header_connects(state: Any, e: Any) -> None:
    """Another header is there; this one is linked to the head."""
    here = _walks(state, e)
    holds(here != 0, "the slot is empty", e.op)
    _repairs(state, e, repair_2022.CONNECTS)


@event()
def header_older(state: Any, e: Any) -> None:
    """An older one of the same view is there."""
    here = _walks(state, e)
    holds(here != 0, "the slot is empty", e.op)
    _repairs(state, e, repair_2022.OLDER)


@event()
def header_breaks(state: Any, e: Any) -> None:
    """The header would break the chain."""
    _, _, o = owed(Op, Op)
    check(e.op, o)


@event()
def header_exists(state: Any, e: Any) -> None:
    """Another header is there."""
    holds(_walks(state, e) != 0, "the slot is empty", e.op)


@event()
def header_newer(state: Any, e: Any) -> None:
    """A newer one of the same view is there."""
    holds(_walks(state, e) != 0, "the slot is empty", e.op)


@event()
def header_advances(state: Any, e: Any) -> None:
    """A header above the head."""
    check(e.op, state.op[e.node])
    step(repair_2022.walk_above, r=e.node)


@event()
def header_changes(state: Any, e: Any) -> None:
    """Another header at the head."""
    check(e.op, state.op[e.node])
    _walks(state, e)


@event()
def repair_break(state: Any, e: Any) -> None:
    """The log has a break."""
    shows(state, e, "view", "commit_min", "commit_max", "op")
    step(repair_2022.find_break, r=e.node, lo=e.low, hi=e.high)


@event()
def repair_behind(state: Any, e: Any) -> None:
    """The log ends below what is committed."""
    shows(state, e, "op", "commit_max")


def _named_here(state: Any, e: Any) -> None:
    holds(is_named(state, state.entry[e.node, e.op], e.checksum), ANOTHER, e.checksum)


def _why(state: Any, e: Any) -> None:
    faulty = state.faulty[e.node, e.op]
    so = any_of(all_of(faulty, e.reason == "faulty"), all_of(not_(faulty), e.reason == "dirty"))
    holds(so, "the slot is not what the line says", e.reason)


@event()
def repair_nackable(state: Any, e: Any) -> None:
    """An uncommitted prepare is missing: it is sent, or denied."""
    _named_here(state, e)
    _why(state, e)
    at_once = all_of(state.cfg.replicas == 2, e.reason == "dirty")
    with when(not_(at_once)):
        step(repair_2022.await_nacks, r=e.node, o=e.op)
    with when(at_once):
        owes("discard_ops")


@event()
def repair_prepare(state: Any, e: Any) -> None:
    """A prepare is missing."""
    _named_here(state, e)
    above = e.op > state.commit_max[e.node]
    so = any_of(all_of(above, e.nature == "uncommitted"), all_of(not_(above), e.nature == "committed"))
    holds(so, "it is not what the line says", e.nature)
    _why(state, e)
    holds(state.dirty[e.node, e.op], "the slot is clean", e.op)


@event()
def repair_from_pipeline(state: Any, e: Any) -> None:
    """It is in the pipeline."""
    here = state.entry[e.node, e.op]
    same = all_of(is_named(state, here, e.checksum), state.pipeline[e.node, e.op] == here)
    holds(same, _IN_PIPELINE, e.checksum)


@event()
def repair_writing(state: Any, e: Any) -> None:
    """It is being written."""
    made = prepare(state, e.checksum)
    holds(state.writing[e.node, e.op, made], "it is not being written", e.checksum)


@event()
def slot_unused(state: Any, e: Any) -> None:
    """A faulty slot above the head was never needed."""
    step(journal_2022.slot_unused, r=e.node, o=e.op)


@event()
def nack_answered(state: Any, e: Any) -> None:
    """The prepare that nacks were collected for arrived."""
    check(e.op, state.nack_op[e.node])
    step(repair_2022.stop_nacks, r=e.node)


def _any_or_named(state: Any, e: Any, held_here: Any) -> Any:
    return any_of(e.checksum == 0, is_named(state, held_here, e.checksum))


@event()
def answer_pipeline(state: Any, e: Any) -> None:
    """A prepare asked for is sent from the pipeline."""
    check(e.op, state.m_op[state.current[e.node]])
    here = state.pipeline[e.node, e.op]
    holds(here != 0, "nothing is at this op of the pipeline", e.op)
    holds(_any_or_named(state, e, here), _IN_PIPELINE, e.checksum)


@event()
def answer_reading(state: Any, e: Any) -> None:
    """A prepare asked for is read."""
    check(e.op, state.m_op[state.current[e.node]])
    here = state.body[e.node, e.op]
    holds(here != 0, "the slot holds no prepare", e.op)
    holds(_any_or_named(state, e, here), "the slot holds another prepare", e.checksum)


@event()
def answer_nack(state: Any, e: Any) -> None:
    """A prepare asked for is denied."""
    m = state.current[e.node]
    check(e.op, state.m_op[m])
    holds(is_named(state, state.m_prepare[m], e.checksum), "another prepare was asked for", e.checksum)
    owes("send", values=(0,))


@event()
def answer_read(state: Any, e: Any) -> None:
    """A prepare asked for was read."""
    made = prepare(state, e.checksum)
    holds(state.p_op[made] == e.op, "the checksum is of another op", e.checksum)


@event()
def no_headers(state: Any, e: Any) -> None:
    """There are no headers of the ops asked for."""
    m = state.current[e.node]
    shows_message(state, e, m, low="commit", high="op")
    holds(of_row(held, state.entry, e.node, e.low, e.high) == 0, "there are headers of these ops", e.low)


@event()
def count_nack(state: Any, e: Any) -> None:
    """A nack is counted."""
    step(repair_2022.on_nack, r=e.node, q=state.m_from[state.current[e.node]])
    check(e.count, of_row(set_cells, state.nack_from, e.node))


@event()
def nack_threshold(state: Any, e: Any) -> None:
    """How many nacks are needed."""
    check(e.quorum_replication, state.cfg.quorum_replication)
    check(e.op, state.nack_op[e.node])
    check(e.threshold, repair_2022.nacks_needed(state, e.node, e.op))


@event()
def quorum_nack(state: Any, e: Any) -> None:
    """Enough nacks."""
    step(repair_2022.nack_quorum, r=e.node, o=e.op)
    owes("discard_ops")


def _kept(state: Any, e: Any) -> None:
    """How many prepares are in the pipeline."""
    size = number_of(state.pipeline_hi[e.node]) - number_of(state.pipeline_lo[e.node]) + 1
    check(e.count, where(size > 0, size, 0))


@event()
def pipeline_diff(state: Any, e: Any) -> None:
    """The pipeline is cut to what the log has."""
    step(repair_2022.pipeline_diff, r=e.node)
    _kept(state, e)
    with when(e.count > 0):
        owes("pipeline_entry", values=(state.pipeline_lo[e.node], 0))


@event()
def pipeline_reset(state: Any, e: Any) -> None:
    """The same in the first builds."""
    step(repair_2022.pipeline_reset, r=e.node, k=as_index(Op, e.count))
    _kept(state, e)


@event()
def pipeline_entry(state: Any, e: Any) -> None:
    """A prepare of the pipeline, at the start of a view, or after it was cut."""
    was_owed, o, start = owed(Op, Op, must=False)
    at_start = let(any_of(was_owed == 0, start == 1))
    check(e.op, where(was_owed == 1, o, state.pipeline_lo[e.node]))
    more = let(e.op < state.pipeline_hi[e.node])
    with when(more):
        owes("pipeline_entry", values=(e.op + 1, flag(at_start)))
    with when(all_of(not_(more), at_start)):
        owes("copy_headers", "start_view")
    here = let(state.pipeline[e.node, e.op])
    holds(is_named(state, here, e.checksum), "the pipeline has another prepare at this op", e.checksum)
    holds(is_named(state, state.p_parent[here], e.parent), NO_PARENT, e.parent, rule="I10")
    within = all_of(state.pipeline_lo[e.node] <= e.op, e.op <= state.pipeline_hi[e.node])
    holds(within, "the pipeline has nothing at this op", e.op)


@event()
def pipeline_read(state: Any, e: Any) -> None:
    """A prepare is read for the pipeline."""
    _named_here(state, e)


@event()
def pipeline_push(state: Any, e: Any) -> None:
    """A prepare is put into the pipeline."""
    made = prepare(state, e.checksum)
    step(repair_2022.pipeline_push, r=e.node, o=e.op, e=made)
