"""Oxia's bounded models: pinned counts, witnesses, and the reference interpreter says the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.counts import require_counts
from viewproof.api.check import check, reach
from viewproof.spec.engines import explicit, interp
from viewproof.spec.lang import SpecError
from viewproof.spec.oxia import MODELS, model
from viewproof.spec.oxia.models import Bounds
from viewproof.spec.oxia.progress import goals
from viewproof.spec.sizes import Size

SMALL: list[Any] = [
    ("oxia", {"replicas": 1, "terms": 2, "offsets": 2}),
    ("oxia", {"replicas": 2, "terms": 2, "offsets": 1}),
    ("oxia", {"replicas": 3, "terms": 1, "offsets": 1}),
    ("oxia_restart", {"replicas": 2, "terms": 1, "offsets": 2}),
    pytest.param("oxia_restart", {"replicas": 2, "terms": 2, "offsets": 1}, marks=pytest.mark.long),
    ("oxia_control", {"replicas": 2, "terms": 1, "offsets": 2}),
    ("oxia_control", {"replicas": 2, "terms": 1, "offsets": 1, "restarts": 1}),
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
    require_counts(found, name)


@pytest.mark.parametrize(("name", "sizes"), SMALL)
def test_interp_and_explicit_have_the_same_counts(name: str, sizes: dict[str, int]) -> None:
    spec = model(name, **sizes)
    found = explicit.explore(spec, notify=lambda _: None)
    require_counts(found, name, **sizes)
    assert facts(found) == facts(interp.explore(spec))


def test_servers_that_take_turns_leave_a_majority_in_each_term() -> None:
    turns = model("oxia", replicas=3, terms=4, offsets=1, turns=2)
    assert check(turns).distinct == 133_536
    with pytest.raises(SpecError, match="no server is elected if 2 of 2 take turns"):
        model("oxia", replicas=2, turns=2)


def test_a_size_grows_by_what_makes_it_larger() -> None:
    assert [size.name for size in Size(3, Bounds(terms=3, offsets=1, turns=2)).larger()] == [
        "3 replicas, 4 terms, 1 offset, 2 turns",
        "3 replicas, 3 terms, 2 offsets, 2 turns",
        "4 replicas, 3 terms, 1 offset, 2 turns",
    ]


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
