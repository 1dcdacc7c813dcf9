"""The simulated data file of one replica: durable semantics of `impl.interface.durable`, with latency and torn writes.

A crash during a journal write leaves a random number of its bytes: whole records survive, the one that is cut is torn
and dropped at recovery. A crash during any other write leaves what was before or what was to be.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from viewproof.impl.interface.durable import BootRefusedError, DurableState, SuperblockState
from viewproof.impl.interface.effects import (
    AppendPrepares,
    DrainJournal,
    IoEffect,
    ReadSegment,
    WriteSegment,
    WriteSnapshot,
    WriteSuperblock,
)
from viewproof.impl.interface.messages import Prepare
from viewproof.impl.machine.partition_log import Key, SegmentLostError, SegmentRef
from viewproof.impl.machine.snapshot import checksum_snapshot
from viewproof.impl.replica import Replica
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.segment_files import DAMAGES, SegmentFiles
from viewproof.impl.storage.segments import SegmentFileError, SegmentStore

_NAMES: dict[type, str] = {
    WriteSuperblock: "superblock",
    WriteSnapshot: "snapshot",
    WriteSegment: "segment",
    DrainJournal: "drain",
}

WRITES: dict[type, str] = {
    AppendPrepares: "appends",
    DrainJournal: "drains",
    WriteSnapshot: "snapshots",
    WriteSegment: "segments_fetched",
    ReadSegment: "segments_scrubbed",
    WriteSuperblock: "superblock_writes",
}
"""Name of each kind of durable write in the statistics."""

RECORD_HEADER_BYTES = 128
"""Size of a record's header, bytes: what a torn write is measured against."""


class StorageError(RuntimeError):
    """The log that the superblock names is not in the journal: a promise of the replica or the storage was broken."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the journal."""

    prepare: Prepare
    repair: bool


class SimStorage:
    """Journal, superblock and snapshots in memory. A write is durable only when its completion was reported.

    What a crash left of a write in flight is durable once the next boot has synced it. `segments` keeps the
    messages of partitions. `slow`: each write takes long; `full`: the disk refuses them. `unreadable`: the
    superblock was damaged beyond repair. `outdated`: why no process starts on it any more.
    """

    def __init__(
        self,
        superblock: SuperblockState,
        profile: SimProfile,
        random: Random,
        statistics: dict[str, int],
        segments: type[SegmentStore] = SegmentStore,
    ) -> None:
        self.formatted = superblock
        self.superblock = superblock
        self.profile = profile
        self.random = random
        self.statistics = statistics
        self.records: list[Record] = []
        self.snapshots: dict[int, tuple[str, bytes]] = {}
        self.segments = SegmentFiles(segments, superblock.replica, alone=superblock.replica_count == 1)
        self.full = False
        self.slow = False
        self.unreadable = False
        self.outdated = ""
        self.snapshot_damaged = False
        self.torn = False
        self.survivors: list[Record] = []
        self.unsynced: list[Record] = []
        self.in_flight: list[IoEffect] = []

    def start(self, io: IoEffect) -> int:
        """Begins a write; returns its latency in ticks, at least 1."""
        self.in_flight.append(io)
        profile, random = self.profile, self.random
        if self.slow:
            return random.randint(profile.slow_write_ticks_max // 2, profile.slow_write_ticks_max)
        if profile.slow_write and random.random() < profile.slow_write:
            self.statistics["writes_slow"] += 1
            return random.randint(1, profile.slow_write_ticks_max)
        slowest = profile.append_ticks_max if isinstance(io, AppendPrepares) else profile.superblock_ticks_max
        return random.randint(1, slowest)

    def finish(self, io: IoEffect) -> None:
        """The write is durable. Raises SegmentLostError if a snapshot names what is neither on disk nor in memory."""
        self._take_effect(io)
        self.in_flight.remove(io)

    def holds(self, op: int, checksum: str) -> bool:
        """True if the entry is durable here, as a record or in the snapshot in use."""
        for record in reversed(self.records):
            if record.prepare.header.checksum == checksum:
                return not any(record is lost for lost in self.unsynced)
        return op <= self.superblock.checkpoint

    def failure(self, io: IoEffect) -> str | None:
        """Why a write that ends now fails, or None. Nothing of it counts then."""
        profile = self.profile
        if isinstance(io, ReadSegment):
            return None
        if isinstance(io, WriteSuperblock):
            probability, reason = profile.superblock_failure, "I/O error"
        elif self.full:
            return "disk full"
        elif isinstance(io, AppendPrepares):
            probability, reason = profile.append_failure, "short write"
        elif isinstance(io, WriteSnapshot | WriteSegment):
            probability, reason = profile.snapshot_failure, "I/O error"
        else:
            probability, reason = profile.drain_failure, "I/O error"
        return reason if probability and self.random.random() < probability else None

    def fail(self, io: IoEffect) -> None:
        """The write has failed; what it wrote was taken back."""
        self.in_flight.remove(io)

    def _append(self, io: AppendPrepares) -> None:
        """The entries take their slots: op modulo `journal_slots`. A slot must be free of entries of lower ops."""
        slots = self.profile.journal_slots
        oldest = io.prepares[-1].header.op - slots
        if not io.repair and oldest > 0 and self.profile.checkpoint_interval:
            self.statistics["journal_wrapped"] += 1
            self.require_free(oldest, io.prepares[-1].header.op)
        self.records += [Record(prepare, io.repair) for prepare in io.prepares]

    def require_free(self, oldest: int, op: int) -> None:
        """Raises StorageError if the journal has records up to `oldest`, in whose slots go those up to `op`."""
        below = [record.prepare.header.op for record in self.records if record.prepare.header.op <= oldest]
        if below:
            raise StorageError(
                f"replica {self.superblock.replica}: op {op} takes one of {self.profile.journal_slots} slots,"
                f" that of op {min(below)}, which is not drained"
            )

    def _take_effect(self, io: IoEffect) -> None:
        if isinstance(io, AppendPrepares):
            self._append(io)
        elif isinstance(io, WriteSnapshot):
            self._strike_running([(segment.namespace, segment.base) for segment in io.held])
            try:
                self.segments.store.store(io.data, io.held)
            except SegmentFileError as error:
                raise StorageError(f"replica {self.superblock.replica}: {error}") from error
            self.segments.struck.clear()
            self.snapshots[io.op] = (io.checksum, io.data)
            self.snapshot_damaged &= io.op != self.superblock.checkpoint
        elif isinstance(io, WriteSegment):
            self.segments.mend(io.ref, io.content)
        elif isinstance(io, ReadSegment):
            self.segments.store.verify(io.ref)
        elif isinstance(io, DrainJournal):
            self._drain(io.op, stale=io.stale)
            self.unsynced = []
        else:
            self.snapshot_damaged &= io.superblock.checkpoint == self.superblock.checkpoint
            self.superblock = io.superblock

    def _strike_running(self, memory: list[Key]) -> None:
        """Now and then a segment or an index vanishes, is cut or altered, while the process runs."""
        vanish, kinds = self.profile.vanish, self.profile.vanish_kinds
        if vanish and self.random.random() < vanish and (done := self.segments.strike(self.random, memory, kinds)):
            self.statistics[f"{done} while running"] += 1

    def _drain(self, op: int, *, stale: bool) -> None:
        if self.superblock.checkpoint < op:
            raise StorageError(
                f"replica {self.superblock.replica}: drain of op {op}, the checkpoint is {self.superblock.checkpoint}"
            )
        kept = [record for record in self.records if record.prepare.header.op > op]
        if stale:
            log = {prepare.header.checksum for prepare in self._log()}
            kept = [record for record in kept if record.prepare.header.checksum in log]
        self.records = kept
        self.snapshots = {at: snapshot for at, snapshot in self.snapshots.items() if at >= op}

    def crash(self) -> None:
        """The process dies: of each write in flight a part may have reached the disk, what was never synced is gone."""
        self.records = [record for record in self.records if not any(record is lost for lost in self.unsynced)]
        self.survivors, self.unsynced, self.torn = [], [], False
        for io in self.in_flight:
            if isinstance(io, AppendPrepares):
                self._crash_append(io)
                continue
            if isinstance(io, ReadSegment):
                continue
            name = _NAMES[type(io)]
            if self.random.random() < 0.5:
                with contextlib.suppress(SegmentLostError):
                    self._take_effect(io)
                self.statistics[f"crash_{name}_new"] += 1
            else:
                self.statistics[f"crash_{name}_old"] += 1
        self.in_flight = []
        self.segments.crash()

    def _crash_append(self, io: AppendPrepares) -> None:
        sizes = [RECORD_HEADER_BYTES + len(prepare.body) for prepare in io.prepares]
        left = sum(sizes) if self.random.random() < 0.25 else self.random.randint(0, sum(sizes))
        for prepare, size in zip(io.prepares, sizes, strict=True):
            if size > left:
                self.torn = left > 0
                self.statistics["crash_append_torn" if left else "crash_append_cut"] += 1
                return
            left -= size
            self.survivors.append(Record(prepare, io.repair))
            self.records.append(self.survivors[-1])
        self.statistics["crash_append_whole"] += 1

    def recover(self) -> DurableState:
        """Superblock, snapshot and log (rules in `impl.interface.durable`).

        Raises `StorageError` if one of them is not there although it was durable, `BootRefusedError` if the disk has
        failed.
        """
        self._open()
        data, lost = self._snapshot_in_use()
        superblock = self.superblock
        checkpoint = superblock.checkpoint
        found = self.log_at_boot()
        log = tuple(Prepare(prepare.header, prepare.body) for prepare in found)
        relics = sum(record.prepare.header.op <= checkpoint for record in self.records)
        self._drain(checkpoint, stale=False)
        self.snapshots = {op: snapshot for op, snapshot in self.snapshots.items() if op == checkpoint}
        return DurableState(superblock, log, data, relics, None, lost)

    def _snapshot_in_use(self) -> tuple[bytes, tuple[SegmentRef, ...]]:
        """The snapshot in use, empty without one and if it is lost; those of its segments that are lost."""
        superblock = self.superblock
        checkpoint = superblock.checkpoint
        if checkpoint == 0:
            return b"", ()
        checksum, content = self.snapshots.get(checkpoint, ("", b""))
        if checksum != superblock.snapshot:
            if not self.snapshot_damaged:
                raise StorageError(f"replica {superblock.replica}: no snapshot of op {checkpoint}")
            return b"", ()
        try:
            loaded, mended = self.segments.load(content)
        except SegmentFileError as error:
            raise StorageError(f"replica {superblock.replica}: {error}") from error
        self.statistics["indexes_rebuilt"] += mended
        if loaded.lost and not self.snapshot_damaged and not self.segments.explains(loaded.lost):
            reasons = "; ".join(loaded.problems)
            raise StorageError(f"replica {superblock.replica}: the snapshot of op {checkpoint} names: {reasons}")
        self.statistics["segments_lost"] += len(loaded.lost)
        found = checksum_snapshot(loaded.data)
        if found != superblock.snapshot and self.segments.store.is_whole(found, superblock.snapshot):
            self.superblock = replace(superblock, snapshot=found)
            self.snapshots[checkpoint] = (found, loaded.data)
        return loaded.data, loaded.lost

    def damage_snapshot(self) -> bool:
        """The snapshot in use, or a segment of it, cannot be read any more; false if there is none that can."""
        checkpoint = self.superblock.checkpoint
        if checkpoint == 0 or self.snapshot_damaged:
            return False
        kind = self.segments.damage(self.snapshots.get(checkpoint, ("", b""))[1])
        self.statistics[f"damaged: {kind}"] += 1
        if kind == DAMAGES[0]:
            self.snapshots.pop(checkpoint, None)
        self.snapshot_damaged = True
        return True

    def _open(self) -> None:
        """What opening finds of the disk's failures."""
        if self.outdated:
            raise BootRefusedError(self.outdated, lost=True)
        if self.unreadable:
            self.on_unreadable()
        if self.torn:
            self.on_torn()
        failure = self.profile.sync_failure
        if failure and self.random.random() < failure:
            self.on_sync_failed()

    def keep_outdated(self, reason: str) -> None:
        """It holds less than was heard of it: durable when this returns."""
        self.outdated = reason

    def on_unreadable(self) -> None:
        """The superblock is unreadable: the replica is lost."""
        raise BootRefusedError("the superblock is unreadable", lost=True)

    def on_torn(self) -> None:
        """The last record of the journal is torn: it was never acknowledged."""

    def on_sync_failed(self) -> None:
        """The journal cannot be synced: another attempt may do better."""
        raise BootRefusedError("the journal cannot be synced", lost=False)

    def log_at_boot(self) -> list[Prepare]:
        """The log that the superblock names."""
        return self._log()

    def _log(self) -> list[Prepare]:
        superblock = self.superblock
        by_checksum = {record.prepare.header.checksum: record.prepare for record in self.records}
        log: list[Prepare] = []
        checksum = superblock.head_checksum
        for op in range(superblock.head_op, superblock.checkpoint, -1):
            prepare = by_checksum.get(checksum)
            if prepare is None or prepare.header.op != op:
                raise StorageError(f"replica {superblock.replica}: no record of op {op} with checksum {checksum!r}")
            log.append(prepare)
            checksum = prepare.header.parent
        log.reverse()
        following = {
            record.prepare.header.parent: record.prepare
            for record in self.records
            if not record.repair and record.prepare.header.view == superblock.log_view
        }
        head, op = superblock.head_checksum, superblock.head_op
        while (after := following.get(head)) is not None and after.header.op == op + 1:
            log.append(after)
            head, op = after.header.checksum, op + 1
        return log


def rotten(members: Sequence[Replica], storages: Sequence[SimStorage]) -> tuple[int, ...]:
    """The members that look for rot, and have segments that were altered and still are."""
    looking = [member.state for member in members if member.state.config.scrub_bytes_per_tick]
    return tuple(
        state.node
        for state in looking
        if any(storages[state.node].segments.rots(log.sealed) for log in state.state_machine.partitions.logs.values())
    )
