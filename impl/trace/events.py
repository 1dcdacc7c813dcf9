"""Trace events of a replica: the columns of traces/README.md, and their NDJSON line.

An event is encoded to one line with the columns in their order; a column that is None is left out.
"""

from __future__ import annotations

from typing import TypedDict

import msgspec


class TraceEvent(msgspec.Struct, omit_defaults=True, gc=False):
    """One trace event; the fields are exactly the columns of `traces/README.md`."""

    run: str
    node: int
    seq: int
    clock: int
    event: str
    status: str | None = None
    view: int | None = None
    log_view: int | None = None
    durable_view: int | None = None
    durable_log_view: int | None = None
    op: int | None = None
    head: str | None = None
    commit_min: int | None = None
    commit_max: int | None = None
    digest: str | None = None
    table: str | None = None
    features: int | None = None
    checkpoint: int | None = None
    m_type: str | None = None
    m_from: int | None = None
    m_seq: int | None = None
    m_view: int | None = None
    m_op: int | None = None
    m_commit: int | None = None
    m_log_view: int | None = None
    m_checksum: str | None = None
    m_parent: str | None = None
    m_client: int | None = None
    m_session: int | None = None
    m_request: int | None = None
    m_incarnation: int | None = None
    m_feature: int | None = None
    m_features: int | None = None
    m_round: int | None = None
    m_outcome: str | None = None
    m_evicted: int | None = None
    m_checkpoint: int | None = None
    m_reply: str | None = None
    m_chain_from: int | None = None
    m_chain: str | None = None
    m_operation: str | None = None
    m_namespace: int | None = None
    m_offset: int | None = None
    m_count: int | None = None
    m_consumer: int | None = None
    m_group: int | None = None
    m_log: tuple[str, ...] | None = None
    replicas: int | None = None
    quorum_replication: int | None = None
    quorum_view_change: int | None = None
    client_slots: int | None = None
    client_sessions: int | None = None
    client_gaps: int | None = None
    pipeline: int | None = None
    checkpoint_interval: int | None = None
    journal_slots: int | None = None
    supports: int | None = None
    ring: int | None = None
    feature_rounds: int | None = None
    partitions: int | None = None


class AskedColumns(TypedDict, total=False):
    """The columns of an executed op that say what it asked of a partition."""

    m_operation: str | None
    m_namespace: int | None
    m_offset: int | None
    m_count: int | None
    m_consumer: int | None
    m_group: int | None


class MessageColumns(AskedColumns, total=False):
    """The columns of the message, or the parameters, of an event."""

    m_type: str | None
    m_from: int | None
    m_seq: int | None
    m_view: int | None
    m_op: int | None
    m_commit: int | None
    m_log_view: int | None
    m_checksum: str | None
    m_parent: str | None
    m_client: int | None
    m_session: int | None
    m_request: int | None
    m_incarnation: int | None
    m_feature: int | None
    m_features: int | None
    m_round: int | None
    m_outcome: str | None
    m_evicted: int | None
    m_checkpoint: int | None
    m_reply: str | None
    m_chain_from: int | None
    m_chain: str | None
    m_log: tuple[str, ...] | None


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(TraceEvent)


def encode_line(event: TraceEvent) -> bytes:
    """The event as one NDJSON line, newline included; columns that are None are left out."""
    return _ENCODER.encode(event) + b"\n"


def decode_line(line: bytes) -> TraceEvent:
    """The event in one NDJSON line. Raises `msgspec.DecodeError` or `msgspec.ValidationError`."""
    return _DECODER.decode(line)
