"""Durable writes of superblock and snapshots: what is in flight, what follows once it is durable, and what if it fails.

At most one write of each at a time. A write that failed and of which nothing counts is asked for again after
`write_retry_ticks`. The journal has its own writes (`impl.replica.journal`).
"""

from __future__ import annotations

from collections.abc import Callable

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.durable import SuperblockState, superblock_next
from viewproof.impl.interface.effects import IoEffect, WriteSnapshot, WriteSuperblock
from viewproof.impl.machine.partition_log import Segment
from viewproof.impl.machine.snapshot import Snapshot
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.state import State


class Writes:
    """`superblock_writing`: that of a transition, `checkpoint_writing`: that of a checkpoint, `snapshot_writing`."""

    def __init__(self, state: State, out: Outbox) -> None:
        self.state = state
        self.out = out
        self.superblock_writing: SuperblockState | None = None
        self.checkpoint_writing: SuperblockState | None = None
        self.snapshot_writing: WriteSnapshot | None = None
        self._then: Callable[[], None] | None = None
        self._failed: list[tuple[int, IoEffect]] = []

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
            self.state.superblock,
            view=view,
            log_view=log_view,
            head_op=head_op,
            head_checksum=head_checksum,
            clock=self.state.clock,
            checkpoint=None if snapshot is None else (snapshot.op, snapshot.checksum),
        )
        self._then = then
        if self.checkpoint_writing is None:
            self.out.effects.append(WriteSuperblock(self.superblock_writing))

    def write_checkpoint(self, snapshot: Snapshot, checksum: str) -> None:
        """Starts the superblock write of a checkpoint, in the way of nothing; `checksum` is its entry's.

        The log head moves up to the checkpoint, if it is below: what lies between was appended in log_view.
        """
        check(self.superblock_writing is None and self.checkpoint_writing is None, "one superblock write at a time")
        old = self.state.superblock
        head = (old.head_op, old.head_checksum) if old.head_op >= snapshot.op else (snapshot.op, checksum)
        self.checkpoint_writing = superblock_next(
            old,
            view=old.view,
            log_view=old.log_view,
            head_op=head[0],
            head_checksum=head[1],
            clock=self.state.clock,
            checkpoint=(snapshot.op, snapshot.checksum),
        )
        self.out.effects.append(WriteSuperblock(self.checkpoint_writing))

    def on_superblock_done(self, superblock: SuperblockState) -> None:
        """The superblock is durable: the transition that waited for it is made."""
        check(superblock is self.superblock_writing, "the superblock written is the one asked for")
        then = self._then
        check(then is not None, "a superblock write has a continuation")
        self.state.superblock = superblock
        self.superblock_writing = self._then = None
        if then is not None:
            then()

    def on_checkpoint_referred(self, superblock: SuperblockState) -> None:
        """The superblock refers to a checkpoint; the transition that waited for that is written after it."""
        self.state.superblock = superblock
        self.checkpoint_writing = None
        waiting = self.superblock_writing
        if waiting is None:
            return
        same_log = waiting.head_op < superblock.checkpoint
        newer = waiting.checkpoint > superblock.checkpoint
        self.superblock_writing = superblock_next(
            superblock,
            view=waiting.view,
            log_view=waiting.log_view,
            head_op=superblock.head_op if same_log else waiting.head_op,
            head_checksum=superblock.head_checksum if same_log else waiting.head_checksum,
            clock=waiting.clock,
            checkpoint=(waiting.checkpoint, waiting.snapshot) if newer else None,
        )
        self.out.effects.append(WriteSuperblock(self.superblock_writing))

    def write_snapshot(self, snapshot: Snapshot, held: tuple[Segment, ...]) -> None:
        """Starts the write of a snapshot beside the one in use; `held` are its segments in memory."""
        check(self.snapshot_writing is None, "one snapshot write at a time")
        self.snapshot_writing = WriteSnapshot(snapshot.op, snapshot.checksum, snapshot.data, held)
        self.out.effects.append(self.snapshot_writing)

    def on_snapshot_written(self, io: WriteSnapshot) -> None:
        """A snapshot is durable."""
        check(io is self.snapshot_writing, "the snapshot written is the one in flight")
        self.snapshot_writing = None

    # Failures

    def retry_later(self, io: IoEffect) -> None:
        """Asks for the same write again in a while."""
        self._failed.append((self.state.ticks + self.state.config.write_retry_ticks, io))

    def retry(self) -> None:
        """Asks again for the writes that failed, once it is time."""
        if not self._failed:
            return
        now = self.state.ticks
        due = [io for at, io in self._failed if at <= now]
        if due:
            self._failed = [(at, io) for at, io in self._failed if at > now]
            self.out.effects += due
