"""Lemmas about checkpoints: a snapshot is that of a committed prefix, wherever it is."""

from __future__ import annotations

from typing import Any

from spec.lang import Predicate, all_of, any_of, between, forall, implies, invariant, not_
from spec.vsr.config import Config
from spec.vsr.invariants import last_request
from spec.vsr.lemmas.control import features_as_of
from spec.vsr.lemmas.words import chosen_up_to, each_entry, each_replica, each_view_entry, started
from spec.vsr.snapshot import drained as drained_up_to
from spec.vsr.state import Client, Op, entry_of_view


@invariant("checkpoint.drained", "the journal is drained")
def drained(s: Any) -> Any:
    """A journal holds nothing up to the op up to which it is drained, which is at most the checkpoint."""
    return each_entry(
        lambda r, o: all_of(
            any_of(o > drained_up_to(s, r), not_(s.written[r, o])), drained_up_to(s, r) <= s.checkpoint[r]
        )
    )


@invariant("checkpoint.log_fits", "a log fits into the ring")
def log_fits(s: Any) -> Any:
    """A log ends at most as many ops above what is drained as the journal has slots."""
    return each_replica(lambda r: s.op[r] <= drained_up_to(s, r) + s.cfg.journal_slots)


@invariant("checkpoint.saved_table", "a durable client table is that of the snapshot's op")
def saved_table(s: Any) -> Any:
    """The client table in a replica's snapshot is that of what was executed up to its checkpoint."""
    return each_replica(lambda r: forall(Client, lambda c: s.saved_table[r, c] == last_request(s, c, s.checkpoint[r])))


@invariant("checkpoint.saved_features", "durable features are those of the snapshot's op")
def saved_features(s: Any) -> Any:
    """The features in a replica's snapshot are those of what was executed up to its checkpoint."""
    return each_replica(
        lambda r: features_as_of(s, s.checkpoint[r], lambda f: s.saved_enabled_at[r, f], s.saved_chain_from[r])
    )


@invariant("checkpoint.sent_prefix", "a snapshot sent is of a committed prefix")
def sent_prefix(s: Any) -> Any:
    """Each op up to that of a snapshot sent in a view was chosen there or before, was executed, and is in its log."""
    return each_view_entry(
        lambda v, k: implies(
            s.snapshot[v, k],
            lambda: all_of(
                started(s, v),
                forall(
                    between(Op, 1, k),
                    lambda o: all_of(
                        chosen_up_to(s, v, o),
                        s.first_executed[o] != 0,
                        s.first_executed[o] == entry_of_view(s, v, o),
                    ),
                ),
            ),
        )
    )


@invariant("checkpoint.sent_table", "a client table sent is that of the snapshot's op")
def sent_table(s: Any) -> Any:
    """The client table in a snapshot sent is that of what was executed up to its op."""
    return each_view_entry(
        lambda v, k: implies(
            s.snapshot[v, k], lambda: forall(Client, lambda c: s.snapshot_table[v, k, c] == last_request(s, c, k))
        )
    )


@invariant("checkpoint.sent_features", "features sent are those of the snapshot's op")
def sent_features(s: Any) -> Any:
    """The features in a snapshot sent are those of what was executed up to its op."""
    return each_view_entry(
        lambda v, k: implies(
            s.snapshot[v, k],
            lambda: features_as_of(s, k, lambda f: s.snapshot_enabled_at[v, k, f], s.snapshot_chain_from[v, k]),
        )
    )


def lemmas(cfg: Config) -> tuple[Predicate, ...]:
    """Those that the configuration needs."""
    ring = (log_fits,) if cfg.journal_slots else ()
    of_features = (saved_features, sent_features) if cfg.features else ()
    return (drained, *ring, saved_table, sent_prefix, sent_table, *of_features)
