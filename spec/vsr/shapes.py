"""Per model the shapes that `vsr check MODEL` searches: small sizes, chosen by the mutants that they notice.

`docs/mutants.md` (made by `vsr mutate`) says which shape each place of a model needs. A shape that is larger than its
bound of states is searched up to it, level by level.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from viewproof.spec.sizes import Portfolio, Size
from viewproof.spec.vsr.bounds import Bounds
from viewproof.spec.vsr.models import NAMED

CORE = Portfolio(
    "core",
    (
        Size(3, Bounds(views=2, ops=1, requests=1)),
        Size(3, Bounds(views=2, ops=1, requests=1, restarts=1, quorum_replication=3, quorum_view_change=1)),
        Size(3, Bounds(views=2, ops=1, requests=1, restarts=1)),
        Size(3, Bounds(views=1, ops=3, clients=2, requests=2)),
        Size(4, Bounds(views=2, ops=1, requests=1)),
        Size(3, Bounds(views=2, ops=1, requests=1, restarts=2)),
        Size(3, Bounds(views=3, ops=1, requests=1, quorum_replication=1, quorum_view_change=3)),
        Size(3, Bounds(views=2, ops=2, requests=2)),
        Size(4, Bounds(views=2, ops=1, requests=1, quorum_replication=3, quorum_view_change=2)),
        Size(2, Bounds(views=3, ops=2, clients=2, requests=1, restarts=1)),
        Size(3, Bounds(views=3, ops=1, requests=1)),
        Size(3, Bounds(views=2, ops=2, clients=2, requests=1)),
        Size(3, Bounds(views=3, ops=1, requests=1, quorum_replication=3, quorum_view_change=1)),
        Size(3, Bounds(views=3, ops=1, requests=1, restarts=1), 6_000_000),
        Size(3, Bounds(views=2, ops=2, clients=2, requests=1, quorum_replication=3, quorum_view_change=1), 6_000_000),
        Size(3, Bounds(views=2, ops=2, clients=2, requests=1, restarts=1), 6_000_000),
        Size(3, Bounds(views=2, ops=3, clients=3, requests=1, quorum_replication=3, quorum_view_change=1), 8_000_000),
        Size(3, Bounds(views=3, ops=2, clients=2, requests=1, quorum_replication=3, quorum_view_change=1), 8_000_000),
        Size(3, Bounds(views=3, ops=2, clients=2, requests=1)),
        Size(3, Bounds(views=4, ops=1, requests=1), 16_000_000),
        Size(
            3,
            Bounds(views=3, ops=2, clients=2, requests=1, restarts=1, quorum_replication=3, quorum_view_change=1),
            4_000_000,
        ),
    ),
)
RESTARTED = Size(2, Bounds(views=3, ops=1, clients=2, requests=2, restarts=1))
"""Two replicas, three views, one op, a crash: what is durable, at little cost."""
VIEWS = Size(3, Bounds(views=2, ops=1, requests=1))
"""Three replicas, two views: quorums that are not all."""
LOGS = Size(2, Bounds(views=1, ops=3, clients=2, requests=2, restarts=1))
"""One view, a log of three ops, a crash."""


def _of(
    table: str, *sizes: Size, beside: tuple[str, ...] = ("core",), unmet: Mapping[str, str] | None = None
) -> Portfolio:
    """Small sizes, the cheapest first, and then the model's own, up to the bound of states."""
    named = NAMED[table]
    return Portfolio(table, (*sizes, Size(named.replicas, named.bounds)), beside, unmet or {})


def _because(why: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), why)


DROP = _because("it is taken first in a search of 120 million states; a test walks there by name", "drop_header")
EVICTING = _because(
    "with fewer slots than clients a retry after an eviction runs again (table.evict_forgets): --slots 1 shows it",
    "execute_evicting I9.evicted I9.evicted_in_later_view I9.followed",
)
ALONE = _because("it takes two replicas", "I1 I3 I4 I5 I6 I9 I12 L2 I11 I3.lost I10.gap resend_reply")
TOGETHER = "met in the models of its parts; this one is about what they do together, in a small size"


def _sessions(replicas: int, **sizes: int) -> Size:
    return Size(replicas, Bounds(**{"views": 2, "clients": 2, "requests": 1, "incarnations": 1, **sizes}))


CLIENTS = (
    _sessions(2, views=1, ops=3, clients=3),
    _sessions(2, views=1, ops=4, clients=3, slots=2),
    _sessions(2, views=1, ops=4, requests=2, incarnations=2),
    _sessions(2, views=3, ops=1, clients=1, requests=2, restarts=1),
    _sessions(2, ops=3),
    _sessions(2, ops=2, incarnations=2),
    _sessions(3, ops=1, clients=1),
    _sessions(3, views=1, ops=3, clients=1, incarnations=2),
    _sessions(2, views=1, ops=4, clients=3, incarnations=2, slots=2),
    _sessions(2, views=1, ops=2, slots=2, restarts=1),
)
"""With three clients and two slots the one that is evicted is a choice; a crash in which a slot is free takes two."""
SNAPSHOTS = (
    _sessions(2, views=1, ops=3, clients=1, restarts=1),
    _sessions(2, ops=1, clients=1, restarts=1),
    _sessions(2, views=1, ops=2, restarts=2),
    _sessions(2, ops=2, clients=1),
    replace(_sessions(2, views=1, ops=4), max_states=130_000),
    _sessions(2, ops=2),
    _sessions(2, views=1, ops=3, clients=3, slots=2, restarts=1),
)
"""A table in a snapshot: saved, sent, lost in a crash and loaded. Four ops: too many for the pipeline. Two slots: which
is lost is a choice.
"""
CHECKPOINTS = (
    Size(3, Bounds(views=2, ops=1, clients=2, requests=2)),
    LOGS,
    Size(2, Bounds(views=3, ops=2, requests=2)),
    RESTARTED,
    Size(2, Bounds(views=2, ops=2, clients=2, requests=2, restarts=1)),
)
LAGGING = Size(3, Bounds(views=1, ops=3, requests=3))
"""A third replica lags: two others wrap their rings without it."""
REPAIRS = (
    Size(2, Bounds(views=3, ops=1, requests=1, restarts=1, rots=1)),
    Size(3, Bounds(views=1, ops=2, requests=2, restarts=1, rots=1)),
    Size(2, Bounds(views=2, ops=2, requests=2, restarts=1, rots=1)),
    Size(3, Bounds(views=2, ops=1, requests=1, rots=1)),
    Size(3, Bounds(views=2, ops=1, requests=1, restarts=2)),
)
COMMITS_ALONE = {"quorum_replication": 1, "quorum_view_change": 2}
ONE_COMMITS = Size(2, Bounds(views=3, ops=1, requests=1, **COMMITS_ALONE))
"""Two replicas of which one commits, and both must nack: offers of different log_views, at little cost."""
SUPERBLOCKS = (
    *REPAIRS,
    Size(2, Bounds(views=1, ops=2, requests=2, restarts=2, rots=2)),
    Size(2, Bounds(views=2, ops=1, clients=2, requests=1, restarts=1)),
    Size(3, Bounds(views=1, ops=1, requests=1, restarts=2, rots=1)),
    ONE_COMMITS,
    Size(2, Bounds(views=3, ops=2, requests=2, restarts=2, rots=1), 2_000_000),
)
"""Of the last: who was unsure of its head crashes again; a primary crashes before its log_view is durable; a header
that only memory knew is lost.
"""
PROBES = (
    Size(2, Bounds(views=2, ops=2, requests=2, restarts=1)),
    Size(3, Bounds(views=2, ops=1, requests=1, restarts=1)),
    Size(2, Bounds(views=3, ops=1, requests=1, restarts=2)),
    Size(3, Bounds(views=2, ops=2, requests=2)),
    Size(3, Bounds(views=3, ops=1, requests=1)),
    Size(3, Bounds(views=2, ops=2, requests=2, restarts=1)),
    Size(3, Bounds(views=3, ops=1, requests=1, restarts=1)),
)
IGGY_VIEWS = Portfolio(
    "iggy_views", (*PROBES, ONE_COMMITS, Size(3, Bounds(views=2, ops=2, clients=2, requests=1))), ("core", "repair")
)
ALONE_IN_VIEW = {"quorum_replication": 2, "quorum_view_change": 1}
"""Of two replicas either starts a view alone: headers with gaps and crashes at little cost."""
GAPS = (
    Size(2, Bounds(views=2, ops=2, clients=2, requests=1, **ALONE_IN_VIEW)),
    Size(2, Bounds(views=2, ops=1, requests=1, restarts=2, rots=1, **ALONE_IN_VIEW)),
    Size(2, Bounds(views=2, ops=4, clients=4, requests=1, **ALONE_IN_VIEW), 2_000_000),
    Size(2, Bounds(views=3, ops=2, clients=2, requests=1, restarts=1, **ALONE_IN_VIEW), 1_500_000),
    Size(3, Bounds(views=3, ops=1, requests=1), 3_000_000),
)
"""Four ops: a log whose head is unknown. Three views and a crash: what is left above a log that was cut."""
REPAIR = Portfolio(
    "repair", (*GAPS, *REPAIRS, Size(3, Bounds(views=2, ops=1, requests=1, restarts=1, rots=1))), ("core",), DROP
)
ONE_WITH_FILES = (
    Size(1, Bounds(views=1, ops=2, clients=2, requests=2, restarts=2, rots=1, partitions=2, readers=2, messages=1)),
    Size(1, Bounds(views=2, ops=2, requests=2, restarts=2, rots=1, partitions=1, readers=1, messages=1)),
    Size(1, Bounds(views=3, ops=1, requests=1, restarts=1, rots=1, partitions=1, readers=1, messages=1)),
)
"""A loss that is accepted, and a crash after it: of one partition and not of the other; in a later view."""
SHAPES: dict[str, Portfolio] = {
    "slots": _of(
        "slots",
        VIEWS,
        Size(2, Bounds(views=1, ops=3, clients=3, requests=1, slots=2)),
        Size(3, Bounds(views=3, ops=1, requests=1)),
        beside=("core", "iggy"),
    ),
    "core": CORE,
    "core_restart": CORE,
    "iggy": _of(
        "iggy",
        VIEWS,
        Size(3, Bounds(views=1, ops=2, clients=2, requests=2, restarts=2)),
        Size(2, Bounds(views=3, ops=2, requests=2, restarts=1)),
        Size(2, Bounds(views=3, ops=1, clients=2, requests=2, restarts=2)),
        unmet=EVICTING,
    ),
    "clients": _of("clients", *CLIENTS),
    "sessions": _of("sessions", *CLIENTS, beside=("core", "clients")),
    "iggy_clients": _of("iggy_clients", *CLIENTS, beside=("core", "clients", "iggy")),
    "control": _of(
        "control",
        VIEWS,
        Size(3, Bounds(views=1, ops=1, clients=2, requests=2, restarts=1)),
        LOGS,
        Size(2, Bounds(views=2, ops=2, clients=2, requests=2)),
        Size(2, Bounds(views=3, ops=2, requests=1, restarts=1)),
    ),
    "withdrawal": _of(
        "withdrawal",
        Size(2, Bounds(views=2, ops=1, requests=1)),
        Size(2, Bounds(views=1, ops=2, requests=2, restarts=1)),
        Size(2, Bounds(views=2, ops=2, requests=1)),
        Size(2, Bounds(views=3, ops=1, requests=1)),
        beside=("core", "control"),
    ),
    "frontiers": _of(
        "frontiers",
        VIEWS,
        LOGS,
        Size(2, Bounds(views=3, ops=2, clients=2, requests=1, restarts=1)),
    ),
    "pipeline": _of("pipeline", Size(2, Bounds(views=3, ops=2, clients=2, requests=1, restarts=1)), LOGS),
    "append_failure": _of("append_failure", Size(2, Bounds(views=3, ops=2, requests=2)), LOGS),
    "discard": _of(
        "discard",
        Size(2, Bounds(views=2, ops=1, clients=2, requests=1, restarts=1)),
        Size(2, Bounds(views=3, ops=1, requests=1, restarts=2)),
        Size(2, Bounds(views=2, ops=2, requests=2, restarts=2)),
        Size(2, Bounds(views=3, ops=1, requests=1, restarts=1)),
    ),
    "checkpoint": _of("checkpoint", *CHECKPOINTS),
    "ring": _of("ring", *CHECKPOINTS, LAGGING, beside=("core", "checkpoint")),
    "drain": _of("drain", *CHECKPOINTS, LAGGING, beside=("core", "ring")),
    "control_checkpoint": _of(
        "control_checkpoint",
        LOGS,
        RESTARTED,
        Size(2, Bounds(views=2, ops=2, requests=2, restarts=1)),
        beside=("core", "control", "checkpoint"),
    ),
    "combined": _of(
        "combined",
        *SNAPSHOTS,
        Size(2, Bounds(views=2, ops=2, clients=2, requests=1, incarnations=1, restarts=1)),
        beside=("core", "clients", "control", "checkpoint", "pipeline", "control_checkpoint"),
        unmet=_because(TOGETHER, "I3 I5 I12 request.stale I8.again register.stale I5.race"),
    ),
    "repair": REPAIR,
    "recovery": REPAIR,
    "headers": _of(
        "headers",
        Size(2, Bounds(views=2, ops=2, clients=2, requests=1)),
        Size(2, Bounds(views=3, ops=2, clients=2, requests=1), 2_000_000),
        Size(2, Bounds(views=3, ops=2, requests=2)),
        Size(2, Bounds(views=2, ops=3, requests=3)),
        beside=("core", "repair"),
    ),
    "diskless": _of(
        "diskless",
        Size(3, Bounds(views=2, ops=1, requests=1, restarts=1)),
        Size(3, Bounds(views=3, ops=1, requests=1), 3_000_000),
        Size(3, Bounds(views=2, ops=2, requests=2), 3_000_000),
        beside=("core", "repair"),
        unmet=DROP | _because("it is met in repair, whose rules these are", "I10.gap repair_header"),
    ),
    "superblock": _of("superblock", *SUPERBLOCKS, beside=("core", "repair")),
    "alone": _of("alone", beside=("core", "superblock"), unmet=ALONE),
    "iggy_views": IGGY_VIEWS,
    "iggy_log": IGGY_VIEWS,
    "iggy_crash": IGGY_VIEWS,
    "iggy_four": _of(
        "iggy_four",
        beside=("core", "repair", "iggy_views"),
        unmet=_because(
            "it takes two ops, or three views, which iggy_views has; this one is about quorums of four", "I10 I12"
        ),
    ),
    "iggy_whole": _of(
        "iggy_whole",
        Size(2, Bounds(views=2, ops=3, clients=1, requests=1, incarnations=2, restarts=1)),
        Size(2, Bounds(views=1, ops=2, clients=2, requests=1, incarnations=1, restarts=1)),
        beside=("core", "repair", "iggy_views", "clients", "iggy", "iggy_clients"),
        unmet=_because(TOGETHER, "I5 I12 request.stale I8.applied L1.parked"),
    ),
    "partitions": _of(
        "partitions",
        *ONE_WITH_FILES,
        Size(1, Bounds(views=1, ops=2, requests=2, restarts=1, rots=1, partitions=1, readers=1, messages=2)),
        Size(2, Bounds(views=1, ops=2, requests=2, restarts=1, rots=1, partitions=1, readers=1, messages=1)),
        Size(2, Bounds(views=2, ops=1, requests=1, restarts=1, rots=1, partitions=1, readers=1, messages=2)),
        Size(2, Bounds(views=3, ops=1, requests=1, restarts=1, rots=1, partitions=1, readers=1, messages=1)),
        Size(3, Bounds(views=2, ops=1, requests=1, restarts=1, rots=1, partitions=1, readers=1, messages=1)),
        Size(2, Bounds(views=2, ops=2, requests=2, restarts=1, rots=1, partitions=2, readers=2, messages=1)),
        Size(2, Bounds(views=3, ops=2, requests=2, partitions=1, readers=1, messages=1, **COMMITS_ALONE), 500_000),
        beside=("core", "checkpoint"),
    ),
    "loss": _of(
        "loss",
        LOGS,
        Size(2, Bounds(views=2, ops=2, requests=2, restarts=1)),
        Size(2, Bounds(views=3, ops=2, requests=2)),
        Size(2, Bounds(views=3, ops=1, requests=1, restarts=2)),
        Size(3, Bounds(views=1, ops=2, requests=2, restarts=1)),
        Size(2, Bounds(views=2, ops=1, requests=1, restarts=2, **ALONE_IN_VIEW)),
        Size(2, Bounds(views=3, ops=1, requests=1, restarts=1, **COMMITS_ALONE)),
        beside=("core", "checkpoint"),
    ),
}
"""Model name → its shapes. A model that is not here has one, its own size."""
