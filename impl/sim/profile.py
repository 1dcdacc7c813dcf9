"""What a simulated run is like: how network, storage and processes misbehave, in ticks and probabilities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any

from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.durable import CLIENTS_SESSIONS, ClientTableConfig, ConfigurationError
from viewproof.impl.replica import ReplicaConfig
from viewproof.impl.replica.features import SUPPORTS_ALL


@dataclass(frozen=True, slots=True)
class SimProfile:
    """Probabilities are per message or per write; intervals are mean ticks between faults (0: never).

    Delays are ticks. A message takes `delay_ticks_min` plus an exponential time of mean `delay_ticks_mean`, which
    also reorders; with probability `late` a copy comes up to `late_ticks_max` later, views after. Clogging holds a
    path for a while; a partition cuts paths, in both directions or in one, a link fault some links, also of clients
    (`impl.sim.network.Network.cut_links`; one of `link_faults`, if there are any); clients pause between requests for
    `client_pause_ticks_mean`. A crash lasts `restart_ticks_mean`, with probability `outage_long` that of long outages.
    `crash_in_view_change` is per
    event of a view change. `*_failure` are per write (`sync_failure` per boot); a full disk refuses all but
    superblock writes, a slow one takes `slow_write_ticks_max` for each, or half of that. `superblock_damage` is per
    crash: the replica never comes back; after `snapshot_damage` it does if another one still has its snapshot.
    `vanish` is per snapshot: a segment or an index is gone, cut or altered by then (one of `vanish_kinds`), though the
    process runs; where replicas look for rot, a run ends only once all is found and mended. With `ring` the
    journal is one of `journal_slots` slots; `rot` is per crash, `lost_write` and `misdirected_write` are per write
    of it (`impl.sim.rot` says what they leave). `misconfigured`: one replica is formatted otherwise than the others;
    `backup` is per crash: files are those of a backup then, once; strangers strike every `stranger_interval_ticks`
    (`impl.sim.border`). The fields from `pipeline_max` on are those of `ReplicaConfig`.

    `plane` is what the clients' operations are of. `features`: which replicas support all features: "none", "all",
    "partial" (not one of them), "upgrade" (some; the others once they restart), or "downgrades" (each may come back
    without; one that meets an entry, or has a snapshot, with a feature that it lacks comes back with it).

    The client table is `client_slots`, `client_sessions` and `client_gaps`. Per request of a client: it sends the next
    one along (`client_ahead`), skips numbers (`client_skip`, where gaps are allowed), restarts with the next
    incarnation (`client_restart`, with sessions), or with an earlier one, of a clock that was set back
    (`client_clock_back`). `client_echo`: a copy of a client's message arrives at any replica up to
    `client_echo_ticks_max` ticks later.
    """

    loss: float = 0.05
    repeat: float = 0.03
    late: float = 0.0
    late_ticks_max: int = 400
    delay_ticks_min: int = 1
    delay_ticks_mean: float = 1.5
    clog_interval_ticks: int = 400
    clog_ticks_mean: int = 30
    partition_interval_ticks: int = 500
    partition_ticks_mean: int = 120
    partition_one_way: float = 0.4
    link_fault_interval_ticks: int = 0
    link_fault_ticks_mean: int = 400
    link_faults: tuple[str, ...] = ()
    append_ticks_max: int = 3
    superblock_ticks_max: int = 4
    slow_write: float = 0.02
    slow_write_ticks_max: int = 40
    crash_interval_ticks: int = 300
    restart_ticks_mean: int = 80
    crash_primary: float = 0.4
    crash_all: float = 0.05
    crash_in_write: float = 0.01
    safety_ticks_max: int = 6_000
    liveness_ticks_max: int = 12_000
    client_timeout_ticks: int = 25
    client_pause_ticks_mean: int = 0

    append_failure: float = 0.0
    snapshot_failure: float = 0.0
    drain_failure: float = 0.0
    superblock_failure: float = 0.0
    sync_failure: float = 0.0
    superblock_damage: float = 0.0
    snapshot_damage: float = 0.0
    vanish: float = 0.0
    vanish_kinds: tuple[str, ...] = ("removed", "removed", "cut", "altered")
    ring: bool = False
    rot: float = 0.0
    lost_write: float = 0.0
    misdirected_write: float = 0.0
    disk_full_interval_ticks: int = 0
    disk_full_ticks_mean: int = 60
    slow_disk_interval_ticks: int = 0
    slow_disk_ticks_mean: int = 400
    misconfigured: bool = False
    backup: float = 0.0
    stranger_interval_ticks: int = 0

    plane: Plane = Plane.SINGLE
    features: str = "none"

    client_slots: int = 0
    client_sessions: bool = False
    client_gaps: bool = False
    client_ahead: float = 0.0
    client_skip: float = 0.0
    client_restart: float = 0.0
    client_clock_back: float = 0.0
    client_echo: float = 0.0
    client_echo_ticks_max: int = 600

    clients_min: int = 1
    outage_long: float = 0.0
    outage_long_ticks_mean: int = 600
    crash_in_view_change: float = 0.0
    pipeline_max: int = 32
    checkpoint_interval: int = 0
    journal_slots: int = 1 << 17
    snapshot_chunk_bytes: int = 1 << 18
    segment_bytes: int = 256
    scrub_bytes_per_tick: int = 0
    scrub_pass_ticks_min: int = 60_000
    commit_timeout_ticks: int = 10
    prepare_timeout_ticks: int = 12
    repair_timeout_ticks: int = 6
    resend_timeout_ticks: int = 10
    normal_timeout_ticks: int = 50
    view_change_timeout_ticks: int = 60
    backoff_ticks: int = 15
    jitter_ticks: int = 20
    abdicate_timeout_ticks: int = 150

    def without_faults(self) -> SimProfile:
        """A perfect network and storage that is only as slow as usual: the liveness phase. Timeouts stay."""
        return replace(
            self,
            loss=0.0,
            repeat=0.0,
            late=0.0,
            delay_ticks_mean=min(self.delay_ticks_mean, 2.0),
            clog_interval_ticks=0,
            partition_interval_ticks=0,
            link_fault_interval_ticks=0,
            slow_disk_interval_ticks=0,
            client_pause_ticks_mean=0,
            slow_write=0.0,
            client_restart=0.0,
            client_echo=0.0,
            crash_interval_ticks=0,
            crash_in_write=0.0,
            append_failure=0.0,
            snapshot_failure=0.0,
            drain_failure=0.0,
            superblock_failure=0.0,
            sync_failure=0.0,
            superblock_damage=0.0,
            snapshot_damage=0.0,
            vanish=0.0,
            rot=0.0,
            lost_write=0.0,
            misdirected_write=0.0,
            disk_full_interval_ticks=0,
            crash_in_view_change=0.0,
            outage_long=0.0,
            backup=0.0,
            stranger_interval_ticks=0,
        )

    @property
    def has_border(self) -> bool:
        """True if who may speak with whom matters."""
        return self.may_shut_out or self.stranger_interval_ticks > 0

    @property
    def may_shut_out(self) -> bool:
        """True if the others may speak with one replica no more."""
        return self.misconfigured or self.backup > 0

    @property
    def client_table(self) -> ClientTableConfig:
        """The configuration of the client table."""
        return ClientTableConfig(self.client_slots, self.client_sessions, self.client_gaps)

    def replica_config(self, run: str) -> ReplicaConfig:
        """The configuration of the replicas of a run; traces show repairs where disks lose things."""
        fields = {name: getattr(self, name) for name in REPLICA_FIELDS}
        return ReplicaConfig(run=run, **fields | {"ring": self.ring or self.snapshot_damage > 0})


REPLICA_FIELDS = tuple(
    sorted({field.name for field in fields(SimProfile)} & {field.name for field in fields(ReplicaConfig)})
)
"""The fields of a profile that go to the replicas' configuration by the same name."""

FEATURES_DRAWN = ("none", "all", "partial", "upgrade")
FEATURES_CHOICES = (*FEATURES_DRAWN, "downgrades")
"""Values of `SimProfile.features`."""


def supports_drawn(features: str, replica_count: int, random: Random) -> list[int]:
    """What each replica supports at first. Raises `ConfigurationError` for another word."""
    if features not in FEATURES_CHOICES:
        raise ConfigurationError(f"features must be one of {', '.join(FEATURES_CHOICES)}, got {features!r}")
    supports = [0 if features == "none" else SUPPORTS_ALL] * replica_count
    if features == "partial":
        supports[random.randrange(replica_count)] = 0
    elif features == "upgrade":
        for node in random.sample(range(replica_count), random.randint(1, replica_count)):
            supports[node] = 0
    return supports


HARSH = 1 / 3
"""Part of the seeds whose profile is made harsh."""


def profile_draw(random: Random) -> SimProfile:
    """A profile drawn at random, so that seeds differ in kind.

    Some are calm, some with a few faults, some with all; a third is harsh: short timeouts, many clients, long delays
    and outages, tiny pipelines, crashes in mid view change, each of them often.
    """
    usual = _draw_usual(random)
    return _draw_harsh(usual, random) if random.random() < HARSH else usual


def _draw_usual(random: Random) -> SimProfile:

    def sometimes(value: int) -> int:
        return value if random.random() < 0.7 else 0

    return SimProfile(
        loss=random.choice((0.0, 0.01, 0.05, 0.1, 0.2)),
        repeat=random.choice((0.0, 0.02, 0.1, 0.3)),
        delay_ticks_min=1,
        delay_ticks_mean=random.choice((0.3, 1.0, 2.0, 4.0)),
        clog_interval_ticks=sometimes(random.randint(100, 600)),
        clog_ticks_mean=random.randint(10, 60),
        partition_interval_ticks=sometimes(random.randint(150, 700)),
        partition_ticks_mean=random.randint(40, 250),
        append_ticks_max=random.choice((1, 2, 4)),
        superblock_ticks_max=random.choice((1, 3, 6)),
        slow_write=random.choice((0.0, 0.02, 0.1)),
        crash_interval_ticks=sometimes(random.randint(80, 500)),
        restart_ticks_mean=random.choice((5, 40, 120)),
        crash_all=random.choice((0.0, 0.05, 0.2)),
        crash_in_write=random.choice((0.0, 0.02, 0.1)),
    )


def _draw_harsh(usual: SimProfile, random: Random) -> SimProfile:
    """The profile with a random choice of harsh conditions on top."""
    parts: tuple[tuple[float, Callable[[Random], dict[str, Any]]], ...] = (
        (0.8, _short_timeouts),
        (0.7, _many_clients),
        (0.4, _long_delays),
        (0.3, _long_outages),
        (0.2, _tiny_pipeline),
        (0.5, _crashes_in_view_change),
        (0.4, _slow_writes),
        (0.6, _many_partitions),
        (0.5, _late_copies),
    )
    changes: dict[str, Any] = {}
    for probability, draw in parts:
        if random.random() < probability:
            changes |= draw(random)
    return replace(usual, **changes)


CLIENT_PROFILES = ("paper", "iggy-3023", "sessions", "evictions")
"""How runs remember clients: one slot per client; slots and gaps, no sessions; sessions; sessions and too few slots."""

_CLIENT_WEIGHTS = (3, 2, 2, 5)


def client_profile_draw(profile: SimProfile, name: str | None, clients: int, random: Random) -> SimProfile:
    """`profile` with a client table and clients of the kind `name`, drawn if None.

    `iggy-3023` has a slot for every client: without sessions an evicted client that retries is executed twice (fault
    table.evict_forgets, which that profile has by design). Raises `ConfigurationError` for an unknown name.
    """
    if name is None:
        name = random.choices(CLIENT_PROFILES, _CLIENT_WEIGHTS)[0]
    if name == "paper":
        return profile
    if name == "iggy-3023":
        return replace(profile, client_slots=clients, client_gaps=True, client_skip=random.choice((0.0, 0.1, 0.4)))
    if name not in CLIENT_PROFILES:
        raise ConfigurationError(f"unknown client profile {name!r}; known: {', '.join(CLIENT_PROFILES)}")
    slots = CLIENTS_SESSIONS.slots if name == "sessions" else random.randint(1, max(1, clients - 1))
    return replace(
        profile,
        client_slots=slots,
        client_sessions=True,
        client_ahead=random.choice((0.0, 0.1, 0.4)),
        client_restart=random.choice((0.0, 0.02, 0.1)),
        client_clock_back=random.choice((0.0, 0.3)),
        client_echo=random.choice((0.0, 0.05, 0.2)),
    )


def storage_profile_draw(profile: SimProfile, random: Random, *, rot: bool = True) -> SimProfile:
    """`profile` with features, checkpoints and failing writes drawn: each kind in a part of the seeds.

    `rot`: a part also has journals that are rings, on disks that rot, lose and misdirect writes.
    """
    changes: dict[str, Any] = {"features": random.choices(FEATURES_DRAWN, (4, 4, 1, 3))[0]}
    if random.random() < 0.6:
        interval = random.choice((2, 5, 20, 50))
        changes["checkpoint_interval"] = interval
        if random.random() < 0.5:
            least = interval + profile.pipeline_max
            changes["journal_slots"] = least + random.choice((0, 5, least))
        changes["snapshot_chunk_bytes"] = random.choice((64, 512, 1 << 18))
    if random.random() < 0.3:
        changes["append_failure"] = random.choice((0.002, 0.02, 0.1))
        changes["superblock_failure"] = random.choice((0.0, 0.02))
        changes["snapshot_failure"] = random.choice((0.0, 0.1, 0.7))
        changes["drain_failure"] = random.choice((0.0, 0.1, 0.5))
        changes["disk_full_interval_ticks"] = random.choice((0, 300))
        changes["sync_failure"] = random.choice((0.0, 0.3))
        changes["superblock_damage"] = random.choice((0.0, 0.05, 0.2))
        changes["snapshot_damage"] = random.choice((0.0, 0.2))
    drawn = replace(profile, **changes)
    return replace(drawn, **_ring_draw(drawn, random)) if rot and random.random() < ROTTEN else drawn


ROTTEN = 0.35
"""Part of the seeds whose journals are rings, on disks that rot."""


def _ring_draw(profile: SimProfile, random: Random) -> dict[str, Any]:
    """A ring of few slots, so that it wraps, and disks that rot, lose and misdirect writes.

    Long intervals with short pipelines leave prepares that no other replica can drain: nacks may discard those.
    """
    clients = 0 if profile.client_gaps else random.choice((1, 3, 6))  # the table has a slot for each
    interval, pipeline = random.choice(((2, 1), (2, 2), (3, 2), (3, 4), (5, 3), (10, 3), (20, 2), (20, 4), (40, 2)))
    return {
        "ring": True,
        "superblock_damage": 0.0,  # a replica that is gone for good might have the one good copy
        "checkpoint_interval": interval,
        "pipeline_max": pipeline,
        "journal_slots": interval + pipeline + random.choice((0, 0, 2, interval)),
        "rot": random.choice((0.0, 0.3, 0.8, 1.0)),
        "lost_write": random.choice((0.01, 0.02, 0.1)),
        "misdirected_write": random.choice((0.0, 0.02, 0.1)),
        "clients_min": max(profile.clients_min, clients),
        "partition_interval_ticks": random.choice((profile.partition_interval_ticks, 100, 250)),
        "partition_ticks_mean": random.choice((30, 80, 150)),
        "crash_interval_ticks": random.randint(60, 250),
        "crash_primary": random.choice((0.0, 0.4)),
        "crash_in_write": random.choice((0.02, 0.1, 0.3)),
        "restart_ticks_mean": random.choice((5, 40, 120)),
        "late": random.choice((0.0, 0.1, 0.4)),
        "append_ticks_max": random.choice((2, 4, 8)),
    }


def _short_timeouts(random: Random) -> dict[str, Any]:
    return {
        "commit_timeout_ticks": random.randint(4, 8),
        "prepare_timeout_ticks": random.randint(5, 12),
        "repair_timeout_ticks": random.randint(3, 6),
        "resend_timeout_ticks": random.randint(4, 10),
        "normal_timeout_ticks": random.randint(14, 35),
        "view_change_timeout_ticks": random.randint(6, 30),
        "backoff_ticks": random.randint(10, 15),
        "jitter_ticks": random.randint(8, 20),
        "abdicate_timeout_ticks": random.randint(40, 100),
    }


def _late_copies(random: Random) -> dict[str, Any]:
    return {"late": random.choice((0.05, 0.2))}


def _many_clients(random: Random) -> dict[str, Any]:
    return {"clients_min": random.randint(8, 14)}


def _long_delays(random: Random) -> dict[str, Any]:
    return {"delay_ticks_mean": random.choice((5.0, 8.0, 14.0)), "client_timeout_ticks": random.choice((25, 60))}


def _long_outages(random: Random) -> dict[str, Any]:
    return {
        "crash_interval_ticks": random.randint(80, 250),
        "outage_long": random.choice((0.2, 0.5)),
        "outage_long_ticks_mean": random.randint(300, 900),
    }


def _tiny_pipeline(random: Random) -> dict[str, Any]:
    return {"pipeline_max": random.randint(1, 3)}


def _crashes_in_view_change(random: Random) -> dict[str, Any]:
    return {
        "crash_in_view_change": random.choice((0.02, 0.05, 0.15)),
        "crash_in_write": random.choice((0.05, 0.2)),
        "restart_ticks_mean": random.choice((4, 15, 40)),
    }


def _slow_writes(random: Random) -> dict[str, Any]:
    return {"slow_write": random.choice((0.1, 0.3)), "slow_write_ticks_max": random.choice((40, 120))}


def _many_partitions(random: Random) -> dict[str, Any]:
    return {
        "partition_interval_ticks": random.randint(40, 150),
        "partition_ticks_mean": random.randint(20, 100),
    }
