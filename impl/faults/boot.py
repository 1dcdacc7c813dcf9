"""Mistakes at boot, and of the disk below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from viewproof.impl.faults.commit import ExecutesAnyOp
from viewproof.impl.faults.stand_ins import StandIns
from viewproof.impl.interface.checks import check
from viewproof.impl.interface.durable import BootRefusedError, SuperblockState
from viewproof.impl.interface.messages import Prepare
from viewproof.impl.machine.partition_log import SegmentRef
from viewproof.impl.replica.boot import Boot
from viewproof.impl.replica.checkpoints import Checkpoints, CheckpointWork
from viewproof.impl.replica.journal import Journal
from viewproof.impl.replica.log import Log
from viewproof.impl.replica.restore import Restorer
from viewproof.impl.storage.file import File
from viewproof.impl.storage.segments import FoundSegment, SegmentStore


class ExecutesJournal(ExecutesAnyOp):
    """All of the journal is executed."""

    def begin(self) -> None:
        super().begin()
        while self.state.commit_min < self.state.op:
            self.execute(self.state.commit_min + 1)


class TakesViewOfLastPrepare(Boot):
    """The view is that of the last prepare."""

    def restart(self) -> None:
        state = self.state
        last = state.log.get(state.op)
        header = state.log.base_header if last is None else last.header
        state.view = state.log_view = 0 if header is None else header.view
        super().restart()


class StartsFromZero(Boot):
    """Nothing is restored."""

    def restart(self) -> None:
        state = self.state
        state.view = state.log_view = state.durable_op = state.commit_min = state.commit_max = state.checkpoint = 0
        state.log = Log()
        state.adopt(Restorer(state.superblock, state.config).nothing())
        state.snapshot = None
        super().restart()


class RefusesRelics(Boot):
    """What a drain that was cut short left behind ends every boot."""

    def restart(self) -> None:
        text = f"the journal holds {self.relics} records at or below the checkpoint {self.state.checkpoint}"
        check(self.relics == 0, text)
        super().restart()


class TakesLiveSlots(Journal):
    """There is always room."""

    def fits(self, op: int) -> bool:
        return True


class AppendsWhileDraining(Journal):
    """A drain is in nothing's way."""

    @property
    def busy(self) -> bool:
        return self.appending is not None


class CompletesBeforeDrain(Checkpoints):
    """The checkpoint is complete before its drain is."""

    def drain(self, work: CheckpointWork) -> None:
        if not work.installed:
            self.state.drained = work.snapshot.op
            self.complete(work.snapshot)
        super().drain(work)


class Disk(Protocol):
    """What the stand-ins for the simulated disk need of it (`impl.sim.storage.SimStorage`)."""

    formatted: SuperblockState
    superblock: SuperblockState
    unreadable: bool
    records: list[Any]
    survivors: list[Any]
    unsynced: list[Any]


class OverwritesLive:
    """An append takes whatever slot it needs."""

    def require_free(self: Disk, oldest: int, last: int) -> None:
        """Records up to `oldest` are overwritten."""
        self.records = [record for record in self.records if record.prepare.header.op > oldest]


class ReadsOverGaps:
    """The log is the newest record of each op, chained or not."""

    def log_at_boot(self: Disk) -> list[Prepare]:
        """The log at boot."""
        newest = {record.prepare.header.op: record.prepare for record in self.records}
        log: list[Prepare] = []
        while (prepare := newest.get(self.superblock.checkpoint + len(log) + 1)) is not None:
            log.append(prepare)
        return log


class FormatsUnreadable:
    """A superblock that cannot be read is that of a new replica."""

    def on_unreadable(self: Disk) -> None:
        """It counts as formatted."""
        self.superblock, self.unreadable = self.formatted, False


class RefusesTorn:
    """A torn record ends every boot."""

    def on_torn(self: Disk) -> None:
        """The boot is refused."""
        raise BootRefusedError("a record of the journal is torn", lost=True)


class IgnoresSyncFailure:
    """What the sync at boot failed to write is taken for written."""

    def on_sync_failed(self: Disk) -> None:
        """Nothing is said."""
        self.unsynced = self.survivors


class IgnoresSegmentSyncFailure(SegmentStore):
    """A segment that failed to sync is taken for durable."""

    def sync(self, file: File) -> None:
        try:
            super().sync(file)
        except OSError:
            return


class LosesMessages(SegmentStore):
    """A partition may start with fewer messages than its snapshot says."""

    def is_whole(self, found: str, expected: str) -> bool:
        return True

    def require_complete(self, lowered: Sequence[str]) -> None:
        """Stored offsets are lowered in silence."""


class RemakesSegments(SegmentStore):
    """A segment that is not there any more is made anew, and what is new is written where it would have gone."""

    def to_mend(self, path: str, durable: bytes) -> str:
        return ""

    def open_to_add(self, durable: SegmentRef) -> File:
        return self._open(self.path(durable.key))


INDEX_ENDS = "the index ends here"


class EndsWhereIndexEnds(LosesMessages):
    """What the index does not list is not there."""

    def trusted(self, item: FoundSegment) -> FoundSegment:
        if item.problem or item.segment is None or item.indexed == len(item.segment.positions):
            return item
        item.segment.cut(item.segment.base + item.indexed)
        return replace(item, problem=INDEX_ENDS)

    def is_refused(self, item: FoundSegment) -> bool:
        return item.problem != INDEX_ENDS and super().is_refused(item)


class TakesDamagedSegments(LosesMessages):
    """A damaged segment counts as far as it is good."""

    def is_refused(self, item: FoundSegment) -> bool:
        return False


class TakesMissingSegments(LosesMessages):
    """A missing segment counts as an empty one."""

    def is_refused(self, item: FoundSegment) -> bool:
        return not item.missing and super().is_refused(item)


class SnapshotsFirst(SegmentStore):
    """A snapshot may be referred to before the segments that it names are flushed."""

    def sync(self, file: File) -> None:
        """They are left to the system."""


class TrustsTheDisk(SegmentStore):
    """What is read of a segment is taken for what was written."""

    def is_right(self, ref: SegmentRef, content: bytes) -> bool:
        return len(content) == ref.size


STAND_INS: StandIns = {
    "storage.snapshot_before_segments": {"segments": SnapshotsFirst},
    "storage.reads_unverified": {"segments": TrustsTheDisk},
    "boot.replays_uncommitted": {"commit_path": ExecutesJournal},
    "boot.replays_over_gap": {"disk": ReadsOverGaps},
    "boot.view_from_last_prepare": {"boot": TakesViewOfLastPrepare},
    "boot.all_zero": {"boot": StartsFromZero},
    "boot.offset_from_index": {"segments": EndsWhereIndexEnds},
    "boot.offset_clamp": {"segments": TakesDamagedSegments},
    "boot.recreates_missing_file": {"segments": TakesMissingSegments},
    "storage.remakes_vanished_segment": {"segments": RemakesSegments},
    "boot.swallows_sync_error": {"disk": IgnoresSyncFailure, "segments": IgnoresSegmentSyncFailure},
    "boot.one_bad_entry_forever": {"disk": RefusesTorn},
    "boot.ring_evicts_live": {"journal": TakesLiveSlots, "disk": OverwritesLive},
    "boot.slot_collision_panics": {"boot": RefusesRelics},
    "boot.checkpoint_before_drain": {"journal": AppendsWhileDraining, "checkpoints": CompletesBeforeDrain},
    "boot.view_file_unreadable_is_new": {"disk": FormatsUnreadable},
}
