"""The messages of the core protocol and the wire codec (docs/core-protocol.md, sections "Rules" and "Actions").

Every message is an immutable `msgspec.Struct` of one tagged union, `Message`.

Common fields:

* `clock`: Lamport clock of the sender when the message was made;
* `replica`: index of the sending replica (absent in `Request`, which comes from a client);
* `seq`: `seq` of the trace event at the sender that first sent this content (0: not known, as after a restart).

Checksums are blake2b-128 in lower-case hexadecimal (32 digits). They guard against accidental corruption and serve as
names of entries; `""` is the checksum of the empty log (op 0).

The types of the fields are their ranges (`impl.interface.ranges`): bytes with a value out of range do not decode.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from viewproof.impl.interface.ranges import (
    CHUNK_SIZE_MAX,
    HEADERS_MAX,
    LIST_MAX,
    REPLICAS_MAX,
    Body,
    BodySize,
    Checksum,
    ClientClock,
    Clock,
    Feature,
    Features,
    Index,
    Number,
    Op,
    Place,
    PlaceOrNone,
    Reason,
    View,
)
from viewproof.impl.machine.partition_log import SegmentRef

CHECKSUM_BYTES = 16
"""Size of a checksum, bytes (it is written as twice as many hexadecimal digits)."""

CHECKSUM_NONE = ""
"""Parent of op 1, and the log head of an empty log."""

_NUMBERS = struct.Struct("<9Q")
_REPLY_NUMBERS = struct.Struct("<5Q")
_INCARNATION = struct.Struct("<Q")


class PrepareHeader(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The name and the links of one log entry; never changes once prepared (rule 1).

    `view` is the view whose primary prepared the entry, `commit` that primary's commit_max at the time, `size` the
    length of the body in bytes, `parent` the checksum of the entry at `op - 1`. The three kinds of entry
    (docs/clients-and-control.md): a request has a client and a request number (and its session), a register a client
    and an incarnation, a control entry a feature; the other numbers are 0.
    """

    checksum: Checksum
    parent: Checksum
    view: View
    op: Op
    client: Number
    request: Number
    commit: Op
    size: BodySize
    session: Number = 0
    incarnation: Number = 0
    feature: Feature = 0


Headers: TypeAlias = Annotated[tuple[PrepareHeader, ...], Meta(max_length=HEADERS_MAX)]
"""A window of a log."""


class Prepare(msgspec.Struct, frozen=True, tag="prepare", array_like=True, gc=False):
    """An entry with its body: the message of the primary, and what the journal stores (`header` and `body` only).

    `replica`, `clock` and `seq` belong to the sending and are not durable: a recovered prepare has the defaults.
    """

    header: PrepareHeader
    body: Body
    replica: Index = 0
    clock: Clock = 0
    seq: Number = 0


class Request(msgspec.Struct, frozen=True, tag="request", array_like=True, gc=False):
    """A client's request: `client` ≥ 1, `request` ≥ 1, `body` an encoded operation of the state machine.

    `session` is the op of the client's register, 0 where sessions are off. A register has `session`, `request` 0, an
    empty body, and the client's `incarnation` ≥ 1.
    """

    client: Number
    request: Number
    body: Body
    session: Number = 0
    incarnation: Number = 0
    clock: ClientClock = 0


class Reply(msgspec.Struct, frozen=True, tag="reply", array_like=True, gc=False):
    """The answer to a request or register: a function of its prepare, but for `clock`, which is the sending's.

    `view` is that of the prepare, and `replica` the primary of it. The answer to a register has `request` 0, its
    op as `session`, and the incarnation as `body` (`register_result`).
    """

    client: Number
    session: Number
    request: Number
    op: Op
    body: bytes
    view: View
    replica: Index
    clock: Clock = 0


class Eviction(msgspec.Struct, frozen=True, tag="eviction", array_like=True, gc=False):
    """The client's request `request` of `session` is not taken: `reason` is "no_session" or "fenced".

    `incarnation` is that of the client's newer session if it is fenced, else 0. `view` helps the client to route.
    """

    client: Number
    session: Number
    request: Number
    reason: Reason
    incarnation: Number = 0
    view: View = 0
    clock: Clock = 0


class PrepareOk(msgspec.Struct, frozen=True, tag="prepare_ok", array_like=True, gc=False):
    """`replica` holds entry `checksum` durably at `op`; `view` is the view of the acknowledgement."""

    view: View
    op: Op
    checksum: Checksum
    replica: Index
    clock: Clock = 0
    seq: Number = 0


class Commit(msgspec.Struct, frozen=True, tag="commit", array_like=True, gc=False):
    """Heartbeat of a normal primary with its commit_max.

    `round`, if not 0: the primary asks what its members support, for the so-manieth time in this view. `supports` has
    then for every replica the features (bit f-1) that it said in this round; a backup that supports others answers.
    """

    view: View
    commit: Op
    replica: Index
    clock: Clock = 0
    seq: Number = 0
    supports: Annotated[tuple[Features, ...], Meta(max_length=REPLICAS_MAX)] = ()
    round: Number = 0


class HeartbeatOk(msgspec.Struct, frozen=True, tag="heartbeat_ok", array_like=True, gc=False):
    """`replica`, a normal backup in `view`, hears its primary."""

    view: View
    replica: Index
    clock: Clock = 0


class Supports(msgspec.Struct, frozen=True, tag="supports", array_like=True, gc=False):
    """`replica`, a normal backup in `view`, supports `features` (bit f-1 is feature f): an answer to that `round`."""

    view: View
    round: Number
    features: Features
    replica: Index
    clock: Clock = 0
    seq: Number = 0


class PreVote(msgspec.Struct, frozen=True, tag="pre_vote", array_like=True, gc=False):
    """`replica`, in the view before `view`, wants that one to begin if a quorum does: it promises nothing."""

    view: View
    replica: Index
    clock: Clock = 0


class StartViewChange(msgspec.Struct, frozen=True, tag="start_view_change", array_like=True, gc=False):
    """`replica` has `view` durable and wants it to start."""

    view: View
    replica: Index
    clock: Clock = 0
    seq: Number = 0


class DoViewChange(msgspec.Struct, frozen=True, tag="do_view_change", array_like=True, gc=False):
    """The log offered to the new primary; `headers` is a window of it that ends at `op`.

    `commit` is the sender's commit_min. A longer window of the same content may be sent on request.
    """

    view: View
    log_view: View
    op: Op
    commit: Op
    headers: Headers
    replica: Index
    clock: Clock = 0
    seq: Number = 0


class StartView(msgspec.Struct, frozen=True, tag="start_view", array_like=True, gc=False):
    """The log of a started view up to `op`; `headers` is a window that ends at `op`, `commit` is the commit number.

    The sender's log is drained up to `checkpoint`; `snapshot` is the checksum of its snapshot there, of so many bytes.
    `nonce` is that of the question it answers, 0 if there was none.
    """

    view: View
    op: Op
    commit: Op
    headers: Headers
    replica: Index
    clock: Clock = 0
    seq: Number = 0
    checkpoint: Op = 0
    snapshot: Checksum = ""
    snapshot_size: Place = 0
    nonce: Number = 0


class RequestStartView(msgspec.Struct, frozen=True, tag="request_start_view", array_like=True, gc=False):
    """Asks the primary of `view` for its start_view with a window from `from_op`; the answer repeats `nonce`."""

    view: View
    from_op: Place
    replica: Index
    clock: Clock = 0
    nonce: Number = 0


class RequestDoViewChange(msgspec.Struct, frozen=True, tag="request_do_view_change", array_like=True, gc=False):
    """Asks a replica to send its do_view_change of `view` again with a window from `from_op`."""

    view: View
    from_op: Place
    replica: Index
    clock: Clock = 0


class RequestPrepare(msgspec.Struct, frozen=True, tag="request_prepare", array_like=True, gc=False):
    """Asks for bodies: `wanted` is a list of (op, checksum).

    With checksum `""` the primary of `view` is asked to send its prepare of that op in that view again. A replica that
    recovers its log of log_view `view` says in which view each was prepared (`views`, -1: not known): who never had one
    may answer with a `Nack`.
    """

    view: View
    wanted: Annotated[tuple[tuple[Place, Checksum], ...], Meta(max_length=LIST_MAX)]
    replica: Index
    clock: Clock = 0
    views: Annotated[tuple[PlaceOrNone, ...], Meta(max_length=LIST_MAX)] = ()


class PrepareResponse(msgspec.Struct, frozen=True, tag="prepare_response", array_like=True, gc=False):
    """Bodies asked for by checksum; they repair a log whose headers are known and acknowledge nothing."""

    prepares: Annotated[tuple[Prepare, ...], Meta(max_length=LIST_MAX)]
    replica: Index
    clock: Clock = 0


class Nack(msgspec.Struct, frozen=True, tag="nack", array_like=True, gc=False):
    """`replica`, changing to `view`, lacks the entry `checksum` at `op`, and acknowledges it in no view below."""

    view: View
    op: Place
    checksum: Checksum
    replica: Index
    clock: Clock = 0
    seq: Number = 0


class RequestSnapshot(msgspec.Struct, frozen=True, tag="request_snapshot", array_like=True, gc=False):
    """Asks for the snapshot of this op and checksum from byte `offset` on."""

    op: Place
    checksum: Checksum
    offset: Place
    replica: Index
    clock: Clock = 0


class SnapshotChunk(msgspec.Struct, frozen=True, tag="snapshot_chunk", array_like=True, gc=False):
    """Bytes of a snapshot from `offset` on; `data_checksum` is that of `data` (`checksum_chunk`)."""

    op: Place
    checksum: Checksum
    offset: Place
    data: Annotated[bytes, Meta(max_length=CHUNK_SIZE_MAX)]
    data_checksum: Checksum
    replica: Index
    clock: Clock = 0


class RequestSegment(msgspec.Struct, frozen=True, tag="request_segment", array_like=True, gc=False):
    """Asks for a segment of messages, or how it begins, as a snapshot names it (`ref`), from byte `offset` on."""

    ref: SegmentRef
    offset: Place
    replica: Index
    clock: Clock = 0


class SegmentChunk(msgspec.Struct, frozen=True, tag="segment_chunk", array_like=True, gc=False):
    """Bytes of the segment `ref` from `offset` on; `data_checksum` is that of `data` (`checksum_chunk`, op 0)."""

    ref: SegmentRef
    offset: Place
    data: Annotated[bytes, Meta(max_length=CHUNK_SIZE_MAX)]
    data_checksum: Checksum
    replica: Index
    clock: Clock = 0


Message: TypeAlias = (
    Prepare
    | Request
    | Reply
    | Eviction
    | PrepareOk
    | Commit
    | HeartbeatOk
    | Supports
    | PreVote
    | StartViewChange
    | DoViewChange
    | StartView
    | RequestStartView
    | RequestDoViewChange
    | RequestPrepare
    | PrepareResponse
    | Nack
    | RequestSnapshot
    | SnapshotChunk
    | RequestSegment
    | SegmentChunk
)
"""Everything that travels between replicas, and between clients and replicas."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def encode(message: Message) -> bytes:
    """The message as bytes (MessagePack array whose first item is the tag); framing is the transport's."""
    return _ENCODER.encode(message)


def decode(data: bytes) -> Message:
    """The message in `data`.

    Raises `msgspec.DecodeError` (or its subclass `msgspec.ValidationError`) if the bytes are no message.
    """
    return _DECODER.decode(data)


def checksum_prepare(
    parent: str,
    view: int,
    op: int,
    client: int,
    request: int,
    commit: int,
    body: bytes,
    session: int = 0,
    incarnation: int = 0,
    feature: int = 0,
) -> str:
    """Checksum of an entry: blake2b-128 over its parent, its numbers (little-endian u64) and its body."""
    numbers = _NUMBERS.pack(view, op, client, session, request, incarnation, feature, commit, len(body))
    return hashlib.blake2b(numbers + bytes.fromhex(parent) + body, digest_size=CHECKSUM_BYTES).hexdigest()


def register_result(incarnation: int) -> bytes:
    """The result of a register: its incarnation, little-endian u64."""
    return _INCARNATION.pack(incarnation)


def checksum_chunk(op: int, offset: int, data: bytes) -> str:
    """Checksum of a part of a snapshot: blake2b-128 over op and offset (little-endian 64 bits) and the bytes."""
    numbers = struct.pack("<QQ", op, offset)
    return hashlib.blake2b(numbers + data, digest_size=CHECKSUM_BYTES, person=b"chunk").hexdigest()


def checksum_reply(client: int, session: int, request: int, op: int, view: int, body: bytes) -> str:
    """Checksum of a reply: blake2b-128 over its numbers in this order (little-endian u64) and the result's bytes."""
    numbers = _REPLY_NUMBERS.pack(client, session, request, op, view)
    return hashlib.blake2b(numbers + body, digest_size=CHECKSUM_BYTES, person=b"reply").hexdigest()


def reply_checksum(reply: Reply) -> str:
    """The checksum of a reply as received."""
    return checksum_reply(reply.client, reply.session, reply.request, reply.op, reply.view, reply.body)


def make_header(
    *,
    parent: str,
    view: int,
    op: int,
    client: int,
    request: int,
    commit: int,
    body: bytes,
    session: int = 0,
    incarnation: int = 0,
    feature: int = 0,
) -> PrepareHeader:
    """The header of a new entry, checksum computed."""
    checksum = checksum_prepare(parent, view, op, client, request, commit, body, session, incarnation, feature)
    return PrepareHeader(checksum, parent, view, op, client, request, commit, len(body), session, incarnation, feature)


def prepare_is_valid(prepare: Prepare) -> bool:
    """True if size and checksum of the header match the body (a message or record that was not damaged)."""
    header = prepare.header
    if header.size != len(prepare.body):
        return False
    try:
        checksum = checksum_prepare(
            header.parent,
            header.view,
            header.op,
            header.client,
            header.request,
            header.commit,
            prepare.body,
            header.session,
            header.incarnation,
            header.feature,
        )
    except (ValueError, struct.error):
        return False
    return checksum == header.checksum
