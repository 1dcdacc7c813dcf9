"""Equal commit_min means equal contents of store and client table (I9, I14)."""

from __future__ import annotations

from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker
from viewproof.impl.trace.events import TraceEvent


class DigestsChecker(Checker):
    """Compares each digest after an execution with the first one seen at that op."""

    name = "digests"

    def __init__(self) -> None:
        super().__init__()
        self.digests: dict[int | None, str | None] = {}

    def on_execute(self, node: int, replica: Replica, event: TraceEvent) -> None:
        digest = self.digests.setdefault(event.commit_min, event.digest)
        if digest != event.digest:
            at = event.commit_min
            self.fail(f"replica {node} has digest {event.digest} at commit_min {at}, another had {digest}")
