"""The configuration of a cluster of either family."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.options import option


@dataclass(frozen=True)
class Cluster(Config):
    """That of its replicas, and how many nodes there are with the standbys."""

    nodes: int = option(0, "replicas and standbys", least=0)
