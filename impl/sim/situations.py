"""Rare situations of a run, counted, so that one sees what the seeds reach.

| statistic | a situation |
|---|---|
| `view_changes_superseded` | a replica left a view change for that of a later view |
| `acks_stale` | a prepare_ok of an older view arrived; `acks_stale_at_primary`: at a normal primary |
| `do_view_changes_stale` | a do_view_change of an older view arrived |
| `logs_replaced` | an installed log lacks an entry of the log it replaced |
| `restarts_in_view_change` | a replica booted with log_view below view |
| `crashes_in_install` | a replica died between the choice of a log to install and its installation |
"""

from __future__ import annotations

from impl.messages import DoViewChange, Message, PrepareOk
from impl.replica import Replica
from impl.trace import TraceEvent

INSTALLS = frozenset({"start_view", "on_start_view"})


class Situations:
    """Watches events, deliveries and crashes of all replicas, and counts into `statistics`."""

    def __init__(self, replica_count: int, statistics: dict[str, int]) -> None:
        self.statistics = statistics
        self.last: list[TraceEvent | None] = [None] * replica_count

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        """A replica has emitted an event."""
        before = self.last[node]
        self.last[node] = event
        name = event.event
        if name == "start_view_change":
            if before is not None and before.status == "view_change":
                self.statistics["view_changes_superseded"] += 1
        elif name == "restart":
            if (event.log_view or 0) < (event.view or 0):
                self.statistics["restarts_in_view_change"] += 1
        elif name in INSTALLS and before is not None and self._is_replaced(before, replica):
            self.statistics["logs_replaced"] += 1

    def _is_replaced(self, before: TraceEvent, replica: Replica) -> bool:
        op = before.op or 0
        return op > 0 and (op > replica.op or replica.log.checksum(op) != before.head)

    def on_message(self, replica: Replica, message: Message) -> None:
        """A message arrives at a replica that is up."""
        if isinstance(message, PrepareOk):
            if message.view < replica.view:
                self.statistics["acks_stale"] += 1
                if replica.is_normal_primary:
                    self.statistics["acks_stale_at_primary"] += 1
        elif isinstance(message, DoViewChange) and message.view < replica.view:
            self.statistics["do_view_changes_stale"] += 1

    def on_crash(self, replica: Replica) -> None:
        """A replica dies."""
        if replica.target is not None:
            self.statistics["crashes_in_install"] += 1
