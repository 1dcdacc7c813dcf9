"""Snapshots of one op are the same bytes on every replica, taken there or fetched (I9, I14)."""

from __future__ import annotations

from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker
from viewproof.impl.trace.events import TraceEvent


class SnapshotsChecker(Checker):
    """Compares the snapshot in use with the first one seen of its op."""

    name = "snapshots"
    events = frozenset({"checkpoint", "on_start_view", "restart"})

    def __init__(self) -> None:
        super().__init__()
        self.snapshots: dict[int, tuple[bytes, int]] = {}

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        snapshot = replica.state.snapshot
        if snapshot is None:
            return
        data, first = self.snapshots.setdefault(snapshot.op, (snapshot.data, node))
        if data != snapshot.data:
            self.fail(f"replica {node} has another snapshot of op {snapshot.op} than replica {first} had")
