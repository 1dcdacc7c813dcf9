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
            f"{replica.node}: {replica.status.value} view {replica.view} log_view {replica.log_view} op {replica.op}"
            f" commit {replica.commit_min}/{replica.commit_max}"
            for replica in final.core
        )
        self.fail(f"at tick {final.tick} unanswered {list(final.unanswered)}; replicas {states}")
