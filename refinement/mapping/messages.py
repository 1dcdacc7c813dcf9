"""The columns of messages, for the mapping table."""

from __future__ import annotations

from collections.abc import Mapping

MESSAGE_FIELDS: Mapping[str, tuple[str, ...]] = {
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
    "prepare_ok": ("m_view", "m_op", "m_checksum"),
    "commit": ("m_view", "m_commit"),
    "start_view_change": ("m_view",),
    "do_view_change": ("m_view", "m_log_view", "m_op", "m_commit"),
    "start_view": ("m_view", "m_op", "m_commit"),
}
"""Columns in which the event that receives a message must equal the event that sent it."""
