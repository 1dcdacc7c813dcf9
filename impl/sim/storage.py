"""The simulated data file of one replica: durable semantics of `impl.durable`, with latency and torn writes.

A crash during a journal write leaves a random number of its bytes: whole records survive, the one that is cut is torn
and dropped at recovery. A crash during a superblock write leaves the old one or the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from impl.durable import DurableState, SuperblockState
from impl.effects import AppendPrepares, IoEffect
from impl.messages import Prepare
from impl.sim.profile import SimProfile

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
    """Journal and superblock in memory. A write is durable only when its completion was reported."""

    def __init__(
        self, superblock: SuperblockState, profile: SimProfile, random: Random, statistics: dict[str, int]
    ) -> None:
        self.superblock = superblock
        self.profile = profile
        self.random = random
        self.statistics = statistics
        self.records: list[Record] = []
        self.in_flight: list[IoEffect] = []

    def start(self, io: IoEffect) -> int:
        """Begins a write; returns its latency in ticks, at least 1."""
        self.in_flight.append(io)
        profile, random = self.profile, self.random
        if profile.slow_write and random.random() < profile.slow_write:
            self.statistics["writes_slow"] += 1
            return random.randint(1, profile.slow_write_ticks_max)
        slowest = profile.append_ticks_max if isinstance(io, AppendPrepares) else profile.superblock_ticks_max
        return random.randint(1, slowest)

    def finish(self, io: IoEffect) -> None:
        """The write is durable."""
        self.in_flight.remove(io)
        if isinstance(io, AppendPrepares):
            self.records += [Record(prepare, io.repair) for prepare in io.prepares]
        else:
            self.superblock = io.superblock

    def crash(self) -> None:
        """The process dies: of each write in flight a part may have reached the disk."""
        for io in self.in_flight:
            if isinstance(io, AppendPrepares):
                self._crash_append(io)
            elif self.random.random() < 0.5:
                self.superblock = io.superblock
                self.statistics["crash_superblock_new"] += 1
            else:
                self.statistics["crash_superblock_old"] += 1
        self.in_flight = []

    def _crash_append(self, io: AppendPrepares) -> None:
        sizes = [RECORD_HEADER_BYTES + len(prepare.body) for prepare in io.prepares]
        left = self.random.randint(0, sum(sizes))
        for prepare, size in zip(io.prepares, sizes, strict=True):
            if size > left:
                self.statistics["crash_append_torn" if left else "crash_append_cut"] += 1
                return
            left -= size
            self.records.append(Record(prepare, io.repair))
        self.statistics["crash_append_whole"] += 1

    def recover(self) -> DurableState:
        """The superblock and the log (rules in `impl.durable`). Raises `StorageError` if the log head is not there."""
        superblock = self.superblock
        by_checksum = {record.prepare.header.checksum: record.prepare for record in self.records}
        log: list[Prepare] = []
        checksum = superblock.head_checksum
        for op in range(superblock.head_op, 0, -1):
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
        head = superblock.head_checksum
        while (after := following.get(head)) is not None and after.header.op == len(log) + 1:
            log.append(after)
            head = after.header.checksum
        return DurableState(superblock, tuple(Prepare(prepare.header, prepare.body) for prepare in log))
