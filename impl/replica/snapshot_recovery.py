"""A replica whose own snapshot is unreadable fetches that very snapshot from the others before it boots, or another.

Snapshots of one op are the same bytes everywhere, and the superblock has the checksum. One whose segments of messages
are not all on the disk is unreadable, too; those that are whole are not fetched. Until then the replica takes no part
in anything: to the others it is still down.

If none of the others has that snapshot any more, they have a later one. What lies between the two is in no journal, so
the own log is of no use alone: the replica takes a start_view that answers this very process, with the snapshot below
it, as one does whose log is lost (`impl.replica.log_recovery`; for the specification a loss, and `recover_snapshot`).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.durable import OP_UNKNOWN, DurableState
from viewproof.impl.interface.messages import CHECKSUM_NONE, RequestSnapshot, SnapshotChunk
from viewproof.impl.machine.partition_log import SegmentLostError, SegmentRef
from viewproof.impl.machine.snapshot import Snapshot, SnapshotError, checksum_snapshot
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
    """The own snapshot, unreadable on this disk, as far as it is here again.

    `snapshot` once its own bytes are, `restored` once the segments that it names are, too.
    """

    received: bytearray = field(default_factory=bytearray)
    asked: int = 0
    unanswered: int = 0
    asked_at: int = LONG_AGO
    snapshot: Snapshot | None = None
    segments: tuple[SegmentRef, ...] = ()
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
        self._durable: DurableState | None = durable if durable.unreadable else None

    def begin(self) -> None:
        """The first transition: boots, or asks for the snapshot that is lost."""
        durable, self._durable = self._durable, None
        if durable is None:
            self.log_recovery.begin()
            return
        check(self.state.replica_count > 1, "a single replica has nobody to fetch its snapshot from")
        self.lost = LostSnapshot()
        if durable.snapshot:
            block = self.state.superblock
            snapshot = self.lost.snapshot = Snapshot(block.checkpoint, block.snapshot, durable.snapshot)
            self.lost.segments = self.restorer.segments(snapshot)
            self.transfer.segments.assume([ref for ref in self.lost.segments if ref not in durable.lost])
        self.ask()

    def ask(self) -> None:
        """Asks the next replica in turn for what is missing, at most once per repair timeout without an answer."""
        lost = self.lost
        if lost is None or lost.restored is not None:
            return
        if lost.snapshot is not None:
            self._load(lost, lost.snapshot)
            return
        if self.state.ticks - lost.asked_at < self.state.config.repair_timeout_ticks:
            return
        if lost.received and lost.unanswered > 2 * len(self.state.others):
            lost = self._begin_anew(lost)  # nobody goes on from here: what came was bad
        if not lost.received and lost.unanswered > ROUNDS_IN_VAIN * len(self.state.others):
            self.take_any()
            return
        lost.unanswered += 1
        lost.asked_at = self.state.ticks
        to = self.state.others[lost.asked % len(self.state.others)]
        lost.asked += 1
        block, offset = self.state.superblock, len(lost.received)
        self.out.send(to, RequestSnapshot(block.checkpoint, block.snapshot, offset, self.state.node, self.state.clock))

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

    def _begin_anew(self, lost: LostSnapshot) -> LostSnapshot:
        self.lost = LostSnapshot(asked=lost.asked)
        return self.lost

    def on_snapshot_chunk(self, message: SnapshotChunk) -> None:
        """The next bytes of the snapshot that is lost."""
        lost, block = self.lost, self.state.superblock
        if (
            lost is None
            or lost.snapshot is not None
            or (message.op, message.checksum) != (block.checkpoint, block.snapshot)
        ):
            self.out.ignore("snapshot_chunk: not of the snapshot that is lost")
            return
        if not self.transfer.is_next(message, lost.received, 0):
            self.out.ignore("snapshot_chunk: not the next one")
            return
        lost.received += message.data
        if checksum_snapshot(lost.received) == block.snapshot:
            lost.snapshot = Snapshot(block.checkpoint, block.snapshot, bytes(lost.received))
        lost.asked -= 1  # the next question goes to the same replica
        lost.unanswered, lost.asked_at = 0, LONG_AGO
        self.ask()

    def _load(self, lost: LostSnapshot, snapshot: Snapshot) -> None:
        """Takes the next step towards a snapshot whose segments are all on this disk; then it is written."""
        segments = self.transfer.segments
        try:
            lost.segments = lost.segments or self.restorer.segments(snapshot)
            if segments.is_given_up or not segments.require(lost.segments):
                return
            lost.restored = self.restorer.snapshot(snapshot)
        except SegmentLostError as error:
            segments.forget(error.refs)
        except SnapshotError as error:
            self.out.io_errors.append(str(error))
            self._begin_anew(lost)
        else:
            self.writes.write_snapshot(snapshot, lost.restored.state_machine.partitions.held())

    def on_snapshot_written(self) -> None:
        """The snapshot is whole again on this disk: the replica goes on to its log."""
        lost = self.lost
        if lost is None or lost.restored is None or lost.restored.header is None:
            return
        header = lost.restored.header
        parent = self._log[0].header.parent if self._log else header.checksum
        check(parent == header.checksum, f"the log above op {header.op} begins with the parent {parent}")
        self.lost = None
        self.state.load(self._log, lost.restored)
        self.log_recovery.begin()
