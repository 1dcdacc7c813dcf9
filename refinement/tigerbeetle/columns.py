"""The columns of a record: what lines of both families show, and the headers of messages."""

from __future__ import annotations

from typing import Any, Final

from viewproof.refinement.events import Column
from viewproof.refinement.tigerbeetle.headers import COLUMNS as MESSAGE
from viewproof.spec.vsr.tigerbeetle.sorts import (
    Client,
    DataFile,
    Digest,
    Message,
    Nonce,
    Op,
    Operation,
    Prepare,
    Replica,
    Request,
    Time,
    View,
)
from viewproof.spec.vsr.tigerbeetle.state_2026 import MessageKind

_SORTS: Final[dict[Any, tuple[str, ...]]] = {
    Replica: ("sender", "to", "m_from"),
    View: (
        "view", "view_before", "view_low", "view_high", "log_view", "durable", "log_durable", "m_view", "m_log_view",
    ),
    Op: (
        "op", "op_before", "op_head", "low", "high", "slot", "commit", "commit_before", "commit_min", "commit_max",
        "checkpoint", "checkpoint_before", "session", "m_op", "m_commit", "m_commit_min", "m_commit_max",
        "m_checkpoint", "m_low", "m_high", "m_session",
    ),
    Prepare: ("checksum", "parent", "head", "m_checksum", "m_parent", "m_prepare", "m_asked"),
    Message: ("message",),
    MessageKind: ("kind",),
    Client: ("client", "m_client"),
    Request: ("request", "m_request", "m_register"),
    Nonce: ("nonce", "m_nonce"),
    Operation: ("m_operation",),
    Time: ("m_time",),
    DataFile: ("id",),
    Digest: ("state", "state_before"),
}  # fmt: skip
_SORT_OF: Final = {name: sort for sort, names in _SORTS.items() for name in names}
_NUMBERS: Final = (
    "replicas", "quorum_replication", "quorum_view_change", "nodes", "slots", "count", "limit", "threshold", "dirty",
    "faulty", "offset", "bits", "leads", "nack", "present", "mark_leads", "m_nacks", "m_copies", "m_headers", "m_rest",
    "m_unused", "m_content", "m_reply",
)  # fmt: skip
_TEXTS: Final = (
    "status", "mark_status", "role", "label", "decision", "command", "operation", "what", "from_status", "stage",
    "type", "reason", "nature", "m_command",
)  # fmt: skip
_DOCS: Final = {
    "nodes": "replicas and standbys",
    "dirty": "how many slots are dirty",
    "faulty": "how many slots are faulty",
    "bits": "bit r: replica r is counted",
    "mark_status": "status by the letter after the node's number",
    "mark_leads": "1 if that letter is a capital: it leads its view",
    "message": "number of the header",
    "m_content": "number of the header without its checksum",
    "m_nacks": "bits of a vote, its head first: prepares that it denies",
    "m_copies": "bits of a vote, its head first: prepares that it holds",
    "m_headers": "how many headers it carries, by its size",
    "m_rest": "bytes of its size that are no whole header",
    "m_unused": "1 if a field that has no meaning in it is not 0",
    "m_reply": "number of what two copies of a reply share",
    "m_prepare": "checksum of the prepare that it is about",
    "m_asked": "checksum of the request that a prepare or reply is about",
}

_ORDER: Final = (
    *(name for name in (*_NUMBERS, *_TEXTS) if name not in MESSAGE),
    *(name for name in _SORT_OF if name not in MESSAGE),
    *MESSAGE,
)
COLUMNS: Final = tuple(
    Column(
        name,
        "string" if name in _TEXTS else "int",
        False,
        _DOCS.get(name, name.replace("m_", "of the message: ").replace("_", " ")),
        sort=_SORT_OF.get(name),
    )
    for name in _ORDER
)
