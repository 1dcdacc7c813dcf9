"""What a replica starts with, in one piece: at boot, and when it installs a snapshot (seed 003, I13).

Nothing is executed here: what lies above the snapshot is only known to be in the log, not to be committed.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.impl.interface.durable import DurableState, SuperblockState
from viewproof.impl.interface.messages import PrepareHeader
from viewproof.impl.machine.snapshot import Snapshot, SnapshotError, checksum_snapshot, decode_snapshot
from viewproof.impl.machine.state_machine import StateError, StateMachine
from viewproof.impl.replica.client_table import ClientTable, TableError
from viewproof.impl.replica.config import ReplicaConfig
from viewproof.impl.replica.features import FeatureState, require_supported


@dataclass(frozen=True, slots=True)
class Restored:
    """The executed prefix up to `op`: 0 and all empty without a snapshot. `header` is that of the entry at `op`."""

    header: PrepareHeader | None
    state_machine: StateMachine
    client_table: ClientTable
    enabled: FeatureState
    snapshot: Snapshot | None

    @property
    def op(self) -> int:
        """commit_min and commit_max of a replica that starts with it."""
        return 0 if self.header is None else self.header.op


def restore_nothing(superblock: SuperblockState, config: ReplicaConfig) -> Restored:
    """The empty prefix."""
    node, faults = superblock.replica, config.faults
    table = ClientTable(superblock.clients, faults, node)
    return Restored(
        None,
        StateMachine(config.plane, config.segment_bytes, config.namespace),
        table,
        FeatureState(_map_order(node, faults)),
        None,
    )


def restore_snapshot(snapshot: Snapshot, superblock: SuperblockState, config: ReplicaConfig) -> Restored:
    """The prefix in a snapshot. Raises `SnapshotError` if it is damaged or not one of this cluster's.

    Raises `UnknownEntryError` if a feature is enabled in it that this replica does not support.
    """
    found = checksum_snapshot(snapshot.data)
    if found != snapshot.checksum:
        raise SnapshotError(f"snapshot of op {snapshot.op}: checksum {found}, expected {snapshot.checksum}")
    contents = decode_snapshot(snapshot.data, cluster=superblock.cluster, op=snapshot.op)
    node, faults = superblock.replica, config.faults
    try:
        restored = Restored(
            contents.header,
            StateMachine.from_bytes(contents.state_machine, config.plane, config.segment_bytes, config.namespace),
            ClientTable.from_bytes(contents.client_table, superblock.clients, faults, node),
            FeatureState.from_bytes(contents.features, _map_order(node, faults)),
            snapshot,
        )
    except (StateError, TableError) as error:
        raise SnapshotError(f"snapshot of op {snapshot.op}: {error}") from error
    require_supported(restored.enabled.ops, config.supports)
    return restored


def restore_durable(durable: DurableState, config: ReplicaConfig) -> Restored:
    """What the superblock refers to. Raises as `restore_snapshot`."""
    superblock = durable.superblock
    if superblock.checkpoint == 0:
        return restore_nothing(superblock, config)
    snapshot = Snapshot(superblock.checkpoint, superblock.snapshot, durable.snapshot)
    return restore_snapshot(snapshot, superblock, config)


def _map_order(node: int, faults: frozenset[str]) -> int | None:
    return node if "control.map_order_digest" in faults else None
