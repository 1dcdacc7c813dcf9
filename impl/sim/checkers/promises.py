"""What a replica acknowledges is durable on its disk at that moment (I3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker
from viewproof.impl.trace.events import TraceEvent


class Disk(Protocol):
    """What the checker asks of a replica's disk."""

    def holds(self, op: int, checksum: str) -> bool:
        """True if the entry is durable there, as a record or in the snapshot in use."""


class PromisesChecker(Checker):
    """Looks for each acknowledged entry on the disk, when it is first acknowledged in a view."""

    name = "promises"
    events = frozenset({"prepare_ok"})

    def __init__(self, disks: Sequence[Disk]) -> None:
        super().__init__()
        self.disks = disks

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        op, checksum = event.m_op or 0, event.m_checksum or ""
        if not self.disks[node].holds(op, checksum):
            self.fail(f"replica {node} acknowledged op {op} ({checksum}) in view {event.m_view}, its disk lacks it")
