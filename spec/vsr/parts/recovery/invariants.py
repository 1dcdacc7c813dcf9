"""What holds of views over crashes, per way of recovery."""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, all_of, any_of, exists, implies, witness
from viewproof.spec.vsr.core.state import NORMAL, RECOVERING, Op, Replica, View
from viewproof.spec.vsr.parts.recovery.nonce import Recovering


def acknowledged_in(s: Recovering, v: View, r: Replica) -> Bool:
    """After the step: did r acknowledge anything in view v?"""
    return exists(Op, lambda o: s.after.ack[v, r, o] != NONE)


def nacked_in(s: Recovering, v: View, r: Replica) -> Bool:
    """After the step: did r nack anything in view v?"""
    return exists(Op, lambda o: s.after.nack_sent[v, r, o] != NONE)


def is_recovering(s: Recovering, r: Replica) -> Bool:
    """A replica that is recovering does not know its view."""
    return s.after.status[r] == RECOVERING


def rises_to_durable(s: Recovering, r: Replica) -> tuple[Bool, ...]:
    """The durable view never falls, and a replica that is not recovering is in none below it."""
    return (
        s.durable_view[r] <= s.after.durable_view[r],
        any_of(s.after.status[r] == RECOVERING, s.durable_view[r] <= s.after.view[r]),
    )


def is_promise_kept(s: Recovering, v: View, r: Replica) -> Bool:
    """After the step: a do_view_change, a nack or an acknowledgement of r in view v is not above its durable view."""
    said = any_of(s.after.dvc[v, r].sent, nacked_in(s, v, r), acknowledged_in(s, v, r))
    return implies(said, v <= s.after.durable_view[r])


def restarts(s: Recovering, r: Replica) -> Bool:
    """In memory view and log_view fall to those of the superblock at a restart."""
    return s.after.restarts == s.restarts + 1


def superblock_leads(s: Recovering, r: Replica) -> tuple[Bool, ...]:
    """What the superblock says of view and log_view never falls; in memory they are at or above it."""
    return (
        s.durable_view[r] <= s.after.durable_view[r],
        s.durable_log_view[r] <= s.after.durable_log_view[r],
        s.after.durable_view[r] <= s.after.view[r],
        s.after.durable_log_view[r] <= s.after.log_view[r],
    )


def is_promise_durable(s: Recovering, v: View, r: Replica) -> Bool:
    """After the step: r sent no do_view_change above its durable view, no acknowledgement above its log_view there."""
    return all_of(
        implies(s.after.dvc[v, r].sent, v <= s.after.durable_view[r]),
        implies(acknowledged_in(s, v, r), v <= s.after.durable_log_view[r]),
    )


@witness("I6.recovered", "a replica is normal after a crash, in a later view")
def recovered_later(s: Recovering) -> Bool:
    """After a crash a replica is normal in a view above the first."""
    return all_of(
        s.restarts > 0, exists(Replica, lambda r: all_of(s.nonce[r] > 0, s.status[r] == NORMAL, s.view[r] > 0))
    )


@witness("I6.head", "a replica is unsure of its head")
def unsure_of_head(s: Recovering) -> Bool:
    """After a crash a broken slot may hold an op above the log."""
    return exists(Replica, lambda r: s.status[r] == RECOVERING)
