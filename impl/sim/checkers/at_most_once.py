"""Each request is executed at most once: it stands at one op of the canonical chain (I8)."""

from __future__ import annotations

from impl.replica import Replica
from impl.sim.checkers.base import Checker
from impl.trace import TraceEvent


class AtMostOnceChecker(Checker):
    """Remembers the op of every executed request, across replicas and restarts."""

    name = "at_most_once"

    def __init__(self) -> None:
        super().__init__()
        self.executed: dict[tuple[int | None, int | None], int | None] = {}

    def on_execute(self, node: int, replica: Replica, event: TraceEvent) -> None:
        if not event.m_client:
            return
        request = (event.m_client, event.m_request)
        op = self.executed.setdefault(request, event.m_op)
        if op != event.m_op:
            name = f"client {request[0]} request {request[1]}"
            self.fail(f"replica {node} executed {name} at op {event.m_op}, before at {op}")
