"""The native trace format as data: its columns, its events, and the checks of one record.

`traces/README.md` is the text; this table is what every reader, engine and report is built from.
A decoded event is a *row*: a tuple of the values in `COLUMNS` order (`None` = not observed),
in the engines followed by the file and the line it was read from.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import pyarrow as pa

Kind = Literal["string", "int", "strings"]

INT_MAX: Final = 2**63 - 1
REPLICAS_MAX: Final = 256
"""Of a cluster: the index of one is a byte."""
COUNT_MAX: Final = 2**22
"""Most messages of one append: the audit notes the offset of each (I15), so a wrong number must not fill the memory."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the trace.

    `minimum` and `maximum` bound an int; `choices` lists the values a string may have (empty: any); `filled` says that
    the empty string is none of them. `sort` is what an int is of in the specification (`View`); without, a number.
    """

    name: str
    kind: Kind
    required: bool
    doc: str
    minimum: int = 0
    choices: tuple[str, ...] = ()
    filled: bool = False
    maximum: int = INT_MAX
    sort: Any = None

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"column {self.name}: {self.kind!r} is no kind of a column: {', '.join(get_args(Kind))}")

    @property
    def expected(self) -> str:
        """What a value must be, in words, for error messages."""
        if self.kind == "strings":
            return "a list of strings"
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.kind == "int":
            return f"an integer ≥ {self.minimum}" + (f" and ≤ {self.maximum}" if self.maximum < INT_MAX else "")
        return "a string that is not empty" if self.never_empty else "a string"

    @property
    def never_empty(self) -> bool:
        """Is the empty string refused?"""
        return self.required or self.filled

    def accepts(self, value: object) -> bool:
        """Whether a decoded JSON value is allowed here; `None` is, where the column is not required."""
        if value is None:
            return not self.required
        if self.kind == "int":
            return isinstance(value, int) and not isinstance(value, bool) and self.minimum <= value <= self.maximum
        if self.kind == "strings":
            return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)
        if not isinstance(value, str):
            return False
        if self.never_empty and not value:
            return False
        return not self.choices or value in self.choices


@dataclass(frozen=True, slots=True)
class Event:
    """One event name: the message or parameter columns it uses, and when it is emitted."""

    name: str
    columns: tuple[str, ...]
    doc: str


STATUSES: Final = ("normal", "view_change", "recovering")
MESSAGE_TYPES: Final = (
    "request",
    "prepare",
    "prepare_ok",
    "commit",
    "start_view_change",
    "do_view_change",
    "start_view",
    "reply",
    "eviction",
    "nack",
    "supports",
)
OPERATIONS: Final = ("append", "store", "refused", "other")
OUTCOMES: Final = ("in_progress", "stale", "gap", "no_session", "fenced")

_CONFIGURATION = ("replicas", "quorum_replication", "quorum_view_change")
_CLIENTS = ("client_slots", "client_sessions", "client_gaps")
_BOOT = (
    *_CONFIGURATION,
    *_CLIENTS,
    "pipeline",
    "checkpoint_interval",
    "journal_slots",
    "supports",
    "ring",
    "feature_rounds",
    "partitions",
)
_CLIENT = ("m_client", "m_session", "m_request", "m_incarnation")
_RECEIVED = ("m_from", "m_seq")
_ACK = ("m_type", "m_view", "m_op", "m_checksum")
_COMMIT = ("m_type", "m_view", "m_commit")
_SVC = ("m_type", "m_view")
_DVC = ("m_type", "m_view", "m_log_view", "m_op", "m_commit", "m_log")
_SV = ("m_type", "m_view", "m_op", "m_commit", "m_log")
_ANSWER = ("m_type", "m_view", "m_round", "m_features")
_ENTRY = (*_CLIENT, "m_feature")
_CHAIN = ("m_chain_from", "m_chain")
_ASKED = ("m_operation", "m_namespace", "m_offset", "m_count", "m_consumer", "m_group")
_PREPARE = ("m_view", "m_op", "m_commit", "m_checksum", "m_parent", *_ENTRY)

EVENTS: Final[Mapping[str, Event]] = {
    event.name: event
    for event in (
        Event("start", _BOOT, "first boot over a formatted data file"),
        Event("restart", _BOOT, "boot over a used data file; observations are the recovered state"),
        Event("on_request", ("m_type", *_PREPARE), "the primary has prepared a request or a register"),
        Event("drop_request", (*_CLIENT, "m_outcome"), "a normal primary dropped a request, and why"),
        Event("send_eviction", (*_CLIENT, "m_outcome"), "a client was told that it has no session, or an older one"),
        Event("ask_features", ("m_view", "m_round"), "the primary asks all members which features they support"),
        Event("say_features", _ANSWER, "a backup answers that round"),
        Event("on_features", (*_RECEIVED, *_ANSWER), "learned which features a member supports"),
        Event("propose_feature", _PREPARE, "the primary has prepared a control entry"),
        Event("on_prepare", ("m_type", *_RECEIVED, *_PREPARE), "a backup accepted a prepare; not yet durable"),
        Event("drop_prepare", ("m_type", *_RECEIVED, "m_view", "m_op"), "a prepare was dropped as old: executed here"),
        Event("append", ("m_op",), "every prepare up to m_op is durable"),
        Event("repair", ("m_op", "m_checksum"), "a body of a log still to be installed is durable in the journal"),
        Event("prepare_ok", _ACK, "acknowledgement sent (also the primary's own, to itself)"),
        Event("on_prepare_ok", (*_ACK, *_RECEIVED), "the primary received and counts another replica's"),
        Event("commit", ("m_op",), "the primary raised commit_max to m_op on acknowledgement quorums"),
        Event("send_commit", _COMMIT, "commit number sent"),
        Event("on_commit", (*_COMMIT, *_RECEIVED), "a backup raised commit_max by it"),
        Event("execute", ("m_op", "m_checksum", *_ENTRY, "m_evicted", "m_reply", *_CHAIN, *_ASKED), "op executed"),
        Event("resend_reply", ("m_type", "m_op", *_CLIENT, "m_reply"), "a duplicate was answered"),
        Event("checkpoint", ("m_op",), "the snapshot at m_op is durable and the journal is drained up to it"),
        Event("append_failed", ("m_op",), "the append of the prepares from m_op on failed; they are not in the log"),
        Event("start_view_change", (*_SVC, *_RECEIVED), "the new view is durable, message sent"),
        Event("on_start_view_change", (*_SVC, *_RECEIVED), "received from another replica and counted"),
        Event("do_view_change", _DVC, "sent (also to itself)"),
        Event("on_do_view_change", (*_DVC, *_RECEIVED), "the primary received it from another replica and counts it"),
        Event("start_view", (*_SV, "m_from"), "the primary starts its view"),
        Event("send_start_view", _SV, "sent again with the current op, in answer to request_start_view"),
        Event("on_start_view", (*_SV, *_RECEIVED, "m_checkpoint"), "log installed, replica is a normal backup"),
        Event(
            "recover",
            (*_SV, "m_log_view", *_RECEIVED, "m_checkpoint", *_BOOT),
            "boot with that log in place of its own, damaged; m_log_view is that of the superblock it booted from",
        ),
        Event(
            "nack", (*_ACK, "m_log_view"), "a prepare asked for is not here; m_log_view is the view that prepared it"
        ),
    )
}

TABLE: Final[tuple[Column, ...]] = (
    Column("run", "string", True, "run id"),
    Column("node", "int", True, "replica"),
    Column("seq", "int", True, "per-node sequence", minimum=1),
    Column("clock", "int", True, "Lamport clock", minimum=1),
    Column("event", "string", True, "one of the events", choices=tuple(EVENTS)),
    Column("status", "string", False, "replica status", choices=STATUSES),
    Column("view", "int", False, "view"),
    Column("log_view", "int", False, "view of the log"),
    Column("durable_view", "int", False, "view in the superblock"),
    Column("durable_log_view", "int", False, "log_view in the superblock"),
    Column("op", "int", False, "highest op in the log"),
    Column("head", "string", False, 'checksum of the entry at op; "" when op = 0'),
    Column("commit_min", "int", False, "highest executed op"),
    Column("commit_max", "int", False, "highest op known to be committed"),
    Column("digest", "string", False, "digest of the state machine and client table at commit_min", filled=True),
    Column("table", "string", False, "digest of the client table at commit_min", filled=True),
    Column("features", "int", False, "enabled features: bit f-1 is feature f"),
    Column("checkpoint", "int", False, "op of the durable snapshot that a restart begins at"),
    Column("m_type", "string", False, "message type", choices=MESSAGE_TYPES),
    Column("m_from", "int", False, "replica that sent the message"),
    Column("m_seq", "int", False, "seq of the event at m_from that sent it first", minimum=1),
    Column("m_view", "int", False, "view of the message"),
    Column("m_op", "int", False, "op of the message"),
    Column("m_commit", "int", False, "commit number of the message"),
    Column("m_log_view", "int", False, "log_view of the message"),
    Column("m_checksum", "string", False, "checksum of the prepare the message is about", filled=True),
    Column("m_parent", "string", False, 'checksum of the prepare before it ("" for op 1)'),
    Column("m_client", "int", False, "client id; 0 of a control entry"),
    Column("m_session", "int", False, "session: op of the client's register; 0 without sessions"),
    Column("m_request", "int", False, "request number; 0 of a register or control entry"),
    Column("m_incarnation", "int", False, "of a register: how often the client has begun anew"),
    Column("m_feature", "int", False, "of a control entry: the feature it enables"),
    Column("m_features", "int", False, "features that a member supports: bit f-1 is feature f"),
    Column("m_round", "int", False, "how often the primary had asked for them in its view", minimum=1),
    Column("m_outcome", "string", False, "why a request was not prepared", choices=OUTCOMES),
    Column("m_evicted", "int", False, "client that lost its slot of the client table; 0: none"),
    Column("m_checkpoint", "int", False, "op of the snapshot that was installed; 0: none"),
    Column("m_reply", "string", False, "checksum of the reply: client, request, op and result", filled=True),
    Column("m_chain_from", "int", False, "op from which the database checksum is chained; 0: it is not"),
    Column("m_chain", "string", False, "the database checksum after the op, if it is chained", filled=True),
    Column("m_operation", "string", False, "what an executed op asked of a partition", choices=OPERATIONS),
    Column("m_namespace", "int", False, "its partition, as a signed 64-bit number", minimum=-(2**63)),
    Column("m_offset", "int", False, "offset of the first message of an append, or the offset to store"),
    Column("m_count", "int", False, "number of messages of an append", minimum=1, maximum=COUNT_MAX),
    Column("m_consumer", "int", False, "whose offset is stored, as a signed 64-bit number", minimum=-(2**63)),
    Column("m_group", "int", False, "1 if that is a consumer group, 0 if a single consumer"),
    Column("m_log", "strings", False, "checksums of a log's entries, ops m_op - len + 1 .. m_op"),
    Column("replicas", "int", False, "configuration: number of replicas", minimum=1, maximum=REPLICAS_MAX),
    Column("quorum_replication", "int", False, "configuration: replication quorum", minimum=1),
    Column("quorum_view_change", "int", False, "configuration: view change quorum", minimum=1),
    Column("client_slots", "int", False, "configuration: slots of the client table; 0 or missing: one per client"),
    Column("client_sessions", "int", False, "configuration: 1 if clients register; 0 or missing: they do not"),
    Column("client_gaps", "int", False, "configuration: 1 if request numbers may skip"),
    Column("pipeline", "int", False, "configuration: most prepares above commit_max", minimum=1),
    Column("checkpoint_interval", "int", False, "configuration: ops between checkpoints; 0 or missing: none"),
    Column("journal_slots", "int", False, "configuration: ops that the journal holds; 0 or missing: any number"),
    Column("supports", "int", False, "features that this member supports: bit f-1 is feature f"),
    Column("ring", "int", False, "configuration: 1 if a damaged log is repaired before the boot; 0 or missing: no"),
    Column("feature_rounds", "int", False, "configuration: 1 if a primary asks in rounds what members support"),
    Column("partitions", "int", False, "configuration: 1 if `m_operation` of each executed op is shown; 0: no"),
)

COLUMNS: Final[tuple[str, ...]] = tuple(column.name for column in TABLE)
"""The order of values in a row, everywhere."""

BY_NAME: Final[Mapping[str, Column]] = {column.name: column for column in TABLE}
INDEX: Final[Mapping[str, int]] = {name: position for position, name in enumerate(COLUMNS)}

Row = tuple[Any, ...]
"""Values in `COLUMNS` order; in the engines followed by file (str) and line (int)."""

FILE_INDEX: Final = -2
LINE_INDEX: Final = -1

BASE: Final = TABLE[:5]
"""The columns that every record has, whatever else: run, node, seq, clock, event."""

_ARROW_TYPES = {"string": pa.string(), "int": pa.int64(), "strings": pa.list_(pa.string())}

ARROW_SCHEMA: Final = pa.schema([pa.field(c.name, _ARROW_TYPES[c.kind], nullable=not c.required) for c in TABLE])
"""The Parquet schema of a trace."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one field of one record: its name, what was expected, what was there."""

    field: str
    expected: str
    got: str


def nearest(name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """A hint `; did you mean "x"?` for a misspelt name, or nothing."""
    found = difflib.get_close_matches(name, list(known), n=1)
    return f'; did you mean "{found[0]}"?' if found else ""


def describe(value: object, limit: int = 60) -> str:
    """A value as a message shows it: JSON's name for its type, and its text, cut at `limit`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    if isinstance(value, str):
        text = '"' + value + '"'
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    name = {int: "integer", float: "number", str: "string", list: "list", dict: "object"}.get(type(value))
    return f"{name} {text}" if name else text


def check_record(record: object, columns: tuple[Column, ...] = TABLE) -> list[Problem]:
    """Everything that is wrong with one decoded record, in column order; empty when it is a valid event.

    This is the slow, explaining twin of the typed decoder: readers call it where that one failed.
    """
    if not isinstance(record, dict):
        return [Problem("(line)", "a JSON object", describe(record))]
    problems = []
    for column in columns:
        if column.name not in record:
            if column.required:
                problems.append(Problem(column.name, column.expected, "nothing: the field is missing"))
            continue
        value = record[column.name]
        if not column.accepts(value):
            problems.append(_refuse(column, value))
    return problems


def _refuse(column: Column, value: object) -> Problem:
    if column.name == "event" and isinstance(value, str):
        return Problem("event", "a known event", f'unknown event "{value}"' + nearest(value, column.choices))
    if column.choices and isinstance(value, str):
        return Problem(column.name, column.expected, describe(value) + nearest(value, column.choices))
    return Problem(column.name, column.expected, describe(value))
