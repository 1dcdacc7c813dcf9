"""Boot from durable state (rule 8; TigerBeetle, later; seed 003)."""

from __future__ import annotations

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.messages import CHECKSUM_NONE
from viewproof.impl.replica.log import Log
from viewproof.impl.replica.restore import restore_nothing
from viewproof.impl.replica.state import Status
from viewproof.impl.replica.view_change import ViewChange


class Boot(ViewChange):
    """The first transition of a replica's process."""

    def boot_now(self) -> None:
        """Over a data file never booted (sequence 1): normal in view 0, once a superblock write has marked it used.

        The mark keeps a primary that crashes before its first append from preparing in view 0 again. A first boot
        that died before the mark was durable is told by its trace (seq above 0): the next one is a restart.
        """
        if self.superblock.sequence == 1 and self.op == 0 and self.seq == 0:
            self.status = Status.NORMAL
            self.emit("start", configuration=True)
            self.write_superblock(view=0, log_view=0, head_op=0, head_checksum=CHECKSUM_NONE, then=self._marked_used)
            return
        check(
            "boot.slot_collision_panics" not in self.faults or self.relics == 0,
            f"the journal holds {self.relics} records at or below the checkpoint {self.checkpoint}",
        )
        self._apply_faults()
        keeps_view = self.replica_count == 1 and "view.solo_keeps_view" in self.faults
        behind = self.log_view < self.view or (self.primary == self.node and not keeps_view)
        self.status = Status.VIEW_CHANGE if behind else Status.NORMAL
        self.do_view_change_allowed = False
        self.unexecuted = {prepare.header.client: prepare.header.op for prepare in self.log}
        self.emit("restart", configuration=True)
        if "boot.replays_uncommitted" in self.faults:
            while self.commit_min < self.op:
                self._execute(self.commit_min + 1)

    def _marked_used(self) -> None:
        """From here on messages are handled: a pending superblock write is no longer in the way."""
        self.heard_at = self.ticks

    def _apply_faults(self) -> None:
        if "boot.all_zero" in self.faults:
            self.view = self.log_view = self.durable_op = self.commit_min = self.commit_max = self.checkpoint = 0
            self.log = Log()
            nothing = restore_nothing(self.superblock, self.config)
            self.state_machine, self.client_table = nothing.state_machine, nothing.client_table
            self.enabled, self.snapshot = nothing.enabled, None
            self.update_digest()
        if "boot.view_from_last_prepare" in self.faults:
            last = self.log.get(self.op)
            header = self.log.base_header if last is None else last.header
            self.view = self.log_view = 0 if header is None else header.view
