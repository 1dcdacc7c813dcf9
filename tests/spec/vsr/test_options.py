"""Options: each is declared by its part, with its meaning and bounds; at the defaults there is the core."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from viewproof.spec.lang import SpecError
from viewproof.spec.vsr import Config
from viewproof.spec.vsr.config import ClientTable, Partitions, Repair
from viewproof.spec.vsr.core.options import Cluster
from viewproof.spec.vsr.parts import PARTS, parts_of


def test_at_the_defaults_no_part_is_on() -> None:
    assert parts_of(Config()) == frozenset()
    assert len(PARTS) > 10


def test_every_option_but_those_of_the_cluster_is_declared_by_a_part_and_says_what_it_means() -> None:
    of_cluster = {one.name for one in fields(Cluster)}
    for one in fields(Config):
        homes = [
            declared.__module__ for declared in Config.__mro__ if one.name in vars(declared).get("__annotations__", ())
        ]
        assert len(homes) == 1
        assert (".parts." in homes[0]) == (one.name not in of_cluster)
    for options in (Config, ClientTable, Repair, Partitions):
        assert all(one.metadata["doc"] for one in fields(options))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"replicas": 0}, "replicas must be at least 1, not 0"),
        ({"features": -1}, "features must be at least 0, not -1"),
        ({"journal_slots": 2}, "a ring needs checkpoints"),
        ({"repair": Repair("nonce"), "checkpoints": True}, "does not go together with checkpoints"),
        ({"repair": Repair("nonce"), "partitions": Partitions(1)}, "does not go together with partitions"),
        ({"losses": True, "repair": Repair("probe")}, "losses do not go together"),
        ({"quorum_replication": 1}, "quorums must intersect"),
        ({"quorum_view_change": 4}, r"must lie in 1\.\.3"),
    ],
)
def test_what_is_out_of_bounds_or_does_not_go_together_is_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        Config(**options)
