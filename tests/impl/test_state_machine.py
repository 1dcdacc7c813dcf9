"""The key-value store: deterministic results, digests that follow the contents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.checks import InvariantError, check
from viewproof.impl.interface.messages import Prepare, decode, encode, make_header, prepare_is_valid
from viewproof.impl.machine.partitions import POLL_BYTES_MAX, AppendMessages
from viewproof.impl.machine.state_machine import (
    VALUE_SIZE_MAX,
    Append,
    CompareAndSet,
    Delete,
    Done,
    Get,
    Invalid,
    Operation,
    Outcome,
    Put,
    Refused,
    Result,
    StateMachine,
    Value,
    decode_operation,
    decode_result,
    encode_operation,
)

KEYS = st.sampled_from([b"a", b"b", b"c"])
VALUES = st.binary(max_size=3)
OPERATIONS = st.one_of(
    st.builds(Put, KEYS, VALUES),
    st.builds(Append, KEYS, VALUES),
    st.builds(Delete, KEYS),
    st.builds(Get, KEYS),
    st.builds(CompareAndSet, KEYS, st.none() | VALUES, VALUES),
)


def run(machine: StateMachine, operation: Operation) -> Result:
    return decode_result(machine.apply(encode_operation(operation)))


def test_each_operation_does_what_its_name_says() -> None:
    machine = StateMachine()
    assert run(machine, Get(b"k")) == Value(None)
    assert run(machine, Put(b"k", b"1")) == Done()
    assert run(machine, Append(b"k", b"2")) == Done()
    assert run(machine, Get(b"k")) == Value(b"12")
    assert run(machine, CompareAndSet(b"k", b"1", b"x")) == Outcome(False)
    assert run(machine, CompareAndSet(b"k", b"12", b"x")) == Outcome(True)
    assert run(machine, CompareAndSet(b"new", None, b"y")) == Outcome(True)
    assert run(machine, Delete(b"k")) == Outcome(True)
    assert run(machine, Delete(b"k")) == Outcome(False)
    assert machine.store == {b"new": b"y"}


def test_no_value_grows_beyond_what_one_request_may_be() -> None:
    machine = StateMachine()
    half = bytes(VALUE_SIZE_MAX // 2)
    assert [run(machine, Append(b"k", half)) for _ in range(2)] == [Done(), Done()]
    before = machine.digest
    assert run(machine, Append(b"k", b"1")) == Refused(f"the value would be longer than {VALUE_SIZE_MAX} bytes")
    assert run(machine, Append(b"k", b"")) == Done()
    assert (machine.digest, len(machine.store[b"k"])) == (before, VALUE_SIZE_MAX)


def test_what_is_no_operation_changes_nothing() -> None:
    machine = StateMachine()
    for body in (b"", b"\xc1", b"\x92\xa3put\xc4\x01k", b"\x93\xa3xyz\xc4\x01k\xc4\x01v"):
        assert decode_result(machine.apply(body)) == Invalid()
    assert (machine.store, machine.digest) == ({}, 0)


@given(st.lists(OPERATIONS, max_size=30))
def test_the_digest_is_that_of_the_contents_however_they_came_about(operations: list[Operation]) -> None:
    machine = StateMachine()
    for operation in operations:
        assert decode_operation(encode_operation(operation)) == operation
        run(machine, operation)
    direct = StateMachine()
    for key, value in sorted(machine.store.items(), reverse=True):
        run(direct, Put(key, value))
    assert direct.digest == machine.digest
    assert (machine.digest == 0) == (not machine.store)


def test_the_digest_tells_contents_apart() -> None:
    digests = set()
    for pairs in ([(b"a", b"")], [(b"", b"a")], [(b"a", b"b")], [(b"ab", b"")], [(b"a", b""), (b"b", b"")]):
        machine = StateMachine()
        for key, value in pairs:
            run(machine, Put(key, value))
        digests.add(machine.digest)
    assert len(digests) == 5


@given(st.binary(max_size=40), st.integers(0, 2**32), st.integers(0, 40 * 8))
def test_a_prepare_with_a_flipped_bit_in_its_body_is_not_valid(body: bytes, view: int, bit: int) -> None:
    header = make_header(parent="", view=view, op=1, client=1, request=1, commit=0, body=body)
    prepare = Prepare(header, body, 2, 7, 9)
    assert prepare_is_valid(prepare)
    assert decode(encode(prepare)) == prepare
    if body:
        position = bit % (len(body) * 8)
        broken = bytearray(body)
        broken[position // 8] ^= 1 << position % 8
        assert not prepare_is_valid(Prepare(header, bytes(broken)))
    assert not prepare_is_valid(Prepare(header, body + b"x"))


def test_a_check_is_no_assert_statement_and_names_its_reason() -> None:
    check(True, "fine")
    with pytest.raises(InvariantError, match="the reason"):
        check(False, "the reason")


@given(st.binary(max_size=40))
def test_no_body_is_raised_on(body: bytes) -> None:
    assert decode_result(StateMachine().apply(body)) is not None


@pytest.mark.parametrize(
    "body",
    [
        b"\x93\xa3p\xb8t\xc4\x01k\xc4\x01v",  # a tag that is no text
        b"\x93\xa3put\xc4\x01k\xa2\xb8\xb8",  # a text where bytes belong
        encode_operation(Put(b"k", b"v")).replace(b"\x93", b"\x94", 1) + b"\x91" * 900 + b"\x90",
    ],
)
def test_what_is_no_operation_is_invalid_on_every_replica_however_deep_its_stack(body: bytes) -> None:
    def deeper(levels: int) -> bytes:
        return StateMachine().apply(body) if levels == 0 else deeper(levels - 1)

    assert {decode_result(deeper(levels)) for levels in (0, 300, 600)} == {Invalid()}


def test_a_poll_ends_with_the_message_that_brings_it_to_its_most_bytes() -> None:
    machine = StateMachine(Plane.PARTITIONS)
    half = bytes(POLL_BYTES_MAX // 2)
    for _ in range(4):
        machine.apply(encode_operation(AppendMessages(5, (half,))))
    machine.apply(encode_operation(AppendMessages(5, (bytes(POLL_BYTES_MAX - 100),))))
    assert [len(machine.partitions.read(5, offset, 9)) for offset in range(6)] == [2, 2, 2, 2, 1, 0]
