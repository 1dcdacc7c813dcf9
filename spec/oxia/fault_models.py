"""Per fault a small model in which breadth-first search meets it within seconds."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.spec.oxia.models import Bounds


@dataclass(frozen=True)
class FaultModel:
    """Size of the model, and the invariant that the shortest counterexample breaks there.

    `model` is the name of the model that it is a size of; `rounds` are those of bounded search.
    """

    bounds: Bounds
    breaks: str
    model: str = "oxia"
    replicas: int = 3
    rounds: int = 2

    @property
    def stops_progress(self) -> bool:
        """Does the fault break a goal (L1, L2; `progress`), and no invariant (I1 …)?"""
        return self.breaks.startswith("L")


FAULT_MODELS = {
    "oxia.commits_old_terms": FaultModel(Bounds(terms=4, offsets=1, turns=2), "I2_advertised", "oxia_turns"),
    "oxia.truncates_once": FaultModel(Bounds(terms=4, offsets=2, turns=2), "I3", "oxia_turns", rounds=3),
    "oxia.answers_synced_head": FaultModel(Bounds(terms=2, offsets=1), "I3"),
    "oxia.longest_log": FaultModel(Bounds(terms=3, offsets=2, turns=2), "I2_advertised", "oxia_turns"),
    "oxia.first_answer_leads": FaultModel(Bounds(terms=2, offsets=1), "I2_advertised"),
    "oxia.elects_twice": FaultModel(Bounds(terms=1, offsets=1), "I7"),
    "oxia.serves_at_once": FaultModel(Bounds(terms=2, offsets=1), "I4"),
    "oxia.acks_before_sync": FaultModel(Bounds(terms=1, offsets=1), "I3"),
    "oxia.one_ack_less": FaultModel(Bounds(terms=2, offsets=1), "I2_advertised"),
    "oxia.applies_appended": FaultModel(Bounds(terms=1, offsets=1), "I4"),
    "oxia.takes_old_terms": FaultModel(Bounds(terms=2, offsets=1), "I3"),
    "oxia.takes_gaps": FaultModel(Bounds(terms=1, offsets=2), "I10"),
    "oxia.term_not_durable": FaultModel(Bounds(terms=1, offsets=1, restarts=1), "I6", "oxia_restart"),
    "oxia.never_truncates": FaultModel(Bounds(terms=2, offsets=1), "I3"),
    "oxia.truncates_all": FaultModel(Bounds(terms=2, offsets=2), "I5"),
    "oxia.unsupported_member": FaultModel(Bounds(terms=1, offsets=1, features=1), "I14", "oxia_control", rounds=3),
    "oxia.enabled_at_proposal": FaultModel(Bounds(terms=1, offsets=1, features=1), "I14", "oxia_control"),
    "oxia.control_on_leader_only": FaultModel(Bounds(terms=1, offsets=2, features=1), "I14", "oxia_control", rounds=4),
}
"""Fault id → model."""
