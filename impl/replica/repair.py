"""State transfer: request_start_view, the bodies that a log to install lacks, and its installation (rules 5 to 7).

An installation goes: window of headers connects to the own log → bodies fetched → bodies written as repair → one
superblock write with view, log_view and log head → the new log replaces the old one. Until that write is durable the
replica keeps its view, its log_view and its whole log.
"""

from __future__ import annotations

from impl.checks import check
from impl.messages import (
    Prepare,
    PrepareHeader,
    PrepareOk,
    PrepareResponse,
    RequestPrepare,
    RequestStartView,
    StartView,
    prepare_is_valid,
)
from impl.replica.control import Control
from impl.replica.log import Log
from impl.replica.state import InstallTarget, Status, checksums, window_error


class Repair(Control):
    """Installs the log of a later view, and serves those who do."""

    # Asking for a start_view, and answering

    def on_later_view(self, view: int) -> None:
        """A message says that `view`, later than ours, has started: its primary is asked for its start_view."""
        if view % self.replica_count == self.node or (self.target is not None and self.target.view >= view):
            self.ignore("later view: own, or being installed")
            return
        self.request_start_view(view, self.commit_min + 1 if self.commit_min else self.op)

    def request_start_view(self, view: int, from_op: int, *, urgent: bool = False) -> None:
        """Asks, at most once per repair timeout unless urgent (a longer window is needed)."""
        if not urgent and self.ticks - self.start_view_asked_at < self.config.repair_timeout_ticks:
            return
        self.start_view_asked_at = self.ticks
        self.send(view % self.replica_count, RequestStartView(view, max(1, from_op), self.node, self.clock))

    def on_request_start_view(self, message: RequestStartView) -> None:
        """Only the normal primary of the view asked for answers, with its current op."""
        if not self.is_normal_primary or message.view != self.view:
            self.ignore("request_start_view: not the normal primary of its view")
            return
        headers = self.window(message.from_op)
        last = self.start_view_own
        if last is not None and (last.op, last.commit, last.headers) == (self.op, self.commit_max, headers):
            self.send(message.replica, last)
            return
        seq = self.emit(
            "send_start_view",
            m_type="start_view",
            m_view=self.view,
            m_op=self.op,
            m_commit=self.commit_max,
            m_log=checksums(headers),
        )
        answer = StartView(self.view, self.op, self.commit_max, headers, self.node, self.clock, seq)
        self.send(message.replica, answer)

    # Receiving one

    def on_start_view(self, message: StartView) -> None:
        """The primary of this or a later view offers its log."""
        if message.view % self.replica_count != message.replica:
            self.ignore("start_view: not from the primary of its view")
            return
        error = window_error(message.headers, message.op, message.view)
        if error is not None:
            self.ignore(f"start_view: {error}")
            return
        if message.view < self.view:
            self.ignore("start_view: of an older view")
            return
        if message.view == self.view and self.status is Status.NORMAL:
            self._on_start_view_again(message)
            return
        self.heard_at = self.ticks
        target = self.target
        if target is not None and (target.view, target.op) >= (message.view, message.op):
            self.ignore("start_view: one as new is being installed")
            return
        if not self.connects(message.headers):
            self._request_longer_window(message)
            return
        if "commit.false_ack_after_start_view" in self.faults:
            self._acknowledge_falsely(message)
        self.target = InstallTarget(
            view=message.view,
            op=message.op,
            commit=message.commit,
            headers=message.headers,
            source=message.replica,
            seq=message.seq,
            as_primary=False,
        )
        self.continue_install()

    def _on_start_view_again(self, message: StartView) -> None:
        """Our own view's start_view, repeated: the primary lacks our acknowledgements (or lost them)."""
        self.heard_at = self.ticks
        for header in message.headers:
            if message.commit < header.op <= self.op and self.log.checksum(header.op) == header.checksum:
                self.acknowledge_again(header.op)

    def _request_longer_window(self, message: StartView) -> None:
        from_op = self.lower_from_op(message.headers)
        if from_op is None:
            self.ignore("start_view: contradicts the executed prefix")
            return
        self.request_start_view(message.view, from_op, urgent=True)

    def lower_from_op(self, headers: tuple[PrepareHeader, ...]) -> int | None:
        """From where a window that does not connect should start; None if it should have connected already."""
        base = headers[0].op - 1
        if base <= self.commit_min:
            return None
        from_op = min(base, self.op) - max(8, len(headers))
        return max(self.commit_min + 1, from_op, 1)

    def _acknowledge_falsely(self, message: StartView) -> None:
        """Fault commit.false_ack_after_start_view: acknowledges the whole range without looking in the journal."""
        for header in message.headers:
            if header.op > message.commit:
                seq = self.emit(
                    "prepare_ok",
                    m_type="prepare_ok",
                    m_view=message.view,
                    m_op=header.op,
                    m_checksum=header.checksum,
                )
                acknowledgement = PrepareOk(message.view, header.op, header.checksum, self.node, self.clock, seq)
                self.send(message.replica, acknowledgement)

    # Installing

    def body_of(self, header: PrepareHeader) -> Prepare | None:
        """The entry with its body, if it is here."""
        prepare = self.log.get(header.op)
        if prepare is not None and prepare.header.checksum == header.checksum:
            return prepare
        found = self.repaired.get(header.checksum)
        if found is None and "view.blind_start_view_head" in self.faults:
            return Prepare(header, b"")
        return found

    def continue_install(self) -> None:
        """Takes the next step of the installation that can be taken now."""
        target = self.target
        if target is None or self.superblock_writing is not None:
            return
        if target.view < self.view or (target.view == self.view and self.status is Status.NORMAL):
            self.target = None
            return
        if any(self.body_of(header) is None for header in self._above_base(target)):
            self._request_bodies(target)
            return
        if self.journal_busy or self.journal_refuses:
            return
        log = self.log_of(target)
        unsure = log.slice(min(target.base, self.durable_op) + 1, log.op)
        missing = [prepare for prepare in unsure if not self._is_journaled(prepare)]
        if missing:
            self.write_prepares(missing, repair=True)
            return
        self.write_superblock(
            view=target.view,
            log_view=target.view,
            head_op=target.op,
            head_checksum=log.head,
            then=self.install,
        )

    def _above_base(self, target: InstallTarget) -> tuple[PrepareHeader, ...]:
        """The window's headers whose entries the log to install has in memory."""
        return target.headers[max(0, self.log.base - target.base) :]

    def _is_journaled(self, prepare: Prepare) -> bool:
        blind = "view.blind_start_view_head" in self.faults and prepare.header.size != len(prepare.body)
        return blind or prepare.header.checksum in self.journaled

    def log_of(self, target: InstallTarget) -> Log:
        """The log to install: the own log below the window, then the window's entries."""
        check(self.connects(target.headers), "the log to install is a chain")
        log = Log(self.log.slice(1, target.base), self.log.base_header)
        for header in self._above_base(target):
            prepare = self.body_of(header)
            if prepare is not None:
                log.append(prepare)
        check(log.op == target.op, "the log to install is complete")
        return log

    def install(self) -> None:
        """The superblock with the new log head is durable: the log is replaced, the replica is normal."""
        target = self.target
        check(target is not None, "an installation has a target")
        if target is None:
            return
        self.log = self.log_of(target)
        self.durable_op = self.op
        self.target = None
        self.repaired = {}
        self.view = target.view
        self.log_view = target.view
        self.transition_to_normal(target)

    def transition_to_normal(self, target: InstallTarget) -> None:
        """From view_change, or from normal in an earlier view, to normal as a backup."""
        self.enter_normal()
        self.raise_commit_max(target.commit)
        self.emit(
            "on_start_view",
            m_type="start_view",
            m_from=target.source,
            m_seq=target.seq,
            m_view=target.view,
            m_op=target.op,
            m_commit=target.commit,
            m_log=checksums(target.headers),
        )
        for op in range(max(self.commit_min, target.commit) + 1, self.op + 1):
            self.acknowledge(op)
        self.execute_committed()

    def enter_normal(self) -> None:
        """Normal status in a view just installed: what belonged to the view before is forgotten."""
        self.status = Status.NORMAL
        self.acks = {}
        self.acks_sent = {}
        self.prepare_buffer = {}
        self.request_queue = {}
        self.waiters = set()
        self.start_view_own = None
        self.member_supports = {}
        self.view_changes_failed = 0
        self.heard_at = self.ticks
        self.progress_at = self.ticks
        self.retransmit_at = self.ticks
        self.heartbeat_at = self.ticks
        self.unexecuted = {
            prepare.header.client: prepare.header.op for prepare in self.log.slice(self.commit_min + 1, self.op)
        }

    # Bodies

    def _request_bodies(self, target: InstallTarget) -> None:
        if target.attempts and self.ticks - target.asked_at < self.config.repair_timeout_ticks:
            return
        wanted = [(header.op, header.checksum) for header in self._above_base(target) if self.body_of(header) is None]
        to = (target.source + target.attempts) % self.replica_count
        if to == self.node:
            to = (to + 1) % self.replica_count
        target.attempts += 1
        target.asked_at = self.ticks
        limit = self.config.request_prepare_max
        if to != self.node:
            self.send(to, RequestPrepare(target.view, tuple(wanted[:limit]), self.node, self.clock))

    def on_request_prepare(self, message: RequestPrepare) -> None:
        """Sends the bodies asked for that are here; as the primary of the view, its own prepares again."""
        found: list[Prepare] = []
        for op, checksum in message.wanted[: self.config.request_prepare_max]:
            prepare = self.log.get(op)
            if checksum:
                if prepare is None or prepare.header.checksum != checksum:
                    prepare = self.repaired.get(checksum)
                if prepare is not None:
                    found.append(Prepare(prepare.header, prepare.body))
            elif prepare is not None and self.is_normal_primary and prepare.header.view == message.view == self.view:
                self.send(message.replica, self.stamped(prepare))
        if found:
            self.send(message.replica, PrepareResponse(tuple(found), self.node, self.clock))

    def on_prepare_response(self, message: PrepareResponse) -> None:
        """Bodies of the log to install."""
        target = self.target
        if target is None:
            self.ignore("prepare_response: nothing is being installed")
            return
        wanted = {header.checksum for header in self._above_base(target) if self.body_of(header) is None}
        for prepare in message.prepares:
            if prepare.header.checksum in wanted and prepare_is_valid(prepare):
                self.repaired[prepare.header.checksum] = prepare
                target.attempts = 0
        self.continue_install()
