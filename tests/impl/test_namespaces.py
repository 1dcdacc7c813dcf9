"""Namespaces pack into 64 bits with checked widths; partitions give unique, rising offsets; the state has one form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.impl.memory_source import MemorySource
from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.machine.namespaces import NAMESPACE_MAX, Namespace, NamespaceError, NamespaceLayout, bits_required
from viewproof.impl.machine.partitions import Appended, AppendMessages, Offset, Poll, Polled, ReadOffset, StoreOffset
from viewproof.impl.machine.state_machine import (
    Append,
    Delete,
    Get,
    Invalid,
    Operation,
    Outcome,
    Put,
    Refused,
    Result,
    StateError,
    StateMachine,
    decode_operation,
    decode_result,
    encode_operation,
    namespace_of,
)

NAMESPACES = st.integers(0, 3)
OPERATIONS = st.one_of(
    st.builds(Put, st.binary(max_size=2), st.binary(max_size=2)),
    st.builds(Append, st.binary(max_size=2), st.binary(max_size=2)),
    st.builds(Delete, st.binary(max_size=2)),
    st.builds(AppendMessages, NAMESPACES, st.lists(st.binary(max_size=3), min_size=1, max_size=3).map(tuple)),
    st.builds(StoreOffset, NAMESPACES, st.integers(0, 2), st.integers(0, 4)),
    st.builds(Poll, NAMESPACES, st.integers(0, 4), st.integers(0, 4)),
)


def run(machine: StateMachine, operation: Operation) -> Result:
    return decode_result(machine.apply(encode_operation(operation)))


@given(st.integers(0, 2**20 - 1), st.integers(0, 2**20 - 1), st.integers(0, 2**24 - 1))
def test_packing_and_unpacking_are_inverse_and_fill_64_bits(stream: int, topic: int, partition: int) -> None:
    layout = NamespaceLayout()
    packed = layout.pack(stream, topic, partition)
    assert 0 <= packed <= NAMESPACE_MAX
    assert layout.unpack(packed) == Namespace(stream, topic, partition)


def test_a_part_that_does_not_fit_its_width_is_refused_by_name_and_range() -> None:
    layout = NamespaceLayout(4, 8, 12)
    assert layout.pack(15, 255, 4095) == (1 << 24) - 1
    for parts, message in (
        ((16, 0, 0), r"stream must be in 0\.\.15 \(stream_bits is 4\), got 16"),
        ((0, 256, 0), r"topic must be in 0\.\.255"),
        ((0, 0, -1), r"partition must be in 0\.\.4095"),
    ):
        with pytest.raises(NamespaceError, match=message):
            layout.pack(*parts)
    with pytest.raises(NamespaceError, match=r"24 bits"):
        layout.unpack(1 << 24)


def test_widths_that_do_not_fit_are_a_configuration_error_that_says_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match=r"stream_bits 20 \+ topic_bits 20 \+ partition_bits 25 are 65 bits"):
        NamespaceLayout(20, 20, 25)
    with pytest.raises(ConfigurationError, match="topic_bits must be at least 1, got 0"):
        NamespaceLayout(8, 0, 8)
    assert [bits_required(largest) for largest in (0, 1, 2, 3, 4, (1 << 20) - 1, 1 << 20)] == [1, 1, 2, 2, 3, 20, 21]


def test_a_partition_gives_rising_offsets_and_a_second_execution_shows() -> None:
    machine = StateMachine()
    append = AppendMessages(7, (b"a", b"b"))
    assert run(machine, append) == Appended(0, 2)
    assert run(machine, AppendMessages(8, (b"x",))) == Appended(0, 1)
    assert run(machine, append) == Appended(2, 2)
    assert run(machine, Poll(7, 1, 9)) == Polled(1, (b"b", b"a", b"b"), 4)
    assert run(machine, Poll(9, 0, 9)) == Polled(0, (), 0)


def test_a_stored_offset_is_never_above_the_end_of_its_partition() -> None:
    machine = StateMachine()
    run(machine, AppendMessages(7, (b"a", b"b")))
    assert run(machine, ReadOffset(7, 1)) == Offset(None)
    assert run(machine, StoreOffset(7, 1, 3)) == Outcome(False)
    assert run(machine, StoreOffset(7, 1, 2)) == Outcome(True)
    assert run(machine, ReadOffset(7, 1)) == Offset(2)
    assert run(machine, StoreOffset(8, 1, 1)) == Outcome(False)


def test_numbers_out_of_range_make_an_operation_invalid() -> None:
    machine = StateMachine()
    for operation in (
        AppendMessages(-1, (b"a",)),
        AppendMessages(3, ()),
        Poll(1, -1, 1),
        Poll(1, 0, -1),
        StoreOffset(1, -1, 0),
        StoreOffset(1, 0, -1),
        ReadOffset(1, -1),
    ):
        assert run(machine, operation) == Invalid()
    assert machine.digest == 0


def test_an_operation_of_another_plane_is_refused_and_changes_nothing() -> None:
    metadata, partitions = StateMachine(Plane.METADATA), StateMachine(Plane.PARTITIONS)
    refused = run(metadata, AppendMessages(1, (b"a",)))
    assert refused == Refused("append_messages belongs to the group of the plane partitions")
    assert run(partitions, Put(b"k", b"v")) == Refused("put belongs to the group of the plane metadata")
    assert metadata.digest == partitions.digest == 0
    assert run(metadata, Get(b"k")) != refused
    assert run(partitions, AppendMessages(1, (b"a",))) == Appended(0, 1)


@given(st.lists(OPERATIONS, max_size=30))
def test_equal_contents_have_equal_bytes_and_digests_however_they_came_about(operations: list[Operation]) -> None:
    machine = StateMachine()
    for operation in operations:
        assert decode_operation(encode_operation(operation)) == operation
        run(machine, operation)
    data = machine.to_bytes()
    restored = StateMachine.from_bytes(data, source=MemorySource(machine.partitions.held()))
    assert (restored.to_bytes(), restored.digest) == (data, machine.digest)
    run(machine, Put(b"zz", b"1"))
    run(restored, Put(b"zz", b"1"))
    assert (restored.to_bytes(), restored.digest) == (machine.to_bytes(), machine.digest)


def test_bytes_that_are_no_canonical_state_are_refused() -> None:
    machine = StateMachine()
    run(machine, Put(b"a", b"1"))
    run(machine, Put(b"b", b"2"))
    good = machine.to_bytes()
    with pytest.raises(StateError, match="does not decode"):
        StateMachine.from_bytes(good[:-1])
    swapped = good.replace(b"\xc4\x01a\xc4\x011", b"\xc4\x01z\xc4\x011")
    with pytest.raises(StateError, match="a key is out of order"):
        StateMachine.from_bytes(swapped)


def test_the_namespace_of_a_body_is_read_without_decoding_the_messages() -> None:
    assert namespace_of(encode_operation(AppendMessages(NAMESPACE_MAX, (b"a",)))) == NAMESPACE_MAX
    assert namespace_of(encode_operation(Poll(5, 0, 1))) == 5
    assert namespace_of(encode_operation(Put(b"k", b"v"))) == 0
    assert namespace_of(b"") == namespace_of(b"\xc1") == 0


def test_a_stored_offset_may_go_back_and_a_group_has_its_own() -> None:
    machine = StateMachine()
    run(machine, AppendMessages(7, (b"a", b"b")))
    for consumer, offset, group in ((1, 2, False), (1, 1, False), (1, 0, True), (2, 2, False)):
        assert run(machine, StoreOffset(7, consumer, offset, group)) == Outcome(True)
    assert run(machine, ReadOffset(7, 2, True)) == Offset(None)
    for consumer, group, stored in ((1, False, 1), (1, True, 0), (2, False, 2)):
        assert run(machine, ReadOffset(7, consumer, group)) == Offset(stored)
