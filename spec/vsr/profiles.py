"""Profiles: named sets of options, one per real system or paper (docs/sources.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from viewproof.spec.lang import SpecError
from viewproof.spec.vsr.config import ClientTable, Config, Repair

Options = dict[str, Any]


def _flexible_quorums(profile: str, most: int, replicas: int) -> Options:
    """The quorums of TigerBeetle and Iggy, later: half of the replicas, 3 at most, acknowledge an op."""
    if not 1 <= replicas <= most:
        raise SpecError(f"profile {profile} is for 1 to {most} replicas, not {replicas}")
    q_r = 2 if replicas == 2 else min(3, (replicas + 1) // 2)
    return {"quorum_replication": q_r, "quorum_view_change": 2 if replicas == 2 else replicas - q_r + 1}


PROFILES: dict[str, Callable[[int], Options]] = {
    "core": lambda replicas: {},
    "paper": lambda replicas: {},
    "iggy-3023": lambda replicas: {"client_table": ClientTable(slots=8192, gaps=True)},
    "sessions": lambda replicas: {"client_table": ClientTable(slots=64, sessions=True)},
    "oxia-882": lambda replicas: {"features": 1},
    "recovery-nonce": lambda replicas: {"repair": Repair("nonce")},
    "recovery-superblock": lambda replicas: {
        "repair": Repair("superblock"),
        **_flexible_quorums("recovery-superblock", 6, replicas),
    },
    "iggy": lambda replicas: {
        "repair": Repair("probe"),
        "client_table": ClientTable(slots=8192, sessions=True, gaps=True, cached=5),
        **_flexible_quorums("iggy", 7, replicas),
    },
}
"""Profile → its options for a number of replicas."""
OF_LOGS = {"tigerbeetle-2022": "recovery-nonce", "tigerbeetle-2026": "recovery-superblock"}
"""Specification of another system's logs, which only an audit knows → the profile of the protocol that is nearest."""


def require_profile(name: str) -> None:
    """Raises `SpecError` for a name that is no profile; of another system's logs it says which one is meant."""
    if name in OF_LOGS:
        raise SpecError(
            f"{name} is the specification by which logs of that system are audited, and has no bounded model; "
            f"the protocol with the same recovery is {OF_LOGS[name]}"
        )
    if name not in PROFILES:
        raise SpecError(f"unknown profile {name}; there are: {', '.join(PROFILES)}")


def profile_options(name: str, replicas: int) -> Options:
    """The options of a profile. Raises `SpecError` for an unknown one, or replicas that it does not have."""
    require_profile(name)
    return PROFILES[name](replicas)


def profile(name: str, replicas: int = 3, **options: Any) -> Config:
    """The configuration of a profile; `options` override its own. Raises `SpecError` as `profile_options` does."""
    return replace(Config(replicas, profile=name, **profile_options(name, replicas)), **options)
