"""An op is committed by a primary only on acknowledgements that a quorum gave in its view (I2; the rule behind it)."""

from __future__ import annotations

from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker
from viewproof.impl.trace.events import TraceEvent


class AcknowledgementsChecker(Checker):
    """Counts the acknowledgements that each primary made or received, by view and op."""

    name = "acknowledgements"
    events = frozenset({"prepare_ok", "on_prepare_ok", "commit"})

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[tuple[int, int | None, int | None], set[int | None]] = {}

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        name = event.event
        if name == "commit":
            given = self.given.pop((node, event.view, event.m_op), set())
            if len(given) < replica.state.quorums.replication:
                members = sorted(member for member in given if member is not None)
                self.fail(
                    f"replica {node} committed op {event.m_op} in view {event.view} on acknowledgements of {members}"
                )
        elif name == "on_prepare_ok" or node == (event.view or 0) % replica.state.replica_count:
            member = event.m_from if name == "on_prepare_ok" else node
            self.given.setdefault((node, event.m_view, event.m_op), set()).add(member)
