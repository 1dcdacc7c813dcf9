"""State transfer: a snapshot fetched in verified chunks, from any replica that has it (seed 003).

A transfer resumes where it stopped: a lost chunk is asked for again, from another replica if need be. The whole is
verified against the checksum that the start_view named. It names segments of messages; those that are not on this disk
are fetched then, one after the other (`impl.replica.segments`), so that memory holds one of them.
"""

from __future__ import annotations

from viewproof.impl.interface.messages import RequestSnapshot, SnapshotChunk, checksum_chunk
from viewproof.impl.machine.partition_log import SegmentLostError
from viewproof.impl.machine.snapshot import Snapshot, SnapshotError
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.restore import Restorer
from viewproof.impl.replica.segments import SegmentFetch
from viewproof.impl.replica.state import State
from viewproof.impl.replica.target import InstallTarget, WantedSnapshot


class SnapshotTransfer:
    """Fetches snapshots, and serves those who do."""

    def __init__(self, state: State, out: Outbox, restorer: Restorer, segments: SegmentFetch) -> None:
        self.state = state
        self.out = out
        self.restorer = restorer
        self.segments = segments

    def on_request_snapshot(self, message: RequestSnapshot) -> None:
        """Sends the chunk asked for, if the snapshot is here."""
        for snapshot in (self.state.snapshot, self.state.snapshot_before):
            if snapshot is None or (snapshot.op, snapshot.checksum) != (message.op, message.checksum):
                continue
            offset = message.offset
            data = snapshot.data[offset : offset + self.state.config.snapshot_chunk_bytes]
            if data:
                checksum = checksum_chunk(snapshot.op, offset, data)
                fields = (message.op, message.checksum, offset, data, checksum)
                self.out.send(message.replica, SnapshotChunk(*fields, self.state.node, self.state.clock))
                return
        self.out.ignore("request_snapshot: no such snapshot")

    def on_snapshot_chunk(self, message: SnapshotChunk) -> None:
        """The next bytes of the snapshot that is being fetched."""
        target = self.state.target
        wanted = None if target is None else target.snapshot
        if target is None or wanted is None or (wanted.op, wanted.checksum) != (message.op, message.checksum):
            self.out.ignore("snapshot_chunk: not of a snapshot that is being fetched")
            return
        if wanted.snapshot is not None or not self.is_next(message, wanted.received, wanted.size):
            self.out.ignore("snapshot_chunk: not the next one")
            return
        target.attempts = 0
        self.state.timers.heard_at = self.state.ticks
        wanted.received += message.data
        if len(wanted.received) == wanted.size:
            self._verify(target, wanted)

    def is_next(self, message: SnapshotChunk, received: bytearray, size: int) -> bool:
        """True if a chunk is the one that is wanted next, whole, of a snapshot of `size` bytes (0: not known)."""
        if message.offset != len(received) or not message.data:
            return False
        if size and message.offset + len(message.data) > size:
            return False
        return message.data_checksum == checksum_chunk(message.op, message.offset, message.data)

    def _verify(self, target: InstallTarget, wanted: WantedSnapshot) -> None:
        """All of it is here: it is verified as a whole; a bad one is fetched anew, from the next replica."""
        snapshot = Snapshot(wanted.op, wanted.checksum, bytes(wanted.received))
        try:
            wanted.segments = self.restorer.segments(snapshot)
        except SnapshotError as error:
            self.refuse(target, wanted, error)
        else:
            wanted.snapshot = snapshot

    def refuse(self, target: InstallTarget, wanted: WantedSnapshot, error: SnapshotError) -> None:
        """A snapshot that came is none: it is fetched anew, from the next replica."""
        self.out.io_errors.append(str(error))
        self.out.ignore("snapshot_chunk: the snapshot is bad")
        wanted.received = bytearray()
        wanted.snapshot = None
        target.shift += 1

    def load(self, target: InstallTarget, wanted: WantedSnapshot, snapshot: Snapshot) -> None:
        """Takes the next step towards a snapshot whose segments are all on this disk; then it is restored."""
        if not self.segments.require(wanted.segments):
            if self.segments.is_given_up:
                self.state.target = None
            return
        try:
            wanted.restored = self.restorer.snapshot(snapshot)
        except SegmentLostError as error:
            self.segments.forget(error.refs)
        except SnapshotError as error:
            self.refuse(target, wanted, error)

    def fetch_snapshot(self, target: InstallTarget, wanted: WantedSnapshot) -> None:
        """Asks for the next chunk, at once after one arrived, else once per repair timeout."""
        to = self.next_source(target)
        if to is not None:
            offset = len(wanted.received)
            self.out.send(to, RequestSnapshot(wanted.op, wanted.checksum, offset, self.state.node, self.state.clock))

    def next_source(self, target: InstallTarget) -> int | None:
        """The replica to ask for what the installation lacks: its source first, then the others in turn.

        None if the last question is not old, or nobody answers any more: then the target is given up.
        """
        if target.attempts and self.state.ticks - target.asked_at < self.state.config.repair_timeout_ticks:
            return None
        if target.attempts > ATTEMPTS_PER_REPLICA * self.state.replica_count:
            self.state.target = None
            return None
        to = (target.source + target.shift + target.attempts) % self.state.replica_count
        if to == self.state.node:
            target.attempts += 1
            to = (to + 1) % self.state.replica_count
        target.attempts += 1
        target.asked_at = self.state.ticks
        return None if to == self.state.node else to


ATTEMPTS_PER_REPLICA = 3
"""Questions to each replica without an answer, after which a log to install is given up: it may be drained."""
