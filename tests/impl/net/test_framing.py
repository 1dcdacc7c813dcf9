"""Frames: whole ones come out however the bytes are cut; bad ones are refused with the reason."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewproof.impl.interface.messages import Commit, Request
from viewproof.impl.net.framing import (
    PROTOCOL_VERSION,
    FrameError,
    FrameReader,
    Hello,
    StatusRequest,
    frame_control,
    frame_message,
)

FRAMES = [
    Hello(PROTOCOL_VERSION, 7, "client", 9),
    Request(client=9, request=1, body=b"x" * 300, clock=4),
    StatusRequest(),
    Commit(view=1, commit=2, replica=1),
]
WIRE = b"".join(
    frame_message(frame) if isinstance(frame, Request | Commit) else frame_control(frame) for frame in FRAMES
)


@given(st.lists(st.integers(0, len(WIRE)), max_size=8))
def test_frames_come_out_whole_however_the_bytes_are_cut(cuts: list[int]) -> None:
    reader = FrameReader()
    found: list[object] = []
    places = [0, *sorted(cuts), len(WIRE)]
    for start, end in itertools.pairwise(places):
        found += reader.feed(WIRE[start:end])
    assert found == FRAMES


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (struct.pack(">I", 0), "frame of 0 bytes"),
        (struct.pack(">I", 1), "frame of 1 bytes"),
        (b"\xff\xff\xff\xff", "4294967295 bytes"),
        (b"GET / HTTP/1.1\r\n\r\n", "are allowed"),
        (struct.pack(">I", 2) + b"\x02\x00", "unknown kind 2"),
        (struct.pack(">I", 2) + b"\x01\xc1", "does not decode"),
        (struct.pack(">I", 9) + b"\x00" + b"\x92\xa5hello\x01", "does not decode"),
        (struct.pack(">I", 60) + b"\x01" + b"\x91" * 59, "does not decode"),
    ],
)
def test_bad_frames_are_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(FrameError, match=reason):
        FrameReader().feed(data)


def test_a_pickle_is_never_loaded() -> None:
    payload = pickle.dumps({"a": 1})
    for kind in (b"\x00", b"\x01"):
        with pytest.raises(FrameError):
            FrameReader().feed(struct.pack(">I", len(payload) + 1) + kind + payload)


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_frame_error(data: bytes) -> None:
    for kind in (b"\x00", b"\x01"):
        reader = FrameReader()
        with contextlib.suppress(FrameError):
            reader.feed(struct.pack(">I", len(data) + 1) + kind + data)


def test_the_size_limit_is_the_servers() -> None:
    frame = frame_message(Request(client=1, request=1, body=b"x" * 100))
    with pytest.raises(FrameError, match="2 to 64 are allowed"):
        FrameReader(64).feed(frame)
