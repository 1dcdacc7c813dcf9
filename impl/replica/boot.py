"""Boot from durable state (rule 8; TigerBeetle, later; seed 003)."""

from __future__ import annotations

from viewproof.impl.interface.messages import CHECKSUM_NONE
from viewproof.impl.replica.commit_path import CommitPath
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.state import State
from viewproof.impl.replica.status import StatusMachine
from viewproof.impl.replica.writes import Writes


class Boot:
    """The first transition of a replica's process. `relics`: records that a drain which was cut short left behind."""

    def __init__(
        self,
        state: State,
        out: Outbox,
        writes: Writes,
        commit_path: CommitPath,
        status: StatusMachine,
        relics: int,
    ) -> None:
        self.state = state
        self.out = out
        self.writes = writes
        self.commit_path = commit_path
        self.status = status
        self.relics = relics

    def boot(self) -> None:
        """Over a data file never booted (sequence 1): normal in view 0, once a superblock write has marked it used.

        The mark keeps a primary that crashes before its first append from preparing in view 0 again. A first boot
        that died before the mark was durable is told by its trace (seq above 0): the next one is a restart.
        """
        state = self.state
        if state.superblock.sequence > 1 or state.op > 0 or state.seq > 0:
            self.restart()
            return
        self.status.transition_to_normal_from_recovering()
        self.out.emit("start", configuration=True)
        self.writes.write_superblock(
            view=0, log_view=0, head_op=0, head_checksum=CHECKSUM_NONE, then=self._on_marked_used
        )

    def _on_marked_used(self) -> None:
        """From here on messages are handled: a pending superblock write is no longer in the way."""
        self.state.timers.heard_at = self.state.timers.normal_at = self.state.ticks

    def restart(self) -> None:
        """Over a data file that was in use."""
        if self.goes_on:
            self.status.transition_to_normal_from_recovering()
        else:
            self.status.transition_to_view_change_from_recovering()
        self.out.emit("restart", configuration=True)
        self.commit_path.begin()

    @property
    def goes_on(self) -> bool:
        """True if the own view has started and is another's: a primary forgot what was acknowledged to it."""
        return self.state.log_view == self.state.view and not self.state.is_primary
