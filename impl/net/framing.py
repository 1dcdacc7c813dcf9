"""Frames on a TCP connection: a 4-byte big-endian length, one byte of kind, and what the kind says.

Kind 0 carries one of the structs below, in MessagePack. Kind 1 carries a message of the protocol
(impl/interface/messages.py): the number of its consensus group (2 bytes, big-endian; impl/groups/group.py), then the
message in MessagePack. The first frame in each direction is a ``Hello``. Nothing is ever unpickled or evaluated; a
frame that is too long, of unknown kind, or does not decode raises FrameError, and the connection is closed with the
reason logged.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from typing import Annotated, TypeAlias, get_args

import msgspec
from msgspec import Meta

from viewproof.impl.interface.messages import Message, PrepareHeader, decode, encode
from viewproof.impl.interface.ranges import BODY_SIZE_MAX, Index, Number, Place, PlaceOrNone, Reason
from viewproof.impl.machine.partition_log import SegmentRef
from viewproof.impl.net.configuration import Configuration

__all__ = [
    "CLIENT_FRAME_SIZE_MAX",
    "FRAME_SIZE_MAX",
    "HELLO_SIZE_MAX",
    "PROTOCOL_VERSION",
    "Control",
    "FrameError",
    "FrameReader",
    "Goodbye",
    "Hello",
    "Holds",
    "NotPrimary",
    "Position",
    "Status",
    "StatusRequest",
    "frame_control",
    "frame_message",
]

PROTOCOL_VERSION = 6
FRAME_SIZE_MAX = 1 << 26
"""Largest frame without its length, bytes."""

CLIENT_FRAME_SIZE_MAX = BODY_SIZE_MAX + (1 << 10)
"""Largest frame from a client, bytes."""

HELLO_SIZE_MAX = 1 << 16
"""Largest frame of who has not said hello yet, bytes."""

ADDRESSES_MAX = 1 << 10
POSITIONS_MAX = 1 << 12

_LENGTH = struct.Struct(">I")
_MESSAGE_HEAD = struct.Struct(">IBH")  # length, kind, group
_GROUP = struct.Struct(">H")
NO_GROUP = -1
"""Where the group of a control frame stands in ``feed_routed``: it has none."""

_KIND_CONTROL = 0
_KIND_MESSAGE = 1


class FrameError(ValueError):
    """What came on a connection is not what the protocol allows; the text says how, ``what`` names it for counting."""

    def __init__(self, text: str, what: str = "frame") -> None:
        super().__init__(text)
        self.what = what


class Position(msgspec.Struct, frozen=True, array_like=True):
    """What a data directory holds, durably: none that was seen later may hold less, unless it was recovered since.

    ``op``: the last one of its log of ``log_view``, -1 if that is not known. ``recoveries``: how often it was put back.
    ``incarnation``: of the process that said so.
    """

    replica: Index
    group: Index
    recoveries: Number
    view: Place
    log_view: Place
    op: PlaceOrNone
    incarnation: Number = 0


Positions: TypeAlias = Annotated[tuple[Position, ...], Meta(max_length=POSITIONS_MAX)]


class Holds(msgspec.Struct, frozen=True, tag="holds", array_like=True):
    """From time to time, what a replica holds, and what it heard that the others do."""

    positions: Positions


class Hello(msgspec.Struct, frozen=True, tag="hello", array_like=True, forbid_unknown_fields=True):
    """First frame: who is speaking. ``role`` is "replica" or "client", ``number`` its replica index or client id.

    A client that only asks for the status may use number 0. Role "clients" (number 0): requests of several clients
    come on this connection; each is answered on the connection of its latest request. ``sessions``, of a replica:
    clients register before their first request. A replica also says which of its processes it is, how it is configured,
    which addresses it knows, and what it and, as it has heard, the others hold.
    """

    version: int
    cluster: int
    role: Reason
    number: Number
    sessions: bool = False
    incarnation: Number = 0
    configuration: Configuration | None = None
    addresses: Annotated[tuple[Reason, ...], Meta(max_length=ADDRESSES_MAX)] = ()
    positions: Positions = ()


class Goodbye(msgspec.Struct, frozen=True, tag="goodbye", array_like=True):
    """Last frame of a side that closes the connection, with the reason. ``temporary``: the other side may come back.

    ``stops``: the process ends, and why.
    """

    reason: Reason
    temporary: bool = False
    stops: bool = False


class NotPrimary(msgspec.Struct, frozen=True, tag="not_primary", array_like=True):
    """Answer to a request that this replica cannot take: its view and status, a hint where to go."""

    client: int
    request: int
    view: int
    status: str
    group: int = 0


class StatusRequest(msgspec.Struct, frozen=True, tag="status_request", array_like=True):
    """Asks for the Status of a group; None: of the first one that the process runs."""

    group: int | None = None


class Status(msgspec.Struct, frozen=True, tag="status", array_like=True):
    """What a replica says of itself; ``journal_bytes`` is the size of its journal, ``peers`` those connected to.

    ``journal_writes``: appends of this process to its journal, each of one entry or several. ``groups``: the numbers
    of all groups of the process, ``group`` the one that this is of; ``features``: enabled ones, bit f-1 is feature f.
    ``quorums`` (replication, view change) and ``clients`` (slots, sessions, gaps) are those of its superblock.
    ``group_name`` is the group's name, ``checkpoint`` the op of its durable checkpoint, 0 if there is none;
    ``recoveries``: how often `vsr recover` put it back. ``refused`` counts what the process did not take from its
    connections, by name; ``connections``: those of replicas and of clients that it has, and the most of clients.
    ``problems``: what is wrong between it and other replicas; ``notices``: what will be, if nothing is done;
    ``configuration``: digest of what must be the same on all; ``heard``: what it heard the others to hold.
    ``digest``: of all that it executed, up to ``commit_min``; ``checksum``: the database checksum there, "" until the
    feature is active. ``namespace_bits``: widths of stream, topic and partition in the name of a partition.
    """

    cluster: int
    replica: int
    replica_count: int
    status: str
    view: int
    log_view: int
    op: int
    commit_min: int
    commit_max: int
    journal_bytes: int
    peers: tuple[int, ...]
    journal_writes: int = 0
    group: int = 0
    groups: tuple[int, ...] = ()
    features: int = 0
    quorums: tuple[int, int] = (0, 0)
    clients: tuple[int, bool, bool] = (0, False, False)
    group_name: str = ""
    checkpoint: int = 0
    recoveries: int = 0
    refused: tuple[tuple[str, int], ...] = ()
    connections: tuple[int, int, int] = (0, 0, 0)
    problems: tuple[str, ...] = ()
    configuration: str = ""
    heard: tuple[Position, ...] = ()
    digest: str = ""
    checksum: str = ""
    namespace_bits: tuple[int, int, int] = (20, 20, 24)
    notices: tuple[str, ...] = ()

    @property
    def is_primary(self) -> bool:
        """True if it is normal, and the primary of its view."""
        return self.status == "normal" and self.view % self.replica_count == self.replica


Control: TypeAlias = Hello | Goodbye | NotPrimary | StatusRequest | Status | Holds

_CONTROL_ENCODER = msgspec.msgpack.Encoder()
_CONTROL_DECODER: msgspec.msgpack.Decoder[Control] = msgspec.msgpack.Decoder(Control)
_MESSAGES: tuple[type[msgspec.Struct], ...] = get_args(Message)
_CONTROLS: tuple[type[msgspec.Struct], ...] = get_args(Control)
_TAG_AT_MOST = 40


def frame_message(message: Message, group: int = 0) -> bytes:
    """A protocol message of a group as one frame."""
    payload = encode(message)
    return _MESSAGE_HEAD.pack(len(payload) + 3, _KIND_MESSAGE, group) + payload


def frame_control(control: Control) -> bytes:
    """A control struct as one frame."""
    payload = _CONTROL_ENCODER.encode(control)
    return _LENGTH.pack(len(payload) + 1) + b"\x00" + payload


class FrameReader:
    """Turns the bytes of one connection into frames. After a FrameError it must not be used again.

    ``group`` is the only one that messages may be of, where ``feed`` is used. ``frame_size_max`` may be changed between
    two frames; ``held``: bytes that wait here for the rest of their frame.
    """

    def __init__(self, frame_size_max: int = FRAME_SIZE_MAX, group: int = 0) -> None:
        self.frame_size_max = frame_size_max
        self._buffer = bytearray()
        self._group = group

    @property
    def held(self) -> int:
        """Bytes of a frame that is not whole yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Message | Control]:
        """All frames that ``data`` completes. Raises FrameError on the first bad one, or one of another group."""
        frames: list[Message | Control] = []
        for group, frame in self.feed_routed(data):
            if group not in (NO_GROUP, self._group):
                raise FrameError(f"a {type(frame).__name__} of group {group} on a connection to group {self._group}")
            frames.append(frame)
        return frames

    def feed_routed(self, data: bytes) -> Iterator[tuple[int, Message | Control]]:
        """The frames that ``data`` completes, one by one, with the group of each. Raises FrameError on a bad one."""
        buffer = self._buffer
        source: bytes | bytearray = data
        if buffer:
            buffer += data
            source = buffer
        position, size = 0, len(source)
        while size - position >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(source, position)
            if not 2 <= length <= self.frame_size_max:
                raise FrameError(f"frame of {length} bytes; 2 to {self.frame_size_max} are allowed")
            start, end = position + _LENGTH.size + 1, position + _LENGTH.size + length
            if size < end:
                break
            yield _decode(source[start - 1], source[start:end])
            position = end
        if buffer:
            del buffer[:position]
        elif position < size:
            buffer += data[position:]


def _decode(kind: int, payload: bytes | bytearray) -> tuple[int, Message | Control]:
    try:
        if kind == _KIND_MESSAGE:
            return _GROUP.unpack_from(payload)[0], decode(bytes(payload[_GROUP.size :]))
        if kind == _KIND_CONTROL:
            return NO_GROUP, _CONTROL_DECODER.decode(payload)
    except msgspec.ValidationError as error:
        kinds, start = (_MESSAGES, _GROUP.size) if kind == _KIND_MESSAGE else (_CONTROLS, 0)
        field, text = _named(error, bytes(payload[start:]), kinds)
        raise FrameError(f"frame of {len(payload)} bytes: {text}", field) from error
    except (struct.error, msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise FrameError(f"frame of kind {kind} and {len(payload)} bytes does not decode: {error}") from error
    raise FrameError(f"frame of unknown kind {kind}")


_PLACES = re.compile(r"^(.*) - at `\$((?:\[(?:\d+|\.\.\.)\])+)`$")


_NESTED: dict[str, type] = {"header": PrepareHeader, "headers": PrepareHeader, "ref": SegmentRef}
"""Fields of messages that have fields of their own."""


def _named(error: msgspec.ValidationError, payload: bytes, kinds: Sequence[type[msgspec.Struct]]) -> tuple[str, str]:
    """The field, and what is wrong with it: the library names places in arrays only."""
    text = str(error)
    found = _PLACES.match(text)
    head = payload[:_TAG_AT_MOST]
    kind = next((one for one in kinds if head[1:].startswith(_tag(one)) or head[3:].startswith(_tag(one))), None)
    if found is None or kind is None:
        return "frame", f"does not decode: {text}"
    name, shift = kind.__name__, 1
    for place in re.findall(r"\d+|\.\.\.", found[2]):
        if kind is None or place == "...":
            continue
        fields = msgspec.structs.fields(kind)
        if not 0 <= int(place) - shift < len(fields):
            return name, f"does not decode: {name}: {text}"
        field = fields[int(place) - shift]
        name, shift = f"{name}.{field.name}", 0
        kind = _NESTED.get(field.name)
    return name, f"{name} is out of range: {found[1]}"


def _tag(kind: type[msgspec.Struct]) -> bytes:
    return msgspec.msgpack.encode(kind.__struct_config__.tag)
