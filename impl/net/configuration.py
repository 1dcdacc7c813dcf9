"""What all replicas of a cluster must be configured with alike, as each says it in its hello.

Each of these, different on one replica, once made it lose what the others had acknowledged, or diverge from them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from viewproof.impl.groups.group import NAMESPACES, group_name
from viewproof.impl.interface.durable import SuperblockState
from viewproof.impl.machine.namespaces import NamespaceLayout
from viewproof.impl.machine.snapshot import FORMAT_VERSION as SNAPSHOT_FORMAT
from viewproof.impl.net.address import Address, address_text

__all__ = ["Configuration", "GroupConfiguration", "address_differences", "configuration_of", "differences"]


class GroupConfiguration(msgspec.Struct, frozen=True, array_like=True):
    """Of one group: quorums (replication, view change), client table (slots, sessions, gaps), as formatted."""

    number: int
    quorums: tuple[int, int]
    clients: tuple[int, bool, bool]


class Configuration(msgspec.Struct, frozen=True, array_like=True):
    """Of one process. ``checkpoint_interval`` is in ops, ``segment_bytes`` where segments of messages roll.

    ``namespace_bits``: widths of stream, topic and partition.
    """

    replica_count: int
    checkpoint_interval: int
    segment_bytes: int
    snapshot_format: int
    groups: tuple[GroupConfiguration, ...]
    namespace_bits: tuple[int, int, int]

    @property
    def digest(self) -> str:
        """16 hexadecimal digits: equal for equal configurations."""
        return hashlib.blake2b(msgspec.msgpack.encode(self), digest_size=8).hexdigest()


def configuration_of(
    superblocks: Iterable[SuperblockState],
    checkpoint_interval: int,
    segment_bytes: int,
    layout: NamespaceLayout = NAMESPACES,
) -> Configuration:
    """The configuration of a process with these data directories."""
    states = sorted(superblocks, key=lambda state: state.group)
    groups = tuple(
        GroupConfiguration(
            state.group,
            (state.quorums.replication, state.quorums.view_change),
            (state.clients.slots, state.clients.sessions, state.clients.gaps),
        )
        for state in states
    )
    bits = (layout.stream_bits, layout.topic_bits, layout.partition_bits)
    return Configuration(states[0].replica_count, checkpoint_interval, segment_bytes, SNAPSHOT_FORMAT, groups, bits)


def differences(here: Configuration, there: Configuration) -> list[str]:
    """What differs, by name, with both values."""
    found: list[str] = []

    def compare(name: str, ours: object, theirs: object) -> None:
        if ours != theirs:
            found.append(f"{name} {theirs} there, {ours} here")

    compare("replicas", here.replica_count, there.replica_count)
    compare("checkpoint interval", here.checkpoint_interval, there.checkpoint_interval)
    compare("segment bytes", here.segment_bytes, there.segment_bytes)
    compare("snapshot format", here.snapshot_format, there.snapshot_format)
    compare("namespace bits (stream, topic, partition)", here.namespace_bits, there.namespace_bits)
    compare("groups", _names(here.groups), _names(there.groups))
    others = {group.number: group for group in there.groups}
    for group in here.groups:
        other = others.get(group.number, group)
        name = group_name(group.number)
        compare(f"quorums of {name} (replication, view change)", group.quorums, other.quorums)
        compare(f"client table of {name} (slots, sessions, gaps)", group.clients, other.clients)
    return found


def _names(groups: Sequence[GroupConfiguration]) -> str:
    return ",".join(group_name(group.number) for group in groups)


def address_differences(here: Sequence[Address], there: Sequence[str]) -> list[str]:
    """Which replica has another address there; both may be right, if names differ from where one looks."""
    ours = [address_text(address) for address in here]
    if len(ours) != len(there):
        return [f"{len(there)} addresses there, {len(ours)} here"]
    pairs = enumerate(zip(ours, there, strict=True))
    return [f"replica {index} is {theirs} there, {own} here" for index, (own, theirs) in pairs if own != theirs]
