"""The frame is the border: what is out of range gets in nowhere, by whatever message, and is refused by name."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from tests.impl.net.raw import RawConnection, client_hello, replica_hello
from tests.impl.net.waiting import wait_for, wait_for_log
from tests.refinement.traces import load
from viewproof.impl.interface.durable import Quorums, SuperblockState, superblock_formatted
from viewproof.impl.interface.messages import (
    Commit,
    DoViewChange,
    Message,
    Prepare,
    PrepareHeader,
    PrepareOk,
    Request,
    RequestSegment,
    StartView,
    StartViewChange,
    encode,
    make_header,
)
from viewproof.impl.interface.ranges import COUNTER_MAX, HEADERS_MAX
from viewproof.impl.machine.partition_log import SegmentRef
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.framing import FrameError, FrameReader, Hello, Status, frame_message
from viewproof.impl.net.guard import jump_error
from viewproof.impl.net.recovery import recovery_superblock
from viewproof.impl.net.sync_client import SyncClient
from viewproof.impl.storage.file import MemoryFile
from viewproof.impl.storage.recover import Remedy, diagnose, reset_clock
from viewproof.impl.storage.superblock import COPIES, Superblock, SuperblockRangeError, encode_copy
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

HEADER = make_header(parent="", view=0, op=1, client=1, request=1, commit=0, body=b"")
REF = SegmentRef(1, 0, 1, 99, bytes(16), bytes(16))
SAMPLES: dict[str, Any] = {
    "header": HEADER,
    "headers": (HEADER,),
    "prepares": (),
    "wanted": (),
    "views": (),
    "ref": REF,
}
NESTED: dict[type[Any], Any] = {PrepareHeader: HEADER, SegmentRef: REF}


def sample(kind: type[Any]) -> Any:
    """A message of this kind with all that it must have."""
    of = {int: 0, str: "", bytes: b""}
    fields = msgspec.structs.fields(kind)
    given = {
        f.name: SAMPLES[f.name] if f.name in SAMPLES else of[getattr(f.type, "__origin__", f.type)]
        for f in fields
        if f.required
    }
    return kind(**given)


def numbers() -> Iterator[Any]:
    """(kind of message, field, least, most) of each integer of each message."""
    for kind in (*get_args(Message), *NESTED):
        for field in msgspec.structs.fields(kind):
            for meta in getattr(field.type, "__metadata__", ()):
                if None not in (meta.ge, meta.le):
                    yield pytest.param(kind, field.name, meta.ge, meta.le, id=f"{kind.__name__}.{field.name}")


def carried(kind: type[Any], **fields: Any) -> tuple[Message, str]:
    """A message with these fields, and how the first of them is named; what is no message is carried by one."""
    message = msgspec.structs.replace(NESTED.get(kind) or sample(kind), **fields)
    name = next(iter(fields))
    if isinstance(message, PrepareHeader):
        return Prepare(message, b""), f"Prepare.header.{name}"
    if isinstance(message, SegmentRef):
        return RequestSegment(message, 0, 0), f"RequestSegment.ref.{name}"
    return message, f"{kind.__name__}.{name}"


def test_every_integer_of_every_message_has_a_range() -> None:
    bare = [
        f"{kind.__name__}.{field.name}"
        for kind in (*get_args(Message), *NESTED)
        for field in msgspec.structs.fields(kind)
        if field.type is int
    ]
    assert not bare


@pytest.mark.parametrize(("kind", "field", "least", "most"), list(numbers()))
def test_a_number_out_of_range_is_refused_by_name(kind: type[Any], field: str, least: int, most: int) -> None:
    for inside in (least, most):
        message, _ = carried(kind, **{field: inside})
        assert FrameReader().feed(frame_message(message)) == [message]
    for outside in (least - 1, most + 1, (1 << 64) - 40):
        message, name = carried(kind, **{field: outside})
        with pytest.raises(FrameError, match="is out of range") as caught:
            FrameReader().feed(frame_message(message))
        assert caught.value.what == name
        assert name in str(caught.value)


@pytest.mark.parametrize("text", ["", "0" * 32])
def test_checksums_are_hexadecimal_digits(text: str) -> None:
    assert FrameReader().feed(frame_message(PrepareOk(0, 1, text, 1)))


@pytest.mark.parametrize("text", ["0", "g" * 32, "A" * 32, "0" * 33, "0" * 31 + "\n", "\n", "٠" * 32])
def test_other_checksums_are_refused(text: str) -> None:
    with pytest.raises(FrameError, match=r"PrepareOk\.checksum is out of range"):
        FrameReader().feed(frame_message(PrepareOk(0, 1, text, 1)))


def test_a_list_longer_than_a_message_may_have_is_refused_before_it_is_decoded() -> None:
    empty = encode(StartView(0, 0, 0, (), 1))
    claimed = empty.replace(b"\x90", b"\xdd" + (HEADERS_MAX + 1).to_bytes(4, "big"), 1)
    frame = (len(claimed) + 3).to_bytes(4, "big") + b"\x01\x00\x00" + claimed
    with pytest.raises(FrameError, match=r"StartView\.headers is out of range"):
        FrameReader().feed(frame)


class Known:
    view = 5
    op = 7
    commit_max = 9
    clock = 100


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (Request(1, 1, b"", clock=100 + (1 << 32) + 1), "Request.clock"),
        (Commit(0, 0, 1, clock=100 + (1 << 48) + 1), "Commit.clock"),
        (StartViewChange(5 + (1 << 32) + 1, 1), "StartViewChange.view"),
        (Commit(5, 9 + (1 << 44) + 1, 1), "Commit.commit"),
        (Prepare(msgspec.structs.replace(HEADER, view=COUNTER_MAX), b""), "Prepare.view"),
        (DoViewChange(5, 4, 9, 9, (msgspec.structs.replace(HEADER, op=COUNTER_MAX),), 1), "DoViewChange.op"),
    ],
)
def test_who_is_too_far_ahead_is_not_heard(message: Message, field: str) -> None:
    found = jump_error(message, Known())
    assert found is not None
    assert (found.field, "ahead of what is known" in found.text) == (field, True)


def test_who_is_as_far_ahead_as_may_be_is_heard() -> None:
    assert jump_error(Commit(5 + (1 << 32), 9 + (1 << 44), 1, clock=100 + (1 << 48)), Known()) is None
    assert jump_error(Request(1, 1, b"", clock=100 + (1 << 32)), Known()) is None


# A cluster


def test_numbers_near_the_end_of_their_range_end_nobody_and_are_durable_nowhere(tmp_path: Path) -> None:
    with Cluster(tmp_path, cluster=7) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        cluster.kill(2)
        primary = asyncio.run(cluster.primary())
        address = cluster.addresses[0 if primary is None else primary]
        forged = replica_hello(address, 2)
        cases: list[tuple[Hello, Message, str]] = [
            (client_hello(5), Request(5, 1, b"", clock=(1 << 64) - 40), "Request.clock is out of range"),
            (client_hello(5), Request(5, 1, b"", clock=(1 << 61) - 1), "dropped: Request.clock"),
            (forged, StartViewChange((1 << 64) - 2, 2), "StartViewChange.view is out of range"),
            (forged, StartViewChange(1 << 63, 2), "StartViewChange.view is out of range"),
            (forged, StartViewChange(COUNTER_MAX, 2), "dropped: StartViewChange.view"),
            (forged, Commit(0, COUNTER_MAX, 2), "dropped: Commit.commit"),
            (forged, Commit(0, 0, 2, clock=COUNTER_MAX), "dropped: Commit.clock"),
        ]
        for hello, message, reason in cases:
            with RawConnection(address, hello) as connection:
                connection.socket.sendall(frame_message(message))
                wait_for_log(cluster, 0 if primary is None else primary, reason)
        with SyncClient(cluster.addresses, 7) as client:
            for number in range(60):
                client.put(b"k", b"%d" % number)
        refused = {name for s in asyncio.run(cluster.statuses()) if s is not None for name, _ in s.refused}
        assert {"Request.clock", "StartViewChange.view", "Commit.commit", "Commit.clock"} <= refused
        cluster.start(2)
        asyncio.run(cluster.wait_ready())
        assert set(cluster.stop_all().values()) == {0}
        for replica in range(3):
            state = diagnose(cluster.data_path(replica)).agreed
            assert state is not None
            assert max(state.view, state.clock, state.head_op) < 1 << 40
    verdict = check_run("run", load(cluster.trace_directory), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)


# What is durable already


def make_durable(data: Path, **fields: int) -> SuperblockState:
    """Writes the superblock of a replica that does not run anew, as it was before ranges were checked."""
    state = diagnose(data).agreed
    assert state is not None
    changed = replace(state, **fields)  # type: ignore[arg-type]
    (data / "superblock").write_bytes(b"".join(encode_copy(changed, copy) for copy in range(COPIES)))
    return changed


def test_a_clock_out_of_range_is_refused_at_the_start_and_set_back_by_recover(tmp_path: Path) -> None:
    with Cluster(tmp_path, 1, cluster=7) as cluster:
        cluster.format()
        data = cluster.data_path(0)
        make_durable(data, clock=(1 << 64) - 40)
        cluster.start(0)
        wait_for(lambda: cluster.exit_code(0) == 2, "the replica refuses to start")
        assert "clock is 18446744073709551576; 0 to" in cluster.log_tail(0)
        assert [finding.remedy for finding in diagnose(data).findings] == [Remedy.RESET_CLOCK]
        reset_clock(diagnose(data))
        assert diagnose(data).starts
        cluster.start(0)
        asyncio.run(cluster.wait_ready())
        with SyncClient(cluster.addresses, 7) as client:
            client.put(b"k", b"v")


def test_a_view_out_of_range_is_for_the_cluster_to_mend(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, 3, cluster=7)
    cluster.format()
    data = cluster.data_path(1)
    state = make_durable(data, view=1 << 63)
    found = diagnose(data)
    assert [finding.remedy for finding in found.findings] == [Remedy.FROM_CLUSTER]
    assert found.copies == (state,) * COPIES
    with pytest.raises(SuperblockRangeError, match="view is 9223372036854775808"):
        Superblock.open(MemoryFile("superblock", (data / "superblock").read_bytes()))
    others = [
        Status(7, replica, 3, "normal", 9, 9, 4, 4, 4, 0, (), quorums=(2, 2), clients=(64, True, False))
        for replica in (0, 2)
    ]
    recovered = recovery_superblock([others[0], None, others[1]], 1, 7, 0, found.copies)
    assert (recovered.view, recovered.quorums) == (9, Quorums(2, 2))


def test_a_superblock_out_of_range_is_not_written() -> None:
    file = MemoryFile("superblock")
    block = Superblock.format(file, superblock_formatted(7, 0, 3))
    with pytest.raises(SuperblockRangeError, match="log_view is"):
        block.write(replace(block.state, sequence=2, view=COUNTER_MAX, log_view=COUNTER_MAX + 1))
    assert Superblock.open(file).state == block.state
