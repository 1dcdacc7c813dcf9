"""What a fault is on the side of the replica: classes that are put on top of the right ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, TypeAlias

StandIns: TypeAlias = Mapping[str, Mapping[str, type | Callable[..., object]]]
"""Fault → role → the class put on top of the right one.

Roles are the fields of `impl.replica.Parts` (for `quorums` a function takes its place), `segments`
(`impl.storage.segments.SegmentStore`), `disk` (the simulated one, `impl.sim.storage`), and at the border of a process,
also of a simulated one (`impl.sim.border`), `inbound`, `guard` and `peers`, each a class of `impl.net`.
"""


class AtNode:
    """A stand-in that differs per replica: `node` is its index."""

    node: ClassVar[int] = 0
