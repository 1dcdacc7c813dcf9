"""What can always be reached again: the tractable half of L1 (view changes end) and L2 (requests are answered).

"Can be reached" leaves the choice of steps free: it asks for one behaviour, not for all of them (that would need
fairness), and so finds states in which the protocol is stuck.

The views of a bounded instance end, and a protocol whose timeouts lead to ever later views is stuck at the last one
for no fault of its own: there a primary that crashed cannot be replaced. So the premise of each goal is that a later
view exists for every replica, or that nothing ever crashed. Requests also need a slot for every client, and as many
ops as the clients have requests and registers in all; an instance with fewer is not asked about them.
"""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Goal,
    Instance,
    Truth,
    all_of,
    any_of,
    count,
    exists,
    forall,
    invariant,
    not_,
    value_of,
    within,
)
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core.state import NORMAL, Client, Feature, Op, Replica, Request, View, primary
from viewproof.spec.vsr.parts.clients import table as client_table
from viewproof.spec.vsr.parts.clients.invariants import was_executed
from viewproof.spec.vsr.parts.clients.state import Clients, Incarnation


@invariant("later_view", "a later view exists, or nothing crashed")
def later_view(s: Clients) -> Truth:
    """No replica is in the last view of the instance, or no replica ever crashed and all journals have room.

    A primary whose ring is too small for the log that it should start with leaves the view to its timeout.
    """
    exists_later = forall(Replica, lambda r: within(View, s.view[r] + 1))
    return exists_later if s.cfg.journal_slots else any_of(s.restarts == 0, exists_later)


@invariant("view_change_ended", "the highest view is normal")
def view_change_ended(s: Clients) -> Truth:
    """Some view, later than none that a replica is in, has a normal primary and a replication quorum of normal
    replicas.
    """
    return exists(
        Replica,
        lambda p: all_of(
            s.status[p] == NORMAL,
            primary(s, s.view[p]) == p,
            forall(Replica, lambda r: s.view[r] <= s.view[p]),
            count(Replica, lambda r: all_of(s.status[r] == NORMAL, s.view[r] == s.view[p])) >= s.cfg.quorum_replication,
        ),
    )


@invariant("all_answered", "every request was answered")
def all_answered(s: Clients) -> Truth:
    """Every client was sent the reply to its last request, with sessions in one of them; and all of its requests were
    executed.
    """
    if s.cfg.client_table.sessions:
        return forall(Client, lambda c: exists(Op, lambda x: session_answered(s, c, x)))
    answered = forall(Client, lambda c: not_(within(Request, s.replies[c] + 1)))
    if not client_table.is_on(s.cfg):
        return answered
    return all_of(answered, forall(Client, lambda c: forall(Request, lambda n: was_executed(s, c, 0, n))))


def session_answered(s: Clients, c: Client, x: Op) -> Truth:
    """Was client c sent the reply to the last request of session x, and were all of them executed?"""
    return all_of(
        s.session_replies[c, x] != NONE,
        lambda: not_(within(Request, value_of(s.session_replies[c, x]) + 1)),
        forall(Request, lambda n: was_executed(s, c, x, n)),
    )


@invariant("caught_up", "every replica has executed all that is committed")
def caught_up(s: Clients) -> Truth:
    """No replica knows of a commit that some replica has not executed."""
    return forall(Replica, lambda r: forall(Replica, lambda q: s.commit_max[q] <= s.commit_min[r]))


VIEW_CHANGES_END = Goal("L1", "a view change can always end", later_view, view_change_ended)
REQUESTS_ANSWERED = Goal("L2", "every request can be answered", later_view, all_answered)
CATCH_UP = Goal("L2.catch_up", "every replica can catch up", later_view, caught_up)


def goals(instance: Instance, cfg: Config) -> tuple[Goal, ...]:
    """The goals that make sense in a bounded instance."""
    ops, clients, requests = (len(instance.members(sort)) for sort in (Op, Client, Request))
    table = cfg.client_table
    own = instance.bounds[Incarnation.name] * (1 + requests) if table.sessions else requests
    needed = clients * own + instance.bounds.get(Feature.name, 0)
    enough = ops >= needed and not 0 < table.slots < clients
    return (VIEW_CHANGES_END, REQUESTS_ANSWERED, CATCH_UP) if enough else (VIEW_CHANGES_END, CATCH_UP)
