"""What lines of a restart mean, and those that only a simulator prints: state, journals, tables."""

from __future__ import annotations

from typing import Any

from viewproof.refinement.events import (
    departs,
    each,
    event,
    forget,
    havoc,
    holds,
    may_step,
    otherwise,
    settle,
    shown,
    step,
    when,
)
from viewproof.refinement.iggy.events import fetched, reaches, several
from viewproof.spec.lang import NONE, all_of, any_of, between, largest, not_, number_of, some, where
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import NORMAL, Client, Op, primary
from viewproof.spec.vsr.parts.clients import cache
from viewproof.spec.vsr.parts.iggy import as_built
from viewproof.spec.vsr.parts.iggy.journal import append, replay
from viewproof.spec.vsr.parts.repair.state import leading

REPLAYS_OVER_HOLE = "iggy.replays_over_hole"
"""A replica comes back with a commit number above a hole in its journal."""
LATE = 64
"""So many prepares a primary may have sent without a line: its pipeline and what waits for it."""


@event()
def restarted(state: Any, e: Any) -> None:
    """A replica starts again: mute, with what its journal holds, of which it executes what that proves committed."""
    comes_back(state, e)


@event()
def probing(state: Any, e: Any) -> None:
    """A replica probes: it starts again, as far as lines tell."""
    comes_back(state, e)


def comes_back(state: Any, e: Any) -> None:
    """What its journal may have that no line told of; then, the restart."""
    r = e.node
    comes_back_in_view(state, e)
    leads = all_of(state.status[r] == NORMAL, primary(state, state.view[r]) == r)
    head, done = where(shown(e.op), e.op, 0), where(shown(e.done), e.done, 0)
    with each(between(Op, state.commit_min[r] + 1, state.op[r])) as o:
        waits = all_of(state.memory[r, o] != NONE, state.memory[r, o] == state.entry[r, o])
        with when(all_of(waits, o <= head)):
            settle(append, r=r, o=o)
        with when(all_of(waits, o > head)):
            may_step(append, r=r, o=o)
    with when(leads), each(between(Op, state.op[r] + 1, largest(head, done))) as o:
        step(as_built.fill_slot, r=r, o=o, w=state.view[r])
    reaches(state, r, largest(head, done, where(shown(e.acked), e.acked, 0)))
    if not state.cfg.client_table.sessions:
        cause = (
            "a replica of a partition comes back: its journal was in memory, and no line shows what its segments have"
        )
        forget(r, cause)
        return
    last = where(shown(e.op), e.op, as_built.last_in_journal(state, r, e.top))
    with when(shown(e.done)):
        again = "what a replica executes as it comes back is not executed again"
        holds(any_of(not_(shown(e.replayed)), e.replayed <= e.done), again, rule="I4")
        with each(between(Op, state.commit_min[r] + 1, e.done)) as o:
            fetched(state, r, o)
        step(as_built.restart, r=r, k=e.done, n=largest(last, e.done))
        with each(between(Op, 1, e.done)):
            step(replay if state.cfg.replicas > 1 else normal.execute, r=r)
        with when(all_of(shown(e.hole), e.hole <= e.done)):
            departs(REPLAYS_OVER_HOLE)
            forgets_table(state, e, r)
    with otherwise():
        step(as_built.restart, r=r, k=e.done, n=last)
        havoc(state.commit_min[r], state.commit_max[r], least=where(shown(e.replayed), e.replayed, 0))
        forgets_table(state, e, r)


def comes_back_in_view(state: Any, e: Any) -> None:
    """A replica that was killed as it entered a view may not have written that, or not printed it: it comes back in
    the view before or after, but not before one in which others had counted what it did.
    """
    r = e.node
    durable = ((e.was, state.durable_view[r], "I6"), (e.was_log, state.durable_log_view[r], "I12"))
    for back, view, rule in durable if state.cfg.replicas > 1 else ():
        with when(all_of(shown(back), back != view)):
            written = "a replica comes back in the view in which it acknowledged"
            holds(any_of(not_(shown(e.proved)), e.proved <= back), written, rule=rule)
            havoc(view, least=back, most=back)


def forgets_table(state: Any, e: Any, r: Any) -> None:
    """What r's client table has is not known."""
    with each(between(Client, 1, e.clients)) as c:
        older = [getattr(state, f"cached_{k}")[r, c] for k in cache.older(state.cfg)]
        havoc(state.table[r, c], state.table_session[r, c], state.table_op[r, c], state.table_incarnation[r, c], *older)
    havoc(state.slots_used[r], least=0)


@event()
def cut_off(state: Any, e: Any) -> None:
    """The last line of a process: what it did after it, no line shows; a primary may have prepared and committed."""
    r, v = e.node, state.view[e.node]
    with when(all_of(state.status[r] == NORMAL, primary(state, v) == r)):
        with each(between(Op, state.op[r] + 1, state.op[r] + LATE)) as o:
            for name in ("client", "request", "session", "incarnation", "parent"):
                if f"prepare_{name}" in state.schema.vars:
                    havoc(state.cells(f"prepare_{name}")[v, o])
        havoc(state.commit_sent[v], rising=True)


@event(only=several)
def ended_early(state: Any, e: Any) -> None:
    """The last line of a replica, while those of others go on: it died, or its file was cut off."""
    forget(e.node, "lines of a replica end before those of the others")


@event()
def lost(state: Any, e: Any) -> None:
    """A replica took its log and its state from another, or lost what it had."""
    forget(e.node, "a replica took its log and state from another, or lost them: no line shows what it has since")


@event(only=several)
def disagrees(state: Any, e: Any) -> None:
    """A replica finds another entry in its journal than the started view has there, where it takes it for committed."""
    r, o = e.node, e.op
    with when(o <= state.commit_min[r]):
        kept = "what a replica executed is in the log of every later view"
        holds(any_of(not_(shown(e.canonical)), state.executed[r, o] == some(e.canonical)), kept, rule="I2")
        same = "it executed the entry that its journal has"
        holds(any_of(not_(shown(e.entry)), state.executed[r, o] == some(e.entry)), same, rule="I1")


@event(name="state")
def at_end_of_tick(state: Any, e: Any) -> None:
    """The state of a replica at the end of a tick."""
    r = e.node
    reaches(state, r, e.op)
    holds(state.view[r] == e.view, "a replica is in the view that it shows", rule="I6")
    taken_over = "log_view is that of the last view whose log the replica took over"
    holds(state.log_view[r] == e.log_view, taken_over, rule="I12")
    holds(any_of(leading(state, r), state.op[r] == e.op), "its head is the end of its log", rule="I5")
    holds(state.commit_min[r] == e.commit_min, "it executed what its lines say", rule="I4")


@event()
def journal(state: Any, e: Any) -> None:
    """The journal has an entry now: it is the next of its view, or it was fetched."""
    r, o = e.node, e.op
    with when(shown(e.entry)):
        with when(all_of(e.entry == state.view[r], o == state.op[r] + 1)):
            reaches(state, r, o)
        with when(state.body[r, o] != some(e.entry)):
            step(as_built.fill_slot, r=r, o=o, w=e.entry)


@event()
def executed_entry(state: Any, e: Any) -> None:
    """The entry that a replica executed is the one that the specification executed there."""
    r, o = e.node, e.op
    with when(shown(e.entry)):
        first = any_of(state.first_executed[o] == NONE, state.first_executed[o] == some(e.entry))
        holds(first, "an op is the same entry wherever it is executed", rule="I1")
        own = any_of(state.executed[r, o] == NONE, state.executed[r, o] == some(e.entry))
        holds(own, "it executed the entry of its log", rule="I1")


@event()
def slot(state: Any, e: Any) -> None:
    """A slot of a client table: a function of what was executed."""
    r, c = e.node, e.client
    if not state.cfg.client_table.sessions:
        return
    with when(state.commit_min[r] == e.commit_min):
        same = all_of(state.table_session[r, c] == e.epoch, number_of(state.table[r, c]) == e.mark)
        holds(same, "the client table follows from what was executed", rule="I9")
