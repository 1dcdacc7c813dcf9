"""The replica as its host sees it: boot, messages, ticks and finished writes in; an ordered list of effects out.

Sans-IO and deterministic: no clock, randomness, threads or I/O inside, and every iteration order is fixed, so the same
inputs give the same effects. The host keeps the contract of `impl.interface.effects`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.durable import DurableState
from viewproof.impl.interface.effects import (
    AppendPrepares,
    DrainJournal,
    Effect,
    IoEffect,
    ReadSegment,
    WriteSegment,
    WriteSnapshot,
)
from viewproof.impl.interface.messages import (
    Commit,
    DoViewChange,
    Eviction,
    HeartbeatOk,
    Message,
    Nack,
    Prepare,
    PrepareOk,
    PrepareResponse,
    PreVote,
    Reply,
    Request,
    RequestDoViewChange,
    RequestPrepare,
    RequestSegment,
    RequestSnapshot,
    RequestStartView,
    SegmentChunk,
    SnapshotChunk,
    StartView,
    StartViewChange,
    Supports,
)
from viewproof.impl.machine.partition_log import NoSegments, SegmentLostError, SegmentRef, SegmentSource
from viewproof.impl.replica.config import ReplicaConfig
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.parts import RIGHT, Parts
from viewproof.impl.replica.restore import Restorer
from viewproof.impl.replica.segments import SegmentFetch
from viewproof.impl.replica.state import State, Status
from viewproof.impl.replica.status import StatusMachine
from viewproof.impl.replica.timeouts import Timeouts
from viewproof.impl.replica.transfer import SnapshotTransfer

Handler = Callable[[Any], None]
"""Takes a message of the type that it is listed for."""

_OF_CLIENTS = (Request, Reply, Eviction)
_WITHOUT_SNAPSHOT = (SnapshotChunk, RequestSegment, SegmentChunk)


class Replica:
    """One replica of the core protocol: its state, its components, and which of them handles what.

    `Replica(durable, config, seq=…, clock=…)`: `seq` and `clock` continue the trace of the node (0 if it is new);
    `source` reads the segments of messages on its disk. Call `boot()` once before anything else. Raises
    `ConfigurationError` for quorums that do not intersect.
    """

    def __init__(
        self,
        durable: DurableState,
        config: ReplicaConfig,
        *,
        seq: int = 0,
        clock: int = 0,
        parts: Parts = RIGHT,
        source: SegmentSource | None = None,
    ) -> None:
        block = durable.superblock
        source = source or NoSegments()
        restorer = Restorer(block, config, client_table=parts.client_table, features=parts.features, source=source)
        quorums = parts.quorums(block.quorums, block.replica_count)
        state = self.state = State(durable, config, quorums, restorer.durable(durable), seq=seq, clock=clock)
        out = self.out = Outbox(state)
        status = StatusMachine(state)
        writes = self.writes = parts.writes(state, out)
        journal = self.journal = parts.journal(state, out)
        acks = self.acknowledgements = parts.acknowledgements(state, out, parts.pace(state))
        replies = self.replies = parts.replies(state, out)
        checkpoints = self.checkpoints = parts.checkpoints(state, out, writes, journal, acks)
        segments = self.segments = SegmentFetch(state, out, source)
        self.scrub = parts.scrub(state, out, segments)
        commit_path = self.commit_path = parts.commit_path(state, out, acks, replies, checkpoints, segments)
        normal = self.normal = parts.normal(state, out, journal, acks, commit_path)
        self.requests = parts.requests(state, out, normal, replies)
        self.control = parts.control(state, out, normal)
        transfer = self.transfer = SnapshotTransfer(state, out, restorer, segments)
        install = self.installation = parts.installation(state, out, writes, journal, checkpoints, transfer)
        start_views = self.start_views = parts.start_views(state, out, acks, commit_path, install, status)
        pre_votes = self.pre_votes = parts.pre_votes(state, out)
        self.view_change = parts.view_change(
            state, out, writes, journal, acks, commit_path, install, start_views, status, pre_votes
        )
        self.prepare_service = parts.prepare_service(state, out, self.view_change)
        self.timeouts = Timeouts(state, writes, normal, self.control, install, start_views, self.view_change, pre_votes)
        boot = self.booting = parts.boot(state, out, writes, commit_path, status, durable.relics)
        self.log_recovery = parts.log_recovery(
            state, out, writes, journal, checkpoints, install, start_views, boot, pre_votes
        )
        self.snapshot_recovery = parts.snapshot_recovery(
            state, out, writes, transfer, restorer, self.log_recovery, durable
        )
        status.of_view = (acks, replies, normal, self.requests, self.control, start_views, pre_votes)
        self._handlers = self._handlers_booted()
        self._handlers_before_boot = self._handlers_recovering()

    # What its host calls

    def boot(self) -> list[Effect]:
        """The effects of booting: `start` (and the mark of a used data file) or `restart`.

        A replica that lost its snapshot, or prepares of its log, boots later, once it has them again.
        """
        check(self.state.status is Status.RECOVERING, "boot is called once")
        self.snapshot_recovery.begin()
        return self.out.take()

    def on_message(self, message: Message) -> list[Effect]:
        """A message arrived, from a replica or a client. Bad or useless messages are counted by reason."""
        state = self.state
        if message.clock > state.clock:
            state.clock = message.clock
        if self.writes.superblock_writing is not None:
            self.out.ignore("any: a superblock write is pending")
        elif not self._is_of_cluster(message):
            self.out.ignore("any: sender is no other replica of the cluster")
        elif state.status is Status.RECOVERING:
            self._on_message_recovering(message)
        else:
            self._handlers[type(message)](message)
        return self.out.take()

    def on_tick(self) -> list[Effect]:
        """One tick of the host's clock has passed."""
        self.state.ticks += 1
        self.writes.retry()
        self.checkpoints.advance()
        self.segments.advance()
        self.scrub.on_tick()
        if self.state.status is Status.RECOVERING:
            recovery = self.log_recovery if self.snapshot_recovery.lost is None else self.snapshot_recovery
            recovery.ask()
        if self.state.status is not Status.RECOVERING and self.writes.superblock_writing is None:
            self.timeouts.on_tick()
        return self.out.take()

    def on_io_done(self, io: IoEffect) -> list[Effect]:
        """A durable write asked for by an earlier effect is durable."""
        if isinstance(io, AppendPrepares):
            self._on_append_done(io)
        elif isinstance(io, DrainJournal):
            self.journal.on_drained(io)
            self.checkpoints.on_drained(io)
            self.log_recovery.on_drained(io)
        elif isinstance(io, WriteSnapshot):
            self.writes.on_snapshot_written(io)
            self.checkpoints.on_snapshot_written(io)
            self.installation.on_snapshot_written(io)
            self.snapshot_recovery.on_snapshot_written()
        elif isinstance(io, WriteSegment):
            self.segments.on_written(io)
            self.snapshot_recovery.ask()
        elif isinstance(io, ReadSegment):
            self.scrub.on_read(io)
        elif io.superblock is self.writes.checkpoint_writing:
            self.checkpoints.on_referred(io.superblock)
        else:
            self.writes.on_superblock_done(io.superblock)
        self._go_on()
        return self.out.take()

    def on_io_failed(self, io: IoEffect, error: str, lost: tuple[SegmentRef, ...] = ()) -> list[Effect]:
        """A durable write failed and nothing of it counts, now or after a crash; `error` says why.

        A superblock or snapshot is written again after a while. What an append held is no longer in the log. `lost`:
        segments of messages that were found to be gone; raises `SegmentLostError` if nobody else has them.
        """
        self.out.io_errors.append(error)
        if isinstance(io, ReadSegment):
            self.scrub.on_rotten(io, error)
            return self.out.take()
        if lost:
            self.segments.on_lost(SegmentLostError(lost, error))
        if isinstance(io, AppendPrepares):
            self._on_append_failed(io)
        elif isinstance(io, DrainJournal):
            self.journal.on_drain_failed()
            self.checkpoints.on_drain_failed()
        else:
            self.writes.retry_later(io)
        self._go_on()
        return self.out.take()

    # Finished writes

    def _on_append_done(self, io: AppendPrepares) -> None:
        self.journal.end_append(io)
        if self.state.log_repair is None:
            self.normal.on_append_done(io)
        else:
            self.log_recovery.on_append_done(io)

    def _on_append_failed(self, io: AppendPrepares) -> None:
        """A primary has sent what its log now lacks: it must not prepare another entry at those ops in its view."""
        state = self.state
        self.journal.end_append(io)
        if state.log_repair is None:
            self.normal.on_append_failed(io)
        else:
            self.journal.on_append_failed()
        lacks = not io.repair and state.op < io.prepares[-1].header.op
        if lacks and state.is_normal_primary and self.writes.superblock_writing is None:
            self.view_change.begin_next()

    def _go_on(self) -> None:
        """What may have waited for a write."""
        self.checkpoints.advance()
        self.commit_path.execute_committed()
        self.installation.advance()
        self.view_change.send_do_view_change()
        if self.writes.superblock_writing is None:
            self.journal.append_log()
            self.requests.prepare_queued()

    # Messages

    def _handlers_booted(self) -> dict[type, Handler]:
        """Who handles each type of message, once the replica has booted."""
        return {
            Request: self.requests.on_request,
            Prepare: self._on_prepare,
            PrepareOk: self._on_prepare_ok,
            Commit: self._on_commit,
            HeartbeatOk: self.normal.on_heartbeat_ok,
            Supports: self.control.on_supports,
            PreVote: self.pre_votes.on_pre_vote,
            StartViewChange: self.view_change.on_start_view_change,
            DoViewChange: self.view_change.on_do_view_change,
            RequestDoViewChange: self.view_change.on_request_do_view_change,
            RequestStartView: self.view_change.on_request_start_view,
            StartView: self.start_views.on_start_view,
            RequestPrepare: self.prepare_service.on_request_prepare,
            PrepareResponse: self.installation.on_prepare_response,
            RequestSnapshot: self.transfer.on_request_snapshot,
            SnapshotChunk: self._on_snapshot_chunk,
            RequestSegment: self.segments.on_request_segment,
            SegmentChunk: self._on_segment_chunk,
            Nack: self._on_misdirected,
            Reply: self._on_misdirected,
            Eviction: self._on_misdirected,
        }

    def _handlers_recovering(self) -> dict[type, Handler]:
        """Who handles each type of message before that; with the snapshot lost only `_WITHOUT_SNAPSHOT` are of use."""
        recovery = self.log_recovery
        return {
            SnapshotChunk: self._on_snapshot_chunk,
            RequestPrepare: recovery.on_request_prepare,
            RequestSnapshot: self.transfer.on_request_snapshot,
            RequestSegment: self.segments.on_request_segment,
            SegmentChunk: self._on_segment_chunk,
            PrepareResponse: recovery.on_prepare_response,
            Nack: recovery.on_nack,
            StartView: recovery.on_start_view,
            Commit: recovery.on_view_seen,
            Prepare: recovery.on_view_seen,
        }

    def _on_message_recovering(self, message: Message) -> None:
        handler = self._handlers_before_boot.get(type(message))
        lost = self.snapshot_recovery.lost is not None and not isinstance(message, _WITHOUT_SNAPSHOT)
        if handler is None or lost:
            self.out.ignore("any: not booted")
        else:
            handler(message)

    def _on_misdirected(self, message: Message) -> None:
        self.out.ignore("any: a message for clients, or for a replica that mends its log")

    def _is_of_cluster(self, message: Message) -> bool:
        """True unless no correct replica of this cluster sends this."""
        if isinstance(message, _OF_CLIENTS):
            return True
        return 0 <= message.replica < self.state.replica_count and message.replica != self.state.node

    def _on_prepare(self, message: Prepare) -> None:
        if message.header.view > self.state.view:
            self.start_views.on_later_view(message.header.view)
        else:
            self.normal.on_prepare(message)

    def _on_prepare_ok(self, message: PrepareOk) -> None:
        self.commit_path.on_prepare_ok(message)
        self.requests.prepare_queued()

    def _on_commit(self, message: Commit) -> None:
        state = self.state
        if message.view > state.view or (message.view == state.view and state.status is Status.VIEW_CHANGE):
            self.start_views.on_later_view(message.view)
        else:
            self.normal.on_commit(message)
            self.control.on_commit(message)

    def _on_snapshot_chunk(self, message: SnapshotChunk) -> None:
        if self.snapshot_recovery.lost is not None:
            self.snapshot_recovery.on_snapshot_chunk(message)
        else:
            self.transfer.on_snapshot_chunk(message)
            self.installation.advance()

    def _on_segment_chunk(self, message: SegmentChunk) -> None:
        self.segments.on_segment_chunk(message)
        if self.snapshot_recovery.lost is not None:
            self.snapshot_recovery.ask()
        else:
            self.installation.advance()
