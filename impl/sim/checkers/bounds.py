"""Checkpoint, commit numbers and op are in order, and the pipeline is within its bound (I5, L1)."""

from __future__ import annotations

from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker
from viewproof.impl.trace.events import TraceEvent


class BoundsChecker(Checker):
    """Judges the observations of events at which one of them moves."""

    name = "bounds"
    events = frozenset({"checkpoint", "on_request", "on_start_view", "propose_feature", "restart", "start_view"})

    def on_execute(self, node: int, replica: Replica, event: TraceEvent) -> None:
        self._check(node, event)

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        self._check(node, event)
        op, commit_max = event.op or 0, event.commit_max or 0
        limit = replica.state.config.pipeline_max
        if event.event in ("on_request", "propose_feature", "start_view") and op - commit_max > limit:
            self.fail(f"replica {node} at {event.event}: {op - commit_max} entries in a pipeline of {limit}")

    def _check(self, node: int, event: TraceEvent) -> None:
        checkpoint, commit_min = event.checkpoint or 0, event.commit_min or 0
        commit_max, op = event.commit_max or 0, event.op or 0
        if not checkpoint <= commit_min <= min(commit_max, op):
            self.fail(
                f"replica {node} at {event.event}: checkpoint {checkpoint}, commit_min {commit_min},"
                f" commit_max {commit_max}, op {op} are out of order"
            )
