"""The replica as its host sees it: boot, messages, ticks and finished writes in; an ordered list of effects out.

Sans-IO and deterministic: no clock, randomness, threads or I/O inside, and every iteration order is fixed, so the same
inputs give the same effects. The host keeps the contract of `impl.interface.effects`.
"""

from __future__ import annotations

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.effects import AppendPrepares, DrainJournal, Effect, IoEffect, WriteSnapshot
from viewproof.impl.interface.messages import (
    Commit,
    DoViewChange,
    Eviction,
    Message,
    Prepare,
    PrepareOk,
    PrepareResponse,
    Reply,
    Request,
    RequestDoViewChange,
    RequestPrepare,
    RequestSnapshot,
    RequestStartView,
    SnapshotChunk,
    StartView,
    StartViewChange,
    Supports,
)
from viewproof.impl.replica.state import Status
from viewproof.impl.replica.timeouts import Timeouts


class Replica(Timeouts):
    """One replica of the core protocol.

    `Replica(durable, config, seq=…, clock=…)`: `seq` and `clock` continue the trace of the node (0 if it is new). Call
    `boot()` once before anything else. Raises `ConfigurationError` for quorums that do not intersect.
    """

    def boot(self) -> list[Effect]:
        """The effects of booting: `start` (and the mark of a used data file) or `restart`.

        A replica whose snapshot is unreadable boots later, once it has fetched it.
        """
        check(self.status is Status.RECOVERING, "boot is called once")
        self.boot_or_recover()
        return self._take_effects()

    def on_message(self, message: Message) -> list[Effect]:
        """A message arrived, from a replica or a client. Bad or useless messages are counted in `ignored` by reason."""
        if message.clock > self.clock:
            self.clock = message.clock
        if self.superblock_writing is not None:
            self.ignore("any: a superblock write is pending")
        elif self.status is Status.RECOVERING:
            self._on_message_unbooted(message)
        elif self._is_acceptable(message):
            self._dispatch(message)
        return self._take_effects()

    def _on_message_unbooted(self, message: Message) -> None:
        if self._is_acceptable(message):
            self.on_message_recovering(message)

    def on_tick(self) -> list[Effect]:
        """One tick of the host's clock has passed."""
        self.tick()
        return self._take_effects()

    def on_io_done(self, io: IoEffect) -> list[Effect]:
        """A durable write asked for by an earlier effect is durable."""
        if isinstance(io, AppendPrepares):
            check(io is self.appending, "the journal write finished is the one in flight")
            self.appending = None
            self.on_append_done(io)
        elif isinstance(io, DrainJournal):
            check(io is self.draining, "the drain finished is the one in flight")
            self.on_drained(io)
        elif isinstance(io, WriteSnapshot):
            check(io is self.snapshot_writing, "the snapshot written is the one in flight")
            self.on_snapshot_written(io)
        elif io.superblock is self.checkpoint_writing:
            self.on_checkpoint_referred(io.superblock)
        else:
            self.on_superblock_done(io.superblock)
        self._go_on()
        return self._take_effects()

    def on_io_failed(self, io: IoEffect, error: str) -> list[Effect]:
        """A durable write failed and nothing of it counts, now or after a crash; `error` says why.

        A superblock or snapshot is written again after a while. What an append held is no longer in the log.
        """
        self.io_errors.append(error)
        if isinstance(io, AppendPrepares):
            check(io is self.appending, "the journal write that failed is the one in flight")
            self.appending = None
            self.on_append_failed(io)
            self._leave_view(io)
        elif isinstance(io, DrainJournal):
            self.on_drain_failed()
        else:
            self.retry_later(io)
        self._go_on()
        return self._take_effects()

    def _leave_view(self, io: AppendPrepares) -> None:
        """A primary has sent what its log now lacks: it must not prepare another entry at those ops in its view."""
        lacks = not io.repair and self.op < io.prepares[-1].header.op
        if lacks and self.is_normal_primary and self.superblock_writing is None:
            self.transition_to_view_change(self.view + 1)

    def _go_on(self) -> None:
        """What may have waited for a write."""
        self.advance_checkpoint()
        if not self.checkpoint_pending:
            self.execute_committed()
        self.continue_install()
        self.send_do_view_change()
        if self.superblock_writing is None:
            self.append_queued()
            self.prepare_queued_requests()

    def _take_effects(self) -> list[Effect]:
        effects = self.effects
        if not effects:
            return []
        self.effects = []
        return effects

    def _is_acceptable(self, message: Message) -> bool:
        """Rejects what no correct replica of this cluster sends, with a reason."""
        if isinstance(message, Request | Reply | Eviction):
            return True
        if not 0 <= message.replica < self.replica_count or message.replica == self.node:
            self.ignore("any: sender is no other replica of the cluster")
            return False
        return True

    def _dispatch(self, message: Message) -> None:
        if isinstance(message, Prepare):
            if message.header.view > self.view:
                self.on_later_view(message.header.view)
            else:
                self.on_prepare(message)
        elif isinstance(message, PrepareOk):
            self.on_prepare_ok(message)
            self.prepare_queued_requests()
        elif isinstance(message, Request):
            self.on_request(message)
        elif isinstance(message, Commit):
            self._dispatch_commit(message)
        else:
            self._dispatch_rare(message)

    def _dispatch_commit(self, message: Commit) -> None:
        started = message.view == self.view and self.status is Status.VIEW_CHANGE
        if message.view > self.view or started:
            self.on_later_view(message.view)
        else:
            self.on_commit(message)

    def _dispatch_rare(self, message: Message) -> None:
        if isinstance(message, StartViewChange):
            self.on_start_view_change(message)
        elif isinstance(message, DoViewChange):
            self.on_do_view_change(message)
        elif isinstance(message, StartView):
            self.on_start_view(message)
        elif isinstance(message, RequestStartView):
            self.on_request_start_view(message)
        elif isinstance(message, RequestDoViewChange):
            self.on_request_do_view_change(message)
        elif isinstance(message, RequestPrepare):
            self.on_request_prepare(message)
        elif isinstance(message, PrepareResponse):
            self.on_prepare_response(message)
        elif isinstance(message, RequestSnapshot):
            self.on_request_snapshot(message)
        elif isinstance(message, SnapshotChunk):
            self.on_snapshot_chunk(message)
            self.continue_install()
        elif isinstance(message, Supports):
            self.on_supports(message)
        else:
            self.ignore("any: a message for clients")
