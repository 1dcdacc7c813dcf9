"""State transfer: a snapshot fetched in verified chunks, from any replica that has it (protocol.md §6).

A transfer resumes where it stopped: a lost chunk is asked for again, from another replica if need be. The whole is
verified against the checksum that the start_view named before it is written.
"""

from __future__ import annotations

from impl.messages import RequestSnapshot, SnapshotChunk, checksum_chunk
from impl.replica.control import Control
from impl.replica.restore import restore_snapshot
from impl.replica.state import InstallTarget, WantedSnapshot
from impl.snapshot import Snapshot, SnapshotError


class Transfer(Control):
    """Fetches snapshots, and serves those who do."""

    def on_request_snapshot(self, message: RequestSnapshot) -> None:
        """Sends the chunk asked for, if the snapshot is here."""
        for snapshot in (self.snapshot, self.snapshot_before):
            if snapshot is None or (snapshot.op, snapshot.checksum) != (message.op, message.checksum):
                continue
            if 0 <= message.offset < len(snapshot.data):
                data = snapshot.data[message.offset : message.offset + self.config.snapshot_chunk_bytes]
                checksum = checksum_chunk(snapshot.op, message.offset, data)
                fields = (message.op, message.checksum, message.offset, data, checksum)
                self.send(message.replica, SnapshotChunk(*fields, self.node, self.clock))
                return
        self.ignore("request_snapshot: no such snapshot")

    def on_snapshot_chunk(self, message: SnapshotChunk) -> None:
        """The next bytes of the snapshot that is being fetched."""
        target = self.target
        wanted = None if target is None else target.snapshot
        if target is None or wanted is None or (wanted.op, wanted.checksum) != (message.op, message.checksum):
            self.ignore("snapshot_chunk: not of a snapshot that is being fetched")
            return
        size = len(wanted.received)
        if message.offset != size or not message.data or size + len(message.data) > wanted.size:
            self.ignore("snapshot_chunk: not the next one")
            return
        if message.data_checksum != checksum_chunk(message.op, message.offset, message.data):
            self.ignore("snapshot_chunk: checksum")
            return
        wanted.received += message.data
        target.attempts = 0
        self.heard_at = self.ticks
        if len(wanted.received) == wanted.size:
            self._verify(target, wanted)

    def _verify(self, target: InstallTarget, wanted: WantedSnapshot) -> None:
        """All of it is here: it is verified as a whole; a bad one is fetched anew, from the next replica."""
        snapshot = Snapshot(wanted.op, wanted.checksum, bytes(wanted.received))
        try:
            wanted.restored = restore_snapshot(snapshot, self.superblock, self.config)
        except SnapshotError as error:
            self.io_errors.append(str(error))
            self.ignore("snapshot_chunk: the snapshot is bad")
            wanted.received.clear()
            target.shift += 1

    def fetch_snapshot(self, target: InstallTarget, wanted: WantedSnapshot) -> None:
        """Asks for the next chunk, at once after one arrived, else once per repair timeout."""
        to = self.next_source(target)
        if to is not None:
            offset = len(wanted.received)
            self.send(to, RequestSnapshot(wanted.op, wanted.checksum, offset, self.node, self.clock))

    def next_source(self, target: InstallTarget) -> int | None:
        """The replica to ask for what the installation lacks: its source first, then the others in turn.

        None if the last question is not old, or nobody answers any more: then the target is given up.
        """
        if target.attempts and self.ticks - target.asked_at < self.config.repair_timeout_ticks:
            return None
        if target.attempts > ATTEMPTS_PER_REPLICA * self.replica_count:
            self.target = None
            return None
        to = (target.source + target.shift + target.attempts) % self.replica_count
        if to == self.node:
            target.attempts += 1
            to = (to + 1) % self.replica_count
        target.attempts += 1
        target.asked_at = self.ticks
        return None if to == self.node else to


ATTEMPTS_PER_REPLICA = 3
"""Questions to each replica without an answer, after which a log to install is given up: it may be drained."""
