"""The explicit engine and the reference interpreter say the same: on the core protocol and on random models."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.spec.generated_models import models
from viewproof.spec.engines import explicit, interp
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.vsr import model

INSTANCES: list[Any] = [
    {"replicas": 2, "views": 2, "ops": 1, "requests": 1, "restarts": 1},
    pytest.param({"replicas": 3, "views": 1, "ops": 2, "requests": 2, "restarts": 0}, marks=pytest.mark.long),
    {"replicas": 2, "views": 2, "ops": 2, "requests": 1, "restarts": 0},
    pytest.param(
        {"replicas": 1, "views": 2, "ops": 2, "clients": 2, "requests": 1, "restarts": 1}, marks=pytest.mark.long
    ),
    pytest.param({"replicas": 2, "views": 3, "ops": 1, "requests": 1, "restarts": 0}, marks=pytest.mark.long),
]


def facts(found: Any) -> dict[str, Any]:
    """What both engines must agree on."""
    return {
        "distinct": found.distinct,
        "generated": found.generated,
        "depth": found.depth,
        "per_action": found.per_action,
        "witnessed": found.witnessed,
        "broken": found.broken,
        "behaviour": [(step.action, step.args, step.state) for step in found.behaviour],
    }


@pytest.mark.parametrize("sizes", INSTANCES, ids=lambda s: "-".join(f"{k}{v}" for k, v in s.items()))
def test_core_has_the_same_counts_in_interp_and_explicit(sizes: dict[str, int]) -> None:
    spec = model("core", **sizes)
    found = explicit.explore(spec)
    assert found.verdict == "holds"
    assert facts(found) == facts(interp.explore(spec))


def outcome(spec: Spec, **how: Any) -> Any:
    """Facts of a search by explicit, or that it met a range error."""
    try:
        return facts(explicit.explore(spec, notify=lambda _: None, **how))
    except SpecError:
        return "range error"


def reference(spec: Spec) -> Any:
    """The same from interp."""
    try:
        return facts(interp.explore(spec))
    except SpecError:
        return "range error"


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(models())
def test_random_models_agree(spec: Spec) -> None:
    assert outcome(spec) == reference(spec)
