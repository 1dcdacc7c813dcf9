"""Checkpoints: a snapshot at commit_min, the superblock refers to it, the journal is drained (seed 000, I5).

The snapshot is taken at every op that `checkpoint_interval` divides, so all replicas take the same ones, byte for byte.
Until the checkpoint is complete nothing more is executed, so that it is one at commit_min; all else goes on.
"""

from __future__ import annotations

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.durable import SuperblockState
from viewproof.impl.interface.effects import DrainJournal, WriteSnapshot
from viewproof.impl.machine.snapshot import Contents, Snapshot, encode_snapshot
from viewproof.impl.replica.restore import Restored
from viewproof.impl.replica.state import CheckpointWork, Stage
from viewproof.impl.replica.writes import Writes


class Checkpoints(Writes):
    """Takes checkpoints, and keeps the last snapshots for those who need one."""

    @property
    def checkpoint_pending(self) -> bool:
        """True while a checkpoint at commit_min is not complete (one that came with a start_view is from the start)."""
        work = self.checkpoint_work
        return self.checkpoint_next is not None or (work is not None and not work.installed)

    def take_due_checkpoint(self) -> None:
        """Takes the snapshot of the state at commit_min, if one is due there."""
        interval = self.config.checkpoint_interval
        if not interval or self.commit_min % interval or self.commit_min <= self.checkpoint:
            return
        op = self.commit_min
        if "commit.checkpoint_at_commit_max" in self.faults:
            op = max(op, min(self.commit_max, self.op))
        header = self.log[op].header
        contents = Contents(
            header, self.state_machine.to_bytes(), self.client_table.to_bytes(), self.enabled.to_bytes()
        )
        taken = CheckpointWork(encode_snapshot(self.superblock.cluster, contents), header.checksum)
        if self.checkpoint_work is None:
            self.checkpoint_work = taken
            self.advance_checkpoint()
        else:
            self.checkpoint_next = taken

    def advance_checkpoint(self) -> None:
        """Takes the next step of the checkpoint that can be taken now."""
        work = self.checkpoint_work
        if work is None or self.ticks < work.not_before:
            return
        if work.stage is Stage.WRITE and self.snapshot_writing is None:
            work.stage = Stage.WRITING
            self.write_snapshot(work.snapshot)
        elif work.stage is Stage.REFER and self.superblock_writing is None and self.checkpoint_writing is None:
            work.stage = Stage.REFERRING
            self.write_checkpoint(work.snapshot, work.checksum)
        elif work.stage is Stage.DRAIN and not self.journal_busy:
            work.stage = Stage.DRAINING
            if "boot.checkpoint_before_drain" in self.faults and not work.installed:
                self.drained = work.snapshot.op
                self._raise_checkpoint(work.snapshot)
            self.drain_journal(work.snapshot.op, stale=self.target is None)

    def on_snapshot_written(self, io: WriteSnapshot) -> None:
        """A snapshot is durable."""
        self.snapshot_writing = None
        work = self.checkpoint_work
        if work is not None and work.stage is Stage.WRITING and work.snapshot.op == io.op:
            work.stage = Stage.REFER

    def on_checkpoint_referred(self, superblock: SuperblockState) -> None:
        """The superblock refers to the snapshot in progress."""
        work = self.checkpoint_work
        check(work is not None and work.stage is Stage.REFERRING, "a checkpoint is being referred to")
        self.superblock = superblock
        self.checkpoint_writing = None
        self.write_waiting()
        if work is not None:
            work.stage = Stage.DRAIN

    def on_drained(self, io: DrainJournal) -> None:
        """The journal is drained: the checkpoint is complete."""
        self.draining = None
        self.drained = max(self.drained, io.op)
        kept = {prepare.header.checksum: prepare.header.op for prepare in self.log.slice(io.op + 1, self.durable_op)}
        if io.stale:
            self.journaled = kept
        work = self.checkpoint_work
        if work is None or work.stage is not Stage.DRAINING or work.snapshot.op != io.op:
            return
        if not work.installed and self.checkpoint < io.op:
            self._raise_checkpoint(work.snapshot)
        self.checkpoint_work = self.checkpoint_next
        self.checkpoint_next = None

    def on_drain_failed(self) -> None:
        """The journal is as it was; the drain is tried again in a while."""
        self.draining = None
        work = self.checkpoint_work
        if work is not None and work.stage is Stage.DRAINING:
            work.stage = Stage.DRAIN
            work.not_before = self.ticks + self.config.write_retry_ticks

    def _raise_checkpoint(self, snapshot: Snapshot) -> None:
        """The checkpoint is complete: the log in memory begins above it."""
        self.log.drain(min(snapshot.op, self.commit_min))
        self.acks_sent = {op: seq for op, seq in self.acks_sent.items() if op > snapshot.op}
        self.keep_snapshot(snapshot)
        self.emit("checkpoint", m_op=snapshot.op)

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """The snapshot of the checkpoint in use; the one before stays a while for those who are fetching it."""
        self.snapshot_before = self.snapshot
        self.snapshot = snapshot
        self.checkpoint = snapshot.op

    def adopt(self, restored: Restored) -> None:
        """Starts from a snapshot that another replica took: it is durable, and the superblock refers to it."""
        header, snapshot = restored.header, restored.snapshot
        check(header is not None and snapshot is not None, "a snapshot to install")
        if header is None or snapshot is None:
            return
        check(restored.op > self.commit_min, f"snapshot of op {restored.op} at commit_min {self.commit_min}")
        self.state_machine = restored.state_machine
        self.client_table = restored.client_table
        self.enabled = restored.enabled
        self.commit_min = restored.op
        self.commit_max = max(self.commit_max, restored.op)
        self.waiters.clear()
        self.update_digest()
        self.keep_snapshot(snapshot)
        self.checkpoint_work = CheckpointWork(snapshot, header.checksum, Stage.DRAIN, installed=True)
        self.checkpoint_next = None
