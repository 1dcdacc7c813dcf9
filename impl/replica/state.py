"""The state of a replica: plain data that its components share, and what follows from it at once.

Inequalities that hold whenever no handler is running (without faults):

* `checkpoint <= commit_min <= commit_max`, `log.base <= commit_min`, and `commit_min <= durable_op` in normal status;
* `log.base <= durable_op <= op`, `op - drained <= journal_slots` with checkpoints;
* `log_view <= view <= superblock.view`, and `log_view <= superblock.log_view`;
* `status` is normal: `log_view == view`, and no log repair is under way;
* `target.view >= view`.

A component keeps what only it changes; what several read or change is here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from viewproof.impl.interface.durable import (
    OP_UNKNOWN,
    ClientTableConfig,
    DurableState,
    Quorums,
    SuperblockState,
    walk_chain,
)
from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare, PrepareHeader
from viewproof.impl.machine.snapshot import Snapshot
from viewproof.impl.machine.state_machine import DIGEST_MODULUS, StateMachine
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.config import ReplicaConfig
from viewproof.impl.replica.features import FeatureState
from viewproof.impl.replica.log import Log
from viewproof.impl.replica.restore import Restored
from viewproof.impl.replica.target import InstallTarget

_DIGEST_STEP = 0x9E3779B97F4A7C15F39CC0605CEDC835
"""Odd: multiples below the modulus differ."""

LONG_AGO = -1_000_000
"""A tick before every timeout."""


class Status(StrEnum):
    """`recovering` only before the boot (`impl.replica.status` has the transitions)."""

    NORMAL = "normal"
    VIEW_CHANGE = "view_change"
    RECOVERING = "recovering"


@dataclass(slots=True)
class LogRepair:
    """The own log, damaged on this disk, as far as it is known (`impl.interface.durable.DamagedLog`).

    `held`: clean prepares by checksum; `known`: headers; `fetched`: prepares from others that are being written.
    `nacks`: checksum → replicas that never had it; `end`: an op is being discarded, and all above `end` with it.
    `snapshot_op_min`: the own snapshot is lost, too, so what is installed must bring one of this op or later.
    """

    held: dict[str, Prepare]
    known: dict[str, PrepareHeader]
    head_op: int
    head_checksum: str
    op_max: int
    fetched: dict[str, Prepare] = field(default_factory=dict)
    nacks: dict[str, set[int]] = field(default_factory=dict)
    end: int | None = None
    snapshot_op_min: int = 0
    rounds: int = 0
    asked_at: int = LONG_AGO

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

    def walk(self, base: int) -> tuple[list[Prepare], list[tuple[int, str]]]:
        """The log above `base` as far as it is here, and (op, checksum) of what is missing, from the head down."""
        return walk_chain(self.head_op, self.head_checksum, base, self.held, self._header)

    def _header(self, checksum: str) -> PrepareHeader | None:
        prepare = self.held.get(checksum)
        return self.known.get(checksum) if prepare is None else prepare.header


@dataclass(slots=True)
class Timers:
    """Ticks at which things were last done: the primary `heard`, a commit made (`progress`), sends repeated.

    `view_changes_failed`: view changes since the last normal status. `answered_at`: when each backup last showed its
    primary that it is heard, in this view, which is normal since `normal_at`.
    """

    heard_at: int = 0
    progress_at: int = 0
    heartbeat_at: int = 0
    retransmit_at: int = 0
    resent_at: int = 0
    repair_at: int = 0
    view_changes_failed: int = 0
    normal_at: int = 0
    answered_at: dict[int, int] = field(default_factory=dict)


class State:
    """One replica's state. Ticks count from the boot; `clock` is the Lamport clock, `seq` the last trace event.

    Who it is: `config`, `node`, `replica_count`, `others`, `quorums`, `clients`. On its disk: `superblock`, the
    snapshots `snapshot` (in use) and `snapshot_before`, the log up to `durable_op`, the journal from `drained` on.
    The log: `log` in memory, executed up to `commit_min`, committed up to `commit_max`; `bodies` are entries that are
    here beside it, by checksum. Executed: `state_machine`, `client_table`, `enabled`; `unexecuted` is client → op of
    its latest entry above. A log that is being installed: `target`; the own log being mended: `log_repair`.
    """

    def __init__(
        self,
        durable: DurableState,
        config: ReplicaConfig,
        quorums: Quorums,
        restored: Restored,
        *,
        seq: int,
        clock: int,
    ) -> None:
        """`restored` is the empty prefix if the snapshot is unreadable; the log is loaded later then."""
        block = durable.superblock
        self.config = config
        self.node = block.replica
        self.replica_count = block.replica_count
        self.others = tuple(node for node in range(self.replica_count) if node != self.node)
        self.quorums = quorums
        self.clients: ClientTableConfig = block.clients
        self.superblock: SuperblockState = block
        self.seq = seq
        self.clock = max(clock, block.clock)
        self.status = Status.RECOVERING
        self.view = block.view
        self.log_view = block.log_view
        self.snapshot_before: Snapshot | None = None
        self.bodies: dict[str, Prepare] = {}
        self.unexecuted: dict[int, int] = {}
        self.target: InstallTarget | None = None
        self.log_repair = LogRepair.of(durable)
        self.ticks = 0
        self.timers = Timers()
        self._digest = self._table_digest = ""
        self.load(() if durable.unreadable else durable.log, restored)

    def load(self, log: tuple[Prepare, ...], restored: Restored) -> None:
        """What the replica starts with: a log, and below it all that a snapshot holds."""
        self.log = Log(log, restored.header)
        self.durable_op = self.log.op
        self.commit_min = restored.op
        self.commit_max = restored.op
        self.checkpoint = restored.op
        self.drained = restored.op
        self.snapshot: Snapshot | None = restored.snapshot
        self.adopt(restored)

    def adopt(self, restored: Restored) -> None:
        """Everything executed is that of a snapshot."""
        self.state_machine: StateMachine = restored.state_machine
        self.client_table: ClientTable = restored.client_table
        self.enabled: FeatureState = restored.enabled
        self.forget_digests()

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
    def is_primary(self) -> bool:
        """True if this replica is the primary of its view, in whatever status."""
        return self.view % self.replica_count == self.node

    @property
    def is_normal_primary(self) -> bool:
        """True if this replica may prepare requests."""
        return self.status is Status.NORMAL and self.view % self.replica_count == self.node

    @property
    def journal_slots(self) -> int:
        """How far the log may rise above what is drained; 0: without bound."""
        return self.config.journal_slots if self.config.checkpoint_interval else 0

    def overflows(self, op: int) -> bool:
        """True if a log up to `op` has no room in the journal above the checkpoint."""
        return 0 < self.journal_slots < op - self.checkpoint

    @property
    def digest(self) -> str:
        """Digest of state machine, client table and features at `commit_min`, 32 hexadecimal digits."""
        if not self._digest:
            total = self.state_machine.digest + self.client_table.digest + self.enabled.digest
            self._digest = f"{(total + self.commit_min * _DIGEST_STEP) % DIGEST_MODULUS:032x}"
        return self._digest

    @property
    def table_digest(self) -> str:
        """Digest of the client table, 32 hexadecimal digits."""
        if not self._table_digest:
            self._table_digest = f"{self.client_table.digest:032x}"
        return self._table_digest

    def forget_digests(self) -> None:
        """The digests' texts are written anew when they are next asked for: call it after an execution."""
        self._digest = self._table_digest = ""

    def find_unexecuted(self) -> None:
        """`unexecuted` from the log."""
        self.unexecuted = {p.header.client: p.header.op for p in self.log.slice(self.commit_min + 1, self.op)}

    def shown(self, number: int) -> int | None:
        """The value of the columns m_session and m_incarnation: absent where sessions are off."""
        return number if self.clients.sessions else None
