"""Checkpoints: a snapshot at commit_min, the superblock refers to it, the journal is drained (seed 000, I5).

The snapshot is taken at every op that `checkpoint_interval` divides, so all replicas take the same ones, byte for byte.
Until the checkpoint is complete nothing more is executed, so that it is one at commit_min; all else goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.durable import SuperblockState
from viewproof.impl.interface.effects import DrainJournal, WriteSnapshot
from viewproof.impl.machine.partition_log import Segment
from viewproof.impl.machine.snapshot import Contents, Snapshot, decode_snapshot, encode_snapshot
from viewproof.impl.machine.state_machine import decode_state
from viewproof.impl.replica.acknowledgements import Acknowledgements
from viewproof.impl.replica.journal import Journal
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.restore import Restored
from viewproof.impl.replica.state import State
from viewproof.impl.replica.writes import Writes


class Stage(Enum):
    """How far a checkpoint has come: what is to be done next, or in flight."""

    WRITE = auto()
    WRITING = auto()
    REFER = auto()
    REFERRING = auto()
    DRAIN = auto()
    DRAINING = auto()


@dataclass(slots=True)
class CheckpointWork:
    """A checkpoint in progress; `checksum` is that of the entry at the snapshot's op.

    `held`: the segments of messages that were in memory when it was taken. `installed`: it came from another replica,
    and is in use already; only the drain is left.
    """

    snapshot: Snapshot
    checksum: str
    held: tuple[Segment, ...] = ()
    stage: Stage = Stage.WRITE
    installed: bool = False
    not_before: int = 0


class Checkpoints:
    """Takes checkpoints, and keeps the last snapshots for those who need one. `work` is in progress, then `next`."""

    def __init__(
        self, state: State, out: Outbox, writes: Writes, journal: Journal, acknowledgements: Acknowledgements
    ) -> None:
        self.state = state
        self.out = out
        self.writes = writes
        self.journal = journal
        self.acknowledgements = acknowledgements
        self.work: CheckpointWork | None = None
        self.next: CheckpointWork | None = None

    @property
    def pending(self) -> bool:
        """True while a checkpoint at commit_min is not complete (one that came with a start_view is from the start)."""
        work = self.work
        return self.next is not None or (work is not None and not work.installed)

    def take_due(self) -> None:
        """Takes the snapshot of the state at commit_min, if one is due there."""
        state = self.state
        interval = state.config.checkpoint_interval
        if not interval or state.commit_min % interval or state.commit_min <= state.checkpoint:
            return
        header = state.log[self.op_taken()].header
        machine = state.state_machine
        contents = Contents(header, machine.to_bytes(), state.client_table.to_bytes(), state.enabled.to_bytes())
        snapshot = encode_snapshot(state.superblock.cluster, contents)
        taken = CheckpointWork(snapshot, header.checksum, machine.partitions.held())
        if self.work is None:
            self.work = taken
            self.advance()
        else:
            self.next = taken

    def op_taken(self) -> int:
        """The op that a snapshot taken now is of."""
        return self.state.commit_min

    def advance(self) -> None:
        """Takes the next step of the checkpoint that can be taken now."""
        work, writes = self.work, self.writes
        if work is None or self.state.ticks < work.not_before:
            return
        if work.stage is Stage.WRITE and writes.snapshot_writing is None:
            work.stage = Stage.WRITING
            writes.write_snapshot(work.snapshot, work.held)
        elif work.stage is Stage.REFER and writes.superblock_writing is None and writes.checkpoint_writing is None:
            work.stage = Stage.REFERRING
            writes.write_checkpoint(work.snapshot, work.checksum)
        elif work.stage is Stage.DRAIN and not self.journal.busy:
            self.drain(work)

    def drain(self, work: CheckpointWork) -> None:
        """The last step: the journal is drained."""
        work.stage = Stage.DRAINING
        self.journal.drain(work.snapshot.op, stale=self.state.target is None)

    def on_snapshot_written(self, io: WriteSnapshot) -> None:
        """A snapshot is durable, and so are the segments that it names: those that are closed leave memory."""
        work = self.work
        if work is not None and work.stage is Stage.WRITING and work.snapshot.op == io.op:
            work.stage = Stage.REFER
            work.held = ()
            named = decode_state(decode_snapshot(io.data).state_machine)
            self.state.state_machine.partitions.release(named.partitions)

    def on_referred(self, superblock: SuperblockState) -> None:
        """The superblock refers to the snapshot in progress."""
        work = self.work
        check(work is not None and work.stage is Stage.REFERRING, "a checkpoint is being referred to")
        self.writes.on_checkpoint_referred(superblock)
        if work is not None:
            work.stage = Stage.DRAIN

    def on_drained(self, io: DrainJournal) -> None:
        """The journal is drained: the checkpoint is complete."""
        work = self.work
        if work is None or work.stage is not Stage.DRAINING or work.snapshot.op != io.op:
            return
        if not work.installed and self.state.checkpoint < io.op:
            self.complete(work.snapshot)
        self.work, self.next = self.next, None

    def on_drain_failed(self) -> None:
        """The journal is as it was; the drain is tried again in a while."""
        work = self.work
        if work is not None and work.stage is Stage.DRAINING:
            work.stage = Stage.DRAIN
            work.not_before = self.state.ticks + self.state.config.write_retry_ticks

    def complete(self, snapshot: Snapshot) -> None:
        """The checkpoint is complete: the log in memory begins above it."""
        state = self.state
        state.log.drain(min(snapshot.op, state.commit_min))
        self.acknowledgements.forget_up_to(snapshot.op)
        self._keep(snapshot)
        self.out.emit("checkpoint", m_op=snapshot.op)

    def _keep(self, snapshot: Snapshot) -> None:
        """The snapshot of the checkpoint in use; the one before stays a while for those who are fetching it."""
        state = self.state
        state.snapshot_before, state.snapshot = state.snapshot, snapshot
        state.checkpoint = snapshot.op

    def adopt(self, restored: Restored) -> None:
        """Starts from a snapshot that another replica took: it is durable, and the superblock refers to it."""
        header, snapshot, state = restored.header, restored.snapshot, self.state
        check(header is not None and snapshot is not None, "a snapshot to install")
        if header is None or snapshot is None:
            return
        check(restored.op > state.commit_min, f"snapshot of op {restored.op} at commit_min {state.commit_min}")
        state.adopt(restored)
        state.commit_min = restored.op
        state.commit_max = max(state.commit_max, restored.op)
        self._keep(snapshot)
        self.work = CheckpointWork(snapshot, header.checksum, stage=Stage.DRAIN, installed=True)
        self.next = None
