"""What can always be reached again: the tractable half of L1 (view changes end) and L2 (requests are answered).

"Can be reached" leaves the choice of steps free: it asks for one behaviour, not for all of them (that would need
fairness), and so finds states in which the protocol is stuck.

The views of a bounded instance end, and a protocol whose timeouts lead to ever later views is stuck at the last one
for no fault of its own: there a primary that crashed cannot be replaced. So the premise of each goal is that a later
view exists for every replica, or that nothing ever crashed. Requests also need as many ops as the clients have
requests in all; an instance with fewer is not asked about them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spec.lang import Instance, Predicate, all_of, any_of, count, exists, forall, invariant, not_, within
from spec.vsr.state import NORMAL, Client, Feature, Op, Replica, Request, View, primary


@dataclass(frozen=True)
class Progress:
    """From every state in which `premise` holds, a state in which `good` holds can be reached."""

    id: str
    title: str
    premise: Predicate
    good: Predicate


@invariant("later_view", "a later view exists, or nothing crashed")
def later_view(s: Any) -> Any:
    """No replica is in the last view of the instance, or no replica ever crashed."""
    return any_of(s.restarts == 0, forall(Replica, lambda r: within(View, s.view[r] + 1)))


@invariant("view_change_ended", "the highest view is normal")
def view_change_ended(s: Any) -> Any:
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
def all_answered(s: Any) -> Any:
    """Every client was sent the reply to its last request."""
    return forall(Client, lambda c: not_(within(Request, s.replies[c] + 1)))


@invariant("caught_up", "every replica has executed all that is committed")
def caught_up(s: Any) -> Any:
    """No replica knows of a commit that some replica has not executed."""
    return forall(Replica, lambda r: forall(Replica, lambda q: s.commit_max[q] <= s.commit_min[r]))


VIEW_CHANGES_END = Progress("L1", "a view change can always end", later_view, view_change_ended)
REQUESTS_ANSWERED = Progress("L2", "every request can be answered", later_view, all_answered)
CATCH_UP = Progress("L2.catch_up", "every replica can catch up", later_view, caught_up)


def goals(instance: Instance) -> tuple[Progress, ...]:
    """The goals that make sense in a bounded instance."""
    ops, clients, requests = (len(instance.members(sort)) for sort in (Op, Client, Request))
    enough = ops >= clients * requests + instance.bounds.get(Feature.name, 0)
    return (VIEW_CHANGES_END, REQUESTS_ANSWERED, CATCH_UP) if enough else (VIEW_CHANGES_END, CATCH_UP)
