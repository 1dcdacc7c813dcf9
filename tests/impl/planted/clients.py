"""Clients, checkpoints, boots, repair and features."""

from __future__ import annotations

from dataclasses import replace as changed
from typing import Any

import pytest

from tests.impl.planted.stories import story
from viewproof.impl.interface.messages import Request
from viewproof.impl.replica.boot import Boot
from viewproof.impl.replica.checkpoints import Checkpoints
from viewproof.impl.replica.client_table import ClientTable, Slot
from viewproof.impl.replica.commit_path import CommitPath
from viewproof.impl.replica.control import Control
from viewproof.impl.replica.features import feature_numbers
from viewproof.impl.replica.log_recovery import LogRecovery
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.requests import RequestOutcome, Requests
from viewproof.impl.replica.restore import Restorer
from viewproof.impl.replica.state import Status
from viewproof.impl.replica.status import StatusMachine
from viewproof.impl.sim.storage import SimStorage


def outcomes(patch: pytest.MonkeyPatch, right: RequestOutcome, taken: RequestOutcome) -> None:
    """A request with one outcome is treated as if it had another."""
    outcome_of = Requests.outcome_of

    def wrong(self: Requests, message: Request) -> RequestOutcome:
        outcome = outcome_of(self, message)
        return taken if outcome is right and message.request else outcome

    patch.setattr(Requests, "outcome_of", wrong)
    patch.setattr(ClientTable, "require_newer", lambda self, before, slot: None)


@story("a new primary does not know whose requests are in the log that it took over", "on_request", "storm")
def forgets_in_flight(patch: pytest.MonkeyPatch) -> None:
    right = StatusMachine.transition_to_normal

    def normal(self: StatusMachine, view: int) -> None:
        right(self, view)
        self.state.unexecuted = {}

    patch.setattr(StatusMachine, "transition_to_normal", normal)


@story("what was in flight before a log was installed still is (ClickHouse Keeper)", "drop_request", "storm")
def keeps_in_flight(patch: pytest.MonkeyPatch) -> None:
    right = StatusMachine.transition_to_normal

    def normal(self: StatusMachine, view: int) -> None:
        before = dict(self.state.unexecuted)
        right(self, view)
        self.state.unexecuted = before | self.state.unexecuted

    def drop(self: Requests, message: Request, outcome: RequestOutcome) -> None:
        self._emit_outcome("drop_request", message, outcome)

    patch.setattr(StatusMachine, "transition_to_normal", normal)
    patch.setattr(Requests, "_drop", drop)


@story("a snapshot is loaded without the client table (RedisRaft)", "restart", "crashes")
def snapshot_without_table(patch: pytest.MonkeyPatch) -> None:
    right = Restorer.snapshot

    def snapshot(self: Restorer, data: Any) -> Any:
        return changed(right(self, data), client_table=self.client_table(self.superblock.clients))

    patch.setattr(Restorer, "snapshot", snapshot)


@story("who is evicted depends on what is in flight at the replica", "execute_evicting", "slots")
def evicts_by_flight(patch: pytest.MonkeyPatch) -> None:
    right, busy = CommitPath.execute, set[int]()

    def execute(self: CommitPath, op: int) -> None:
        busy.clear()
        busy.update(self.state.unexecuted)
        right(self, op)

    patch.setattr(CommitPath, "execute", execute)
    patch.setattr(ClientTable, "eviction_rank", lambda self, slot: slot.op + (1 << 40) * (slot.client in busy))


@story("a request with the last one's number is taken as new", "on_request", "storm")
def takes_duplicates(patch: pytest.MonkeyPatch) -> None:
    outcomes(patch, RequestOutcome.DUPLICATE, RequestOutcome.NEW)


@story("a request of an older session is taken", "on_request", "clients", 1)
def takes_fenced(patch: pytest.MonkeyPatch) -> None:
    outcomes(patch, RequestOutcome.FENCED, RequestOutcome.NEW)


@story("a backup answers a repeated request from its own table", "resend_reply", seed=1)
def backup_replies(patch: pytest.MonkeyPatch) -> None:
    right = Requests.on_request

    def on_request(self: Requests, message: Request) -> None:
        state, slot = self.state, self.state.client_table.get(message.client)
        repeated = slot is not None and (slot.session, slot.request) == (message.session, message.request)
        if repeated and message.request and state.status is Status.NORMAL and not state.is_primary:
            self._on_duplicate(message)
        else:
            right(self, message)

    patch.setattr(Requests, "on_request", on_request)


@story("a request whose session was evicted while it was prepared gets a slot", "execute_evicting")
def evicted_takes_slot(patch: pytest.MonkeyPatch) -> None:
    right = ClientTable.record

    def record(self: ClientTable, client: int, session: int, request: int, op: int, view: int, body: bytes) -> Any:
        if self.get(client) is None and self.config.sessions:
            return self._put(Slot(client, session, 0, request, op, view, body))
        return right(self, client, session, request, op, view, body)

    patch.setattr(ClientTable, "record", record)


@story("a replica that comes back cuts its log at the commit number that it knows (Kafka)", "restart", "crashes")
def cuts_at_boot(patch: pytest.MonkeyPatch) -> None:
    right = Boot.restart

    def restart(self: Boot) -> None:
        self.state.log.truncate(self.state.commit_min)
        self.state.durable_op = self.state.op
        right(self)

    patch.setattr(Boot, "restart", restart)


@story(
    "what was executed is taken from the log's head at boot, and not executed again (etcd 3.5)", "restart", "crashes"
)
def skips_at_boot(patch: pytest.MonkeyPatch) -> None:
    right = Boot.restart

    def restart(self: Boot) -> None:
        self.state.commit_min = self.state.commit_max = max(self.state.commit_min, self.state.op - 1)
        right(self)

    patch.setattr(Boot, "restart", restart)


@story("after a crash the older copy of the superblock is read", "restart", "crashes")
def older_superblock(patch: pytest.MonkeyPatch) -> None:
    take, right = SimStorage._take_effect, SimStorage.crash

    def effect(self: SimStorage, io: Any) -> None:
        self.__dict__["before"] = self.superblock
        take(self, io)

    def crash(self: SimStorage) -> None:
        right(self)
        before = self.__dict__.get("before", self.superblock)
        if before.checkpoint == self.superblock.checkpoint:
            self.superblock = before

    patch.setattr(SimStorage, "_take_effect", effect)
    patch.setattr(SimStorage, "crash", crash)


@story("what a new log has cut off is found in the journal at the next boot (MongoDB)", "restart", "storm", 2)
def finds_rolled_back(patch: pytest.MonkeyPatch) -> None:
    def log_at_boot(self: SimStorage) -> Any:
        log = self._log()
        head = log[-1].header.checksum if log else self.superblock.head_checksum
        after = {r.prepare.header.parent: r.prepare for r in self.records if not r.repair}
        while (entry := after.get(head)) is not None and entry.header.op > self.superblock.head_op:
            log.append(entry)
            head = entry.header.checksum
        return log

    patch.setattr(SimStorage, "log_at_boot", log_at_boot)


@story("ops are executed while a snapshot waits to be written", "checkpoint", "crashes")
def executes_ahead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Checkpoints, "pending", property(lambda self: False))


@story("a replica takes part before it has its log again", "discard", "rot")
def boots_with_holes(patch: pytest.MonkeyPatch) -> None:
    right = LogRecovery.begin

    def begin(self: LogRecovery) -> None:
        state, repair = self.state, self.state.log_repair
        if repair is None:
            right(self)
            return
        head, whole = state.log.base_checksum, []
        for prepare in repair.walk(state.log.base)[0]:
            if prepare.header.parent != head:
                break
            whole.append(prepare)
            head = prepare.header.checksum
        self.boot_whole(whole)

    patch.setattr(LogRecovery, "begin", begin)


@story("one nack is enough to discard a prepare", "discard", "rot", 4)
def one_nack(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LogRecovery, "quorum_nack", property(lambda self: 1))


@story("a feature is enabled where its entry is appended (configurations in Raft)", "append", "downgrades", 2)
def enables_at_append(patch: pytest.MonkeyPatch) -> None:
    accept, propose = NormalOperation.accept, NormalOperation.propose

    def enable(self: NormalOperation) -> None:
        header = self.state.log[self.state.op].header
        if header.feature:
            self.state.enabled.enable(header.feature, header.op)
            self.state.forget_digests()

    def accepts(self: NormalOperation, prepare: Any) -> bool:
        accepted = accept(self, prepare)
        if accepted:
            enable(self)
        return accepted

    def proposes(self: NormalOperation, proposal: Any, event: str) -> None:
        propose(self, proposal, event)
        enable(self)

    patch.setattr(NormalOperation, "accept", accepts)
    patch.setattr(NormalOperation, "propose", proposes)


@story("a feature is proposed once a quorum supports it", "propose_feature", "downgrades")
def quorum_supports(patch: pytest.MonkeyPatch) -> None:
    def supported(self: Control) -> int:
        masks = [self.supports, *self.member_supports.values()]
        needed = self.state.quorums.replication
        features = feature_numbers(self.supports)
        return sum(1 << f - 1 for f in features if sum(mask >> f - 1 & 1 for mask in masks) >= needed)

    patch.setattr(Control, "supported_by_all", supported)
