"""Consensus groups: names, numbers and strict routing."""

from __future__ import annotations

import pytest

from viewproof.impl.groups.group import (
    BOTH_PLANES,
    METADATA,
    PARTITIONS,
    SINGLE,
    Group,
    GroupTable,
    UnknownGroupError,
    parse_groups,
    partition_group,
)
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.machine.partitions import Appended, AppendMessages
from viewproof.impl.machine.state_machine import Refused, StateMachine, decode_result, encode_operation


def test_groups_are_parsed_in_the_order_of_their_numbers() -> None:
    assert parse_groups("partitions, metadata") == BOTH_PLANES
    assert parse_groups("single") == (SINGLE,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata,shards", "unknown group 'shards'; there are single, metadata, partitions"),
        ("", "unknown group ''"),
        ("metadata,metadata", "twice"),
        ("single,metadata", "name it alone"),
    ],
)
def test_a_wrong_list_of_groups_is_a_configuration_error(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_groups(text)


def test_an_unknown_group_is_refused_and_never_routed_to_another() -> None:
    table = GroupTable({PARTITIONS: "p", METADATA: "m"})
    assert (table[1], table[2]) == ("m", "p")
    assert list(table.items()) == [(METADATA, "m"), (PARTITIONS, "p")]
    for number in (0, 3, -1):
        with pytest.raises(
            UnknownGroupError, match=rf"group {number} is not run here.*1 \(metadata\), 2 \(partitions\)"
        ):
            table[number]
    with pytest.raises(ConfigurationError, match="at least one group"):
        GroupTable({})


def test_each_group_is_a_run_of_its_own() -> None:
    assert SINGLE.run("r") == "r"
    assert [group.run("r") for group in BOTH_PLANES] == ["r.metadata", "r.partitions"]


def test_groups_of_single_partitions() -> None:
    groups = parse_groups("partition:0/1/3, metadata, partition-0-1-2")
    assert {group.name for group in groups} == {"metadata", "partition-0-1-2", "partition-0-1-3"}
    assert parse_groups(",".join(group.name for group in reversed(groups))) == groups
    for text, reason in (
        ("partition:0/1", "STREAM/TOPIC/PARTITION"),
        ("partition:0/1/x", "STREAM/TOPIC/PARTITION"),
        ("partition:1048576/0/0", "stream must be in"),
        ("partition:0/1/2,partition-0-1-2", "named twice"),
        ("partitions,partition:0/1/2", "all partitions"),
        ("single,partition:0/1/2", "single"),
    ):
        with pytest.raises(ConfigurationError, match=reason):
            parse_groups(text)


def test_groups_that_share_a_number_are_refused() -> None:
    first: dict[int, Group] = {}
    for number in range(2000):
        group = partition_group(f"0/0/{number}")
        other = first.setdefault(group.number, group)
        if other != group:
            with pytest.raises(ConfigurationError, match="share the number"):
                parse_groups(f"{other.name},{group.name}")
            return
    raise AssertionError("no two of 2000 groups share a number")


def test_a_group_of_one_partition_takes_no_other() -> None:
    group = partition_group("0/1/2")
    assert group.namespace is not None
    machine = StateMachine(group.plane, namespace=group.namespace)
    own, other = (encode_operation(AppendMessages(group.namespace + more, (b"m",))) for more in (0, 1))
    assert decode_result(machine.apply(own)) == Appended(0, 1)
    assert isinstance(decode_result(machine.apply(other)), Refused)
    assert machine.partitions.end(group.namespace + 1) == 0
