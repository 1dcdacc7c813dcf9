"""Equal commit_min means equal bytes of the client table, whether executed or taken from a snapshot (I9)."""

from __future__ import annotations

from hashlib import blake2b

from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker
from viewproof.impl.trace.events import TraceEvent


class TablesChecker(Checker):
    """Compares the serialised table in memory with the first one seen at the same commit_min."""

    name = "tables"
    events = frozenset({"restart", "on_start_view"})

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[int, tuple[bytes, int]] = {}

    def on_execute(self, node: int, replica: Replica, event: TraceEvent) -> None:
        self._compare(node, replica)

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        self._compare(node, replica)

    def _compare(self, node: int, replica: Replica) -> None:
        table = blake2b(replica.state.client_table.to_bytes(), digest_size=16).digest()
        known, first = self.tables.setdefault(replica.state.commit_min, (table, node))
        if table != known:
            at = replica.state.commit_min
            self.fail(f"replica {node} has another client table at commit_min {at} than replica {first} had")
