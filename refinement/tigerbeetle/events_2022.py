"""What the lines of the June 2022 logs stand for: steps of `spec.vsr.tigerbeetle.june_2022`."""

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
    shows_operation,
)
from viewproof.spec.lang import NONE, all_of, any_of, not_, value_of
from viewproof.spec.vsr.tigerbeetle import headers, journal_2022, normal_2022, recovery_2022
from viewproof.spec.vsr.tigerbeetle.headers import is_named
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT, Op, Prepare
from viewproof.spec.vsr.tigerbeetle.state_2022 import FIX, NORMAL, RECOVERING, SLOTS

_CASES: Final = {
    **dict.fromkeys("ABCDI", (("vsr", "vsr"), 0)),
    **dict.fromkeys("EG", (("vsr", "fix"), 1)),
    **dict.fromkeys("FHK", (("fix", "fix"), 1)),
    **dict.fromkeys("LM", (("vsr", "vsr"), 1)),
    "J": (("nil", "nil"), 0),
    "N": (("eql", "eql"), 1),
    "Truncate": (("cut", "cut"), 0),
}
"""Label of a slot's recovery → decision (with other replicas, alone), and whether its prepare can be read."""
_EARLY_CASES: Final = {
    **dict.fromkeys("ABCDG", (("vsr", "vsr"), 0)),
    **dict.fromkeys("EF", (("vsr", "fix"), 1)),
    **dict.fromkeys("JK", (("vsr", "vsr"), 1)),
    "H": (("nil", "nil"), 0),
    "I": (("fix", "fix"), 1),
    "L": (("eql", "eql"), 1),
    "Truncate": (("cut", "cut"), 0),
}
"""The same for builds of the first week of June, whose table does not know the highest op of the prepares."""
_DECISIONS: Final = ("nil", "eql", "fix", "vsr", "cut")


def case_2022(label: str, decision: str, early: int, alone: int) -> int:
    """Is that the decision of that case? 0: no; else 1, and 2 if its prepare can be read."""
    decisions, readable = (_EARLY_CASES if early else _CASES).get(label.removeprefix("@"), (("", ""), 0))
    return 1 + readable if decision == decisions[alone] else 0


def decision_2022(decision: str) -> int:
    """Its number."""
    return _DECISIONS.index(decision) if decision in _DECISIONS else len(_DECISIONS)


def is_early(label: str) -> int:
    """Is that the label of a sound slot in the table of the first week? 1 or 0."""
    return int(label in ("@L", "@H"))


# --- start -----------------------------------------------------------------------------------------------------------


@event()
def init(state: Any, e: Any) -> None:
    """A replica starts with its configuration."""
    configured(e.replicas, e.quorum_view_change, e.quorum_replication)


@event(aside=True)
def init_journal(state: Any, e: Any) -> None:
    """A replica's memory is set up: at the start, or, anew, in a crash."""
    check(e.slots, SLOTS)
    with when(all_of(state.up[e.node], state.set_up[e.node])):
        owes_nothing()
        step(journal_2022.crash, r=e.node)
    step(journal_2022.set_up, r=e.node)


@event(aside=True)
def crash(state: Any, e: Any) -> None:
    """A replica is to crash; builds of the first half of June may not do it."""


@event()
def restart(state: Any, e: Any) -> None:
    """A replica starts again."""
    step(journal_2022.restart, r=e.node)


@event()
def recover_journal(state: Any, e: Any) -> None:
    """Its journal is going to be recovered."""
    holds(state.next_slot[e.node] == 0, "the journal is recovered once per start", e.node)


@event()
def recover_slot(state: Any, e: Any) -> None:
    """A slot of the journal is decided."""
    was_owed, header = owed(Prepare, must=False)
    tells = any_of(e.decision == "eql", e.decision == "nil")
    with when(all_of(tells, not_(state.table_known))):
        step(journal_2022.tell_table, early=call(is_early, e.label, sort=Op))
    alone = 1 if state.cfg.replicas == 1 else 0
    case = let(call(case_2022, e.label, e.decision, flag(state.table_early), alone, sort=Op))
    holds(case != 0, "this case of the table has another decision", e.decision)
    d = let(call(decision_2022, e.decision, sort=Op))
    same = any_of(was_owed == 0, all_of(d == FIX, state.disk_body[e.node, e.slot] == header))
    holds(same, "another header was put into this slot", e.slot)
    step(journal_2022.recover_slot, r=e.node, o=e.slot, d=d, b=case - 1)


@event()
def recovered_journal(state: Any, e: Any) -> None:
    """All slots are decided."""
    step(journal_2022.journal_recovered, r=e.node)
    check(e.dirty, of_row(set_cells, state.dirty, e.node))
    check(e.faulty, of_row(set_cells, state.faulty, e.node))


@event()
def recovered(state: Any, e: Any) -> None:
    """A replica is normal: as new, alone, or by the answers of others."""
    answered = let(state.recovers_from[e.node] != NONE)
    single = let(state.op[e.node] > 0) if state.cfg.replicas == 1 else False
    with when(answered):
        step(recovery_2022.finish_recovery, r=e.node, b=value_of(state.recovers_from[e.node]))
    if single is not False:
        with when(all_of(not_(answered), single)):
            step(recovery_2022.recover_single, r=e.node)
    with when(all_of(not_(answered), True if single is False else not_(single))):
        step(recovery_2022.recover_empty, r=e.node)
    check(e.view, state.view[e.node])
    said_role(state, e, "leader", "follower")


# --- normal operation ------------------------------------------------------------------------------------------------


@event()
def request(state: Any, e: Any) -> None:
    """The primary takes up the request at hand."""
    m = state.current[e.node]
    holds(state.request_of[state.m_checksum[m]] == m, "the message at hand is no request", e.checksum)
    holds(state.m_checksum[m] == e.checksum, "another request is at hand", e.checksum)
    owes("prepare")


@event(name="prepare")
def prepare_(state: Any, e: Any) -> None:
    """It prepares the request."""
    owed()
    unknown = not_(headers.was_made(state, headers.header_of(state, e.checksum)))
    holds(unknown, "a prepare with this checksum was made before", e.checksum, rule="line.checksum")
    owes("advance", values=(e.checksum,))


@event()
def advance(state: Any, e: Any) -> None:
    """The head of the log advances by one."""
    _, announced = owed(Prepare, must=False)
    check(e.op_before, state.op[e.node])
    check(e.op, state.op[e.node] + 1)
    own = let(announced != 0)
    with when(own):
        holds(announced == e.checksum, "another prepare was announced", e.checksum)
        head = state.entry[e.node, state.op[e.node]]
        holds(is_named(state, head, e.parent), "the parent is not the head of the log", e.parent, rule="I10")
        with when(all_of(head == ROOT, state.root == 0)):
            step(headers.learn_root, c=e.parent)
        step(normal_2022.on_request, r=e.node, e=e.checksum)
    with when(not_(own)):
        made = prepare(state, e.checksum)
        holds(state.m_prepare[state.current[e.node]] == made, "another message is at hand", e.checksum)
        holds(is_named(state, state.p_parent[made], e.parent), NO_PARENT, e.parent, rule="I10")
        check(e.op, state.p_op[made])
        step(normal_2022.on_prepare, r=e.node)
    owes("set_header", values=(4, e.op))


@event()
def jump(state: Any, e: Any) -> None:
    """A backup leaves a gap below a prepare that it received."""
    check(e.op_before, state.op[e.node])
    head = state.entry[e.node, state.op[e.node]]
    holds(is_named(state, head, e.head), "the checksum is not that of the head", e.head)
    parent = state.p_parent[state.m_prepare[state.current[e.node]]]
    holds(is_named(state, parent, e.parent), NO_PARENT, e.parent, rule="I10")
    step(normal_2022.jump_ahead, r=e.node, o=e.op)
    owes("advance", values=(0,))


@event()
def commit_verified(state: Any, e: Any) -> None:
    """The log has the prepare that a commit message names."""
    m = state.current[e.node]
    holds(is_named(state, state.entry[e.node, state.m_commit[m]], state.m_prepare[m]), NOT_COMMITTED, e.node)


@event()
def duplicate_prepare_ok(state: Any, e: Any) -> None:
    """An acknowledgement was counted before."""
    m = state.current[e.node]
    check(e.sender, state.m_from[m])
    step(normal_2022.on_prepare_ok, r=e.node, q=e.sender, e=state.m_prepare[m])


@event()
def advance_commit_max(state: Any, e: Any) -> None:
    """A backup learns a commit number; a cluster of one takes its journal as committed."""
    check(e.commit_before, state.commit_max[e.node])
    replays = all_of(state.cfg.replicas == 1, state.status[e.node] == RECOVERING)
    either(replays, normal_2022.replay, normal_2022.learn_commit, r=e.node, k=e.commit)


@event()
def execute(state: Any, e: Any) -> None:
    """A prepare is executed."""
    made = prepare(state, e.checksum)
    check(e.view, state.view[e.node])
    check(e.leads, flag(leading(state, e)))
    check(e.op, state.commit_min[e.node] + 1)
    check(e.op, state.p_op[made])
    shows_operation(state, e, made)
    commits = all_of(state.status[e.node] == NORMAL, leading(state, e))
    either(commits, normal_2022.commit, normal_2022.execute, r=e.node, e=made)
    with when(any_of(state.p_register[made], state.session[e.node, state.p_client[made]] > 0)):
        owes("new_session", "new_reply", "evict", "new_state", values=(made,))
    with when(leading(state, e)):
        owes("reply", values=(made,))


@event()
def acknowledge(state: Any, e: Any) -> None:
    """A prepare is acknowledged."""
    made = prepare_at(state, e)
    step(normal_2022.acknowledge, r=e.node, o=e.op, e=made)
    owes("send", values=(made,))


@event()
def new_session(state: Any, e: Any) -> None:
    """A registration was executed."""
    _, made = owed(Prepare)
    check(e.session, state.commit_min[e.node])
    is_it = all_of(e.request == 0, state.p_register[made], e.client == state.p_client[made])
    holds(is_it, "not the registration just executed", e.session)


@event()
def new_reply(state: Any, e: Any) -> None:
    """A request was executed."""
    _, made = owed(Prepare)
    new_reply_of(state, e, made)


@event()
def evict(state: Any, e: Any) -> None:
    """A client loses its session to another one."""
    _, made = owed(Prepare)
    step(normal_2022.evict, r=e.node, c=e.client)
    owes("new_session", values=(made,))


@event()
def new_state(state: Any, e: Any) -> None:
    """The simulator's checker saw a replica's state change."""
    was_owed, made = owed(Prepare, must=False)
    with when(was_owed == 1):
        step(normal_2022.show_digest, r=e.node, a=e.state_before, b=e.state)
        owes("new_session", "new_reply", "evict", values=(made,))
    with when(was_owed == 0):
        step(normal_2022.show_empty, r=e.node, a=e.state_before, b=e.state)
