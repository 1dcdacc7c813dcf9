"""Per fault a small model in which breadth-first search meets it within seconds."""

from __future__ import annotations

from dataclasses import dataclass

from spec.vsr.models import Bounds


@dataclass(frozen=True)
class FaultModel:
    """Size of the model, and the invariant or goal (L1, L2) that the shortest counterexample breaks there.

    `model` is the name of the model that it is a size of.
    """

    replicas: int
    bounds: Bounds
    breaks: str
    model: str = "core"


FAULT_MODELS = {
    "commit.apply_at_replicate": FaultModel(3, Bounds(views=2, ops=1, requests=1, restarts=0), "I4"),
    "view.even_quorum": FaultModel(4, Bounds(views=2, ops=1, requests=1, restarts=0), "I2"),
    "boot.view_from_last_prepare": FaultModel(3, Bounds(views=2, ops=1, requests=1, restarts=1), "I6"),
    "state.getstate_truncates": FaultModel(3, Bounds(views=3, ops=1, requests=1, restarts=0), "I3"),
}
"""Fault id → model."""
