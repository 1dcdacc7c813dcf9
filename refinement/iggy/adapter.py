"""The adapter `iggy`: its logs, and the specification that judges them, as Iggy is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewproof.refinement.adapter import Adapter, Joined
from viewproof.refinement.events import Column, Profile, System, events_of
from viewproof.refinement.events.system import Record
from viewproof.refinement.iggy import events, restarts, told, views
from viewproof.refinement.iggy.files import is_merged
from viewproof.refinement.iggy.patterns import REPLICAS_MAX
from viewproof.refinement.iggy.source import SUFFIXES, read
from viewproof.spec import vsr
from viewproof.spec.lang import Instance
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.vsr.config import ClientTable, Repair
from viewproof.spec.vsr.core.state import Client, Length, Op, Replica, Request, View
from viewproof.spec.vsr.models import build
from viewproof.spec.vsr.parts.clients.state import Incarnation
from viewproof.spec.vsr.parts.iggy.as_built import as_built
from viewproof.spec.vsr.profiles import profile_options

COLUMNS = (
    Column("replicas", "int", False, "replicas of the group", minimum=1, maximum=REPLICAS_MAX),
    Column("slots", "int", False, "slots of the client table"),
    Column("metadata", "int", False, "1 if it is the metadata, with a table that is judged; 0: a partition"),
    Column("wire", "int", False, "1 if the log shows the network and journals"),
    Column("view", "int", False, "view that the line shows", sort=View),
    Column("log_view", "int", False, "log_view that the line shows", sort=View),
    Column("commit", "int", False, "commit number that the line shows", sort=Length),
    Column("status", "int", False, "0 normal, 1 view_change, 2 recovering"),
    Column("op", "int", False, "the op that the line is about", sort=Length),
    Column("entry", "int", False, "view that prepared the entry", sort=View),
    Column("parent", "int", False, "view that prepared the entry's parent", sort=View),
    Column("parent_op", "int", False, "op of the parent", sort=Op),
    Column("named_before", "int", False, "1 if the checksum names another entry"),
    Column("client", "int", False, "whose request it is", sort=Client),
    Column("request", "int", False, "its number", sort=Request),
    Column("register", "int", False, "how often the client has registered; 0: no register", sort=Incarnation),
    Column("clients", "int", False, "clients so far", sort=Client),
    Column("sender", "int", False, "who sent the message", sort=Replica),
    Column("count", "int", False, "acknowledgements that the line counts"),
    Column("quorum", "int", False, "acknowledgements that make a quorum"),
    Column("reached", "int", False, "1 if they are"),
    Column("journaled", "int", False, "1 if the sender's journal has the entry"),
    Column("lines", "int", False, "lines of acknowledgements of the op so far"),
    Column("own_line", "int", False, "1 if the primary's own is among them"),
    Column("again", "int", False, "1 if the sender's is, twice"),
    Column("old", "int", False, "view that is left", sort=View),
    Column("known", "int", False, "commit number of the message", sort=Length),
    Column("perhaps", "int", False, "head that a later merge shows", sort=Length),
    Column("nth", "int", False, "how many do_view_changes the replica scheduled in that tick so far"),
    Column("frames", "int", False, "how many it sent to each of the others"),
    *(Column(f"arrived_{q}", "int", False, f"1 if the do_view_change of {q} came") for q in range(REPLICAS_MAX)),
    Column("last", "int", False, "last op that is dropped", sort=Op),
    Column("top", "int", False, "largest op of the run so far", sort=Length),
    Column("done", "int", False, "ops that the replica executed again, by its later lines", sort=Length),
    Column("replayed", "int", False, "last op that the replica says that it executes as it comes back", sort=Length),
    Column("acked", "int", False, "last op of which an acknowledgement is counted while it is away", sort=Length),
    Column("was", "int", False, "view that the replica comes back in, by its later lines", sort=View),
    Column("was_log", "int", False, "log_view that it comes back with, by its later lines", sort=View),
    Column("proved", "int", False, "last view in which an acknowledgement of it was counted before", sort=View),
    Column("canonical", "int", False, "view that prepared the entry that the started view has", sort=View),
    Column("hole", "int", False, "first op that the journal lacks", sort=Op),
    Column("commit_min", "int", False, "executed ops", sort=Length),
    Column("commit_max", "int", False, "commit number", sort=Length),
    Column("epoch", "int", False, "session of the client", sort=Length),
    Column("mark", "int", False, "largest request number of the client"),
)  # fmt: skip


def configure(first: Record, faults: frozenset[str]) -> vsr.Config:
    """That of a group of so many replicas: the metadata has a client table, a partition none."""
    n, slots = first["replicas"], first["slots"]
    table = ClientTable(slots, sessions=True, gaps=True, cached=5, in_flight=0) if first["metadata"] else ClientTable()
    options = profile_options("iggy", n) | {"repair": Repair("probe", lasting=True), "client_table": table}
    return vsr.Config(n, profile="iggy", faults=faults, **options)


def specification(cfg: vsr.Config) -> Spec:
    """The specification, with the steps of the build."""
    return as_built(build(cfg, Instance({"Replica": cfg.replicas - 1}), "iggy"))


def observed(state: Any, e: Any) -> None:
    """What a line shows of its replica is not the same for all (`events.shows`)."""


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


def unshown(first: Record, judged: Mapping[str, int]) -> tuple[str, ...]:
    """What no line of such a run shows. A simulator's network and journals show all of it."""
    if first["wire"]:
        return ()
    found = [text for event, text in NATIVE.items() if judged.get(event) and (first["metadata"] or event != "queued")]
    return tuple(dict.fromkeys(found))


DEPARTURES = {
    events.STALE_PARENT: "the first prepare of a view names as its parent an entry further below than the one before "
    "it: the chain of checksums is broken there",
    restarts.REPLAYS_OVER_HOLE: "a replica comes back with a commit number above a hole in its journal, and passes "
    "over the ops that are missing: it says that it executed them, and its tables lack them",
}
CONFIGURATION = ("replicas", "slots", "metadata", "wire")
SYSTEM = System(
    "iggy",
    COLUMNS,
    events_of(events, views, restarts, told),
    observed,
    Profile(
        configure, specification, Replica, CONFIGURATION, CONFIGURATION, boots=(), to_the_end=True,
        once=("first_executed",), unshown=unshown,
    ),
    histories=True,
    departures=DEPARTURES,
)  # fmt: skip
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
ADAPTER = Adapter(
    "iggy", "logs of Iggy's servers, and of its simulator", SUFFIXES, None, SYSTEM,
    Joined(read, is_merged, CHANGING, FIELDS),
)  # fmt: skip
