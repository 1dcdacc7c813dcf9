"""The columns of native traces (`refinement.schema`), each with what it is of in the specification."""

from __future__ import annotations

from dataclasses import replace

from viewproof.refinement.schema import BASE, TABLE, Column
from viewproof.spec.vsr.core.state import Client, Feature, Op, Replica, Request, View
from viewproof.spec.vsr.parts.clients.state import Incarnation
from viewproof.spec.vsr.parts.partitions.state import Count, Offset
from viewproof.spec.vsr.parts.withdrawal import Round

FEATURE_MAX = 63
ROUND_MAX = 1 << 30
CONFIGURED = ("client_slots", "client_sessions", "client_gaps", "pipeline", "journal_slots", "partitions")
"""Columns of the first event that say which options the specification is built with, the same on all replicas."""
NEEDED = ("replicas", "quorum_replication", "quorum_view_change")
CONFIGURATION = (*NEEDED, *CONFIGURED, "checkpoint_interval", "ring", "feature_rounds")
"""All columns of the configuration but `supports`, which may change with every restart."""

_SORTS = {
    View: ("view", "log_view", "durable_view", "durable_log_view", "m_view", "m_log_view"),
    Op: (
        *("op", "commit_min", "commit_max", "checkpoint"),
        *("m_op", "m_commit", "m_session", "m_checkpoint", "m_chain_from"),
    ),
    Replica: ("m_from",),
    Client: ("m_client", "m_evicted"),
    Request: ("m_request",),
    Incarnation: ("m_incarnation",),
    Feature: ("m_feature",),
    Round: ("m_round",),
    Count: ("m_count",),
    Offset: ("m_offset",),
}
_SORT_OF = {name: sort for sort, names in _SORTS.items() for name in names}

COLUMNS: tuple[Column, ...] = tuple(replace(column, sort=_SORT_OF.get(column.name)) for column in TABLE[len(BASE) :])
MESSAGES = {
    "prepare": (
        "m_view",
        "m_op",
        "m_commit",
        "m_checksum",
        "m_parent",
        "m_client",
        "m_session",
        "m_request",
        "m_incarnation",
        "m_feature",
    ),
    "supports": ("m_view", "m_round", "m_features"),
    "prepare_ok": ("m_view", "m_op", "m_checksum"),
    "commit": ("m_view", "m_commit"),
    "start_view_change": ("m_view",),
    "do_view_change": ("m_view", "m_log_view", "m_op", "m_commit"),
    "start_view": ("m_view", "m_op", "m_commit"),
}
"""Columns in which the event that receives a message must equal the event that sent it."""
