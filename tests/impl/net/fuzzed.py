"""Frames that nobody should send: random bytes, and frames of every message that were mutated in bytes or in fields."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random
from typing import Any, get_args

import msgspec

from viewproof.impl.interface.messages import (
    Message,
    Prepare,
    PrepareResponse,
    RequestSegment,
    SegmentChunk,
    checksum_chunk,
    make_header,
)
from viewproof.impl.machine.partition_log import Segment
from viewproof.impl.machine.state_machine import Put, encode_operation
from viewproof.impl.net.framing import PROTOCOL_VERSION, Control, Hello, Position, frame_control, frame_message

EDGES = (-(1 << 63), -2, -1, 0, 1, 2, 63, 64, 255, 65535, 65536, (1 << 31) - 1, 1 << 32, 1 << 44, (1 << 61) - 1,
         1 << 61, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 40, (1 << 64) - 1)  # fmt: skip
BODY = encode_operation(Put(b"k", b"v"))
HEADER = make_header(parent="", view=0, op=1, client=1, request=1, commit=0, body=BODY)
PREPARE = Prepare(HEADER, BODY, replica=0, clock=1)
SEGMENT = Segment(3, 0)
SEGMENT.append(b"message")
CONTENT = bytes(SEGMENT.content)
KINDS: tuple[Any, ...] = (*get_args(Message), *get_args(Control))
MUTATIONS = 6


def _sample(kind: Any) -> Any:
    """A valid message of this kind."""
    given = {"header": HEADER, "headers": (HEADER,), "prepares": (PREPARE,), "wanted": ((1, ""),), "body": BODY}
    given |= {"role": "client", "version": PROTOCOL_VERSION, "positions": (Position(1, 0, 0, 0, 0, 0),), "peers": ()}
    given |= {"ref": SEGMENT.ref}
    plain = {int: 1, str: "", bytes: b"", bool: False}
    fields = [field for field in msgspec.structs.fields(kind) if field.required]
    return kind(**{f.name: given.get(f.name, plain.get(getattr(f.type, "__origin__", f.type))) for f in fields})


SAMPLES = [
    *(_sample(kind) for kind in KINDS),
    Hello(PROTOCOL_VERSION, 7, "replica", 2),
    PrepareResponse((PREPARE,), 1),
    RequestSegment(SEGMENT.ref, 0, 1),
    SegmentChunk(SEGMENT.ref, 0, CONTENT, checksum_chunk(0, 0, CONTENT), 1),
]
ARRAYS = [msgspec.msgpack.decode(msgspec.msgpack.encode(sample)) for sample in SAMPLES]
CONTROLS = get_args(Control)


def frames(seed: int, count: int) -> Iterator[bytes]:
    """So many frames, most of them bad."""
    random = Random(seed)
    for _ in range(count):
        yield _frame(random)


def _frame(random: Random) -> bytes:
    number = random.randrange(len(SAMPLES))
    mutation = random.randrange(MUTATIONS)
    kind = 0 if isinstance(SAMPLES[number], CONTROLS) else 1
    if mutation == 0:
        return random.randbytes(random.randrange(4, 80))
    if mutation == 1:
        payload = random.randbytes(random.randrange(1, 200))
        return struct.pack(">IB", len(payload) + 1, random.choice((0, 1, 1, 2, 255))) + payload
    if mutation == 2:
        whole = bytearray(_whole(number))
        for _ in range(random.randrange(1, 4)):
            whole[random.randrange(4, len(whole))] = random.randrange(256)
        return bytes(whole)
    if mutation == 3:
        whole = bytearray(_whole(number))
        payload = bytes(whole[5 : random.randrange(5, len(whole))])
        return struct.pack(">IB", len(payload) + 1, kind) + payload
    if mutation == 4:
        return _whole(number)
    payload = msgspec.msgpack.encode(_changed(ARRAYS[number], random))
    group = b"" if kind == 0 else random.choice((b"\0\0", b"\0\0", b"\xff\xff"))
    return struct.pack(">IB", len(group + payload) + 1, kind) + group + payload


def _whole(number: int) -> bytes:
    sample = SAMPLES[number]
    return frame_control(sample) if isinstance(sample, CONTROLS) else frame_message(sample)


def _changed(value: Any, random: Random) -> Any:
    """The same, with about one field in five replaced by something of its kind or of another."""
    if isinstance(value, list):
        if random.random() < 0.05:
            return value[: random.randrange(len(value) + 1)]
        return [_changed(item, random) for item in value]
    if random.random() > 0.2:
        return value
    if isinstance(value, int) and random.random() < 0.9:
        return random.choice(EDGES)
    return random.choice(
        (
            None,
            True,
            -1.5,
            "",
            "x" * 33,
            "0" * 32,
            b"",
            random.randbytes(40),
            [],
            [[]] * 9,
            {"a": 1},
            random.choice(EDGES),
        )
    )
