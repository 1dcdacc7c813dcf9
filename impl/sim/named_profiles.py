"""Profiles with a name: each is hard on one part of the protocol, where the drawn ones are of every kind."""

from __future__ import annotations

from dataclasses import replace

from viewproof.impl.groups.plane import Plane
from viewproof.impl.sim.profile import SimProfile

CRASHES = SimProfile(
    loss=0.1,
    crash_interval_ticks=120,
    restart_ticks_mean=20,
    crash_in_write=0.1,
    slow_write=0.2,
    pipeline_max=3,
    checkpoint_interval=5,
    journal_slots=8,
    snapshot_chunk_bytes=300,
)
FAILING = replace(
    CRASHES,
    append_failure=0.05,
    snapshot_failure=0.6,
    drain_failure=0.3,
    superblock_failure=0.05,
    sync_failure=0.5,
)
LOST_SUPERBLOCKS = replace(CRASHES, superblock_damage=0.2)
PARTITIONS = replace(CRASHES, plane=Plane.PARTITIONS, snapshot_damage=0.5)
OUTAGES = replace(
    CRASHES,
    snapshot_damage=1.0,
    checkpoint_interval=3,
    crash_interval_ticks=200,
    crash_primary=0.2,
    crash_all=0.0,
    outage_long=0.6,
    outage_long_ticks_mean=400,
    client_pause_ticks_mean=50,
)
VANISHING = replace(CRASHES, plane=Plane.PARTITIONS, vanish=0.3)
UNREAD = replace(VANISHING, vanish=0.9, vanish_kinds=("altered",), scrub_bytes_per_tick=16, scrub_pass_ticks_min=100)
SLOTS = replace(CRASHES, client_slots=2, client_gaps=True, client_echo=0.05, clients_min=5)
ROT = SimProfile(
    loss=0.05,
    crash_interval_ticks=100,
    restart_ticks_mean=40,
    crash_all=0.1,
    crash_in_write=0.1,
    slow_write=0.1,
    pipeline_max=4,
    checkpoint_interval=5,
    journal_slots=12,
    snapshot_chunk_bytes=300,
    ring=True,
    rot=0.8,
    lost_write=0.05,
    misdirected_write=0.05,
)
LATE = replace(
    ROT,
    loss=0.0,
    late=0.9,
    late_ticks_max=150,
    delay_ticks_mean=5.0,
    crash_interval_ticks=30,
    restart_ticks_mean=5,
    crash_all=0.0,
    crash_primary=0.0,
    append_ticks_max=1,
    slow_write=0.0,
    normal_timeout_ticks=200,
    repair_timeout_ticks=15,
    client_timeout_ticks=10,
    rot=1.0,
    lost_write=0.0,
    misdirected_write=0.0,
    pipeline_max=8,
    checkpoint_interval=20,
    journal_slots=30,
)
STORM = SimProfile(
    loss=0.3,
    repeat=0.05,
    late=0.05,
    delay_ticks_mean=8.0,
    partition_interval_ticks=40,
    partition_ticks_mean=40,
    partition_one_way=0.3,
    clog_interval_ticks=30,
    clog_ticks_mean=20,
    normal_timeout_ticks=30,
    view_change_timeout_ticks=25,
    jitter_ticks=8,
    abdicate_timeout_ticks=30,
    clients_min=12,
    client_timeout_ticks=10,
    crash_interval_ticks=200,
    restart_ticks_mean=10,
    append_ticks_max=4,
    slow_write=0.2,
    slow_write_ticks_max=80,
)
LINKS = SimProfile(
    loss=0.0,
    repeat=0.0,
    clog_interval_ticks=0,
    partition_interval_ticks=0,
    crash_interval_ticks=0,
    crash_primary=0.7,
    slow_write=0.0,
    link_fault_interval_ticks=150,
    link_fault_ticks_mean=6_000,
    client_pause_ticks_mean=100,
    client_timeout_ticks=10,
    normal_timeout_ticks=20,
    view_change_timeout_ticks=25,
    backoff_ticks=3,
    jitter_ticks=8,
    abdicate_timeout_ticks=40,
)
DEAF = replace(
    LINKS,
    link_faults=("deaf",),
    crash_primary=1.0,
    client_pause_ticks_mean=400,
)
SLOW_DISKS = replace(
    LINKS,
    link_fault_interval_ticks=0,
    client_pause_ticks_mean=20,
    slow_disk_interval_ticks=100,
    slow_disk_ticks_mean=8_000,
    slow_write_ticks_max=20,
    append_ticks_max=2,
)
CLIENTS = SimProfile(
    client_slots=64,
    client_sessions=True,
    client_restart=0.2,
    client_clock_back=0.5,
    client_echo=0.1,
)
DOWNGRADES = replace(
    CRASHES,
    features="downgrades",
    crash_interval_ticks=60,
    partition_interval_ticks=150,
    checkpoint_interval=20,
    journal_slots=30,
)
LATE_VIEWS = replace(
    STORM,
    loss=0.05,
    late=0.5,
    late_ticks_max=1_000,
)
MISCONFIGURED = replace(
    CRASHES,
    misconfigured=True,
    crash_interval_ticks=400,
    restart_ticks_mean=10,
    client_timeout_ticks=10,
)
BACKUPS = replace(
    CRASHES,
    backup=0.7,
    crash_interval_ticks=60,
    restart_ticks_mean=5,
    crash_in_write=0.0,
    crash_all=0.0,
)
STRANGERS = SimProfile(stranger_interval_ticks=5)

NAMED_PROFILES: dict[str, SimProfile] = {
    "crashes": CRASHES,
    "failing-writes": FAILING,
    "lost-superblocks": LOST_SUPERBLOCKS,
    "partitions": PARTITIONS,
    "vanishing": VANISHING,
    "slots": SLOTS,
    "rot": ROT,
    "late": LATE,
    "storm": STORM,
    "links": LINKS,
    "deaf": DEAF,
    "slow-disks": SLOW_DISKS,
    "clients": CLIENTS,
    "downgrades": DOWNGRADES,
    "late-views": LATE_VIEWS,
    "misconfigured": MISCONFIGURED,
    "backups": BACKUPS,
    "strangers": STRANGERS,
    "unread": UNREAD,
    "outages": OUTAGES,
}
"""Crashes, with a journal that just holds what it must; besides, writes and syncs that fail, superblocks that are lost
for good, or the state machine of partitions and snapshots that are lost, or segments that vanish or are cut under a
running process; a client table of slots without sessions, and more clients than slots; ring journals on disks that rot;
the same, one replica at a time, with messages that come late; so much loss and so short timeouts that views often end
before anything commits; links that are cut for long, in one direction or both, those of clients, too, or a primary that
hears nobody, or a disk that is slow for long, and nothing else; clients that restart, some with a clock that was set
back; members that come back without a feature that they had said yes to; views that end often, and messages that come
many views later; one replica formatted otherwise than the others; one whose files are those of a backup; strangers at
the border of each process; as with segments that vanish, and those that rot are found though nobody reads them;
replicas that lose their snapshots and stay away, so that the others have later ones when they are back.
"""
