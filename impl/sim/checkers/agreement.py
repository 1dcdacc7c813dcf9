"""One canonical commit chain: all execute the same prepare at an op, linked to the one before (I1, I4, I10)."""

from __future__ import annotations

from viewproof.impl.interface.messages import Prepare
from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker
from viewproof.impl.trace.events import TraceEvent


class AgreementChecker(Checker):
    """Keeps the first executed entry of every op; each later execution must be of it, in op order per replica."""

    name = "agreement"
    events = frozenset({"checkpoint", "on_start_view", "recover", "restart"})

    def __init__(self) -> None:
        super().__init__()
        self.chain: dict[int, Prepare] = {}
        self.executed: dict[int, int] = {}

    def on_boot(self, node: int, replica: Replica) -> None:
        self.executed[node] = 0

    def on_execute(self, node: int, replica: Replica, event: TraceEvent) -> None:
        op = event.m_op or 0
        if op != self.executed.get(node, 0) + 1:
            self.fail(f"replica {node} executed op {op} after op {self.executed.get(node, 0)}")
        self.executed[node] = op
        first = self.chain.get(op)
        if first is None:
            self._extend(node, op, replica.state.log[op])
        elif first.header.checksum != event.m_checksum:
            name = first.header.checksum
            self.fail(f"replica {node} executed {event.m_checksum} at op {op}, first executed was {name}")

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        if event.m_checkpoint:
            self.executed[node] = event.m_checkpoint
        if event.event in ("recover", "restart"):
            self.executed[node] = replica.state.checkpoint
        if event.m_checkpoint or event.event != "on_start_view":
            self._check_snapshot(node, replica)

    def _check_snapshot(self, node: int, replica: Replica) -> None:
        """The entry below the log in memory is that of the chain."""
        header = replica.state.log.base_header
        if header is None:
            return
        first = self.chain.get(header.op)
        if first is None or first.header.checksum != header.checksum:
            self.fail(f"replica {node} has a snapshot of op {header.op} with another entry, {header.checksum}")

    def _extend(self, node: int, op: int, prepare: Prepare) -> None:
        before = self.chain.get(op - 1)
        parent = before.header.checksum if before is not None else ""
        if prepare.header.parent != parent:
            self.fail(f"replica {node} executed op {op} whose parent {prepare.header.parent!r} is not {parent!r}")
        self.chain[op] = prepare
