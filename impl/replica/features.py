"""Features that the cluster has enabled, and what each of them does (seed 001; docs/clients-and-control.md).

Feature 1, `database_checksum`: from the op of its control entry on, a checksum is chained over the executed entries and
the state after each of them: checksum' = blake2b-128(checksum, {entry, op, state}). A replica whose state ever
differed from the others' keeps a different checksum for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import msgspec

from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.interface.messages import CHECKSUM_BYTES, PrepareHeader
from viewproof.impl.machine.state_machine import StateError

DATABASE_CHECKSUM = 1

FEATURES: dict[int, str] = {DATABASE_CHECKSUM: "database_checksum"}
"""Features that this version implements, by number."""

FEATURE_MAX = 63
"""Largest feature number: a set of features is a bitmask in a signed 64-bit column."""

FEATURES_ANY = (1 << FEATURE_MAX) - 1
"""Bitmask of all features that there can be: for tools that only look."""

SUPPORTS_ALL = sum(1 << feature - 1 for feature in FEATURES)
"""Bitmask of the features that this version implements."""


def feature_numbers(mask: int) -> Iterator[int]:
    """The features in a bitmask, rising."""
    return (feature for feature in range(1, FEATURE_MAX + 1) if mask >> feature - 1 & 1)


def parse_features(names: Iterable[str]) -> int:
    """The bitmask of features given by name or number. Raises `ConfigurationError` for one this version lacks."""
    by_name = {name: feature for feature, name in FEATURES.items()} | {str(feature): feature for feature in FEATURES}
    mask = 0
    for name in names:
        feature = by_name.get(name)
        if feature is None:
            known = ", ".join(f"{name} ({feature})" for feature, name in FEATURES.items())
            raise ConfigurationError(f"unknown feature {name!r}; this version implements {known}")
        mask |= 1 << feature - 1
    return mask


class UnknownEntryError(ValueError):
    """The log holds an entry that this replica cannot apply; the text names its op and the remedy."""


def require_supported(ops: Mapping[int, int], supports: int) -> None:
    """Raises `UnknownEntryError` for a feature, enabled at its op in `ops`, that the bitmask `supports` lacks."""
    for feature, op in sorted(ops.items()):
        if not supports >> feature - 1 & 1:
            known = FEATURES.get(feature, "unknown to this version")
            raise UnknownEntryError(
                f"op {op} enables feature {feature} ({known}), which this replica does not support: start it with a"
                " version and a configuration that support it"
            )


class FeatureState:
    """Enabled features with the ops they became active at, and the database checksum.

    A function of the executed prefix; `checksum` is "" until feature 1 is active, and chained from op `chain_from` on
    (0: not yet). `digest` is below 2^128, and 0 while no feature is enabled.
    """

    __slots__ = ("chain_from", "checksum", "digest", "mask", "ops")

    def __init__(self) -> None:
        self.ops: dict[int, int] = {}
        self.mask = 0
        self.checksum = ""
        self.chain_from = 0
        self.digest = 0

    def enable(self, feature: int, op: int) -> None:
        """Enables `feature` at `op`; nothing happens if it is enabled."""
        if feature in self.ops:
            return
        self.ops[feature] = op
        self.mask |= 1 << feature - 1
        self._update_digest()

    def on_executed(self, header: PrepareHeader, state_digest: int) -> None:
        """An entry was executed: the features that are active do their work."""
        if not self.chains:
            return
        fields: dict[str, str | int] = {"entry": header.checksum, "op": header.op, "state": f"{state_digest:032x}"}
        data = bytes.fromhex(self.checksum) + msgspec.msgpack.encode(
            [(name, fields[name]) for name in self.hashing_order(fields)]
        )
        self.checksum = hashlib.blake2b(data, digest_size=CHECKSUM_BYTES, person=b"database").hexdigest()
        self.chain_from = self.chain_from or header.op
        self._update_digest()

    @property
    def chains(self) -> bool:
        """True if executed entries are chained into the database checksum."""
        return DATABASE_CHECKSUM in self.ops

    def hashing_order(self, fields: Iterable[str]) -> list[str]:
        """The names of what is hashed, in the same order everywhere."""
        return sorted(fields)

    def _update_digest(self) -> None:
        self.digest = int.from_bytes(hashlib.blake2b(self.to_bytes(), digest_size=16, person=b"features").digest())

    def to_bytes(self) -> bytes:
        """Canonical form, part of a snapshot: features rising with their ops, then the checksum."""
        return msgspec.msgpack.encode((sorted(self.ops.items()), self.checksum))

    @classmethod
    def from_bytes(cls, data: bytes) -> FeatureState:
        """The state in `data`. Raises `StateError` if the bytes are not canonical."""
        try:
            pairs, checksum = msgspec.msgpack.decode(data, type=tuple[list[tuple[int, int]], str])
        except msgspec.DecodeError as error:
            raise StateError(f"the enabled features do not decode: {error}") from error
        if any(before >= after for before, after in pairwise(feature for feature, _ in pairs)):
            raise StateError("the enabled features are not canonical: one is out of order, or there twice")
        if not all(1 <= feature <= FEATURE_MAX and op >= 1 for feature, op in pairs):
            raise StateError(f"the enabled features are out of range 1..{FEATURE_MAX}, or their ops below 1")
        if len(checksum) not in (0, 2 * CHECKSUM_BYTES) or set(checksum) - set("0123456789abcdef"):
            raise StateError(f"the database checksum is {checksum!r}, not {2 * CHECKSUM_BYTES} hexadecimal digits")
        enabled = any(feature == DATABASE_CHECKSUM for feature, _ in pairs)
        if enabled != bool(checksum):
            raise StateError(
                "feature 1 (database_checksum) is enabled, and there is no checksum"
                if enabled
                else "there is a database checksum, and feature 1 (database_checksum) is not enabled"
            )
        state = cls()
        state.ops = dict(pairs)
        state.mask = sum(1 << feature - 1 for feature in state.ops)
        state.checksum = checksum
        state.chain_from = state.ops.get(DATABASE_CHECKSUM, 0)
        if pairs:
            state._update_digest()
        return state
