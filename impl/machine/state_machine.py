"""The replicated state machine: a key-value store and partitions, with deterministic replies and a digest.

Operations and results are MessagePack arrays of one tagged union each. Anything that is no operation gets the result
`Invalid`, an operation of another plane `Refused`: the same on every replica, and it changes nothing.

The digest is a set hash over the *contents*: the sum modulo 2^128 of a blake2b-128 over every key with its value, every
message with its offset and every stored offset. It does not depend on the order of writes, costs one or two hashes per
write, and differs if any item differs (up to collisions; it guards against bugs, not against an adversary).
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TypeAlias, TypeVar

import msgspec

from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.ranges import BODY_SIZE_MAX
from viewproof.impl.machine.partition_log import SEGMENT_BYTES, SegmentError, SegmentRef, SegmentSource
from viewproof.impl.machine.partitions import (
    Appended,
    AppendMessages,
    Offset,
    PartitionOperation,
    Partitions,
    Poll,
    Polled,
    StoreOffset,
    is_well_formed,
)

VALUE_SIZE_MAX = BODY_SIZE_MAX
"""Longest value, bytes: who reads it gets it in one reply, which the client table and the next snapshot keep."""

DIGEST_MODULUS = 1 << 128
"""Digests are integers below this; written as 32 hexadecimal digits."""


class Put(msgspec.Struct, frozen=True, tag="put", array_like=True, gc=False, forbid_unknown_fields=True):
    """Sets `key` to `value`."""

    key: bytes
    value: bytes


class Get(msgspec.Struct, frozen=True, tag="get", array_like=True, gc=False, forbid_unknown_fields=True):
    """Reads `key`."""

    key: bytes


class Delete(msgspec.Struct, frozen=True, tag="delete", array_like=True, gc=False, forbid_unknown_fields=True):
    """Removes `key`."""

    key: bytes


class CompareAndSet(msgspec.Struct, frozen=True, tag="cas", array_like=True, gc=False, forbid_unknown_fields=True):
    """Sets `key` to `value` if its value is `expected` (None: if it is absent)."""

    key: bytes
    expected: bytes | None
    value: bytes


class Append(msgspec.Struct, frozen=True, tag="append", array_like=True, gc=False, forbid_unknown_fields=True):
    """Appends `value` to the value of `key` (absent counts as empty); refused if that is above `VALUE_SIZE_MAX`."""

    key: bytes
    value: bytes


KeyOperation: TypeAlias = Put | Get | Delete | CompareAndSet | Append

Operation: TypeAlias = KeyOperation | PartitionOperation


class Done(msgspec.Struct, frozen=True, tag="done", array_like=True, gc=False):
    """A put or append was applied."""


class Value(msgspec.Struct, frozen=True, tag="value", array_like=True, gc=False):
    """What a get read; None if the key is absent."""

    value: bytes | None


class Outcome(msgspec.Struct, frozen=True, tag="outcome", array_like=True, gc=False):
    """Of a delete: the key was there. Of a cas: the value was as expected and has been set."""

    success: bool


class Invalid(msgspec.Struct, frozen=True, tag="invalid", array_like=True, gc=False):
    """The body was no operation."""


class Refused(msgspec.Struct, frozen=True, tag="refused", array_like=True, gc=False):
    """Nothing was done, and nothing will be: the operation belongs to another plane than this group's, or would make a
    value too long; `reason` says so.
    """

    reason: str


Result: TypeAlias = Done | Value | Outcome | Invalid | Refused | Appended | Polled | Offset

_ENCODER = msgspec.msgpack.Encoder()
_OPERATION_DECODER: msgspec.msgpack.Decoder[Operation] = msgspec.msgpack.Decoder(Operation)
_RESULT_DECODER: msgspec.msgpack.Decoder[Result] = msgspec.msgpack.Decoder(Result)

_NO_OPERATION = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What the decoder raises. Operations have no field of unknown depth, so none of it depends on the caller's stack."""

_DONE = _ENCODER.encode(Done())
_TRUE = _ENCODER.encode(Outcome(True))
_FALSE = _ENCODER.encode(Outcome(False))
_INVALID = _ENCODER.encode(Invalid())


def encode_operation(operation: Operation) -> bytes:
    """The body of a request."""
    return _ENCODER.encode(operation)


def decode_operation(body: bytes) -> Operation:
    """The operation of a request's body. Raises `msgspec.DecodeError`."""
    return _OPERATION_DECODER.decode(body)


def decode_result(body: bytes) -> Result:
    """The result in a reply's body. Raises `msgspec.DecodeError`."""
    return _RESULT_DECODER.decode(body)


def _pair_hash(key: bytes, value: bytes) -> int:
    data = len(key).to_bytes(8, "little") + key + value
    return int.from_bytes(hashlib.blake2b(data, digest_size=16, person=b"kv").digest(), "little")


class StateError(ValueError):
    """The bytes of a snapshot are not those of a state; the text says why."""


class State(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The contents as plain values, each list rising: the encoded form of a state machine.

    `partitions`: the segments of each namespace by what they hold (`impl.machine.partition_log`). `offsets`: namespace,
    whether the reader is a consumer group, its number, stored offset.
    """

    pairs: list[tuple[bytes, bytes]]
    partitions: list[tuple[int, list[SegmentRef]]]
    offsets: list[tuple[int, bool, int, int]]


_STATE_DECODER: msgspec.msgpack.Decoder[State] = msgspec.msgpack.Decoder(State)


def decode_state(data: bytes) -> State:
    """The values in a state's bytes; nothing else is verified. Raises `StateError`."""
    try:
        return _STATE_DECODER.decode(data)
    except _NO_OPERATION as error:
        raise StateError(f"the state does not decode: {error}") from error


def encode_state(state: State) -> bytes:
    """The bytes of these values."""
    return _ENCODER.encode(state)


class StateMachine:
    """The store and the partitions. `apply` is a function of the contents, the plane and the body only.

    With `namespace` it takes operations of that partition alone. `source`: where it reads segments that are not in
    memory any more; whatever that is, they are the same.
    """

    __slots__ = ("_store_digest", "namespace", "partitions", "plane", "store")

    def __init__(
        self,
        plane: Plane = Plane.SINGLE,
        segment_bytes: int = SEGMENT_BYTES,
        namespace: int | None = None,
        source: SegmentSource | None = None,
    ) -> None:
        self.plane = plane
        self.namespace = namespace
        self.store: dict[bytes, bytes] = {}
        self.partitions = Partitions(segment_bytes, source)
        self._store_digest = 0

    @property
    def digest(self) -> int:
        """Digest of the contents, below `DIGEST_MODULUS`; 0 if there are none."""
        return (self._store_digest + self.partitions.digest) % DIGEST_MODULUS

    def apply(self, body: bytes) -> bytes:
        """Applies an encoded operation and returns the encoded result; never raises on a bad body.

        Raises `SegmentLostError` if a poll asks for messages that cannot be read; nothing is changed then.
        """
        try:
            operation = _OPERATION_DECODER.decode(body)
        except _NO_OPERATION:
            return _INVALID
        if isinstance(operation, PartitionOperation):
            if self.plane is Plane.METADATA:
                return _refused(operation, Plane.PARTITIONS)
            if self.namespace not in (None, operation.namespace):
                return _ENCODER.encode(Refused(f"namespace {operation.namespace} belongs to another group"))
            return _ENCODER.encode(self._apply_to_partition(operation)) if is_well_formed(operation) else _INVALID
        if self.plane is Plane.PARTITIONS:
            return _refused(operation, Plane.METADATA)
        return self._apply_to_store(operation)

    def _apply_to_store(self, operation: KeyOperation) -> bytes:
        key = operation.key
        if isinstance(operation, Get):
            return _ENCODER.encode(Value(self.store.get(key)))
        if isinstance(operation, Put):
            self._set(key, operation.value)
            return _DONE
        if isinstance(operation, Append):
            before = self.store.get(key, b"")
            if len(before) + len(operation.value) > VALUE_SIZE_MAX:
                return _ENCODER.encode(Refused(f"the value would be longer than {VALUE_SIZE_MAX} bytes"))
            self._set(key, before + operation.value)
            return _DONE
        if isinstance(operation, Delete):
            return _TRUE if self._remove(key) else _FALSE
        if self.store.get(key) != operation.expected:
            return _FALSE
        self._set(key, operation.value)
        return _TRUE

    def _apply_to_partition(self, operation: PartitionOperation) -> Result:
        partitions, namespace = self.partitions, operation.namespace
        if isinstance(operation, AppendMessages):
            return Appended(partitions.append(namespace, operation.messages), len(operation.messages))
        if isinstance(operation, Poll):
            return partitions.poll(namespace, operation.offset, operation.count)
        if isinstance(operation, StoreOffset):
            return Outcome(partitions.store_offset((namespace, operation.group, operation.consumer), operation.offset))
        return Offset(partitions.offsets.get((namespace, operation.group, operation.consumer)))

    def _set(self, key: bytes, value: bytes) -> None:
        self._remove(key)
        self.store[key] = value
        self._store_digest = (self._store_digest + _pair_hash(key, value)) % DIGEST_MODULUS

    def _remove(self, key: bytes) -> bool:
        value = self.store.pop(key, None)
        if value is None:
            return False
        self._store_digest = (self._store_digest - _pair_hash(key, value)) % DIGEST_MODULUS
        return True

    def to_bytes(self) -> bytes:
        """The contents in canonical form: equal contents give equal bytes, however they came about."""
        partitions = self.partitions
        logs = sorted(partitions.logs.items())
        state = State(
            sorted(self.store.items()),
            [(namespace, log.refs) for namespace, log in logs],
            [(*reader, offset) for reader, offset in sorted(partitions.offsets.items())],
        )
        return encode_state(state)

    @classmethod
    def from_bytes(
        cls,
        data: bytes,
        plane: Plane = Plane.SINGLE,
        segment_bytes: int = SEGMENT_BYTES,
        namespace: int | None = None,
        source: SegmentSource | None = None,
    ) -> StateMachine:
        """The state machine of these contents. Raises `StateError` if the bytes are not canonical contents.

        Raises `SegmentLostError` if the last segment of a partition cannot be read from `source`.
        """
        state = decode_state(data)
        _check_rising("key", [key for key, _ in state.pairs])
        _check_rising("namespace", [namespace for namespace, _ in state.partitions])
        _check_rising("consumer", [reader for *reader, _ in state.offsets])
        machine = cls(plane, segment_bytes, namespace, source)
        for key, value in state.pairs:
            machine._set(key, value)
        for number, refs in state.partitions:
            try:
                machine.partitions.restore(number, refs)
            except SegmentError as error:
                raise StateError(f"the state is not one: {error}") from error
        for number, group, consumer, offset in state.offsets:
            if not machine.partitions.store_offset((number, group, consumer), offset):
                raise StateError(
                    f"the state is not one: offset {offset} of {'group' if group else 'consumer'} {consumer} is above"
                    f" the end of namespace {number}"
                )
        return machine


_KeyT = TypeVar("_KeyT", int, bytes, list[int])


def _check_rising(name: str, keys: list[_KeyT]) -> None:
    if any(before >= after for before, after in pairwise(keys)):
        raise StateError(f"the state is not canonical: a {name} is out of order, or there twice")


def _refused(operation: Operation, plane: Plane) -> bytes:
    name = type(operation).__struct_config__.tag
    return _ENCODER.encode(Refused(f"{name} belongs to the group of the plane {plane.value}"))


_APPENDED = b"\x93\xa8appended"
"""How the encoded result of an append begins."""
_APPENDED_DECODER: msgspec.msgpack.Decoder[Appended] = msgspec.msgpack.Decoder(Appended)


def appended_of(body: bytes, result: bytes) -> tuple[int, Appended] | None:
    """Namespace and result of an executed append; None of another operation."""
    return (namespace_of(body), _APPENDED_DECODER.decode(result)) if result.startswith(_APPENDED) else None


def stored_of(body: bytes, result: bytes) -> tuple[StoreOffset, bool] | None:
    """An executed operation that stores an offset, and whether it did; None of another operation."""
    if result not in (_TRUE, _FALSE):
        return None
    operation = _OPERATION_DECODER.decode(body)
    return (operation, result == _TRUE) if isinstance(operation, StoreOffset) else None


class _Namespaced(msgspec.Struct, array_like=True):
    tag: str
    namespace: int


_NAMESPACED_DECODER: msgspec.msgpack.Decoder[_Namespaced] = msgspec.msgpack.Decoder(_Namespaced)


def namespace_of(body: bytes) -> int:
    """The namespace of an encoded operation; 0 of one that has none, and of what is no operation."""
    try:
        operation = _NAMESPACED_DECODER.decode(body)
    except _NO_OPERATION:
        return 0
    return operation.namespace
