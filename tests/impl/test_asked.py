"""What an executed operation asked of a partition, as the trace shows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.refinement.traces import load
from viewproof.impl.groups.plane import Plane
from viewproof.impl.machine.partitions import AppendMessages, Poll, StoreOffset
from viewproof.impl.machine.state_machine import Delete, Operation, StateMachine, encode_operation
from viewproof.impl.replica.config import ReplicaConfig
from viewproof.impl.replica.replies import asked_columns
from viewproof.impl.sim import SimProfile
from viewproof.impl.sim.run import simulate
from viewproof.refinement.native.partitions import PARTITIONS, reader
from viewproof.refinement.schema import INDEX

HIGH = (1 << 64) - 2
"""A number that its column shows as -2."""
OTHER = {"m_operation": "other"}


def appended(namespace: int, offset: int, count: int) -> dict[str, Any]:
    return {"m_operation": "append", "m_namespace": namespace, "m_offset": offset, "m_count": count}


def stored(operation: str, offset: int, consumer: int, group: int) -> dict[str, Any]:
    columns = {"m_namespace": 7, "m_offset": offset, "m_consumer": consumer, "m_group": group}
    return {"m_operation": operation, **columns}


STEPS: list[tuple[Operation | None, dict[str, Any]]] = [
    (AppendMessages(7, (b"a", b"b")), appended(7, 0, 2)),
    (AppendMessages(HIGH, (b"a",)), appended(-2, 0, 1)),
    (AppendMessages(7, (b"c",)), appended(7, 2, 1)),
    (StoreOffset(7, 1, 3), stored("store", 3, 1, 0)),
    (StoreOffset(7, 1, 4), stored("refused", 4, 1, 0)),
    (StoreOffset(7, HIGH, HIGH, group=True), stored("refused", (1 << 63) - 1, -2, 1)),
    (StoreOffset(7, 1, 0, group=True), stored("store", 0, 1, 1)),
    (Poll(7, 0, 1), OTHER),
    (Delete(b"k"), OTHER),
    (AppendMessages(7, ()), OTHER),
    (None, OTHER),
]
"""Operations of one machine in turn, and their columns. None: no operation at all."""


def test_each_operation_has_its_columns() -> None:
    machine = StateMachine()
    for operation, columns in STEPS:
        body = b"\xff" if operation is None else encode_operation(operation)
        assert asked_columns(body, machine.apply(body)) == columns


def test_an_operation_of_another_group_changes_no_partition() -> None:
    machine = StateMachine(Plane.PARTITIONS, namespace=8)
    for operation in (AppendMessages(7, (b"a",)), StoreOffset(7, 1, 0)):
        body = encode_operation(operation)
        assert asked_columns(body, machine.apply(body)) == OTHER


def test_readers_have_numbers_of_their_own_in_their_partition() -> None:
    names = [(n, c, g) for n in (0, 7, -2, -(1 << 63)) for c in (0, 1, -1, 1 << 62) for g in (0, 1)]
    assert len({reader(*name, PARTITIONS) for name in names}) == len(names)
    assert {reader(n, c, g, PARTITIONS) % PARTITIONS == n % PARTITIONS for n, c, g in names} == {True}


@pytest.mark.parametrize("plane", list(Plane))
def test_only_groups_with_partitions_show_them(plane: Plane, tmp_path: Path) -> None:
    assert ReplicaConfig(plane=plane).shows_partitions == (plane is not Plane.METADATA)
    simulate(1, out=tmp_path, requests=10, profile=SimProfile(plane=plane))
    rows = load(tmp_path)
    shown = None if plane is Plane.METADATA else 1
    assert {row[INDEX["partitions"]] for row in rows if row[INDEX["replicas"]]} == {shown}
    executed = {row[INDEX["m_operation"]] is None for row in rows if row[INDEX["event"]] == "execute"}
    assert executed == {shown is None}
