"""What `vsr status` finds wrong between replicas that have executed the same."""

from __future__ import annotations

import msgspec

from viewproof.impl.net.framing import Status
from viewproof.refinement.cli.status import differences_of_state

LEVEL = Status(1, 0, 3, "normal", 2, 2, 9, 9, 9, 0, (), features=1, digest="d", checksum="c")


def answer(replica: int, **changes: object) -> Status:
    """What a replica that is level says, but for these fields."""
    return msgspec.structs.replace(LEVEL, replica=replica, **changes)


def test_replicas_at_the_same_op_have_the_same_state() -> None:
    assert differences_of_state([LEVEL, answer(1), answer(2)]) == []
    found = differences_of_state([LEVEL, answer(1, checksum="x"), answer(2, features=0, digest="y")])
    assert found == [
        "replicas 0 and 1 have executed the same 9 ops, and differ in checksum: c and x",
        "replicas 0 and 2 have executed the same 9 ops, and differ in digest: d and y",
        "replicas 0 and 2 have executed the same 9 ops, and differ in features: 1 and 0",
    ]


def test_replicas_at_other_ops_or_of_other_groups_are_not_compared() -> None:
    assert differences_of_state([LEVEL, answer(1, commit_min=8, digest="x"), answer(2, group=2, digest="y")]) == []


def test_the_primary_is_who_is_normal_and_leads_its_view() -> None:
    """Of view 2 it is replica 2 of 3; while it changes the view there is none."""
    assert [answer(replica).is_primary for replica in range(3)] == [False, False, True]
    assert not answer(2, status="view_change").is_primary
    assert not answer(2, view=3).is_primary
