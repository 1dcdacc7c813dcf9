"""The host of one replica of one group: its trace events, its messages and its durable writes, in this order.

What one batch of input produced is carried out so: trace events are written (write(2)), then messages are sent, then
durable writes are queued. They are done one at a time, in order, in a thread of the group; when one is durable (after
its fdatasync) the replica is told and what that produced is carried out before the next write starts. So no message
leaves before the events that came before it in the replica's list are in the file, and a kill at any moment leaves at
most one durable step that the trace does not show (traces/README.md).
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVarTuple

from viewproof.impl.faults import parts_with
from viewproof.impl.groups.group import Group
from viewproof.impl.interface.checks import ContradictionError, InvariantError
from viewproof.impl.interface.effects import (
    AppendPrepares,
    DrainJournal,
    Effect,
    Emit,
    IoEffect,
    ReadSegment,
    Send,
    SendClient,
    WriteSegment,
    WriteSnapshot,
    WriteSuperblock,
)
from viewproof.impl.interface.messages import Message, Reply
from viewproof.impl.machine.partition_log import SegmentLostError
from viewproof.impl.net.framing import Position, Status, frame_message
from viewproof.impl.net.inbound import Inbound
from viewproof.impl.net.links import PeerLink
from viewproof.impl.net.metrics import GroupMetrics, Sample, counter, gauge
from viewproof.impl.net.server_config import ServerConfig, ServerError, trace_path
from viewproof.impl.replica import Replica, ReplicaConfig
from viewproof.impl.replica.proposals import EntryFailedError, UnknownEntryError
from viewproof.impl.storage.data_file import DataFile
from viewproof.impl.storage.file import StorageError, WriteRefusedError
from viewproof.impl.storage.snapshots import SegmentsGoneError
from viewproof.impl.trace.events import TraceEvent
from viewproof.impl.trace.files import TraceError, TraceWriter

REQUEST_QUEUE_MAX = 1024
"""Requests that wait for room in the pipeline; further ones are dropped, and their clients ask again."""

SCRUB_PASS_SECONDS_MIN = 600.0
"""A pass over all segments begins at least so long after the one before."""

_WRITE_NAMES: dict[type, str] = {
    AppendPrepares: "append",
    WriteSuperblock: "superblock",
    WriteSnapshot: "snapshot",
    WriteSegment: "segment",
    DrainJournal: "drain",
}

_InputTs = TypeVarTuple("_InputTs")

logger = logging.getLogger("viewproof.impl.net")


class Process(Protocol):
    """What a group needs of the process that hosts it; ``clients`` are connections by (group, client)."""

    links: dict[int, PeerLink]
    clients: dict[tuple[int, int], Inbound]
    failure: ServerError | None

    @property
    def stopping(self) -> bool:
        """True once the process is to end."""

    def flush(self) -> None:
        """Carries out what all groups have collected."""

    def fail(self, error: ServerError) -> None:
        """The process has to stop."""


class GroupHost:
    """One replica with its data directory and its trace."""

    def __init__(
        self,
        group: Group,
        process: Process,
        config: ServerConfig,
        data: DataFile,
        trace: TraceWriter | None,
        metrics: GroupMetrics,
    ) -> None:
        self.group = group
        self._process = process
        self._config = config
        self._data = data
        self._trace = trace
        self.metrics = metrics
        if data.journal_slots and not config.checkpoint_interval:
            raise ServerError(f"{data.path}: the journal is a ring, which is drained by checkpoints; take some")
        self._known_problems = len(data.problems)
        self._evidence = data.evidence()
        self._refused: dict[type, str] = {}
        durable = data.durable_state()
        self.replica = Replica(
            durable,
            ReplicaConfig(
                run=group.run(config.run),
                traced=trace is not None,
                supports=config.supports,
                plane=group.plane,
                namespace=group.namespace,
                ring=True,
                nonce=secrets.randbits(62) | 1,
                checkpoint_interval=config.checkpoint_interval,
                **({"journal_slots": data.journal_slots} if data.journal_slots else {}),
                pipeline_max=config.pipeline_max,
                request_queue_max=REQUEST_QUEUE_MAX,
                append_prepares_max=config.pipeline_max,
                prepare_buffer_max=2 * config.pipeline_max,
                segment_bytes=config.segment_bytes,
                scrub_bytes_per_tick=math.ceil(config.scrub_bytes_per_second * config.tick_seconds),
                scrub_pass_ticks_min=math.ceil(SCRUB_PASS_SECONDS_MIN / config.tick_seconds),
            ),
            seq=trace.seq if trace is not None else 0,
            clock=trace.clock if trace is not None else 0,
            parts=parts_with(config.faults, config.replica),
            source=data.segments,
        )
        self._log_problems()
        if data.superblock.recovery:
            logger.warning("%s: recovers from the cluster; it takes part in nothing until then", data.path)
        elif self.replica.state.log_repair is not None:
            logger.warning("%s: journal: prepares are damaged; they are fetched from the other replicas", data.path)
        self._io_thread = ThreadPoolExecutor(1, thread_name_prefix=f"storage-{group.name}")
        self._events: list[TraceEvent] = []
        self._encoded: tuple[Message, bytes] | None = None
        self._io_queue: deque[IoEffect] = deque()
        self._io_running: asyncio.Future[None] | None = None
        self._journal_writes = 0
        self._logged = (self.replica.state.status, self.replica.state.view)

    def status(self, groups: tuple[int, ...]) -> Status:
        """What this replica says of itself; ``groups`` are those of its process."""
        replica, superblock = self.replica, self._data.superblock
        return Status(
            cluster=superblock.cluster,
            replica=superblock.replica,
            replica_count=superblock.replica_count,
            status=str(replica.state.status),
            view=replica.state.view,
            log_view=replica.state.log_view,
            op=replica.state.op,
            commit_min=replica.state.commit_min,
            commit_max=replica.state.commit_max,
            journal_bytes=self._data.journal_bytes,
            peers=tuple(peer for peer, link in self._process.links.items() if link.connected),
            journal_writes=self._journal_writes,
            group=self.group.number,
            groups=groups,
            features=replica.state.enabled.mask,
            quorums=(superblock.quorums.replication, superblock.quorums.view_change),
            clients=(superblock.clients.slots, superblock.clients.sessions, superblock.clients.gaps),
            group_name=self.group.name,
            checkpoint=superblock.checkpoint,
            recoveries=superblock.recoveries,
            digest=replica.state.digest,
            checksum=replica.state.enabled.checksum,
        )

    def samples(self, labels: tuple[tuple[str, str], ...]) -> Iterator[Sample]:
        """What is measured of it, for whoever asks on the metrics' port."""
        state = self.replica.state
        labels = (*labels, ("group", self.group.name))
        yield from self.metrics.samples(labels)
        yield counter("viewproof_commits_total", labels, state.commit_min)
        for name in ("view", "log_view", "op", "commit_min", "commit_max", "checkpoint"):
            yield gauge(f"viewproof_{name}", labels, getattr(state, name))
        yield gauge("viewproof_normal", labels, str(state.status) == "normal")
        yield gauge("viewproof_primary", labels, state.is_normal_primary)
        yield gauge("viewproof_journal_bytes", labels, self._data.journal_bytes)
        for name in ("passes", "segments_read", "bytes_read", "found"):
            yield counter(f"viewproof_scrub_{name}_total", labels, getattr(self.replica.scrub, name))
        yield gauge("viewproof_segments_lost", labels, len(self.replica.segments.lost))
        queues = {
            "requests": len(self.replica.requests.queue),
            "pipeline": state.op - state.commit_max,
            "writes": len(self._io_queue) + (self._io_running is not None),
        }
        for name, length in queues.items():
            yield gauge("viewproof_queue_length", (*labels, ("queue", name)), length)

    def position(self, incarnation: int) -> Position:
        """What its data directory holds, durably. The end of a log that is being mended is not known."""
        state, superblock = self.replica.state, self.replica.state.superblock
        known = str(state.status) != "recovering" and state.log_view == superblock.log_view
        op = state.durable_op if known else -1
        identity = (superblock.replica, superblock.group, superblock.recoveries)
        return Position(*identity, superblock.view, superblock.log_view, op, incarnation)

    # Transitions

    def boot(self) -> None:
        """The replica's first transition."""
        self._step(self.replica.boot)

    def tick(self) -> None:
        """One tick has passed. Without its trace the process has to stop: what it did cannot be shown."""
        try:
            if self._trace is not None:
                self._trace.require_whole()
        except (TraceError, OSError) as error:
            self._process.fail(ServerError(str(error)))
        self._step(self.replica.on_tick)
        self._log_problems()

    def on_message(self, message: Message) -> None:
        """A message of this group arrived."""
        self._step(self.replica.on_message, message)

    def _step(self, handler: Callable[[*_InputTs], list[Effect]], *inputs: *_InputTs) -> None:
        """One transition of the replica; after a failure none is made any more."""
        if self._process.failure is not None:
            return
        try:
            self._carry_out(handler(*inputs))
        except EntryFailedError as error:
            logger.exception("an entry cannot be applied")
            self._process.fail(ServerError(f"{self._name()}: {error}"))
        except UnknownEntryError as error:
            self._process.fail(ServerError(f"{self._name()}: {error}"))
        except ContradictionError as error:
            self._process.fail(ServerError(f"{self._name()}: {error}; {self._kept(error)}"))
        except SegmentLostError as error:
            self._process.fail(
                ServerError(
                    f"{self._name()}: {error}; there is no other replica: restore the file from a backup, or give up"
                    " what is lost and start with --accept-loss"
                )
            )
        except InvariantError as error:
            self._process.fail(ServerError(f"{self._name()} contradicts itself: {error}"))
        except Exception as error:  # a bug: its state is unknown now, so it must not go on
            logger.exception("internal error")
            self._process.fail(ServerError(f"{self._name()}: internal error, see the log: {error!r}"))
        self._log_view()

    def _kept(self, error: ContradictionError) -> str:
        """Where the evidence lies."""
        try:
            path = self._data.keep_evidence(str(error), error.evidence)
        except OSError as failure:
            return f"its files are left as they are, and evidence cannot be written: {failure.strerror or failure}"
        return f"its files are left as they are, evidence is in {path}"

    def on_outdated(self, reason: str) -> None:
        """Its data directory is older than what the others heard of it: no process starts on it any more."""
        try:
            self._data.keep_outdated(reason)
        except OSError as error:
            self._process.fail(ServerError(f"{self._data.path}: {reason}; this cannot be written there: {error}"))

    def problems(self) -> Iterator[str]:
        """What is wrong with its storage, and why it stopped before."""
        for evidence in self._evidence:
            reason = evidence.reason or "the file cannot be read"
            yield f"it stopped before: {reason}; evidence is in {evidence.path}: take it away once that is understood"
        yield from self._refused.values()
        yield from self.replica.scrub.alone.values()
        lost = self.replica.segments.lost
        if lost:
            namespace, base = next(iter(lost))
            yield (
                f"{self._data.path}: {len(lost)} segments of messages cannot be read, and are asked for from the other"
                f" replicas; the one of namespace {namespace} from offset {base} first"
            )

    def _log_view(self) -> None:
        """A line in the log for each change of status or view."""
        replica = self.replica
        if self._logged != (replica.state.status, replica.state.view):
            changed = self._logged[1] != replica.state.view
            self._logged = (replica.state.status, replica.state.view)
            self.metrics.on_view(changed, started=str(replica.state.status) == "normal")
            role = ", primary" if replica.state.is_normal_primary else ""
            logger.info("%s: %s in view %d%s", self._name(), replica.state.status, replica.state.view, role)

    def _name(self) -> str:
        name = f"replica {self._data.superblock.replica}"
        return name if self.group.run("") == "" else f"{name} of the group {self.group.name}"

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        """Sort a list of effects into what the process's flush does in order."""
        for effect in effects:
            if isinstance(effect, Emit):
                self._events.append(effect.event)
            elif isinstance(effect, Send):
                self._process.links[effect.to].send(self._frame(effect.message))
            elif isinstance(effect, SendClient):
                self.metrics.on_answer(effect.client, "replied" if isinstance(effect.message, Reply) else "evicted")
                connection = self._process.clients.get((self.group.number, effect.client))
                if connection is not None:
                    connection.send(frame_message(effect.message, self.group.number))
            else:
                self._io_queue.append(effect)

    def _frame(self, message: Message) -> bytes:
        """The frame of a message to a replica; one that goes to several is encoded once."""
        if self._encoded is None or self._encoded[0] is not message:
            self._encoded = (message, frame_message(message, self.group.number))
        return self._encoded[1]

    # Trace and durable writes

    def write_trace(self) -> None:
        """Writes the events collected; the process has to stop if that fails."""
        try:
            if self._trace is not None and self._events:
                self._trace.write_all(self._events)
        except OSError as error:
            path = self._config.trace and trace_path(self._config.trace, self.group)
            self._process.fail(ServerError(f"{path}: cannot write the trace: {error.strerror or error}"))
            return
        self._events.clear()

    def start_io(self) -> None:
        """Start the next durable write, if none is running."""
        if self._io_running is not None or not self._io_queue or self._process.stopping:
            return
        effect = self._io_queue.popleft()
        write = functools.partial(self._write, effect)
        self._io_running = asyncio.get_running_loop().run_in_executor(self._io_thread, write)
        self._io_running.add_done_callback(functools.partial(self._on_io_done, effect))

    def _write(self, effect: IoEffect) -> None:
        """In the storage thread."""
        began = time.perf_counter()
        self._do_write(effect)
        if not isinstance(effect, ReadSegment):
            self.metrics.on_written(_WRITE_NAMES[type(effect)], time.perf_counter() - began)

    def _do_write(self, effect: IoEffect) -> None:
        if isinstance(effect, AppendPrepares):
            self._append(effect)
        elif isinstance(effect, WriteSuperblock):
            self._data.write_superblock(effect.superblock)
        elif isinstance(effect, WriteSnapshot):
            self._data.write_snapshot(effect.op, effect.data, effect.held)
        elif isinstance(effect, WriteSegment):
            self._data.write_segment(effect.ref, effect.content)
        elif isinstance(effect, ReadSegment):
            self._data.read_segment(effect.ref)
        else:
            self._data.drain(effect.op, effect.stale, effect.end)

    def _append(self, effect: AppendPrepares) -> None:
        """One write and one flush; with ``flush_each`` so many for every entry."""
        size = 1 if self._config.flush_each else len(effect.prepares)
        for start in range(0, len(effect.prepares), size):
            try:
                self._data.append(effect.prepares[start : start + size], effect.repair)
            except WriteRefusedError as error:
                if start == 0:
                    raise
                raise StorageError(f"{error}; the entries of the same append before it are durable") from error
            self._journal_writes += 1

    def _on_io_done(self, effect: IoEffect, future: asyncio.Future[None]) -> None:
        self._io_running = None
        if self._process.stopping or future.cancelled():
            return
        error = future.exception()
        if isinstance(error, WriteRefusedError):
            text = f"{error}; it is tried again later"
            if self._refused.get(type(effect)) != text:
                logger.warning("%s", text)
            self._refused[type(effect)] = text
            lost = error.refs if isinstance(error, SegmentsGoneError) else ()
            self._step(self.replica.on_io_failed, effect, str(error), lost)
        elif isinstance(error, SegmentLostError):
            self._step(self.replica.on_io_failed, effect, str(error), error.refs)
        elif error is not None:
            self._process.fail(ServerError(str(error) if isinstance(error, StorageError) else repr(error)))
            return
        else:
            self._refused.pop(type(effect), None)
            self._step(self.replica.on_io_done, effect)
        self._log_problems()
        self._process.flush()

    def _log_problems(self) -> None:
        """A warning for each problem of the data directory that was found, or mended, since the last."""
        for problem in self._data.problems[self._known_problems :]:
            logger.warning("%s", problem)
        self._known_problems = len(self._data.problems)
        for note in self.replica.segments.notes:
            logger.warning("%s: %s", self._name(), note)
        self.replica.segments.notes.clear()

    async def close(self) -> None:
        """Waits for the write in flight; the process is stopping."""
        if self._io_running is not None:
            await asyncio.wait([self._io_running])
        self._io_thread.shutdown()
