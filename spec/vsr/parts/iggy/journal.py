"""Iggy's normal operation: a request is taken by a primary that has executed all it knows of, prepares are appended in
order, and bodies that are missing below the head are fetched.

Prepares go down a ring, each replica sending on what it appended: for the others one has arrived some time after it
was sent, and nothing more is said of the way.
"""

from __future__ import annotations

from viewproof.spec.lang import NONE, action, all_of, any_of, between, largest, require, some, tagged, value_of, where
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import NORMAL, RECOVERING, Entry, Log, Op, Replica
from viewproof.spec.vsr.parts.repair.journal import write
from viewproof.spec.vsr.parts.repair.state import WithBits, available, leading


def require_caught_up(state: WithBits, r: Replica) -> None:
    """The primary has executed all that it knows to be committed."""
    require(state.commit_min[r] == state.commit_max[r])


@action
def append(state: WithBits, r: Replica, o: Op) -> None:
    """The primary appends its own prepare at o, whose op it claimed before, and acknowledges it."""
    require(o <= state.op[r])
    require(state.entry[r, o] != NONE)
    require(state.memory[r, o] == state.entry[r, o])
    require(any_of(o == 1, lambda: state.written[r, o - 1]))
    write(state, r, o)


@action
def on_prepare(state: WithBits, r: Replica, o: Op) -> None:
    """A backup appends the next prepare of its view, on the entry that it knows below it, and acknowledges it."""
    normal.require_next(state, r, o)
    normal.require_slot(state, r, o)
    state.op[r] = o
    state.entry[r, o] = some(state.view[r])
    state.body[r, o] = some(state.view[r])
    state.written[r, o] = True
    state.ack[state.view[r], r, o] = some(state.view[r])


@action
def repair(state: WithBits, r: Replica, o: Op) -> None:
    """A replica fetches a body that its journal lacks from one that has it; it takes none but that of its log, or, as
    new primary, of the merged log (RequestPrepares, RepairPrepare).
    """
    wanted = wanted_at(state, r, o)
    require(any_of(state.status[r] == NORMAL, leading(state, r)))
    require(wanted != NONE)
    require(o > state.commit_min[r])
    require(state.body[r, o] != wanted)
    require(state.memory[r, o] != wanted)
    require(available(state, r, value_of(wanted), o))
    state.body[r, o] = wanted
    state.written[r, o] = state.entry[r, o] == wanted
    state.ack[state.view[r], r, o] = where(state.status[r] == NORMAL, wanted, state.ack[state.view[r], r, o])


def wanted_at(state: WithBits, r: Replica, o: Op) -> Entry:
    """The entry that r's log has at o; of the log that it merged, while the view has not started. 0 for none."""
    v = state.view[r]
    merged = where(o <= state.sv[v].op, lambda: state.sv[v].entry[o], NONE)
    return where(leading(state, r), merged, lambda: state.entry[r, o])


@tagged("recovery")
@action
def replay(state: WithBits, r: Replica) -> None:
    """A replica that comes back after a crash executes the ops that its journal proves to be committed; it replies to
    nobody.
    """
    o = state.commit_min[r] + 1
    require(state.status[r] == RECOVERING)
    require(o <= state.commit_max[r])
    require(all_of(o <= state.op[r], lambda: state.written[r, o]))
    require(normal.is_request(state, state.entry[r, o], o))
    normal.require_table_slot(state, r, o)
    normal.note_executed(state, r, o, state.entry[r, o])
    normal.record(state, r, o, state.entry[r, o])


def forget_pipeline(state: WithBits, r: Replica) -> None:
    """What r prepared and did not append is gone."""
    state.memory.update((r, between(Op, 1, state.op[r])), lambda o: NONE)


def journal_end(state: WithBits, r: Replica) -> Op:
    """The op above which r's journal holds nothing: its head, or that of the log that it merged last."""
    return largest(state.op[r], where(state.merged[r] == NONE, 0, lambda: state.sv[value_of(state.merged[r])].op))


def cut_journal(state: WithBits, r: Replica, low: Op | int, n: Op, header: Log) -> None:
    """The journal of r keeps, from op `low` on, only the entries of a log that ends at n.

    An entry that follows another one is another one, so all behind the first that differs are gone.
    """
    state.body.update(
        (r, between(Op, low, largest(n, journal_end(state, r)))),
        lambda o: where(all_of(o <= n, lambda: state.body[r, o] == header(o)), state.body[r, o], NONE),
    )
