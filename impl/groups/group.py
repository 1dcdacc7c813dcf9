"""Consensus groups by number, and strict routing: what is addressed to an unknown group is never given to another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from impl.durable import ConfigurationError
from impl.groups.plane import Plane

_MemberT = TypeVar("_MemberT")


class UnknownGroupError(ValueError):
    """A message or request is for a group that this process does not run; the text names it and those it runs."""


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """One consensus group: its number is what messages carry, its name is that of its directory and its trace."""

    number: int
    plane: Plane

    @property
    def name(self) -> str:
        """`single`, `metadata` or `partitions`."""
        return self.plane.value

    def run(self, run: str) -> str:
        """The run id of this group's trace: each group is a run of its own."""
        return run if self.plane is Plane.SINGLE else f"{run}.{self.name}"


SINGLE = Group(0, Plane.SINGLE)
METADATA = Group(1, Plane.METADATA)
PARTITIONS = Group(2, Plane.PARTITIONS)

GROUPS = (SINGLE, METADATA, PARTITIONS)

BOTH_PLANES = (METADATA, PARTITIONS)


def group_of_number(number: int) -> Group:
    """The group of this number. Raises `UnknownGroupError`."""
    for group in GROUPS:
        if group.number == number:
            return group
    known = ", ".join(f"{group.number} ({group.name})" for group in GROUPS)
    raise UnknownGroupError(f"group {number} is unknown; there are {known}")


def parse_groups(text: str) -> tuple[Group, ...]:
    """`metadata,partitions` as groups, by number. Raises `ConfigurationError` naming what is wrong."""
    by_name = {group.name: group for group in GROUPS}
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise ConfigurationError(f"unknown group {unknown[0]!r}; there are {', '.join(by_name)}")
    if len(set(names)) < len(names):
        raise ConfigurationError(f"a group is named twice in {text!r}")
    if len(names) > 1 and SINGLE.name in names:
        raise ConfigurationError("the group single is a cluster's only one: name it alone, or metadata,partitions")
    return tuple(sorted(by_name[name] for name in names))


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
