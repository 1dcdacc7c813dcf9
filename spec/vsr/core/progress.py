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
    Goal,
    Spec,
    Truth,
    all_of,
    any_of,
    count,
    exists,
    forall,
    invariant,
    joined,
    not_,
    point,
    within,
)
from viewproof.spec.vsr.core.state import NORMAL, Client, Core, Op, Replica, Request, View, primary


@invariant("later_view", "a later view exists, or nothing crashed")
def later_view(s: Core) -> Truth:
    """No replica is in the last view of the instance, or none has a reason to leave the view that it is in."""
    return any_of(needs_no_later_view(s), forall(Replica, lambda r: within(View, s.view[r] + 1)))


@point
def needs_no_later_view(s: Core) -> Truth:
    """No replica ever crashed."""
    return s.restarts == 0


@invariant("view_change_ended", "the highest view is normal")
def view_change_ended(s: Core) -> Truth:
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
def all_answered(s: Core) -> Truth:
    """Every client was sent the reply to its last request, with sessions in one of them; and all of its requests were
    executed.
    """
    return every_client_answered(s)


@joined(all_of)
def every_client_answered(s: Core) -> Truth:
    """Every client was sent the reply to its last request."""
    return forall(Client, lambda c: not_(within(Request, s.replies[c] + 1)))


@invariant("caught_up", "every replica has executed all that is committed")
def caught_up(s: Core) -> Truth:
    """No replica knows of a commit that some replica has not executed."""
    return forall(Replica, lambda r: forall(Replica, lambda q: s.commit_max[q] <= s.commit_min[r]))


VIEW_CHANGES_END = Goal("L1", "a view change can always end", later_view, view_change_ended)
REQUESTS_ANSWERED = Goal("L2", "every request can be answered", later_view, all_answered)
CATCH_UP = Goal("L2.catch_up", "every replica can catch up", later_view, caught_up)


@joined(lambda *ops: sum(ops))
def proposals(s: Spec) -> int:
    """How many ops of a bounded instance are enough for all that can be proposed: each request of each client."""
    return len(s.instance.members(Client)) * len(s.instance.members(Request))


@joined(lambda *each: all(each))
def can_be_asked(s: Spec) -> bool:
    """Is a bounded instance large enough for every request to be answered?"""
    return len(s.instance.members(Op)) >= proposals(s)


def goals(spec: Spec) -> tuple[Goal, ...]:
    """The goals that make sense in a bounded instance."""
    return (VIEW_CHANGES_END, *((REQUESTS_ANSWERED,) if can_be_asked(spec) else ()), CATCH_UP)
