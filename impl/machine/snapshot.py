"""Snapshots: everything that executed entries made, at one op, as bytes (docs/clients-and-control.md, "Commit path").

The bytes are a function of the executed prefix: the same on every replica that takes one at the same op, so any of
them can be sent to a replica that lacks it. Layout, big-endian: magic (8 bytes), format version (16 bits), cluster (64
bits), op (64 bits), then a MessagePack array of `Contents`. The checksum is that of all of it, and kept elsewhere.

The messages of partitions are not in it: it names the segments that hold them, with a checksum of each.
"""

from __future__ import annotations

import hashlib
import struct

import msgspec

from viewproof.impl.interface.messages import CHECKSUM_BYTES, PrepareHeader

MAGIC = b"VSRSNAPS"
FORMAT_VERSION = 2
_HEAD = struct.Struct(">8sHQQ")
HEAD_SIZE = _HEAD.size
"""Bytes before the contents."""


class SnapshotError(ValueError):
    """The bytes are no snapshot, or not the one expected; the text says why."""


class SnapshotFormatError(SnapshotError):
    """The snapshot is of another format version."""

    def __init__(self, version: int) -> None:
        super().__init__(
            f"snapshot of format version {version}; this program reads {FORMAT_VERSION}: start the replica with the"
            " version that wrote it"
        )


class Contents(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a snapshot holds: the header of the entry at its op, and state, client table and features after that op."""

    header: PrepareHeader
    state_machine: bytes
    client_table: bytes
    features: bytes


class Snapshot(msgspec.Struct, frozen=True):
    """An encoded snapshot: `op` of its last entry, `checksum` and bytes."""

    op: int
    checksum: str
    data: bytes


_DECODER: msgspec.msgpack.Decoder[Contents] = msgspec.msgpack.Decoder(Contents)


def checksum_snapshot(data: bytes | bytearray) -> str:
    """blake2b-128 of a snapshot's bytes, 32 hexadecimal digits."""
    return hashlib.blake2b(data, digest_size=CHECKSUM_BYTES, person=b"snapshot").hexdigest()


def encode_snapshot(cluster: int, contents: Contents) -> Snapshot:
    """The snapshot of these contents."""
    op = contents.header.op
    data = _HEAD.pack(MAGIC, FORMAT_VERSION, cluster, op) + msgspec.msgpack.encode(contents)
    return Snapshot(op, checksum_snapshot(data), data)


def is_manifest_of_version_1(content: bytes) -> bool:
    """True if this is, undamaged, the file of a snapshot with partitions in format version 1."""
    start = len(_MANIFEST_1) + CHECKSUM_BYTES
    checksum = hashlib.blake2b(content[start:], digest_size=CHECKSUM_BYTES, person=b"segmentfile").digest()
    return content[:start] == _MANIFEST_1 + checksum


_MANIFEST_1 = b"VSRSNAPM"


def decode_snapshot(data: bytes, *, cluster: int | None = None, op: int | None = None) -> Contents:
    """The contents of a snapshot whose checksum was verified. Raises `SnapshotError`.

    `cluster` and `op`, if given, must be the snapshot's.
    """
    if len(data) < _HEAD.size:
        raise SnapshotError(f"{len(data)} bytes are too few for a snapshot")
    magic, version, its_cluster, its_op = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise SnapshotError(f"not a snapshot (magic {magic!r})")
    if version != FORMAT_VERSION:
        raise SnapshotFormatError(version)
    if cluster is not None and its_cluster != cluster:
        raise SnapshotError(f"snapshot of cluster {its_cluster}, expected {cluster}")
    try:
        contents = _DECODER.decode(memoryview(data)[_HEAD.size :])
    except msgspec.DecodeError as error:
        raise SnapshotError(f"the snapshot does not decode: {error}") from error
    if contents.header.op != its_op or (op is not None and its_op != op):
        raise SnapshotError(f"snapshot of op {its_op} with an entry of op {contents.header.op}, expected {op}")
    return contents
