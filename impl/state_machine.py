"""The replicated state machine: a key-value store with deterministic replies and an incremental digest.

Operations and results are MessagePack arrays of one tagged union each. Anything that is no operation gets the result
`Invalid`: the same on every replica, and it changes nothing.

The digest is a set hash over the *contents*: the sum modulo 2^128 of blake2b-128(key, value) over all pairs. It does
not depend on the order of writes, costs one or two hashes per write, and differs if any pair differs (up to collisions;
it guards against bugs, not against an adversary).
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import msgspec

DIGEST_MODULUS = 1 << 128
"""Digests are integers below this; written as 32 hexadecimal digits."""


class Put(msgspec.Struct, frozen=True, tag="put", array_like=True, gc=False):
    """Sets `key` to `value`."""

    key: bytes
    value: bytes


class Get(msgspec.Struct, frozen=True, tag="get", array_like=True, gc=False):
    """Reads `key`."""

    key: bytes


class Delete(msgspec.Struct, frozen=True, tag="delete", array_like=True, gc=False):
    """Removes `key`."""

    key: bytes


class CompareAndSet(msgspec.Struct, frozen=True, tag="cas", array_like=True, gc=False):
    """Sets `key` to `value` if its value is `expected` (None: if it is absent)."""

    key: bytes
    expected: bytes | None
    value: bytes


class Append(msgspec.Struct, frozen=True, tag="append", array_like=True, gc=False):
    """Appends `value` to the value of `key` (absent counts as empty)."""

    key: bytes
    value: bytes


Operation: TypeAlias = Put | Get | Delete | CompareAndSet | Append


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


Result: TypeAlias = Done | Value | Outcome | Invalid

_ENCODER = msgspec.msgpack.Encoder()
_OPERATION_DECODER: msgspec.msgpack.Decoder[Operation] = msgspec.msgpack.Decoder(Operation)
_RESULT_DECODER: msgspec.msgpack.Decoder[Result] = msgspec.msgpack.Decoder(Result)

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


class StateMachine:
    """The store. `digest` covers its contents; `apply` is a function of the contents and the body only."""

    __slots__ = ("digest", "store")

    def __init__(self) -> None:
        self.store: dict[bytes, bytes] = {}
        self.digest = 0

    def apply(self, body: bytes) -> bytes:
        """Applies an encoded operation and returns the encoded result; never raises on a bad body."""
        try:
            operation = _OPERATION_DECODER.decode(body)
        except msgspec.DecodeError:
            return _INVALID
        key = operation.key
        if isinstance(operation, Get):
            return _ENCODER.encode(Value(self.store.get(key)))
        if isinstance(operation, Put):
            self._set(key, operation.value)
            return _DONE
        if isinstance(operation, Append):
            self._set(key, self.store.get(key, b"") + operation.value)
            return _DONE
        if isinstance(operation, Delete):
            return _TRUE if self._remove(key) else _FALSE
        if self.store.get(key) != operation.expected:
            return _FALSE
        self._set(key, operation.value)
        return _TRUE

    def _set(self, key: bytes, value: bytes) -> None:
        self._remove(key)
        self.store[key] = value
        self.digest = (self.digest + _pair_hash(key, value)) % DIGEST_MODULUS

    def _remove(self, key: bytes) -> bool:
        value = self.store.pop(key, None)
        if value is None:
            return False
        self.digest = (self.digest - _pair_hash(key, value)) % DIGEST_MODULUS
        return True
