"""Options of the protocol: one frozen value per configuration of a shard's ensemble, and the faults switched on."""

from __future__ import annotations

from dataclasses import dataclass, field

from viewproof.spec.lang import SpecError


@dataclass(frozen=True)
class Config:
    """Members of the ensemble (the replication factor), features that control entries can enable (0: no control
    entries), which (member, feature) pairs never support each other, how many servers take turns (0: none; of these the
    coordinator reaches one in a term), and the faults that are switched on.
    """

    replicas: int = 3
    features: int = 0
    unsupported: frozenset[tuple[int, int]] = frozenset()
    turns: int = 0
    faults: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        if self.replicas < 1:
            raise SpecError(f"an ensemble needs at least one member, not {self.replicas}")
        if self.features < 0:
            raise SpecError(f"features must be at least 0, not {self.features}")
        if self.turns and self.replicas - self.turns + 1 < self.fencing_quorum:
            raise SpecError(f"no server is elected if {self.turns} of {self.replicas} take turns")

    @property
    def fencing_quorum(self) -> int:
        """Answers to a new term that an election needs: a majority of the ensemble."""
        return self.replicas // 2 + 1

    @property
    def follower_acks(self) -> int:
        """Followers that must have acknowledged an entry; the leader's own copy makes it a majority."""
        return self.replicas // 2
