"""What every configuration says: how many replicas there are, and how many of them make a quorum."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.spec.lang import SpecError
from viewproof.spec.vsr.options import Options, option


def majority(replicas: int) -> int:
    """Smallest number of replicas that is more than half."""
    return replicas // 2 + 1


@dataclass(frozen=True)
class Cluster(Options):
    """Replicas, quorums, and the known deviations ("faults") that are switched on.

    Source: VR Revisited §4 (majorities); flexible quorums as in TigerBeetle: only q_r + q_v > n is needed.
    """

    replicas: int = option(3, "how many replicas the cluster has", least=1)
    quorum_replication: int = option(0, "how many acknowledge a committed op (0: more than half)", least=0)
    quorum_view_change: int = option(0, "how many take part in a view change (0: more than half)", least=0)
    profile: str = option("core", "the profile that the options are of")
    faults: frozenset[str] = option(frozenset(), "known deviations that are switched on")

    def go_together(self) -> None:
        """Quorums intersect, unless it is a fault that they do not; those that are not given are majorities."""
        n = self.replicas
        for name in ("quorum_replication", "quorum_view_change"):
            object.__setattr__(self, name, getattr(self, name) or majority(n))
        q_r, q_v = self.quorum_replication, self.quorum_view_change
        if not (q_r <= n and q_v <= n):
            raise SpecError(f"quorums {q_r} and {q_v} must lie in 1..{n}")
        if q_r + q_v <= n and "view.even_quorum" not in self.faults:
            raise SpecError(f"quorums must intersect: {q_r} (replication) + {q_v} (view change) > {n} replicas")
