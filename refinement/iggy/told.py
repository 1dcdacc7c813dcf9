"""What lines mean that change nothing: a replica tells of its log, of what it executed, of its client table."""

from __future__ import annotations

from typing import Any

from viewproof.refinement.events import event, holds, shown, when
from viewproof.refinement.iggy.events import reaches, shows, told
from viewproof.spec.lang import all_of, any_of, not_, number_of, value_of
from viewproof.spec.vsr.core.state import NORMAL, primary


@event()
def replied(state: Any, e: Any) -> None:
    """The primary replies: to whom, and for which request."""
    r, o = e.node, e.op
    shows(state, e)
    holds(o <= state.commit_min[r], "a reply is of what was executed", rule="I4")
    v = value_of(state.executed[r, o])
    unshown = not_(shown(e.client))
    holds(any_of(unshown, state.prepare[v, o].client == e.client), "whose request it is", rule="I8")
    holds(any_of(unshown, state.prepare[v, o].request == e.request), "which request it is", rule="I8")


@event()
def gapped(state: Any, e: Any) -> None:
    """A backup drops a prepare that does not follow its log: it tells where that ends."""
    r = e.node
    reaches(state, r, e.op)
    holds(state.op[r] == e.op, "its head is the end of its log", rule="I5")


@event()
def lagging(state: Any, e: Any) -> None:
    """A replica that may not take a request tells what it executed, and what it knows to be committed."""
    r = e.node
    backup = all_of(state.status[r] == NORMAL, primary(state, state.view[r]) != r)
    with when(all_of(e.commit_max > state.commit_max[r], backup)):
        told(state, r, state.view[r], e.commit_max)
    holds(state.commit_max[r] == e.commit_max, "a commit number is one that a quorum made", rule="I4")
    holds(state.commit_min[r] == e.commit_min, "it executed what its lines say", rule="I4")


@event()
def refused(state: Any, e: Any) -> None:
    """The primary refuses a request that was executed: by the watermark, or by the session, of its client table."""
    if not state.cfg.client_table.sessions:
        return
    r, c = e.node, e.client
    follows = "the client table follows from what was executed"
    with when(shown(e.mark)):
        holds(number_of(state.table[r, c]) == e.mark, follows, rule="I9")
        holds(number_of(e.request) <= e.mark, "only what is below the watermark is refused", rule="I8")
    with when(shown(e.epoch)):
        holds(state.table_session[r, c] == e.epoch, follows, rule="I9")
