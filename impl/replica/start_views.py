"""start_view: the log of a view that has started, as its primary sends it and as others take it (rules 5 to 7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from viewproof.impl.interface.effects import Send
from viewproof.impl.interface.messages import PrepareHeader, RequestStartView, StartView
from viewproof.impl.replica.acknowledgements import Acknowledgements
from viewproof.impl.replica.commit_path import CommitPath
from viewproof.impl.replica.installation import Installation
from viewproof.impl.replica.normal import stamped
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.state import LONG_AGO, State, Status
from viewproof.impl.replica.status import StatusMachine
from viewproof.impl.replica.target import InstallTarget, WantedSnapshot, checksums, window_error

OnInstalled = Callable[[InstallTarget], None]
"""What is done once a log is installed."""


class StartViews:
    """Asks for start_views, answers, and has them installed. `own`: the one that started this primary's view."""

    def __init__(
        self,
        state: State,
        out: Outbox,
        acknowledgements: Acknowledgements,
        commit_path: CommitPath,
        installation: Installation,
        status: StatusMachine,
    ) -> None:
        self.state = state
        self.out = out
        self.acknowledgements = acknowledgements
        self.commit_path = commit_path
        self.installation = installation
        self.status = status
        self.own: StartView | None = None
        self.asked_at = LONG_AGO
        self.asked_view = 0

    def forget_view(self) -> None:
        """Another view begins."""
        self.own = None

    # Asking

    def on_later_view(self, view: int) -> None:
        """A message says that `view`, later than ours, has started: its primary is asked for its start_view."""
        state = self.state
        if view % state.replica_count == state.node or (state.target is not None and state.target.view >= view):
            self.out.ignore("later view: own, or being installed")
            return
        self.request(view)

    def request(self, view: int, from_op: int | None = None, *, urgent: bool = False) -> None:
        """Asks, at most once per repair timeout unless urgent (a longer window is needed) or for a later view than the
        last time; by default for what the own log may lack.
        """
        state = self.state
        if not urgent and not self.may_ask and view <= self.asked_view:
            return
        if from_op is None:
            from_op = state.commit_min + 1 if state.commit_min else state.op
        nonce = state.superblock.recovery or (0 if state.log_repair is None else state.config.nonce)
        self.ask(view % state.replica_count, RequestStartView(view, max(1, from_op), state.node, state.clock, nonce))

    @property
    def may_ask(self) -> bool:
        """True if the last question is old."""
        return self.state.ticks - self.asked_at >= self.state.config.repair_timeout_ticks

    def ask(self, to: int, question: RequestStartView) -> None:
        """Sends a question."""
        self.asked_at, self.asked_view = self.state.ticks, question.view
        self.out.send(to, question)

    # Answering

    def on_request_start_view(self, message: RequestStartView) -> None:
        """Only the normal primary of the view asked for answers, with its current op."""
        state = self.state
        if not state.is_normal_primary or message.view != state.view:
            self.out.ignore("request_start_view: not the normal primary of its view")
            return
        headers = state.log.headers(message.from_op)
        last = self.own
        same = None if last is None else (last.op, last.commit, last.headers, last.checkpoint)
        if last is not None and not message.nonce and same == (state.op, state.commit_max, headers, state.checkpoint):
            self.out.send(message.replica, last)
            return
        seq = self.out.emit(
            "send_start_view",
            m_type="start_view",
            m_view=state.view,
            m_op=state.op,
            m_commit=state.commit_max,
            m_log=checksums(headers),
        )
        self.out.send(message.replica, self._message(headers, seq, message.nonce))

    def send_own(self, headers: tuple[PrepareHeader, ...], seq: int) -> None:
        """The view of this primary starts: all others are told, by the event `seq`."""
        self.own = self._message(headers, seq)
        self.out.send_others(self.own)

    def _message(self, headers: tuple[PrepareHeader, ...], seq: int, nonce: int = 0) -> StartView:
        """The log of this primary, and the snapshot that lies below it."""
        state, snapshot = self.state, self.state.snapshot
        log = (state.view, state.op, state.commit_max, headers, state.node, state.clock, seq)
        if snapshot is None:
            return StartView(*log, nonce=nonce)
        return StartView(*log, snapshot.op, snapshot.checksum, len(snapshot.data), nonce)

    def resend_uncommitted(self) -> None:
        """Sends uncommitted prepares of this view again to those that did not acknowledge them.

        Entries of earlier views travel with start_view, which is sent again (same content) in their place.
        """
        state, out = self.state, self.out
        behind = 0
        for op in range(state.commit_max + 1, state.op + 1):
            prepare = state.log[op]
            acknowledged = self.acknowledgements.counted.get(op, 0)
            if prepare.header.view == state.view:
                again = stamped(prepare, state.node, state.clock)
                out.effects += [Send(node, again) for node in state.others if not acknowledged >> node & 1]
            else:
                behind |= ~acknowledged
        if behind and self.own is not None:
            out.effects += [Send(node, self.own) for node in state.others if behind >> node & 1]

    # Receiving one

    def on_start_view(self, message: StartView, on_installed: OnInstalled | None = None) -> None:
        """The primary of this or a later view offers its log; `on_installed` takes the place of `on_installed` here."""
        state = self.state
        if message.view % state.replica_count != message.replica:
            self.out.ignore("start_view: not from the primary of its view")
            return
        error = window_error(message.headers, message.op, message.view)
        if error is not None:
            self.out.ignore(f"start_view: {error}")
            return
        if message.view < state.view:
            self.out.ignore("start_view: of an older view")
            return
        what = f"the start_view of view {message.view} from replica {message.replica}"
        self.installation.require_executed(what, message.view, message.op, message.headers)
        state.timers.heard_at = state.ticks
        if message.view == state.view and state.status is Status.NORMAL:
            self._on_start_view_again(message)
        elif not self._is_newer(message):
            self.out.ignore("start_view: one as new is being installed")
        else:
            self._on_start_view_newer(message, on_installed or self.on_installed)

    def _on_start_view_newer(self, message: StartView, on_installed: OnInstalled) -> None:
        state = self.state
        connects, overflows = state.log.connects(message.headers), state.overflows(message.op)
        has_snapshot = message.checkpoint > state.commit_min
        drained = any(self.installation.body_of(header) is None for header in _drained(message))
        if has_snapshot and (overflows or drained or not connects) and _reaches_snapshot(message):
            self.install(message, on_installed, with_snapshot=True)
        elif has_snapshot and overflows and connects:
            self.request(message.view, message.checkpoint + 1)
        elif connects:
            self.install(message, on_installed, with_snapshot=False)
        else:
            self._request_longer_window(message)

    def _is_newer(self, message: StartView) -> bool:
        """True if a start_view is of a later log than what is being installed, or has a later snapshot below it."""
        target = self.state.target
        if target is None or (target.view, target.op) < (message.view, message.op):
            return True
        same = (target.view, target.op) == (message.view, message.op)
        return same and target.snapshot is not None and target.snapshot.op < message.checkpoint

    def install(self, message: StartView, on_installed: OnInstalled, *, with_snapshot: bool) -> None:
        """The log of a start_view is to be installed."""
        snapshot = WantedSnapshot(message.checkpoint, message.snapshot, message.snapshot_size)
        target = InstallTarget(
            view=message.view,
            op=message.op,
            commit=message.commit,
            headers=message.headers,
            source=message.replica,
            seq=message.seq,
            on_installed=on_installed,
            snapshot=snapshot if with_snapshot else None,
        )
        self.installation.begin(target)

    def _on_start_view_again(self, message: StartView) -> None:
        """Our own view's start_view, repeated: the primary lacks our acknowledgements (or lost them).

        Or what we lack of our own view is drained there: then its snapshot is needed.
        """
        state = self.state
        if message.checkpoint > state.op:
            if not _reaches_snapshot(message):
                self.request(message.view, state.op + 1)
            elif self._is_newer(message):
                self.install(message, self.on_installed, with_snapshot=True)
            return
        for header in message.headers:
            if message.commit < header.op <= state.op and state.log.checksum(header.op) == header.checksum:
                self.acknowledgements.acknowledge_again(header.op)

    def _request_longer_window(self, message: StartView) -> None:
        from_op = self.lower_from_op(message.headers)
        if from_op is None:
            self.out.ignore("start_view: ends below what is executed")
            return
        self.request(message.view, from_op, urgent=True)

    def lower_from_op(self, headers: tuple[PrepareHeader, ...]) -> int | None:
        """From where a window that does not connect should start; None if it should have connected already."""
        base, commit_min = headers[0].op - 1, self.state.commit_min
        if base <= commit_min:
            return None
        from_op = min(base, self.state.op) - max(8, len(headers))
        return max(commit_min + 1, from_op, 1)

    def on_installed(
        self, target: InstallTarget, event: str = "on_start_view", *, log_view_found: int | None = None
    ) -> None:
        """The log of a start_view is installed: this replica is a normal backup of its view.

        `log_view_found`: the event is that of a boot, over a superblock with this log_view.
        """
        state = self.state
        self.status.transition_to_normal(target.view)
        self.commit_path.raise_commit_max(target.commit)
        self.out.emit(
            event,
            configuration=log_view_found is not None,
            m_type="start_view",
            m_from=target.source,
            m_seq=target.seq,
            m_view=target.view,
            m_log_view=log_view_found,
            m_op=target.op,
            m_commit=target.commit,
            m_log=checksums(target.headers),
            m_checkpoint=0 if target.snapshot is None else target.snapshot.op,
        )
        self.acknowledgements.acknowledge_from(max(state.commit_min, target.commit) + 1)
        self.commit_path.execute_committed()


def _drained(message: StartView) -> Sequence[PrepareHeader]:
    """The entries of a start_view's window that its sender has drained, and cannot give."""
    first = message.headers[0].op if message.headers else message.op + 1
    return message.headers[: max(0, message.checkpoint + 1 - first)]


def _reaches_snapshot(message: StartView) -> bool:
    """True if the window of a start_view begins right above its snapshot's op, or below."""
    return bool(message.headers) and message.headers[0].op <= message.checkpoint + 1
