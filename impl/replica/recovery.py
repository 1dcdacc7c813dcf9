"""A replica whose own snapshot is unreadable fetches that very snapshot from the others before it boots.

Snapshots of one op are the same bytes everywhere, and the superblock has the checksum. Segments of messages that are
whole on the disk are not fetched. Until then the replica takes no part in anything: to the others it is still down.
"""

from __future__ import annotations

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.effects import WriteSnapshot
from viewproof.impl.interface.messages import RequestSnapshot, SnapshotChunk, checksum_chunk
from viewproof.impl.machine.snapshot import Snapshot, SnapshotError
from viewproof.impl.replica.arrival import Arrival
from viewproof.impl.replica.boot import Boot
from viewproof.impl.replica.restore import restore_snapshot
from viewproof.impl.replica.state import LostSnapshot


class Recovery(Boot):
    """Boots at once, or once the snapshot is here again."""

    def boot_or_recover(self) -> None:
        """The first transition: boots, or asks for the snapshot that is lost."""
        if self.unrestored is None:
            self.boot_now()
            return
        check(self.replica_count > 1, "a single replica has nobody to fetch its snapshot from")
        self.lost_snapshot = LostSnapshot()
        self.ask_for_lost_snapshot()

    def ask_for_lost_snapshot(self) -> None:
        """Asks the next replica in turn for what is missing, at most once per repair timeout without an answer."""
        lost = self.lost_snapshot
        if lost is None or lost.restored is not None:
            return
        if self.ticks - lost.asked_at < self.config.repair_timeout_ticks:
            return
        if lost.arrival.received and lost.unanswered > 2 * len(self.others):
            lost = self._begin_anew(lost, plain=lost.plain)  # nobody goes on from here: what came was bad
        lost.unanswered += 1
        lost.asked_at = self.ticks
        to = self.others[lost.asked % len(self.others)]
        lost.asked += 1
        block = self.superblock
        self.outline_unneeded(lost.arrival)
        offset, end = lost.arrival.wanted
        self.send(to, RequestSnapshot(block.checkpoint, block.snapshot, offset, self.node, self.clock, end))

    def _begin_anew(self, lost: LostSnapshot, *, plain: bool) -> LostSnapshot:
        arrival = Arrival.plain() if plain else Arrival()
        self.lost_snapshot = LostSnapshot(arrival, plain, asked=lost.asked)
        return self.lost_snapshot

    def on_lost_chunk(self, message: SnapshotChunk) -> None:
        """The next bytes of the snapshot that is lost."""
        lost, block = self.lost_snapshot, self.superblock
        if (
            lost is None
            or lost.restored is not None
            or (message.op, message.checksum) != (block.checkpoint, block.snapshot)
        ):
            self.ignore("snapshot_chunk: not of the snapshot that is lost")
            return
        right = checksum_chunk(message.op, message.offset, message.data)
        if message.offset != lost.arrival.wanted[0] or not message.data or message.data_checksum != right:
            self.ignore("snapshot_chunk: not the next one")
            return
        self._take(lost, message)

    def _take(self, lost: LostSnapshot, message: SnapshotChunk) -> None:
        right = self.take_chunk(lost.arrival, message, 0)
        arrival = lost.arrival
        if arrival.received and arrival.digest() == self.superblock.snapshot:
            self._restore(lost)
            return
        if arrival.outline is not None and 0 < arrival.outline.size <= len(arrival.received):
            self.io_errors.append(f"snapshot of op {message.op}: checksum {arrival.digest()}")
            self._begin_anew(lost, plain=True)
            return
        if right:
            lost.asked -= 1  # the next question goes to the same replica
        lost.unanswered, lost.asked_at = 0, -1_000_000
        self.ask_for_lost_snapshot()

    def _restore(self, lost: LostSnapshot) -> None:
        block = self.superblock
        snapshot = Snapshot(block.checkpoint, block.snapshot, bytes(lost.arrival.received))
        try:
            lost.restored = restore_snapshot(snapshot, block, self.config)
        except SnapshotError as error:
            self.io_errors.append(str(error))
            self._begin_anew(lost, plain=True)
            return
        self.write_snapshot(snapshot)

    def on_snapshot_written(self, io: WriteSnapshot) -> None:
        """The snapshot is whole again on this disk: the replica boots."""
        super().on_snapshot_written(io)
        lost, durable = self.lost_snapshot, self.unrestored
        if lost is None or durable is None or lost.restored is None or lost.restored.header is None:
            return
        header = lost.restored.header
        parent = durable.log[0].header.parent if durable.log else header.checksum
        check(parent == header.checksum, f"the log above op {header.op} begins with the parent {parent}")
        self.lost_snapshot = self.unrestored = None
        self.load(durable.log, lost.restored)
        self.boot_now()
