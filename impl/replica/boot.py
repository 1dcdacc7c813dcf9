"""Boot from durable state (rule 8; protocol.md §4 "later TigerBeetle" and §6)."""

from __future__ import annotations

from impl.messages import CHECKSUM_NONE
from impl.replica.state import Status
from impl.replica.view_change import ViewChange


class Boot(ViewChange):
    """The first transition of a replica's process."""

    def boot_now(self) -> None:
        """Over a data file never booted (sequence 1): one superblock write marks it used, then normal in view 0.

        The mark keeps a primary that crashes before its first append from preparing in view 0 again.
        """
        superblock = self.superblock
        if superblock.sequence == 1 and not self.log:
            self.write_superblock(
                view=0, log_view=0, head_op=0, head_checksum=CHECKSUM_NONE, then=self._transition_to_normal_first
            )
            return
        self._apply_faults()
        behind = self.log_view < self.view or self.primary == self.node
        self.status = Status.VIEW_CHANGE if behind else Status.NORMAL
        self.do_view_change_allowed = False
        self.unexecuted = {prepare.header.client: prepare.header.op for prepare in self.log}
        self.emit("restart", configuration=True)
        if "boot.replays_uncommitted" in self.faults:
            while self.commit_min < self.op:
                self._execute(self.commit_min + 1)

    def _transition_to_normal_first(self) -> None:
        self.status = Status.NORMAL
        self.emit("start", configuration=True)

    def _apply_faults(self) -> None:
        if "boot.all_zero" in self.faults:
            self.view = self.log_view = self.durable_op = 0
            self.log = []
        if "boot.view_from_last_prepare" in self.faults:
            self.view = self.log_view = self.log[-1].header.view if self.log else 0
