"""What the lines of the July 2026 logs stand for, third part: journal, view change, repair, the cluster's summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from viewproof.refinement.events import call, check, event, holds, let, of_row, owed, owes, step, text_of, when
from viewproof.refinement.tigerbeetle.said import (
    ANOTHER,
    NO_PARENT,
    either,
    flag,
    leading,
    prepare,
    prepare_at,
    said_role,
    set_cells,
    shows,
    shows_message,
    written,
)
from viewproof.spec.lang import all_of, any_of, not_
from viewproof.spec.vsr.tigerbeetle import follow_2026, node_2026, normal_2026, view_2026
from viewproof.spec.vsr.tigerbeetle.headers import is_named
from viewproof.spec.vsr.tigerbeetle.sorts import Count, Op
from viewproof.spec.vsr.tigerbeetle.state_2026 import RECOVERING, Status, slot_of

_HEADER: Final = ("set_header", "header_apart")
PUT: Final = 2
"""In place of a flag of a repair: the header is put by the step before."""


def here(state: Any, e: Any) -> Any:
    """Header in the slot of the line's op."""
    return state.header[e.node, slot_of(e.op)]


# --- journal ---------------------------------------------------------------------------------------------------------


@event()
def set_header(state: Any, e: Any) -> None:
    """A header is put into its slot."""
    was_owed, d, o = owed(Op, Op, must=False)
    made = prepare_at(state, e)
    with when(all_of(was_owed == 1, d == PUT)):
        is_there = all_of(here(state, e) == made, state.dirty[e.node, slot_of(e.op)])
        holds(is_there, "another header was to be put here", e.checksum)
    with when(all_of(was_owed == 1, d != PUT)):
        check(e.op, o)
        step(follow_2026.repair_header, r=e.node, o=e.op, e=made, d=d)
    starts = let(state.status[e.node] == RECOVERING)
    with when(all_of(was_owed == 0, starts)):
        step(node_2026.put_listed_header, r=e.node, o=e.op, e=made)
    with when(all_of(was_owed == 0, not_(starts))):
        step(view_2026.replace_header, r=e.node, o=e.op, e=made)


@event()
def remove_from(state: Any, e: Any) -> None:
    """The log is cut, for another one."""
    owes("merge_log", "install_log", values=(e.op,))


@event()
def write_start(state: Any, e: Any) -> None:
    """The write of a prepare starts."""
    made = written(state, e)
    check(e.slot, slot_of(e.op))
    step(node_2026.write_start, r=e.node, o=e.op, e=made)


@event()
def write_header(state: Any, e: Any) -> None:
    """Its body is down, its header is written next."""
    step(node_2026.write_body, r=e.node, o=e.op)


@event()
def write_done(state: Any, e: Any) -> None:
    """It is durable."""
    made = written(state, e)
    check(e.slot, slot_of(e.op))
    step(node_2026.write_done, r=e.node, o=e.op, e=made)


def given_up(state: Any, e: Any, body: int) -> None:
    """A write that does not count."""
    made = prepare_at(state, e)
    step(node_2026.write_given_up, r=e.node, o=e.op, e=made, b=body)


@event()
def write_moot(state: Any, e: Any) -> None:
    """The header changed while the body was being written."""
    given_up(state, e, 1)


@event()
def write_header_moot(state: Any, e: Any) -> None:
    """The header changed while it was being written."""
    given_up(state, e, 0)


# --- view change -----------------------------------------------------------------------------------------------------


def bits_set(bits: int) -> int:
    """How many bits are set."""
    return bits.bit_count()


def covers(row: Mapping[int, int], bits: int) -> int:
    """Is the cell of every bit that is set set? 1 or 0."""
    return int(all(row.get(place) for place in range(bits.bit_length()) if bits >> place & 1))


def counts_exit_view(state: Any, e: Any) -> None:
    """An exit_view is counted; the line shows who is."""
    check(e.view, state.view[e.node])
    step(normal_2026.resume, r=e.node)
    step(view_2026.on_exit_view, r=e.node, q=state.m_from[state.current[e.node]])
    counted = of_row(covers, state.exit_from, e.node, e.bits) == 1
    holds(counted, "it counts a replica that sent no exit_view of this view", e.bits)


@event()
def wait_exit_view(state: Any, e: Any) -> None:
    """Not enough replicas want to leave the view."""
    check(e.threshold, state.cfg.quorum_view_change)
    counts_exit_view(state, e)
    check(e.count, call(bits_set, e.bits))


@event()
def quorum_exit_view(state: Any, e: Any) -> None:
    """Enough replicas want to leave the view."""
    counts_exit_view(state, e)
    step(view_2026.exit_quorum, r=e.node, k=call(bits_set, e.bits, sort=Count))
    owes("start_view_change")


@event()
def start_view_change(state: Any, e: Any) -> None:
    """A replica enters a view."""
    owed(must=False)
    check(e.view_before, state.view[e.node])
    check(e.from_status, text_of(Status, state.status[e.node]))
    step(view_2026.start_view_change, r=e.node, v=e.view)
    with when(all_of(e.view > e.view_before, not_(state.view_pending[e.node]))):
        owes("ask_superblock")


def counts_join_view(state: Any, e: Any) -> None:
    """A vote is counted."""
    check(e.view, state.view[e.node])
    step(normal_2026.resume, r=e.node)
    step(view_2026.on_join_view, r=e.node, q=state.m_from[state.current[e.node]])


@event()
def wait_join_view(state: Any, e: Any) -> None:
    """Not enough votes to merge."""
    counts_join_view(state, e)


@event()
def quorum_join_view(state: Any, e: Any) -> None:
    """Enough votes to merge."""
    counts_join_view(state, e)
    owes("counted_join_view")


@event()
def counted_join_view(state: Any, e: Any) -> None:
    """A vote that is merged."""
    owed(must=False)
    m = let(state.join_of[e.node, e.sender])
    holds(m != 0, "no join_view of this replica is counted", e.sender)
    shows_message(state, e, m, "log_view", "op", "commit", "checkpoint")


@event()
def counted_header(state: Any, e: Any) -> None:
    """A header of a vote that is merged."""
    m = let(state.join_of[e.node, e.sender])
    carried = all_of(m != 0, state.m_low[m] <= e.op, e.op <= state.m_op[m])
    holds(carried, "this vote carries no header of this op", e.op)
    same = any_of(
        all_of(e.type == "valid", is_named(state, state.m_header[m, e.op], e.checksum)),
        all_of(e.type != "valid", state.m_header[m, e.op] == 0),
    )
    holds(same, "the vote carries another header", e.checksum)
    check(e.nack, flag(state.m_nack[m, e.op]))
    check(e.present, flag(state.m_present[m, e.op]))


@event()
def merge_log(state: Any, e: Any) -> None:
    """The primary takes the log of the votes."""
    _, lowest = owed(Op)
    holds(lowest == e.op + 1, "the log was cut at another op", e.op)
    shows(state, e, "view", op_before="op", commit_before="commit_max")
    step(view_2026.merge_log, r=e.node, h=e.op, k=e.commit)


@event()
def install_log(state: Any, e: Any) -> None:
    """A backup takes the log of a started view."""
    _, lowest = owed(Op)
    holds(lowest == e.op + 1, "the log was cut at another op", e.op)
    shows(state, e, op_before="op", commit_before="commit_max")
    step(follow_2026.install_log, r=e.node, h=e.op, k=e.commit)
    check(e.view, state.view[e.node])


@event()
def start_sync(state: Any, e: Any) -> None:
    """A replica jumps to a checkpoint."""
    check(e.checkpoint_before, state.checkpoint[e.node])
    step(follow_2026.start_sync, r=e.node)
    check(e.checkpoint, state.m_checkpoint[state.syncing[e.node]])


@event()
def sync_stage(state: Any, e: Any) -> None:
    """A jump goes on, or ends."""
    with when(e.stage == "idle"):
        step(follow_2026.end_sync, r=e.node)
    with when(e.stage == "updating_checkpoint"):
        step(normal_2026.forget_clients, r=e.node)


@event()
def start_view(state: Any, e: Any) -> None:
    """A replica is normal in a view."""
    either(leading(state, e), view_2026.start_view, follow_2026.follow_view, r=e.node)
    check(e.view, state.view[e.node])
    said_role(state, e, "primary", "backup")


@event()
def head_known(state: Any, e: Any) -> None:
    """A replica knows its head again."""
    step(follow_2026.follow_view, r=e.node)
    check(e.view, state.view[e.node])
    check(e.role, "backup")


@event()
def pipeline_entry(state: Any, e: Any) -> None:
    """A prepare of the pipeline of a new primary."""
    holds(is_named(state, here(state, e), e.checksum), ANOTHER, e.checksum)
    parent = state.p_parent[here(state, e)]
    holds(is_named(state, parent, e.parent), NO_PARENT, e.parent, rule="I10")


# --- repair ----------------------------------------------------------------------------------------------------------


@event()
def header_other(state: Any, e: Any) -> None:
    """A header that is not there is going to be put, or is not linked."""
    made = prepare(state, e.checksum)
    holds(here(state, e) != made, "this header is there", e.checksum)
    owes(*_HEADER, values=(0, e.op))


@event()
def header_dirty(state: Any, e: Any) -> None:
    """The same of one that is there, dirty."""
    made = prepare(state, e.checksum)
    holds(all_of(here(state, e) == made, state.dirty[e.node, slot_of(e.op)]), "it is not there, dirty", e.checksum)
    owes(*_HEADER, values=(1, e.op))


@event()
def header_clean(state: Any, e: Any) -> None:
    """A header is there already."""
    holds(here(state, e) == prepare(state, e.checksum), "this header is not there", e.checksum)


@event()
def header_apart(state: Any, e: Any) -> None:
    """A header is not linked to the log."""
    _, _, o = owed(Op, Op)
    check(e.op, o)


@event()
def header_advances(state: Any, e: Any) -> None:
    """A header above the head."""
    made = prepare(state, e.checksum)
    above = all_of(e.op > state.op[e.node], state.p_op[made] == e.op)
    holds(above, "it is not above the head", e.op)


@event()
def header_changes(state: Any, e: Any) -> None:
    """Another header at the head."""
    check(e.op, state.op[e.node])
    made = prepare(state, e.checksum)
    holds(state.p_op[made] == e.op, "the checksum is of another op", e.checksum)


@event()
def repair_break(state: Any, e: Any) -> None:
    """The log has a break."""
    shows(state, e, "view", "commit_min", "commit_max", "op")


@event()
def repair_writing(state: Any, e: Any) -> None:
    """A prepare to repair is being written."""
    made = prepare(state, e.checksum)
    holds(here(state, e) == made, ANOTHER, e.checksum)
    holds(state.writing[e.node, made], "it is not being written", e.checksum)


@event()
def drop_slot(state: Any, e: Any) -> None:
    """A slot that cannot be repaired is emptied."""
    step(node_2026.drop_slot, r=e.node, o=e.slot)


@event()
def observe(state: Any, e: Any) -> None:
    """The cluster's own summary of a replica."""
    owed(must=False)
    shows(state, e, "view", "checkpoint", "commit_min", "commit_max")
    check(e.dirty, of_row(set_cells, state.dirty, e.node))
    check(e.faulty, of_row(set_cells, state.faulty, e.node))
