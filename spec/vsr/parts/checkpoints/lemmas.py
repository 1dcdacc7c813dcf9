"""Lemmas about checkpoints: a snapshot is that of a committed prefix, wherever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from viewproof.spec.lang import NONE, Bool, Predicate, all_of, any_of, between, forall, implies, invariant, not_
from viewproof.spec.vsr.core.invariants import last_request
from viewproof.spec.vsr.core.lemmas.words import chosen_up_to, each_entry, each_replica, each_view_entry, started
from viewproof.spec.vsr.core.state import Client, Op, Replica, entry_of_view, executed_state, primary
from viewproof.spec.vsr.parts.checkpoints.snapshot import Checkpoints
from viewproof.spec.vsr.parts.checkpoints.snapshot import drained as drained_up_to
from viewproof.spec.vsr.parts.clients import table as client_table
from viewproof.spec.vsr.parts.clients.invariants import as_told, slot
from viewproof.spec.vsr.parts.clients.lemmas import slots_counted
from viewproof.spec.vsr.parts.control import features_as_of
from viewproof.spec.vsr.parts.partitions.lemmas import partitions_as_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


class _Cells:
    """Cells of a snapshot, read with a replica for an index in place of what says which snapshot."""

    def __init__(self, cells: Any, snapshot: tuple[Any, ...]) -> None:
        self.cells = cells
        self.snapshot = snapshot

    def __getitem__(self, raw: Any) -> Any:
        rest = raw[1:] if isinstance(raw, tuple) else ()
        index = (*self.snapshot, *rest)
        return self.cells[index if len(index) > 1 else index[0]]


class _Limit:
    """The op of a snapshot, in place of every replica's commit_min."""

    def __init__(self, op: Op) -> None:
        self.op = op

    def __getitem__(self, r: Replica) -> Any:
        return self.op


class InSnapshot:
    """The state, in which a snapshot stands for what a replica has executed, and its op for commit_min."""

    def __init__(self, s: Any, prefix: str, snapshot: tuple[Any, ...], op: Op) -> None:
        self._s = s
        self._prefix = prefix
        self._snapshot = snapshot
        self.commit_min = _Limit(op)

    def __getattr__(self, name: str) -> Any:
        if name not in executed_state(self._s):
            return getattr(self._s, name)
        return _Cells(getattr(self._s, self._prefix + name), self._snapshot)


def as_executed(s: Any, r: Replica) -> Bool:
    """Is what r holds that of what was executed up to its commit_min: client table, features, checksum chain?"""
    if client_table.is_on(s.cfg):
        parts = [forall(Client, lambda c: as_told(s, r, c, slot(s, s.commit_min[r], c)))]
        parts += [slots_counted(s, r)] if s.cfg.client_table.slots else []
    else:
        parts = [forall(Client, lambda c: s.table[r, c] == last_request(s, c, s.commit_min[r]))]
    parts += [features_as_of(s, r)] if s.cfg.features else []
    return all_of(*parts, *([partitions_as_of(s, r)] if s.cfg.partitions.count else []))


@invariant("checkpoint.drained", "the journal is drained")
def drained(s: Checkpoints) -> Bool:
    """A journal holds nothing up to the op up to which it is drained, which is at most the checkpoint."""
    return each_entry(
        lambda r, o: all_of(
            any_of(o > drained_up_to(s, r), not_(s.written[r, o])), drained_up_to(s, r) <= s.checkpoint[r]
        )
    )


@invariant("checkpoint.log_fits", "a log fits into the ring")
def log_fits(s: Checkpoints) -> Bool:
    """A log ends at most as many ops above what is drained as the journal has slots."""
    return each_replica(lambda r: s.op[r] <= drained_up_to(s, r) + s.cfg.journal_slots)


@invariant("checkpoint.saved", "a durable snapshot is that of its op")
def saved(s: Checkpoints) -> Bool:
    """What is in a replica's snapshot is that of what was executed up to its checkpoint."""
    return each_replica(lambda r: as_executed(InSnapshot(s, "saved_", (r,), s.checkpoint[r]), r))


@invariant("checkpoint.sent_prefix", "a snapshot sent is of a committed prefix")
def sent_prefix(s: Checkpoints) -> Bool:
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
                        s.first_executed[o] != NONE,
                        s.first_executed[o] == entry_of_view(s, v, o),
                    ),
                ),
            ),
        )
    )


@invariant("checkpoint.sent", "a snapshot sent is that of its op")
def sent(s: Checkpoints) -> Bool:
    """What is in a snapshot sent is that of what was executed up to its op."""
    return each_view_entry(
        lambda v, k: implies(
            s.snapshot[v, k], lambda: as_executed(InSnapshot(s, "snapshot_", (v, k), k), primary(s, v))
        )
    )


def lemmas(cfg: Config) -> tuple[Predicate, ...]:
    """Those that the configuration needs."""
    return (drained, *((log_fits,) if cfg.journal_slots else ()), saved, sent_prefix, sent)
