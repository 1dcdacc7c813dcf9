"""Consensus groups by number, and strict routing: what is addressed to an unknown group is never given to another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.machine.namespaces import NamespaceError, NamespaceLayout

_MemberT = TypeVar("_MemberT")

NAMESPACES = NamespaceLayout()
"""Of a cluster that is not configured otherwise."""


class UnknownGroupError(ValueError):
    """A message or request is for a group that this process does not run; the text names it and those it runs."""


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """One consensus group: its number is what messages carry, its name is that of its directory and its trace.

    `namespace`: the one partition that it is of, packed as in `layout`; None: of all that its plane has.
    """

    number: int
    plane: Plane
    namespace: int | None = None
    layout: NamespaceLayout = field(default=NAMESPACES, compare=False)

    @property
    def name(self) -> str:
        """`single`, `metadata`, `partitions`, or `partition-STREAM-TOPIC-PARTITION`."""
        if self.namespace is None:
            return self.plane.value
        parts = self.layout.unpack(self.namespace)
        return f"{PARTITION_PREFIX}{parts.stream}-{parts.topic}-{parts.partition}"

    def run(self, run: str) -> str:
        """The run id of this group's trace: each group is a run of its own."""
        return run if self.plane is Plane.SINGLE else f"{run}.{self.name}"


PARTITION_PREFIX = "partition-"
NUMBER_MAX = (1 << 16) - 1
"""Messages carry the number of their group in 16 bits."""

SINGLE = Group(0, Plane.SINGLE)
METADATA = Group(1, Plane.METADATA)
PARTITIONS = Group(2, Plane.PARTITIONS)

GROUPS = (SINGLE, METADATA, PARTITIONS)

BOTH_PLANES = (METADATA, PARTITIONS)


def group_name(number: int) -> str:
    """How a group is shown of which only the number is known; that of one partition does not say which."""
    return next((group.name for group in GROUPS if group.number == number), f"partition group {number}")


def partition_group(text: str, layout: NamespaceLayout = NAMESPACES) -> Group:
    """The group of one partition, `STREAM/TOPIC/PARTITION` or with `-`; its number is a hash of the namespace.

    Raises `ConfigurationError`.
    """
    parts = text.replace("/", "-").split("-")
    if len(parts) != 3 or not all(part.isdecimal() for part in parts):
        raise ConfigurationError(f"the group of one partition is partition:STREAM/TOPIC/PARTITION, got {text!r}")
    try:
        namespace = layout.pack(*map(int, parts))
    except NamespaceError as error:
        raise ConfigurationError(f"partition:{text}: {error}") from error
    digest = hashlib.blake2b(namespace.to_bytes(8, "big"), digest_size=8, person=b"group").digest()
    number = len(GROUPS) + int.from_bytes(digest, "big") % (NUMBER_MAX + 1 - len(GROUPS))
    return Group(number, Plane.PARTITIONS, namespace, layout)


def parse_group(name: str, layout: NamespaceLayout = NAMESPACES) -> Group:
    """One group by the name of its directory, or as `partition:STREAM/TOPIC/PARTITION`.

    Raises `ConfigurationError`.
    """
    for prefix in ("partition:", PARTITION_PREFIX):
        if name.startswith(prefix):
            return partition_group(name.removeprefix(prefix), layout)
    for group in GROUPS:
        if group.name == name:
            return group
    known = ", ".join(group.name for group in GROUPS)
    raise ConfigurationError(f"unknown group {name!r}; there are {known}, and partition:STREAM/TOPIC/PARTITION")


def parse_groups(text: str, layout: NamespaceLayout = NAMESPACES) -> tuple[Group, ...]:
    """`metadata,partition:1/2/3` as groups, by number. Raises `ConfigurationError` naming what is wrong."""
    groups = [parse_group(name.strip(), layout) for name in text.split(",")]
    if len(set(groups)) < len(groups):
        raise ConfigurationError(f"a group is named twice in {text!r}")
    if len(groups) > 1 and SINGLE in groups:
        raise ConfigurationError("the group single is a cluster's only one: name it alone, or metadata,partitions")
    if PARTITIONS in groups and any(group.namespace is not None for group in groups):
        raise ConfigurationError("partitions is the group of all partitions: name it, or groups of single ones")
    found: dict[int, Group] = {}
    for group in groups:
        other = found.setdefault(group.number, group)
        if other != group:
            raise ConfigurationError(f"the groups {other.name} and {group.name} share the number {group.number}")
    return tuple(sorted(groups, key=lambda group: group.number))


class GroupTable(Generic[_MemberT]):
    """What a process runs for each of its groups, by number."""

    def __init__(self, members: Mapping[Group, _MemberT]) -> None:
        """Raises `ConfigurationError` if there is none."""
        if not members:
            raise ConfigurationError("a process runs at least one group")
        self.groups = tuple(sorted(members))
        self._members = {group.number: members[group] for group in self.groups}

    def __getitem__(self, number: int) -> _MemberT:
        """The member of a group. Raises `UnknownGroupError` if this process does not run it."""
        member = self._members.get(number)
        if member is None:
            known = ", ".join(f"{group.number} ({group.name})" for group in self.groups)
            raise UnknownGroupError(f"group {number} is not run here; this process runs {known}")
        return member

    def __iter__(self) -> Iterator[_MemberT]:
        return iter(self._members.values())

    def items(self) -> Iterator[tuple[Group, _MemberT]]:
        """(group, member) by group number."""
        return zip(self.groups, self._members.values(), strict=True)
