"""Rare situations of control entries and of pipelines with several namespaces, counted as in `impl.sim.situations`.

| statistic | a situation |
|---|---|
| `features_learned` | a primary learned what a member supports |
| `features_proposed` | a primary prepared a control entry |
| `features_enabled` | a feature became active on a replica; `features_across_views`: in a later view than its entry's |
| `features_repeated` | a control entry was executed of a feature that was active |
| `features_restored` | a replica booted or installed a log with features taken from a snapshot |
| `namespaces_waited` | a quorum acknowledged an op while an earlier one, of another namespace, lacked it |
"""

from __future__ import annotations

from viewproof.impl.replica import Replica
from viewproof.impl.trace.events import TraceEvent


class ControlSituations:
    """Watches events of all replicas."""

    def __init__(self, replica_count: int, statistics: dict[str, int]) -> None:
        self.statistics = statistics
        self.masks = [0] * replica_count

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        """A replica has emitted an event."""
        name, mask = event.event, event.features or 0
        before, self.masks[node] = self.masks[node], mask
        if name == "execute":
            if event.m_feature:
                self._on_control_entry(replica, event, before)
        elif name == "propose_feature":
            self.statistics["features_proposed"] += 1
        elif name == "on_features":
            self.statistics["features_learned"] += 1
        elif name in ("restart", "on_start_view"):
            if mask and event.checkpoint and event.commit_min == event.checkpoint:
                self.statistics["features_restored"] += 1
        elif name == "on_prepare_ok" and self._waits(replica):
            self.statistics["namespaces_waited"] += 1

    def _on_control_entry(self, replica: Replica, event: TraceEvent, before: int) -> None:
        feature = event.m_feature or 0
        if before >> feature - 1 & 1:
            self.statistics["features_repeated"] += 1
            return
        self.statistics["features_enabled"] += 1
        entry = replica.state.log.get(event.m_op or 0)
        if entry is not None and entry.header.view < (event.view or 0):
            self.statistics["features_across_views"] += 1

    def _waits(self, replica: Replica) -> bool:
        """True if an op above commit_max is acknowledged in its namespace."""
        pipeline = replica.acknowledgements.pipeline
        if not replica.state.is_normal_primary or pipeline.view != replica.state.view or len(pipeline.frontiers) < 2:
            return False
        return any(pipeline.is_committable(op) for op in range(replica.state.commit_max + 2, pipeline.op + 1))
