"""Acknowledgements, appends and commit numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.impl.planted.stories import story
from viewproof.impl.interface.effects import AppendPrepares
from viewproof.impl.interface.messages import Commit, Prepare, PrepareOk
from viewproof.impl.replica.acknowledgements import Acknowledgements
from viewproof.impl.replica.commit_path import CommitPath
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.replica import Replica
from viewproof.impl.replica.state import Status
from viewproof.impl.sim.storage import SimStorage


@story("a primary counts itself when it prepares, not when its journal has the entry (braft)", "commit", "crashes")
def counts_itself(patch: pytest.MonkeyPatch) -> None:
    right = NormalOperation.propose

    def propose(self: NormalOperation, proposal: Any, event: str) -> None:
        right(self, proposal, event)
        self.acknowledgements.count(self.state.op, self.state.node)

    patch.setattr(NormalOperation, "propose", propose)


@story("a backup acknowledges what its journal does not have yet", "prepare_ok")
def acknowledges_at_once(patch: pytest.MonkeyPatch) -> None:
    right = NormalOperation.accept

    def accept(self: NormalOperation, prepare: Prepare) -> bool:
        accepted = right(self, prepare)
        if accepted:
            self.acknowledgements.acknowledge(prepare.header.op)
        return accepted

    patch.setattr(NormalOperation, "accept", accept)


@story("the disk says that an append is flushed, and a crash loses its end", "restart", "crashes")
def append_not_flushed(patch: pytest.MonkeyPatch) -> None:
    right = SimStorage.crash

    def crash(self: SimStorage) -> None:
        log, block = self._log(), self.superblock
        right(self)
        if log and log[-1].header.op > max(block.head_op, block.checkpoint):
            lost = log[-1].header.checksum
            self.records = [record for record in self.records if record.prepare.header.checksum != lost]
            self.survivors = [record for record in self.survivors if record.prepare.header.checksum != lost]

    patch.setattr(SimStorage, "crash", crash)


@story("two acknowledgements of five are taken for a quorum", "commit", replicas=5)
def two_of_five(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Acknowledgements, "has_quorum", lambda self, op: self.counted.get(op, 0).bit_count() >= 2)


@story("acknowledgements are counted, not replicas: one that comes again counts twice", "commit", "storm")
def counts_messages(patch: pytest.MonkeyPatch) -> None:
    right, forget = Acknowledgements.count, Acknowledgements.forget_view

    def count(self: Acknowledgements, op: int, node: int) -> None:
        came = self.__dict__.setdefault("came", {})
        came[op] = came.get(op, 0) + 1
        right(self, op, node)

    def forget_view(self: Acknowledgements) -> None:
        forget(self)
        self.__dict__["came"] = {}

    def has_quorum(self: Acknowledgements, op: int) -> bool:
        return bool(self.__dict__["came"].get(op, 0) >= self.state.quorums.replication)

    patch.setattr(Acknowledgements, "count", count)
    patch.setattr(Acknowledgements, "forget_view", forget_view)
    patch.setattr(Acknowledgements, "has_quorum", has_quorum)
    patch.setattr(Acknowledgements, "has_counted", lambda self, op, node: False)


@story("an append that ends in a view change is acknowledged in the new view (canonical/raft)", "prepare_ok", "storm")
def acknowledges_in_view_change(patch: pytest.MonkeyPatch) -> None:
    right = NormalOperation.on_append_done

    def done(self: NormalOperation, io: AppendPrepares) -> None:
        before, state = self.state.durable_op, self.state
        right(self, io)
        if state.status is Status.VIEW_CHANGE and not state.is_primary:
            self.acknowledgements.acknowledge_from(max(before, state.commit_min) + 1)

    patch.setattr(NormalOperation, "on_append_done", done)


@story("a failed append takes back what is durable, too (canonical/raft)", "append_failed", "failing-writes", 3)
def truncates_durable(patch: pytest.MonkeyPatch) -> None:
    def failed(self: NormalOperation, io: AppendPrepares) -> None:
        state = self.state
        self.journal.on_append_failed()
        if not io.repair:
            state.durable_op = max(state.commit_min, state.log.base)
            state.log.truncate(state.durable_op)
            state.find_unexecuted()
            self.out.emit("append_failed", m_op=state.durable_op + 1)

    patch.setattr(NormalOperation, "on_append_failed", failed)


@story("an op whose append failed is prepared once more in its view", "on_request", "failing-writes")
def prepares_op_again(patch: pytest.MonkeyPatch) -> None:
    def failed(self: Replica, io: AppendPrepares) -> None:
        self.journal.end_append(io)
        self.normal.on_append_failed(io)
        self.journal._refuses_until = 0

    patch.setattr(Replica, "_on_append_failed", failed)


@story("a heartbeat carries the op, not the commit number", "send_commit")
def heartbeat_of_op(patch: pytest.MonkeyPatch) -> None:
    def send_commit(self: NormalOperation, supports: tuple[int, ...], asked: int) -> None:
        state = self.state
        seq = self.out.emit("send_commit", m_type="commit", m_view=state.view, m_commit=state.op)
        self.out.send_others(Commit(state.view, state.op, state.node, state.clock, seq, supports, asked))

    patch.setattr(NormalOperation, "send_commit", send_commit)


@story("a backup tells the others the commit number that it was told", "on_commit", seed=2)
def tells_commits(patch: pytest.MonkeyPatch) -> None:
    right = NormalOperation.on_commit

    def on_commit(self: NormalOperation, message: Commit) -> None:
        state, before = self.state, self.state.commit_max
        if state.status is not Status.NORMAL or message.view != state.view or message.replica == state.primary:
            right(self, message)
            if state.commit_max > before:
                told = Commit(state.view, state.commit_max, state.node, state.clock)
                for node in set(state.others) - {state.primary}:
                    self.out.send(node, told)
        elif message.commit > before and not state.is_primary:
            self.commit_path.raise_commit_max(message.commit)
            numbers = {"m_view": message.view, "m_commit": message.commit, "m_from": message.replica}
            self.out.emit("on_commit", m_type="commit", **numbers)

    patch.setattr(NormalOperation, "on_commit", on_commit)


@story("a primary that left its view counts acknowledgements of it", "on_prepare_ok", "late-views")
def counts_after_leaving(patch: pytest.MonkeyPatch) -> None:
    right = CommitPath.on_prepare_ok

    def on_prepare_ok(self: CommitPath, message: PrepareOk) -> None:
        state, view = self.state, self.state.view
        left = state.status is Status.VIEW_CHANGE and message.view == state.log_view < view
        if left and message.view % state.replica_count == state.node:
            state.view, state.status = message.view, Status.NORMAL
            emit = self.out.emit

            def emit_now(event: str, **columns: Any) -> int:
                state.view, state.status = view, Status.VIEW_CHANGE
                return emit(event, **columns)

            self.out.__dict__["emit"] = emit_now
            right(self, message)
            del self.out.__dict__["emit"]
            state.view, state.status = view, Status.VIEW_CHANGE
        else:
            right(self, message)

    patch.setattr(CommitPath, "on_prepare_ok", on_prepare_ok)


@story("a primary executes, and replies, once its journal has the entry", "execute")
def replies_before_commit(patch: pytest.MonkeyPatch) -> None:
    def limit(self: CommitPath) -> int:
        if self.state.is_primary:
            self.state.commit_max = max(self.state.commit_max, self.state.durable_op)
        return min(self.state.commit_max, self.state.durable_op)

    patch.setattr(CommitPath, "execute_limit", limit)


@story("what is committed is executed, whether it is durable here or not", "execute")
def executes_undurable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CommitPath, "execute_limit", lambda self: min(self.state.commit_max, self.state.op))


@story("a replica goes on executing while its view changes", "execute", "storm")
def executes_in_view_change(patch: pytest.MonkeyPatch) -> None:
    right = CommitPath.execute_committed

    def execute(self: CommitPath) -> None:
        status = self.state.status
        if status is not Status.VIEW_CHANGE:
            right(self)
            return
        while not self.checkpoints.pending and self.state.commit_min < self.execute_limit():
            self.execute(self.state.commit_min + 1)

    patch.setattr(CommitPath, "execute_committed", execute)
