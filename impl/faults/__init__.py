"""Faults: named mistakes that take the place of the right components, to measure the checkers and the audit.

All are off by default. With a fault the replica does the wrong thing; its trace still says honestly what it did. The
replica itself holds none. The record of each is in `viewproof.faults`, its story in docs/faults.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, TypeVar, cast

from viewproof.faults import records
from viewproof.impl.faults import boot, border, commit, control, liveness, recovery, table, view
from viewproof.impl.faults.stand_ins import StandIns
from viewproof.impl.interface.durable import Quorums
from viewproof.impl.replica.parts import RIGHT, Parts
from viewproof.impl.storage.segments import SegmentStore

FAULTS: dict[str, str] = {fault.id: fault.replica for fault in records().values() if fault.replica}
"""Fault id → what the replica does wrong."""

STAND_INS: StandIns = {
    **commit.STAND_INS,
    **table.STAND_INS,
    **view.STAND_INS,
    **recovery.STAND_INS,
    **boot.STAND_INS,
    **control.STAND_INS,
    **liveness.STAND_INS,
    **border.STAND_INS,
}

_ClassT = TypeVar("_ClassT", bound=type)


class FaultError(ValueError):
    """A fault id that the implementation does not know."""


def validate_faults(faults: Iterable[str]) -> frozenset[str]:
    """Returns `faults`; raises `FaultError` naming those that are unknown."""
    unknown = sorted(set(faults) - FAULTS.keys())
    if unknown:
        raise FaultError(f"unknown fault {', '.join(unknown)}; known: {', '.join(sorted(FAULTS))}")
    return frozenset(faults)


def stand_in(role: str, right: _ClassT, faults: Iterable[str], node: int = 0) -> _ClassT:
    """`right`, or what stands in for it at replica `node` with these faults. Raises `FaultError`."""
    chosen = [STAND_INS[fault].get(role) for fault in sorted(validate_faults(faults))]
    bases = tuple(each for each in chosen if isinstance(each, type))
    if not bases:
        return right
    return cast(_ClassT, type(f"Faulty{right.__name__}", (*bases, right), {"node": node}))


def quorums_with(faults: Iterable[str]) -> Callable[[Quorums, int], Quorums]:
    """What gives the quorums in force, with these faults. Raises `FaultError`."""
    chosen = [STAND_INS[fault].get("quorums") for fault in sorted(validate_faults(faults))]
    return next((cast(Any, each) for each in chosen if each is not None), RIGHT.quorums)


def parts_with(faults: Iterable[str], node: int) -> Parts:
    """The components of replica `node` with these faults. Raises `FaultError`."""
    if not faults:
        return RIGHT
    classes = {each.name: getattr(RIGHT, each.name) for each in fields(RIGHT) if each.name != "quorums"}
    made = {role: stand_in(role, right, faults, node) for role, right in classes.items()}
    return Parts(quorums=quorums_with(faults), **made)


def segments_with(faults: Iterable[str]) -> type[SegmentStore]:
    """The store of segments with these faults. Raises `FaultError`."""
    return stand_in("segments", SegmentStore, faults)
