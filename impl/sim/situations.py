"""Rare situations of a run, counted, so that one sees what the seeds reach.

| statistic | a situation |
|---|---|
| `view_changes_superseded` | a replica left a view change for that of a later view |
| `acks_stale` | a prepare_ok of an older view arrived; `acks_stale_at_primary`: at a normal primary |
| `do_view_changes_stale` | a do_view_change of an older view arrived |
| `logs_replaced` | an installed log lacks an entry of the log it replaced |
| `restarts_in_view_change` | a replica booted with log_view below view |
| `snapshots_installed` | a replica took another's snapshot; `snapshots_installed_in_view`: one of its own view |
| `restarts_from_checkpoint` | a replica booted from a snapshot; `restarts_in_checkpoint`: with its drain not finished |
| `crashes_in_checkpoint` | a replica died between taking a snapshot and completing the checkpoint |
| `crashes_in_install` | a replica died between the choice of a log to install and its installation |
| `outcome_…` | a request or register was prepared (`new`) or not (`duplicate`, `stale`, `gap`, …) |
| `registers` | a register was executed; `registers_replayed`: again, after its session was evicted |
| `sessions_fenced` | a register took the place of the client's older session |
| `sessions_evicted` | a client lost its slot to another |
| `requests_sessionless` | a request was executed whose session was gone by then |
"""

from __future__ import annotations

from viewproof.impl.interface.messages import DoViewChange, Message, PrepareOk
from viewproof.impl.replica import Replica
from viewproof.impl.trace.events import TraceEvent

COUNTED_EVENTS = frozenset(
    {
        "append_failed",
        "checkpoint",
        "do_view_change",
        "nack",
        "on_start_view",
        "recover",
        "repair",
        "restart",
        "start_view",
        "start_view_change",
    }
)
"""Events that the statistics count."""

INSTALLS = frozenset({"start_view", "on_start_view"})

OUTCOMES: dict[str, str] = {
    "on_request": "new",
    "resend_reply": "duplicate",
    "drop_request": "",
    "send_eviction": "",
}
"""Event → outcome of the request; "": the event names it."""


class Situations:
    """Watches events, deliveries and crashes of all replicas, and counts into `statistics`."""

    def __init__(self, replica_count: int, statistics: dict[str, int]) -> None:
        self.statistics = statistics
        self.last: list[TraceEvent | None] = [None] * replica_count
        self.executed = 0
        self.incarnations: dict[int, int] = {}
        self.sessions: dict[int, int] = {}

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
            if event.checkpoint:
                self.statistics["restarts_from_checkpoint"] += 1
            if replica.booting.relics:
                self.statistics["restarts_in_checkpoint"] += 1
        elif name in OUTCOMES:
            self.statistics[f"outcome_{OUTCOMES[name] or event.m_outcome}"] += 1
        elif name == "execute":
            self._on_execute(event)
        if name == "on_start_view" and event.m_checkpoint:
            self.statistics["snapshots_installed"] += 1
            if before is not None and before.view == event.view and before.status == "normal":
                self.statistics["snapshots_installed_in_view"] += 1
        if name in INSTALLS and before is not None and self._is_replaced(before, replica):
            self.statistics["logs_replaced"] += 1

    def _on_execute(self, event: TraceEvent) -> None:
        """An op is looked at when it is first executed."""
        op, client = event.m_op or 0, event.m_client or 0
        if op <= self.executed or client == 0 or event.m_session is None:
            return
        self.executed = op
        if event.m_request == 0:
            self._on_register(client, event.m_incarnation or 0, op)
        elif self.sessions.get(client) != event.m_session:
            self.statistics["requests_sessionless"] += 1
        if event.m_evicted:
            self.statistics["sessions_evicted"] += 1
            self.sessions.pop(event.m_evicted, None)

    def _on_register(self, client: int, incarnation: int, op: int) -> None:
        self.statistics["registers"] += 1
        if incarnation <= self.incarnations.get(client, 0):
            self.statistics["registers_replayed"] += 1
        if client in self.sessions:
            self.statistics["sessions_fenced"] += 1
        self.incarnations[client] = max(incarnation, self.incarnations.get(client, 0))
        self.sessions[client] = op

    def _is_replaced(self, before: TraceEvent, replica: Replica) -> bool:
        op = before.op or 0
        return op > 0 and (op > replica.state.op or replica.state.log.checksum(op) != before.head)

    def on_message(self, replica: Replica, message: Message) -> None:
        """A message arrives at a replica that is up."""
        if isinstance(message, PrepareOk):
            if message.view < replica.state.view:
                self.statistics["acks_stale"] += 1
                if replica.state.is_normal_primary:
                    self.statistics["acks_stale_at_primary"] += 1
        elif isinstance(message, DoViewChange) and message.view < replica.state.view:
            self.statistics["do_view_changes_stale"] += 1

    def on_crash(self, replica: Replica) -> None:
        """A replica dies."""
        if replica.state.target is not None:
            self.statistics["crashes_in_install"] += 1
        if replica.checkpoints.work is not None:
            self.statistics["crashes_in_checkpoint"] += 1
