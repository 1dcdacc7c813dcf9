"""What a replica starts with, in one piece: at boot, and when it installs a snapshot (seed 003, I13).

Nothing is executed here: what lies above the snapshot is only known to be in the log, not to be committed.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.impl.interface.durable import DurableState, SuperblockState
from viewproof.impl.interface.messages import PrepareHeader
from viewproof.impl.machine.partition_log import NoSegments, SegmentRef, SegmentSource
from viewproof.impl.machine.snapshot import Contents, Snapshot, SnapshotError, checksum_snapshot, decode_snapshot
from viewproof.impl.machine.state_machine import StateError, StateMachine, decode_state
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


class Restorer:
    """Reads what a replica starts with, as its superblock and configuration have it; segments from `source`."""

    def __init__(
        self,
        superblock: SuperblockState,
        config: ReplicaConfig,
        *,
        client_table: type[ClientTable] = ClientTable,
        features: type[FeatureState] = FeatureState,
        source: SegmentSource | None = None,
    ) -> None:
        self.source = source or NoSegments()
        self.superblock = superblock
        self.config = config
        self.client_table = client_table
        self.features = features

    def nothing(self) -> Restored:
        """The empty prefix."""
        config = self.config
        machine = StateMachine(config.plane, config.segment_bytes, config.namespace, self.source)
        return Restored(None, machine, self.client_table(self.superblock.clients), self.features(), None)

    def contents(self, snapshot: Snapshot) -> Contents:
        """What is in a snapshot. Raises `SnapshotError` if it is damaged or not one of this cluster's."""
        found = checksum_snapshot(snapshot.data)
        if found != snapshot.checksum:
            raise SnapshotError(f"snapshot of op {snapshot.op}: checksum {found}, expected {snapshot.checksum}")
        return decode_snapshot(snapshot.data, cluster=self.superblock.cluster, op=snapshot.op)

    def segments(self, snapshot: Snapshot) -> tuple[SegmentRef, ...]:
        """The segments that a snapshot names. Raises `SnapshotError`."""
        try:
            state = decode_state(self.contents(snapshot).state_machine)
        except StateError as error:
            raise SnapshotError(f"snapshot of op {snapshot.op}: {error}") from error
        return tuple(ref for _, refs in state.partitions for ref in refs)

    def snapshot(self, snapshot: Snapshot) -> Restored:
        """The prefix in a snapshot. Raises `SnapshotError` if it is damaged or not one of this cluster's.

        Raises `SegmentLostError` if the last segment of a partition cannot be read, `UnknownEntryError` if a feature is
        enabled in it that this replica does not support.
        """
        config, contents = self.config, self.contents(snapshot)
        try:
            restored = Restored(
                contents.header,
                StateMachine.from_bytes(
                    contents.state_machine, config.plane, config.segment_bytes, config.namespace, self.source
                ),
                self.client_table.from_bytes(contents.client_table, self.superblock.clients),
                self.features.from_bytes(contents.features),
                snapshot,
            )
        except (StateError, TableError) as error:
            raise SnapshotError(f"snapshot of op {snapshot.op}: {error}") from error
        require_supported(restored.enabled.ops, config.supports)
        return restored

    def durable(self, durable: DurableState) -> Restored:
        """What the superblock refers to, nothing if its snapshot is unreadable, or a segment. Raises as `snapshot`."""
        block = durable.superblock
        if block.checkpoint == 0 or durable.unreadable:
            return self.nothing()
        return self.snapshot(Snapshot(block.checkpoint, block.snapshot, durable.snapshot))
