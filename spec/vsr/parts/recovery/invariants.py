"""What holds of views over crashes, per way of recovery."""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, all_of, any_of, exists, forall, implies, invariant, witness
from viewproof.spec.vsr.core.state import NORMAL, RECOVERING, Op, Replica, View
from viewproof.spec.vsr.parts.recovery.nonce import Recovering


def acknowledged_in(s: Recovering, v: View, r: Replica) -> Bool:
    """After the step: did r acknowledge anything in view v?"""
    return exists(Op, lambda o: s.after.ack[v, r, o] != NONE)


def nacked_in(s: Recovering, v: View, r: Replica) -> Bool:
    """After the step: did r nack anything in view v?"""
    return exists(Op, lambda o: s.after.nack_sent[v, r, o] != NONE)


@invariant("I6", "view_monotone")
def promises_kept(s: Recovering) -> Bool:
    """A replica that is not recovering is in no view below one in which it sent a do_view_change or a nack, or was
    normal, over crashes too; view and log_view rise otherwise; log_view ≤ view.
    """
    return forall(
        Replica,
        lambda r: all_of(
            s.durable_view[r] <= s.after.durable_view[r],
            any_of(
                s.after.status[r] == RECOVERING,
                all_of(
                    s.view[r] <= s.after.view[r],
                    s.log_view[r] <= s.after.log_view[r],
                    s.durable_view[r] <= s.after.view[r],
                ),
            ),
            s.after.log_view[r] <= s.after.view[r],
            forall(
                View,
                lambda v: implies(
                    any_of(s.after.dvc[v, r].sent, nacked_in(s, v, r), acknowledged_in(s, v, r)),
                    v <= s.after.durable_view[r],
                ),
            ),
        ),
    )


@invariant("I6", "view_monotone")
def superblock_leads(s: Recovering) -> Bool:
    """What the superblock says of view and log_view never falls; in memory they are at or above it, and fall only to
    it, at a restart; no do_view_change is above the durable view, no acknowledgement above the durable log_view.
    """
    return forall(
        Replica,
        lambda r: all_of(
            s.durable_view[r] <= s.after.durable_view[r],
            s.durable_log_view[r] <= s.after.durable_log_view[r],
            s.after.durable_view[r] <= s.after.view[r],
            s.after.durable_log_view[r] <= s.after.log_view[r],
            s.after.log_view[r] <= s.after.view[r],
            any_of(
                all_of(s.view[r] <= s.after.view[r], s.log_view[r] <= s.after.log_view[r]),
                s.after.restarts == s.restarts + 1,
            ),
            forall(
                View,
                lambda v: all_of(
                    implies(s.after.dvc[v, r].sent, v <= s.after.durable_view[r]),
                    implies(acknowledged_in(s, v, r), v <= s.after.durable_log_view[r]),
                ),
            ),
        ),
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
