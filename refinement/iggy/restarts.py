"""What lines of a restart mean, and those that only a simulator prints: state, journals, tables."""

from __future__ import annotations

from typing import Any

from viewproof.refinement.iggy.events import EVENTS, SHOWN, fetched, reaches, shows
from viewproof.refinement.logs.record import each, forget, hold, known, lose, settle, silent, step, when
from viewproof.spec.lang import (
    NONE,
    all_of,
    any_of,
    between,
    largest,
    number_of,
    some,
    where,
)
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import (
    NORMAL,
    Client,
    Length,
    Op,
    Replica,
    View,
    primary,
)
from viewproof.spec.vsr.parts.clients import cache
from viewproof.spec.vsr.parts.iggy import as_built
from viewproof.spec.vsr.parts.iggy.journal import append, replay
from viewproof.spec.vsr.parts.repair.state import leading

event = EVENTS.event


BACK = {"node": Replica, "top": Length, "op": Length, "done": Length, "clients": Client, "hole": Op}
"""Of a restart: the largest op of the run; and, as later lines tell, its head and what it executed when it was back."""


@event(**BACK)
def restarted(state: Any, e: Any) -> None:
    """A replica starts again: mute, with what its journal holds, of which it executes what that proves committed."""
    r = e.node
    appended(state, e, r)
    unprinted(state, e, r)
    reaches(state, r, largest(where(e.has("op"), e.op, 0), where(e.has("done"), e.done, 0)))
    if state.cfg.client_table.sessions:
        when(e.has("done"), lambda: comes_back(state, e, r), lambda: comes_back_somehow(state, e, r))
    else:
        forget(
            r,
            "a replica of a partition comes back: its journal was in memory, and no line shows what its segments have",
        )


def appended(state: Any, e: Any, r: Any) -> None:
    """What a primary had prepared and not acknowledged itself may be in its journal; up to the head that it shows."""
    shown = where(e.has("op"), e.op, 0)
    each(between(Op, state.commit_min[r] + 1, state.op[r]), lambda o: appends_own(state, r, o, shown))


def appends_own(state: Any, r: Any, o: Any, shown: Any) -> None:
    """Primary r's own prepare at o."""
    waits = all_of(state.memory[r, o] != NONE, state.memory[r, o] == state.entry[r, o])
    when(all_of(waits, o <= shown), lambda: settle(append, r=r, o=o))
    when(all_of(waits, o > shown), lambda: silent(append, r=r, o=o))


@event(**BACK)
def probing(state: Any, e: Any) -> None:
    """A replica probes: it starts again, as far as lines tell."""
    EVENTS.by_name["restarted"].fn(state, e)


LATE = 64
"""So many prepares a primary may have sent without a line: its pipeline and what waits for it."""


@event(node=Replica)
def cut_off(state: Any, e: Any) -> None:
    """The last line of a process: what it did after it, no line shows."""
    r = e.node
    v = state.view[r]
    when(all_of(state.status[r] == NORMAL, primary(state, v) == r), lambda: may_have_sent(state, r, v))


def may_have_sent(state: Any, r: Any, v: Any) -> None:
    """Primary r may have prepared and committed more."""
    each(between(Op, state.op[r] + 1, state.op[r] + LATE), lambda o: may_be_prepared(state, v, o))
    lose(state.commit_sent[v], state.commit_sent[v])


def may_be_prepared(state: Any, v: Any, o: Any) -> None:
    """There may be a prepare of view v at o."""
    for name in ("client", "request", "session", "incarnation", "parent"):
        if f"prepare_{name}" in state.schema.vars:
            lose(state.cells(f"prepare_{name}")[v, o], 0)


def unprinted(state: Any, e: Any, r: Any) -> None:
    """What its journal has above the head that its lines told of: its own prepares, or those of its view's primary."""
    top = largest(where(e.has("op"), e.op, 0), where(e.has("done"), e.done, 0))
    own = all_of(state.status[r] == NORMAL, primary(state, state.view[r]) == r)
    when(own, lambda: each(between(Op, state.op[r] + 1, top), lambda o: has_own(state, r, o)))


def has_own(state: Any, r: Any, o: Any) -> None:
    """Primary r prepared op o, and no line says so."""
    step(as_built.fill_slot, r=r, o=o, w=state.view[r])


def head_of(state: Any, e: Any, r: Any) -> Any:
    """The last op of r's journal."""
    return where(e.has("op"), e.op, as_built.last_in_journal(state, r, e.top))


def comes_back(state: Any, e: Any, r: Any) -> None:
    """It executes up to an op that later lines tell; what is there it knew, or its journal says."""
    each(between(Op, state.commit_min[r] + 1, e.done), lambda o: fetched(state, r, o))
    step(as_built.restart, r=r, k=e.done, n=largest(head_of(state, e, r), e.done))
    each(between(Op, 1, e.done), lambda o: replays(state, r, o))
    when(all_of(e.has("hole"), e.hole <= e.done), lambda: over_hole(state, e, r))


def comes_back_somehow(state: Any, e: Any, r: Any) -> None:
    """No line tells how far it executed."""
    step(as_built.restart, r=r, k=e.done, n=head_of(state, e, r))
    lose(state.commit_min[r], 0)
    lose(state.commit_max[r], 0)
    each(between(Client, 1, e.clients), lambda c: forgets(state, r, c))
    lose(state.slots_used[r], 0)


def over_hole(state: Any, e: Any, r: Any) -> None:
    """What its journal lacks it passes over: it says that it executed ops that it did not."""
    known(
        "a replica comes back with a commit number above a hole in its journal, and passes over the ops that are "
        "missing (iggy.replays_over_hole): it says that it executed them, and its tables lack them"
    )
    each(between(Client, 1, e.clients), lambda c: forgets(state, r, c))
    lose(state.slots_used[r], 0)


def forgets(state: Any, r: Any, c: Any) -> None:
    """What r's table has of client c is not known."""
    for cell in (state.table, state.table_session, state.table_op, state.table_incarnation):
        lose(cell[r, c], 0)
    for k in cache.older(state.cfg):
        lose(getattr(state, f"cached_{k}")[r, c], 0)


def replays(state: Any, r: Any, o: Any) -> None:
    """Replica r executes again what its journal proves."""
    if state.cfg.replicas > 1:
        step(replay, r=r)
    else:
        step(normal.execute, r=r)


@event(**SHOWN)
def shown(state: Any, e: Any) -> None:
    """A line that changes nothing shows its replica."""
    r = e.node
    when(
        state.view[r] == e.view, lambda: when(all_of(e.status == 0, state.status[r] == NORMAL), lambda: shows(state, e))
    )


@event(node=Replica, view=View, log_view=View, status=int, op=Length, commit_min=Length, commit_max=Length)
def state(state: Any, e: Any) -> None:
    """The state of a replica at the end of a tick."""
    r = e.node
    reaches(state, r, e.op)
    hold("I6", state.view[r] == e.view, "a replica is in the view that it shows")
    hold("I12", state.log_view[r] == e.log_view, "log_view is that of the last view whose log the replica took over")
    hold("I5", any_of(leading(state, r), state.op[r] == e.op), "its head is the end of its log")
    hold("I4", state.commit_min[r] == e.commit_min, "it executed what its lines say")


@event(node=Replica, op=Op, entry=View)
def journal(state: Any, e: Any) -> None:
    """The journal has an entry now."""
    r, o = e.node, e.op
    when(e.has("entry"), lambda: has_now(state, e, r, o))


def has_now(state: Any, e: Any, r: Any, o: Any) -> None:
    """Replica r's journal has that entry: it is the next of its view, or it was fetched."""
    when(all_of(e.entry == state.view[r], o == state.op[r] + 1), lambda: reaches(state, r, o))
    when(state.body[r, o] != some(e.entry), lambda: step(as_built.fill_slot, r=r, o=o, w=e.entry))


@event(node=Replica, op=Op, entry=View)
def executed_entry(state: Any, e: Any) -> None:
    """The entry that a replica executed."""
    when(e.has("entry"), lambda: was_executed(state, e))


def was_executed(state: Any, e: Any) -> None:
    """It is the one that the specification executed there."""
    r = e.node
    hold(
        "I1",
        any_of(state.first_executed[e.op] == NONE, state.first_executed[e.op] == some(e.entry)),
        "an op is the same entry wherever it is executed",
    )
    hold(
        "I1",
        any_of(state.executed[r, e.op] == NONE, state.executed[r, e.op] == some(e.entry)),
        "it executed the entry of its log",
    )


@event(node=Replica, commit_min=Length, client=Client, epoch=Length, mark=int)
def slot(state: Any, e: Any) -> None:
    """A slot of a client table: a function of what was executed."""
    r, c = e.node, e.client
    if not state.cfg.client_table.sessions:
        return
    when(
        state.commit_min[r] == e.commit_min,
        lambda: hold(
            "I9",
            all_of(state.table_session[r, c] == e.epoch, as_number(state.table[r, c]) == e.mark),
            "the client table follows from what was executed",
        ),
    )


def as_number(request: Any) -> Any:
    """A request number, compared with a number that a line shows."""
    return number_of(request)
