"""The commit path: acknowledgements, commit_max, execution, replies (rules 4 and 9; seed 000).

One path for primary and backups: `execute_committed` is the only caller of the state machine.
"""

from __future__ import annotations

from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.messages import PrepareOk
from viewproof.impl.machine.state_machine import namespace_of
from viewproof.impl.replica.checkpoint import Checkpoints
from viewproof.impl.replica.proposals import apply_entry
from viewproof.impl.replica.replies import asked_columns
from viewproof.impl.replica.state import Status


class CommitPath(Checkpoints):
    """Counts acknowledgements and executes what is committed, in order."""

    def on_prepare_ok(self, message: PrepareOk) -> None:
        """A backup acknowledged an entry of this primary's log in this view."""
        if not self.is_normal_primary or message.view != self.view:
            self.ignore("prepare_ok: not the normal primary of its view")
            return
        op = message.op
        if op <= self.commit_max:
            self.ignore("prepare_ok: already committed")
            return
        if op > self.op or self.log[op].header.checksum != message.checksum:
            self.ignore("prepare_ok: of another entry")
            return
        if self.acks.get(op, 0) >> message.replica & 1:
            self.ignore("prepare_ok: already counted")
            return
        self._count_ack(op, message.replica)
        self.emit(
            "on_prepare_ok",
            m_type="prepare_ok",
            m_from=message.replica,
            m_seq=message.seq,
            m_view=message.view,
            m_op=op,
            m_checksum=message.checksum,
        )
        self.commit_acknowledged()

    def forget_acks(self) -> None:
        """Another view begins: an acknowledgement counts in its own only."""
        if "view.acks_survive_view" not in self.faults:
            self.acks = {}

    def count_own_ack(self, op: int) -> None:
        """The primary's own acknowledgement, through the same rule."""
        self._count_ack(op, self.node)

    def _count_ack(self, op: int, node: int) -> None:
        self.acks[op] = self.acks.get(op, 0) | 1 << node
        if self.has_quorum(op):
            self._fill_pipeline()
            self.pipeline.acknowledge(op)

    def _fill_pipeline(self) -> None:
        """Takes in what the log holds above the pipeline; in another view the pipeline begins anew."""
        pipeline = self.pipeline
        if pipeline.view != self.view:
            keep = "commit.stale_frontier" in self.faults
            pipeline.reset(self.view, self.commit_max, keep_frontiers=keep)
        namespaced = self.config.plane is Plane.PARTITIONS
        for op in range(pipeline.op + 1, self.op + 1):
            pipeline.push(namespace_of(self.log[op].body) if namespaced else 0)

    def has_quorum(self, op: int) -> bool:
        """True if q_r replicas acknowledged `op` in this view."""
        return self.acks.get(op, 0).bit_count() >= self.quorums.replication

    def commit_acknowledged(self) -> None:
        """Raises commit_max over the contiguous prefix of what is committable, then executes."""
        if "commit.out_of_order" in self.faults:
            self._commit_out_of_order()
        self._fill_pipeline()
        while self.pipeline.is_committable(self.commit_max + 1):
            self.commit_max += 1
            self.pipeline.drain(self.commit_max)
            self.acks.pop(self.commit_max, None)
            self.progress_at = self.ticks
            self.emit("commit", m_op=self.commit_max)
        self.execute_committed()

    def _commit_out_of_order(self) -> None:
        """Fault commit.out_of_order: every op with a quorum is executed, whatever lies before it."""
        for op in sorted(self.acks):
            if op > self.commit_max and self.has_quorum(op):
                self.acks.pop(op)
                self.commit_max = op
                self.progress_at = self.ticks
                self.emit("commit", m_op=op)
                self._execute(op)

    def raise_commit_max(self, commit: int) -> None:
        """The cluster says that `commit` is committed (a message of a normal primary said so)."""
        self.commit_max = max(self.commit_max, commit)

    def execute_limit(self) -> int:
        """Up to where ops may be executed now."""
        if "commit.apply_at_replicate" in self.faults:
            return self.durable_op
        return min(self.commit_max, self.durable_op)

    def execute_committed(self) -> None:
        """Executes commit_min+1.. up to what is committed and durable here; only in normal status, and not while a
        checkpoint is pending.
        """
        if self.status is not Status.NORMAL:
            return
        while not self.checkpoint_pending and self.commit_min < self.execute_limit():
            if not self._execute(self.commit_min + 1):
                return

    def _execute(self, op: int) -> bool:
        """Applies the committed entry at `op`; true if commit_min is `op` then (always, but for a fault)."""
        prepare = self.log[op]
        header = prepare.header
        result = apply_entry(self, prepare)
        reply, evicted = self.record_executed(header, result)
        if not (header.feature and "control.no_offset_advance" in self.faults):
            self.commit_min = op
        self.update_digest()
        if self.unexecuted.get(header.client) == op:
            del self.unexecuted[header.client]
        asked = asked_columns(prepare.body, result) if self.config.traced and self.config.shows_partitions else {}
        self.emit_execute(header, reply, evicted, asked)
        self.take_due_checkpoint()
        return self.commit_min == op
