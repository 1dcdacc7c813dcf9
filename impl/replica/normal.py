"""Normal operation: prepares, appends, commit numbers (rules 1 to 4).

What must be durable before which send: a prepare before its prepare_ok, also the primary's own. A prepare message
itself may leave before the primary's journal has it.
"""

from __future__ import annotations

from viewproof.impl.interface.effects import AppendPrepares
from viewproof.impl.interface.messages import (
    Commit,
    HeartbeatOk,
    Prepare,
    PrepareHeader,
    RequestPrepare,
    prepare_is_valid,
)
from viewproof.impl.replica.acknowledgements import Acknowledgements
from viewproof.impl.replica.commit_path import CommitPath
from viewproof.impl.replica.journal import Journal
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.proposals import Proposal
from viewproof.impl.replica.state import State, Status


class NormalOperation:
    """What a normal primary and a normal backup do. `prepare_buffer`: prepares that came early, by op."""

    def __init__(
        self,
        state: State,
        out: Outbox,
        journal: Journal,
        acknowledgements: Acknowledgements,
        commit_path: CommitPath,
    ) -> None:
        self.state = state
        self.out = out
        self.journal = journal
        self.acknowledgements = acknowledgements
        self.commit_path = commit_path
        self.prepare_buffer: dict[int, Prepare] = {}
        self._commit_sent = (-1, -1, 0)

    def forget_view(self) -> None:
        """Another view begins."""
        self.prepare_buffer = {}

    # The primary's entries

    def propose(self, proposal: Proposal, event: str) -> None:
        """The primary's next entry: into its log, to the others, to the journal; `event` tells where it comes from."""
        state = self.state
        header, body = proposal.write(parent=state.head, view=state.view, op=state.op + 1, commit=self.commit_said)
        state.log.append(Prepare(header, body))
        state.unexecuted[header.client] = header.op
        self.acknowledgements.pace.on_prepared(header.op)
        seq = self.out.emit(
            event,
            m_type="request",
            m_client=header.client,
            m_session=state.shown(header.session),
            m_request=header.request,
            m_incarnation=state.shown(header.incarnation),
            m_feature=header.feature,
            m_view=header.view,
            m_op=header.op,
            m_checksum=header.checksum,
            m_parent=header.parent,
            m_commit=header.commit,
        )
        sent = Prepare(header, body, state.node, state.clock, seq)
        state.log.restamp(sent)
        if state.commit_max == header.op - 1:
            state.timers.progress_at = state.timers.retransmit_at = state.ticks
        self.out.send_others(sent)
        self.journal.append_log()

    @property
    def commit_said(self) -> int:
        """The commit number that a prepare carries."""
        return self.state.commit_max

    @property
    def has_room(self) -> bool:
        """True if one more entry may be prepared: pipeline and journal have room."""
        within = self.state.op - self.state.commit_max < self.state.config.pipeline_max
        return within and not self.journal.full and not self.journal.refuses

    # Prepares

    def on_prepare(self, message: Prepare) -> None:
        """The primary's prepare: accepted in op order, kept for later if early, acknowledged again if known."""
        header, state, out = message.header, self.state, self.out
        if state.status is not Status.NORMAL or header.view != state.view or state.is_primary:
            out.ignore("prepare: not a normal backup of its view")
            return
        if header.op < 1:
            out.ignore("prepare: ops start at 1")
            return
        state.timers.heard_at = state.ticks
        if header.op <= self.fence:
            self._drop_prepare(message)
        elif header.op <= state.op:
            self._on_prepare_known(header)
        elif self.journal.refuses or not self.journal.fits(header.op):
            out.ignore("prepare: the journal refuses" if self.journal.refuses else "prepare: the journal is full")
        elif not prepare_is_valid(message):
            out.ignore("prepare: checksum")
        elif header.op > state.op + 1:
            if len(self.prepare_buffer) < state.config.prepare_buffer_max:
                self.prepare_buffer[header.op] = message
            out.ignore("prepare: gap")
        else:
            self._accept_prepares(message)

    @property
    def fence(self) -> int:
        """Prepares up to this op are old: this replica has executed them."""
        return self.state.commit_min

    def _drop_prepare(self, prepare: Prepare) -> None:
        self.out.emit(
            "drop_prepare",
            m_type="prepare",
            m_from=prepare.replica,
            m_seq=prepare.seq,
            m_view=prepare.header.view,
            m_op=prepare.header.op,
        )
        self.out.ignore("prepare: old")

    def _accept_prepares(self, prepare: Prepare) -> None:
        """The next prepare, and those after it that came early."""
        self.accept(prepare)
        while (early := self.prepare_buffer.pop(self.state.op + 1, None)) is not None:
            if not self.accept(early):
                break
        self.journal.append_log()
        self.commit_path.execute_committed()

    def accept(self, prepare: Prepare) -> bool:
        """The prepare at op + 1 becomes the log head; false if it does not follow the head."""
        header, state = prepare.header, self.state
        if header.parent != state.head:
            self.out.ignore("prepare: parent is not the log head")
            return False
        state.log.append(prepare)
        self.commit_path.raise_commit_max(header.commit)
        self.out.emit(
            "on_prepare",
            m_type="prepare",
            m_from=prepare.replica,
            m_seq=prepare.seq,
            m_view=header.view,
            m_op=header.op,
            m_commit=header.commit,
            m_checksum=header.checksum,
            m_parent=header.parent,
            m_client=header.client,
            m_session=state.shown(header.session),
            m_request=header.request,
            m_incarnation=state.shown(header.incarnation),
            m_feature=header.feature,
        )
        return True

    def _on_prepare_known(self, header: PrepareHeader) -> None:
        if self.state.log.checksum(header.op) != header.checksum:
            self.out.ignore("prepare: another entry is at its op")
            return
        self.acknowledgements.acknowledge_again(header.op)

    # Appends

    def on_append_done(self, io: AppendPrepares) -> None:
        """A group of entries of the log became durable; in normal status they are acknowledged.

        Bodies written as repair become part of the log only when it is installed; each is traced before that.
        """
        state, log = self.state, self.state.log
        self.journal.on_append_done(io)
        if io.repair:
            for prepare in io.prepares:
                self.out.emit("repair", m_op=prepare.header.op, m_checksum=prepare.header.checksum)
            return
        written = {prepare.header.checksum for prepare in io.prepares}
        before = state.durable_op
        while state.durable_op < log.op and log.checksum(state.durable_op + 1) in written:
            state.durable_op += 1
        if state.durable_op == before:
            return
        self.out.emit("append", m_op=state.durable_op)
        if state.status is not Status.NORMAL:
            return
        self.acknowledgements.acknowledge_from(max(before, state.commit_min) + 1)
        if state.is_primary:
            self.commit_path.commit_acknowledged()
        else:
            self.commit_path.execute_committed()

    def on_append_failed(self, io: AppendPrepares) -> None:
        """Nothing of it is durable: what the log holds beyond the journal is dropped, and refused for a while."""
        state = self.state
        self.journal.on_append_failed()
        if io.repair:
            return
        first = state.durable_op + 1
        if state.target is not None:
            lost = state.log.slice(first, state.op)
            state.bodies |= {prepare.header.checksum: prepare for prepare in lost}
        state.log.truncate(state.durable_op)
        self.prepare_buffer = {}
        state.find_unexecuted()
        self.out.emit("append_failed", m_op=first)

    # Commit numbers

    def on_commit(self, message: Commit) -> None:
        """The primary's heartbeat and commit number."""
        state = self.state
        if state.status is not Status.NORMAL or message.view != state.view or message.replica != state.primary:
            self.out.ignore("commit: not a normal backup of its view")
            return
        state.timers.heard_at = state.ticks
        self.out.send(message.replica, HeartbeatOk(state.view, state.node, state.clock))
        if message.commit <= state.commit_max:
            return
        self.commit_path.raise_commit_max(message.commit)
        self.out.emit(
            "on_commit",
            m_type="commit",
            m_from=message.replica,
            m_seq=message.seq,
            m_view=message.view,
            m_commit=message.commit,
        )
        self.commit_path.execute_committed()

    def on_heartbeat_ok(self, message: HeartbeatOk) -> None:
        """A backup hears this primary."""
        state = self.state
        if state.is_normal_primary and message.view == state.view:
            state.timers.answered_at[message.replica] = state.ticks
        else:
            self.out.ignore("heartbeat_ok: not the normal primary of its view")

    @property
    def hears_quorum(self) -> bool:
        """True if q_r replicas, this primary among them, took part in its view not long ago."""
        state, timers, config = self.state, self.state.timers, self.state.config
        begins = state.view == 0 and not timers.answered_at
        patience = config.first_answer_timeout_ticks if begins else config.abdicate_timeout_ticks
        since = state.ticks - patience
        heard = 1
        for node in state.others:
            if timers.answered_at.get(node, timers.normal_at) > since:
                heard += 1
        return heard >= state.quorums.replication

    def send_commit(self, supports: tuple[int, ...], asked: int) -> None:
        """Heartbeat, with what it says of features; a trace event only if the commit number is new in this view."""
        state = self.state
        view, commit, seq = self._commit_sent
        if (view, commit) != (state.view, state.commit_max):
            seq = self.out.emit("send_commit", m_type="commit", m_view=state.view, m_commit=state.commit_max)
            self._commit_sent = (state.view, state.commit_max, seq)
        self.out.send_others(Commit(state.view, state.commit_max, state.node, state.clock, seq, supports, asked))

    @property
    def has_gap(self) -> bool:
        """True if a backup misses prepares of its own view."""
        return self.state.commit_max > self.state.op or bool(self.prepare_buffer)

    def fill_gap(self) -> None:
        """A backup that misses prepares of its own view asks the primary to send them again.

        All ops above a normal backup's own are of its view, so they come as prepares; nothing is installed.
        """
        state = self.state
        end = max(state.commit_max, max(self.prepare_buffer, default=0) - 1)
        end = min(end, state.op + state.config.request_prepare_max)
        wanted = tuple((op, "") for op in range(state.op + 1, end + 1) if op not in self.prepare_buffer)
        if wanted:
            self.out.send(state.primary, RequestPrepare(state.view, wanted, state.node, state.clock))


def stamped(prepare: Prepare, node: int, clock: int) -> Prepare:
    """An own prepare to be sent again; one recovered from the journal names the sender, but no event (`seq` 0)."""
    return prepare if prepare.seq else Prepare(prepare.header, prepare.body, node, clock)
