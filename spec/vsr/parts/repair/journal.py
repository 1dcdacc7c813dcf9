"""Normal operation over a journal with gaps: prepares in any order, repair of headers and of prepares (seed 002)."""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, action, all_of, any_of, exists, not_, require, some, value_of, where
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import NORMAL, Entry, Op, Replica, View, parent_of, prepare_of, primary
from viewproof.spec.vsr.parts.repair.state import Repaired, available, chained, connects, leading


def require_view_fixed(state: Repaired, r: Replica) -> None:
    """Where log_view is kept in a superblock, the primary waits for that: the log that its view starts with is fixed
    before.
    """
    v = state.view[r]
    require(any_of(v == 0, state.sv[v].sent))


def hold_in_memory(state: Repaired, r: Replica, o: Op) -> None:
    """The primary holds what it prepared in memory until it is written."""
    state.memory[r, o] = some(state.view[r])


@action
def on_prepare(state: Repaired, r: Replica, o: Op) -> None:
    """A backup takes a prepare of its view above its log; between them it knows of no header (seed 002:
    jump_to_newer_op).
    """
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == NORMAL)
    require(primary(state, v) != r)
    require(o > state.op[r])
    require(received.prepare[v, o].sent)
    require(available(state, r, v, o))
    require(any_of(o > state.op[r] + 1, lambda: received.prepare[v, o].parent == parent_of(state, r, o)))
    normal.require_slot(state, r, o)
    state.op[r] = o
    state.entry[r, o] = some(v)
    state.written[r, o] = False
    state.memory[r, o] = some(v)


@action
def append(state: Repaired, r: Replica, o: Op) -> None:
    """The prepare of o that r holds in memory is written, in any order, and acknowledged if r may (seed 002)."""
    require(o <= state.op[r])
    require(state.entry[r, o] != NONE)
    require(state.memory[r, o] == state.entry[r, o])
    if state.cfg.replicas == 1:  # a cluster of one appends in order: nobody could fill a hole
        require(any_of(o == 1, lambda: state.written[r, o - 1]))
    write(state, r, o)


@action
def repair(state: Repaired, r: Replica, o: Op) -> None:
    """A replica asks the others for a prepare that its journal lacks, dirty or faulty, gets it from one that holds
    it, and writes it (seed 002: request_prepare).
    """
    require(any_of(state.status[r] == NORMAL, leading(state, r)))
    require(o <= state.op[r])
    require(state.entry[r, o] != NONE)
    require(not_(state.written[r, o]))
    require(state.memory[r, o] != state.entry[r, o])
    require(available(state, r, value_of(state.entry[r, o]), o))
    write(state, r, o)


def write(state: Repaired, r: Replica, o: Op) -> None:
    """The prepare that r knows at o is durable in its journal; it acknowledges it if it may.

    Another one that it holds in memory for that op stays there (seed 002: the pipeline outlives a view).
    """
    v = state.view[r]
    entry = state.entry[r, o]
    state.written[r, o] = True
    state.body[r, o] = entry
    state.faulty[r, o] = False
    state.memory[r, o] = where(state.memory[r, o] == entry, NONE, state.memory[r, o])
    state.ack[v, r, o] = where(all_of(may_acknowledge(state, r), o > state.commit_min[r]), entry, state.ack[v, r, o])


def may_acknowledge(state: Repaired, r: Replica) -> Bool:
    """May r send prepare_ok in its view: it is normal there, and its log_view is durable where it is kept?"""
    if state.cfg.repair.recovery == "superblock":
        return all_of(state.status[r] == NORMAL, state.durable_log_view[r] == state.view[r])
    return state.status[r] == NORMAL


@action
def prepare_ok(state: Repaired, r: Replica, o: Op) -> None:
    """A replica acknowledges, in its view, a prepare that its journal held before (seed 002: after a view change)."""
    v = state.view[r]
    require(may_acknowledge(state, r))
    require(o > state.commit_min[r])
    require(o <= state.op[r])
    require(state.written[r, o])
    require(state.ack[v, r, o] != state.entry[r, o])
    state.ack[v, r, o] = state.entry[r, o]


@action
def execute(state: Repaired, r: Replica) -> None:
    """A replica executes the next committed op once its headers from there to the head are connected and it holds
    the prepare; a new primary may do so before its view starts (seed 002: commit_ops).
    """
    o = state.commit_min[r] + 1
    require(any_of(state.status[r] == NORMAL, leading(state, r)))
    require(o <= state.commit_max[r])
    require(o <= state.op[r])
    require(chained(state, r, o, state.op[r]))
    require(any_of(state.written[r, o], state.memory[r, o] == state.entry[r, o]))
    require(normal.is_request(state, state.entry[r, o], o))
    normal.execute_request(state, r, o, state.entry[r, o])


@action
def repair_header(state: Repaired, r: Replica, o: Op, w: View) -> None:
    """A replica takes the header of (w, o), sent by one that knows it, if its own log asks for it: its next header
    names it as parent, or it is of the same view as its head (seed 002: request_headers, headers).
    """
    entry = some(w)
    require(any_of(state.status[r] == NORMAL, leading(state, r)))
    require(o < state.op[r])
    require(o > state.commit_min[r])
    require(state.entry[r, o] != entry)
    require(state.prepare[w, o].sent)
    require(asked_for(state, r, o, entry))
    require(exists(Replica, lambda q: any_of(state.entry[q, o] == entry, state.body[q, o] == entry)))
    state.entry[r, o] = entry
    state.written[r, o] = state.body[r, o] == entry


def asked_for(state: Repaired, r: Replica, o: Op, entry: Entry) -> Bool:
    """Must r's log have that entry at o: its headers lead there from the head down, or the head is of its view?"""
    return any_of(
        all_of(
            state.entry[r, o + 1] != NONE,
            lambda: prepare_of(state, state.entry[r, o + 1], o + 1).parent == entry,
            lambda: chained(state, r, o + 2, state.op[r]),
        ),
        state.entry[r, state.op[r]] == entry,
    )


@action
def drop_header(state: Repaired, r: Replica, o: Op) -> None:
    """A new primary forgets a header of its own that its head's chain contradicts, so that others can nack what
    belongs there.
    """
    require(leading(state, r))
    require(o > state.commit_max[r])
    require(o < state.op[r])
    require(state.entry[r, o] != NONE)
    require(chained(state, r, o + 2, state.op[r]))
    require(all_of(state.entry[r, o + 1] != NONE, lambda: not_(connects(state, r, o + 1))))
    state.entry[r, o] = NONE
    state.written[r, o] = False
