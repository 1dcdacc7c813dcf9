"""State transfer: a snapshot fetched in verified chunks, from any replica that has it (seed 003).

A transfer resumes where it stopped: a lost chunk is asked for again, from another replica if need be. A replica that
has segments of messages asks for the snapshot's outline first, and then only for what it lacks
(`impl.replica.arrival`). The whole is verified against the checksum that the start_view named before it is written.
"""

from __future__ import annotations

from viewproof.impl.interface.messages import RequestSnapshot, SnapshotChunk, checksum_chunk
from viewproof.impl.machine.snapshot import Snapshot, SnapshotError
from viewproof.impl.machine.snapshot_outline import decode_outline, encode_outline
from viewproof.impl.replica.arrival import NO_OUTLINE, OUTLINE, Arrival
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.restore import Restorer
from viewproof.impl.replica.state import State
from viewproof.impl.replica.target import InstallTarget, WantedSnapshot


class SnapshotTransfer:
    """Fetches snapshots, and serves those who do."""

    def __init__(self, state: State, out: Outbox, restorer: Restorer) -> None:
        self.state = state
        self.out = out
        self.restorer = restorer
        self._outline_sent: tuple[str, bytes] = ("", b"")

    def on_request_snapshot(self, message: RequestSnapshot) -> None:
        """Sends the chunk asked for, if the snapshot is here."""
        for snapshot in (self.state.snapshot, self.state.snapshot_before):
            if snapshot is None or (snapshot.op, snapshot.checksum) != (message.op, message.checksum):
                continue
            data = self._part_of(snapshot, message.offset, message.end)
            if data:
                checksum = checksum_chunk(snapshot.op, message.offset, data)
                fields = (message.op, message.checksum, message.offset, data, checksum)
                self.out.send(message.replica, SnapshotChunk(*fields, self.state.node, self.state.clock))
                return
        self.out.ignore("request_snapshot: no such snapshot")

    def _part_of(self, snapshot: Snapshot, offset: int, end: int) -> bytes:
        """What is sent of a snapshot to who asks for the bytes from `offset` on; empty if it cannot be said."""
        if offset == OUTLINE:
            return self._outline_of(snapshot)
        if not 0 <= offset < len(snapshot.data):
            return b""
        stop = offset + self.state.config.snapshot_chunk_bytes
        return snapshot.data[offset : min(stop, end) if end > offset else stop]

    def _outline_of(self, snapshot: Snapshot) -> bytes:
        if self._outline_sent[0] != snapshot.checksum:
            try:
                self._outline_sent = snapshot.checksum, encode_outline(snapshot.data)
            except SnapshotError as error:
                self.out.io_errors.append(str(error))
                return b""
        return self._outline_sent[1]

    def on_snapshot_chunk(self, message: SnapshotChunk) -> None:
        """The next bytes of the snapshot that is being fetched."""
        target = self.state.target
        wanted = None if target is None else target.snapshot
        if target is None or wanted is None or (wanted.op, wanted.checksum) != (message.op, message.checksum):
            self.out.ignore("snapshot_chunk: not of a snapshot that is being fetched")
            return
        if not self._takes(wanted.arrival, message, wanted.size):
            return
        target.attempts = 0
        self.state.timers.heard_at = self.state.ticks
        if not self.take_chunk(wanted.arrival, message, wanted.size):
            target.shift += 1
        if len(wanted.received) == wanted.size:
            self._verify(target, wanted)

    def _takes(self, arrival: Arrival, message: SnapshotChunk, size: int) -> bool:
        """True if a chunk is the one that is wanted next, whole, of a snapshot of `size` bytes."""
        offset, _ = arrival.wanted
        if message.offset != offset or not message.data or (offset >= 0 and offset + len(message.data) > size):
            self.out.ignore("snapshot_chunk: not the next one")
            return False
        if message.data_checksum != checksum_chunk(message.op, message.offset, message.data):
            self.out.ignore("snapshot_chunk: checksum")
            return False
        return True

    def take_chunk(self, arrival: Arrival, message: SnapshotChunk, size: int) -> bool:
        """Takes what was asked for, of a snapshot of `size` bytes (0: not known).

        False if something is wrong with it, or with what came before.
        """
        if message.offset != OUTLINE:
            return arrival.take(message.data, self.state.own_segment)
        try:
            outline = decode_outline(message.data)
            if size not in (0, outline.size):
                raise SnapshotError(f"the outline is of {outline.size} bytes, the snapshot has {size}")
            arrival.take_outline(outline, self.state.own_segment)
        except SnapshotError as error:
            self.out.io_errors.append(str(error))
            arrival.outline = NO_OUTLINE
            return False
        return True

    def _verify(self, target: InstallTarget, wanted: WantedSnapshot) -> None:
        """All of it is here: it is verified as a whole; a bad one is fetched anew, from the next replica."""
        snapshot = Snapshot(wanted.op, wanted.checksum, bytes(wanted.received))
        try:
            wanted.restored = self.restorer.snapshot(snapshot)
        except SnapshotError as error:
            self.out.io_errors.append(str(error))
            self.out.ignore("snapshot_chunk: the snapshot is bad")
            wanted.arrival = Arrival.plain()
            target.shift += 1

    def fetch_snapshot(self, target: InstallTarget, wanted: WantedSnapshot) -> None:
        """Asks for the next chunk, at once after one arrived, else once per repair timeout."""
        to = self.next_source(target)
        if to is not None:
            self.outline_unneeded(wanted.arrival)
            offset, end = wanted.arrival.wanted
            self.out.send(
                to, RequestSnapshot(wanted.op, wanted.checksum, offset, self.state.node, self.state.clock, end)
            )

    def outline_unneeded(self, arrival: Arrival) -> None:
        """Goes on without the outline if nothing is here that it could spare."""
        if arrival.outline is None and not self.state.has_segments:
            arrival.outline = NO_OUTLINE

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
