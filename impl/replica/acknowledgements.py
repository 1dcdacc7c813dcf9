"""Acknowledgements: those that this replica gives, and those that a primary counts (rules 3 and 4).

An entry is durable here before it is acknowledged, also the primary's own. An acknowledgement counts in its view only.
"""

from __future__ import annotations

from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.messages import PrepareOk
from viewproof.impl.machine.state_machine import namespace_of
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.pace import Pace
from viewproof.impl.replica.pipeline import Pipeline
from viewproof.impl.replica.state import State


class Acknowledgements:
    """`counted`: op → bit mask of replicas, above commit_max; `sent`: op → event of the acknowledgement."""

    def __init__(self, state: State, out: Outbox, pace: Pace) -> None:
        self.state = state
        self.out = out
        self.counted: dict[int, int] = {}
        self.sent: dict[int, int] = {}
        self.pipeline = Pipeline()
        self.pace = pace

    def forget_view(self) -> None:
        """Another view begins."""
        self.counted = {}
        self.sent = {}
        self.pace.forget_view()

    def forget_up_to(self, op: int) -> None:
        """Ops up to `op` are in a checkpoint."""
        self.sent = {each: seq for each, seq in self.sent.items() if each > op}

    # Giving

    def acknowledge(self, op: int) -> None:
        """Acknowledges a durable op above commit_min in this view, in normal status."""
        state = self.state
        checksum = state.log[op].header.checksum
        seq = self.out.emit("prepare_ok", m_type="prepare_ok", m_view=state.view, m_op=op, m_checksum=checksum)
        if state.is_primary:
            self.count(op, state.node)
            return
        self.sent[op] = seq
        self.out.send(state.primary, PrepareOk(state.view, op, checksum, state.node, state.clock, seq))

    def acknowledge_from(self, op: int) -> None:
        """Acknowledges the durable ops from `op` on."""
        for each in range(op, self.state.durable_op + 1):
            self.acknowledge(each)

    def acknowledge_again(self, op: int) -> None:
        """The acknowledgement of `op` may have been lost: sends it again, or for the first time after a restart."""
        state = self.state
        if not state.log.base < op <= state.durable_op:
            return
        seq = self.sent.get(op)
        if seq is not None:
            checksum = state.log[op].header.checksum
            self.out.send(state.primary, PrepareOk(state.view, op, checksum, state.node, state.clock, seq))
        elif op > state.commit_min:
            self.acknowledge(op)

    # Counting

    def count(self, op: int, node: int) -> None:
        """`node` acknowledged `op` in this view."""
        self.counted[op] = self.counted.get(op, 0) | 1 << node
        if node == self.state.node:
            self.pace.on_own(op)
        if self.has_quorum(op):
            self.fill_pipeline()
            self.pipeline.acknowledge(op)

    def has_counted(self, op: int, node: int) -> bool:
        """True if the acknowledgement of `op` by `node` was counted in this view."""
        return bool(self.counted.get(op, 0) >> node & 1)

    def has_quorum(self, op: int) -> bool:
        """True if q_r replicas acknowledged `op` in this view."""
        return self.counted.get(op, 0).bit_count() >= self.state.quorums.replication

    def fill_pipeline(self) -> None:
        """Takes in what the log holds above the pipeline; in another view the pipeline begins anew."""
        pipeline, state = self.pipeline, self.state
        if pipeline.view != state.view:
            self.begin_pipeline()
        namespaced = state.config.plane is Plane.PARTITIONS
        for op in range(pipeline.op + 1, state.op + 1):
            pipeline.push(namespace_of(state.log[op].body) if namespaced else 0)

    def begin_pipeline(self) -> None:
        """The pipeline of this view, empty."""
        self.pipeline.reset(self.state.view, self.state.commit_max)

    def is_committable(self, op: int) -> bool:
        """True if a quorum acknowledged `op` and all before it of its namespace."""
        return self.pipeline.is_committable(op)

    def drop(self, op: int) -> None:
        """`op` is committed."""
        self.pipeline.drain(op)
        self.counted.pop(op, None)
