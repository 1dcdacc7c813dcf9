"""Mistakes in the commit path, in normal operation and in the journal's bounds."""

from __future__ import annotations

from viewproof.impl.faults.stand_ins import StandIns
from viewproof.impl.interface.effects import AppendPrepares
from viewproof.impl.interface.messages import DoViewChange, PrepareOk, StartView
from viewproof.impl.replica.acknowledgements import Acknowledgements
from viewproof.impl.replica.checkpoints import Checkpoints
from viewproof.impl.replica.commit_path import CommitPath
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.start_views import OnInstalled, StartViews
from viewproof.impl.replica.view_change import ViewChange


class ExecutesAnyOp(CommitPath):
    """Base of what executes the wrong ops: the replica does not notice it."""

    def require_next(self, op: int) -> None:
        """Nothing is required."""


class ExecutesDurable(ExecutesAnyOp):
    """What is durable is executed."""

    def execute_limit(self) -> int:
        return self.state.durable_op


class CommitsOutOfOrder(ExecutesAnyOp):
    """Every op with a quorum is executed, whatever lies before it."""

    def commit_acknowledged(self) -> None:
        for op in sorted(self.acknowledgements.counted):
            if op > self.state.commit_max and self.acknowledgements.has_quorum(op):
                self.commit(op)
                self.execute(op)
        super().commit_acknowledged()


class FencesOnCommitMax(NormalOperation):
    """Prepares up to commit_max are old."""

    @property
    def fence(self) -> int:
        return self.state.commit_max


class GoesOnAfterFailedAppend(NormalOperation):
    """A failed append counts as done."""

    def on_append_failed(self, io: AppendPrepares) -> None:
        if io.repair:
            super().on_append_failed(io)
            return
        self.out.emit("append_failed", m_op=self.state.durable_op + 1)
        self.state.durable_op = io.prepares[-1].header.op


class SnapshotsAtCommitMax(Checkpoints):
    """The state at commit_min is called that at commit_max."""

    def op_taken(self) -> int:
        return max(self.state.commit_min, min(self.state.commit_max, self.state.op))


class SaysCommittedEarly(NormalOperation):
    """A prepare says that all before it is committed."""

    @property
    def commit_said(self) -> int:
        return self.state.op


class TakesCommitMinOnly(ViewChange):
    """The commit number in the header of the log's head is not looked at."""

    def commit_offered(self, best: DoViewChange) -> int:
        return max(offer.commit for offer in self.do_view_changes.values())


class AcknowledgesStartView(StartViews):
    """The whole range of a start_view is acknowledged without looking in the journal."""

    def install(self, message: StartView, on_installed: OnInstalled, *, with_snapshot: bool) -> None:
        state = self.state
        for header in message.headers:
            if header.op > message.commit:
                names = (message.view, header.op, header.checksum)
                seq = self.out.emit(
                    "prepare_ok", m_type="prepare_ok", m_view=names[0], m_op=names[1], m_checksum=names[2]
                )
                self.out.send(message.replica, PrepareOk(*names, state.node, state.clock, seq))
        super().install(message, on_installed, with_snapshot=with_snapshot)


class KeepsFrontiers(Acknowledgements):
    """The frontiers of another view go on."""

    def begin_pipeline(self) -> None:
        frontiers = self.pipeline.frontiers
        super().begin_pipeline()
        self.pipeline.frontiers = frontiers


STAND_INS: StandIns = {
    "commit.apply_at_replicate": {"commit_path": ExecutesDurable},
    "commit.out_of_order": {"commit_path": CommitsOutOfOrder},
    "commit.fence_on_commit_max": {"normal": FencesOnCommitMax},
    "commit.sequencer_before_append": {"normal": GoesOnAfterFailedAppend},
    "commit.checkpoint_at_commit_max": {"checkpoints": SnapshotsAtCommitMax},
    "commit.dvc_carries_commit_min_only": {"view_change": TakesCommitMinOnly},
    "commit.false_ack_after_start_view": {"start_views": AcknowledgesStartView},
    "commit.stale_frontier": {"acknowledgements": KeepsFrontiers},
    "commit.prepare_says_committed": {"normal": SaysCommittedEarly},
}
