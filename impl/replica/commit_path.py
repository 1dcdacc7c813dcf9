"""The commit path: acknowledgements, commit_max, execution, replies (rules 4 and 9; seed 000).

One path for primary and backups: `execute_committed` is the only caller of the state machine.
"""

from __future__ import annotations

from viewproof.impl.interface.checks import InvariantError
from viewproof.impl.interface.messages import PrepareHeader, PrepareOk
from viewproof.impl.machine.partition_log import SegmentLostError
from viewproof.impl.replica.acknowledgements import Acknowledgements
from viewproof.impl.replica.checkpoints import Checkpoints
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.proposals import apply_entry
from viewproof.impl.replica.replies import Replies, asked_columns
from viewproof.impl.replica.segments import SegmentFetch
from viewproof.impl.replica.state import State, Status


class CommitPath:
    """Raises commit_max over what is acknowledged, and executes what is committed, in order."""

    def __init__(
        self,
        state: State,
        out: Outbox,
        acknowledgements: Acknowledgements,
        replies: Replies,
        checkpoints: Checkpoints,
        segments: SegmentFetch,
    ) -> None:
        self.state = state
        self.out = out
        self.acknowledgements = acknowledgements
        self.replies = replies
        self.checkpoints = checkpoints
        self.segments = segments

    def begin(self) -> None:
        """Boot: what the log holds above the snapshot is not executed, as it need not be committed (I13)."""
        self.state.find_unexecuted()

    def on_prepare_ok(self, message: PrepareOk) -> None:
        """A backup acknowledged an entry of this primary's log in this view."""
        state, op = self.state, message.op
        if not state.is_normal_primary or message.view != state.view:
            self.out.ignore("prepare_ok: not the normal primary of its view")
            return
        state.timers.answered_at[message.replica] = state.ticks
        self.acknowledgements.pace.on_other(op, message.replica)
        if op <= state.commit_max:
            self.out.ignore("prepare_ok: already committed")
        elif op > state.op or state.log[op].header.checksum != message.checksum:
            self.out.ignore("prepare_ok: of another entry")
        elif self.acknowledgements.has_counted(op, message.replica):
            self.out.ignore("prepare_ok: already counted")
        else:
            self.acknowledgements.count(op, message.replica)
            self.out.emit(
                "on_prepare_ok",
                m_type="prepare_ok",
                m_from=message.replica,
                m_seq=message.seq,
                m_view=message.view,
                m_op=op,
                m_checksum=message.checksum,
            )
            self.commit_acknowledged()

    def commit_acknowledged(self) -> None:
        """Raises commit_max over the contiguous prefix of what is committable, then executes."""
        state, acknowledgements = self.state, self.acknowledgements
        acknowledgements.fill_pipeline()
        while acknowledgements.is_committable(state.commit_max + 1):
            self.commit(state.commit_max + 1)
        self.execute_committed()

    def commit(self, op: int) -> None:
        """The primary commits `op`."""
        self.state.commit_max = op
        self.acknowledgements.drop(op)
        self.state.timers.progress_at = self.state.ticks
        self.out.emit("commit", m_op=op)

    def raise_commit_max(self, commit: int) -> None:
        """The cluster says that `commit` is committed (a message of a normal primary said so)."""
        self.state.commit_max = max(self.state.commit_max, commit)

    def execute_limit(self) -> int:
        """Up to where ops may be executed now."""
        return min(self.state.commit_max, self.state.durable_op)

    def execute_committed(self) -> None:
        """Executes commit_min+1.. up to what is committed and durable here; only in normal status, and not while a
        checkpoint is pending.
        """
        state = self.state
        if state.status is not Status.NORMAL:
            return
        while not self.checkpoints.pending and state.commit_min < self.execute_limit():
            op = state.commit_min + 1
            self.execute(op)
            if state.commit_min != op:
                return

    def execute(self, op: int) -> None:
        """Applies the committed entry at `op`; not yet if it is a poll of messages that have to be fetched first."""
        self.require_next(op)
        state, config = self.state, self.state.config
        prepare = state.log[op]
        header = prepare.header
        try:
            result = apply_entry(state, prepare)
        except SegmentLostError as error:
            self.segments.on_lost(error)
            return
        reply, evicted = self.replies.record_executed(header, result)
        self.raise_commit_min(header)
        state.forget_digests()
        if state.unexecuted.get(header.client) == op:
            del state.unexecuted[header.client]
        asked = asked_columns(prepare.body, result) if config.traced and config.shows_partitions else {}
        self.replies.emit_execute(header, reply, evicted, asked)
        self.checkpoints.take_due()

    def require_next(self, op: int) -> None:
        """commit_min rises by exactly one, and never above commit_max (seed 000)."""
        state = self.state
        if op != state.commit_min + 1:
            raise InvariantError(f"op {op} is to be executed at commit_min {state.commit_min}")
        if op > state.commit_max:
            raise InvariantError(f"op {op} is to be executed at commit_max {state.commit_max}")

    def raise_commit_min(self, header: PrepareHeader) -> None:
        """The entry is executed."""
        self.state.commit_min = header.op
