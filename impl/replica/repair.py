"""State transfer: request_start_view, the bodies that a log to install lacks, and its installation (rules 5 to 7).

An installation goes: window of headers connects to the own log → bodies fetched → bodies written as repair → one
superblock write with view, log_view and log head → the new log replaces the old one. Until that write is durable the
replica keeps its view, its log_view and its whole log.
"""

from __future__ import annotations

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.effects import WriteSnapshot
from viewproof.impl.interface.messages import (
    Nack,
    Prepare,
    PrepareHeader,
    PrepareOk,
    PrepareResponse,
    RequestPrepare,
    RequestStartView,
    StartView,
    prepare_is_valid,
)
from viewproof.impl.replica.log import Log
from viewproof.impl.replica.state import InstallTarget, Status, WantedSnapshot, checksums, window_error
from viewproof.impl.replica.transfer import Transfer


class Repair(Transfer):
    """Installs the log of a later view, and serves those who do.

    `log_view_found`: that of the superblock over which a replica with a damaged log began.
    """

    log_view_found: int | None = None

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
        nonce = self.superblock.recovery or (0 if self.log_repair is None else self.config.nonce)
        self.send(view % self.replica_count, RequestStartView(view, max(1, from_op), self.node, self.clock, nonce))

    def on_request_start_view(self, message: RequestStartView) -> None:
        """Only the normal primary of the view asked for answers, with its current op."""
        if not self.is_normal_primary or message.view != self.view:
            self.ignore("request_start_view: not the normal primary of its view")
            return
        headers = self.window(message.from_op)
        last = self.start_view_own
        same = None if last is None else (last.op, last.commit, last.headers, last.checkpoint)
        if last is not None and not message.nonce and same == (self.op, self.commit_max, headers, self.checkpoint):
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
        self.send(message.replica, self.start_view_message(headers, seq, message.nonce))

    def start_view_message(self, headers: tuple[PrepareHeader, ...], seq: int, nonce: int = 0) -> StartView:
        """The log of this primary, and the snapshot that lies below it."""
        log = (self.view, self.op, self.commit_max, headers, self.node, self.clock, seq)
        snapshot = self.snapshot
        if snapshot is None:
            return StartView(*log, nonce=nonce)
        return StartView(*log, snapshot.op, snapshot.checksum, len(snapshot.data), nonce)

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
        if not self._is_newer(message):
            self.ignore("start_view: one as new is being installed")
            return
        connects, overflows = self.connects(message.headers), self._overflows(message.op)
        has_snapshot = message.checkpoint > self.commit_min
        if has_snapshot and (overflows or not connects) and _reaches_snapshot(message):
            self._aim_at(message, with_snapshot=True)
        elif has_snapshot and overflows and connects:
            self.request_start_view(message.view, message.checkpoint + 1)
        elif connects:
            self._aim_at(message, with_snapshot=False)
        else:
            self._request_longer_window(message)

    def _overflows(self, op: int) -> bool:
        """True if a log up to `op` has no room in the journal above the checkpoint."""
        return 0 < self.journal_slots < op - self.checkpoint

    def _is_newer(self, message: StartView) -> bool:
        """True if a start_view is of a later log than what is being installed, or has a later snapshot below it."""
        target = self.target
        if target is None or (target.view, target.op) < (message.view, message.op):
            return True
        same = (target.view, target.op) == (message.view, message.op)
        return same and target.snapshot is not None and target.snapshot.op < message.checkpoint

    def _aim_at(self, message: StartView, *, with_snapshot: bool) -> None:
        """The log of a start_view is to be installed; what was received of its snapshot, in any view, is kept."""
        if "commit.false_ack_after_start_view" in self.faults:
            self._acknowledge_falsely(message)
        snapshot: WantedSnapshot | None = None
        if with_snapshot:
            before = self.fetched
            snapshot = WantedSnapshot(message.checkpoint, message.snapshot, message.snapshot_size)
            if before is not None and (before.op, before.checksum) == (snapshot.op, snapshot.checksum):
                snapshot = before
                snapshot.durable &= self.target is not None and self.target.snapshot is before
            self.fetched = snapshot
        self.target = InstallTarget(
            view=message.view,
            op=message.op,
            commit=message.commit,
            headers=message.headers,
            source=message.replica,
            seq=message.seq,
            as_primary=False,
            snapshot=snapshot,
        )
        self.continue_install()

    def _on_start_view_again(self, message: StartView) -> None:
        """Our own view's start_view, repeated: the primary lacks our acknowledgements (or lost them).

        Or what we lack of our own view is drained there: then its snapshot is needed.
        """
        self.heard_at = self.ticks
        if message.checkpoint > self.op:
            if not _reaches_snapshot(message):
                self.request_start_view(message.view, self.op + 1)
            elif self._is_newer(message):
                self._aim_at(message, with_snapshot=True)
            return
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
        if target.view < self.view or self._is_superseded(target):
            self.target = None
            return
        if target.snapshot is None and not self.connects(target.headers):
            self.target = None  # a failed append took away the entry below the window
            return
        if target.snapshot is not None and not self._has_snapshot(target, target.snapshot):
            return
        if any(self.body_of(header) is None for header in self._above_base(target)):
            self._request_bodies(target)
            return
        if self.journal_busy or (target.snapshot is None and self._overflows(target.op)):
            return  # in the second case for the checkpoint that is pending
        log = self.log_of(target)
        restored = None if target.snapshot is None else target.snapshot.restored
        unsure = log.slice(min(target.base, self.durable_op) + 1, log.op)
        missing = [prepare for prepare in unsure if not self._is_journaled(prepare)]
        if missing:
            if not self.journal_refuses:
                self.write_prepares(missing, repair=True)
            return
        self.write_superblock(
            view=target.view,
            log_view=target.view,
            head_op=target.op,
            head_checksum=log.head,
            then=self.install,
            snapshot=None if restored is None else restored.snapshot,
        )

    def _is_superseded(self, target: InstallTarget) -> bool:
        """True for a target of our own view, once normal, unless what we lack of it can only come as a snapshot."""
        if target.view > self.view or self.status is not Status.NORMAL:
            return False
        return target.snapshot is None or target.snapshot.op <= self.op

    def _has_snapshot(self, target: InstallTarget, wanted: WantedSnapshot) -> bool:
        """True once the snapshot is here and durable; else the next step towards that is taken."""
        restored = wanted.restored
        if restored is None:
            self.fetch_snapshot(target, wanted)
            return False
        if wanted.op <= self.commit_min or not _connects_to(target.headers, restored.header):
            self.ignore("start_view: its snapshot is not below its log")
            self.target = None
            return False
        if wanted.durable or self.snapshot_writing is not None or restored.snapshot is None:
            return wanted.durable
        self.write_snapshot(restored.snapshot)
        return False

    def on_snapshot_written(self, io: WriteSnapshot) -> None:
        """A snapshot is durable: one taken here, or the one to be installed."""
        super().on_snapshot_written(io)
        wanted = None if self.target is None else self.target.snapshot
        if wanted is not None and wanted.restored is not None and wanted.restored.snapshot is not None:
            wanted.durable |= (wanted.op, wanted.checksum) == (io.op, io.checksum)

    def _base_of(self, target: InstallTarget) -> PrepareHeader | None:
        """The header of the entry below the log to install."""
        wanted = target.snapshot
        return self.log.base_header if wanted is None or wanted.restored is None else wanted.restored.header

    def _above_base(self, target: InstallTarget) -> tuple[PrepareHeader, ...]:
        """The window's headers whose entries the log to install has in memory."""
        header = self._base_of(target)
        return target.headers[max(0, (0 if header is None else header.op) - target.base) :]

    def _is_journaled(self, prepare: Prepare) -> bool:
        blind = "view.blind_start_view_head" in self.faults and prepare.header.size != len(prepare.body)
        return blind or prepare.header.checksum in self.journaled

    def log_of(self, target: InstallTarget) -> Log:
        """The log to install: the own log below the window, then the window's entries."""
        if target.snapshot is None:
            check(self.connects(target.headers), "the log to install is a chain")
            log = Log(self.log.slice(1, target.base), self.log.base_header)
        else:
            log = Log((), self._base_of(target))
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
        if target.snapshot is not None and target.snapshot.restored is not None:
            self.adopt(target.snapshot.restored)
        self.fetched = None
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
            "on_start_view" if self.log_repair is None else "recover",
            configuration=self.log_repair is not None,
            m_type="start_view",
            m_from=target.source,
            m_seq=target.seq,
            m_view=target.view,
            m_log_view=None if self.log_repair is None else self.log_view_found,
            m_op=target.op,
            m_commit=target.commit,
            m_log=checksums(target.headers),
            m_checkpoint=0 if target.snapshot is None else target.snapshot.op,
        )
        for op in range(max(self.commit_min, target.commit) + 1, self.op + 1):
            self.acknowledge(op)
        self.execute_committed()

    def enter_normal(self) -> None:
        """Normal status in a view just installed: what belonged to the view before is forgotten."""
        self.status = Status.NORMAL
        self.forget_acks()
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
        to = self.next_source(target)
        if to is None:
            return
        wanted = [(header.op, header.checksum) for header in self._above_base(target) if self.body_of(header) is None]
        limit = self.config.request_prepare_max
        self.send(to, RequestPrepare(target.view, tuple(wanted[:limit]), self.node, self.clock))

    def on_request_prepare(self, message: RequestPrepare) -> None:
        """Sends the bodies asked for that are here; as the primary of the view, its own prepares again.

        What is drained here comes as a snapshot, with start_view.
        """
        found: list[Prepare] = []
        drained = [op for op, checksum in message.wanted if not checksum and op <= self.log.base]
        if drained:
            self.on_request_start_view(RequestStartView(message.view, min(drained), message.replica, message.clock))
            return
        views = message.views
        for place, (op, checksum) in enumerate(message.wanted[: self.config.request_prepare_max]):
            prepare = self.log.get(op)
            if checksum:
                if prepare is None or prepare.header.checksum != checksum:
                    prepare = self.repaired.get(checksum)
                if prepare is not None:
                    found.append(Prepare(prepare.header, prepare.body))
                elif place < len(views):
                    self._nack(message, op, checksum, views[place])
            elif prepare is not None and self.is_normal_primary and prepare.header.view == message.view == self.view:
                self.send(message.replica, self.stamped(prepare))
        if found:
            self.send(message.replica, PrepareResponse(tuple(found), self.node, self.clock))

    def _nack(self, message: RequestPrepare, op: int, checksum: str, view: int) -> None:
        """This replica does not have an entry that the sender may have acknowledged in views up to `message.view`.

        Only in a view change to a later one: in normal status the prepare may still come (seed 002).
        """
        drained = op <= self.log.base and "nack.below_window" not in self.faults
        if self.status is not Status.VIEW_CHANGE or self.view <= message.view or drained or view < 0:
            return
        key = (self.view, op, checksum)
        if key not in self.nacks_sent:
            self.nacks_sent[key] = self.emit(
                "nack", m_type="nack", m_view=self.view, m_log_view=view, m_op=op, m_checksum=checksum
            )
        self.send(message.replica, Nack(self.view, op, checksum, self.node, self.clock, self.nacks_sent[key]))

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


def _reaches_snapshot(message: StartView) -> bool:
    """True if the window of a start_view begins right above its snapshot's op, or below."""
    return bool(message.headers) and message.headers[0].op <= message.checkpoint + 1


def _connects_to(headers: tuple[PrepareHeader, ...], header: PrepareHeader | None) -> bool:
    """True if `header` is the entry below the window, or one of the window's."""
    if header is None or not headers:
        return False
    first = headers[0]
    if header.op >= first.op:
        return header.op <= headers[-1].op and headers[header.op - first.op].checksum == header.checksum
    return header.op == first.op - 1 and header.checksum == first.parent
