"""Timeouts, counted in ticks: what a replica does when nothing (or not enough) arrives.

Timeouts of view changes differ per replica and view by a fixed function, and grow with failed attempts, so that some
replica moves alone first and the others follow it: view changes end (L1). A primary that cannot commit steps down:
its messages may reach the backups although theirs do not reach it.
"""

from __future__ import annotations

from viewproof.impl.replica.log_recovery import LogRecovery
from viewproof.impl.replica.state import Status


class Timeouts(LogRecovery):
    """The handlers of elapsed time."""

    def tick(self) -> None:
        """One tick has passed."""
        self.ticks += 1
        if self.writes_failed:
            self.retry_writes()
        self.advance_checkpoint()
        self.ask_for_lost_snapshot()
        self.ask_for_lost_prepares()
        if self.superblock_writing is not None or self.status is Status.RECOVERING:
            return
        if self.status is Status.VIEW_CHANGE:
            self._tick_view_change()
        elif self.view % self.replica_count == self.node:
            self._tick_primary()
        else:
            self._tick_backup()
        if (
            self.target is not None
            and self.superblock_writing is None
            and self.ticks - self.repair_at >= self.config.repair_timeout_ticks
        ):
            self.repair_at = self.ticks
            self.continue_install()

    def _jitter(self) -> int:
        """Ticks added to a view change timeout: a fixed function of replica and view."""
        return (self.node * 7919 + self.view * 104_729) % self.config.jitter_ticks

    def _tick_primary(self) -> None:
        config, now = self.config, self.ticks
        if now - self.heartbeat_at >= config.commit_timeout_ticks:
            self.on_commit_timeout()
        if self.op == self.commit_max:
            self.progress_at = now
            return
        if now - self.retransmit_at >= config.prepare_timeout_ticks:
            self.on_prepare_timeout()
        if now - self.progress_at >= config.abdicate_timeout_ticks:
            self.on_abdicate_timeout()

    def on_commit_timeout(self) -> None:
        """The primary's heartbeat is due."""
        self.heartbeat_at = self.ticks
        self.send_commit()

    def on_prepare_timeout(self) -> None:
        """Prepares are still not acknowledged by a quorum."""
        self.retransmit_at = self.ticks
        self.resend_prepares()

    def on_abdicate_timeout(self) -> None:
        """The primary has prepares and no progress for long: the next view may do better."""
        self.transition_to_view_change(self.view + 1)

    def _tick_backup(self) -> None:
        config, now = self.config, self.ticks
        if now - self.heard_at >= config.normal_timeout_ticks + self._jitter():
            self.on_normal_timeout()
            return
        lacks = self.target is None and (self.commit_max > self.op or self.prepare_buffer)
        if lacks and now - self.repair_at >= config.repair_timeout_ticks:
            self.repair_at = now
            self.fill_gap()

    def on_normal_timeout(self) -> None:
        """A backup has not heard of its primary for long."""
        self.transition_to_view_change(self.view + 1)

    def _tick_view_change(self) -> None:
        config, now = self.config, self.ticks
        backoff = min(self.view_changes_failed, config.backoff_steps_max) * config.backoff_ticks
        if now - self.heard_at >= config.view_change_timeout_ticks + backoff + self._jitter():
            self.on_view_change_timeout()
        elif now - self.resent_at >= config.resend_timeout_ticks:
            self.on_resend_timeout()

    def on_view_change_timeout(self) -> None:
        """The view has not started in time."""
        self.transition_to_view_change(self.view + 1)

    def on_resend_timeout(self) -> None:
        """Messages of the view change may have been lost."""
        self.resent_at = self.ticks
        self.resend_view_change()
