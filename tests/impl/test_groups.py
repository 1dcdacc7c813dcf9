"""Consensus groups: names, numbers and strict routing."""

from __future__ import annotations

import pytest

from impl.durable import ConfigurationError
from impl.groups.group import (
    BOTH_PLANES,
    METADATA,
    PARTITIONS,
    SINGLE,
    GroupTable,
    UnknownGroupError,
    group_of_number,
    parse_groups,
)


def test_groups_are_parsed_in_the_order_of_their_numbers() -> None:
    assert parse_groups("partitions, metadata") == BOTH_PLANES
    assert parse_groups("single") == (SINGLE,)
    assert [group_of_number(group.number) for group in BOTH_PLANES] == list(BOTH_PLANES)


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
    with pytest.raises(UnknownGroupError, match="group 9 is unknown"):
        group_of_number(9)
    with pytest.raises(ConfigurationError, match="at least one group"):
        GroupTable({})


def test_each_group_is_a_run_of_its_own() -> None:
    assert SINGLE.run("r") == "r"
    assert [group.run("r") for group in BOTH_PLANES] == ["r.metadata", "r.partitions"]
