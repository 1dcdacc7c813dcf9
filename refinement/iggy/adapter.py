"""The adapter `iggy`: its logs, and the specification that judges them, as Iggy is built."""

from __future__ import annotations

from collections.abc import Mapping

from viewproof.refinement.iggy import restarts, views
from viewproof.refinement.iggy.events import EVENTS
from viewproof.refinement.iggy.files import is_merged
from viewproof.refinement.iggy.source import SUFFIXES, Config, read
from viewproof.refinement.logs.judge import System
from viewproof.spec import vsr
from viewproof.spec.lang import Instance
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.vsr.config import ClientTable, Repair
from viewproof.spec.vsr.models import build
from viewproof.spec.vsr.parts.iggy.as_built import as_built
from viewproof.spec.vsr.profiles import profile_options


def specification(config: Config) -> Spec:
    """That of a group of so many replicas: the metadata has a client table, a partition none."""
    n = config.replicas
    options = profile_options("iggy", n)
    slots = (
        ClientTable(config.slots, sessions=True, gaps=True, cached=5, in_flight=0) if config.metadata else ClientTable()
    )
    options |= {"repair": Repair("probe", lasting=True), "client_table": slots}
    return as_built(build(vsr.Config(n, profile="iggy", **options), Instance({"Replica": n - 1}), "iggy"))


PARTS = (views, restarts)
"""Where the other events are declared: they are in EVENTS once these are read."""
NATIVE = {
    "acked": "what a backup appends and acknowledges: no line shows it; known by the primary's PrepareAcked",
    "executed": "which entry a backup executes: its line has no checksum",
    "queued": "the client table and its evictions: no line shows them",
    "merged": "headers and bits of do_view_changes: no line shows them; merges are judged by what the logs must be",
    "adopted": "whether a start_view had headers, and which: no line shows it",
    "repaired": "which entry a repair brings, and from whom: its line has no checksum",
    "restarted": "what a replica's journal holds when it comes back: no line shows it",
    "probing": "what a replica's journal holds when it comes back: no line shows it",
}
"""Event → what lines of a server alone do not show of it."""


def unshown(config: Config, judged: Mapping[str, int]) -> tuple[str, ...]:
    """What no line of such a run shows. A simulator's network and journals show all of it."""
    if config.wire:
        return ()
    found = [text for event, text in NATIVE.items() if judged.get(event) and (config.metadata or event != "queued")]
    return tuple(dict.fromkeys(found))


CHANGING = frozenset(
    {
        *("queued", "acked", "committed", "executed", "view_changed", "offered", "merged", "elected", "adopted"),
        *("dropped", "restarted", "probing"),
    }
)
FIELDS = (
    *("op", "view", "log_view", "commit", "parent_checksum", "prepare_checksum", "ack_from_replica", "ack_count"),
    *("replica_id", "request_id", "op_head", "commit_max", "new_view", "old_view", "from_op", "action_commit"),
)

SYSTEM = System(
    "iggy",
    lambda c: f"iggy, {'metadata' if c.metadata else 'a partition'}, {c.replicas} replicas",
    SUFFIXES,
    read,
    is_merged,
    EVENTS,
    specification,
    CHANGING,
    FIELDS,
    unshown,
)
