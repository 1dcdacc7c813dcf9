"""What each line of Iggy's logs is: one table for what a server prints, one for a simulator's harness and network."""

from __future__ import annotations

from collections.abc import Callable

from viewproof.refinement.iggy.lines import Parsed
from viewproof.refinement.iggy.names import Names
from viewproof.refinement.joined.source import Malformed

REPLICAS_MAX = 7
"""Replicas of the largest cluster."""
PREFLIGHT = "consensus::metadata_helpers"

Columns = dict[str, int | None]
Make = Callable[[Names, Parsed], Columns]


def _status(p: Parsed) -> int:
    status = {"normal": 0, "view_change": 1, "recovering": 2}.get(p.word("status"))
    if status is None:
        raise Malformed("status", "normal, view_change or recovering", p.word("status"))
    return status


def _state(p: Parsed) -> Columns:
    """What every line of a group shows of its replica."""
    return {**{name: p.number(name) for name in ("view", "log_view", "commit")}, "status": _status(p)}


def _shows(**fields: str) -> Make:
    """Columns that show a field each."""
    return lambda names, p: {column: p.number(name) for column, name in fields.items()}


def _shows_state(**fields: str) -> Make:
    """The same, and what every line of a group shows."""
    return lambda names, p: {**_state(p), **{column: p.number(name) for column, name in fields.items()}}


def _queued(names: Names, p: Parsed) -> Columns:
    op, view, checksum = p.number("op"), p.number("view"), p.number("prepare_checksum")
    names.begins = names.begins or op
    names.logs_out = names.logs_out or p.word("operation") == "logout"
    known = names.entries.setdefault(checksum, (view, op))
    names.places.setdefault((view, op), checksum)
    names.top = max(names.top, op)
    metadata = p.word("plane") == "metadata"
    register = metadata and p.word("operation") == "register"
    client = p.number("client_id") if metadata else -len(names.entries)
    number = names.client(client)
    if register:
        names.registers[number] = names.registers.get(number, 0) + 1
    return {
        **_state(p),
        "op": op,
        "entry": known[0] if known[1] == op else None,
        "parent": names.entry(p.number("parent_checksum"), op - 1, view) if op > 1 else None,
        "parent_op": names.entries.get(p.number("parent_checksum"), (0, None))[1],
        "named_before": int(known != (view, op)),
        "client": number,
        "request": p.number("request_id") if metadata else 1,
        "register": names.registers.get(number, 0) if register else 0,
        "clients": len(names.clients),
    }


def _acked(names: Names, p: Parsed) -> Columns:
    op, sender, checksum = p.number("op"), p.number("ack_from_replica"), p.number("prepare_checksum")
    node = p.number("replica_id")
    shown = names.shows_journals and sender != node
    lines = names.counted.setdefault((node, p.number("view"), op, checksum), [])
    lines.append(sender)
    return {
        **_state(p),
        "op": op,
        "sender": sender,
        "entry": names.entry(checksum, op),
        "count": p.number("ack_count"),
        "lines": len(lines),
        "own_line": int(node in lines),
        "again": int(lines.count(sender) > 1),
        "quorum": p.number("quorum"),
        "reached": int(p.word("quorum_reached") == "true"),
        "journaled": int(names.journals.get((sender, op)) == checksum) if shown else None,
        "clients": len(names.clients),
    }


def _committed(names: Names, p: Parsed) -> Columns:
    metadata = p.word("plane") == "metadata"
    return {
        **_state(p),
        "op": p.number("op"),
        "client": names.client(p.number("client_id")) if metadata else None,
        "request": p.number("request_id") if metadata else None,
        "clients": len(names.clients),
    }


_offered = _shows_state(op="op", known="action_commit")


def _offers(names: Names, p: Parsed) -> Columns:
    moment = (p.time, p.number("replica_id"), p.number("view"))
    names.scheduled[moment] = names.scheduled.get(moment, 0) + 1
    return {**_offered(names, p), "nth": names.scheduled[moment]}


SIM: dict[str, tuple[str, Make]] = {
    "PrepareQueued": ("queued", _queued),
    "PrepareAcked": ("acked", _acked),
    "OperationCommitted": ("committed", _committed),
    "ClientReplyEmitted": ("replied", _committed),
    "ViewChangeStarted": ("view_changed", _shows_state(old="old_view")),
    "PrimaryElected": ("elected", _shows_state()),
    "send_do_view_change": ("offered", _offers),
    "send_start_view": ("announced", _offered),
    "ReplicaStateChanged": ("shown", _shows_state()),
    "NamespaceProgressUpdated": ("progressed", _shows_state(op="op")),
}
"""`sim_event`, or the action of a ControlMessageScheduled → event and columns."""
DEBUGGED = frozenset({"queued", "acked", "committed"})
"""What a primary prints at debug level."""
SIM_NOTED = frozenset({"ClientRequestReceived", "send_start_view_change", "send_prepare_ok"})


def nothing(names: Names, p: Parsed) -> Columns:
    """No column."""
    return {}


def _dropped(names: Names, p: Parsed) -> Columns:
    return {"op": p.number("from_op"), "last": max(names.top, p.number("from_op") + p.number("removed") - 1)}


def _disagrees(names: Names, p: Parsed) -> Columns:
    op = p.number("op")
    has, started = (names.entry(p.number(f"{whose}_checksum"), op) for whose in ("local", "canonical"))
    return {"op": op, "entry": has, "canonical": started}


def _refused(names: Names, p: Parsed, **shows: str) -> Columns:
    known = {column: p.number(name) for column, name in shows.items()}
    return {"client": names.client(p.number("client_id")), "request": p.known("request"), **known}


def _merged(names: Names, p: Parsed) -> Columns:
    view, to = p.number("view"), p.number("replica")
    arrived: Columns = {}
    if names.offers:
        arrived = {f"arrived_{q}": int((to, view, q) in names.offers) for q in range(REPLICAS_MAX)}
    return {"view": view, "op": p.number("op_head"), "commit": p.number("commit_max"), **arrived}


OTHERS: dict[str, tuple[tuple[str, str, Make], ...]] = {
    "metadata::impls::metadata": (
        (
            "commit_journal: committed",
            "executed",
            lambda n, p: {"op": p.number("op"), "clients": len(n.clients)},
        ),
    ),
    "consensus::impls": (
        ("adopting view from StartView", "adopted", _shows(view="new_view", old="old_view", op="op", commit="commit")),
        ("view-change quorum merged", "merged", _merged),
        ("beginning view probe", "probing", lambda n, p: {"top": n.top, "clients": len(n.clients)}),
    ),
    "shard": (
        ("dropped", "dropped", _dropped),
        ("repair prepare received", "repaired", _shows(op="op")),
        ("committed op", "disagrees", _disagrees),
        ("committed partition op", "disagrees", _disagrees),
    ),
    PREFLIGHT: (
        ("request_preflight: duplicate", "refused", lambda n, p: _refused(n, p, mark="watermark")),
        ("request_preflight: fencing", "refused", lambda n, p: _refused(n, p, epoch="current")),
        ("request_preflight: not caught up", "lagging", _shows(commit_min="commit_min", commit_max="commit_max")),
        ("register_preflight: not caught up", "lagging", _shows(commit_min="commit_min", commit_max="commit_max")),
    ),
    "iggy.metadata.diag": (
        (
            "on_replicate: dropping out-of-order prepare",
            "gapped",
            lambda n, p: {"op": p.number("expected") - 1},
        ),
    ),
    "iggy.partitions.diag": (("repair window commit walk finished", "walked", _shows(op="commit_min_before")),),
}
"""Other lines of a server, by target: how the text begins, event, columns."""


def _journal(names: Names, p: Parsed) -> Columns:
    op, checksum = p.number("op"), p.number("checksum")
    names.shows_journals = True
    names.journals[p.number("replica"), op] = checksum
    return {"op": op, "entry": names.entry(checksum, op)}


HARNESS: dict[str, tuple[str, Make]] = {
    "restart": (
        "restarted",
        lambda n, p: {"top": n.top, "clients": len(n.clients), "hole": n.hole(p.number("replica"))},
    ),
    "state": (
        "state",
        lambda n, p: {
            **{name: p.number(name) for name in ("view", "log_view", "op", "commit_min", "commit_max")},
            "status": _status(p),
        },
    ),
    "journal": ("journal", _journal),
    "executed": (
        "executed_entry",
        lambda n, p: {"op": p.number("op"), "entry": n.entry(p.number("checksum"), p.number("op"))},
    ),
}


WIRE: dict[str, str] = {"DoViewChange": "", "StartViewChange": "got_request", "StartView": "got_start"}
"""Messages that are received, as a simulator's network shows them → event."""
