"""The state of a replica, its trace events and its sends.

Inequalities that hold whenever no handler is running (without faults):

* `durable_op <= op`, `commit_min <= commit_max`, `commit_min <= durable_op` in normal status;
* `log_view <= view`, `superblock.view >= view`, `superblock.log_view >= log_view`;
* `checkpoint <= commit_min`; the log in memory begins above `checkpoint`;
* at most one write to each of journal, superblock and snapshots is in flight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from itertools import pairwise
from typing import Unpack

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.durable import OP_UNKNOWN, DurableState, SuperblockState
from viewproof.impl.interface.effects import AppendPrepares, DrainJournal, Effect, Emit, IoEffect, Send, WriteSnapshot
from viewproof.impl.interface.messages import (
    CHECKSUM_NONE,
    DoViewChange,
    Message,
    Prepare,
    PrepareHeader,
    Request,
    StartView,
    StartViewChange,
)
from viewproof.impl.machine.snapshot import Snapshot
from viewproof.impl.machine.state_machine import DIGEST_MODULUS
from viewproof.impl.replica.arrival import Arrival
from viewproof.impl.replica.config import ReplicaConfig, quorums_in_force
from viewproof.impl.replica.log import Log
from viewproof.impl.replica.pipeline import Pipeline
from viewproof.impl.replica.restore import Restored, restore_durable, restore_nothing
from viewproof.impl.trace.events import MessageColumns, TraceEvent

_DIGEST_STEP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""Odd: multiples below the modulus differ."""


class Status(StrEnum):
    """`recovering` only before `boot`."""

    NORMAL = "normal"
    VIEW_CHANGE = "view_change"
    RECOVERING = "recovering"


class Stage(Enum):
    """How far a checkpoint has come: what is to be done next, or in flight."""

    WRITE = auto()
    WRITING = auto()
    REFER = auto()
    REFERRING = auto()
    DRAIN = auto()
    DRAINING = auto()


@dataclass(slots=True)
class CheckpointWork:
    """A checkpoint in progress; `checksum` is that of the entry at the snapshot's op.

    `installed`: it came from another replica and is in use already; only the drain is left.
    """

    snapshot: Snapshot
    checksum: str
    stage: Stage = Stage.WRITE
    installed: bool = False
    not_before: int = 0


@dataclass(slots=True)
class WantedSnapshot:
    """A snapshot that comes in chunks: what is here so far, of `size` bytes."""

    op: int
    checksum: str
    size: int
    arrival: Arrival = field(default_factory=Arrival)
    restored: Restored | None = None
    durable: bool = False

    @property
    def received(self) -> bytearray:
        """The bytes that are here, from the first on."""
        return self.arrival.received


@dataclass(slots=True)
class LostSnapshot:
    """The own snapshot, unreadable on this disk, as far as it is here again; `restored` once it is whole.

    `plain`: what came was bad, so nothing but chunks is relied on.
    """

    arrival: Arrival = field(default_factory=Arrival)
    plain: bool = False
    asked: int = 0
    unanswered: int = 0
    asked_at: int = -1_000_000
    restored: Restored | None = None


@dataclass(slots=True)
class LogRepair:
    """The own log, damaged on this disk, as far as it is known (`impl.interface.durable.DamagedLog`).

    `held`: clean prepares by checksum; `known`: headers; `fetched`: prepares from others that are being written.
    `nacks`: checksum → replicas that never had it; `end`: an op is being discarded, and all above `end` with it.
    """

    held: dict[str, Prepare]
    known: dict[str, PrepareHeader]
    head_op: int
    head_checksum: str
    op_max: int
    fetched: dict[str, Prepare] = field(default_factory=dict)
    nacks: dict[str, set[int]] = field(default_factory=dict)
    end: int | None = None
    rounds: int = 0
    asked_at: int = -1_000_000

    @classmethod
    def of(cls, durable: DurableState) -> LogRepair | None:
        """None for a log that is whole."""
        if durable.superblock.recovery:
            return cls({}, {}, 0, CHECKSUM_NONE, OP_UNKNOWN)
        damage = durable.damage
        if damage is None:
            return None
        held = {prepare.header.checksum: prepare for prepare in damage.held}
        known = {header.checksum: header for header in damage.known}
        return cls(held, known, damage.head_op, damage.head_checksum, damage.op_max)


@dataclass(slots=True)
class InstallTarget:
    """A log that is to be installed: that of a start_view, or the one the new primary chose.

    `headers` is a window that ends at `op` and connects to the own log below it, or to `snapshot`, which then takes
    the place of all below. `source` is the replica whose log it is, `seq` the event of the start_view (0 for the
    primary's own choice). What it lacks is asked of `source` first, or of the replica `shift` places after it.
    """

    view: int
    op: int
    commit: int
    headers: tuple[PrepareHeader, ...]
    source: int
    seq: int
    as_primary: bool
    snapshot: WantedSnapshot | None = None
    attempts: int = 0
    shift: int = 0
    asked_at: int = 0

    @property
    def base(self) -> int:
        """The op below the window: the own log up to it is kept."""
        return self.op - len(self.headers)


class ReplicaState:
    """Fields and the lowest layer: observe, send, write. Higher layers add one concern each."""

    def __init__(self, durable: DurableState, config: ReplicaConfig, *, seq: int = 0, clock: int = 0) -> None:
        superblock = durable.superblock
        self.config = config
        self.faults = config.faults
        self.node = superblock.replica
        self.replica_count = superblock.replica_count
        self.quorums = quorums_in_force(superblock.quorums, superblock.replica_count, config.faults)
        self.clients = superblock.clients
        self.others = tuple(node for node in range(self.replica_count) if node != self.node)
        self.superblock = superblock
        self.seq = seq
        self.clock = max(clock, superblock.clock)
        self.status = Status.RECOVERING
        self.view = superblock.view
        self.log_view = superblock.log_view
        self.unrestored = durable if superblock.checkpoint and not durable.snapshot else None
        if self.unrestored is None:
            self.load(durable.log, restore_durable(durable, config))
        else:
            self.load((), restore_nothing(superblock, config))
        self.relics = durable.relics
        self.log_repair = LogRepair.of(durable)
        self.supports = config.supports
        self.effects: list[Effect] = []
        self.ignored: dict[str, int] = {}
        self._reset_volatile()

    def load(self, log: tuple[Prepare, ...], restored: Restored) -> None:
        """What the replica starts with: a log, and below it all that a snapshot holds."""
        self.log = Log(log, restored.header)
        self.durable_op = self.log.op
        self.journaled: dict[str, int] = {prepare.header.checksum: prepare.header.op for prepare in self.log}
        self.commit_min = restored.op
        self.commit_max = restored.op
        self.checkpoint = restored.op
        self.drained = restored.op
        self.snapshot = restored.snapshot
        self.state_machine = restored.state_machine
        self.client_table = restored.client_table
        self.enabled = restored.enabled
        self.update_digest()

    def _reset_volatile(self) -> None:
        self.superblock_writing: SuperblockState | None = None
        self.superblock_then: Callable[[], None] | None = None
        self.appending: AppendPrepares | None = None
        self.draining: DrainJournal | None = None
        self.snapshot_writing: WriteSnapshot | None = None
        self.checkpoint_writing: SuperblockState | None = None
        self.checkpoint_work: CheckpointWork | None = None
        self.checkpoint_next: CheckpointWork | None = None
        self.snapshot_before: Snapshot | None = None
        self.writes_failed: list[tuple[int, IoEffect]] = []
        self.journal_refuses_until = 0
        self.io_errors: deque[str] = deque(maxlen=8)
        self.acks: dict[int, int] = {}
        self.pipeline = Pipeline()
        self.acks_sent: dict[int, int] = {}
        self.prepare_buffer: dict[int, Prepare] = {}
        self.unexecuted: dict[int, int] = {}
        self.request_queue: dict[int, Request] = {}
        self.recorded_uncommitted: dict[tuple[int, int], int] = {}
        self.waiters: set[tuple[int, int, int, int]] = set()
        self.member_supports: dict[int, int] = {}
        self.commit_sent = (-1, -1, 0)
        self.start_view_changes: set[int] = set()
        self.start_view_change_own: StartViewChange | None = None
        self.do_view_changes: dict[int, DoViewChange] = {}
        self.do_view_change_own: DoViewChange | None = None
        self.do_view_change_allowed = True
        self.start_view_own: StartView | None = None
        self.target: InstallTarget | None = None
        self.fetched: WantedSnapshot | None = None
        self.outline_sent: tuple[str, bytes] = ("", b"")
        self.lost_snapshot: LostSnapshot | None = None
        self.nacks_sent: dict[tuple[int, int, str], int] = {}
        self.repaired: dict[str, Prepare] = {}
        self.ticks = 0
        self.heard_at = 0
        self.progress_at = 0
        self.resent_at = 0
        self.repair_at = 0
        self.retransmit_at = 0
        self.heartbeat_at = 0
        self.start_view_asked_at = -1_000_000
        self.view_changes_failed = 0

    # Observations

    @property
    def op(self) -> int:
        """The highest op in the log, durable or not."""
        return self.log.op

    @property
    def head(self) -> str:
        """Checksum of the entry at `op`."""
        return self.log.head

    @property
    def primary(self) -> int:
        """The primary of `view`."""
        return self.view % self.replica_count

    @property
    def is_normal_primary(self) -> bool:
        """True if this replica may prepare requests."""
        return self.status is Status.NORMAL and self.view % self.replica_count == self.node

    @property
    def journal_slots(self) -> int:
        """How far the log may rise above what is drained; 0: without bound."""
        return self.config.journal_slots if self.config.checkpoint_interval else 0

    @property
    def digest(self) -> str:
        """Digest of state machine, client table and features at `commit_min`, 32 hexadecimal digits."""
        if not self._digest_text:
            self._write_digests()
        return self._digest_text

    def update_digest(self) -> None:
        """The digests' texts are written anew when they are next asked for: call it after an execution."""
        self._digest_text = ""

    def _write_digests(self) -> None:
        """`commit_min` is in the first, so that no two share one."""
        table = self.client_table.digest
        total = self.state_machine.digest + table + self.enabled.digest + self.commit_min * _DIGEST_STEP
        self._digest_text = f"{total % DIGEST_MODULUS:032x}"
        self._table_text = f"{table:032x}"

    # Messages of partitions that are here

    @property
    def has_segments(self) -> bool:
        """True if there are segments that a snapshot from others need not bring."""
        unrestored = self.unrestored
        return bool(self.state_machine.partitions.logs if unrestored is None else unrestored.segments)

    def own_segment(self, namespace: int, base: int) -> bytes | None:
        """What is here of a segment, from its beginning: executed, or whole on the disk of a replica not booted."""
        if self.unrestored is not None:
            return self.unrestored.segments.get((namespace, base))
        log = self.state_machine.partitions.logs.get(namespace)
        segment = None if log is None else log.segment(base)
        return None if segment is None else bytes(segment.content)

    # Effects

    def emit(self, event: str, *, configuration: bool = False, **message: Unpack[MessageColumns]) -> int:
        """Emits an event with all observations before the sends it allows; returns its `seq`. `m_seq` 0: not known."""
        self.seq += 1
        self.clock += 1
        if not self.config.traced:
            return self.seq
        if not message.get("m_seq"):
            message["m_seq"] = None
        superblock = self.superblock
        trace_event = TraceEvent(
            run=self.config.run,
            node=self.node,
            seq=self.seq,
            clock=self.clock,
            event=event,
            status=self.status.value,
            view=self.view,
            log_view=self.log_view,
            durable_view=superblock.view,
            durable_log_view=superblock.log_view,
            op=self.log.op,
            head=self.log.head,
            commit_min=self.commit_min,
            commit_max=self.commit_max,
            digest=self.digest,
            table=self._table_text,
            features=self.enabled.mask,
            checkpoint=self.checkpoint,
            **message,
            **(self._configuration() if configuration else {}),
        )
        self.effects.append(Emit(trace_event))
        return self.seq

    def _configuration(self) -> dict[str, int]:
        """The columns of `start` and `restart`."""
        return {
            "replicas": self.replica_count,
            "quorum_replication": self.quorums.replication,
            "quorum_view_change": self.quorums.view_change,
            "client_slots": self.clients.slots,
            "client_sessions": int(self.clients.sessions),
            "client_gaps": int(self.clients.gaps),
            "pipeline": self.config.pipeline_max,
            "checkpoint_interval": self.config.checkpoint_interval,
            "journal_slots": self.journal_slots,
            "supports": self.config.supports,
            **({"ring": 1} if self.config.ring else {}),
            **({"partitions": 1} if self.config.shows_partitions else {}),
        }

    def send(self, to: int, message: Message) -> None:
        """Sends to another replica."""
        check(to != self.node, "a replica sends no message to itself")
        self.effects.append(Send(to, message))

    def send_others(self, message: Message) -> None:
        """Sends to every other replica, in index order."""
        for node in self.others:
            self.effects.append(Send(node, message))

    def ignore(self, reason: str) -> None:
        """A message is not used; counted by reason."""
        self.ignored[reason] = self.ignored.get(reason, 0) + 1

    # The log as messages

    def window(self, from_op: int) -> tuple[PrepareHeader, ...]:
        """Headers of ops from_op..op above the base; at least that of the head, if there is one."""
        return self.log.headers(from_op)

    def connects(self, headers: tuple[PrepareHeader, ...]) -> bool:
        """True if the log holds the entry below the window, or its base is one of the window's entries."""
        if not headers:
            return True
        base = self.log.base
        if headers[0].op <= base:
            return base <= headers[-1].op and headers[base - headers[0].op].checksum == self.log.base_checksum
        return self.log.checksum(headers[0].op - 1) == headers[0].parent


def checksums(headers: tuple[PrepareHeader, ...]) -> tuple[str, ...]:
    """The column m_log of a window."""
    return tuple(header.checksum for header in headers)


def window_error(headers: tuple[PrepareHeader, ...], op: int, view: int) -> str | None:
    """Why a window received is malformed, or None: ends at `op`, chained by parents, views rising to at most `view`."""
    if not headers:
        return None if op == 0 else "window is empty below a log head"
    if headers[-1].op != op or headers[0].op < 1:
        return "window does not end at op"
    if headers[0].op == 1 and headers[0].parent != CHECKSUM_NONE:
        return "op 1 has a parent"
    if headers[-1].view > view:
        return "entry of a view above the message's"
    for before, after in pairwise(headers):
        if after.op != before.op + 1 or after.parent != before.checksum or after.view < before.view:
            return "window is not a chain"
    return None
