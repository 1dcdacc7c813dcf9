"""Lemmas that say: a replica follows the log of its log_view."""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, all_of, any_of, forall, implies, invariant
from viewproof.spec.vsr.core.lemmas.words import each_entry, each_replica, each_view_entry, exists_prepare, started
from viewproof.spec.vsr.core.state import NORMAL, Core, Replica, durable, entry_of_view, primary


@invariant("replicas.log_view_started", "a log_view is a started view")
def log_view_started(s: Core) -> Bool:
    """A replica's log_view is a view that has started, and its log reaches at least what that view started with."""
    return each_replica(lambda r: all_of(started(s, s.log_view[r]), s.sv[s.log_view[r]].op <= s.op[r]))


@invariant("replicas.canonical_log", "a log is its log_view's")
def canonical_log(s: Core) -> Bool:
    """Each entry of a replica's log is the canonical one of its log_view."""
    return each_entry(lambda r, o: any_of(o > s.op[r], s.entry[r, o] == entry_of_view(s, s.log_view[r], o)))


@invariant("replicas.start_durable", "what a view started with is durable")
def start_durable(s: Core) -> Bool:
    """A replica holds durably all that its log_view's start_view carried."""
    return each_entry(lambda r, o: implies(o <= s.sv[s.log_view[r]].op, durable(s, r, o)))


@invariant("replicas.prepared", "an entry was prepared")
def prepared(s: Core) -> Bool:
    """Each entry of a log names a prepare that was sent."""
    return each_entry(lambda r, o: any_of(s.entry[r, o] == NONE, lambda: exists_prepare(s, s.entry[r, o], o)))


@invariant("replicas.primary_has_prepares", "a normal primary's log holds all its prepares")
def primary_has_prepares(s: Core) -> Bool:
    """What was prepared in the view of a normal primary is in its log."""
    return forall(
        Replica,
        lambda r: each_view_entry(
            lambda v, o: implies(
                all_of(s.status[r] == NORMAL, s.view[r] == v, primary(s, v) == r, s.prepare[v, o].sent),
                o <= s.op[r],
            )
        ),
    )


LEMMAS = (log_view_started, canonical_log, start_durable, prepared, primary_has_prepares)
