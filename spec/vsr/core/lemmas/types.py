"""Lemmas about the shape of a single replica's state."""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, all_of, any_of, implies, invariant, not_
from viewproof.spec.vsr.core.lemmas.words import each_entry, each_replica
from viewproof.spec.vsr.core.state import NORMAL, RECOVERING, VIEW_CHANGE, Core, durable, primary


@invariant("types.durable_views", "durable views are the views")
def durable_views(s: Core) -> Bool:
    """Between steps the superblock holds the replica's view and log_view."""
    return each_replica(lambda r: all_of(s.durable_view[r] == s.view[r], s.durable_log_view[r] == s.log_view[r]))


@invariant("types.log_view", "log_view ≤ view, equal when normal")
def log_view(s: Core) -> Bool:
    """A replica's log_view is at most its view; a normal replica's are equal."""
    return each_replica(
        lambda r: all_of(
            s.log_view[r] <= s.view[r],
            implies(s.status[r] == NORMAL, s.log_view[r] == s.view[r]),
        )
    )


@invariant("types.status", "who is in a view change")
def status(s: Core) -> Bool:
    """Nobody is recovering; a backup whose log_view is its view is normal (a restarted primary need not be)."""
    return each_replica(
        lambda r: all_of(
            s.status[r] != RECOVERING,
            implies(
                all_of(s.status[r] == VIEW_CHANGE, s.log_view[r] == s.view[r]),
                primary(s, s.view[r]) == r,
            ),
        )
    )


@invariant("types.log_length", "a log has an entry at exactly the ops up to its length")
def log_length(s: Core) -> Bool:
    """A replica knows an entry at each op of its log, and none above; only what is known is durable."""
    return each_entry(
        lambda r, o: all_of(
            any_of(o <= s.op[r], s.entry[r, o] == NONE),
            any_of(o > s.op[r], s.entry[r, o] != NONE),
            implies(s.written[r, o], o <= s.op[r]),
        )
    )


@invariant("types.durable_prefix", "what is durable is a prefix of the log")
def durable_prefix(s: Core) -> Bool:
    """Before a durable entry all entries are durable; so are all executed ones."""
    return each_entry(
        lambda r, o: all_of(
            any_of(o == 1, not_(s.written[r, o]), lambda: durable(s, r, o - 1)),
            implies(o <= s.commit_min[r], durable(s, r, o)),
        )
    )


LEMMAS = (durable_views, log_view, status, log_length, durable_prefix)
