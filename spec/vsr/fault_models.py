"""Per fault a small model in which breadth-first search meets it within seconds, as its record says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewproof.spec.lang import Spec
from viewproof.spec.vsr.bounds import Bounds
from viewproof.spec.vsr.faults import FAULTS
from viewproof.spec.vsr.models import model


@dataclass(frozen=True)
class FaultModel:
    """Size of the model, and the invariant or goal (L1, L2) that the shortest counterexample breaks there.

    `model` is the name of the model that it is a size of; in `rounds` rounds the bounded search of z3 finds a break.
    """

    replicas: int
    bounds: Bounds
    breaks: str
    model: str = "core"
    rounds: int = 2

    def spec(self, *faults: str) -> Spec:
        """The model with these faults switched on."""
        return model(self.model, replicas=self.replicas, faults=faults, bounds=self.bounds)

    @property
    def stops_progress(self) -> bool:
        """Does the fault break a goal (`progress`), and no invariant?"""
        return self.breaks not in {p.id for p in self.spec().invariants}


def _of_record(name: str, breaks: str, replicas: int, rounds: int = 2, **sizes: int) -> FaultModel:
    return FaultModel(replicas, Bounds(**sizes), breaks, name, rounds)


FAULT_MODELS: Mapping[str, FaultModel] = {id: _of_record(**fault.record.model) for id, fault in FAULTS.items()}
"""Fault id → model."""
