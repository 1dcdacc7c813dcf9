"""The view change: start_view_change, do_view_change, and the start of a view by its primary (rules 2 and 5).

A healthy view is left with a quorum that wants to (`impl.replica.pre_votes`), or by its own primary.

Durable before sent: the view before start_view_change; every entry offered before do_view_change; the whole log, view
and log_view before start_view. At most one do_view_change per view, ever: none after a restart in that view.
"""

from __future__ import annotations

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.messages import DoViewChange, RequestDoViewChange, RequestStartView, StartViewChange
from viewproof.impl.replica.acknowledgements import Acknowledgements
from viewproof.impl.replica.commit_path import CommitPath
from viewproof.impl.replica.installation import Installation
from viewproof.impl.replica.journal import Journal
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.pre_votes import PreVotes
from viewproof.impl.replica.start_views import StartViews
from viewproof.impl.replica.state import State, Status
from viewproof.impl.replica.status import StatusMachine
from viewproof.impl.replica.target import InstallTarget, checksums, window_error
from viewproof.impl.replica.writes import Writes


class ViewChange:
    """Leaves a view and starts the next.

    `start_view_changes`: who wants this view; `do_view_changes`: logs offered to this primary, by replica.
    `may_offer`: this process saw the view change begin, so it offered no log in it before.
    """

    def __init__(
        self,
        state: State,
        out: Outbox,
        writes: Writes,
        journal: Journal,
        acknowledgements: Acknowledgements,
        commit_path: CommitPath,
        installation: Installation,
        start_views: StartViews,
        status: StatusMachine,
        pre_votes: PreVotes,
    ) -> None:
        self.state = state
        self.out = out
        self.writes = writes
        self.journal = journal
        self.acknowledgements = acknowledgements
        self.commit_path = commit_path
        self.installation = installation
        self.start_views = start_views
        self.status = status
        self.pre_votes = pre_votes
        self.start_view_changes: set[int] = set()
        self.do_view_changes: dict[int, DoViewChange] = {}
        self.may_offer = False
        self._start_view_change_own: StartViewChange | None = None
        self._do_view_change_own: DoViewChange | None = None

    # Entering a view change

    def begin(self, view: int, trigger: StartViewChange | DoViewChange | None = None) -> None:
        """To a later view: it is made durable, then start_view_change is sent.

        `trigger` is the message of the later view that caused it; it is handled once the view is entered.
        """

        def then() -> None:
            self._enter(view, trigger)
            if isinstance(trigger, StartViewChange):
                self.on_start_view_change(trigger)
            elif isinstance(trigger, DoViewChange):
                self.on_do_view_change(trigger)

        block = self.state.superblock
        self.writes.write_superblock(
            view=view, log_view=block.log_view, head_op=block.head_op, head_checksum=block.head_checksum, then=then
        )

    def begin_next(self) -> None:
        """To the view after this one, alone: for a primary that cannot go on in its view, which so is not healthy."""
        self.begin(self.state.view + 1)

    def begin_latest(self) -> None:
        """To the latest view for which another replica has voted, as far as is known, or the next one."""
        left = self.pre_votes.latest()
        if left is None or left.message is None:
            self.begin_next()
        else:
            self.begin(left.view, left.message)

    def want_next(self) -> None:
        """This replica wants to leave its view: it asks, and goes once a quorum wants to."""
        self.pre_votes.ask()
        if self.pre_votes.quorum_wants():
            self.begin_latest()

    def _enter(self, view: int, trigger: StartViewChange | DoViewChange | None) -> None:
        self.status.transition_to_view_change(view)
        self.start_view_changes = {self.state.node}
        self.do_view_changes = {}
        self._do_view_change_own = None
        self.may_offer = True
        seq = self.out.emit(
            "start_view_change",
            m_type="start_view_change",
            m_from=None if trigger is None else trigger.replica,
            m_seq=None if trigger is None else trigger.seq,
            m_view=view,
        )
        self._start_view_change_own = StartViewChange(view, self.state.node, self.state.clock, seq)
        self.out.send_others(self._start_view_change_own)
        self.pre_votes.calls = True
        self.send_do_view_change()

    def on_start_view_change(self, message: StartViewChange) -> None:
        """Another replica wants this view, or a later one."""
        state = self.state
        if message.view > state.view:
            self.pre_votes.on_start_view_change(message)
            if self.pre_votes.follows(message):
                self.begin(message.view, message)
            else:
                self.out.ignore("start_view_change: the own view is healthy")
        elif message.view < state.view or state.status is not Status.VIEW_CHANGE:
            self.out.ignore("start_view_change: not in that view change")
        elif message.replica in self.start_view_changes:
            self.out.ignore("start_view_change: already counted")
        else:
            self.start_view_changes.add(message.replica)
            self.out.emit(
                "on_start_view_change",
                m_type="start_view_change",
                m_from=message.replica,
                m_seq=message.seq,
                m_view=message.view,
            )
            self.send_do_view_change()

    def on_request_start_view(self, message: RequestStartView) -> None:
        """A replica that mends its log may have been in a later view, and takes no start_view of this one. It calls
        nobody into a later view, so the primary does: one view on, or to one that another has voted for.
        """
        state = self.state
        if state.is_normal_primary and message.view > state.view and self.writes.superblock_writing is None:
            self.begin_latest()
        else:
            self.start_views.on_request_start_view(message)

    # Offering the log

    def send_do_view_change(self) -> None:
        """Offers the log once a quorum wants the view and the journal holds all of it."""
        state = self.state
        if (
            state.status is not Status.VIEW_CHANGE
            or self._do_view_change_own is not None
            or not self.may_offer
            or len(self.start_view_changes) < state.quorums.view_change
            or self.writes.superblock_writing is not None
        ):
            return
        if state.durable_op < state.op:
            self.journal.append_log()
            return
        headers = state.log.headers(state.commit_min + 1)
        seq = self.out.emit(
            "do_view_change",
            m_type="do_view_change",
            m_view=state.view,
            m_log_view=state.log_view,
            m_op=state.op,
            m_commit=state.commit_min,
            m_log=checksums(headers),
        )
        log = (state.log_view, state.op, state.commit_min, headers)
        message = DoViewChange(state.view, *log, state.node, state.clock, seq)
        self._do_view_change_own = message
        if state.is_primary:
            self.do_view_changes[state.node] = message
            self._choose_log()
        else:
            self.out.send(state.primary, message)

    def on_request_do_view_change(self, message: RequestDoViewChange) -> None:
        """The new primary needs a longer window of the log we offered (it is frozen since)."""
        own, state = self._do_view_change_own, self.state
        if own is None or message.view != state.view or state.status is not Status.VIEW_CHANGE or state.op != own.op:
            self.out.ignore("request_do_view_change: no such offer")
            return
        log = (own.log_view, own.op, own.commit, state.log.headers(message.from_op))
        self.out.send(message.replica, DoViewChange(own.view, *log, state.node, state.clock, own.seq))

    def on_do_view_change(self, message: DoViewChange) -> None:
        """A replica offers its log to us, the primary of the view.

        A primary restarted in the view has forgotten what it offered and received: it leaves the view to its timeout.
        """
        state = self.state
        error = window_error(message.headers, message.op, message.view)
        if error is not None or message.log_view >= message.view:
            self.out.ignore(f"do_view_change: {error or 'log_view is not below its view'}")
            return
        if message.view > state.view:
            self.begin(message.view, message)
            return
        waits = state.status is Status.VIEW_CHANGE and state.is_primary and self.may_offer
        if message.view < state.view or not waits:
            self.out.ignore("do_view_change: not the primary of that view change")
            return
        known = self.do_view_changes.get(message.replica)
        if known is not None:
            if len(message.headers) > len(known.headers):
                self.do_view_changes[message.replica] = message
                self._choose_log()
            return
        if len(self.do_view_changes) >= state.quorums.view_change:
            self.out.ignore("do_view_change: the quorum is complete")
            return
        self.do_view_changes[message.replica] = message
        self.out.emit(
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

    def best_offer(self) -> DoViewChange:
        """The offer of the largest (log_view, op); the own one wins a tie, then the lowest replica."""
        own = self.state.node
        return max(
            self.do_view_changes.values(),
            key=lambda offer: (offer.log_view, offer.op, offer.replica == own, -offer.replica),
        )

    def _choose_log(self) -> None:
        """With q_v do_view_changes: the largest log becomes the target of the installation."""
        state = self.state
        if len(self.do_view_changes) < state.quorums.view_change or self.writes.superblock_writing is not None:
            return
        if state.target is not None and state.target.as_primary:
            return
        best = self.best_offer()
        what = f"the log of view {best.log_view}, offered by replica {best.replica} for view {state.view},"
        self.installation.require_executed(what, state.view, best.op, best.headers)
        if not state.log.connects(best.headers):
            self._request_longer_offer(best)
            return
        target = InstallTarget(
            view=state.view,
            op=best.op,
            commit=self.commit_offered(best),
            headers=best.headers,
            source=best.replica,
            seq=best.seq,
            on_installed=self.start_view,
            as_primary=True,
        )
        self.install(target)

    def install(self, target: InstallTarget) -> None:
        """The log chosen is to be installed."""
        self.installation.begin(target)

    def commit_offered(self, best: DoViewChange) -> int:
        """What is known to be committed: the offers' commit numbers, and the one in the header of the log's head.

        The latter keeps the new pipeline within its bound, since the head was prepared within it.
        """
        commit = max(offer.commit for offer in self.do_view_changes.values())
        return max(commit, best.headers[-1].commit) if best.headers else commit

    def _request_longer_offer(self, best: DoViewChange) -> None:
        from_op = self.start_views.lower_from_op(best.headers)
        state = self.state
        check(from_op is not None and best.replica != state.node, "an offer that begins above commit_min is another's")
        if from_op is None:
            return
        self.out.send(best.replica, RequestDoViewChange(state.view, from_op, state.node, state.clock))

    def start_view(self, target: InstallTarget) -> None:
        """The log that this primary chose is installed: its view starts."""
        state = self.state
        self.status.transition_to_normal(target.view)
        self.commit_path.raise_commit_max(target.commit)
        headers = state.log.headers(state.commit_min + 1)
        seq = self.out.emit(
            "start_view",
            m_type="start_view",
            m_from=target.source,
            m_view=state.view,
            m_op=state.op,
            m_commit=state.commit_max,
            m_log=checksums(headers),
        )
        self.start_views.send_own(headers, seq)
        self.take_over()

    def take_over(self) -> None:
        """The uncommitted tail becomes the pipeline of this view."""
        self.acknowledgements.acknowledge_from(self.state.commit_max + 1)
        self.commit_path.commit_acknowledged()

    # Sending again

    def resend(self) -> None:
        """In view_change: start_view_change and do_view_change again, and the question whether the view has started."""
        state = self.state
        if self._start_view_change_own is not None and self._start_view_change_own.view == state.view:
            self.out.send_others(self._start_view_change_own)
        if not state.is_primary:
            if self._do_view_change_own is not None:
                self.out.send(state.primary, self._do_view_change_own)
            self.start_views.request(state.view)
        elif state.target is None:
            self._choose_log()
