"""Durable writes: what is in flight, what follows once it is durable, and what if it fails.

One write to each of journal, superblock and snapshots at a time. A write that failed and of which nothing counts is
asked for again after `write_retry_ticks`; appends are not: what they held is no longer in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.durable import SuperblockState, superblock_next
from viewproof.impl.interface.effects import AppendPrepares, DrainJournal, IoEffect, WriteSnapshot, WriteSuperblock
from viewproof.impl.interface.messages import Prepare
from viewproof.impl.machine.snapshot import Snapshot
from viewproof.impl.replica.replies import Replies


class Writes(Replies):
    """The replica's side of its data file."""

    # The superblock

    def write_superblock(
        self,
        *,
        view: int,
        log_view: int,
        head_op: int,
        head_checksum: str,
        then: Callable[[], None],
        snapshot: Snapshot | None = None,
    ) -> None:
        """Starts a transition's superblock write, which may bring a snapshot; `then` runs when it is durable.

        Until then protocol messages are ignored. It waits for the write of a checkpoint that is in flight.
        """
        check(self.superblock_writing is None, "one superblock write at a time")
        check(log_view <= view, f"log_view {log_view} above view {view}")
        self.superblock_writing = superblock_next(
            self.superblock,
            view=view,
            log_view=log_view,
            head_op=head_op,
            head_checksum=head_checksum,
            clock=self.clock,
            checkpoint=None if snapshot is None else (snapshot.op, snapshot.checksum),
        )
        self.superblock_then = then
        if self.checkpoint_writing is None:
            self.effects.append(WriteSuperblock(self.superblock_writing))

    def write_checkpoint(self, snapshot: Snapshot, checksum: str) -> None:
        """Starts the superblock write of a checkpoint, in the way of nothing; `checksum` is its entry's.

        The log head moves up to the checkpoint, if it is below: what lies between was appended in log_view.
        """
        check(self.superblock_writing is None and self.checkpoint_writing is None, "one superblock write at a time")
        old = self.superblock
        head = (old.head_op, old.head_checksum) if old.head_op >= snapshot.op else (snapshot.op, checksum)
        self.checkpoint_writing = superblock_next(
            old,
            view=old.view,
            log_view=old.log_view,
            head_op=head[0],
            head_checksum=head[1],
            clock=self.clock,
            checkpoint=(snapshot.op, snapshot.checksum),
        )
        self.effects.append(WriteSuperblock(self.checkpoint_writing))

    def on_superblock_done(self, superblock: SuperblockState) -> None:
        """The superblock is durable: the transition that waited for it is made."""
        check(superblock is self.superblock_writing, "the superblock written is the one asked for")
        then = self.superblock_then
        check(then is not None, "a superblock write has a continuation")
        self.superblock = superblock
        self.superblock_writing = None
        self.superblock_then = None
        if then is not None:
            then()

    def write_waiting(self) -> None:
        """The transition that waited for a checkpoint's superblock write; its own is made after that one."""
        waiting = self.superblock_writing
        if waiting is None:
            return
        old = self.superblock
        same_log = waiting.head_op < old.checkpoint
        newer = waiting.checkpoint > old.checkpoint
        self.superblock_writing = superblock_next(
            old,
            view=waiting.view,
            log_view=waiting.log_view,
            head_op=old.head_op if same_log else waiting.head_op,
            head_checksum=old.head_checksum if same_log else waiting.head_checksum,
            clock=waiting.clock,
            checkpoint=(waiting.checkpoint, waiting.snapshot) if newer else None,
        )
        self.effects.append(WriteSuperblock(self.superblock_writing))

    # Journal and snapshots

    @property
    def journal_busy(self) -> bool:
        """True while an append or a drain is in flight."""
        drains = self.draining is not None and "boot.checkpoint_before_drain" not in self.faults
        return self.appending is not None or drains

    def write_prepares(self, prepares: Sequence[Prepare], *, repair: bool) -> None:
        """Starts a journal write."""
        check(not self.journal_busy, "one journal write at a time")
        check(len(prepares) > 0, "a journal write has entries")
        self.appending = AppendPrepares(tuple(prepares), repair)
        self.effects.append(self.appending)

    def forget_overwritten(self, written: dict[str, int]) -> None:
        """Prepares (checksum → op) were written as repair: what is not of the log may be gone from their slots."""
        slots = self.journal_slots
        if not slots:
            return
        taken = {op % slots for op in written.values()}
        self.journaled = {
            checksum: op
            for checksum, op in self.journaled.items()
            if op % slots not in taken or self.log.checksum(op) == checksum
        }

    def drain_journal(self, op: int, *, stale: bool, end: int | None = None) -> None:
        """Starts dropping what lies at or below `op`, and with `stale` what is not of the log, or above `end` in it."""
        check(not self.journal_busy, "one journal write at a time")
        self.draining = DrainJournal(op, stale, end)
        self.effects.append(self.draining)

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Starts the write of a snapshot beside the one in use."""
        check(self.snapshot_writing is None, "one snapshot write at a time")
        self.snapshot_writing = WriteSnapshot(snapshot.op, snapshot.checksum, snapshot.data)
        self.effects.append(self.snapshot_writing)

    # Failures

    def retry_later(self, io: IoEffect) -> None:
        """Asks for the same write again in a while."""
        self.writes_failed.append((self.ticks + self.config.write_retry_ticks, io))

    def retry_writes(self) -> None:
        """Asks again for the writes that failed, once it is time."""
        due = [io for at, io in self.writes_failed if at <= self.ticks]
        if due:
            self.writes_failed = [(at, io) for at, io in self.writes_failed if at > self.ticks]
            self.effects += due

    @property
    def journal_refuses(self) -> bool:
        """True for a while after a failed append: nothing new is taken."""
        return self.ticks < self.journal_refuses_until

    @property
    def journal_full(self) -> bool:
        """True if the next op has no room above the checkpoint."""
        return not self.fits(self.op + 1)

    def fits(self, op: int) -> bool:
        """True if the journal has room for `op`: it never takes the slot of an op that is not drained.

        Without checkpoints nothing is ever drained, and the journal has no bound.
        """
        slots = 0 if "boot.ring_evicts_live" in self.faults else self.journal_slots
        return slots == 0 or op - self.drained <= slots
