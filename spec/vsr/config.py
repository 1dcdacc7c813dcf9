"""Options of the protocol: one frozen value per configuration of a cluster, profile and faults."""

from __future__ import annotations

from dataclasses import dataclass, field

from viewproof.spec.lang import SpecError


def majority(replicas: int) -> int:
    """Smallest number of replicas that is more than half."""
    return replicas // 2 + 1


@dataclass(frozen=True)
class ClientTable:
    """How clients are remembered (docs/clients-and-control.md).

    `slots` 0: one for every client. `sessions`: clients register. `gaps`: request numbers may skip. `in_flight`: how
    many requests a client sends without an answer (0: any number; for traces). `cached`: a slot keeps the last so many
    replies, and its client's largest number over all its sessions (0: the last reply, and its number; Iggy has 5).
    """

    slots: int = 0
    sessions: bool = False
    gaps: bool = False
    in_flight: int = 1
    cached: int = 0

    def __post_init__(self) -> None:
        if self.cached and not (self.sessions and self.gaps):
            raise SpecError("a table that keeps several replies has sessions, and numbers with gaps")


@dataclass(frozen=True)
class Repair:
    """Journals with gaps and faulty slots, and how a replica recovers (docs/recovery-and-repair.md).

    `recovery`: "" is the core's journal; "nonce" asks the others, "superblock" reads view and log_view from disk,
    "probe" does and then waits for an answer (docs/iggy.md).
    `headers`: most headers in a do_view_change (0: any number). `diskless`: a crash loses the journal. `lasting`: a
    prepare that was sent may arrive at any time (for traces); else one that no replica holds any more is lost.
    """

    recovery: str = ""
    headers: int = 0
    diskless: bool = False
    lasting: bool = False

    def __post_init__(self) -> None:
        if self.recovery not in ("", "nonce", "superblock", "probe"):
            raise SpecError(f"recovery is by nonce, superblock or probe, not {self.recovery}")
        if (self.headers or self.diskless) and self.recovery != "nonce":
            raise SpecError("headers and diskless are options of recovery by nonce")


@dataclass(frozen=True)
class Partitions:
    """Partitions of messages (docs/groups.md).

    `count`: how many there are (0: none). `files`: segments and indexes are modelled, too (for bounded models: no trace
    shows them); a segment is closed, and its index flushed, after `segment` messages.
    """

    count: int = 0
    files: bool = False
    segment: int = 2

    def __post_init__(self) -> None:
        if self.count < 0 or self.segment < 1:
            raise SpecError(f"partitions are 0 or more, of segments of 1 message or more: {self.count}, {self.segment}")


@dataclass(frozen=True)
class Config:
    """Replica count, quorum sizes, options of the protocol, and the known deviations ("faults") that are switched on.

    `features`: how many features control entries can enable; member q never says that it supports feature f where
    (q, f) is in `unsupported`. `checkpoints`: replicas take them; `journal_slots`: the journal is a ring of so many
    slots (0: it has no end); `drains_later`: draining the journal is a step after the checkpoint (for bounded models: a
    crash may come between). `pipeline`: most prepares above commit_max (0: any number). `failing_appends`: an
    append may fail. `fence`: replicas say which prepares they drop as old. `discards`: a replica
    discards a prepare that its journal lost and enough others never had. `losses`: a disk may lose the log, or all
    that it holds. `partitions`: ops append messages and store offsets. Options left at their defaults add nothing to
    the core.
    Source: VR Revisited §4 (majorities); flexible quorums as in TigerBeetle: only q_r + q_v > n is needed.
    """

    replicas: int = 3
    quorum_replication: int = 0
    quorum_view_change: int = 0
    profile: str = "core"
    faults: frozenset[str] = field(default_factory=frozenset)
    client_table: ClientTable = ClientTable()
    features: int = 0
    unsupported: frozenset[tuple[int, int]] = frozenset()
    checkpoints: bool = False
    journal_slots: int = 0
    drains_later: bool = False
    pipeline: int = 0
    failing_appends: bool = False
    fence: bool = False
    discards: bool = False
    losses: bool = False
    repair: Repair = Repair()
    partitions: Partitions = Partitions()

    def __post_init__(self) -> None:
        n = self.replicas
        if n < 1:
            raise SpecError(f"a cluster needs at least one replica, not {n}")
        for name in ("features", "journal_slots", "pipeline"):
            if getattr(self, name) < 0:
                raise SpecError(f"{name} must be at least 0, not {getattr(self, name)}")
        if self.journal_slots and not self.checkpoints:
            raise SpecError("a journal that is a ring needs checkpoints")
        if self.repair.recovery and (self.checkpoints or self.features):
            raise SpecError("repair does not go together with checkpoints or features yet")
        if self.repair.recovery not in ("", "probe") and self.client_table != ClientTable():
            raise SpecError("repair by nonce or superblock does not go together with a bounded client table yet")
        if self.repair.recovery and (self.pipeline or self.discards):
            raise SpecError("repair does not go together with a pipeline or discards yet")
        if self.repair.recovery and self.partitions.count:
            raise SpecError("repair does not go together with partitions yet")
        if self.partitions.files and not (self.checkpoints and self.partitions.count):
            raise SpecError("segment files need partitions and checkpoints")
        if self.losses and (self.repair.recovery or self.partitions.files):
            raise SpecError("losses do not go together with repair of journals or with segment files yet")
        if not self.quorum_replication:
            object.__setattr__(self, "quorum_replication", majority(n))
        if not self.quorum_view_change:
            object.__setattr__(self, "quorum_view_change", majority(n))
        q_r, q_v = self.quorum_replication, self.quorum_view_change
        if not (1 <= q_r <= n and 1 <= q_v <= n):
            raise SpecError(f"quorums {q_r} and {q_v} must lie in 1..{n}")
        if q_r + q_v <= n and "view.even_quorum" not in self.faults:
            raise SpecError(f"quorums must intersect: {q_r} (replication) + {q_v} (view change) > {n} replicas")
