"""Oxia's bounded models: pinned counts, witnesses, and the reference interpreter says the same."""

from __future__ import annotations

from typing import Any

import pytest

from viewproof.api.check import check, reach
from viewproof.spec.engines import explicit, interp
from viewproof.spec.lang import SpecError
from viewproof.spec.oxia import MODELS, model
from viewproof.spec.oxia.progress import goals

COUNTS = {
    "oxia": (829_174, 4_246_291, 40),
    "oxia_terms": (2_632_149, 7_532_552, 42),
    "oxia_restart": (121_385, 430_696, 32),
    "oxia_control": (344_492, 1_360_684, 33),
    "oxia_turns": (1_980_204, 7_829_096, 51),
}
"""Model → distinct, generated, depth."""

SMALL: list[tuple[str, dict[str, int], tuple[int, int, int]]] = [
    ("oxia", {"replicas": 1, "terms": 2, "offsets": 2}, (201, 268, 18)),
    ("oxia", {"replicas": 2, "terms": 2, "offsets": 1}, (515, 820, 20)),
    ("oxia", {"replicas": 3, "terms": 1, "offsets": 1}, (252, 674, 18)),
    ("oxia_restart", {"replicas": 2, "terms": 1, "offsets": 2}, (478, 1_579, 21)),
    ("oxia_restart", {"replicas": 2, "terms": 2, "offsets": 1}, (1_570, 3_365, 21)),
    ("oxia_control", {"replicas": 2, "terms": 1, "offsets": 2}, (698, 2_425, 21)),
    ("oxia_control", {"replicas": 2, "terms": 1, "offsets": 1, "restarts": 1}, (512, 1_397, 16)),
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
    }


@pytest.mark.parametrize("name", MODELS)
def test_each_model_holds_with_the_pinned_counts(name: str) -> None:
    found = check(model(name))
    assert found.verdict == "holds"
    assert (found.distinct, found.generated, found.depth) == COUNTS[name]


@pytest.mark.parametrize(("name", "sizes", "counts"), SMALL)
def test_interp_and_explicit_have_the_same_counts(
    name: str, sizes: dict[str, int], counts: tuple[int, int, int]
) -> None:
    spec = model(name, **sizes)
    found = explicit.explore(spec, notify=lambda _: None)
    assert found.verdict == "holds"
    assert (found.distinct, found.generated, found.depth) == counts
    assert facts(found) == facts(interp.explore(spec))


@pytest.mark.parametrize("id", [w.id for w in model("oxia").witnesses])
def test_each_invariant_has_a_witness(id: str) -> None:
    assert reach(model("oxia"), id).verdict == "violated"


def test_a_feature_can_be_active_at_all_members() -> None:
    found = reach(model("oxia_control", terms=1, offsets=2), "I14")
    assert found.verdict == "violated"
    assert {step.action for step in found.behaviour} >= {"announce_feature", "propose_feature", "apply"}


def test_the_last_commit_offset_reaches_no_follower_without_traffic() -> None:
    """A follower hears of a commit offset with an entry only, so it applies nothing of a log of one offset."""
    found = reach(model("oxia_control", terms=1, offsets=1), "I14")
    assert found.verdict == "holds"


@pytest.mark.parametrize("name", ["oxia", "oxia_restart"])
def test_elections_can_end_and_writes_can_be_answered(name: str) -> None:
    spec = model(name)
    wanted = list(goals(spec))
    for answer in explicit.always_reaches(spec, wanted, notify=lambda _: None):
        assert answer.result.verdict == "holds"
        assert answer.premises > 0


def test_sizes_and_names_that_mean_nothing_are_refused() -> None:
    with pytest.raises(SpecError, match="unknown model raft"):
        model("raft")
    with pytest.raises(SpecError, match="terms must be at least 1"):
        model("oxia", terms=0)
    with pytest.raises(SpecError, match="restarts must be at least 0"):
        model("oxia", restarts=-1)
