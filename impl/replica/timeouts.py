"""Timeouts, counted in ticks: what a replica does when nothing (or not enough) arrives.

Timeouts of view changes differ per replica and view by a fixed function, and grow with failed attempts, so that some
replica asks first and, with a quorum that wants the same, goes first: view changes end (L1). A primary that cannot
commit or hears no quorum steps down: its messages may reach the backups although theirs do not reach it. So does one
whose disk is slower than the others'.
"""

from __future__ import annotations

from viewproof.impl.replica.control import Control
from viewproof.impl.replica.installation import Installation
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.pre_votes import PreVotes
from viewproof.impl.replica.start_views import StartViews
from viewproof.impl.replica.state import State, Status
from viewproof.impl.replica.view_change import ViewChange
from viewproof.impl.replica.writes import Writes


class Timeouts:
    """The handlers of elapsed time, of a replica that has booted."""

    def __init__(
        self,
        state: State,
        writes: Writes,
        normal: NormalOperation,
        control: Control,
        installation: Installation,
        start_views: StartViews,
        view_change: ViewChange,
        pre_votes: PreVotes,
    ) -> None:
        self.state = state
        self.writes = writes
        self.normal = normal
        self.control = control
        self.installation = installation
        self.start_views = start_views
        self.view_change = view_change
        self.pre_votes = pre_votes

    def on_tick(self) -> None:
        """One tick has passed."""
        state, timers = self.state, self.state.timers
        if state.status is Status.VIEW_CHANGE:
            self._tick_view_change()
        elif state.is_primary:
            self._tick_primary()
        else:
            self._tick_backup()
        if state.target is None or self.writes.superblock_writing is not None:
            return
        if state.ticks - timers.repair_at >= state.config.repair_timeout_ticks:
            timers.repair_at = state.ticks
            self.installation.advance()

    def _jitter(self) -> int:
        """Ticks added to a view change timeout: a fixed function of replica and view."""
        return (self.state.node * 7919 + self.state.view * 104_729) % self.state.config.jitter_ticks

    def _tick_primary(self) -> None:
        state, config, timers, now = self.state, self.state.config, self.state.timers, self.state.ticks
        if now - timers.heartbeat_at >= config.commit_timeout_ticks:
            self.on_commit_timeout()
        if not self.normal.hears_quorum or self._is_slow:
            self.on_abdicate_timeout()
            return
        if self.pre_votes.left_behind():
            self.view_change.begin_latest()
            return
        if state.op == state.commit_max:
            timers.progress_at = now
            return
        if now - timers.retransmit_at >= config.prepare_timeout_ticks:
            self.on_prepare_timeout()
        if now - timers.progress_at >= config.abdicate_timeout_ticks:
            self.on_abdicate_timeout()

    def on_commit_timeout(self) -> None:
        """The primary's heartbeat is due."""
        self.state.timers.heartbeat_at = self.state.ticks
        self.control.send_heartbeat()

    def on_prepare_timeout(self) -> None:
        """Prepares are still not acknowledged by a quorum."""
        self.state.timers.retransmit_at = self.state.ticks
        self.start_views.resend_uncommitted()

    def on_abdicate_timeout(self) -> None:
        """The primary makes no progress for long, is not heard, or is slow: the next view may do better."""
        self.view_change.begin_next()

    @property
    def _is_slow(self) -> bool:
        """True if the next primary would be faster; looked at once the view has lasted a while."""
        state = self.state
        lasts = state.ticks - state.timers.normal_at >= state.config.abdicate_timeout_ticks
        return lasts and self.normal.acknowledgements.pace.is_slow

    def _tick_backup(self) -> None:
        state, config, timers, now = self.state, self.state.config, self.state.timers, self.state.ticks
        if now - timers.heard_at >= config.normal_timeout_ticks + self._jitter():
            self.on_normal_timeout()
            return
        lacks = state.target is None and self.normal.has_gap
        if lacks and now - timers.repair_at >= config.repair_timeout_ticks:
            timers.repair_at = now
            self.normal.fill_gap()

    def on_normal_timeout(self) -> None:
        """A backup has not heard of its primary for long: it asks for the next view."""
        self.view_change.want_next()

    def _tick_view_change(self) -> None:
        config, timers, now = self.state.config, self.state.timers, self.state.ticks
        backoff = min(timers.view_changes_failed, config.backoff_steps_max) * config.backoff_ticks
        if now - timers.heard_at >= config.view_change_timeout_ticks + backoff + self._jitter():
            self.on_view_change_timeout()
        if self.writes.superblock_writing is None and now - timers.resent_at >= config.resend_timeout_ticks:
            self.on_resend_timeout()

    def on_view_change_timeout(self) -> None:
        """The view has not started in time: the next one is asked for."""
        self.view_change.want_next()

    def on_resend_timeout(self) -> None:
        """Messages of the view change may have been lost."""
        self.state.timers.resent_at = self.state.ticks
        self.view_change.resend()
