"""What the lines of the June 2022 logs stand for, third part: journal, view change, recovery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from viewproof.refinement.events import call, check, event, holds, let, of_row, owed, owes, step, when
from viewproof.refinement.tigerbeetle.said import (
    either,
    flag,
    leading,
    prepare_at,
    quotes_prepare,
    said_role,
    set_cells,
    shows,
    shows_message,
    written,
)
from viewproof.spec.lang import NONE, all_of, any_of, as_index, not_, smallest, value_of
from viewproof.spec.vsr.tigerbeetle import journal_2022, recovery_2022, repair_2022, view_2022
from viewproof.spec.vsr.tigerbeetle.headers import is_named
from viewproof.spec.vsr.tigerbeetle.sorts import Count, Op
from viewproof.spec.vsr.tigerbeetle.state_2022 import SECTOR, SLOTS

HEADER_BYTES: Final = 128
PREPARE_BYTES: Final = 1 << 20
SECTOR_BYTES: Final = 4096
PUT: Final = 4
"""In place of a reason of a repair: the header is put by the step before."""
NO_VOTE: Final = "no do_view_change of this replica is counted"

# --- journal ---------------------------------------------------------------------------------------------------------


@event()
def set_header(state: Any, e: Any) -> None:
    """A header is put into its slot."""
    was_owed, g, o = owed(Op, Op, must=False)
    made = prepare_at(state, e)
    recovers = let(all_of(was_owed == 0, not_(state.journal_ready[e.node])))
    root = let(all_of(was_owed == 0, not_(recovers), e.op == 0))
    with when(recovers):
        owes("recover_slot", values=(made,))
    with when(root):
        step(repair_2022.repair_root, r=e.node)
    known = any_of(was_owed == 1, recovers, root)
    holds(known, "no step puts a header into a slot here", e.op)
    with when(all_of(was_owed == 1, g != PUT)):
        check(e.op, o)
        step(repair_2022.repair_header, r=e.node, o=e.op, e=made, g=g)
    with when(all_of(was_owed == 1, g == PUT)):
        is_there = all_of(state.entry[e.node, e.op] == made, state.dirty[e.node, e.op])
        holds(is_there, "another header was to be put here", e.checksum)


@event()
def remove_from(state: Any, e: Any) -> None:
    """The log is cut."""
    _, o = owed(Op)
    check(e.op, o)


@event()
def remove_entry(state: Any, e: Any) -> None:
    """An entry that is cut off."""
    prepare_at(state, e)


@event()
def write_start(state: Any, e: Any) -> None:
    """The write of a prepare starts."""
    made = written(state, e)
    step(journal_2022.write_start, r=e.node, o=e.op, e=made)


def slot_at(offset: int) -> int:
    """The slot of the prepares ring at an offset of the journal."""
    return (offset - SLOTS * HEADER_BYTES) // PREPARE_BYTES


def sector_at(offset: int) -> int:
    """The first slot of the sector of the headers ring at an offset of the journal."""
    return offset // SECTOR_BYTES * SECTOR


@event()
def sectors_written(state: Any, e: Any) -> None:
    """Sectors are on disk: of a prepare, or of headers."""
    with when(e.offset >= SLOTS * HEADER_BYTES):
        step(journal_2022.write_body, r=e.node, o=call(slot_at, e.offset, sort=Op))
    with when(e.offset < SLOTS * HEADER_BYTES):
        step(journal_2022.write_headers_done, r=e.node, lo=call(sector_at, e.offset, sort=Op))


@event()
def write_header(state: Any, e: Any) -> None:
    """The sector of its header is going to be written."""
    step(journal_2022.write_headers_start, r=e.node, lo=e.op - e.op % SECTOR, o=e.op)


@event()
def write_done(state: Any, e: Any) -> None:
    """A prepare is durable."""
    made = written(state, e)
    step(journal_2022.write_done, r=e.node, o=e.op, e=made)


@event()
def write_moot(state: Any, e: Any) -> None:
    """A write that does not count."""
    made = written(state, e)
    step(journal_2022.write_given_up, r=e.node, o=e.op, e=made)


def held(row: Mapping[int, int], low: int, high: int) -> int:
    """How many cells from low to high are set."""
    found = 0
    for o in range(low, high + 1):
        if row.get(o):
            found += 1
    return found


@event()
def copy_headers(state: Any, e: Any) -> None:
    """Headers are copied for a message."""
    check(e.count, smallest(e.limit, of_row(held, state.entry, e.node, e.low, e.high)))


# --- view change -----------------------------------------------------------------------------------------------------


@event()
def start_view_change(state: Any, e: Any) -> None:
    """A replica enters a view."""
    check(e.view_before, state.view[e.node])
    step(view_2022.start_view_change, r=e.node, v=e.view)
    owes("send", values=(0,))


@event()
def count_start_view_change(state: Any, e: Any) -> None:
    """A start_view_change is counted."""
    step(view_2022.on_start_view_change, r=e.node, q=state.m_from[state.current[e.node]])
    check(e.count, of_row(set_cells, state.svc_from, e.node))
    with when(e.count == state.cfg.quorum_view_change - 1):
        owes("quorum_start_view_change")


@event()
def quorum_start_view_change(state: Any, e: Any) -> None:
    """Enough of them."""
    owed()
    check(e.view, state.view[e.node])
    step(view_2022.start_view_change_quorum, r=e.node)


@event()
def count_do_view_change(state: Any, e: Any) -> None:
    """A vote is counted."""
    step(view_2022.on_do_view_change, r=e.node, q=state.m_from[state.current[e.node]])
    check(e.count, of_row(set_cells, state.dvc_of, e.node))
    with when(e.count == state.cfg.quorum_view_change):
        owes("quorum_do_view_change")


@event()
def quorum_do_view_change(state: Any, e: Any) -> None:
    """Enough votes."""
    owed()
    check(e.view, state.view[e.node])
    step(view_2022.do_view_change_quorum, r=e.node)
    owes("counted_do_view_change")


@event()
def counted_do_view_change(state: Any, e: Any) -> None:
    """A vote that is merged."""
    owed(must=False)
    m = let(state.dvc_of[e.node, e.sender])
    holds(m != 0, NO_VOTE, e.sender)
    shows_message(state, e, m, "log_view", "op", "commit")
    latest = let(state.m_header[m, e.op])
    holds(is_named(state, latest, e.m_checksum), "the head of this vote is another prepare", e.m_checksum)
    quotes_prepare(state, e, latest)
    owes("counted_do_view_change", "merge_log")


def _takes_head(state: Any, e: Any, m: Any, message: str) -> Any:
    """The log gets the head of message m; is it there already?"""
    shows(state, e, op_before="op", commit_before="commit_max")
    check(e.op, state.m_op[m])
    holds(is_named(state, state.m_header[m, e.op], e.checksum), message, e.checksum)
    return let(state.entry[e.node, e.op] == state.m_header[m, e.op])


def _goes_on(e: Any, there: Any) -> None:
    with when(not_(there)):
        owes("set_header", values=(PUT, e.op))
    owes("remove_from", values=(e.op + 1,))


@event()
def merge_log(state: Any, e: Any) -> None:
    """The primary takes the log of the votes."""
    owed()
    check(e.view, state.view[e.node])
    b = let(view_2022.best_vote(state, e.node))
    m = let(state.dvc_of[e.node, b])
    there = _takes_head(state, e, m, "the head of the log with the highest (log_view, op) is another")
    step(view_2022.merge_log, r=e.node, b=b, k=e.commit)
    _goes_on(e, there)


@event()
def install_log(state: Any, e: Any) -> None:
    """A backup takes the log of a started view."""
    check(e.view, state.view[e.node])
    m = let(state.current[e.node])
    there = _takes_head(state, e, m, "another prepare is the head of the log of this start_view")
    check(e.commit, state.m_commit[m])
    step(view_2022.install_log, r=e.node)
    _goes_on(e, there)


@event()
def start_view(state: Any, e: Any) -> None:
    """A replica is normal in a view."""
    check(e.view, state.view[e.node])
    said_role(state, e, "leader", "follower")
    either(leading(state, e), view_2022.start_view, view_2022.follow_view, r=e.node)


@event()
def gap(state: Any, e: Any) -> None:
    """An op of the merged log has no header."""
    is_gap = all_of(state.entry[e.node, e.op] == 0, state.commit_max[e.node] < e.op, e.op <= state.op[e.node])
    holds(is_gap, "there is no gap at this op", e.op)
    owes("gap_nack", "discard_header")


@event()
def gap_nack(state: Any, e: Any) -> None:
    """What a vote says of the gap."""
    owed()
    m = let(state.dvc_of[e.node, e.sender])
    holds(m != 0, NO_VOTE, e.sender)
    check(e.nack, flag(view_2022.says_never(state, m, e.op)))
    owes("gap_nack", "discard_header")


@event()
def discard_header(state: Any, e: Any) -> None:
    """How many votes say that the op was never there; enough of them discard it."""
    owed()
    check(e.threshold, state.cfg.replicas - state.cfg.quorum_replication)
    step(view_2022.count_gap_nacks, r=e.node, o=e.op, k=as_index(Count, e.count))
    with when(e.count >= e.threshold):
        step(view_2022.discard_header, r=e.node, o=e.op)
        owes("remove_from", values=(e.op,))


@event()
def discard_ops(state: Any, e: Any) -> None:
    """An uncommitted tail is discarded."""
    shows(state, e, "view", op_head="op")
    step(repair_2022.discard_ops, r=e.node, o=e.op)
    owes("remove_from", values=(e.op,))


# --- recovery --------------------------------------------------------------------------------------------------------


@event()
def ask_recovery(state: Any, e: Any) -> None:
    """A replica asks the others for the state of the cluster."""
    step(recovery_2022.start_recovery, r=e.node, n=e.nonce)
    owes("send", values=(0,))


@event()
def answer_recovery(state: Any, e: Any) -> None:
    """A replica answers."""
    shows(state, e, "view", "op", commit="commit_max")
    check(e.nonce, state.m_nonce[state.current[e.node]])
    owes("copy_headers", "send", values=(0,))


def _shows_answer(state: Any, e: Any) -> Any:
    m = let(state.current[e.node])
    shows_message(state, e, m, sender="from", view="view", op="op", commit="commit")
    return m


@event()
def first_response(state: Any, e: Any) -> None:
    """The first answer of a replica."""
    holds(state.response_of[e.node, e.sender] == 0, "this replica has answered before", e.sender)
    _shows_answer(state, e)
    step(recovery_2022.on_answer, r=e.node, q=e.sender)


@event()
def later_response(state: Any, e: Any) -> None:
    """A further answer of a replica."""
    old = let(state.response_of[e.node, e.sender])
    holds(old != 0, "this replica has not answered before", e.sender)
    shows_message(state, e, old, view_before="view", op_before="op", commit_before="commit")
    m = _shows_answer(state, e)
    older = let(recovery_2022.older(state, m, old))
    with when(older):
        owes("older_response")
    with when(not_(older)):
        step(recovery_2022.on_answer, r=e.node, q=e.sender)


@event()
def older_response(state: Any, e: Any) -> None:
    """It is older than the one before."""
    owed()


@event()
def wait_responses(state: Any, e: Any) -> None:
    """Not enough answers."""
    check(e.count, of_row(set_cells, state.response_of, e.node))
    check(e.threshold, state.cfg.quorum_view_change)


@event()
def recover_log(state: Any, e: Any) -> None:
    """A replica takes the log that the primary answered with."""
    check(e.view, state.view[e.node])
    b = let(recovery_2022.best_answer(state, e.node))
    m = let(state.response_of[e.node, b])
    there = _takes_head(state, e, m, "another prepare is the head that the primary answered")
    check(e.commit, state.m_commit[m])
    step(recovery_2022.recover_log, r=e.node, b=b)
    _goes_on(e, there)


@event()
def responses_used(state: Any, e: Any) -> None:
    """The answers are used."""
    holds(state.recovers_from[e.node] != NONE, "no answers are at hand", e.count)
    m = let(state.response_of[e.node, value_of(state.recovers_from[e.node])])
    check(e.view, state.view[e.node])
    check(e.count, of_row(set_cells, state.response_of, e.node))
    shows_message(state, e, m, "low", high="op", commit="commit")
    unsure = of_row(set_cells, state.unsure, e.node)
    for column, cells in ((e.dirty, state.dirty), (e.faulty, state.faulty)):
        more = column - of_row(set_cells, cells, e.node)
        holds(all_of(more >= 0, more <= unsure), f"other slots are {column.name}", column)
    step(recovery_2022.answers_used, r=e.node)
