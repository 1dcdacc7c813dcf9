"""With a healthy majority and no faults every request is answered and the replicas get level (L1, L2)."""

from __future__ import annotations

from viewproof.impl.sim.checkers.base import Checker, FinalState


class LivenessChecker(Checker):
    """Judges the end of the liveness phase."""

    name = "liveness"

    def finish(self, final: FinalState) -> None:
        if final.finished:
            return
        states = ", ".join(
            f"{state.node}: {state.status.value} view {state.view} log_view {state.log_view} op {state.op}"
            f" commit {state.commit_min}/{state.commit_max}"
            for state in (replica.state for replica in final.core)
        )
        rot = f"; rot stays at replicas {list(final.rotten)}" if final.rotten else ""
        self.fail(f"at tick {final.tick} unanswered {list(final.unanswered)}{rot}; replicas {states}")
