"""Sizes of finite models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from viewproof.spec.lang import Instance, SpecError


@dataclass(frozen=True)
class Bounds:
    """Size of a finite model: numbers of views, ops, clients, requests per client (and session), crashes in all, how
    often a client begins anew, slots of the client table where they are not the model's own, slots of journals (or
    segments) that go bad; partitions, readers in all of them, and messages in an append; the sizes of the quorums of
    replication and view change, where they are not the model's own.
    """

    views: int = 3
    ops: int = 2
    clients: int = 1
    requests: int = 2
    restarts: int = 0
    incarnations: int = 0
    slots: int = 0
    rots: int = 0
    partitions: int = 0
    readers: int = 0
    messages: int = 0
    quorum_replication: int = 0
    quorum_view_change: int = 0

    def instance(self, replicas: int) -> Instance:
        """The index ranges of the core: views 0..views-1, ops 1..ops, clients 1..clients."""
        for name, value in vars(self).items():
            if value < (1 if name in ("views", "ops", "clients", "requests") else 0):
                raise SpecError(f"{name} must be at least 1, not {value}")
        return Instance(
            {
                "Replica": replicas - 1,
                "View": self.views - 1,
                "Op": self.ops,
                "Client": self.clients,
                "Request": self.requests,
                "Restart": self.restarts,
            }
        )

    def quorums(self) -> dict[str, int]:
        """The quorum sizes that are given."""
        sizes = {"quorum_replication": self.quorum_replication, "quorum_view_change": self.quorum_view_change}
        return {name: size for name, size in sizes.items() if size}


@dataclass(frozen=True)
class Model:
    """A named bounded model: its own sizes, and options of its configuration, where it is more than the core."""

    bounds: Bounds
    options: Mapping[str, Any] = field(default_factory=dict)
    replicas: int = 3
