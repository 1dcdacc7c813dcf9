"""The view change: start_view_change, do_view_change, and the start of a view by its primary (rules 2 and 5).

Durable before sent: the view before start_view_change; every entry offered before do_view_change; the whole log, view
and log_view before start_view. At most one do_view_change per view, ever: none after a restart in that view.
"""

from __future__ import annotations

from msgspec.structs import replace

from viewproof.impl.interface.messages import (
    DoViewChange,
    Prepare,
    PrepareHeader,
    RequestDoViewChange,
    RequestStartView,
    StartViewChange,
)
from viewproof.impl.replica.repair import Repair
from viewproof.impl.replica.state import InstallTarget, Status, checksums, window_error


class ViewChange(Repair):
    """Leaves a view and starts the next."""

    # Entering a view change

    def transition_to_view_change(self, view: int, trigger: StartViewChange | DoViewChange | None = None) -> None:
        """From normal, or view_change in an earlier view: the view is made durable, then start_view_change is sent.

        `trigger` is the message of the later view that caused it; it is handled once the view is entered.
        """

        def then() -> None:
            self._enter_view_change(view, trigger)
            if isinstance(trigger, StartViewChange):
                self.on_start_view_change(trigger)
            elif isinstance(trigger, DoViewChange):
                self.on_do_view_change(trigger)

        self.write_superblock(
            view=view,
            log_view=self.superblock.log_view,
            head_op=self.superblock.head_op,
            head_checksum=self.superblock.head_checksum,
            then=then,
        )

    def _enter_view_change(self, view: int, trigger: StartViewChange | DoViewChange | None) -> None:
        self.view = view
        self.status = Status.VIEW_CHANGE
        self.start_view_changes = {self.node}
        self.do_view_changes = {}
        self.do_view_change_own = None
        self.do_view_change_allowed = True
        self.start_view_own = None
        self.forget_acks()
        self.acks_sent = {}
        self.prepare_buffer = {}
        self.request_queue = {}
        self.waiters = set()
        if self.target is not None and self.target.view < view:
            self.target = None
        self.view_changes_failed += 1
        self.heard_at = self.ticks
        self.resent_at = self.ticks
        seq = self.emit(
            "start_view_change",
            m_type="start_view_change",
            m_from=None if trigger is None else trigger.replica,
            m_seq=None if trigger is None else trigger.seq,
            m_view=view,
        )
        self.start_view_change_own = StartViewChange(view, self.node, self.clock, seq)
        self.send_others(self.start_view_change_own)
        self.send_do_view_change()

    def on_start_view_change(self, message: StartViewChange) -> None:
        """Another replica wants this view, or a later one."""
        if message.view > self.view:
            self.transition_to_view_change(message.view, message)
            return
        if message.view < self.view or self.status is not Status.VIEW_CHANGE:
            self.ignore("start_view_change: not in that view change")
            return
        if message.replica in self.start_view_changes:
            self.ignore("start_view_change: already counted")
            return
        self.start_view_changes.add(message.replica)
        self.emit(
            "on_start_view_change",
            m_type="start_view_change",
            m_from=message.replica,
            m_seq=message.seq,
            m_view=message.view,
        )
        self.send_do_view_change()

    # Offering the log

    def on_request_start_view(self, message: RequestStartView) -> None:
        """A replica that mends its log may have been in a later view, and takes no start_view of this one. It calls
        nobody into a later view, so the primary does.
        """
        if self.is_normal_primary and message.view > self.view and self.superblock_writing is None:
            self.transition_to_view_change(message.view)
        else:
            super().on_request_start_view(message)

    def send_do_view_change(self) -> None:
        """Offers the log once a quorum wants the view and the journal holds all of it."""
        if (
            self.status is not Status.VIEW_CHANGE
            or self.do_view_change_own is not None
            or not self.do_view_change_allowed
            or len(self.start_view_changes) < self.quorums.view_change
            or self.superblock_writing is not None
        ):
            return
        if self.durable_op < self.op:
            self.append_queued()
            return
        headers = self.window(self.commit_min + 1)
        seq = self.emit(
            "do_view_change",
            m_type="do_view_change",
            m_view=self.view,
            m_log_view=self.log_view,
            m_op=self.op,
            m_commit=self.commit_min,
            m_log=checksums(headers),
        )
        message = DoViewChange(self.view, self.log_view, self.op, self.commit_min, headers, self.node, self.clock, seq)
        self.do_view_change_own = message
        if self.primary == self.node:
            self.do_view_changes[self.node] = message
            self._choose_log()
        else:
            self.send(self.primary, message)

    def on_request_do_view_change(self, message: RequestDoViewChange) -> None:
        """The new primary needs a longer window of the log we offered (it is frozen since)."""
        own = self.do_view_change_own
        if own is None or message.view != self.view or self.status is not Status.VIEW_CHANGE or self.op != own.op:
            self.ignore("request_do_view_change: no such offer")
            return
        headers = self.window(message.from_op)
        self.send(
            message.replica,
            DoViewChange(own.view, own.log_view, own.op, own.commit, headers, self.node, self.clock, own.seq),
        )

    def on_do_view_change(self, message: DoViewChange) -> None:
        """A replica offers its log to us, the primary of the view.

        A primary restarted in the view has forgotten what it offered and received: it leaves the view to its timeout.
        """
        error = window_error(message.headers, message.op, message.view)
        if error is not None or message.log_view >= message.view:
            self.ignore(f"do_view_change: {error or 'log_view is not below its view'}")
            return
        if message.view > self.view:
            self.transition_to_view_change(message.view, message)
            return
        waits = self.status is Status.VIEW_CHANGE and self.primary == self.node and self.do_view_change_allowed
        if message.view < self.view or not waits:
            self.ignore("do_view_change: not the primary of that view change")
            return
        known = self.do_view_changes.get(message.replica)
        if known is not None:
            if len(message.headers) > len(known.headers):
                self.do_view_changes[message.replica] = message
                self._choose_log()
            return
        if len(self.do_view_changes) >= self.quorums.view_change:
            self.ignore("do_view_change: the quorum is complete")
            return
        self.do_view_changes[message.replica] = message
        self.emit(
            "on_do_view_change",
            m_type="do_view_change",
            m_from=message.replica,
            m_seq=message.seq,
            m_view=message.view,
            m_log_view=message.log_view,
            m_op=message.op,
            m_commit=message.commit,
            m_log=checksums(message.headers),
        )
        self._choose_log()

    # Starting the view

    def _best_offer(self) -> DoViewChange:
        """The offer of the largest (log_view, op); the own one wins a tie, then the lowest replica."""
        return max(
            self.do_view_changes.values(),
            key=lambda offer: (offer.log_view, offer.op, offer.replica == self.node, -offer.replica),
        )

    def _choose_log(self) -> None:
        """With q_v do_view_changes: the largest log becomes the target of the installation."""
        if len(self.do_view_changes) < self.quorums.view_change or self.superblock_writing is not None:
            return
        if self.target is not None and self.target.as_primary:
            return
        best = self._best_offer()
        if "view.scalar_dvc_truncates_hole" in self.faults:
            best = self._cut_at_own_hole(best)
        if not self.connects(best.headers):
            self._request_longer_offer(best)
            return
        self.target = InstallTarget(
            view=self.view,
            op=best.op,
            commit=self._commit_offered(best),
            headers=best.headers,
            source=best.replica,
            seq=best.seq,
            as_primary=True,
        )
        if "view.log_view_at_merge" in self.faults and self.log_view < self.view:
            self._raise_log_view_at_merge()
            return
        self.continue_install()

    def _commit_offered(self, best: DoViewChange) -> int:
        """What is known to be committed: the offers' commit numbers, and the one in the header of the log's head.

        The latter keeps the new pipeline within its bound, since the head was prepared within it.
        """
        commit = max(offer.commit for offer in self.do_view_changes.values())
        if "commit.dvc_carries_commit_min_only" in self.faults or not best.headers:
            return commit
        return max(commit, best.headers[-1].commit)

    def _request_longer_offer(self, best: DoViewChange) -> None:
        from_op = self.lower_from_op(best.headers)
        if from_op is None or best.replica == self.node:
            self.ignore("do_view_change: contradicts the executed prefix")
            return
        self.send(best.replica, RequestDoViewChange(self.view, from_op, self.node, self.clock))

    def _cut_at_own_hole(self, best: DoViewChange) -> DoViewChange:
        """Fault view.scalar_dvc_truncates_hole: of an offer only the numbers are read; the log is the own one, up to
        the offer's op or where it ends itself.
        """
        end = max(self.commit_min, min(best.op, self.op))
        headers = tuple(header for header in self.window(self.commit_min + 1) if header.op <= end)
        return replace(best, op=end, headers=headers)

    def body_of(self, header: PrepareHeader) -> Prepare | None:
        """As in `Repair`. With the fault view.pipeline_after_repair a new primary takes what it holds in memory above
        the commit point, also where the log that it chose has another entry.
        """
        target = self.target
        if "view.pipeline_after_repair" in self.faults and target is not None and target.as_primary:
            stale = self.log.get(header.op)
            if stale is not None and header.op > max(self.commit_max, target.commit):
                return stale
        return super().body_of(header)

    def _raise_log_view_at_merge(self) -> None:
        """Fault view.log_view_at_merge: log_view rises now, with the replica's own log head."""

        def then() -> None:
            self.log_view = self.view
            self.continue_install()

        self.write_superblock(view=self.view, log_view=self.view, head_op=self.op, head_checksum=self.head, then=then)

    def transition_to_normal(self, target: InstallTarget) -> None:
        """A backup's installation as in `Repair`; the primary's starts the view."""
        if not target.as_primary:
            super().transition_to_normal(target)
            return
        self.enter_normal()
        self.raise_commit_max(target.commit)
        headers = self.window(self.commit_min + 1)
        seq = self.emit(
            "start_view",
            m_type="start_view",
            m_from=target.source,
            m_view=self.view,
            m_op=self.op,
            m_commit=self.commit_max,
            m_log=checksums(headers),
        )
        self.start_view_own = self.start_view_message(headers, seq)
        self.send_others(self.start_view_own)
        if "view.pipeline_not_rebuilt" in self.faults:
            self.pipeline.reset(self.view, self.op)
            self.execute_committed()
            return
        for op in range(self.commit_max + 1, self.op + 1):
            self.acknowledge(op)
        self.commit_acknowledged()

    # Sending again

    def resend_view_change(self) -> None:
        """In view_change: start_view_change and do_view_change again, and the question whether the view has started."""
        if self.start_view_change_own is not None and self.start_view_change_own.view == self.view:
            self.send_others(self.start_view_change_own)
        if self.primary != self.node:
            if self.do_view_change_own is not None:
                self.send(self.primary, self.do_view_change_own)
            self.request_start_view(self.view, self.commit_min + 1 if self.commit_min else self.op)
        elif self.target is None:
            self._choose_log()
