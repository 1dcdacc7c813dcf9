"""Simulated clusters with features and namespaces: good runs hold and reach the situations; each fault is caught."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.replica.features import SUPPORTS_ALL
from viewproof.impl.sim import SimResult, simulate
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import profile_draw, supports_drawn

SEEDS = range(12)


def run(seed: int, features: str, plane: Plane = Plane.SINGLE, *faults: str, profile: str = "") -> SimResult:
    chosen = NAMED_PROFILES[profile] if profile else profile_draw(Random(seed))
    profile_run = replace(chosen, features=features, plane=plane)
    return simulate(seed, requests=120, profile=profile_run, faults=frozenset(faults))


@pytest.mark.parametrize("features", ["all", "upgrade"])
def test_features_are_enabled_alike_whatever_happens(features: str) -> None:
    reached: Counter[str] = Counter()
    for seed in SEEDS:
        result = run(seed, features, Plane.PARTITIONS)
        assert result.ok, f"seed {seed} features {features}: {result.failures}"
        reached.update(result.statistics)
    for situation in ("features_learned", "features_proposed", "features_across_views", "namespaces_waited"):
        assert reached[situation] > 0, situation


def test_a_member_that_does_not_support_a_feature_keeps_it_off() -> None:
    for seed in SEEDS:
        result = run(seed, "partial")
        assert result.ok, f"seed {seed}: {result.failures}"
        assert result.statistics.get("features_proposed", 0) == 0


@pytest.mark.parametrize(
    ("fault", "features", "plane", "profile", "checker"),
    [
        ("control.no_offset_advance", "all", Plane.SINGLE, "", "agreement"),
        ("control.applied_on_leader_only", "all", Plane.SINGLE, "", "features"),
        ("control.map_order_digest", "all", Plane.SINGLE, "", "features"),
        ("control.unsupported_member", "partial", Plane.SINGLE, "", "replica"),
        ("commit.stale_frontier", "none", Plane.PARTITIONS, "storm", "acknowledgements"),
    ],
)
def test_each_fault_is_caught(fault: str, features: str, plane: Plane, profile: str, checker: str) -> None:
    caught: set[str] = set()
    for seed in range(30):
        caught |= {failure.checker for failure in run(seed, features, plane, fault, profile=profile).failures}
        if checker in caught:
            return
    pytest.fail(f"{fault} was not caught by {checker}, but by {caught}")


def test_what_replicas_support_at_first() -> None:
    assert supports_drawn("none", 3, Random(0)) == [0, 0, 0]
    assert supports_drawn("all", 3, Random(0)) == [SUPPORTS_ALL] * 3
    assert sorted(supports_drawn("partial", 3, Random(0))) == [0, SUPPORTS_ALL, SUPPORTS_ALL]
    assert 0 in supports_drawn("upgrade", 3, Random(0))
    words = "features must be one of none, all, partial, upgrade, downgrades, got 'some'"
    with pytest.raises(ConfigurationError, match=words):
        supports_drawn("some", 3, Random(0))
