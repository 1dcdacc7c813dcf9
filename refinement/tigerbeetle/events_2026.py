"""What the lines of the July 2026 logs stand for: steps of `spec.vsr.tigerbeetle.july_2026`."""

from __future__ import annotations

from typing import Any, Final

from viewproof.refinement.events import (
    call,
    check,
    configured,
    event,
    holds,
    let,
    of_row,
    owed,
    owes,
    owes_nothing,
    step,
    when,
)
from viewproof.refinement.tigerbeetle.said import (
    NO_PARENT,
    NOT_COMMITTED,
    either,
    flag,
    leading,
    new_reply_of,
    prepare,
    prepare_at,
    said_role,
    set_cells,
    shows,
    shows_operation,
)
from viewproof.spec.lang import NONE, all_of, any_of, not_, value_of, where
from viewproof.spec.vsr.tigerbeetle import headers, node_2026, normal_2026
from viewproof.spec.vsr.tigerbeetle.headers import is_named
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT, Op, Prepare
from viewproof.spec.vsr.tigerbeetle.state_2026 import EQL, FIX, NORMAL, RECOVERING, SLOTS, slot_of

_CASES: Final = {
    **dict.fromkeys("ABCKNO", ("vsr", "vsr")),
    **dict.fromkeys("DE", ("vsr", "fix")),
    **dict.fromkeys("FGM", ("fix", "fix")),
    **dict.fromkeys("HIJ", ("cut", "unr")),
    "L": ("nil", "nil"),
    "P": ("eql", "eql"),
    "TruncateTorn": ("cut_torn", "cut_torn"),
}
"""Label of a slot's recovery → decision with other replicas, alone."""
_DECISIONS: Final = ("nil", "eql", "fix", "vsr", "cut", "cut_torn")


def case_2026(label: str, decision: str, alone: int) -> int:
    """Is that the decision of that case? 1 or 0."""
    return int(decision == _CASES.get(label.removeprefix("@"), ("", ""))[1 if alone else 0])


def decision_2026(decision: str) -> int:
    """Its number."""
    return _DECISIONS.index(decision) if decision in _DECISIONS else len(_DECISIONS)


def alone(state: Any, e: Any) -> Any:
    """Is the node the replica of a cluster of one, and no standby of it?"""
    return all_of(state.cfg.replicas == 1, e.node < state.cfg.replicas)


# --- start -----------------------------------------------------------------------------------------------------------


@event()
def init(state: Any, e: Any) -> None:
    """A replica starts with its configuration."""
    configured(e.replicas, e.quorum_view_change, e.quorum_replication)
    holds(state.up[e.node], "it has no data file open", e.replicas)


@event()
def init_journal(state: Any, e: Any) -> None:
    """Its journal has so many slots."""
    check(e.slots, SLOTS)


@event(aside=True)
def crash(state: Any, e: Any) -> None:
    """A replica dies."""
    owes_nothing()
    step(node_2026.crash, r=e.node)


@event(name="format")
def format_(state: Any, e: Any) -> None:
    """A data file is made for a replica."""
    step(node_2026.format_disk, r=e.node, d=e.id)
    holds(e.view >= e.log_view, "log_view is above view", e.view)


@event(name="open", aside=True)
def open_(state: Any, e: Any) -> None:
    """A replica starts from its superblock."""
    holds(state.disk_of[e.id] != NONE, "no data file was made under this id", e.id, rule="line.id")
    x = let(value_of(state.disk_of[e.id]))
    holds(e.view >= e.log_view, "log_view is above view", e.view)
    with when(state.up[x]):
        owes_nothing(by=x)
        step(node_2026.crash, r=x)
    superblock = {"v": e.view, "w": e.log_view, "k": e.commit, "c": e.checkpoint}
    either(state.new_disk[x], node_2026.open_new_disk, node_2026.open_superblock, r=x, **superblock)


@event(aside=True)
def open_header(state: Any, e: Any) -> None:
    """A header of the superblock that it starts from; of op 0 it is the root's."""
    holds(state.opened != NONE, "no superblock was read", e.op)
    with when(all_of(e.op == 0, state.root == 0)):
        step(headers.learn_root, c=e.checksum)
    named = headers.header_of(state, e.checksum)
    listed = where(e.op == 0, ROOT, where(headers.was_made(state, named), named, 0))
    step(node_2026.read_list, r=value_of(state.opened), o=e.op, e=listed, low=0)


@event()
def recover_slot(state: Any, e: Any) -> None:
    """A slot of the journal is decided."""
    known = call(case_2026, e.label, e.decision, flag(alone(state, e)))
    holds(known == 1, "this case of the table has another decision", e.decision)
    empty = call(is_reserved, e.what) == 1
    holds(any_of(not_(empty), all_of(e.op == e.slot, e.view == 0)), "an empty slot has no op or view of its own", e.op)
    d = call(decision_2026, e.decision, sort=Op)
    kept = all_of(any_of(d == EQL, d == FIX), not_(empty))
    step(node_2026.recover_slot, r=e.node, o=e.slot, d=d, e=where(kept, state.prepared[e.view, e.op], 0))


def is_reserved(what: str) -> int:
    """Is that the operation of an empty slot? 1 or 0."""
    return int(what.endswith("reserved"))


@event()
def drop_header(state: Any, e: Any) -> None:
    """A header that does not belong to the log of the superblock's views is dropped."""
    dropped = prepare_at(state, e)
    check(e.view, state.p_view[dropped])
    within = all_of(e.view_low <= e.view, e.view <= e.view_high)
    foreign = all_of(not_(within), e.view_high <= state.log_view[e.node])
    holds(foreign, "the header belongs to the log of these views", e.view)
    step(node_2026.drop_header, r=e.node, o=e.op, e=dropped)


@event()
def recovered_journal(state: Any, e: Any) -> None:
    """All slots are decided."""
    step(node_2026.journal_recovered, r=e.node)
    check(e.dirty, of_row(set_cells, state.dirty, e.node))
    check(e.faulty, of_row(set_cells, state.faulty, e.node))
    step(node_2026.fix_headers, r=e.node)
    step(node_2026.find_head, r=e.node)


@event()
def start_normal(state: Any, e: Any) -> None:
    """A replica is normal at once."""
    either(alone(state, e), node_2026.start_single, node_2026.start_normal, r=e.node)
    check(e.view, state.view[e.node])
    said_role(state, e, "primary", "backup")


@event()
def doubt_head(state: Any, e: Any) -> None:
    """A replica is not sure of its head."""
    shows(state, e, "checkpoint", "commit_min", "op", "log_view", "view")
    step(node_2026.doubt_head, r=e.node)


# --- superblock ------------------------------------------------------------------------------------------------------


@event()
def ask_superblock(state: Any, e: Any) -> None:
    """View and log_view are to become durable."""
    with when(all_of(alone(state, e), state.status[e.node] == RECOVERING)):
        step(node_2026.next_view_alone, r=e.node)
    shows(state, e, durable="durable_view", log_durable="durable_log_view", view="view", log_view="log_view")
    step(node_2026.ask_superblock, r=e.node)
    owes("asked_superblock")


@event()
def asked_superblock(state: Any, e: Any) -> None:
    """What is going to be written."""
    owed()
    _writes(state, e)


def _writes(state: Any, e: Any) -> None:
    shows(state, e, commit="next_commit", checkpoint="next_checkpoint", view="next_view", log_view="next_log_view")


@event()
def wrote_view(state: Any, e: Any) -> None:
    """What has been written."""
    holds(state.view_pending[e.node], "no such write was asked for", e.view)
    _writes(state, e)


@event()
def wrote_header(state: Any, e: Any) -> None:
    """A header of what has been written."""
    named = headers.header_of(state, e.checksum)
    of_op = any_of(not_(headers.was_made(state, named)), state.p_op[named] == e.op)
    holds(of_op, "the checksum is of another op", e.checksum)


@event()
def view_durable(state: Any, e: Any) -> None:
    """The write for a view is done."""
    step(node_2026.view_durable, r=e.node)
    owes("view_is_durable", "observe")


@event()
def view_is_durable(state: Any, e: Any) -> None:
    """The replica goes on with what is durable."""
    owed()
    shows(state, e, view="durable_view", log_view="durable_log_view")


@event()
def ask_checkpoint(state: Any, e: Any) -> None:
    """The next checkpoint is to become durable."""
    check(e.checkpoint_before, state.checkpoint[e.node])
    step(node_2026.ask_checkpoint, r=e.node, c=e.checkpoint, v=e.view, w=e.log_view)
    check(e.commit, state.ck_commit[e.node])


@event()
def checkpoint_durable(state: Any, e: Any) -> None:
    """The write for a checkpoint is done."""
    step(node_2026.checkpoint_durable, r=e.node)


# --- normal operation ------------------------------------------------------------------------------------------------


@event()
def request(state: Any, e: Any) -> None:
    """The primary takes up a request."""
    step(normal_2026.take_request, r=e.node, h=e.checksum, c=e.client)
    owes("prepare")


@event(name="prepare")
def prepare_(state: Any, e: Any) -> None:
    """It prepares the request."""
    owed()
    check(e.op, state.op[e.node] + 1)
    m = let(state.asked[e.node])
    c = let(state.m_client[m])
    with when(all_of(normal_2026.lacks_session(state, e.node, c), not_(state.m_register[m]))):
        step(normal_2026.load_session, r=e.node, c=c, o=state.m_session[m], s=state.m_request[m] - 1)
    step(normal_2026.on_request, r=e.node, e=e.checksum)


@event()
def advance(state: Any, e: Any) -> None:
    """The head of the log advances by one."""
    owed(must=False)
    made = prepare(state, e.checksum)
    holds(is_named(state, state.p_parent[made], e.parent), NO_PARENT, e.parent, rule="I10")
    check(e.op, state.p_op[made])
    leads = let(leading(state, e))
    with when(leads):
        check(e.op_before, state.op[e.node] - 1)
        check(e.op, state.op[e.node])
    with when(not_(leads)):
        check(e.op_before, state.op[e.node])
        check(e.op, state.op[e.node] + 1)
        holds(state.m_prepare[state.current[e.node]] == made, "another message is at hand", e.checksum)
        step(normal_2026.on_prepare, r=e.node)
    owes("set_header", values=(2, e.op))


@event()
def jump(state: Any, e: Any) -> None:
    """A backup leaves a gap below a prepare that it received."""
    check(e.op_before, state.op[e.node])
    head = state.header[e.node, slot_of(state.op[e.node])]
    holds(is_named(state, head, e.head), "the checksum is not that of the head", e.head)
    parent = state.p_parent[state.m_prepare[state.current[e.node]]]
    holds(is_named(state, parent, e.parent), NO_PARENT, e.parent, rule="I10")
    step(normal_2026.jump_ahead, r=e.node, o=e.op)
    owes("advance")


@event()
def learn_commit(state: Any, e: Any) -> None:
    """A backup learns a commit number."""
    check(e.commit_before, state.commit_max[e.node])
    step(normal_2026.learn_commit, r=e.node, k=e.commit)


@event()
def replay(state: Any, e: Any) -> None:
    """A cluster of one takes its journal as committed."""
    check(e.commit_before, state.commit_max[e.node])
    step(normal_2026.replay, r=e.node, k=e.commit)


@event()
def note_commit(state: Any, e: Any) -> None:
    """Who executed a prepare first knows it to be committed."""
    owed()
    check(e.commit_before, state.commit_max[e.node])
    step(normal_2026.note_commit, r=e.node, o=e.commit)


@event()
def commit_verified(state: Any, e: Any) -> None:
    """The log has the prepare that a commit message names."""
    m = state.current[e.node]
    here = state.header[e.node, slot_of(state.m_commit[m])]
    holds(is_named(state, here, state.m_prepare[m]), NOT_COMMITTED, e.node)


@event()
def duplicate_prepare_ok(state: Any, e: Any) -> None:
    """An acknowledgement was counted before."""
    m = state.current[e.node]
    check(e.sender, state.m_from[m])
    before = state.ok_from[e.node, state.m_op[m], e.sender]
    holds(before, "it did not acknowledge this prepare in this view before", e.sender)


@event()
def execute(state: Any, e: Any) -> None:
    """A prepare is executed."""
    made = prepare(state, e.checksum)
    check(e.view, state.view[e.node])
    check(e.leads, flag(leading(state, e)))
    check(e.op, state.commit_min[e.node] + 1)
    check(e.op, state.p_op[made])
    shows_operation(state, e, made)
    commits = let(all_of(state.status[e.node] == NORMAL, leading(state, e)))
    with when(commits):
        step(normal_2026.commit, r=e.node, e=made)
        owes("note_commit")
    with when(not_(commits)):
        step(normal_2026.execute, r=e.node, e=made)
        with when(e.op > state.commit_max[e.node]):
            owes("note_commit")


@event()
def acknowledge(state: Any, e: Any) -> None:
    """A prepare is acknowledged, or a standby says so to itself."""
    made = prepare_at(state, e)
    step(normal_2026.acknowledge, r=e.node, o=e.op, e=made)
    with when(e.node < state.cfg.replicas):
        owes("send", "not_sent", values=(made,))


@event()
def not_sent(state: Any, e: Any) -> None:
    """An acknowledgement is not sent: it is old."""
    owed(Prepare)


@event()
def new_session(state: Any, e: Any) -> None:
    """A registration was executed."""
    made = state.canonical[state.commit_min[e.node]]
    check(e.session, state.commit_min[e.node])
    is_it = all_of(e.request == 0, state.p_register[made], e.client == state.p_client[made])
    holds(is_it, "not the registration just executed", e.session)


@event()
def new_reply(state: Any, e: Any) -> None:
    """A request was executed."""
    made = let(state.canonical[state.commit_min[e.node]])
    c = let(state.p_client[made])
    with when(normal_2026.lacks_session(state, e.node, c)):
        step(normal_2026.load_session, r=e.node, c=c, o=e.session, s=e.request)
    new_reply_of(state, e, made)


@event()
def evict(state: Any, e: Any) -> None:
    """A client loses its session."""
    with when(normal_2026.lacks_session(state, e.node, e.client)):
        step(normal_2026.load_session, r=e.node, c=e.client, o=1, s=0)
    step(normal_2026.evict, r=e.node, c=e.client)
