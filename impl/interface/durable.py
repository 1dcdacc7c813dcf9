"""What a replica keeps on disk, as plain values (docs/core-protocol.md, "Durable journal and log head").

The storage (`impl.storage`, or the simulated one) writes and recovers these; the replica boots from `DurableState`.

Recovery of the log from a journal:

* the log is the chain that ends at the superblock's (head_op, head_checksum), walked back by `parent` to the entry
  after the snapshot's (op 1 without one); every record of the journal may be part of it;
* it is extended forward by records with `view == log_view`, `parent` = checksum of the head, that were **appended**
  (not written as `repair`, see `impl.interface.effects.AppendPrepares`).

The second condition makes rule 6 hold ("a crash before that write leaves the old log"): a body written for a log that
is still to be installed may well be of the old log_view and fit the old head, yet it does not belong to the old log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare, PrepareHeader
from viewproof.impl.interface.ranges import Clock, Number, Op, Place, View
from viewproof.impl.machine.partition_log import SegmentRef

T = TypeVar("T")


class ConfigurationError(ValueError):
    """A cluster configuration that the protocol does not allow."""


class BootRefusedError(RuntimeError):
    """A replica does not start over its disk, now or (`lost`) ever; it was right to refuse."""

    def __init__(self, message: str, *, lost: bool) -> None:
        super().__init__(message)
        self.lost = lost


@dataclass(frozen=True, slots=True)
class Quorums:
    """Replication quorum q_r and view change quorum q_v, in replicas."""

    replication: int
    view_change: int


def quorums_default(replica_count: int) -> Quorums:
    """Majorities for both quorums."""
    majority = replica_count // 2 + 1
    return Quorums(replication=majority, view_change=majority)


def validate_quorums(quorums: Quorums, replica_count: int) -> None:
    """Refuses quorums out of 1..n or with q_r + q_v ≤ n by `ConfigurationError`."""
    if replica_count < 1:
        raise ConfigurationError(f"replica_count must be at least 1, got {replica_count}")
    for name, value in (("replication", quorums.replication), ("view_change", quorums.view_change)):
        if not 1 <= value <= replica_count:
            raise ConfigurationError(f"quorum_{name} must be in 1..{replica_count}, got {value}")
    if quorums.replication + quorums.view_change <= replica_count:
        raise ConfigurationError(
            f"quorums must intersect: replication {quorums.replication} + view_change {quorums.view_change}"
            f" must be above {replica_count} replicas"
        )


CLIENT_SLOTS_MAX = 1 << 16
"""Largest number of slots of a client table."""


@dataclass(frozen=True, slots=True)
class ClientTableConfig:
    """How the cluster remembers clients; the same on every replica, for ever (docs/clients-and-control.md).

    `slots` 0: one for every client. `sessions`: clients register before their first request. `gaps`: request numbers
    may skip (only without sessions).
    """

    slots: int = 0
    sessions: bool = False
    gaps: bool = False

    def __post_init__(self) -> None:
        """Raises `ConfigurationError`."""
        if not 0 <= self.slots <= CLIENT_SLOTS_MAX:
            raise ConfigurationError(f"client slots must be in 0..{CLIENT_SLOTS_MAX}, got {self.slots}")
        if self.sessions and self.gaps:
            raise ConfigurationError("gaps between request numbers are not allowed with sessions")


CLIENTS_PAPER = ClientTableConfig()
"""The paper: every client has a slot, nobody registers."""

CLIENTS_SESSIONS = ClientTableConfig(slots=64, sessions=True)
"""What a new cluster gets."""


@dataclass(frozen=True, slots=True)
class SuperblockState:
    """The superblock: identity, configuration, views and the log head of log_view.

    `log_view <= view`; `sequence` rises by one with every write; `head_op` and `head_checksum` name the last entry of
    the log when `log_view` was made durable (entries appended later in log_view extend it).

    `checkpoint` is the op of the snapshot that a restart begins at (0: none), `snapshot` its checksum; the log head is
    never below it.

    `group` is the number of the consensus group (`impl.groups.group`) within the cluster.

    `recovery`, unless 0: what this replica promised was lost, and is being recovered from the cluster; the nonce of the
    start_view that ends it (docs/recovery.md). Until then it takes part in nothing. `recoveries` counts how
    often that was begun: what such a replica says of views is no answer for the recovery of another one.

    `clock` is the Lamport clock when the write was asked for: after a crash before the next trace event, the `restart`
    event must still come after the message that the write depends on.
    """

    cluster: int
    replica: int
    replica_count: int
    quorums: Quorums
    view: View = 0
    log_view: View = 0
    head_op: Op = 0
    head_checksum: str = CHECKSUM_NONE
    sequence: Place = 1
    clock: Clock = 0
    clients: ClientTableConfig = CLIENTS_PAPER
    checkpoint: Op = 0
    snapshot: str = ""
    group: int = 0
    recovery: Number = 0
    recoveries: int = 0


OP_UNKNOWN = (1 << 63) - 1
"""`DamagedLog.op_max` of a log of which nothing is known."""


@dataclass(frozen=True, slots=True)
class DamagedLog:
    """What a journal still knows of a log of which it lost prepares.

    `held`: the prepares above the checkpoint that are clean, of the log or not; `known`: headers of prepares that are
    broken or not durable. The log ends at `head_op`, as far as is known; it may have had ops up to `op_max`, equal to
    `head_op` if its head is certain (seed 002, op_certain).
    """

    held: tuple[Prepare, ...]
    known: tuple[PrepareHeader, ...]
    head_op: int
    head_checksum: str
    op_max: int


@dataclass(frozen=True, slots=True)
class DurableState:
    """What recovery returns: the superblock, its snapshot's bytes, and the log above it, chained by parents.

    `snapshot` is empty without a checkpoint, or if it is unreadable; else its checksum is the superblock's. `relics`
    counts records of the journal at or below the checkpoint: a drain was cut short. With `damage` the journal has lost
    some of the log, and `log` is empty. `lost`: segments of messages that the snapshot names and that cannot be read.
    """

    superblock: SuperblockState
    log: tuple[Prepare, ...] = ()
    snapshot: bytes = b""
    relics: int = 0
    damage: DamagedLog | None = None
    lost: tuple[SegmentRef, ...] = ()

    @property
    def unreadable(self) -> bool:
        """True if the executed prefix cannot be loaded from this disk alone."""
        return self.superblock.checkpoint > 0 and (not self.snapshot or bool(self.lost))


def superblock_formatted(
    cluster: int,
    replica: int,
    replica_count: int,
    quorums: Quorums | None = None,
    clients: ClientTableConfig = CLIENTS_PAPER,
    group: int = 0,
) -> SuperblockState:
    """The superblock of a freshly formatted data file; quorums are majorities unless given."""
    return SuperblockState(
        cluster=cluster,
        replica=replica,
        replica_count=replica_count,
        quorums=quorums if quorums is not None else quorums_default(replica_count),
        clients=clients,
        group=group,
    )


def superblock_next(
    superblock: SuperblockState,
    *,
    view: int,
    log_view: int,
    head_op: int,
    head_checksum: str,
    clock: int,
    checkpoint: tuple[int, str] | None = None,
) -> SuperblockState:
    """The superblock to write after `superblock`; `checkpoint`: op and checksum of another snapshot.

    A log of `view` itself ends a recovery: it was installed.
    """
    op, snapshot = (superblock.checkpoint, superblock.snapshot) if checkpoint is None else checkpoint
    return replace(
        superblock,
        checkpoint=op,
        snapshot=snapshot,
        view=view,
        log_view=log_view,
        head_op=head_op,
        head_checksum=head_checksum,
        sequence=superblock.sequence + 1,
        clock=clock,
        recovery=superblock.recovery if log_view < view else 0,
    )


def walk_chain(
    op: int, checksum: str, base: int, held: Mapping[str, T], header_of: Callable[[str], PrepareHeader | None]
) -> tuple[list[T], list[tuple[int, str]]]:
    """What is held of the chain that ends at (op, checksum), above `base`, and (op, checksum) of what is missing of it,
    from its end down: as far as headers are known.
    """
    found: list[T] = []
    missing: list[tuple[int, str]] = []
    while op > base:
        if checksum in held:
            found.append(held[checksum])
        else:
            missing.append((op, checksum))
        header = header_of(checksum)
        if header is None:
            break
        op, checksum = op - 1, header.parent
    found.reverse()
    return found, missing
