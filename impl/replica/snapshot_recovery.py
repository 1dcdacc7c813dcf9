"""A replica whose own snapshot is unreadable fetches that very snapshot from the others before it boots, or another.

Snapshots of one op are the same bytes everywhere, and the superblock has the checksum. Segments of messages that are
whole on the disk are not fetched. Until then the replica takes no part in anything: to the others it is still down.

If none of the others has that snapshot any more, they have a later one. What lies between the two is in no journal, so
the own log is of no use alone: the replica takes a start_view that answers this very process, with the snapshot below
it, as one does whose log is lost (`impl.replica.log_recovery`; for the specification a loss, and `recover_snapshot`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.durable import OP_UNKNOWN, DurableState
from viewproof.impl.interface.messages import CHECKSUM_NONE, RequestSnapshot, SnapshotChunk, checksum_chunk
from viewproof.impl.machine.snapshot import Snapshot, SnapshotError
from viewproof.impl.replica.arrival import Arrival
from viewproof.impl.replica.log_recovery import LogRecovery
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.restore import Restored, Restorer
from viewproof.impl.replica.state import LONG_AGO, LogRepair, State
from viewproof.impl.replica.transfer import SnapshotTransfer
from viewproof.impl.replica.writes import Writes

ROUNDS_IN_VAIN = 3
"""Questions to each of the others, none answered, after which a later snapshot is taken."""


@dataclass(slots=True)
class LostSnapshot:
    """The own snapshot, unreadable on this disk, as far as it is here again; `restored` once it is whole.

    `plain`: what came was bad, so nothing but chunks is relied on.
    """

    arrival: Arrival = field(default_factory=Arrival)
    plain: bool = False
    asked: int = 0
    unanswered: int = 0
    asked_at: int = LONG_AGO
    restored: Restored | None = None


class SnapshotRecovery:
    """Goes on to the log at once, or once the snapshot is here again. `lost`: it is not."""

    def __init__(
        self,
        state: State,
        out: Outbox,
        writes: Writes,
        transfer: SnapshotTransfer,
        restorer: Restorer,
        log_recovery: LogRecovery,
        durable: DurableState,
    ) -> None:
        self.state = state
        self.out = out
        self.writes = writes
        self.transfer = transfer
        self.restorer = restorer
        self.log_recovery = log_recovery
        self.lost: LostSnapshot | None = None
        self._log = durable.log
        self._damage = durable.damage

    def begin(self) -> None:
        """The first transition: boots, or asks for the snapshot that is lost."""
        if self.state.segments_whole is None:
            self.log_recovery.begin()
            return
        check(self.state.replica_count > 1, "a single replica has nobody to fetch its snapshot from")
        self.lost = LostSnapshot()
        self.ask()

    def ask(self) -> None:
        """Asks the next replica in turn for what is missing, at most once per repair timeout without an answer."""
        lost = self.lost
        if lost is None or lost.restored is not None:
            return
        if self.state.ticks - lost.asked_at < self.state.config.repair_timeout_ticks:
            return
        if lost.arrival.received and lost.unanswered > 2 * len(self.state.others):
            lost = self._begin_anew(lost, plain=lost.plain)  # nobody goes on from here: what came was bad
        if not lost.arrival.received and lost.unanswered > ROUNDS_IN_VAIN * len(self.state.others):
            self.take_any()
            return
        lost.unanswered += 1
        lost.asked_at = self.state.ticks
        to = self.state.others[lost.asked % len(self.state.others)]
        lost.asked += 1
        block = self.state.superblock
        self.transfer.outline_unneeded(lost.arrival)
        offset, end = lost.arrival.wanted
        self.out.send(
            to, RequestSnapshot(block.checkpoint, block.snapshot, offset, self.state.node, self.state.clock, end)
        )

    def take_any(self) -> None:
        """Nobody has the snapshot: the log that the primary has now takes the place of the own one."""
        state, damage = self.state, self._damage
        held = (*self._log, *(() if damage is None else damage.held))
        state.log_repair = LogRepair(
            {prepare.header.checksum: prepare for prepare in held},
            {},
            0,
            CHECKSUM_NONE,
            OP_UNKNOWN,
            snapshot_op_min=state.superblock.checkpoint,
        )
        self.lost = None
        self.log_recovery.begin()

    def _begin_anew(self, lost: LostSnapshot, *, plain: bool) -> LostSnapshot:
        arrival = Arrival.plain() if plain else Arrival()
        self.lost = LostSnapshot(arrival, plain, asked=lost.asked)
        return self.lost

    def on_snapshot_chunk(self, message: SnapshotChunk) -> None:
        """The next bytes of the snapshot that is lost."""
        lost, block = self.lost, self.state.superblock
        if (
            lost is None
            or lost.restored is not None
            or (message.op, message.checksum) != (block.checkpoint, block.snapshot)
        ):
            self.out.ignore("snapshot_chunk: not of the snapshot that is lost")
            return
        right = checksum_chunk(message.op, message.offset, message.data)
        if message.offset != lost.arrival.wanted[0] or not message.data or message.data_checksum != right:
            self.out.ignore("snapshot_chunk: not the next one")
            return
        self._take(lost, message)

    def _take(self, lost: LostSnapshot, message: SnapshotChunk) -> None:
        right = self.transfer.take_chunk(lost.arrival, message, 0)
        arrival = lost.arrival
        if arrival.received and arrival.digest() == self.state.superblock.snapshot:
            self._restore(lost)
            return
        if arrival.outline is not None and 0 < arrival.outline.size <= len(arrival.received):
            self.out.io_errors.append(f"snapshot of op {message.op}: checksum {arrival.digest()}")
            self._begin_anew(lost, plain=True)
            return
        if right:
            lost.asked -= 1  # the next question goes to the same replica
        lost.unanswered, lost.asked_at = 0, LONG_AGO
        self.ask()

    def _restore(self, lost: LostSnapshot) -> None:
        block = self.state.superblock
        snapshot = Snapshot(block.checkpoint, block.snapshot, bytes(lost.arrival.received))
        try:
            lost.restored = self.restorer.snapshot(snapshot)
        except SnapshotError as error:
            self.out.io_errors.append(str(error))
            self._begin_anew(lost, plain=True)
            return
        self.writes.write_snapshot(snapshot)

    def on_snapshot_written(self) -> None:
        """The snapshot is whole again on this disk: the replica goes on to its log."""
        lost = self.lost
        if lost is None or lost.restored is None or lost.restored.header is None:
            return
        header = lost.restored.header
        parent = self._log[0].header.parent if self._log else header.checksum
        check(parent == header.checksum, f"the log above op {header.op} begins with the parent {parent}")
        self.lost = self.state.segments_whole = None
        self.state.load(self._log, lost.restored)
        self.log_recovery.begin()
