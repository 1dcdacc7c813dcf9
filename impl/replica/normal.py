"""Normal operation: prepares, the journal queue, acknowledgements, heartbeats (rules 1 to 4).

What must be durable before which send: a prepare before its prepare_ok, also the primary's own. A prepare message
itself may leave before the primary's journal has it.
"""

from __future__ import annotations

from viewproof.impl.interface.effects import AppendPrepares, Send
from viewproof.impl.interface.messages import (
    Commit,
    Prepare,
    PrepareHeader,
    PrepareOk,
    RequestPrepare,
    prepare_is_valid,
)
from viewproof.impl.replica.commit import CommitPath
from viewproof.impl.replica.proposals import Proposal
from viewproof.impl.replica.state import Status


class NormalOperation(CommitPath):
    """What a normal primary and a normal backup do."""

    def propose(self, proposal: Proposal, event: str) -> None:
        """The primary's next entry: into its log, to the others, to the journal; `event` tells where it comes from."""
        header, body = proposal.write(parent=self.head, view=self.view, op=self.op + 1, commit=self.commit_max)
        prepare = Prepare(header, body)
        self.log.append(prepare)
        self.unexecuted[header.client] = header.op
        if "table.record_uncommitted" in self.faults:
            self.record_uncommitted(header)
        seq = self.emit(
            event,
            m_type="request",
            m_client=header.client,
            m_session=self.shown(header.session),
            m_request=header.request,
            m_incarnation=self.shown(header.incarnation),
            m_feature=header.feature,
            m_view=header.view,
            m_op=header.op,
            m_checksum=header.checksum,
            m_parent=header.parent,
            m_commit=header.commit,
        )
        sent = Prepare(header, prepare.body, self.node, self.clock, seq)
        self.log.restamp(sent)
        if self.commit_max == header.op - 1:
            self.progress_at = self.ticks
            self.retransmit_at = self.ticks
        self.send_others(sent)
        self.append_queued()

    @property
    def has_room(self) -> bool:
        """True if one more entry may be prepared: pipeline and journal have room."""
        within = self.op - self.commit_max < self.config.pipeline_max
        return within and not self.journal_full and not self.journal_refuses

    # Prepares

    def on_prepare(self, message: Prepare) -> None:
        """The primary's prepare: accepted in op order, kept for later if early, acknowledged again if known."""
        header = message.header
        if self.status is not Status.NORMAL or header.view != self.view or self.node == self.primary:
            self.ignore("prepare: not a normal backup of its view")
            return
        if header.op < 1:
            self.ignore("prepare: ops start at 1")
            return
        self.heard_at = self.ticks
        if header.op <= self.fence:
            self._drop_prepare(message)
            return
        if header.op <= self.op:
            self._on_prepare_known(header)
            return
        if self.journal_refuses or not self.fits(header.op):
            self.ignore("prepare: the journal refuses" if self.journal_refuses else "prepare: the journal is full")
            return
        if not prepare_is_valid(message):
            self.ignore("prepare: checksum")
            return
        if header.op > self.op + 1:
            if len(self.prepare_buffer) < self.config.prepare_buffer_max:
                self.prepare_buffer[header.op] = message
            self.ignore("prepare: gap")
            return
        self._accept_prepare(message)
        while (early := self.prepare_buffer.pop(self.op + 1, None)) is not None:
            if not self._accept_prepare(early):
                break
        self.append_queued()
        self.execute_committed()

    @property
    def fence(self) -> int:
        """Prepares up to this op are old: this replica has executed them."""
        return self.commit_max if "commit.fence_on_commit_max" in self.faults else self.commit_min

    def _drop_prepare(self, prepare: Prepare) -> None:
        self.emit(
            "drop_prepare",
            m_type="prepare",
            m_from=prepare.replica,
            m_seq=prepare.seq,
            m_view=prepare.header.view,
            m_op=prepare.header.op,
        )
        self.ignore("prepare: old")

    def _accept_prepare(self, prepare: Prepare) -> bool:
        header = prepare.header
        if header.parent != self.head:
            self.ignore("prepare: parent is not the log head")
            return False
        self.log.append(prepare)
        self.raise_commit_max(header.commit)
        if "table.record_uncommitted" in self.faults:
            self.record_uncommitted(header)
        self.emit(
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
            m_session=self.shown(header.session),
            m_request=header.request,
            m_incarnation=self.shown(header.incarnation),
            m_feature=header.feature,
        )
        return True

    def record_uncommitted(self, header: PrepareHeader) -> None:
        """Fault table.record_uncommitted: a request number is remembered from its prepare on."""
        key = (header.client, header.session)
        self.recorded_uncommitted[key] = max(header.request, self.recorded_uncommitted.get(key, 0))

    def _on_prepare_known(self, header: PrepareHeader) -> None:
        if self.log.checksum(header.op) != header.checksum:
            self.ignore("prepare: another entry is at its op")
            return
        self.acknowledge_again(header.op)

    # The journal queue

    def append_queued(self) -> None:
        """Writes all entries that are known and not durable, as one group, unless a write is in flight."""
        if self.journal_busy or self.durable_op == self.op or self.journal_refuses:
            return
        end = min(self.op, self.durable_op + self.config.append_prepares_max)
        self.write_prepares(self.log.slice(self.durable_op + 1, end), repair=False)

    def on_append_done(self, io: AppendPrepares) -> None:
        """A group of entries of the log became durable; in normal status they are acknowledged.

        Bodies written as repair become part of the log only when it is installed; each is traced before that.
        """
        written = {prepare.header.checksum: prepare.header.op for prepare in io.prepares}
        if io.repair:
            self.forget_overwritten(written)
        self.journaled |= written
        if io.repair:
            for prepare in io.prepares:
                self.emit("repair", m_op=prepare.header.op, m_checksum=prepare.header.checksum)
            return
        before = self.durable_op
        while self.durable_op < self.op and self.log.checksum(self.durable_op + 1) in written:
            self.durable_op += 1
        if self.durable_op == before:
            return
        self.emit("append", m_op=self.durable_op)
        if self.status is not Status.NORMAL:
            return
        for op in range(max(before, self.commit_min) + 1, self.durable_op + 1):
            self.acknowledge(op)
        if self.node == self.primary:
            self.commit_acknowledged()
        else:
            self.execute_committed()

    def on_append_failed(self, io: AppendPrepares) -> None:
        """Nothing of it is durable: what the log holds beyond the journal is dropped, and refused for a while."""
        if "commit.sequencer_before_append" in self.faults and not io.repair:
            self.emit("append_failed", m_op=self.durable_op + 1)
            self.durable_op = io.prepares[-1].header.op
            return
        self.journal_refuses_until = self.ticks + self.config.write_retry_ticks
        if io.repair:
            return
        first = self.durable_op + 1
        if self.target is not None:
            lost = self.log.slice(self.durable_op + 1, self.op)
            self.repaired |= {prepare.header.checksum: prepare for prepare in lost}
        self.log.truncate(self.durable_op)
        self.prepare_buffer = {}
        self.unexecuted = {p.header.client: p.header.op for p in self.log.slice(self.commit_min + 1, self.op)}
        self.emit("append_failed", m_op=first)

    # Acknowledgements

    def acknowledge(self, op: int) -> None:
        """Acknowledges a durable op above commit_min in this view, in normal status."""
        checksum = self.log[op].header.checksum
        seq = self.emit("prepare_ok", m_type="prepare_ok", m_view=self.view, m_op=op, m_checksum=checksum)
        if self.node == self.primary:
            self.count_own_ack(op)
            return
        self.acks_sent[op] = seq
        self.send(self.primary, PrepareOk(self.view, op, checksum, self.node, self.clock, seq))

    def acknowledge_again(self, op: int) -> None:
        """The acknowledgement of `op` may have been lost: sends it again, or for the first time after a restart."""
        if not self.log.base < op <= self.durable_op:
            return
        seq = self.acks_sent.get(op)
        if seq is not None:
            checksum = self.log[op].header.checksum
            self.send(self.primary, PrepareOk(self.view, op, checksum, self.node, self.clock, seq))
        elif op > self.commit_min:
            self.acknowledge(op)

    # Commit numbers

    def on_commit(self, message: Commit) -> None:
        """The primary's heartbeat and commit number."""
        if self.status is not Status.NORMAL or message.view != self.view or message.replica != self.primary:
            self.ignore("commit: not a normal backup of its view")
            return
        self.heard_at = self.ticks
        if message.commit <= self.commit_max:
            return
        self.raise_commit_max(message.commit)
        self.emit(
            "on_commit",
            m_type="commit",
            m_from=message.replica,
            m_seq=message.seq,
            m_view=message.view,
            m_commit=message.commit,
        )
        self.execute_committed()

    def send_commit(self) -> None:
        """Heartbeat; a trace event only if the commit number is new in this view."""
        view, commit, seq = self.commit_sent
        if (view, commit) != (self.view, self.commit_max):
            seq = self.emit("send_commit", m_type="commit", m_view=self.view, m_commit=self.commit_max)
            self.commit_sent = (self.view, self.commit_max, seq)
        self.send_others(Commit(self.view, self.commit_max, self.node, self.clock, seq, self.believed_supports()))

    def believed_supports(self) -> tuple[int, ...]:
        """For the heartbeat: features of each member, as the primary believes (`impl.replica.control`)."""
        return ()

    # Retransmission

    def resend_prepares(self) -> None:
        """Sends uncommitted prepares of this view again to those that did not acknowledge them.

        Entries of earlier views travel with start_view, which is sent again (same content) in their place.
        """
        behind = 0
        for op in range(self.commit_max + 1, self.op + 1):
            prepare = self.log[op]
            acknowledged = self.acks.get(op, 0)
            if prepare.header.view == self.view:
                again = self.stamped(prepare)
                self.effects += [Send(node, again) for node in self.others if not acknowledged >> node & 1]
            else:
                behind |= ~acknowledged
        if behind and self.start_view_own is not None:
            self.effects += [Send(node, self.start_view_own) for node in self.others if behind >> node & 1]

    def stamped(self, prepare: Prepare) -> Prepare:
        """An own prepare to be sent again; one recovered from the journal names the sender, but no event (`seq` 0)."""
        if prepare.seq:
            return prepare
        return Prepare(prepare.header, prepare.body, self.node, self.clock)

    def fill_gap(self) -> None:
        """A backup that misses prepares of its own view asks the primary to send them again.

        All ops above a normal backup's own are of its view, so they come as prepares; nothing is installed.
        """
        end = max(self.commit_max, max(self.prepare_buffer, default=0) - 1)
        end = min(end, self.op + self.config.request_prepare_max)
        wanted = tuple((op, "") for op in range(self.op + 1, end + 1) if op not in self.prepare_buffer)
        if wanted:
            self.send(self.primary, RequestPrepare(self.view, wanted, self.node, self.clock))
