"""The profile `tigerbeetle-2026`: steps of the July 2026 build. No deviation is known to be in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewproof.spec.lang import Action, Instance, Spec
from viewproof.spec.vsr.tigerbeetle import follow_2026, headers, messages_2026, node_2026, normal_2026, view_2026
from viewproof.spec.vsr.tigerbeetle.state_2026 import schema_2026

PROFILE = "tigerbeetle-2026"

ACTIONS = (
    *headers.ACTIONS,
    *node_2026.ACTIONS,
    *normal_2026.ACTIONS,
    *messages_2026.ACTIONS,
    *view_2026.ACTIONS,
    *follow_2026.ACTIONS,
)

DEVIATIONS: Mapping[str, tuple[Action, ...]] = {}


def spec_2026(cfg: Any) -> Spec:
    """The steps, for a cluster of `cfg.replicas` replicas among `cfg.nodes` nodes: the rest are standbys."""
    return Spec(PROFILE, schema_2026(), cfg, ACTIONS, (), (), Instance({"Replica": cfg.nodes - 1}))
